// SPDX-License-Identifier: MPL-2.0
//! The convolutions of a detector that yield boxes and key points. A face uses a few of the 16,800
//! boxes, so they are computed outside of the network, for the candidates only. The network yields
//! the features that they take.

use std::iter::zip;

use facetrack_graph::convolution::Convolution;
use facetrack_graph::{Attribute, Graph, Value};

use super::heads::{Candidate, Heads, VALUES};
use crate::engine::network::around;

/// The order of axes that brings channels last.
const CHANNELS_LAST: [i64; 4] = [0, 2, 3, 1];

/// The convolutions.
#[derive(Debug, Clone, PartialEq)]
pub struct Boxes {
    /// Layout of the outputs of the whole network.
    pub heads: Heads,
    /// Filters of each stride, and of each box in a cell.
    filters: Vec<Vec<Filters>>,
}

/// The filters that yield a box, and its key points if there are any.
#[derive(Debug, Clone, PartialEq)]
struct Filters {
    /// Rows and columns of the cells that a value depends on.
    side: usize,
    /// Channels of the features.
    channels: usize,
    /// Weights of all values, for each of these cells and each channel.
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl Boxes {
    /// Takes the convolutions out of a detector. `graph` then yields, after the scores, the features
    /// of each stride, channels last. `None` for a detector that ends with other operators.
    pub fn cut(graph: &mut Graph, heads: Heads) -> Option<Self> {
        let (scores, others) = graph.outputs.split_at_checked(heads.levels())?;
        let mut outputs: Vec<Value> = scores.iter().map(|port| port.value).collect();
        let convolutions = others.iter().map(|port| yielding(graph, port.value));
        let convolutions = convolutions.collect::<Option<Vec<_>>>()?;
        let mut filters = Vec::new();
        for level in 0..heads.levels() {
            let of_level = convolutions.iter().skip(level).step_by(heads.levels());
            let of_level: Vec<_> = of_level.collect();
            filters.push(Filters::of_anchors(&of_level, heads.anchors)?);
            let channels_last = vec![Attribute::ints("perm", &CHANNELS_LAST)];
            outputs.push(graph.add("Transpose", &[of_level[0].input()], channels_last));
        }
        graph.set_outputs(&outputs);
        graph.sort();
        Some(Self { heads, filters })
    }

    /// Elements of the features of each stride, if it has so many columns and rows of cells.
    pub fn lengths(&self, sizes: &[[usize; 2]]) -> Vec<usize> {
        let strides = zip(&self.filters, sizes);
        strides
            .map(|(filters, [columns, rows])| columns * rows * filters[0].channels)
            .collect()
    }

    /// Box and key points of a candidate. `features` of each stride have the cells of `sizes`.
    pub fn values(
        &self,
        candidate: &Candidate,
        features: &[&[f32]],
        sizes: &[[usize; 2]],
    ) -> Vec<f32> {
        let level = candidate.level;
        let filters = &self.filters[level][candidate.anchor];
        let mut values = filters.bias.clone();
        let near = around(candidate.cell, sizes[level], filters.side);
        let of_a_cell = filters.channels * values.len();
        for (cell, weights) in zip(near, filters.weights.chunks_exact(of_a_cell)) {
            let Some(cell) = cell else { continue };
            let features = &features[level][cell * filters.channels..][..filters.channels];
            for (feature, weights) in zip(features, weights.chunks_exact(values.len())) {
                for (value, weight) in zip(&mut values, weights) {
                    *value += feature * weight;
                }
            }
        }
        values
    }
}

impl Filters {
    /// Returns the filters of each box in a cell. The first of `convolutions` yields the boxes, the
    /// second one the key points.
    fn of_anchors(convolutions: &[&Convolution], anchors: usize) -> Option<Vec<Self>> {
        let first = *convolutions.first()?;
        let (_, channels, side, _) = first.weights.dim();
        let fits = zip(convolutions, VALUES).all(|(own, width)| {
            own.outputs() == anchors * width
                && own.input() == first.input()
                && own.weights.shape()[1..] == first.weights.shape()[1..]
                && own
                    .weights
                    .iter()
                    .chain(own.bias.iter().flatten())
                    .all(|weight| weight.is_finite())
        });
        let of_anchor = |anchor: usize| {
            let outputs: Vec<_> = zip(convolutions, VALUES)
                .flat_map(|(own, width)| {
                    (anchor * width..(anchor + 1) * width).map(move |output| (own, output))
                })
                .collect();
            let mut weights = Vec::new();
            for place in 0..side * side * channels {
                let (near, channel) = (place / channels, place % channels);
                let at = |output| [output, channel, near / side, near % side];
                weights.extend(outputs.iter().map(|(own, output)| own.weights[at(*output)]));
            }
            let biases = outputs.iter().map(|(own, output)| own.biases()[*output]);
            Self {
                side,
                channels,
                weights,
                bias: biases.collect(),
            }
        };
        fits.then(|| (0..anchors).map(of_anchor).collect())
    }
}

/// The convolution that yields the cells of `output`.
fn yielding(graph: &Graph, output: Value) -> Option<Convolution> {
    let [cells, _] = graph.operands(output, "Reshape")?;
    let transpose = graph.producer(cells)?;
    let order = transpose.attribute("perm")?;
    let [image] = transpose.operands("Transpose")?;
    let convolution = Convolution::yielding(graph, image)?;
    let fits = order.ints == CHANNELS_LAST
        && convolution.node.is("Conv")
        && convolution.groups == 1
        && convolution.keeps_size();
    fits.then_some(convolution)
}

#[cfg(test)]
pub(crate) mod tests {
    use ndarray::ArrayD;

