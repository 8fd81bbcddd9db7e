// SPDX-License-Identifier: MPL-2.0
//! Writes PRelu with operators that ONNX Runtime has in its blocked layout.
//!
//! PRelu(x) = max(x, 0) + s·min(x, 0), with a slope s for each channel; slopes may be negative or exceed 1. A depthwise
//! 1×1 convolution multiplies each channel by a factor and takes a following Relu, or a sum with another value, into
//! itself. So x + (1 − s)·max(−x, 0) takes two of them. Between two convolutions signs can be chosen freely, and where
//! channels only fill half a block, so can their number: see [`negated`] and [`doubled`].

use super::super::flatbuffer::Reason;
use super::super::graph::{Attribute, Graph, Node, Value};
use super::BLOCK;

/// Replaces every PRelu.
pub(in super::super) fn split(graph: &mut Graph) -> Result<(), Reason> {
    // Nodes are changed in place and appended, so that what is known of those there are stays true.
    let wiring = Wiring {
        producers: graph.producers(),
        users: graph.users(),
    };
    for index in 0..graph.nodes.len() {
        let node = &graph.nodes[index];
        if node.op != "PRelu" {
            continue;
        }
        let Some(slopes) = graph.floats(node.inputs[1]).map(<[f32]>::to_vec) else {
            continue;
        };
        let fills_half_a_block = (1..=BLOCK / 2).contains(&(slopes.len() % BLOCK));
        match wiring.neighbours(graph, index) {
            Some(neighbours) if fills_half_a_block && neighbours.after_next.is_some() => {
                doubled(graph, index, &neighbours, &slopes);
            }
            Some(neighbours) => negated(graph, index, &neighbours, &slopes),
            None => plain(graph, index, &slopes),
        }
        graph.check_size()?;
    }
    Ok(())
}

/// Positions of the convolutions around a PRelu, of which none shares its output.
struct Neighbours {
    /// Yields the PRelu's input.
    previous: usize,
    /// Takes its output: one filter per channel.
    next: usize,
    /// Takes the output of `next`: a dense convolution, if it is one.
    after_next: Option<usize>,
}

/// Which node yields and which nodes take each value.
struct Wiring {
    producers: Vec<Option<usize>>,
    users: Vec<Vec<usize>>,
}

impl Wiring {
    fn neighbours(&self, graph: &Graph, index: usize) -> Option<Neighbours> {
        let node = &graph.nodes[index];
        let channels = graph.shape(node.output)[1];
        let only_user = |value: Value| match self.users[value.index()][..] {
            [user] if user != usize::MAX && graph.nodes[user].inputs[0] == value => Some(user),
            _ => None,
        };
        let convolution = |index: &usize, groups: usize| {
            let node = &graph.nodes[*index];
            node.op == "Conv"
                && node.attribute("group") == Some(&Attribute::Int(groups as i64))
                && node.inputs[1..].iter().all(|v| graph.floats(*v).is_some())
        };
        let source = node.inputs[0];
        let previous = self.producers[source.index()].filter(|i| convolution(i, 1))?;
        let next = only_user(node.output).filter(|i| convolution(i, channels))?;
        let after_next = only_user(graph.nodes[next].output).filter(|i| convolution(i, 1));
        let alone = only_user(source) == Some(index);
        let one_filter = graph.shape(graph.nodes[next].output)[1] == channels;
        (alone && one_filter).then_some(Neighbours {
            previous,
            next,
            after_next,
        })
    }
}

/// x + (1 − s)·relu(−x).
fn plain(graph: &mut Graph, index: usize, slopes: &[f32]) {
    let source = graph.nodes[index].inputs[0];
    let negative = scaled(graph, source, vec![-1.0; slopes.len()]);
    let negative = graph.elementwise("Relu", &[negative]);
    let correction = scaled(graph, negative, slopes.iter().map(|s| 1.0 - s).collect());
    become_sum(&mut graph.nodes[index], source, correction);
}

