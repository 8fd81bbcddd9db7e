// SPDX-License-Identifier: MPL-2.0
//! The messages of an ONNX file. Names and field numbers: `onnx.proto` of ONNX, IR version 8.
//!
//! Fields that are not declared here are lost when a file is read and written again: documentation,
//! the shapes recorded for values between nodes, which follow from the rest, and subgraphs,
//! functions and sparse constants, without which the runtime refuses a file that needs them.

use std::iter;

use prost::Message;
use prost::bytes::Bytes;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use super::{Floats, Result};

/// `TensorProto.DataType` of 32-bit floats, 64-bit integers and 16-bit floats.
pub const FLOAT: i32 = 1;
const INT64: i32 = 7;
pub const FLOAT16: i32 = 10;

/// `TensorProto.DataLocation` of content in another file.
pub const EXTERNAL: i32 = 1;

/// `AttributeType` of a float, an integer, a string and a list of integers.
const FLOAT_ATTRIBUTE: i32 = 1;
const INT_ATTRIBUTE: i32 = 2;
const STRING_ATTRIBUTE: i32 = 3;
const INTS_ATTRIBUTE: i32 = 7;

/// Field numbers of [`ModelProto`] and [`GraphProto`].
const MODEL_GRAPH: u32 = 7;
pub const GRAPH_NODE: u32 = 1;
pub const GRAPH_INITIALIZER: u32 = 5;
pub const GRAPH_INPUT: u32 = 11;
pub const GRAPH_OUTPUT: u32 = 12;

/// Describes a file without a graph.
pub const NO_GRAPH: &str = "it has no graph";

#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OperatorSetIdProto {
    #[prost(string, tag = "1")]
    pub domain: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    #[prost(string, tag = "4")]
    pub op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<Attribute>,
    #[prost(string, tag = "7")]
    pub domain: String,
}

/// An attribute of a node.
#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(float, optional, tag = "2")]
    pub f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    pub i: Option<i64>,
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub s: Option<Bytes>,
    #[prost(message, optional, tag = "5")]
    pub t: Option<TensorProto>,
    #[prost(float, repeated, packed = "false", tag = "7")]
    pub floats: Vec<f32>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    pub ints: Vec<i64>,
    #[prost(bytes = "bytes", repeated, tag = "9")]
    pub strings: Vec<Bytes>,
    /// `AttributeType`.
    #[prost(int32, tag = "20")]
    pub kind: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct TensorProto {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    pub dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(float, repeated, tag = "4")]
    pub float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    pub int32_data: Vec<i32>,
    #[prost(int64, repeated, tag = "7")]
    pub int64_data: Vec<i64>,
    #[prost(string, tag = "8")]
    pub name: String,
    #[prost(bytes = "bytes", tag = "9")]
    pub raw_data: Bytes,
    #[prost(double, repeated, tag = "10")]
    pub double_data: Vec<f64>,
    #[prost(int32, tag = "14")]
    pub data_location: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValueInfoProto {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub kind: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TensorTypeProto {
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    /// If absent, any number of axes.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<ShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// Extent of an axis; with neither field, any.
#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// Its length.
    #[prost(int64, optional, tag = "1")]
    pub value: Option<i64>,
    /// A name for a length that is not fixed.
    #[prost(string, optional, tag = "2")]
    pub parameter: Option<String>,
}

impl ModelProto {
    /// A model without a graph that uses version `opset` of ONNX's operators.
    pub fn new(opset: i64) -> Self {
        Self {
            ir_version: 8,
            graph: None,
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: opset,
            }],
        }
    }
}

impl TensorProto {
    /// A constant of floats.
    pub fn floats<'a>(dims: &[usize], values: impl IntoIterator<Item = &'a f32>) -> Self {
        let content = values.into_iter().flat_map(|v| v.to_le_bytes());
        Self::raw(dims, FLOAT, content)
    }

    /// A constant of 64-bit integers.
    pub fn ints(dims: &[usize], values: &[i64]) -> Self {
        Self::raw(dims, INT64, values.iter().flat_map(|v| v.to_le_bytes()))
    }

    fn raw(dims: &[usize], data_type: i32, content: impl Iterator<Item = u8>) -> Self {
        Self {
            dims: dims.iter().map(|n| *n as i64).collect(),
            data_type,
            raw_data: content.collect(),
            ..Self::default()
        }
    }

    /// The content, if it is of floats, is not empty, and has the length that the extents demand.
    pub fn to_floats(&self) -> Option<Floats> {
        if self.data_type != FLOAT {
            return None;
        }
        let dims: Option<Vec<usize>> = self.dims.iter().map(|n| (*n).try_into().ok()).collect();
        let (raw, rest) = self.raw_data.as_chunks();
        let values: Vec<f32> = if self.raw_data.is_empty() {
            self.float_data.clone()
        } else {
            raw.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        };
        let floats = Floats::from_shape_vec(dims?, values).ok();
        floats.filter(|own| !own.is_empty() && rest.is_empty())
    }

    /// The content, if it is of 64-bit integers as [`TensorProto::ints`] stores them.
    pub fn to_ints(&self) -> Option<Vec<i64>> {
        let (raw, _) = self.raw_data.as_chunks();
        let values = raw.iter().map(|bytes| i64::from_le_bytes(*bytes));
        (self.data_type == INT64).then(|| values.collect())
    }
}

