// SPDX-License-Identifier: MPL-2.0
//! Reads ONNX files to change them in memory before the runtime gets them.
//!
//! Nodes keep what their file says; of the rest that is kept which the runtime needs, see [`super::onnx_proto`].

use std::collections::HashSet;
use std::path::Path;

use prost::Message;
use prost::bytes::Bytes;

use super::ModelError;
use super::onnx_proto::*;

pub use super::onnx_proto::NodeProto as Node;

/// What is wrong with a file.
pub type Reason = String;

/// Most bytes of a file that is changed here; the largest known has 4 MB. Numbers of one byte take eight once read.
const MAX_BYTES: usize = 16 << 20;

/// Most bytes of a file outside its constants. An empty entry of two bytes takes hundred times as many once read.
const MAX_STRUCTURE: usize = 1 << 20;

/// Most constants.
const MAX_CONSTANTS: usize = 4096;

/// Bytes that the field number and the length of a constant take at most.
const MAX_HEADER: usize = 11;

/// An ONNX file that was read.
pub struct OnnxFile {
    ir_version: i64,
    opset_import: Vec<OperatorSetIdProto>,
    graph: GraphProto,
}

/// A constant of floats, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Floats {
    /// Extents, outermost first.
    pub dims: Vec<usize>,
    /// As many as the extents say.
    pub values: Vec<f32>,
}

/// The sizes of a file's parts.
#[derive(Clone, PartialEq, Message)]
struct Outline {
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphOutline>,
}

#[derive(Clone, PartialEq, Message)]
struct GraphOutline {
    #[prost(bytes = "bytes", repeated, tag = "5")]
    initializer: Vec<Bytes>,
}

impl OnnxFile {
    /// Reads the ONNX file `bytes`; `path` is for messages.
    ///
    /// # Errors
    /// [`ModelError::Format`] for a damaged file, and for one of other dimensions than face networks have.
    pub fn read(path: &Path, bytes: Vec<u8>) -> Result<Self, ModelError> {
        Self::parse(bytes.into()).map_err(|reason| ModelError::Format {
            path: path.to_path_buf(),
            format: "ONNX",
            reason,
        })
    }

    fn parse(bytes: Bytes) -> Result<Self, Reason> {
        check_size(&bytes)?;
        let model = ModelProto::decode(bytes).map_err(|error| error.to_string())?;
        let graph = model.graph.ok_or("it has no graph")?;
        if graph
            .initializer
            .iter()
            .any(|constant| constant.data_location == EXTERNAL)
        {
            return Err("its constants lie in another file".to_owned());
        }
        Ok(Self {
            ir_version: model.ir_version,
            opset_import: model.opset_import,
            graph,
        })
    }

    /// The bytes of the file as it is now.
    pub fn encode(self) -> Vec<u8> {
        let model = ModelProto {
            ir_version: self.ir_version,
            opset_import: self.opset_import,
            graph: Some(self.graph),
        };
        model.encode_to_vec()
    }

    /// Lets the inputs have any length along `axes`, and the outputs any shape that follows.
    pub fn free_axes(&mut self, axes: &[usize]) {
        for shape in self.graph.input.iter_mut().filter_map(shape) {
            for axis in axes {
                if let Some(dimension) = shape.dim.get_mut(*axis) {
                    dimension.extent = None;
                }
            }
        }
        for tensor in self.graph.output.iter_mut().filter_map(tensor_type) {
            tensor.shape = None;
        }
    }

    /// The first convolution, the only node that takes the only input.
    ///
    /// # Errors
    /// When there is no such node.
    pub fn first_convolution(&mut self) -> Result<&mut Node, Reason> {
        let [input] = &self.graph.input[..] else {
            return Err(format!("{} inputs", self.graph.input.len()));
        };
        let takes_it = |node: &&mut Node| node.input.contains(&input.name);
        let mut users = self.graph.node.iter_mut().filter(takes_it);
        match (users.next(), users.next()) {
            (Some(node), None) if is_convolution(node) => Ok(node),
            _ => Err(format!("input {} is not for one convolution", input.name)),
        }
    }

