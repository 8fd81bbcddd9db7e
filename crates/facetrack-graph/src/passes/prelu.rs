// SPDX-License-Identifier: MPL-2.0
//! Writes PRelu with operators that ONNX Runtime has in its blocked layout.
//!
//! PRelu(x) = max(x, 0) + s·min(x, 0), with a slope s for each channel; slopes may be negative or
//! exceed 1. A depthwise 1×1 convolution multiplies each channel by a factor and takes a following
//! Relu, or a sum with another value, into itself. So x + (1 − s)·max(−x, 0) takes two of them.
//! Between two convolutions signs can be chosen freely, and where channels only fill half a block,
//! so can their number: see [`negate`] and [`double`].

use ndarray::s;

use super::super::convolution::{Convolution, add_scaled};
use super::super::{Graph, Node, Value};
use super::BLOCK;

/// Replaces a PRelu between a convolution and a depthwise convolution.
pub fn absorb(graph: &mut Graph, index: usize) -> Option<()> {
    let slopes = slopes(graph, &graph.nodes[index])?;
    let neighbours = neighbours(graph, index, slopes.len())?;
    let fills_half_a_block = (1..=BLOCK / 2).contains(&(slopes.len() % BLOCK));
    match &neighbours.after_next {
        Some(after_next) if fills_half_a_block => {
            double(graph, index, &neighbours, after_next, &slopes);
        }
        _ => negate(graph, index, &neighbours, &slopes),
    }
    Some(())
}

/// Replaces a PRelu by x + (1 − s)·relu(−x).
pub fn split(graph: &mut Graph, index: usize) -> Option<()> {
    let slopes = slopes(graph, &graph.nodes[index])?;
    let source = graph.nodes[index].inputs[0];
    let negative = add_scaled(graph, source, &vec![-1.0; slopes.len()]);
    let factors: Vec<f32> = slopes.iter().map(|slope| 1.0 - slope).collect();
    add_positive_part(graph, index, negative, &factors);
    Some(())
}

/// Replaces the node at `index`, whose input is x, by x + factors·relu(`value`).
fn add_positive_part(graph: &mut Graph, index: usize, value: Value, factors: &[f32]) {
    let source = graph.nodes[index].inputs[0];
    let positive = graph.add_elementwise("Relu", &[value]);
    let correction = add_scaled(graph, positive, factors);
    graph.set_node(index, "Add", &[source, correction], vec![]);
}

/// The slope of each channel, if `node` is a PRelu of images with constant slopes, one for each
/// channel.
fn slopes(graph: &Graph, node: &Node) -> Option<Vec<f32>> {
    if !node.is("PRelu") {
        return None;
    }
    let slopes = graph.floats(*node.inputs.get(1)?)?;
    // A single one is for all channels, however many there are.
    let is_of_channels = matches!(slopes.shape(), [_, 1, 1] | [1, _, 1, 1]) && slopes.len() > 1;
    is_of_channels.then(|| slopes.into_iter().collect())
}

/// The convolutions around a PRelu, with their positions. Nothing else takes the outputs of the
/// first two.
struct Neighbours {
    /// Yields the PRelu's input.
    previous: (usize, Convolution),
    /// Takes its output: one filter per channel.
    next: (usize, Convolution),
    /// Takes the output of `next`: a convolution without groups, if it is one.
    after_next: Option<(usize, Convolution)>,
}

fn neighbours(graph: &Graph, index: usize, channels: usize) -> Option<Neighbours> {
    let (producers, users) = (graph.producers(), graph.users());
    let only_user = |value: Value| match users[value.0][..] {
        [user] if user != usize::MAX && graph.nodes[user].inputs[0] == value => Some(user),
        _ => None,
    };
    let convolution = |index: usize| Some((index, Convolution::of(graph, &graph.nodes[index])?));
    let node = &graph.nodes[index];
    let previous = convolution(producers[node.inputs[0].0]?)?;
    let next = convolution(only_user(node.output())?)?;
    let after_next = only_user(next.1.node.output()).and_then(convolution);
    let fits = previous.1.groups == 1
        && previous.1.outputs() == channels
        && next.1.is_depthwise()
        && next.1.groups == channels
        && only_user(node.inputs[0]) == Some(index);
    fits.then_some(Neighbours {
        previous,
        next,
        after_next: after_next
            .filter(|(_, own)| own.groups == 1 && own.inputs_of_group() == channels),
    })
}

