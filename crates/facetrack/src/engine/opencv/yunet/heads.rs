// SPDX-License-Identifier: MPL-2.0
//! Rewrites the published graph into one that takes images of any size, red first, and runs faster.
//!
//! The file says 640×640, but no node depends on it. Each level of the pyramid has four heads of
//! two convolutions, the second with one filter per channel, that read the same features and yield
//! 1, 1, 4 and 10 channels: together exactly the 16 of one block of ONNX Runtime's blocked layout.
//! So they become one head, and its output stays as it is, channels first and scores before the
//! sigmoid; [`super::decode`] reads it in place.

use facetrack_graph::convolution::Convolution;
use facetrack_graph::{Graph, Node, Reason, Value};
use ndarray::Axis;

use super::STRIDES;

/// Names of the heads and their channels, in the order of the channels that [`super::decode`]
/// reads.
const HEADS: [(&str, usize); 4] = [("cls", 1), ("obj", 1), ("bbox", 4), ("kps", 10)];

/// Channels of all heads of a level.
pub(super) const CHANNELS: usize = 16;

/// Rewrites YuNet's graph. Its outputs are then one of [1, [`CHANNELS`], height / stride, width /
/// stride] for each of [`STRIDES`].
///
/// # Errors
/// Returns an error if the graph is not YuNet's.
pub(super) fn rewrite(graph: &mut Graph) -> Result<(), Reason> {
    for axis in [2, 3] {
        graph.set_input_extent(axis, None);
    }
    take_red_first(graph)?;
    let outputs = STRIDES
        .iter()
        .map(|stride| merge(graph, *stride))
        .collect::<Result<Vec<_>, _>>()?;
    graph.set_outputs(&outputs);
    graph.sort();
    Ok(())
}

/// Swaps red and blue: OpenCV gives the network images whose blue comes first.
fn take_red_first(graph: &mut Graph) -> Result<(), Reason> {
    let [input] = &graph.inputs[..] else {
        return Err(format!("{} inputs", graph.inputs.len()));
    };
    let [index] = graph.users()[input.value.index()][..] else {
        return Err("several nodes take the input".to_owned());
    };
    let first = graph.nodes.get(index);
    let first = first.and_then(|node| Convolution::of(graph, node));
    let mut first = first.ok_or("the input is not for a convolution")?;
    if first.inputs_of_group() != 3 {
        return Err(format!("weights of the shape {:?}", first.weights.shape()));
    }
    first.weights.invert_axis(Axis(1));
    first.put(graph, index);
    Ok(())
}

/// Merges the four heads at `stride` into one, and returns its output.
fn merge(graph: &mut Graph, stride: usize) -> Result<Value, Reason> {
    let mut pointwise = Vec::new();
    let mut depthwise = Vec::new();
    for (name, channels) in HEADS {
        let [first, second] = head(graph, name, stride)?;
        if [first.outputs(), second.outputs()] != [channels; 2] {
            return Err(format!(
                "{name} at stride {stride} has not {channels} channels"
            ));
        }
        pointwise.push(first);
        depthwise.push(second);
    }
    let features = pointwise[0].input();
    let first = Convolution::join(&pointwise, 1);
    let second = Convolution::join(&depthwise, CHANNELS);
    let (first, second) = first
        .zip(second)
        .filter(|_| pointwise.iter().all(|own| own.input() == features))
        .ok_or_else(|| format!("the heads at stride {stride} differ"))?;
    let between = first.add_to(graph, features);
    Ok(second.add_to(graph, between))
}

/// The two convolutions of a head.
fn head(graph: &Graph, name: &str, stride: usize) -> Result<[Convolution; 2], Reason> {
    let operators: &[&str] = match name {
        "cls" | "obj" => &["Sigmoid", "Reshape", "Transpose"],
        _ => &["Reshape", "Transpose"],
    };
    let name = format!("{name}_{stride}");
    let output = graph.named(&name).ok_or_else(|| format!("no {name}"))?;
    let before = |value: Value, op: &&str| {
        let node = graph.producer(value).filter(|node| node.is(op));
        node.and_then(|node: &Node| node.inputs.first().copied())
    };
    let features = operators.iter().try_fold(output, before);
    let depthwise = features.and_then(|value| Convolution::yielding(graph, value));
    let depthwise = depthwise.ok_or_else(|| format!("no convolution yields {name}"))?;
    let pointwise = Convolution::yielding(graph, depthwise.input());
    let pointwise = pointwise.ok_or_else(|| format!("one convolution yields {name}"))?;
    Ok([pointwise, depthwise])
}