    /// The node that yields `value`, an operator `op` of ONNX.
    ///
    /// # Errors
    /// When nothing or another operator yields it.
    pub fn producer(&self, value: &str, op: &str) -> Result<&Node, Reason> {
        let mut nodes = self.graph.node.iter();
        nodes
            .find(|node| node.output.iter().any(|output| output == value))
            .filter(|node| node.op_type == op && node.domain.is_empty())
            .ok_or_else(|| format!("no {op} yields {value}"))
    }

    /// The constant `name`.
    ///
    /// # Errors
    /// When there is none, or one of something else than floats or of no float, or its length is not that of its extents.
    pub fn floats(&self, name: &str) -> Result<Floats, Reason> {
        let mut constants = self.graph.initializer.iter();
        constants
            .find(|constant| constant.name == name)
            .and_then(floats)
            .ok_or_else(|| format!("{name} is no constant of floats"))
    }

    /// Adds the constant `name`.
    pub fn add_floats(&mut self, name: &str, Floats { dims, values }: &Floats) {
        let constant = TensorProto::floats(name, dims, values);
        self.graph.initializer.push(constant);
    }

    /// Adds a node after all others.
    pub fn add_node(&mut self, node: Node) {
        self.graph.node.push(node);
    }

    /// Makes `names`, of floats, the only outputs, and drops what none of them depends on.
    pub fn set_outputs(&mut self, names: &[String]) {
        let output = |name: &String| ValueInfoProto {
            name: name.clone(),
            kind: Some(TypeProto {
                tensor_type: Some(TensorTypeProto {
                    elem_type: FLOAT,
                    shape: None,
                }),
            }),
        };
        self.graph.output = names.iter().map(output).collect();
        let mut needed: HashSet<String> = names.iter().cloned().collect();
        // Nodes come after those that they depend on.
        let mut nodes = std::mem::take(&mut self.graph.node);
        nodes.reverse();
        nodes.retain(|node| {
            let is_needed = node.output.iter().any(|output| needed.contains(output));
            if is_needed {
                needed.extend(node.input.iter().cloned());
            }
            is_needed
        });
        nodes.reverse();
        self.graph.node = nodes;
        self.graph
            .initializer
            .retain(|constant| needed.contains(&constant.name));
    }
}

/// Refuses a file that takes much more memory once read.
fn check_size(bytes: &Bytes) -> Result<(), Reason> {
    if bytes.len() > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    let outline = Outline::decode(bytes.clone()).map_err(|error| error.to_string())?;
    let constants = outline.graph.unwrap_or_default().initializer;
    if constants.len() > MAX_CONSTANTS {
        return Err(format!("it has more than {MAX_CONSTANTS} constants"));
    }
    let within: usize = constants.iter().map(|c| c.len() + MAX_HEADER).sum();
    if bytes.len().saturating_sub(within) > MAX_STRUCTURE {
        return Err(format!(
            "it has more than {MAX_STRUCTURE} bytes beside its constants"
        ));
    }
    Ok(())
}

fn is_convolution(node: &Node) -> bool {
    node.op_type == "Conv" && node.domain.is_empty()
}

fn tensor_type(value: &mut ValueInfoProto) -> Option<&mut TensorTypeProto> {
    value.kind.as_mut()?.tensor_type.as_mut()
}

fn shape(value: &mut ValueInfoProto) -> Option<&mut ShapeProto> {
    tensor_type(value)?.shape.as_mut()
}

fn floats(constant: &TensorProto) -> Option<Floats> {
    if constant.data_type != FLOAT {
        return None;
    }
    let dims: Vec<usize> = constant
        .dims
        .iter()
        .map(|n| usize::try_from(*n).ok())
        .collect::<Option<_>>()?;
    let count = dims.iter().try_fold(1usize, |n, dim| n.checked_mul(*dim))?;
    let raw = constant.raw_data.chunks_exact(4);
    let values: Vec<f32> = match constant.raw_data.len() {
        0 => constant.float_data.clone(),
        _ => raw
            .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect(),
    };
    (count > 0 && values.len() == count && constant.raw_data.len().is_multiple_of(4))
        .then_some(Floats { dims, values })
}

#[cfg(test)]
mod tests {
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
        constants.graph.as_mut().unwrap().initializer =
            vec![TensorProto::default(); MAX_CONSTANTS + 1];
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
}
