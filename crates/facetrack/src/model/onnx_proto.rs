// SPDX-License-Identifier: MPL-2.0
//! The messages of an ONNX file. Names and field numbers: `onnx.proto` of ONNX, IR version 8.
//!
//! What is not declared here is not kept when a file is read and written again: documentation and the shapes recorded of
//! values between nodes, which say nothing that the rest does not, and subgraphs, functions and sparse constants, without
//! which the runtime refuses a file that needs them.

use prost::bytes::Bytes;
use prost::{Message, Oneof};

/// `TensorProto.DataType` of 32-bit floats.
pub const FLOAT: i32 = 1;

/// `TensorProto.DataType` of 64-bit integers.
pub const INT64: i32 = 7;

/// `TensorProto.DataLocation` of content in another file.
pub const EXTERNAL: i32 = 1;

/// `AttributeType` of a float, of a whole number, of a text, and of a list of whole numbers.
pub const FLOAT_ATTRIBUTE: i32 = 1;
pub const INT_ATTRIBUTE: i32 = 2;
pub const STRING_ATTRIBUTE: i32 = 3;
pub const INTS_ATTRIBUTE: i32 = 7;

#[derive(Clone, PartialEq, Message)]
pub struct ModelProto {
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
}

impl ModelProto {
    /// A model whose nodes are of ONNX's own operators, of version `opset`.
    pub fn new(opset: i64, graph: GraphProto) -> Self {
        Self {
            ir_version: 8,
            graph: Some(graph),
            opset_import: vec![OperatorSetIdProto {
                domain: String::new(),
                version: opset,
            }],
        }
    }
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
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
    #[prost(string, tag = "7")]
    pub domain: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct AttributeProto {
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
    /// Without it, any number of axes.
    #[prost(message, optional, tag = "2")]
    pub shape: Option<ShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DimensionProto {
    /// Without it, any extent.
    #[prost(oneof = "Extent", tags = "1, 2")]
    pub extent: Option<Extent>,
}

/// What is said of an axis.
#[derive(Clone, PartialEq, Oneof)]
pub enum Extent {
    /// Its length.
    #[prost(int64, tag = "1")]
    Value(i64),
    /// A name for the length, which is any.
    #[prost(string, tag = "2")]
    Parameter(String),
}

impl TensorProto {
    /// A constant of floats.
    pub fn floats<'a>(
        name: &str,
        dims: &[usize],
        values: impl IntoIterator<Item = &'a f32>,
    ) -> Self {
        let bytes = values.into_iter().flat_map(|v| v.to_le_bytes());
        Self::raw(name, dims, FLOAT, bytes.collect())
    }

    /// A constant of 64-bit integers.
    pub fn ints<'a>(name: &str, dims: &[usize], values: impl IntoIterator<Item = &'a i64>) -> Self {
        let bytes = values.into_iter().flat_map(|v| v.to_le_bytes());
        Self::raw(name, dims, INT64, bytes.collect())
    }

    fn raw(name: &str, dims: &[usize], data_type: i32, content: Vec<u8>) -> Self {
        Self {
            dims: dims.iter().map(|n| *n as i64).collect(),
            data_type,
            name: name.to_owned(),
            raw_data: content.into(),
            ..Self::default()
        }
    }
}

impl ValueInfoProto {
    /// A tensor of floats of this shape.
    pub fn floats(name: &str, shape: &[usize]) -> Self {
        let dim = shape
            .iter()
            .map(|length| DimensionProto {
                extent: Some(Extent::Value(*length as i64)),
            })
            .collect();
        Self {
            name: name.to_owned(),
            kind: Some(TypeProto {
                tensor_type: Some(TensorTypeProto {
                    elem_type: FLOAT,
                    shape: Some(ShapeProto { dim }),
                }),
            }),
        }
    }
}

impl NodeProto {
    /// The operator `op` of ONNX, which yields `output`.
    pub fn new<S: AsRef<str>>(op: &str, inputs: &[S], output: &str) -> Self {
        Self {
            op_type: op.to_owned(),
            input: inputs.iter().map(|name| name.as_ref().to_owned()).collect(),
            output: vec![output.to_owned()],
            ..Self::default()
        }
    }

    /// Puts the whole number `value` in place of the attribute `name`.
    pub fn set_int(&mut self, name: &str, value: i64) {
        self.set(AttributeProto {
            name: name.to_owned(),
            i: Some(value),
            kind: INT_ATTRIBUTE,
            ..Default::default()
        });
    }

    /// Puts the whole numbers `values` in place of the attribute `name`.
    pub fn set_ints(&mut self, name: &str, values: &[i64]) {
        self.set(AttributeProto {
            name: name.to_owned(),
            ints: values.to_vec(),
            kind: INTS_ATTRIBUTE,
            ..Default::default()
        });
    }

    /// Puts `value` in place of the attribute `name`.
    pub fn set_float(&mut self, name: &str, value: f32) {
        self.set(AttributeProto {
            name: name.to_owned(),
            f: Some(value),
            kind: FLOAT_ATTRIBUTE,
            ..Default::default()
        });
    }

    /// Puts the text `value` in place of the attribute `name`.
    pub fn set_text(&mut self, name: &str, value: &'static str) {
        self.set(AttributeProto {
            name: name.to_owned(),
            s: Some(Bytes::from_static(value.as_bytes())),
            kind: STRING_ATTRIBUTE,
            ..Default::default()
        });
    }

    /// The attribute `name`.
    pub fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.attribute.iter().find(|own| own.name == name)
    }

    fn set(&mut self, attribute: AttributeProto) {
        self.attribute.retain(|own| own.name != attribute.name);
        self.attribute.push(attribute);
    }
}
