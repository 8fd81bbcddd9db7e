// SPDX-License-Identifier: MPL-2.0
//! Mosaics: pixels replaced by the means of cells.

use std::ops::Range;

use super::blend::{Lanes, MAX_LANES};

/// Minimum side of a cell, px: a cell has a sample of every component then.
const MIN_CELL: f32 = (1 << crate::image::MAX_SUBSAMPLING) as f32;

/// Bits behind the binary point of a weight: products with codes of 16 bits and their sign fit 32
/// bits.
const FRACTION: u32 = 12;

/// The transition between neighbouring cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transition {
    /// Cells have one color.
    Hard,
    /// Colors are interpolated between the middles of the cells.
    Smooth,
}

/// Edges of equal cells over `pixels` of an axis, with sides of at least `side`; a single cell if
/// there is no room for more.
pub(super) fn edges(pixels: Range<usize>, side: f32) -> Vec<usize> {
    let count = (pixels.len() as f32 / side.max(MIN_CELL)).max(1.0) as usize;
    let edges = (0..=count).map(|index| pixels.start + index * pixels.len() / count);
    edges.collect()
}

/// Mean colors of cells, for components that have their samples side by side.
#[derive(Debug)]
pub(super) struct Mosaic {
    columns: Axis,
    rows: Axis,
    /// Codes by row, column and lane.
    means: Vec<[u16; MAX_LANES]>,
    /// Number of lanes.
    lanes: usize,
}

/// Colors of a row of samples.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Colors of the columns of cells.
    cells: Vec<[u16; MAX_LANES]>,
    /// Words of the pixels.
    words: Vec<u16>,
}

impl Mosaic {
    /// The mosaic of a plane. `cells` are the edges of its columns and rows, px.
    pub(super) fn of(
        data: &[u8],
        stride: usize,
        lanes: &Lanes,
        cells: &[Vec<usize>; 2],
        transition: Transition,
    ) -> Self {
        let subsampling = lanes.component.subsampling;
        let [columns, rows] =
            [0, 1].map(|axis| Axis::new(&cells[axis], subsampling[axis], transition));
        let mut means = Vec::new();
        for rows in rows.cells() {
            let mut sums = vec![[0; MAX_LANES]; columns.cells().len()];
            for row in rows.clone() {
                let line = &data[row * stride..];
                for (sums, columns) in sums.iter_mut().zip(columns.cells()) {
                    lanes.add(line, columns, sums);
                }
            }
            let counts = columns.cells().map(|columns| columns.len() * rows.len());
            let means_of_row = std::iter::zip(sums, counts);
            means.extend(means_of_row.map(|(sums, count)| sums.map(|sum| mean(sum, count))));
        }
        Self {
            columns,
            rows,
            means,
            lanes: lanes.words(),
        }
    }

    /// The words of the pixels of a row from pixel `first` on. `last` is the row of this mosaic that
    /// was asked for last; the rows of a cell are often the same.
    pub(super) fn colors<'a>(&self, row: usize, first: usize, last: &'a mut Row) -> &'a [u16] {
        let cells = self.row(row);
        if cells != last.cells {
            let words = &mut last.words;
            words.resize(self.columns.weights.len() * self.lanes, 0);
            match self.lanes {
                1 => self.columns.fill::<1>(&cells, words),
                2 => self.columns.fill::<2>(&cells, words),
                3 => self.columns.fill::<3>(&cells, words),
                _ => self.columns.fill::<MAX_LANES>(&cells, words),
            }
            last.cells = cells;
        }
        &last.words[(first - self.columns.edges[0]) * self.lanes..]
    }

    /// The colors of each column of cells in a row of samples.
    fn row(&self, row: usize) -> Vec<[u16; MAX_LANES]> {
        let weight = self.rows.weights[row - self.rows.edges[0]];
        let run = self.rows.runs.iter().find(|run| run.samples.contains(&row));
        let width = self.columns.cells().len();
        let [above, below] = run.map_or([0, 0], |run| run.cells);
        let [above, below] = [above, below].map(|cell| &self.means[cell * width..][..width]);
        let columns = std::iter::zip(above, below);
        columns
            .map(|(above, below)| std::array::from_fn(|i| between(above[i], below[i], weight)))
            .collect()
    }
}

/// `sum` / `count` to the nearest.
fn mean(sum: u64, count: usize) -> u16 {
    let count = count.max(1) as u64;
    ((sum + count / 2) / count) as u16
}

/// The code at a weight of the second one.
#[inline(always)]
fn between(from: u16, to: u16, weight: u16) -> u16 {
    let difference = i32::from(to) - i32::from(from);
    (i32::from(from) + ((difference * i32::from(weight)) >> FRACTION)) as u16
}

