// SPDX-License-Identifier: MPL-2.0

use super::*;

fn value(name: &str, dims: &[i64]) -> ValueInfoProto {
    let dim = dims.iter().map(|n| DimensionProto {
        extent: Some(Extent::Value(*n)),
    });
    ValueInfoProto {
        name: name.to_owned(),
        kind: Some(TypeProto {
            tensor_type: Some(TensorTypeProto {
                elem_type: FLOAT,
                shape: Some(ShapeProto { dim: dim.collect() }),
            }),
        }),
    }
}

fn node(op: &str, inputs: &[&str], output: &str) -> Node {
    Node {
        op_type: op.to_owned(),
        input: inputs.iter().map(|name| (*name).to_owned()).collect(),
        output: vec![output.to_owned()],
        ..Node::default()
    }
}

/// `image` → Conv → `a` → Relu → `b` and → Sigmoid → `c`.
fn model() -> ModelProto {
    ModelProto {
        ir_version: 6,
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: 11,
        }],
        graph: Some(GraphProto {
            name: "test".to_owned(),
            node: vec![
                node("Conv", &["image", "weights", "bias"], "a"),
                node("Relu", &["a"], "b"),
                node("Mul", &["a", "factor"], "d"),
                node("Sigmoid", &["d"], "c"),
            ],
            initializer: vec![
                TensorProto::floats("weights", &[2, 3, 1, 1], &[1., 2., 3., 4., 5., 6.]),
                TensorProto {
                    dims: vec![2],
                    data_type: FLOAT,
                    float_data: vec![7.0, 8.0],
                    name: "bias".to_owned(),
                    ..TensorProto::default()
                },
                TensorProto::floats("factor", &[], &[0.5]),
                TensorProto::ints("shape", &[1], &[3]),
            ],
            input: vec![value("image", &[1, 3, 64, 48])],
            output: vec![value("b", &[1, 2, 64, 48]), value("c", &[1, 2, 64, 48])],
        }),
    }
}

fn parse(model: &ModelProto) -> Result<OnnxFile, Reason> {
    OnnxFile::parse(model.encode_to_vec().into())
}

fn graph(file: OnnxFile) -> GraphProto {
    let model = ModelProto::decode(file.encode().as_slice()).unwrap();
    model.graph.unwrap()
}

#[test]
fn what_is_read_is_written_again() {
    let model = model();
    let written = parse(&model).unwrap().encode();
    assert_eq!(ModelProto::decode(written.as_slice()).unwrap(), model);
}

#[test]
fn axes_of_inputs_are_freed_and_outputs_follow() {
    let mut file = parse(&model()).unwrap();
    file.free_axes(&[2, 3, 9]);
    let mut graph = graph(file);
    let extents: Vec<_> = shape(&mut graph.input[0]).unwrap().dim.iter().collect();
    let known: Vec<bool> = extents.iter().map(|dim| dim.extent.is_some()).collect();
    assert_eq!(known, [true, true, false, false]);
    assert!(graph.output.iter_mut().all(|value| shape(value).is_none()));
}

#[test]
fn constants_are_found_by_name_in_either_form() {
    let mut file = parse(&model()).unwrap();
    let bias = Floats {
        dims: vec![2],
        values: vec![7.0, 8.0],
    };
    assert_eq!(file.floats("bias").unwrap(), bias);
    file.add_floats("raw", &bias);
    assert_eq!(file.floats("raw").unwrap(), bias);
    assert_eq!(file.floats("factor").unwrap().values, [0.5]);
    for name in ["shape", "a", ""] {
        assert!(file.floats(name).unwrap_err().contains("no constant"));
    }
}

#[test]
fn constants_of_another_length_than_their_extents_are_refused() {
    for dims in [
        vec![3],
        vec![-2],
        vec![i64::MAX, i64::MAX],
        vec![0],
        vec![1 << 40],
    ] {
        let mut model = model();
        model.graph.as_mut().unwrap().initializer[1].dims = dims.clone();
        let file = parse(&model).unwrap();
        assert!(file.floats("bias").is_err(), "{dims:?}");
    }
}

#[test]
fn constants_of_nothing_are_refused() {
    let mut model = model();
    let bias = &mut model.graph.as_mut().unwrap().initializer[1];
    bias.dims = vec![0, 3, 1 << 40, 1 << 40];
    bias.float_data.clear();
    assert!(parse(&model).unwrap().floats("bias").is_err());
}

#[test]
fn what_no_output_depends_on_is_dropped() {
    let mut file = parse(&model()).unwrap();
    file.set_outputs(&["b".to_owned()]);
    let graph = graph(file);
    let ops: Vec<_> = graph.node.iter().map(|node| &node.op_type).collect();
    assert_eq!(ops, ["Conv", "Relu"]);
    let constants: Vec<_> = graph.initializer.iter().map(|c| &c.name).collect();
    assert_eq!(constants, ["weights", "bias"]);
}

#[test]
fn producers_are_of_onnx_itself() {
    let mut model = model();
    model.graph.as_mut().unwrap().node[1].domain = "com.microsoft".to_owned();
    let mut file = parse(&model).unwrap();
    assert_eq!(file.producer("a", "Conv").unwrap().input[1], "weights");
    assert_eq!(file.first_convolution().unwrap().output, ["a"]);
    for (value, op) in [("a", "Relu"), ("b", "Relu"), ("nothing", "Conv")] {
        assert!(file.producer(value, op).is_err(), "{value}");
    }
    file.add_node(node("Relu", &["image"], "e"));
    assert!(
        file.first_convolution().is_err(),
        "two nodes take the input"
    );
}

#[test]
fn files_that_take_much_more_memory_once_read_are_refused() {
    let refused = |model: &ModelProto, reason: &str| {
        let error = parse(model).err().unwrap();
        assert!(error.contains(reason), "{error}");
    };
    let mut nodes = model();
    nodes.graph.as_mut().unwrap().node = vec![Node::default(); MAX_STRUCTURE];
    refused(&nodes, "beside its constants");
    let mut constants = model();
    constants.graph.as_mut().unwrap().initializer = vec![TensorProto::default(); MAX_CONSTANTS + 1];
    refused(&constants, "constants");
    let mut large = model();
    large.graph.as_mut().unwrap().initializer[0].raw_data = vec![0; MAX_BYTES].into();
    refused(&large, "larger");
    let mut elsewhere = model();
    elsewhere.graph.as_mut().unwrap().initializer[0].data_location = EXTERNAL;
    refused(&elsewhere, "another file");
    refused(&ModelProto::default(), "no graph");
}

#[test]
fn no_damaged_byte_makes_it_panic() {
    let good = model().encode_to_vec();
    let mut changes = 0;
    let mut attempt = |bytes: Vec<u8>| {
        let Ok(mut file) = OnnxFile::parse(bytes.into()) else {
            return;
        };
        file.free_axes(&[2, 3]);
        let _ = (file.floats("weights"), file.floats("bias"));
        let _ = (
            file.first_convolution().map(|_| ()),
            file.producer("b", "Relu").map(|_| ()),
        );
        file.set_outputs(&["c".to_owned()]);
        changes += file.encode().len();
    };
    for end in 0..good.len() {
        attempt(good[..end].to_vec());
    }
    for at in 0..good.len() {
        for mask in [0x01, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] ^= mask;
            attempt(bytes);
        }
    }
    assert!(changes > 0, "some changes leave a file that can be read");
}
