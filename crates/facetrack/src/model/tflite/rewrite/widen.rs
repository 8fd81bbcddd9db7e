// SPDX-License-Identifier: MPL-2.0
//! Rounds channels up to whole blocks with channels that stay zero: ONNX Runtime's blocked convolutions take whole
//! blocks only, and MediaPipe's detector has 28, 36, 42, 56, 72 and 88 channels.

use super::super::flatbuffer::Reason;
use super::super::graph::{Attribute, Graph, Node, Value};
use super::BLOCK;

/// Rounds up the channels of every image between convolutions.
pub(in super::super) fn round_channels(graph: &mut Graph) -> Result<(), Reason> {
    let wide = roundable(graph);
    let is_wide = |value: Value| wide[value.index()];
    for index in 0..graph.nodes.len() {
        let node = graph.nodes[index].clone();
        match node.op {
            "Conv" => widen_convolution(graph, index, &node, is_wide),
            "Pad" if is_wide(node.output) => narrow_pad(graph, index, &node),
            _ => {}
        }
        graph.check_size()?;
    }
    for (value, _) in wide.iter().enumerate().filter(|(_, wide)| **wide) {
        let channels = &mut graph.values[value].shape[1];
        *channels = channels.next_multiple_of(BLOCK);
    }
    Ok(())
}

/// For each value, whether it can have more channels: everything that takes it, and everything that yields it, must
/// cope.
fn roundable(graph: &Graph) -> Vec<bool> {
    let mut wide: Vec<bool> = vec![false; graph.values.len()];
    for node in graph.nodes.iter().filter(|node| keeps_zeros(graph, node)) {
        wide[node.output.index()] = true;
    }
    for (value, _) in &graph.outputs {
        wide[value.index()] = false;
    }
    for node in graph.nodes.iter().filter(|node| !keeps_zeros(graph, node)) {
        for input in &node.inputs {
            wide[input.index()] = false;
        }
    }
    loop {
        let before = wide.clone();
        for node in graph.nodes.iter().filter(|node| ties_channels(graph, node)) {
            let tied = tied_values(node);
            if tied.clone().any(|value| !wide[value.index()]) {
                tied.for_each(|value| wide[value.index()] = false);
            }
        }
        if wide == before {
            return wide;
        }
    }
}

/// Whether the operator yields zero in a channel of which it is given zeros.
fn keeps_zeros(graph: &Graph, node: &Node) -> bool {
    if graph.shape(node.output).len() != 4 {
        return false;
    }
    match node.op {
        "Relu" | "MaxPool" => true,
        "Add" => {
            let shape = graph.shape(node.output);
            node.inputs.iter().all(|v| graph.shape(*v) == shape)
        }
        "Conv" => {
            node.inputs[1..].iter().all(|v| graph.floats(*v).is_some())
                && (group(node) == 1 || is_depthwise(graph, node))
        }
        "Pad" => padded_channels(graph, node).is_some(),
        _ => false,
    }
}

/// Whether input and output must have their channels rounded together.
fn ties_channels(graph: &Graph, node: &Node) -> bool {
    match node.op {
        "Conv" => group(node) != 1,
        _ => keeps_zeros(graph, node),
    }
}

fn tied_values(node: &Node) -> impl Iterator<Item = Value> + Clone {
    let inputs = if node.op == "Add" { 2 } else { 1 };
    let inputs = node.inputs.iter().take(inputs).copied();
    inputs.chain([node.output]).collect::<Vec<_>>().into_iter()
}

fn group(node: &Node) -> i64 {
    match node.attribute("group") {
        Some(Attribute::Int(group)) => *group,
        _ => 1,
    }
}

fn is_depthwise(graph: &Graph, node: &Node) -> bool {
    let weights = graph.shape(node.inputs[1]);
    group(node) == weights[0] as i64 && weights[1] == 1
}

/// Channels that a node appends to its image, if it pads nothing else.
pub(super) fn padded_channels(graph: &Graph, node: &Node) -> Option<usize> {
    match *graph.ints(*node.inputs.get(1)?)? {
        [0, 0, 0, 0, 0, channels, 0, 0] if node.op == "Pad" => usize::try_from(channels).ok(),
        _ => None,
    }
}

fn widen_convolution(
    graph: &mut Graph,
    index: usize,
    node: &Node,
    is_wide: impl Fn(Value) -> bool,
) {
    let [outputs, inputs, height, width] = *graph.shape(node.inputs[1]) else {
        return;
    };
    let rounded = |n: usize, wide: bool| if wide { n.next_multiple_of(BLOCK) } else { n };
    let depthwise = group(node) != 1;
    let wide_outputs = rounded(outputs, is_wide(node.output));
    let wide_inputs = rounded(inputs, is_wide(node.inputs[0]) && !depthwise);
    if (wide_outputs, wide_inputs) == (outputs, inputs) {
        return;
    }
    let filter = height * width;
    let Some(weights) = graph.floats(node.inputs[1]) else {
        return;
    };
    let mut content = Vec::with_capacity(wide_outputs * wide_inputs * filter);
    for output in weights.chunks(inputs * filter) {
        content.extend_from_slice(output);
        content.resize(content.len() + (wide_inputs - inputs) * filter, 0.0);
    }
    content.resize(wide_outputs * wide_inputs * filter, 0.0);
    let weights = graph.constant(vec![wide_outputs, wide_inputs, height, width], content);
    graph.nodes[index].inputs[1] = weights;
    if let Some(bias) = node.inputs.get(2).and_then(|bias| graph.floats(*bias)) {
        let mut bias = bias.to_vec();
        bias.resize(wide_outputs, 0.0);
        let bias = graph.constant(vec![wide_outputs], bias);
        graph.nodes[index].inputs[2] = bias;
    }
    if depthwise {
        graph.nodes[index].set_attribute("group", Attribute::Int(wide_outputs as i64));
    }
}

/// Appended channels may have become part of the rounding.
fn narrow_pad(graph: &mut Graph, index: usize, node: &Node) {
    let rounded = |value: Value| graph.shape(value)[1].next_multiple_of(BLOCK) as i64;
    let missing = rounded(node.output) - rounded(node.inputs[0]);
    let pads = graph.integers(vec![0, 0, 0, 0, 0, missing, 0, 0]);
    graph.nodes[index].inputs[1] = pads;
}
