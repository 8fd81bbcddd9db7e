// SPDX-License-Identifier: MPL-2.0
//! Encodes a graph as an ONNX file.

use prost::Message;

use super::graph::{Attribute, Data, Graph, Info, Node, Value};
use crate::model::onnx_proto::*;

/// The first operator set with `LayerNormalization`.
const OPSET: i64 = 17;

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
            .map(|(value, name)| ValueInfoProto::floats(name, graph.shape(*value)))
            .collect()
    };
    let proto = ModelProto::new(
        OPSET,
        GraphProto {
            name: "tflite".into(),
            node: graph.nodes.iter().map(|n| node(n, &names)).collect(),
            initializer: constants
                .into_iter()
                .filter_map(|value| tensor(&names[value.index()], &graph.values[value.index()]))
                .collect(),
            input: io(&graph.inputs),
            output: io(&graph.outputs),
        },
    );
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
        ..Default::default()
    }
}

fn attribute(name: &str, value: &Attribute) -> AttributeProto {
    let mut proto = AttributeProto {
        name: name.into(),
        ..Default::default()
    };
    match value {
        Attribute::Float(f) => (proto.f, proto.kind) = (Some(*f), FLOAT_ATTRIBUTE),
        Attribute::Int(i) => (proto.i, proto.kind) = (Some(*i), INT_ATTRIBUTE),
        Attribute::Ints(ints) => (proto.ints, proto.kind) = (ints.clone(), INTS_ATTRIBUTE),
    }
    proto
}

fn tensor(name: &str, info: &Info) -> Option<TensorProto> {
    Some(match info.constant.as_ref()? {
        Data::Float(values) => TensorProto::floats(name, &info.shape, values),
        Data::Int(values) => TensorProto::ints(name, &info.shape, values),
    })
}
