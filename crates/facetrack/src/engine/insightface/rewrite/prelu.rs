// SPDX-License-Identifier: MPL-2.0
//! Writes PRelu with operators that ONNX Runtime has in its blocked layout.
//!
//! PRelu(x) = max(x, 0) + s·min(x, 0) = x + (1 − s)·max(−x, 0), with a slope s for each channel. A convolution of one
//! filter per channel and one pixel multiplies each channel by a factor, and takes a following Relu, or a sum with another
//! value, into itself: two of them are all that is left.

use crate::model::onnx_file::{Floats, Node, OnnxFile};

/// Replaces every PRelu of images whose slopes are constants, one for each channel.
pub fn split(file: &mut OnnxFile) {
    let nodes: Vec<(Node, Vec<f32>)> = file
        .nodes()
        .iter()
        .filter_map(|node| Some((node.clone(), slopes(file, node)?)))
        .collect();
    for (node, slopes) in nodes {
        let ([source, _], [output]) = (&node.input[..], &node.output[..]) else {
            continue;
        };
        let [minus, below, rest] =
            ["minus", "below", "rest"].map(|kind| format!("{output} {kind}"));
        let negated = scaled(file, source, &minus, vec![-1.0; slopes.len()]);
        let factors = slopes.iter().map(|slope| 1.0 - slope).collect();
        let correction = scaled(file, &below, &rest, factors);
        let positive = Node::new("Relu", &[&minus], &below);
        let sum = Node::new("Add", &[source, &rest], output);
        file.replace(output, vec![negated, positive, correction, sum]);
    }
}

/// The slope of each channel, if `node` is a PRelu of images.
fn slopes(file: &OnnxFile, node: &Node) -> Option<Vec<f32>> {
    if node.op_type != "PRelu" {
        return None;
    }
    let Floats { dims, values } = file.floats(node.input.get(1)?).ok()?;
    // A single one is for all channels, however many there are.
    let is_of_channels = matches!(dims[..], [_, 1, 1] | [1, _, 1, 1]) && values.len() > 1;
    is_of_channels.then_some(values)
}

/// The convolution that multiplies the channels of `input` by `factors`.
fn scaled(file: &mut OnnxFile, input: &str, output: &str, factors: Vec<f32>) -> Node {
    let weights = format!("{output} factors");
    let channels = factors.len();
    let mut node = Node::new("Conv", &[input, &weights], output);
    node.set_int("group", channels as i64);
    node.set_ints("kernel_shape", &[1, 1]);
    let (dims, values) = (vec![channels, 1, 1, 1], factors);
    file.add_floats(&weights, &Floats { dims, values });
    node
}
