// SPDX-License-Identifier: MPL-2.0
//! What an ONNX file says of its tensors, read without its constants: a file of hundreds of megabytes costs nothing but
//! the way through it. Field numbers: `onnx.proto` of ONNX.

use std::collections::HashSet;
use std::path::Path;

use super::{ModelError, TensorSpec};

/// Nodes whose names are kept.
pub const FIRST_NODES: usize = 8;

/// Most inputs that are no constants, and most outputs; InsightFace's detectors have 15.
const MAX_TENSORS: usize = 64;

/// Most constants; the largest known network has some 500.
const MAX_CONSTANTS: usize = 16_384;

/// Fields of the messages.
const MODEL_GRAPH: u64 = 7;
const GRAPH_NODE: u64 = 1;
const GRAPH_INITIALIZER: u64 = 5;
const GRAPH_INPUT: u64 = 11;
const GRAPH_OUTPUT: u64 = 12;
const NODE_NAME: u64 = 3;
const CONSTANT_TYPE: u64 = 2;
const CONSTANT_NAME: u64 = 8;
const VALUE_NAME: u64 = 1;
const VALUE_TYPE: u64 = 2;
const TYPE_TENSOR: u64 = 1;
const TENSOR_ELEMENT: u64 = 1;
const TENSOR_SHAPE: u64 = 2;
const SHAPE_DIMENSION: u64 = 1;
const DIMENSION_LENGTH: u64 = 1;

/// `TensorProto.DataType` of 16-bit floats.
const FLOAT16: u64 = 10;

/// In what a network computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    Single,
    /// 16-bit floats: constants, inputs or outputs are of them.
    Half,
}

/// The outside of a network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnnxOutline {
    /// Tensors that a run takes.
    pub inputs: Vec<TensorSpec>,
    /// Tensors that a run yields.
    pub outputs: Vec<TensorSpec>,
    /// Names of the first [`FIRST_NODES`] nodes.
    pub first_nodes: Vec<String>,
    /// In what it computes.
    pub precision: Precision,
}

impl OnnxOutline {
    /// Reads the outline of the ONNX file `bytes`; `path` is for messages.
    ///
    /// # Errors
    /// [`ModelError::Format`] for a file that is cut short or no ONNX.
    pub fn read(path: &Path, bytes: &[u8]) -> Result<Self, ModelError> {
        outline(bytes).map_err(|reason| ModelError::Format {
            path: path.to_owned(),
            format: "ONNX",
            reason: reason.to_owned(),
        })
    }
}

type Reason = &'static str;

fn outline(bytes: &[u8]) -> Result<OnnxOutline, Reason> {
    let graph = last(bytes, MODEL_GRAPH)?.ok_or("it has no graph")?;
    let mut outline = OnnxOutline::default();
    for field in Fields(graph) {
        let (number, content) = field?;
        let is_half = match number {
            GRAPH_INITIALIZER => number_in(content, CONSTANT_TYPE)? == Some(FLOAT16),
            GRAPH_INPUT | GRAPH_OUTPUT => {
                number_in(tensor_type(content)?, TENSOR_ELEMENT)? == Some(FLOAT16)
            }
            _ => false,
        };
        if is_half {
            outline.precision = Precision::Half;
        }
        match number {
            GRAPH_NODE if outline.first_nodes.len() < FIRST_NODES => {
                outline.first_nodes.push(text(content, NODE_NAME)?);
            }
            GRAPH_OUTPUT => push(&mut outline.outputs, tensor(content)?)?,
            _ => {}
        }
    }
    outline.inputs = inputs(graph)?;
    Ok(outline)
}

/// The inputs. Old files list their constants among them.
fn inputs(graph: &[u8]) -> Result<Vec<TensorSpec>, Reason> {
    let mut constants = HashSet::new();
    for field in Fields(graph) {
        if let (GRAPH_INITIALIZER, content) = field? {
            constants.insert(last(content, CONSTANT_NAME)?.unwrap_or_default());
        }
        if constants.len() > MAX_CONSTANTS {
            return Err("it has more constants than face networks have");
        }
    }
    let mut inputs = Vec::new();
    for field in Fields(graph) {
        let (GRAPH_INPUT, content) = field? else {
            continue;
        };
        if !constants.contains(last(content, VALUE_NAME)?.unwrap_or_default()) {
            push(&mut inputs, tensor(content)?)?;
        }
    }
    Ok(inputs)
}

