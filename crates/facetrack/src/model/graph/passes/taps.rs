// SPDX-License-Identifier: MPL-2.0
//! Takes apart convolutions of few outputs. ONNX Runtime computes whole blocks of outputs, so two of
//! them take as long as 16. Here a convolution of single pixels computes the taps of all filters,
//! which fill its blocks better. A second one moves each tap to the pixel that it belongs to, and a
//! third one adds up the taps of each filter.

use ndarray::Array4;

use super::super::convolution::Convolution;
use super::super::{Attribute, Graph, Node};
use super::BLOCK;

/// Time per multiplication of a convolution with one filter per channel, relative to one without
/// groups.
const DEPTHWISE_COST: usize = 3;

/// Minimum ratio of the times before and after.
const LEAST_GAIN: usize = 2;

/// Replaces a convolution of few outputs by three.
pub fn split(graph: &mut Graph, index: usize) -> Option<()> {
    let whole = Convolution::of(graph, &graph.nodes[index])?;
    let (outputs, inputs, height, width) = whole.weights.dim();
    let window = height * width;
    let taps = outputs * window;
    let (channels, block) = (
        taps.next_multiple_of(BLOCK),
        outputs.next_multiple_of(BLOCK),
    );
    let cost = channels * (inputs + DEPTHWISE_COST * window + block);
    let is_worth_it = block * window * inputs >= LEAST_GAIN * cost;
    if !is_worth_it || whole.groups > 1 || !has_plain_window(&whole.node) {
        return None;
    }
    let place = |tap: usize| (tap / window, tap % window / width, tap % width);
    let of_pixels = Array4::from_shape_fn((channels, inputs, 1, 1), |(tap, input, ..)| {
        let (output, y, x) = place(tap);
        whole
            .weights
            .get([output, input, y, x])
            .copied()
            .unwrap_or(0.0)
    });
    let moves = Array4::from_shape_fn((channels, 1, height, width), |(tap, _, y, x)| {
        let (_, row, column) = place(tap);
        f32::from((y, x) == (row, column))
    });
    let sums = Array4::from_shape_fn((outputs, channels, 1, 1), |(output, tap, ..)| {
        f32::from(place(tap).0 == output)
    });
    let [of_pixels, moves, sums] =
        [of_pixels, moves, sums].map(|weights| graph.add_floats(weights.shape(), &weights));
    let mut attributes = whole.node.attributes.clone();
    attributes.retain(|own| own.name != "group");
    attributes.push(Attribute::int("group", channels as i64));
    let found = graph.add("Conv", &[whole.input(), of_pixels], vec![]);
    let moved = graph.add("Conv", &[found, moves], attributes);
    let bias = whole.node.inputs.get(2);
    let inputs: Vec<_> = [moved, sums].iter().chain(bias).copied().collect();
    graph.set_node(index, "Conv", &inputs, vec![]);
    Some(())
}

/// Whether `node` is a convolution without an activation, with an output for each pixel.
fn has_plain_window(node: &Node) -> bool {
    let strides = node.attribute("strides");
    node.is("Conv") && strides.is_none_or(|strides| strides.ints.iter().all(|step| *step == 1))
}

#[cfg(test)]
mod tests {
    use super::super::at_each_node;
    use super::*;
    use crate::model::graph::Value;

    /// A convolution of `dims` with `attributes`, and the graph after the pass.
    fn split_of(dims: [usize; 4], attributes: Vec<Attribute>) -> Graph {
        let mut graph = Graph::new(13);
        let image = graph.add_input("x", &[1, dims[1], 8, 8]);
        let values: Vec<f32> = (1..=dims.iter().product())
            .map(|i: usize| i as f32)
            .collect();
        let weights = graph.add_floats(&dims, &values);
        let bias = graph.add_floats(&[dims[0]], &vec![0.5; dims[0]]);
        let output = graph.add("Conv", &[image, weights, bias], attributes);
        graph.add_output("y", output);
        at_each_node(&mut graph, split).unwrap();
        graph.sort();
        graph
    }

    fn padded() -> Attribute {
        Attribute::ints("pads", &[1; 4])
    }

    fn weights(graph: &Graph, index: usize) -> Array4<f32> {
        let weights: Value = graph.nodes[index].inputs[1];
        graph
            .floats(weights)
            .unwrap()
            .into_dimensionality()
            .unwrap()
    }

    #[test]
    fn the_taps_of_few_filters_are_computed_for_single_pixels() {
        let graph = split_of([2, 64, 3, 3], vec![padded()]);
        assert!(graph.nodes.iter().all(|node| node.is("Conv")));
        let [taps, moves, sums] = [0, 1, 2].map(|index| weights(&graph, index));
        assert_eq!(taps.dim(), (32, 64, 1, 1));
        assert_eq!(moves.dim(), (32, 1, 3, 3));
        assert_eq!(sums.dim(), (2, 32, 1, 1));
        assert_eq!(graph.nodes[1].attribute("pads"), Some(&padded()));
        assert_eq!(graph.nodes[1].attribute("group").unwrap().i, Some(32));
        assert_eq!(graph.nodes[2].inputs.len(), 3, "the bias is added once");
        // The filters that the three make together.
        for (output, input, y, x) in [(0, 0, 0, 0), (0, 63, 2, 1), (1, 5, 1, 2), (1, 63, 2, 2)] {
            let together: f32 = (0..32)
                .map(|tap| {
                    let [sum, at] = [sums[[output, tap, 0, 0]], moves[[tap, 0, y, x]]];
                    sum * at * taps[[tap, input, 0, 0]]
                })
                .sum();
            let index = ((output * 64 + input) * 3 + y) * 3 + x;
            assert_eq!(together, (index + 1) as f32);
        }
        for unused in 18..32 {
            assert!(
                taps.index_axis(ndarray::Axis(0), unused)
                    .iter()
                    .all(|w| *w == 0.0)
            );
        }
    }

    #[test]
    fn others_stay() {
        let group = |groups| Attribute::int("group", groups);
        for (dims, attributes) in [
            // Filters of single pixels, many filters, few channels.
            ([2, 64, 1, 1], vec![]),
            ([8, 64, 3, 3], vec![padded()]),
            ([2, 16, 3, 3], vec![padded()]),
            ([2, 64, 3, 3], vec![padded(), group(2)]),
            (
                [2, 64, 3, 3],
                vec![padded(), Attribute::ints("strides", &[2; 2])],
            ),
        ] {
            let graph = split_of(dims, attributes);
            assert_eq!(graph.nodes.len(), 1, "{dims:?}");
        }
    }
}
