// SPDX-License-Identifier: MPL-2.0
//! Fills a tensor in runs of [`LANES`] elements: positions → colors → border → levels → tensor.
//!
//! Each step is a loop over fixed arrays that the compiler vectorizes. The code is compiled for
//! several instruction sets; the best one is selected at run time.

use fearless_simd::{Simd, dispatch};

use super::grid::{Grid, LANES, Lanes, STEPS};
use super::level::round;
use super::picture::Picture;
use super::source::Samples;
use super::{Border, CHANNELS, Crop, Layout, Levels, ValueRange, Window};
use crate::image::{self, Arithmetic, ImageView, Pixels, Plane};
use crate::instructions::level;
use crate::memory::OutOfMemory;

/// Fills `tensor`, which has the crop's length, with the colors of the image's `window` at the
/// positions of `grid`. Both are in stored pixels.
pub(super) fn fill(
    image: &ImageView,
    crop: &Crop,
    grid: &Grid,
    window: &Window,
    tensor: &mut [f32],
) -> Result<(), OutOfMemory> {
    let target = Target { crop, grid, window };
    match image.pixels() {
        Pixels::Samples(layout, arithmetic) => {
            target.fill_from_samples(image, layout, *arithmetic, &image.planes(), tensor);
        }
        Pixels::Rows(rows) => {
            let needed = target.rows();
            let picture = Picture::unpack(&**rows, image.stored_size(), |row| {
                needed.get(row) == Some(&true)
            })?;
            let (layout, planes) = (rows.layout(), [picture.plane()]);
            target.fill_from_samples(image, layout, Arithmetic::Floats, &planes, tensor);
        }
    }
    Ok(())
}

/// The crop to sample, its positions, and the window of the image.
struct Target<'a> {
    crop: &'a Crop,
    grid: &'a Grid,
    window: &'a Window,
}

impl Target<'_> {
    fn fill_from_samples(
        &self,
        image: &ImageView,
        layout: &image::Layout,
        arithmetic: Arithmetic,
        planes: &[Plane<'_>],
        tensor: &mut [f32],
    ) {
        let samples = Samples::new(layout, arithmetic, image, planes);
        dispatch!(level(), simd => simd.vectorize(
            #[inline(always)]
            || self.fill_rows(&samples, tensor)
        ))
    }

    /// Returns true for each row of the image that is read, up to the last row of the window.
    fn rows(&self) -> Vec<bool> {
        let Window { y, height, .. } = *self.window;
        let (first, last) = (y as i32, (y + height) as i32 - 1);
        let mut needed = vec![false; y + height];
        let columns = [0, self.crop.width.saturating_sub(1)];
        for row in 0..self.crop.filled_rows() {
            let ends = columns.map(|column| self.grid.positions(1, column, row)[0] / STEPS);
            // One more row is read on either side, since positions between the ends are sums of
            // rounded steps.
            let from = (ends[0].min(ends[1]) - 1).clamp(first, last);
            let to = (ends[0].max(ends[1]) + 2).clamp(first, last);
            needed[from as usize..=to as usize].fill(true);
        }
        needed
    }

    #[inline(always)]
    fn fill_rows(&self, samples: &Samples, tensor: &mut [f32]) {
        let mut levels = [[0.0; LANES]; 3];
        let first = self.grid.whole_pixels().filter(|_| samples.are_bytes());
        for row in 0..self.crop.filled_rows() {
            for column in (0..self.crop.width).step_by(LANES) {
                let pixel = first.and_then(|first| self.run_of_pixels(first, column, row));
                match pixel {
                    Some([x, y]) => samples.pixels(x, y, &mut levels),
                    None => self.look_up(samples, column, row, &mut levels),
                }
                write(&levels, self.crop, column, row, tensor);
            }
        }
    }

    /// The pixel of element (`column`, `row`), if the [`LANES`] elements from there on coincide
    /// with pixels of the window, from an even column of the image on. Element (0, 0) coincides
    /// with pixel `first`.
    #[inline(always)]
    fn run_of_pixels(&self, first: [i32; 2], column: usize, row: usize) -> Option<[usize; 2]> {
        let x = usize::try_from(column as i64 + i64::from(first[0])).ok()?;
        let y = usize::try_from(row as i64 + i64::from(first[1])).ok()?;
        let Window {
            x: left,
            y: top,
            width,
            height,
        } = *self.window;
        let is_seen = x >= left && x + LANES <= left + width && y >= top && y < top + height;
        (is_seen && x.is_multiple_of(2)).then_some([x, y])
    }

    /// Writes red, green and blue, 0…255, of [`LANES`] tensor elements from (`column`, `row`) on.
    #[inline(always)]
    fn look_up(&self, samples: &Samples, column: usize, row: usize, levels: &mut [Lanes<f32>; 3]) {
        let (border, window) = (self.crop.border, self.window);
        let x = Axis::new(self.grid.positions(0, column, row), window.x, window.width);
        let y = Axis::new(self.grid.positions(1, column, row), window.y, window.height);
        if border == Border::Black && (x.is_outside() || y.is_outside()) {
            levels.as_flattened_mut().fill(0.0);
            return;
        }
        samples.colors(&x.inside(), &y.inside(), levels);
        if border == Border::Black && !(x.is_inside() && y.is_inside()) {
            fade(levels, &x, &y);
        }
        if self.crop.levels == Levels::Exact {
            return;
        }
        for level in levels.as_flattened_mut() {
            *level = round(*level);
        }
    }
}