fn push(tensors: &mut Vec<TensorSpec>, tensor: TensorSpec) -> Result<(), Reason> {
    if tensors.len() == MAX_TENSORS {
        return Err("it has more inputs or outputs than face networks have");
    }
    tensors.push(tensor);
    Ok(())
}

/// A `ValueInfoProto`.
fn tensor(value: &[u8]) -> Result<TensorSpec, Reason> {
    let message = last(tensor_type(value)?, TENSOR_SHAPE)?;
    let mut shape = Vec::new();
    for field in Fields(message.unwrap_or_default()) {
        if let (SHAPE_DIMENSION, dimension) = field? {
            shape.push(length(dimension)?);
        }
    }
    Ok(TensorSpec {
        name: text(value, VALUE_NAME)?,
        shape,
    })
}

/// The type in a `ValueInfoProto`.
fn tensor_type(value: &[u8]) -> Result<&[u8], Reason> {
    let kind = last(value, VALUE_TYPE)?.unwrap_or_default();
    Ok(last(kind, TYPE_TENSOR)?.unwrap_or_default())
}

/// The extent of a dimension; `None` for any.
fn length(dimension: &[u8]) -> Result<Option<usize>, Reason> {
    let length = number_in(dimension, DIMENSION_LENGTH)?;
    let length = length.and_then(|length| usize::try_from(length as i64).ok());
    Ok(length.filter(|n| *n > 0))
}

/// The number in the field `field`.
fn number_in(message: &[u8], field: u64) -> Result<Option<u64>, Reason> {
    let Some(mut content) = last(message, field)? else {
        return Ok(None);
    };
    varint(&mut content).ok_or(CUT).map(Some)
}

