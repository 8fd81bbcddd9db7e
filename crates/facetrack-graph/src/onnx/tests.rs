// SPDX-License-Identifier: MPL-2.0

use super::*;
use crate::{Floats, passes};

fn value(name: &str, dims: &[usize]) -> ValueInfoProto {
    ValueInfoProto {
        name: name.to_owned(),
        kind: Some(TypeProto::floats(Some(dims))),
    }
}

fn named(name: &str, constant: TensorProto) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        ..constant
    }
}

fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        op_type: op.to_owned(),
        input: inputs.iter().map(|name| (*name).to_owned()).collect(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    }
}

/// `image` → Conv → `a` → Reshape → `b` and → Mul → Sigmoid → `c`.
fn model() -> ModelProto {
    ModelProto {
        ir_version: 6,
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: 11,
        }],
        graph: Some(GraphProto {
            name: GRAPH_NAME.to_owned(),
            node: vec![
                node("Conv", &["image", "weights", "bias"], "a"),
                node("Reshape", &["a", "shape"], "b"),
                node("Mul", &["a", "factor"], "d"),
                node("Sigmoid", &["d"], "c"),
            ],
            initializer: vec![
                named(
                    "weights",
                    TensorProto::floats(&[2, 3, 1, 1], &[1., 2., 3., 4., 5., 6.]),
                ),
                TensorProto {
                    dims: vec![2],
                    data_type: FLOAT,
                    float_data: vec![7.0, 8.0],
                    name: "bias".to_owned(),
                    ..TensorProto::default()
                },
                named("factor", TensorProto::floats(&[], &[0.5])),
                named("shape", TensorProto::ints(&[1], &[3])),
            ],
            input: vec![value("image", &[1, 3, 64, 48])],
            output: vec![value("b", &[1, 2, 64, 48]), value("c", &[1, 2, 64, 48])],
        }),
    }
}

fn parse(model: &ModelProto) -> Result<Graph> {
    Graph::parse(model.encode_to_vec().into())
}

fn written(graph: Graph) -> GraphProto {
    let model = ModelProto::decode(graph.encode().as_slice()).unwrap();
    model.graph.unwrap()
}

fn constant(graph: &Graph, name: &str) -> Option<Floats> {
    graph.floats(graph.named(name)?)
}

#[test]
fn what_is_read_is_written_again() {
    let model = model();
    let written = parse(&model).unwrap().encode();
    assert_eq!(ModelProto::decode(written.as_slice()).unwrap(), model);
}

#[test]
fn constants_among_the_inputs_are_kept_and_not_counted_as_inputs() {
    let mut model = model();
    let graph = model.graph.as_mut().unwrap();
    graph.input.push(value("weights", &[2, 3, 1, 1]));
    graph.input.push(value("shape", &[1]));
    graph.node.remove(1);
    graph.output.remove(0);
    let read = parse(&model).unwrap();
    assert_eq!(read.specs(&read.inputs).len(), 1);
    assert_eq!(ModelProto::decode(read.encode().as_slice()).unwrap(), model);
}

#[test]
fn axes_of_inputs_are_freed_and_outputs_follow() {
    let mut graph = parse(&model()).unwrap();
    for (axis, extent) in [(0, Some(2)), (2, None), (3, None), (9, None)] {
        graph.set_input_extent(axis, extent);
    }
    assert_eq!(
        graph.specs(&graph.inputs)[0].shape,
        [Some(2), Some(3), None, None]
    );
    let outputs = graph.specs(&graph.outputs);
    assert!(outputs.iter().all(|spec| spec.shape.is_empty()));
}

#[test]
fn constants_are_found_by_name_in_either_form() {
    let mut graph = parse(&model()).unwrap();
    let bias = constant(&graph, "bias").unwrap();
    assert_eq!(bias, ndarray::array![7.0, 8.0].into_dyn());
    let added = graph.add_floats(bias.shape(), &bias);
    assert_eq!(graph.floats(added), Some(bias));
    assert_eq!(
        constant(&graph, "factor").unwrap().as_slice().unwrap(),
        [0.5]
    );
    for name in ["shape", "a", ""] {
        assert_eq!(constant(&graph, name), None, "{name}");
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
        let graph = parse(&model).unwrap();
        assert_eq!(constant(&graph, "bias"), None, "{dims:?}");
    }
}

#[test]
fn constants_of_nothing_are_refused() {
    let mut model = model();
    let bias = &mut model.graph.as_mut().unwrap().initializer[1];
    bias.dims = vec![0, 3, 1 << 40, 1 << 40];
    bias.float_data.clear();
    assert_eq!(constant(&parse(&model).unwrap(), "bias"), None);
}

#[test]
fn what_no_output_depends_on_is_dropped() {
    let mut graph = parse(&model()).unwrap();
    graph.outputs.truncate(1);
    graph.sort();
    let graph = written(graph);
    let ops: Vec<_> = graph.node.iter().map(|node| &node.op_type).collect();
    assert_eq!(ops, ["Conv", "Reshape"]);
    let constants: Vec<_> = graph.initializer.iter().map(|c| &c.name).collect();
    assert_eq!(constants, ["weights", "bias", "shape"]);
}

#[test]
fn nodes_are_moved_behind_those_that_they_depend_on() {
    let mut model = model();
    let graph = model.graph.as_mut().unwrap();
    graph.node.reverse();
    let mut graph = parse(&model).unwrap();
    graph.sort();
    let ops: Vec<_> = graph.nodes.iter().map(|node| node.op.clone()).collect();
    assert_eq!(ops, ["Conv", "Mul", "Sigmoid", "Reshape"]);
    // A forged file may have a cycle.
    graph.nodes[0].inputs[0] = graph.nodes[1].output();
    graph.sort();
    assert_eq!(graph.nodes.len(), ops.len());
}

#[test]
fn operators_of_others_have_another_domain() {
    let mut model = model();
    model.graph.as_mut().unwrap().node[1].domain = "com.microsoft".to_owned();
    let graph = parse(&model).unwrap();
    let is = |value, op| {
        graph
            .producer(graph.named(value).unwrap())
            .is_some_and(|node| node.is(op))
    };
    assert!(is("a", "Conv"));
    for (value, op) in [("a", "Relu"), ("b", "Reshape"), ("image", "Conv")] {
        assert!(!is(value, op), "{value}");
    }
}

#[test]
fn files_that_take_much_more_memory_once_read_are_refused() {
    let refused = |model: &ModelProto, reason: &str| {
        let error = parse(model).err().unwrap();
        assert!(error.contains(reason), "{error}");
    };
    let mut nodes = model();
    nodes.graph.as_mut().unwrap().node = vec![NodeProto::default(); MAX_STRUCTURE];
    refused(&nodes, "outside its constants");
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
        let Ok(mut graph) = Graph::parse(bytes.into()) else {
            return;
        };
        graph.set_input_extent(2, None);
        let _ = (constant(&graph, "weights"), constant(&graph, "bias"));
        graph.outputs.truncate(1);
        let passes = [passes::COMMON, passes::OPENSEEFACE];
        for pass in passes.into_iter().flatten() {
            let _ = passes::run(&mut graph, &[*pass]);
        }
        changes += graph.encode().len();
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
