// SPDX-License-Identifier: MPL-2.0
//! The inputs, outputs and precision of an ONNX file, read without its constants: a file of
//! hundreds of megabytes takes no memory.

use std::collections::HashSet;

use prost::Message;

use super::proto::*;
use super::{Result, TensorSpec};

/// Number of nodes whose names are kept.
pub const FIRST_NODES: usize = 8;

/// Maximum number of outputs, and of inputs that are not constants; InsightFace's detectors have
/// 15.
const MAX_TENSORS: usize = 64;

/// Maximum number of constants; the largest known network has some 500.
const MAX_CONSTANTS: usize = 16_384;

/// Maximum size of the description of an input or output, in bytes.
const MAX_DESCRIPTION: usize = 4096;

/// Precision of the floats that a network computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    Single,
    /// Constants, inputs or outputs are 16-bit floats.
    Half,
}

/// Inputs, outputs and precision of a network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnnxOutline {
    /// Input tensors.
    pub inputs: Vec<TensorSpec>,
    /// Output tensors.
    pub outputs: Vec<TensorSpec>,
    /// Names of the first [`FIRST_NODES`] nodes.
    pub first_nodes: Vec<String>,
    /// Precision of its floats.
    pub precision: Precision,
}

/// The name of a node.
#[derive(Clone, PartialEq, Message)]
struct NodeOutline {
    #[prost(string, tag = "3")]
    name: String,
}

/// A constant without its content.
#[derive(Clone, PartialEq, Message)]
struct ConstantOutline {
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
}

impl OnnxOutline {
    /// Reads the outline of the ONNX file `bytes`.
    ///
    /// # Errors
    /// Returns an error if the file is cut short or is not ONNX.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        let mut outline = Self::default();
        let mut constants = HashSet::new();
        for field in fields(graph_of(bytes)?) {
            let (number, content) = field?;
            match number {
                GRAPH_NODE if outline.first_nodes.len() < FIRST_NODES => {
                    let NodeOutline { name } = decode(content)?;
                    outline.first_nodes.push(name);
                }
                GRAPH_INITIALIZER => {
                    let constant: ConstantOutline = decode(content)?;
                    outline.add_type(constant.data_type);
                    constants.insert(constant.name);
                    check_count(constants.len(), MAX_CONSTANTS)?;
                }
                GRAPH_INPUT => {
                    let input = outline.tensor(content)?;
                    outline.inputs.push(input);
                    check_count(outline.inputs.len(), MAX_CONSTANTS)?;
                }
                GRAPH_OUTPUT => {
                    let output = outline.tensor(content)?;
                    outline.outputs.push(output);
                    check_count(outline.outputs.len(), MAX_TENSORS)?;
                }
                _ => {}
            }
        }
        // Old files list their constants among the inputs.
        outline
            .inputs
            .retain(|input| !constants.contains(&input.name));
        check_count(outline.inputs.len(), MAX_TENSORS)?;
        Ok(outline)
    }

    /// Reads the description of an input or output.
    fn tensor(&mut self, content: &[u8]) -> Result<TensorSpec> {
        check_count(content.len(), MAX_DESCRIPTION)?;
        let ValueInfoProto { name, kind } = decode(content)?;
        let kind = kind.unwrap_or_default();
        self.add_type(kind.tensor_type.as_ref().map_or(FLOAT, |own| own.elem_type));
        let shape = kind.extents();
        Ok(TensorSpec { name, shape })
    }

    fn add_type(&mut self, data_type: i32) {
        if data_type == FLOAT16 {
            self.precision = Precision::Half;
        }
    }
}

fn decode<M: Message + Default>(content: &[u8]) -> Result<M> {
    M::decode(content).map_err(|error| error.to_string())
}

fn check_count(count: usize, most: usize) -> Result<()> {
    if count <= most {
        return Ok(());
    }
    Err("it has too many constants, inputs or outputs for a face network".to_owned())
}

/// Writes outlines as files, for tests.
#[cfg(test)]
mod encode {
    use super::*;

