// SPDX-License-Identifier: MPL-2.0
//! Similarity of two sketches.

use super::sketch::{COLUMNS, DETAIL_COLUMNS, DETAIL_ROWS, ROWS, Sketch};

/// Farthest displacement that is tried, in cells of the detail: 28 % of the width and of the height.
/// Faster pans blur the picture, so that most of it looks alike at any displacement.
const REACH: [usize; 2] = [9, 5];

/// Columns and rows with room for the displacements.
const WIDE: usize = DETAIL_COLUMNS + 2 * REACH[0];
const HIGH: usize = DETAIL_ROWS + 2 * REACH[1];

/// Change of a cell that counts as changed, in levels.
const CHANGED: f32 = 10.0;

/// Change of a cell up to which it counts as the same, in levels.
const SAME: f32 = 2.0;

/// Change of a cell to darker or brighter that counts, in levels.
const DARKER: f32 = 8.0;

/// Part of the cells that may be darker in a frame that is lit by a flash.
const MAX_DARKER: f32 = 0.05;

/// Minimum increase of the mean brightness by a flash, in levels.
const MIN_FLASH: f32 = 25.0;

/// Minimum part of the picture that stays the same when a window of a screen changes.
const MIN_SAME: f32 = 0.25;

/// Columns and rows of a part of the picture that may stay the same, such as the picture of a
/// presenter, and the distance from one to the next.
const PART: [usize; 2] = [8, 6];
const PART_STEPS: [usize; 2] = [4, 3];

/// Minimum correlation of a part that stays the same.
const PART_CORRELATION: f32 = 0.92;

/// Minimum number of parts that stay the same when the rest of a screen changes.
const MIN_PARTS: usize = 2;

/// Maximum difference of a part that stays the same, in levels.
const MAX_PART_CHANGE: f32 = 8.0;

/// Minimum standard deviation of a part with content, in levels.
const MIN_PART_DEVIATION: f32 = 6.0;

/// Minimum standard deviation of its rows' and columns' means, in levels. It excludes edges, which
/// look the same when they are displaced.
const MIN_PART_PROFILE: f32 = 3.0;

/// The change from a sketch to another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Changes {
    /// Mean absolute change of the cells, in levels.
    pub mean: f32,
    /// Largest change of a cell, in levels.
    pub largest: f32,
    /// Part of the cells that change.
    pub changed: f32,
    /// Part of the cells that stay the same.
    pub same: f32,
    /// Part of the cells that get darker.
    darker: f32,
    /// Mean change, in levels.
    gain: f32,
}

impl Changes {
    pub(super) fn between(before: &Sketch, after: &Sketch) -> Self {
        let count = after.levels.len() as f32;
        let pairs = before.levels.iter().zip(&after.levels);
        let differences = pairs.map(|(before, after)| after - before);
        let [mut sum, mut largest, mut gain] = [0.0_f32; 3];
        let [mut changed, mut same, mut darker] = [0_u32; 3];
        for difference in differences {
            sum += difference.abs();
            largest = largest.max(difference.abs());
            gain += difference;
            changed += u32::from(difference.abs() > CHANGED);
            same += u32::from(difference.abs() <= SAME);
            darker += u32::from(difference < -DARKER);
        }
        Self {
            mean: sum / count,
            largest,
            changed: changed as f32 / count,
            same: same as f32 / count,
            darker: darker as f32 / count,
            gain: gain / count,
        }
    }

    /// Returns true if the picture got brighter everywhere.
    pub(super) fn is_brighter(&self) -> bool {
        self.gain > MIN_FLASH && self.darker < MAX_DARKER
    }
}

/// Correlation of two details at the best displacement, −1…1.
pub(super) fn similarity(before: &[f32], after: &[f32]) -> f32 {
    let placed = Placed::new(before);
    let (before, after) = (Powers::new(before), Powers::new(after));
    let mut best = -1.0_f32;
    for y in 0..=2 * REACH[1] {
        for x in 0..=2 * REACH[0] {
            let power =
                after.overlap([x, y]) * before.overlap([2 * REACH[0] - x, 2 * REACH[1] - y]);
            if power > 0.0 {
                let product = f64::from(placed.product(after.values, [x, y]));
                best = best.max((product / power.sqrt()) as f32);
            }
        }
    }
    best
}

/// A detail in the middle of zeros.
struct Placed(Vec<[f32; WIDE]>);

impl Placed {
    fn new(detail: &[f32]) -> Self {
        let mut rows = vec![[0.0; WIDE]; HIGH];
        let (lines, _) = detail.as_chunks::<DETAIL_COLUMNS>();
        for (row, line) in rows[REACH[1]..].iter_mut().zip(lines) {
            row[REACH[0]..][..DETAIL_COLUMNS].copy_from_slice(line);
        }
        Self(rows)
    }

    /// Sum of the products with a detail whose first cell is at `x`, `y`.
    fn product(&self, detail: &[f32], [x, y]: [usize; 2]) -> f32 {
        let mut sums = [0.0; DETAIL_COLUMNS];
        let (lines, _) = detail.as_chunks::<DETAIL_COLUMNS>();
        for (row, line) in self.0[y..].iter().zip(lines) {
            let row = &row[x..][..DETAIL_COLUMNS];
            for i in 0..DETAIL_COLUMNS {
                sums[i] += row[i] * line[i];
            }
        }
        sums.iter().sum()
    }
}

