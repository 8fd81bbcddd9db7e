// SPDX-License-Identifier: MPL-2.0
//! Appends channels without leaving the blocked layout.

use super::super::flatbuffer::Reason;
use super::super::graph::{Attribute, Graph, Value};
use super::BLOCK;
use super::widen::padded_channels;

/// Replaces a Pad that appends channels: by nothing where rounding already did, by a concatenation where it is added to
/// a convolution.
pub(in super::super) fn fold(graph: &mut Graph) -> Result<(), Reason> {
    for index in 0..graph.nodes.len() {
        match padded_channels(graph, &graph.nodes[index]) {
            Some(0) => skip(graph, index),
            Some(_) => join(graph, index).unwrap_or_default(),
            None => {}
        }
        graph.check_size()?;
    }
    Ok(())
}

/// Has what takes the output take the input.
fn skip(graph: &mut Graph, index: usize) {
    let (source, output) = (graph.nodes[index].inputs[0], graph.nodes[index].output);
    for node in &mut graph.nodes {
        for input in node.inputs.iter_mut().filter(|input| **input == output) {
            *input = source;
        }
    }
    for (value, _) in graph.outputs.iter_mut().filter(|(v, _)| *v == output) {
        *value = source;
    }
}

/// pad(x) + conv(y), as concat(x + first filters of conv(y), other filters of conv(y)).
fn join(graph: &mut Graph, index: usize) -> Option<()> {
    let (source, padded) = (graph.nodes[index].inputs[0], graph.nodes[index].output);
    let [sum] = graph.users()[padded.index()][..] else {
        return None;
    };
    let node = graph.nodes.get(sum).filter(|node| node.op == "Add")?;
    let (total, other) = (node.output, node.inputs.iter().find(|v| **v != padded)?);
    let convolution = graph.producers()[other.index()]?;
    let alone = graph.users()[other.index()] == [sum];
    let convolution = graph.nodes[convolution].clone();
    let dense =
        convolution.op == "Conv" && convolution.attribute("group") == Some(&Attribute::Int(1));
    let whole_blocks = [source, padded]
        .iter()
        .all(|value| graph.shape(*value)[1].is_multiple_of(BLOCK));
    let alike = graph.shape(*other) == graph.shape(padded);
    if !(alone && dense && whole_blocks && alike) {
        return None;
    }
    let channels = graph.shape(source)[1];
    let weights = graph.shape(convolution.inputs[1])[0];
    let mut part = |begin: usize, end: usize| -> Option<Value> {
        let mut inputs = vec![convolution.inputs[0]];
        for value in &convolution.inputs[1..] {
            inputs.push(first_axis(graph, *value, begin, end)?);
        }
        let mut shape = graph.shape(total).to_vec();
        shape[1] = end - begin;
        Some(graph.node("Conv", &inputs, convolution.attributes.clone(), shape))
    };
    let (first, rest) = (part(0, channels)?, part(channels, weights)?);
    let first = graph.elementwise("Add", &[first, source]);
    let node = &mut graph.nodes[sum];
    node.op = "Concat";
    node.inputs = vec![first, rest];
    node.attributes = vec![("axis", Attribute::Int(1))];
    Some(())
}

/// Elements `begin..end` of a constant's first axis.
fn first_axis(graph: &mut Graph, value: Value, begin: usize, end: usize) -> Option<Value> {
    let mut shape = graph.shape(value).to_vec();
    let stride: usize = shape[1..].iter().product();
    shape[0] = end - begin;
    let content = graph.floats(value)?.get(begin * stride..end * stride)?;
    let content = content.to_vec();
    Some(graph.constant(shape, content))
}