    impl OnnxOutline {
        /// A file of this outline with the constant `weights`, which it lists among its inputs as
        /// old ones do.
        pub fn encode(&self) -> Vec<u8> {
            let weights = TensorSpec {
                name: "weights".to_owned(),
                shape: vec![Some(2)],
            };
            let kind = match self.precision {
                Precision::Single => FLOAT,
                Precision::Half => FLOAT16,
            };
            let constant = TensorProto {
                name: weights.name.clone(),
                data_type: kind,
                ..TensorProto::default()
            };
            let graph = GraphProto {
                initializer: vec![constant],
                input: [&[weights], &self.inputs[..]]
                    .concat()
                    .iter()
                    .map(value)
                    .collect(),
                output: self.outputs.iter().map(value).collect(),
                ..GraphProto::default()
            };
            let nodes = self.first_nodes.iter().cloned();
            let nodes = nodes.map(|name| field(GRAPH_NODE, NodeOutline { name }.encode_to_vec()));
            let graph = [nodes.collect::<Vec<_>>().concat(), graph.encode_to_vec()].concat();
            [ModelProto::new(7).encode_to_vec(), field(7, graph)].concat()
        }
    }

    /// A field of bytes.
    pub(super) fn field(number: u32, content: Vec<u8>) -> Vec<u8> {
        let mut bytes = Vec::new();
        prost::encoding::bytes::encode(number, &content, &mut bytes);
        bytes
    }

    fn value(spec: &TensorSpec) -> ValueInfoProto {
        let dimension = |extent: &Option<usize>| DimensionProto {
            parameter: extent.is_none().then(|| "batch".to_owned()),
            ..DimensionProto::of(*extent)
        };
        let mut kind = TypeProto::floats(Some(&[]));
        if let Some(shape) = kind.shape_mut() {
            shape.dim = spec.shape.iter().map(dimension).collect();
        }
        ValueInfoProto {
            name: spec.name.clone(),
            kind: Some(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::encode::field;
    use super::*;

    fn outline() -> OnnxOutline {
        let spec = |name: &str, shape: &[Option<usize>]| TensorSpec {
            name: name.to_owned(),
            shape: shape.to_vec(),
        };
        OnnxOutline {
            inputs: vec![spec("data", &[None, Some(3), Some(192), Some(192)])],
            outputs: vec![spec("fc1", &[Some(1), Some(3309)]), spec("any", &[])],
            first_nodes: (0..10).map(|i| format!("Node_{i}")).collect(),
            precision: Precision::Single,
        }
    }

    #[test]
    fn an_outline_has_tensors_and_the_first_nodes() {
        let mut wanted = outline();
        let found = OnnxOutline::read(&wanted.encode()).unwrap();
        wanted.first_nodes.truncate(FIRST_NODES);
        assert_eq!(found, wanted, "constants are no inputs");
    }

    #[test]
    fn half_precision_is_recognised_by_constants_inputs_and_outputs() {
        let precision = |graph: GraphProto| {
            let file = field(7, graph.encode_to_vec());
            let outline = OnnxOutline::read(&file);
            outline.unwrap().precision
        };
        let constant = |data_type| TensorProto {
            data_type,
            ..TensorProto::default()
        };
        let constants = |kinds: &[i32]| GraphProto {
            initializer: kinds.iter().copied().map(constant).collect(),
            ..GraphProto::default()
        };
        let value = |elem_type| {
            let tensor_type = TensorTypeProto {
                elem_type,
                shape: None,
            };
            let kind = TypeProto {
                tensor_type: Some(tensor_type),
            };
            vec![ValueInfoProto {
                name: String::new(),
                kind: Some(kind),
            }]
        };
        for (kind, expected) in [
            (1, Precision::Single),
            (7, Precision::Single),
            (FLOAT16, Precision::Half),
        ] {
            assert_eq!(precision(constants(&[kind])), expected, "{kind}");
            assert_eq!(precision(constants(&[kind, 1, 7])), expected, "one of them");
            let (input, output) = (value(kind), value(kind));
            let input = GraphProto {
                input,
                ..GraphProto::default()
            };
            assert_eq!(precision(input), expected, "{kind}");
            let output = GraphProto {
                output,
                ..GraphProto::default()
            };
            assert_eq!(precision(output), expected, "{kind}");
        }
    }

    #[test]
    fn files_that_are_cut_or_something_else_are_refused() {
        let whole = outline().encode();
        for end in 0..whole.len() {
            let error = OnnxOutline::read(&whole[..end]);
            assert!(!error.expect_err("a part").is_empty());
        }
        for other in [&b"<html>not found</html>"[..], b"PK\x03\x04", &[0xff; 40]] {
            assert!(OnnxOutline::read(other).is_err());
        }
        let many = GraphProto {
            output: vec![ValueInfoProto::default(); MAX_TENSORS + 1],
            ..GraphProto::default()
        };
        let many = field(7, many.encode_to_vec());
        assert!(OnnxOutline::read(&many).is_err());
    }
}
