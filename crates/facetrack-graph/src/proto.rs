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

/// `TensorProto.DataType` of 32-bit floats.
pub const FLOAT: i32 = 1;
/// `TensorProto.DataType` of 64-bit integers.
const INT64: i32 = 7;
/// `TensorProto.DataType` of 16-bit floats.
pub const FLOAT16: i32 = 10;

/// `TensorProto.DataLocation` of content in another file.
pub const EXTERNAL: i32 = 1;

/// `AttributeType` of a float, an integer, a string and a list of integers.
const FLOAT_ATTRIBUTE: i32 = 1;
const INT_ATTRIBUTE: i32 = 2;
const STRING_ATTRIBUTE: i32 = 3;
const INTS_ATTRIBUTE: i32 = 7;

/// Field number of [`ModelProto::graph`].
const MODEL_GRAPH: u32 = 7;
/// Field number of [`GraphProto::node`].
pub const GRAPH_NODE: u32 = 1;
/// Field number of [`GraphProto::initializer`].
pub const GRAPH_INITIALIZER: u32 = 5;
/// Field number of [`GraphProto::input`].
pub const GRAPH_INPUT: u32 = 11;
/// Field number of [`GraphProto::output`].
pub const GRAPH_OUTPUT: u32 = 12;

/// Describes a file without a graph.
pub const NO_GRAPH: &str = "it has no graph";

/// Messages of protobuf: `number name: type [encoding];`.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident {
        $($(#[$about:meta])* $number:literal $field:ident: $type:ty [$($encoding:tt)*];)*
    })*) => {$(
        $(#[$doc])*
        #[doc = concat!("The message `", stringify!($name), "`.")]
        #[derive(Clone, PartialEq, Message)]
        pub struct $name {
            $(
                $(#[$about])*
                #[doc = concat!("Field ", $number, " of the message.")]
                #[prost($($encoding)*, tag = $number)] pub $field: $type,
            )*
        }
    )*};
}

messages! {
    ModelProto {
        1 ir_version: i64 [int64];
        7 graph: Option<GraphProto> [message, optional];
        8 opset_import: Vec<OperatorSetIdProto> [message, repeated];
    }

    OperatorSetIdProto {
        1 domain: String [string];
        2 version: i64 [int64];
    }

    GraphProto {
        1 node: Vec<NodeProto> [message, repeated];
        2 name: String [string];
        5 initializer: Vec<TensorProto> [message, repeated];
        11 input: Vec<ValueInfoProto> [message, repeated];
        12 output: Vec<ValueInfoProto> [message, repeated];
    }

    NodeProto {
        1 input: Vec<String> [string, repeated];
        2 output: Vec<String> [string, repeated];
        4 op_type: String [string];
        5 attribute: Vec<Attribute> [message, repeated];
        7 domain: String [string];
    }

    /// An attribute of a node.
    Attribute {
        1 name: String [string];
        2 f: Option<f32> [float, optional];
        3 i: Option<i64> [int64, optional];
        4 s: Option<Bytes> [bytes = "bytes", optional];
        5 t: Option<TensorProto> [message, optional];
        7 floats: Vec<f32> [float, repeated, packed = "false"];
        8 ints: Vec<i64> [int64, repeated, packed = "false"];
        9 strings: Vec<Bytes> [bytes = "bytes", repeated];
        /// `AttributeType`.
        20 kind: i32 [int32];
    }

    TensorProto {
        1 dims: Vec<i64> [int64, repeated, packed = "false"];
        2 data_type: i32 [int32];
        4 float_data: Vec<f32> [float, repeated];
        5 int32_data: Vec<i32> [int32, repeated];
        7 int64_data: Vec<i64> [int64, repeated];
        8 name: String [string];
        9 raw_data: Bytes [bytes = "bytes"];
        10 double_data: Vec<f64> [double, repeated];
        14 data_location: i32 [int32];
    }

    ValueInfoProto {
        1 name: String [string];
        2 kind: Option<TypeProto> [message, optional];
    }

    TypeProto {
        1 tensor_type: Option<TensorTypeProto> [message, optional];
    }

    TensorTypeProto {
        1 elem_type: i32 [int32];
        /// Shape; if it is absent, the tensor may have any number of axes.
        2 shape: Option<ShapeProto> [message, optional];
    }

    ShapeProto {
        1 dim: Vec<DimensionProto> [message, repeated];
    }

    /// Extent of an axis. Without both fields, the axis may have any length.
    DimensionProto {
        /// Length of the axis.
        1 value: Option<i64> [int64, optional];
        /// A name for a length that is not fixed.
        2 parameter: Option<String> [string, optional];
    }
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

    /// Returns true if the type is a tensor of 32-bit floats.
    pub fn is_of_floats(&self) -> bool {
        let tensor = self.tensor_type.as_ref();
        tensor.is_some_and(|tensor| tensor.elem_type == FLOAT)
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
}

impl DimensionProto {
    /// Creates an axis of this length, or of any length if it is `None`.
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
