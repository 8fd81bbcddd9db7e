// SPDX-License-Identifier: MPL-2.0
//! Writes PRelu with operators that ONNX Runtime has in its blocked layout.
//!
//! PRelu(x) = max(x, 0) + s·min(x, 0), with a slope s for each channel; slopes may be negative or
//! exceed 1. A depthwise 1×1 convolution multiplies each channel by a factor and takes a following
//! Relu, or a sum with another value, into itself. So x + (1 − s)·max(−x, 0) takes two of them.

use super::super::convolution::add_scaled;
use super::super::{Graph, Node};

/// Replaces a PRelu by x + (1 − s)·relu(−x).
pub fn split(graph: &mut Graph, index: usize) -> Option<()> {
    let slopes = slopes(graph, &graph.nodes[index])?;
    let source = graph.nodes[index].inputs[0];
    let negative = add_scaled(graph, source, &vec![-1.0; slopes.len()]);
    let positive = graph.add_elementwise("Relu", &[negative]);
    let factors: Vec<f32> = slopes.iter().map(|slope| 1.0 - slope).collect();
    let correction = add_scaled(graph, positive, &factors);
    graph.set_node(index, "Add", &[source, correction], vec![]);
    Some(())
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