/// Powers of a detail, summed from its first cell on.
struct Powers<'a> {
    values: &'a [f32],
    sums: Vec<[f64; DETAIL_COLUMNS + 1]>,
}

impl<'a> Powers<'a> {
    fn new(values: &'a [f32]) -> Self {
        let mut sums = vec![[0.0; DETAIL_COLUMNS + 1]; DETAIL_ROWS + 1];
        let (lines, _) = values.as_chunks::<DETAIL_COLUMNS>();
        for (y, line) in lines.iter().enumerate() {
            let mut power = 0.0;
            for (x, value) in line.iter().enumerate() {
                power += f64::from(value * value);
                sums[y + 1][x + 1] = sums[y][x + 1] + power;
            }
        }
        Self { values, sums }
    }

    /// The power of the cells that are in the picture if the detail is placed at `x`, `y`.
    fn overlap(&self, place: [usize; 2]) -> f64 {
        let sides = [DETAIL_COLUMNS, DETAIL_ROWS];
        let [(left, right), (top, bottom)] = [0, 1].map(|axis: usize| {
            let (side, reach) = (sides[axis], REACH[axis]);
            let first = reach.saturating_sub(place[axis]);
            (first, (side + reach - place[axis]).min(side))
        });
        let at = |x: usize, y: usize| self.sums[y][x];
        at(right, bottom) - at(left, bottom) - at(right, top) + at(left, top)
    }
}

/// Returns true if `after` shows the same screen as `before`, where a window, a page or a slide has
/// changed.
pub(super) fn is_screen_in_use(before: &Sketch, after: &Sketch, changes: &Changes) -> bool {
    let is_of_screen = before.is_of_screen() || after.is_of_screen();
    (is_of_screen && changes.same > MIN_SAME) || kept_parts(before, after) >= MIN_PARTS
}

/// Number of parts with content that stay the same.
fn kept_parts(before: &Sketch, after: &Sketch) -> usize {
    let rows = (0..=ROWS - PART[1]).step_by(PART_STEPS[1]);
    let places = rows.flat_map(|y| {
        let columns = (0..=COLUMNS - PART[0]).step_by(PART_STEPS[0]);
        columns.map(move |x| y * COLUMNS + x)
    });
    let is_kept = |at: &usize| {
        let [before, after] = [before, after].map(|it| Part::new(&it.levels[*at..]));
        before.is_kept_in(&after)
    };
    places.filter(is_kept).count()
}

/// A part of a picture.
struct Part {
    /// Differences from the mean.
    values: [[f32; PART[0]]; PART[1]],
    mean: f32,
    deviation: f32,
}

impl Part {
    /// The part whose first cell is the first one of `levels`.
    fn new(levels: &[f32]) -> Self {
        let mut values = [[0.0; PART[0]]; PART[1]];
        for (row, line) in values.iter_mut().zip(levels.chunks(COLUMNS)) {
            row.copy_from_slice(&line[..PART[0]]);
        }
        let mean = mean(values.as_flattened());
        values
            .as_flattened_mut()
            .iter_mut()
            .for_each(|value| *value -= mean);
        Self {
            deviation: deviation(values.as_flattened()),
            values,
            mean,
        }
    }

    fn is_kept_in(&self, after: &Self) -> bool {
        let has_content = |part: &Self| part.deviation >= MIN_PART_DEVIATION;
        let is_alike = (self.mean - after.mean).abs() <= MAX_PART_CHANGE;
        has_content(self)
            && has_content(after)
            && is_alike
            && self.change(after) <= MAX_PART_CHANGE
            && after.profile() >= MIN_PART_PROFILE
            && self.correlation(after) > PART_CORRELATION
    }

    fn pairs<'a>(&'a self, after: &'a Self) -> impl Iterator<Item = (&'a f32, &'a f32)> {
        let (before, after) = (self.values.as_flattened(), after.values.as_flattened());
        before.iter().zip(after)
    }

    /// Mean absolute change, in levels.
    fn change(&self, after: &Self) -> f32 {
        let gain = after.mean - self.mean;
        let changes = self.pairs(after).map(|(a, b)| (b - a + gain).abs());
        changes.sum::<f32>() / self.values.as_flattened().len() as f32
    }

    fn correlation(&self, after: &Self) -> f32 {
        let products = self.pairs(after).map(|(a, b)| a * b);
        let mean = products.sum::<f32>() / self.values.as_flattened().len() as f32;
        mean / (self.deviation * after.deviation)
    }

    /// The lower one of the standard deviations of the rows' and the columns' means.
    fn profile(&self) -> f32 {
        let rows: [f32; PART[1]] = self.values.map(|row| mean(&row));
        let columns: [f32; PART[0]] = std::array::from_fn(|x| {
            let column: [f32; PART[1]] = self.values.map(|row| row[x]);
            mean(&column)
        });
        deviation(&rows).min(deviation(&columns))
    }
}

fn mean(values: &[f32]) -> f32 {
    values.iter().sum::<f32>() / values.len() as f32
}

/// Standard deviation.
fn deviation(values: &[f32]) -> f32 {
    let mean = mean(values);
    let squares = values.iter().map(|value| (value - mean) * (value - mean));
    (squares.sum::<f32>() / values.len() as f32).sqrt()
}