/// Positions along one axis of a window, clamped to at most one pixel outside, where its pixels
/// have no weight.
struct Axis {
    positions: Lanes<i32>,
    /// Index of the first pixel, in steps.
    first: i32,
    /// Index of the last pixel, in steps.
    last: i32,
}

impl Axis {
    #[inline(always)]
    fn new(mut positions: Lanes<i32>, first: usize, count: usize) -> Self {
        let last = ((first + count) as i32 - 1) * STEPS;
        let first = first as i32 * STEPS;
        for p in &mut positions {
            *p = (*p).clamp(first - STEPS, last + STEPS);
        }
        Self {
            positions,
            first,
            last,
        }
    }

    /// Minimum and maximum position, which are at the ends, since a row of the grid is straight.
    #[inline(always)]
    fn extremes(&self) -> (i32, i32) {
        let (a, b) = (self.positions[0], self.positions[LANES - 1]);
        (a.min(b), a.max(b))
    }

    #[inline(always)]
    fn is_outside(&self) -> bool {
        let (min, max) = self.extremes();
        max == self.first - STEPS || min == self.last + STEPS
    }

    #[inline(always)]
    fn is_inside(&self) -> bool {
        let (min, max) = self.extremes();
        min >= self.first && max <= self.last
    }

    #[inline(always)]
    fn inside(&self) -> Lanes<i32> {
        let mut inside = [0; LANES];
        for (slot, p) in inside.iter_mut().zip(&self.positions) {
            *slot = (*p).clamp(self.first, self.last);
        }
        inside
    }

    /// Total weight of the neighbors inside the window, 0…1.
    #[inline(always)]
    fn coverage(&self, lane: usize) -> f32 {
        let p = self.positions[lane];
        let (from_first, from_last) = (p + STEPS - self.first, self.last + STEPS - p);
        let steps = from_first.min(from_last).min(STEPS);
        steps as f32 / STEPS as f32
    }
}

/// Blends colors at the border of the window with the black outside.
///
/// If a neighbor is outside, the color with a replicated border does not depend on the weight along
/// that axis. The color with a black border is therefore this color times the weight of the
/// neighbor inside.
#[inline(always)]
fn fade(colors: &mut [Lanes<f32>; 3], x: &Axis, y: &Axis) {
    for lane in 0..LANES {
        let coverage = x.coverage(lane) * y.coverage(lane);
        for channel in colors.iter_mut() {
            channel[lane] *= coverage;
        }
    }
}

/// Writes levels, mapped to the value range, to the positions of the tensor's layout.
#[inline(always)]
fn write(levels: &[Lanes<f32>; 3], crop: &Crop, column: usize, row: usize, tensor: &mut [f32]) {
    let count = LANES.min(crop.width - column);
    let ValueRange { min, max } = crop.range;
    let scale = [0, 1, 2].map(|channel: usize| (max[channel] - min[channel]) / 255.0);
    let first = row * crop.width + column;
    match crop.layout {
        Layout::Planar => {
            let planes = tensor.chunks_exact_mut(crop.width * crop.height);
            for (channel, plane) in planes.enumerate() {
                let slots = plane[first..first + count].iter_mut();
                for (slot, level) in slots.zip(&levels[channel]) {
                    *slot = level * scale[channel] + min[channel];
                }
            }
        }
        Layout::Interleaved => {
            let pixels = tensor[first * CHANNELS..][..count * CHANNELS].chunks_exact_mut(CHANNELS);
            for (lane, pixel) in pixels.enumerate() {
                for (channel, slot) in pixel.iter_mut().enumerate() {
                    *slot = levels[channel][lane] * scale[channel] + min[channel];
                }
            }
        }
    }
}