/// Negating the convolutions before and after saves one pass: with y = −x, −PRelu(x) = y + (s − 1)·relu(y).
fn negated(graph: &mut Graph, index: usize, neighbours: &Neighbours, slopes: &[f32]) {
    let source = graph.nodes[index].inputs[0];
    for input in 1..graph.nodes[neighbours.previous].inputs.len() {
        map_constant(graph, neighbours.previous, input, |v| {
            v.iter().map(|x| -x).collect()
        });
    }
    map_constant(graph, neighbours.next, 1, |v| {
        v.iter().map(|x| -x).collect()
    });
    let positive = graph.elementwise("Relu", &[source]);
    let correction = scaled(graph, positive, slopes.iter().map(|s| s - 1.0).collect());
    become_sum(&mut graph.nodes[index], source, correction);
}

/// Channels that fill half a block cost as much as a whole one. So the convolution before yields x and −x, a Relu, which
/// costs nothing inside of it, takes the positive part of both, and PRelu(x) = relu(x) − s·relu(−x) is left to the
/// weights after.
fn doubled(graph: &mut Graph, index: usize, neighbours: &Neighbours, slopes: &[f32]) {
    let channels = slopes.len();
    for input in 1..graph.nodes[neighbours.previous].inputs.len() {
        map_constant(graph, neighbours.previous, input, |v| {
            v.iter().copied().chain(v.iter().map(|x| -x)).collect()
        });
    }
    map_constant(graph, neighbours.next, 1, |v| {
        let filter = v.len() / channels;
        let slope = |i: usize| slopes[i / filter];
        let negative = v.iter().enumerate().map(|(i, x)| -slope(i) * x);
        v.iter().copied().chain(negative).collect()
    });
    if graph.nodes[neighbours.next].inputs.len() > 2 {
        map_constant(graph, neighbours.next, 2, |v| {
            v.iter().copied().chain(v.iter().map(|_| 0.0)).collect()
        });
    }
    graph.nodes[neighbours.next].set_attribute("group", Attribute::Int(2 * channels as i64));
    if let Some(after_next) = neighbours.after_next {
        let per_output = per_output(graph, after_next);
        map_constant(graph, after_next, 1, |v| {
            v.chunks(per_output).flat_map(|c| [c, c].concat()).collect()
        });
        let weights = graph.nodes[after_next].inputs[1];
        graph.values[weights.index()].shape[1] *= 2;
    }
    let node = &mut graph.nodes[index];
    node.op = "Relu";
    node.inputs.truncate(1);
    for index in [neighbours.previous, neighbours.next] {
        for input in 1..graph.nodes[index].inputs.len() {
            let value = graph.nodes[index].inputs[input];
            graph.values[value.index()].shape[0] *= 2;
        }
        let output = graph.nodes[index].output;
        graph.values[output.index()].shape[1] *= 2;
    }
    let output = graph.nodes[index].output;
    graph.values[output.index()].shape[1] *= 2;
}

/// Weights of a convolution that belong to one output channel.
fn per_output(graph: &Graph, convolution: usize) -> usize {
    let shape = graph.shape(graph.nodes[convolution].inputs[1]);
    shape[1..].iter().product::<usize>().max(1)
}

/// Gives a node a constant of its own in place of the one that it shares.
fn map_constant(
    graph: &mut Graph,
    node: usize,
    input: usize,
    map: impl FnOnce(&[f32]) -> Vec<f32>,
) {
    let value = graph.nodes[node].inputs[input];
    let shape = graph.shape(value).to_vec();
    let content = graph.floats(value).map(map).unwrap_or_default();
    graph.nodes[node].inputs[input] = graph.constant(shape, content);
}

/// Each channel times its factor.
fn scaled(graph: &mut Graph, value: Value, factors: Vec<f32>) -> Value {
    let shape = graph.shape(value).to_vec();
    let channels = factors.len();
    let weights = graph.constant(vec![channels, 1, 1, 1], factors);
    let attributes = vec![("group", Attribute::Int(channels as i64))];
    graph.node("Conv", &[value, weights], attributes, shape)
}

fn become_sum(node: &mut Node, a: Value, b: Value) {
    node.op = "Add";
    node.inputs = vec![a, b];
}