fn text(message: &[u8], number: u64) -> Result<String, Reason> {
    let bytes = last(message, number)?.unwrap_or_default();
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

/// The content of the field `number`; of several the last, as protobuf has it of fields that are not repeated.
fn last(message: &[u8], number: u64) -> Result<Option<&[u8]>, Reason> {
    let mut found = None;
    for field in Fields(message) {
        let (own, content) = field?;
        if own == number {
            found = Some(content);
        }
    }
    Ok(found)
}

const CUT: Reason = "it is cut short";

/// The fields of a protobuf message: number and content. The content of a number is its bytes as they are written.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, &'a [u8]), Reason>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field().ok_or(CUT);
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<(u64, &'a [u8])> {
        let key = varint(&mut self.0)?;
        let length = match key & 7 {
            0 => {
                let mut rest = self.0;
                varint(&mut rest)?;
                self.0.len() - rest.len()
            }
            1 => 8,
            2 => usize::try_from(varint(&mut self.0)?).ok()?,
            5 => 4,
            _ => return None,
        };
        let (content, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some((key >> 3, content))
    }
}

/// A number in groups of seven bits, the lowest first.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Writes outlines as files, for tests.
#[cfg(test)]
mod encode {
    use super::*;

    impl OnnxOutline {
        /// A file of this outline with the constant `weights`, which it lists among its inputs as old ones do.
        pub fn encode(&self) -> Vec<u8> {
            let nodes = self.first_nodes.iter();
            let nodes =
                nodes.flat_map(|name| field(GRAPH_NODE, &field(NODE_NAME, name.as_bytes())));
            let values = |number, specs: &[TensorSpec]| -> Vec<u8> {
                specs
                    .iter()
                    .flat_map(|spec| field(number, &value(spec)))
                    .collect()
            };
            let weights = TensorSpec {
                name: "weights".to_owned(),
                shape: vec![Some(2)],
            };
            let kind = match self.precision {
                Precision::Single => FLOAT,
                Precision::Half => FLOAT16,
            };
            let name = field(CONSTANT_NAME, b"weights");
            let constant = [number(CONSTANT_TYPE, kind), name].concat();
            let graph = [
                nodes.collect(),
                field(GRAPH_INITIALIZER, &constant),
                values(GRAPH_INPUT, &[weights]),
                values(GRAPH_INPUT, &self.inputs),
                values(GRAPH_OUTPUT, &self.outputs),
            ];
            // The version of the format, a number.
            [vec![1 << 3, 7], field(MODEL_GRAPH, &graph.concat())].concat()
        }
    }

    /// `TensorProto.DataType` of 32-bit floats.
    const FLOAT: u64 = 1;

    /// A field of a number below 128.
    pub fn number(number: u64, value: u64) -> Vec<u8> {
        vec![(number << 3) as u8, value as u8]
    }

    /// A field of bytes.
    pub fn field(number: u64, content: &[u8]) -> Vec<u8> {
        let header = [vec![(number << 3) as u8 | 2], varint(content.len())];
        [header.concat(), content.to_vec()].concat()
    }

    fn varint(mut value: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    fn value(spec: &TensorSpec) -> Vec<u8> {
        let dimensions = spec.shape.iter().flat_map(|extent| {
            let content = match extent {
                Some(length) => [vec![(DIMENSION_LENGTH << 3) as u8], varint(*length)].concat(),
                None => field(2, b"batch"),
            };
            field(SHAPE_DIMENSION, &content)
        });
        let shape = field(TENSOR_SHAPE, &dimensions.collect::<Vec<_>>());
        // The type of the elements, a number.
        let tensor = field(TYPE_TENSOR, &[vec![1 << 3, 1], shape].concat());
        let name = field(VALUE_NAME, spec.name.as_bytes());
        [name, field(VALUE_TYPE, &tensor)].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::encode::{field, number};
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
        let found = OnnxOutline::read(Path::new("a.onnx"), &wanted.encode()).unwrap();
        wanted.first_nodes.truncate(FIRST_NODES);
        assert_eq!(found, wanted, "constants are no inputs");
    }

    #[test]
    fn half_precision_is_told_by_constants_inputs_and_outputs() {
        let precision = |graph: &[u8]| {
            let file = field(MODEL_GRAPH, graph);
            let outline = OnnxOutline::read(Path::new("a.onnx"), &file);
            outline.unwrap().precision
        };
        let constant = |kind| field(GRAPH_INITIALIZER, &number(CONSTANT_TYPE, kind));
        let value = |place, kind| {
            let tensor = field(TYPE_TENSOR, &number(TENSOR_ELEMENT, kind));
            field(place, &field(VALUE_TYPE, &tensor))
        };
        for (kind, expected) in [
            (1, Precision::Single),
            (7, Precision::Single),
            (FLOAT16, Precision::Half),
        ] {
            assert_eq!(precision(&constant(kind)), expected, "{kind}");
            assert_eq!(precision(&value(GRAPH_INPUT, kind)), expected, "{kind}");
            assert_eq!(precision(&value(GRAPH_OUTPUT, kind)), expected, "{kind}");
            let mixed = [constant(kind), constant(1), constant(7)].concat();
            assert_eq!(precision(&mixed), expected, "one of them");
        }
    }

    #[test]
    fn files_that_are_cut_or_something_else_are_refused() {
        let whole = outline().encode();
        for end in 0..whole.len() {
            let error = OnnxOutline::read(Path::new("a.onnx"), &whole[..end]);
            let error = error.expect_err("a part").to_string();
            assert!(error.contains("a.onnx"), "{error}");
        }
        for other in [&b"<html>not found</html>"[..], b"PK\x03\x04", &[0xff; 40]] {
            assert!(OnnxOutline::read(Path::new("a.onnx"), other).is_err());
        }
        let many = field(GRAPH_OUTPUT, &field(VALUE_NAME, b"a")).repeat(MAX_TENSORS + 1);
        assert!(OnnxOutline::read(Path::new("a.onnx"), &field(MODEL_GRAPH, &many)).is_err());
    }
}
