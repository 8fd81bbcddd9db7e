// SPDX-License-Identifier: MPL-2.0
//! Appends channels without leaving the blocked layout.

use super::super::convolution::Convolution;
use super::super::{Attribute, Graph, Node};
use super::BLOCK;

/// Channels that a node appends to its image, if it pads nothing else.
pub fn appended_channels(graph: &Graph, node: &Node) -> Option<usize> {
    match graph.ints(*node.inputs.get(1)?)?[..] {
        [0, 0, 0, 0, 0, channels, 0, 0] if node.is("Pad") => usize::try_from(channels).ok(),
        _ => None,
    }
}

/// Makes the node at `index` append `channels` channels.
pub fn set_appended_channels(graph: &mut Graph, index: usize, channels: usize) {
    let pads = graph.add_ints(&[8], &[0, 0, 0, 0, 0, channels as i64, 0, 0]);
    graph.nodes[index].inputs[1] = pads;
}

/// Removes a Pad that appends no channels, since rounding already did, and replaces one that is
/// added to a convolution by a concatenation.
pub fn fold(graph: &mut Graph, index: usize) -> Option<()> {
    let node = &graph.nodes[index];
    let (source, output) = (*node.inputs.first()?, node.output());
    match appended_channels(graph, node)? {
        0 => graph.replace_value(output, source),
        _ => join(graph, index)?,
    }
    Some(())
}

/// pad(x) + conv(y), as concat(x + first filters of conv(y), other filters of conv(y)).
fn join(graph: &mut Graph, index: usize) -> Option<()> {
    let (source, padded) = (graph.nodes[index].inputs[0], graph.nodes[index].output());
    let users = graph.users();
    let [sum] = users[padded.0][..] else {
        return None;
    };
    let node = graph.nodes.get(sum).filter(|node| node.is("Add"))?;
    let (total, other) = (node.output(), *node.inputs.iter().find(|v| **v != padded)?);
    let convolution = Convolution::yielding(graph, other)?;
    let channels = [source, padded].map(|value| graph.shape(value).get(1).copied());
    let [Some(own), Some(all)] = channels else {
        return None;
    };
    let has_whole_blocks = own.is_multiple_of(BLOCK) && all.is_multiple_of(BLOCK);
    let is_alike = graph.shape(other) == graph.shape(padded) && convolution.outputs() == all;
    if !(users[other.0] == [sum] && convolution.groups == 1 && has_whole_blocks && is_alike) {
        return None;
    }
    let [first, rest] = [0..own, own..all].map(|outputs| {
        let mut shape = graph.shape(total).to_vec();
        shape[1] = outputs.len();
        let part = convolution.with_outputs(outputs);
        let part = part.add_to(graph, convolution.input());
        graph.values[part.0].shape = shape;
        part
    });
    let first = graph.add_elementwise("Add", &[first, source]);
    let axis = vec![Attribute::int("axis", 1)];
    graph.set_node(sum, "Concat", &[first, rest], axis);
    Some(())
}
