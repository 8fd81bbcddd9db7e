// SPDX-License-Identifier: MPL-2.0
//! Summary of a frame in a few numbers.

use crate::image::ImageView;
use crate::memory::OutOfMemory;
use crate::sample::cells;

/// Columns and rows of a sketch. A face that fills a tenth of the picture's height covers a few
/// cells.
pub(super) const COLUMNS: usize = 64;
pub(super) const ROWS: usize = 36;

/// Columns and rows of its detail.
pub(super) const DETAIL_COLUMNS: usize = COLUMNS / 2;
pub(super) const DETAIL_ROWS: usize = ROWS / 2;

/// Samples of a cell, all in one row. Most of the time is spent on reading rows from memory.
const SAMPLES: usize = 4;

/// Cells on each side of a cell whose mean is subtracted for the detail.
const SURROUNDINGS: isize = 3;

/// Level of an overexposed cell.
const WHITE: f32 = 250.0;

/// Minimum part of overexposed cells in an overexposed frame.
const OVEREXPOSED: f32 = 0.5;

/// Minimum part of cells of one brightness in pictures of screens, whose backgrounds are even. Black
/// does not count: black bars surround many videos.
const EVEN: f32 = 0.3;

/// Level up to which a cell counts as black.
const BLACK: usize = 20;

/// Levels of 8 bits.
const LEVELS: usize = 256;

/// Summary of a frame in a few numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sketch {
    /// Brightness of each cell, 0 black and 255 white.
    pub levels: Vec<f32>,
    /// The same with half the columns and rows, minus the mean of the surroundings.
    pub detail: Vec<f32>,
    /// Standard deviation of the detail.
    pub contrast: f32,
}

impl Sketch {
    /// Summarizes a frame.
    ///
    /// # Errors
    /// Returns an error if there is too little memory to read it.
    pub(super) fn of(image: &ImageView<'_>) -> Result<Self, OutOfMemory> {
        cells(image, [COLUMNS, ROWS], SAMPLES).map(Self::new)
    }

    fn new(levels: Vec<f32>) -> Self {
        let detail = detail(&levels);
        let power: f32 = detail.iter().map(|value| value * value).sum();
        Self {
            contrast: (power / detail.len() as f32).sqrt(),
            levels,
            detail,
        }
    }

    pub(super) fn is_overexposed(&self) -> bool {
        let white = self.levels.iter().filter(|level| **level >= WHITE).count();
        white as f32 > OVEREXPOSED * self.levels.len() as f32
    }

    /// Returns true if the frame looks like the picture of a screen, with an even background.
    pub(super) fn is_of_screen(&self) -> bool {
        let mut counts = [0; LEVELS];
        for level in &self.levels {
            counts[(level.round() as usize).min(LEVELS - 1)] += 1;
        }
        let sums = counts[BLACK..].windows(3).map(|near| near.iter().sum());
        let largest: usize = sums.max().unwrap_or(0);
        largest as f32 > EVEN * self.levels.len() as f32
    }
}

/// Half the columns and rows, minus the mean of the surroundings. At the borders, the cells there
/// stand for those beyond.
fn detail(levels: &[f32]) -> Vec<f32> {
    let halved: Vec<f32> = (0..DETAIL_ROWS * DETAIL_COLUMNS)
        .map(|at| {
            let (x, y) = (at % DETAIL_COLUMNS, at / DETAIL_COLUMNS);
            let above = &levels[2 * y * COLUMNS + 2 * x..];
            (above[0] + above[1] + above[COLUMNS] + above[COLUMNS + 1]) / 4.0
        })
        .collect();
    let across = sums(&halved, DETAIL_COLUMNS, 1);
    let around = sums(&across, DETAIL_ROWS, DETAIL_COLUMNS);
    let count = (2 * SURROUNDINGS + 1).pow(2) as f32;
    let pairs = halved.iter().zip(around);
    pairs.map(|(level, sum)| level - sum / count).collect()
}

/// The sum of each value and its neighbours. Neighbours are `stride` values apart, `count` in a line.
fn sums(values: &[f32], count: usize, stride: usize) -> Vec<f32> {
    let mut sums = vec![0.0; values.len()];
    for block in (0..values.len()).step_by(count * stride) {
        for place in 0..count {
            let to = &mut sums[block + place * stride..][..stride];
            for by in -SURROUNDINGS..=SURROUNDINGS {
                let neighbour = place.saturating_add_signed(by).min(count - 1);
                let from = &values[block + neighbour * stride..][..stride];
                to.iter_mut()
                    .zip(from)
                    .for_each(|(sum, value)| *sum += value);
            }
        }
    }
    sums
}
