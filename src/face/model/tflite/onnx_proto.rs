// SPDX-License-Identifier: MPL-2.0
//! Encodes a graph as an ONNX file. Messages and field numbers: `onnx.proto` of ONNX, IR version 8.

use prost::Message;

use super::graph::{Attribute, Data, Graph, Info, Node, Value};

/// The IR version that came with [`OPSET`].
const IR_VERSION: i64 = 8;

/// The first operator set with `LayerNormalization`.
const OPSET: i64 = 17;

/// `TensorProto.DataType` of 32-bit floats.
const FLOAT: i32 = 1;

/// `TensorProto.DataType` of 64-bit integers.
const INT64: i32 = 7;

#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(int64, tag = "1")]
    ir_version: i64,
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    opset_import: Vec<OperatorSetIdProto>,
}

#[derive(Clone, PartialEq, Message)]
struct OperatorSetIdProto {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(int64, tag = "2")]
    version: i64,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    output: Vec<ValueInfoProto>,
}

#[derive(Clone, PartialEq, Message)]
struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    output: Vec<String>,
    #[prost(string, tag = "4")]
    op_type: String,
    #[prost(message, repeated, tag = "5")]
    attribute: Vec<AttributeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct AttributeProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(float, optional, tag = "2")]
    f: Option<f32>,
    #[prost(int64, optional, tag = "3")]
    i: Option<i64>,
    #[prost(int64, repeated, packed = "false", tag = "8")]
    ints: Vec<i64>,
    /// `AttributeType`: 1 float, 2 int, 7 ints.
    #[prost(int32, tag = "20")]
    kind: i32,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, packed = "false", tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", tag = "9")]
    raw_data: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfoProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    kind: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeProto {
    #[prost(message, optional, tag = "1")]
    tensor_type: Option<TensorTypeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorTypeProto {
    #[prost(int32, tag = "1")]
    elem_type: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<ShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct ShapeProto {
    #[prost(message, repeated, tag = "1")]
    dim: Vec<DimensionProto>,
}

#[derive(Clone, PartialEq, Message)]
struct DimensionProto {
    #[prost(int64, tag = "1")]
    dim_value: i64,
}

/// The bytes of an ONNX file that holds `graph`.
pub(super) fn encode(graph: &Graph) -> Vec<u8> {
    let names = names(graph);
    let used = graph.nodes.iter().flat_map(|node| &node.inputs);
    let mut constants: Vec<Value> = used
        .copied()
        .filter(|value| graph.values[value.index()].constant.is_some())
        .collect();
    constants.sort_unstable_by_key(|value| value.index());
    constants.dedup();
    let io = |list: &[(Value, String)]| {
        list.iter()
            .map(|(value, name)| value_info(name, graph.shape(*value)))
            .collect()
    };
    let proto = ModelProto {
        ir_version: IR_VERSION,
        opset_import: vec![OperatorSetIdProto {
            domain: String::new(),
            version: OPSET,
        }],
        graph: Some(GraphProto {
            name: "tflite".into(),
            node: graph.nodes.iter().map(|n| node(n, &names)).collect(),
            initializer: constants
                .into_iter()
                .filter_map(|value| tensor(&names[value.index()], &graph.values[value.index()]))
                .collect(),
            input: io(&graph.inputs),
            output: io(&graph.outputs),
        }),
    };
    proto.encode_to_vec()
}

/// A name for each value: inputs and outputs keep theirs.
fn names(graph: &Graph) -> Vec<String> {
    let mut names: Vec<String> = (0..graph.values.len()).map(|i| format!("#{i}")).collect();
    for (value, name) in graph.inputs.iter().chain(&graph.outputs) {
        names[value.index()].clone_from(name);
    }
    names
}

fn node(node: &Node, names: &[String]) -> NodeProto {
    NodeProto {
        input: node
            .inputs
            .iter()
            .map(|value| names[value.index()].clone())
            .collect(),
        output: vec![names[node.output.index()].clone()],
        op_type: node.op.into(),
        attribute: node
            .attributes
            .iter()
            .map(|(name, value)| attribute(name, value))
            .collect(),
    }
}

fn attribute(name: &str, value: &Attribute) -> AttributeProto {
    let mut proto = AttributeProto {
        name: name.into(),
        ..Default::default()
    };
    match value {
        Attribute::Float(f) => (proto.f, proto.kind) = (Some(*f), 1),
        Attribute::Int(i) => (proto.i, proto.kind) = (Some(*i), 2),
        Attribute::Ints(ints) => (proto.ints, proto.kind) = (ints.clone(), 7),
    }
    proto
}

fn tensor(name: &str, info: &Info) -> Option<TensorProto> {
    let (data_type, raw_data) = match info.constant.as_ref()? {
        Data::Float(values) => (FLOAT, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Data::Int(values) => (INT64, values.iter().flat_map(|v| v.to_le_bytes()).collect()),
    };
    Some(TensorProto {
        dims: info.shape.iter().map(|n| *n as i64).collect(),
        data_type,
        name: name.into(),
        raw_data,
    })
}

fn value_info(name: &str, shape: &[usize]) -> ValueInfoProto {
    let dim = shape
        .iter()
        .map(|n| DimensionProto {
            dim_value: *n as i64,
        })
        .collect();
    ValueInfoProto {
        name: name.into(),
        kind: Some(TypeProto {
            tensor_type: Some(TensorTypeProto {
                elem_type: FLOAT,
                shape: Some(ShapeProto { dim }),
            }),
        }),
    }
}