/// Negating the convolutions before and after saves one pass: with y = −x, −PRelu(x) = y + (s −
/// 1)·relu(y).
fn negate(graph: &mut Graph, index: usize, neighbours: &Neighbours, slopes: &[f32]) {
    let (at, mut previous) = neighbours.previous.clone();
    previous.weights *= -1.0;
    for bias in previous.bias.iter_mut().flatten() {
        *bias = -*bias;
    }
    previous.put(graph, at);
    let (at, mut next) = neighbours.next.clone();
    next.weights *= -1.0;
    next.put(graph, at);
    let source = graph.nodes[index].inputs[0];
    let factors: Vec<f32> = slopes.iter().map(|slope| slope - 1.0).collect();
    add_positive_part(graph, index, source, &factors);
}

/// Channels that fill half a block cost as much as a whole one. So the convolution before yields x
/// and −x, a Relu, which costs nothing inside of it, takes the positive part of both, and PRelu(x)
/// = relu(x) − s·relu(−x) is left to the weights after.
fn double(
    graph: &mut Graph,
    index: usize,
    neighbours: &Neighbours,
    (after_at, after): &(usize, Convolution),
    slopes: &[f32],
) {
    let channels = slopes.len();
    let twice: Vec<Option<usize>> = (0..channels).chain(0..channels).map(Some).collect();
    let indices = |count: usize| (0..count).map(Some).collect::<Vec<_>>();

    let (previous_at, previous) = &neighbours.previous;
    let mut previous = previous.select(&twice, &indices(previous.inputs_of_group()));
    let mut second = previous.weights.slice_mut(s![channels.., .., .., ..]);
    second *= -1.0;
    for bias in previous.bias.iter_mut().flatten().skip(channels) {
        *bias = -*bias;
    }
    previous.put(graph, *previous_at);

    let (next_at, next) = &neighbours.next;
    let mut next = next.select(&twice, &[Some(0)]);
    next.groups = 2 * channels;
    let filters = next.weights.outer_iter_mut().skip(channels);
    for (mut filter, slope) in filters.zip(slopes) {
        filter *= -slope;
    }
    for bias in next.bias.iter_mut().flatten().skip(channels) {
        *bias = 0.0;
    }
    next.put(graph, *next_at);

    let outputs = indices(after.outputs());
    after.select(&outputs, &twice).put(graph, *after_at);

    let source = graph.nodes[index].inputs[0];
    graph.set_node(index, "Relu", &[source], vec![]);
    for index in [*previous_at, index, *next_at] {
        let output = graph.nodes[index].output();
        if let Some(own) = graph.values[output.0].shape.get_mut(1) {
            *own *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_of_images_become_two_convolutions() {
        for (dims, is_split) in [
            (&[4, 1, 1][..], true),
            (&[1, 4, 1, 1], true),
            (&[4], false),
            (&[1, 1, 1], false),
            (&[1, 1, 1, 1], false),
        ] {
            let mut graph = Graph::new(13);
            let image = graph.add_input("x", &[1, 4, 2, 2]);
            let slopes = (0..dims.iter().product()).map(|i: usize| i as f32);
            let slopes = graph.add_floats(dims, &slopes.collect::<Vec<_>>());
            let output = graph.add_elementwise("PRelu", &[image, slopes]);
            graph.add_output("y", output);
            split(&mut graph, 0);
            graph.sort();
            let ops: Vec<_> = graph.nodes.iter().map(|node| &node.op[..]).collect();
            if !is_split {
                assert_eq!(ops, ["PRelu"]);
                continue;
            }
            assert_eq!(ops, ["Conv", "Relu", "Conv", "Add"]);
            let weights = |index: usize| graph.floats(graph.nodes[index].inputs[1]).unwrap();
            assert_eq!(weights(0).as_slice().unwrap(), [-1.0; 4]);
            assert_eq!(weights(2).as_slice().unwrap(), [1.0, 0.0, -1.0, -2.0]);
            assert_eq!(weights(2).shape(), [4, 1, 1, 1]);
            let sum = &graph.nodes[3];
            assert_eq!((sum.inputs[0], sum.output()), (image, output));
        }
    }
}