/// Cells along an axis, in samples.
#[derive(Debug)]
struct Axis {
    edges: Vec<usize>,
    runs: Vec<Run>,
    /// Weight of the second cell of the run for each sample.
    weights: Vec<u16>,
}

/// Samples whose colors lie between the same two cells.
#[derive(Debug)]
struct Run {
    samples: Range<usize>,
    cells: [usize; 2],
}

impl Axis {
    /// Cells with these edges, px, for a component with this subsampling.
    fn new(edges: &[usize], subsampling: u32, transition: Transition) -> Self {
        let mut samples: Vec<_> = edges.iter().map(|edge| edge >> subsampling).collect();
        if let (Some(last), Some(edge)) = (samples.last_mut(), edges.last()) {
            *last = edge.div_ceil(1 << subsampling);
        }
        let runs = match transition {
            Transition::Hard => cells(&samples)
                .enumerate()
                .map(|(cell, samples)| Run {
                    samples,
                    cells: [cell; 2],
                })
                .collect(),
            Transition::Smooth => runs_between(&samples),
        };
        Self {
            edges: samples,
            weights: runs.iter().flat_map(Run::weights).collect(),
            runs,
        }
    }

    fn cells(&self) -> impl ExactSizeIterator<Item = Range<usize>> {
        cells(&self.edges)
    }

    /// Fills the words of a row from the colors of its cells.
    fn fill<const N: usize>(&self, cells: &[[u16; MAX_LANES]], colors: &mut [u16]) {
        let start = self.edges[0];
        for run in &self.runs {
            let [from, to] = run.cells.map(|cell| cells[cell]);
            let samples = run.samples.start - start..run.samples.end - start;
            let words = &mut colors.as_chunks_mut::<N>().0[samples.clone()];
            for (words, weight) in words.iter_mut().zip(&self.weights[samples]) {
                *words = std::array::from_fn(|lane| between(from[lane], to[lane], *weight));
            }
        }
    }
}

impl Run {
    fn weights(&self) -> impl Iterator<Item = u16> {
        let (count, [from, to]) = (self.samples.len(), self.cells);
        (0..count).map(move |index| {
            if from == to {
                0
            } else {
                ((index << FRACTION) / count) as u16
            }
        })
    }
}

/// The cells between edges.
fn cells(edges: &[usize]) -> impl ExactSizeIterator<Item = Range<usize>> {
    edges.windows(2).map(|pair| pair[0]..pair[1])
}

/// The runs from the first edge to the middle of the first cell, from there to the next middle, and
/// so on up to the last edge.
fn runs_between(edges: &[usize]) -> Vec<Run> {
    let middles = cells(edges).map(|cell| cell.start.midpoint(cell.end));
    let ends = middles.chain(edges.last().copied());
    let last = edges.len().saturating_sub(2);
    let mut start = edges[0];
    let run = |(index, end): (usize, usize)| Run {
        samples: std::mem::replace(&mut start, end)..end,
        cells: [index.saturating_sub(1), index.min(last)],
    };
    ends.enumerate().map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_not_smaller_than_asked_and_leave_nothing_out() {
        for (pixels, side, want) in [
            (10..110, 25.0, vec![10, 35, 60, 85, 110]),
            (10..109, 25.0, vec![10, 43, 76, 109]),
            (3..20, 100.0, vec![3, 20]),
            (0..9, 0.0, vec![0, 4, 9]),
            (5..6, f32::NAN, vec![5, 6]),
        ] {
            assert_eq!(edges(pixels.clone(), side), want, "{pixels:?} {side}");
        }
    }

    #[test]
    fn colors_change_at_the_edges_or_between_the_middles() {
        let cells = [[0; MAX_LANES], [4096; MAX_LANES], [0; MAX_LANES]];
        for (transition, want) in [
            (
                Transition::Hard,
                [0, 0, 0, 0, 4096, 4096, 4096, 4096, 0, 0, 0, 0],
            ),
            (
                Transition::Smooth,
                [0, 0, 0, 1024, 2048, 3072, 4096, 3072, 2048, 1024, 0, 0],
            ),
        ] {
            let axis = Axis::new(&[8, 16, 24, 32], 1, transition);
            let mut colors = [1; 12];
            axis.fill::<1>(&cells, &mut colors);
            assert_eq!(colors, want, "{transition:?}");
        }
    }

    #[test]
    fn subsampled_cells_share_no_sample() {
        for transition in [Transition::Hard, Transition::Smooth] {
            let axis = Axis::new(&[5, 9, 13, 18], 2, transition);
            assert_eq!(axis.edges, [1, 2, 3, 5]);
            assert_eq!(axis.weights.len(), 4);
        }
    }
}
