// SPDX-License-Identifier: MPL-2.0
//! Finds the peaks of the heat maps, and computes the offsets there.
//!
//! The maps of offsets are two thirds of the landmark network's output, and one element of each is
//! read: the one where the landmark's heat map has its maximum. The last two convolutions read 3×3
//! cells around it. So the network yields the inputs of these convolutions, which are computed only
//! at the peaks, which saves a third of the network's time.

use std::iter::zip;

use facetrack_graph::convolution::Convolution;
use facetrack_graph::tail::Tail;
use facetrack_graph::{Attribute, Graph, Value};

use super::LandmarkContract;
use crate::engine::network::around;

/// Groups of maps: heat, offsets along rows, offsets along columns.
pub(super) const GROUPS: usize = 3;

/// Rows and columns of the cells that an offset depends on.
const SIDE: usize = 3;

/// Finds the peaks in what the network yields.
#[derive(Debug)]
pub struct Peaks {
    /// Sizes of the network.
    pub contract: LandmarkContract,
    /// `None` if the network yields the offsets.
    offsets: Option<Offsets>,
}

/// The hottest cell of a heat map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Value of the cell; NaN if the map has a NaN.
    pub value: f32,
    /// Number of the cell, counted along rows; the first one of equal cells.
    pub cell: usize,
    /// The elements of the maps of row offsets and of column offsets there.
    pub offsets: [f32; 2],
}

/// The last two convolutions of the maps of offsets.
#[derive(Debug)]
struct Offsets {
    /// Input channels of both kinds of offsets.
    channels: usize,
    /// Weights of the first convolution: one for each of the 3×3 cells, each filter and each
    /// channel.
    near: Vec<Vec<f32>>,
    near_bias: Vec<f32>,
    near_range: [f32; 2],
    /// Weights of the second convolution: one for each landmark, each filter and each channel. The
    /// first half of the channels yields the offset along rows, the other half the one along
    /// columns.
    landmarks: Vec<Vec<f32>>,
    landmark_biases: Vec<[f32; 2]>,
    landmark_range: [f32; 2],
}

impl Peaks {
    /// Makes `graph` yield, for each cell along rows, the heat of each landmark and the values that
    /// [`Peaks::find`] needs for the offsets.
    pub fn cut(graph: &mut Graph, contract: LandmarkContract) -> Self {
        let maps = graph.outputs[0].value;
        let cut = Offsets::cut(graph, maps, &contract);
        let (maps, offsets) = cut.map_or((maps, None), |(maps, offsets)| (maps, Some(offsets)));
        let channels_last = Attribute::ints("perm", &[0, 2, 3, 1]);
        let cells = graph.add("Transpose", &[maps], vec![channels_last]);
        graph.set_outputs(&[cells]);
        Self { contract, offsets }
    }

    /// The peaks in what a network yields whose offsets are computed.
    #[cfg(test)]
    pub(super) fn of_maps(contract: LandmarkContract) -> Self {
        let offsets = None;
        Self { contract, offsets }
    }

    /// The peak of each landmark in `answer`.
    pub fn find(&self, answer: &[f32]) -> Vec<Peak> {
        let points = self.contract.points;
        let (mut values, mut places) = (vec![f32::NEG_INFINITY; points], vec![0; points]);
        let cells: Vec<&[f32]> = answer.chunks_exact(GROUPS * points).collect();
        for (place, cell) in (0u32..).zip(&cells) {
            for (heat, (value, hottest)) in zip(*cell, zip(&mut values, &mut places)) {
                if *heat > *value || heat.is_nan() {
                    (*value, *hottest) = (*heat, place);
                }
            }
        }
        let peak = |(point, (value, cell)): (usize, (f32, u32))| Peak {
            value,
            cell: cell as usize,
            offsets: self.offsets(&cells, cell as usize, point),
        };
        zip(values, places).enumerate().map(peak).collect()
    }

    /// The offsets of the landmark `point` in the cell `at`.
    fn offsets(&self, cells: &[&[f32]], at: usize, point: usize) -> [f32; 2] {
        let points = self.contract.points;
        let Some(offsets) = &self.offsets else {
            return [points, 2 * points].map(|first| cells[at][first + point]);
        };
        let side = self.contract.cells;
        let near = around([at % side, at / side], [side; 2], SIDE);
        offsets.at(
            near.map(|near| near.map(|cell| &cells[cell][points..])),
            point,
        )
    }
}

