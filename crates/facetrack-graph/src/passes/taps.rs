// SPDX-License-Identifier: MPL-2.0
//! Splits convolutions of few output channels. ONNX Runtime computes whole blocks of channels, so
//! two of them take as long as 16. A tap of a filter is the part of its sum that one position of its
//! window contributes. A 1×1 convolution computes the taps of all filters as its channels, which
//! fill their blocks better. A second convolution shifts each tap to the pixel that it belongs to,
//! and a third one adds up the taps of each filter.

use ndarray::Array4;

use super::super::convolution::Convolution;
use super::super::{Attribute, Graph, Node};
use super::BLOCK;

/// Time per multiplication of a depthwise convolution, relative to one without groups, as measured
/// on InsightFace's detector.
const DEPTHWISE_COST: usize = 3;

/// Minimum ratio of the estimated times before and after. The estimate leaves out memory accesses.
const LEAST_GAIN: usize = 2;

/// Replaces a convolution of few output channels by three.
pub fn split(graph: &mut Graph, index: usize) -> Option<()> {
    let whole = Convolution::of(graph, &graph.nodes[index])?;
    let (outputs, inputs, height, width) = whole.weights.dim();
    let window = height * width;
    let channels = (outputs * window).next_multiple_of(BLOCK);
    let block = outputs.next_multiple_of(BLOCK);
    let cost = channels * (inputs + DEPTHWISE_COST * window + block);
    let is_worth_it = block * window * inputs >= LEAST_GAIN * cost;
    if !is_worth_it || whole.groups > 1 || !keeps_extents(&whole.node) {
        return None;
    }
    // Channels after the last tap, which only fill a block, have no weights.
    let place = |tap: usize| (tap / window, tap % window / width, tap % width);
    let taps = Array4::from_shape_fn((channels, inputs, 1, 1), |(tap, input, ..)| {
        let (output, y, x) = place(tap);
        let weight = whole.weights.get([output, input, y, x]);
        weight.copied().unwrap_or(0.0)
    });
    let shifts = Array4::from_shape_fn((channels, 1, height, width), |(tap, _, y, x)| {
        let (_, row, column) = place(tap);
        f32::from((y, x) == (row, column))
    });
    let sums = Array4::from_shape_fn((outputs, channels, 1, 1), |(output, tap, ..)| {
        f32::from(place(tap).0 == output)
    });
    let [taps, shifts, sums] =
        [taps, shifts, sums].map(|weights| graph.add_floats(weights.shape(), &weights));
    let mut attributes = whole.node.attributes.clone();
    attributes.retain(|own| own.name != "group");
    attributes.push(Attribute::int("group", channels as i64));
    let taps = graph.add("Conv", &[whole.input(), taps], vec![]);
    let shifted = graph.add("Conv", &[taps, shifts], attributes);
    let bias = whole.node.inputs.get(2);
    let inputs: Vec<_> = [shifted, sums].iter().chain(bias).copied().collect();
    graph.set_node(index, "Conv", &inputs, vec![]);
    Some(())
}

/// Whether `node` is a convolution with stride 1 and without an activation.
fn keeps_extents(node: &Node) -> bool {
    let strides = node.attribute("strides");
    node.is("Conv") && strides.is_none_or(|strides| strides.ints.iter().all(|step| *step == 1))
}

#[cfg(test)]
mod tests {
    use super::super::at_each_node;
    use super::*;
    use crate::Value;

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
    fn the_taps_of_few_filters_are_channels() {
        for [height, width, channels] in [[3, 3, 32], [3, 5, 32]] {
            let graph = split_of([2, 64, height, width], vec![padded()]);
            assert!(graph.nodes.iter().all(|node| node.is("Conv")));
            let [taps, shifts, sums] = [0, 1, 2].map(|index| weights(&graph, index));
            assert_eq!(taps.dim(), (channels, 64, 1, 1));
            assert_eq!(shifts.dim(), (channels, 1, height, width));
            assert_eq!(sums.dim(), (2, channels, 1, 1));
            assert_eq!(graph.nodes[1].attribute("pads"), Some(&padded()));
            let group = graph.nodes[1].attribute("group").unwrap();
            assert_eq!(group.i, Some(channels as i64));
            assert_eq!(graph.nodes[2].inputs.len(), 3, "the bias is added once");
            // The filters that the three make together.
            let filters =
                Array4::from_shape_fn((2, 64, height, width), |(output, input, y, x)| -> f32 {
                    let of_tap = |tap: usize| {
                        let factor = sums[[output, tap, 0, 0]] * shifts[[tap, 0, y, x]];
                        factor * taps[[tap, input, 0, 0]]
                    };
                    (0..channels).map(of_tap).sum()
                });
            let expected = (1..=filters.len()).map(|i| i as f32);
            assert!(filters.iter().copied().eq(expected), "{height}×{width}");
            let unused = taps.slice(ndarray::s![2 * height * width.., .., .., ..]);
            assert!(unused.iter().all(|weight| *weight == 0.0));
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