    use super::*;
    use crate::model::SessionOptions;
    use crate::model::{Opener, RuntimeChoice};
    use facetrack_assets::locate::SearchPaths;

    /// Channels of the features of the detector of [`cut`].
    pub(crate) const CHANNELS: usize = 5;

    /// Rows and columns of an image.
    const SIZE: [usize; 2] = [64, 96];

    fn noise(count: usize) -> Vec<f32> {
        let number = |index: usize| ((index * 7919 + 13) % 2003) as f32 / 2003.0 - 0.5;
        (0..count).map(number).collect()
    }

    /// A detector of three strides whose boxes are convolutions, and its layout.
    fn detector(has_points: bool) -> (Graph, Heads) {
        let mut graph = Graph::new(13);
        let image = graph.add_input("image", &[1, 3, SIZE[0], SIZE[1]]);
        let widths = if has_points { &[1, 4, 10][..] } else { &[1, 4] };
        let mut features = Vec::new();
        for stride in [8, 16, 32] {
            let shape = [CHANNELS, 3, 2, 2];
            let weights = graph.add_floats(&shape, &noise(shape.iter().product()));
            let strides = vec![Attribute::ints("strides", &[stride; 2])];
            features.push(graph.add("Conv", &[image, weights], strides));
        }
        for (width, features) in widths
            .iter()
            .flat_map(|own| features.iter().map(move |f| (own, f)))
        {
            let shape = [2 * width, CHANNELS, 3, 3];
            let weights = graph.add_floats(&shape, &noise(shape.iter().product()));
            let bias = graph.add_floats(&shape[..1], &noise(shape[0]));
            let pads = vec![Attribute::ints("pads", &[1; 4])];
            let yielded = graph.add("Conv", &[*features, weights, bias], pads);
            let last = vec![Attribute::ints("perm", &CHANNELS_LAST)];
            let moved = graph.add("Transpose", &[yielded], last);
            let rows = graph.add_ints(&[2], &[-1, *width as i64]);
            let rows = graph.add("Reshape", &[moved, rows], vec![]);
            graph.add_output("output", rows);
        }
        let heads = Heads::of(3 * widths.len()).unwrap();
        (graph, heads)
    }

    /// A detector whose boxes are taken out, and the boxes.
    pub(crate) fn cut(has_points: bool) -> (Graph, Boxes) {
        let (mut graph, heads) = detector(has_points);
        let boxes = Boxes::cut(&mut graph, heads).unwrap();
        (graph, boxes)
    }

    fn run(graph: Graph) -> Vec<ArrayD<f32>> {
        let paths = SearchPaths::default();
        let opener = Opener::new(&paths, RuntimeChoice::BuiltIn);
        let content = graph.clone().encode();
        let options = SessionOptions::default();
        let model = opener.open("boxes".as_ref(), &content, || Ok(graph.clone()), options);
        let image = ArrayD::from_shape_vec(vec![1, 3, SIZE[0], SIZE[1]], noise(3 * 64 * 96));
        model.unwrap().run(&[image.unwrap().view()]).unwrap()
    }

    #[test]
    fn candidates_have_the_values_that_the_network_yields() {
        for has_points in [false, true] {
            let (graph, heads) = detector(has_points);
            let whole = run(graph);
            let (graph, boxes) = cut(has_points);
            let parts = run(graph);
            let [theirs, features] = [&whole, &parts].map(|outputs| {
                let others = outputs[heads.levels()..].iter();
                others
                    .map(|own| own.as_slice().unwrap())
                    .collect::<Vec<_>>()
            });
            assert_eq!(whole[..heads.levels()], parts[..heads.levels()]);
            let size = [SIZE[1], SIZE[0]];
            let sizes = heads.sizes(size);
            let lengths = features.iter().map(|own| own.len());
            assert!(lengths.eq(boxes.lengths(&sizes)));
            let candidates = heads.candidates(&whole, size, f32::NEG_INFINITY).unwrap();
            assert_eq!(candidates.len(), 2 * (12 * 8 + 6 * 4 + 3 * 2));
            for candidate in candidates {
                let ours = boxes.values(&candidate, &features, &sizes);
                let theirs = heads.values(&candidate, &theirs, &sizes);
                assert_eq!(ours.len(), theirs.len());
                for (ours, theirs) in zip(ours, theirs) {
                    assert!(
                        (ours - theirs).abs() < 1e-5,
                        "{candidate:?}: {ours} {theirs}"
                    );
                }
            }
        }
    }

    #[test]
    fn some_outputs_stay_in_the_network() {
        type Change = fn(&mut Graph);
        let changes: [Change; 4] = [
            // Another order of the values.
            |graph| {
                let transposes = graph.nodes.iter_mut().filter(|node| node.is("Transpose"));
                transposes.for_each(|node| node.set(Attribute::ints("perm", &[0, 1, 2, 3])));
            },
            // A cell for each four.
            |graph| {
                if let Some(node) = graph.nodes.iter_mut().rfind(|node| node.is("Conv")) {
                    node.set(Attribute::ints("strides", &[2; 2]));
                }
            },
            // Features of another stride.
            |graph| {
                let input = graph.nodes[3].inputs[0];
                if let Some(node) = graph.nodes.iter_mut().rfind(|node| node.is("Conv")) {
                    node.inputs[0] = input;
                }
            },
            // A function of the boxes.
            |graph| {
                let output = graph.outputs[3].value;
                let output = graph.add("Relu", &[output], vec![]);
                graph.outputs[3].value = output;
            },
        ];
        for (index, change) in changes.iter().enumerate() {
            let (mut graph, heads) = detector(true);
            change(&mut graph);
            assert_eq!(Boxes::cut(&mut graph, heads), None, "{index}");
        }
    }
}