impl Offsets {
    /// Removes the convolutions from the network that yields `maps`, and returns the new outputs.
    /// `None` for a network that does not end with the three convolutions of the published ones.
    fn cut(graph: &mut Graph, maps: Value, contract: &LandmarkContract) -> Option<(Value, Self)> {
        let points = contract.points;
        let tail = Tail::before(graph, maps)?;
        let features = Convolution::yielding(graph, tail.spatial.input())?;
        let fits = tail.pointwise.groups == GROUPS
            && tail.inputs_of_group() == points
            && tail.outputs_of_group() == points
            && tail.spatial.keeps_size()
            && tail.spatial.weights.shape()[2] == SIDE
            && features.is_pointwise()
            && features.groups == 1
            && features.outputs() == GROUPS * points;
        if !fits {
            return None;
        }
        let offsets = Self::of(&tail, points)?;
        let source = features.input();
        let of_heat = features.with_outputs(0..points).add_to(graph, source);
        let spatial = Convolution {
            groups: points,
            ..tail.spatial.with_outputs(0..points * tail.filters)
        };
        let pointwise = Convolution {
            groups: 1,
            ..tail.pointwise.with_outputs(0..points)
        };
        let filtered = spatial.add_to(graph, of_heat);
        let heat = pointwise.add_to(graph, filtered);
        let others = features.with_outputs(points..GROUPS * points);
        let others = others.add_to(graph, source);
        let of_channels = Attribute::int("axis", 1);
        let yielded = graph.add("Concat", &[heat, others], vec![of_channels]);
        Some((yielded, offsets))
    }

    /// The convolutions of `tail`; `None` for an activation that is not known.
    fn of(tail: &Tail, points: usize) -> Option<Self> {
        let channels = 2 * points;
        let sums = move || {
            let filters = 0..tail.filters;
            filters.flat_map(move |filter| (0..channels).map(move |channel| (filter, channel)))
        };
        let place = |(filter, channel)| (points + channel) * tail.filters + filter;
        let near = (0..SIDE * SIDE).map(|at| {
            let weight = |own| tail.spatial.weights[[place(own), 0, at / SIDE, at % SIDE]];
            sums().map(weight).collect()
        });
        let landmarks = (0..points).map(|point| {
            let weight = |(filter, channel): (usize, usize)| {
                let output = points * (1 + channel / points) + point;
                tail.weight(output, channel % points, filter)
            };
            sums().map(weight).collect()
        });
        let (near_bias, bias) = (tail.spatial.biases(), tail.pointwise.biases());
        let biases = (points..channels).map(|output| [output, points + output].map(|i| bias[i]));
        Some(Self {
            channels,
            near: near.collect(),
            near_bias: sums().map(|own| near_bias[place(own)]).collect(),
            near_range: tail.spatial.range()?,
            landmarks: landmarks.collect(),
            landmark_biases: biases.collect(),
            landmark_range: tail.pointwise.range()?,
        })
    }

    /// The offsets of the landmark `point`. `near` are the channels of the 3×3 cells around its
    /// peak; `None` for those outside.
    fn at<'a>(&self, near: impl Iterator<Item = Option<&'a [f32]>>, point: usize) -> [f32; 2] {
        let mut sums = self.near_bias.clone();
        for (cell, weights) in zip(near, &self.near) {
            let Some(cell) = cell else { continue };
            let of_filters = zip(
                sums.chunks_exact_mut(self.channels),
                weights.chunks_exact(self.channels),
            );
            for (sums, weights) in of_filters {
                for (sum, (weight, value)) in zip(sums, zip(weights, cell)) {
                    *sum += weight * value;
                }
            }
        }
        let [least, most] = self.near_range;
        let mut offsets = self.landmark_biases[point];
        for (index, (sum, weight)) in zip(sums, &self.landmarks[point]).enumerate() {
            let kind = index % self.channels / (self.channels / 2);
            offsets[kind] += weight * sum.clamp(least, most);
        }
        let [least, most] = self.landmark_range;
        offsets.map(|offset| offset.clamp(least, most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: LandmarkContract = LandmarkContract::TINY;

    /// Peaks of a network that yields the offsets: each landmark has the heat −1 and no offsets
    /// but in these cells.
    fn found(cells: &[(usize, f32)]) -> Vec<Peak> {
        let maps = GROUPS * TINY.points;
        let mut answer = vec![-1.0; maps * TINY.cells * TINY.cells];
        for (cell, value) in cells {
            let cell = &mut answer[cell * maps..][..maps];
            cell[..TINY.points].fill(*value);
            cell[TINY.points + 7] = 0.25;
            cell[2 * TINY.points + 7] = 0.75;
        }
        Peaks::of_maps(TINY).find(&answer)
    }

    #[test]
    fn the_first_of_the_hottest_cells_is_the_peak() {
        for (cells, want) in [
            (&[][..], 0),
            (&[(48, 0.5)], 48),
            (&[(17, 0.5), (40, 0.5), (3, 0.25)], 17),
            (&[(48, 1.5), (0, 1.25)], 48),
            (&[(4, f32::INFINITY), (5, 1.0)], 4),
            (&[(5, f32::NEG_INFINITY), (6, 1.0)], 6),
        ] {
            let peaks = found(cells);
            assert!(peaks.iter().all(|peak| peak.cell == want), "{cells:?}");
            let offsets = if want == 0 { [-1.0; 2] } else { [0.25, 0.75] };
            assert_eq!((peaks[7].offsets, peaks[8].offsets), (offsets, [-1.0; 2]));
        }
        for cell in [0, 4, 48] {
            let peaks = found(&[(20, 1.5), (cell, f32::NAN)]);
            assert!(peaks.iter().all(|peak| peak.value.is_nan()), "{cell}");
        }
    }
}