impl TypeProto {
    /// A tensor of floats, of any shape if `shape` is `None`.
    pub fn floats(shape: Option<&[usize]>) -> Self {
        let dimension = |length: &usize| DimensionProto::of(Some(*length));
        let shape = shape.map(|shape| ShapeProto {
            dim: shape.iter().map(dimension).collect(),
        });
        Self {
            tensor_type: Some(TensorTypeProto {
                elem_type: FLOAT,
                shape,
            }),
        }
    }

    /// The extents; `None` for those that are not fixed.
    pub fn extents(&self) -> Vec<Option<usize>> {
        let shape = self.tensor_type.as_ref().and_then(|own| own.shape.as_ref());
        let length = |dimension: &DimensionProto| {
            let length = usize::try_from(dimension.value?).ok();
            length.filter(|n| *n > 0)
        };
        shape.map_or_else(Vec::new, |shape| shape.dim.iter().map(length).collect())
    }

    /// The shape, if the file has one.
    pub fn shape_mut(&mut self) -> Option<&mut ShapeProto> {
        self.tensor_type.as_mut()?.shape.as_mut()
    }

    /// Allows any shape.
    pub fn forget_shape(&mut self) {
        if let Some(tensor) = &mut self.tensor_type {
            tensor.shape = None;
        }
    }
}

impl DimensionProto {
    /// An axis of this length; of any if it is `None`.
    pub fn of(length: Option<usize>) -> Self {
        Self {
            value: length.map(|length| length as i64),
            parameter: None,
        }
    }
}

impl Attribute {
    /// An integer.
    pub fn int(name: &str, value: i64) -> Self {
        Self {
            i: Some(value),
            ..Self::new(name, INT_ATTRIBUTE)
        }
    }

    /// A list of integers.
    pub fn ints(name: &str, values: &[i64]) -> Self {
        Self {
            ints: values.to_vec(),
            ..Self::new(name, INTS_ATTRIBUTE)
        }
    }

    /// A float.
    pub fn float(name: &str, value: f32) -> Self {
        Self {
            f: Some(value),
            ..Self::new(name, FLOAT_ATTRIBUTE)
        }
    }

    /// A string.
    pub fn text(name: &str, value: &'static str) -> Self {
        Self {
            s: Some(Bytes::from_static(value.as_bytes())),
            ..Self::new(name, STRING_ATTRIBUTE)
        }
    }

    fn new(name: &str, kind: i32) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            ..Self::default()
        }
    }
}

/// The content of the graph in the ONNX file `bytes`.
pub fn graph_of(bytes: &[u8]) -> Result<&[u8]> {
    let mut graph = None;
    for field in fields(bytes) {
        if let (MODEL_GRAPH, content) = field? {
            graph = Some(content);
        }
    }
    graph.ok_or_else(|| NO_GRAPH.to_owned())
}

/// The fields of a message, read one by one so that none takes memory: number and content, which is
/// empty for numbers.
pub fn fields(mut message: &[u8]) -> impl Iterator<Item = Result<(u32, &[u8])>> {
    iter::from_fn(move || (!message.is_empty()).then(|| next_field(&mut message)))
}

fn next_field<'a>(message: &mut &'a [u8]) -> Result<(u32, &'a [u8])> {
    let cut = || "it is cut short".to_owned();
    let (number, wire_type) = decode_key(message).map_err(|_| cut())?;
    if wire_type != WireType::LengthDelimited {
        let context = DecodeContext::default();
        skip_field(wire_type, number, message, context).map_err(|_| cut())?;
        return Ok((number, &[]));
    }
    let length = decode_varint(message).map_err(|_| cut())?;
    let length = usize::try_from(length).map_err(|_| cut())?;
    let content = message.split_off(..length).ok_or_else(cut)?;
    Ok((number, content))
}
