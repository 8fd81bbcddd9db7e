// SPDX-License-Identifier: MPL-2.0
//! Walks a tensor in runs of [`LANES`] elements: positions → colours → border → levels → tensor.
//!
//! Each step is a loop over fixed arrays that the compiler turns into SIMD; the whole is compiled once for each
//! instruction set and the machine's best is chosen at run time.

use fearless_simd::{Level, Simd, dispatch};

use super::grid::{Grid, LANES, Lanes, STEPS};
use super::level::round;
use super::source::{Gray, PackedRgb, Source, Yuv};
use super::{Border, CHANNELS, Crop, Layout};
use crate::face::image::ImageView;
use crate::face::image::PixelFormat::*;

/// Fills `tensor`, which has the crop's length, with the image's colours at the grid's positions.
pub fn fill(image: &ImageView, crop: &Crop, grid: &Grid, tensor: &mut [f32]) {
    match image.format() {
        Rgb | Bgr => fill_from(&PackedRgb::<3>::new(image), crop, grid, tensor),
        Rgbx | Bgrx | Xrgb | Xbgr => fill_from(&PackedRgb::<4>::new(image), crop, grid, tensor),
        Gray8 => fill_from(&Gray::new(image), crop, grid, tensor),
        Nv12 | Nv21 => fill_from(&Yuv::semi_planar(image), crop, grid, tensor),
        I420 | Yv12 => fill_from(&Yuv::planar(image), crop, grid, tensor),
        Yuy2 | Uyvy => fill_from(&Yuv::packed(image), crop, grid, tensor),
    }
}

fn fill_from<S: Source>(source: &S, crop: &Crop, grid: &Grid, tensor: &mut [f32]) {
    dispatch!(Level::new(), simd => simd.vectorize(
        #[inline(always)]
        || fill_rows(source, crop, grid, tensor)
    ))
}

#[inline(always)]
fn fill_rows<S: Source>(source: &S, crop: &Crop, grid: &Grid, tensor: &mut [f32]) {
    let mut levels = [[0.0; LANES]; 3];
    let first = grid.whole_pixels();
    for row in 0..crop.height {
        for column in (0..crop.width).step_by(LANES) {
            let pixel = first.and_then(|first| run_of_pixels(source.size(), first, column, row));
            match pixel {
                Some([x, y]) => source.pixels(x, y, &mut levels),
                None => look_up(source, crop.border, grid, column, row, &mut levels),
            }
            write(&levels, crop, column, row, tensor);
        }
    }
}

/// The pixel that element (`column`, `row`) lies on, if the [`LANES`] elements from there on lie on an image's pixels from
/// an even column on.
#[inline(always)]
fn run_of_pixels(
    [width, height]: [usize; 2],
    first: [i32; 2],
    column: usize,
    row: usize,
) -> Option<[usize; 2]> {
    let x = usize::try_from(column as i64 + i64::from(first[0])).ok()?;
    let y = usize::try_from(row as i64 + i64::from(first[1])).ok()?;
    (x.is_multiple_of(2) && x + LANES <= width && y < height).then_some([x, y])
}

/// Writes red, green and blue, whole numbers of 0…255, of [`LANES`] tensor elements from (`column`, `row`) on.
#[inline(always)]
fn look_up<S: Source>(
    source: &S,
    border: Border,
    grid: &Grid,
    column: usize,
    row: usize,
    levels: &mut [Lanes<f32>; 3],
) {
    let [width, height] = source.size();
    let x = Axis::new(grid, 0, column, row, width);
    let y = Axis::new(grid, 1, column, row, height);
    if border == Border::Black && (x.is_outside() || y.is_outside()) {
        levels.as_flattened_mut().fill(0.0);
        return;
    }
    source.colors(&x.inside(), &y.inside(), levels);
    if border == Border::Black && !(x.is_inside() && y.is_inside()) {
        fade(levels, &x, &y);
    }
    for level in levels.as_flattened_mut() {
        *level = round(*level);
    }
}

/// Positions along one axis of the image, brought to at most one pixel outside it: there nothing of it is left.
struct Axis {
    positions: Lanes<i32>,
    /// Index of the last pixel, in steps.
    last: i32,
}

impl Axis {
    #[inline(always)]
    fn new(grid: &Grid, axis: usize, column: usize, row: usize, count: usize) -> Self {
        let mut positions = grid.positions(axis, column, row);
        let last = (count as i32 - 1) * STEPS;
        for p in &mut positions {
            *p = (*p).clamp(-STEPS, last + STEPS);
        }
        Self { positions, last }
    }

    /// Smallest and largest position; a row of the grid is straight, so they are at the ends.
    #[inline(always)]
    fn extremes(&self) -> (i32, i32) {
        let (a, b) = (self.positions[0], self.positions[LANES - 1]);
        (a.min(b), a.max(b))
    }

    #[inline(always)]
    fn is_outside(&self) -> bool {
        let (min, max) = self.extremes();
        max == -STEPS || min == self.last + STEPS
    }

    #[inline(always)]
    fn is_inside(&self) -> bool {
        let (min, max) = self.extremes();
        min >= 0 && max <= self.last
    }

    #[inline(always)]
    fn inside(&self) -> Lanes<i32> {
        let mut inside = [0; LANES];
        for (slot, p) in inside.iter_mut().zip(&self.positions) {
            *slot = (*p).clamp(0, self.last);
        }
        inside
    }

    /// The part of an interpolated value that comes from inside the image, 0…1.
    #[inline(always)]
    fn coverage(&self, lane: usize) -> f32 {
        let p = self.positions[lane];
        let steps = (p + STEPS).min(self.last + STEPS - p).min(STEPS);
        steps as f32 / STEPS as f32
    }
}

/// Blends colours at the image's border with the black outside.
///
/// Where a neighbour lies outside, a replicated border makes the colour independent of the weight along that axis, so
/// what a black border leaves is that colour times the weight of the neighbour inside.
#[inline(always)]
fn fade(colors: &mut [Lanes<f32>; 3], x: &Axis, y: &Axis) {
    for lane in 0..LANES {
        let coverage = x.coverage(lane) * y.coverage(lane);
        for channel in colors.iter_mut() {
            channel[lane] *= coverage;
        }
    }
}

/// Puts levels, mapped to the value range, where the layout wants them.
#[inline(always)]
fn write(levels: &[Lanes<f32>; 3], crop: &Crop, column: usize, row: usize, tensor: &mut [f32]) {
    let count = LANES.min(crop.width - column);
    let scale = (crop.range.max - crop.range.min) / 255.0;
    let value = |level: f32| level * scale + crop.range.min;
    let first = row * crop.width + column;
    match crop.layout {
        Layout::Planar => {
            for (plane, levels) in tensor
                .chunks_exact_mut(crop.width * crop.height)
                .zip(levels)
            {
                for (slot, level) in plane[first..first + count].iter_mut().zip(levels) {
                    *slot = value(*level);
                }
            }
        }
        Layout::Interleaved => {
            let pixels = tensor[first * CHANNELS..][..count * CHANNELS].chunks_exact_mut(CHANNELS);
            for (lane, pixel) in pixels.enumerate() {
                for (slot, channel) in pixel.iter_mut().zip(levels) {
                    *slot = value(channel[lane]);
                }
            }
        }
    }
}
