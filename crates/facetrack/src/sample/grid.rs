// SPDX-License-Identifier: MPL-2.0
//! Positions of tensor elements in the image, in fixed point.

use super::{FARTHEST, SampleError};
use crate::geometry::{Affine, RotatedRect};

/// Number of tensor elements that are processed together: some SIMD registers, and a divisor of the
/// networks' input widths.
pub(super) const LANES: usize = 64;

/// One value for each element of a run of [`LANES`] elements in a tensor row.
pub(super) type Lanes<T> = [T; LANES];

/// Binary digits after the point of rounded positions in pixels: OpenCV's `INTER_BITS`.
pub(super) const STEP_BITS: u32 = 5;

/// Steps in a pixel.
pub(super) const STEPS: i32 = 1 << STEP_BITS;

/// Binary digits after the point of a running position, which counts 32nds of a pixel. With
/// [`FARTHEST`] = 2²⁴ pixels = 2²⁹ steps a position needs 30 digits before it.
const FRACTION_BITS: u32 = 32;

/// The positions of all tensor elements in the image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    /// Image position of tensor element (0, 0).
    origin: [f64; 2],
    /// Step from one column to the next.
    per_column: [f64; 2],
    /// Step from one row to the next.
    per_row: [f64; 2],
}

impl Grid {
    /// The grid of `width`×`height` elements over `roi`. A displayed column spans `column_scale`
    /// stored columns.
    pub(super) fn new(
        roi: &RotatedRect,
        width: usize,
        height: usize,
        column_scale: f64,
    ) -> Result<Self, SampleError> {
        let (center, size) = (roi.center, roi.size);
        let numbers = [center.x, center.y, size.width, size.height, roi.rotation];
        let is_finite = numbers.iter().all(|number| number.is_finite());
        if !is_finite || size.width <= 0.0 || size.height <= 0.0 {
            return Err(SampleError::Region(*roi));
        }
        let [bottom_left, top_left, top_right] = corners(roi);
        let beyond = |v: f64| {
            (v.abs() + size.width as f64 + size.height as f64) * column_scale.max(1.0) > FARTHEST
        };
        if top_left.iter().any(|v| beyond(*v)) {
            return Err(SampleError::TooFar(*roi));
        }
        let step = |axis: usize, end: [f64; 2], count: usize| {
            (end[axis] - top_left[axis]) / count.max(1) as f64
        };
        Ok(Self {
            origin: top_left,
            per_column: [step(0, top_right, width), step(1, top_right, width)],
            per_row: [step(0, bottom_left, height), step(1, bottom_left, height)],
        })
    }

    /// The same grid in stored pixels. A displayed column spans `scale` stored columns.
    pub(super) fn stored(self, scale: f64) -> Self {
        let along_rows = |[x, y]: [f64; 2]| [x * scale, y];
        Self {
            origin: along_rows(self.origin),
            per_column: along_rows(self.per_column),
            per_row: along_rows(self.per_row),
        }
    }

    /// The grid as a transform.
    pub(super) fn image_from_tensor(&self) -> Affine {
        Affine {
            xx: self.per_column[0] as f32,
            xy: self.per_row[0] as f32,
            x0: self.origin[0] as f32,
            yx: self.per_column[1] as f32,
            yy: self.per_row[1] as f32,
            y0: self.origin[1] as f32,
        }
    }

    /// The pixel of element (0, 0), if elements coincide with pixels, one to one.
    pub(super) fn whole_pixels(&self) -> Option<[i32; 2]> {
        let is_straight = self.per_column == [1.0, 0.0] && self.per_row == [0.0, 1.0];
        let is_whole = self.origin.iter().all(|position| position.fract() == 0.0);
        (is_straight && is_whole).then_some(self.origin.map(|position| position as i32))
    }

    /// One coordinate (0 = x, 1 = y) of [`LANES`] elements from (`column`, `row`) on, in steps.
    #[inline(always)]
    pub(super) fn positions(&self, axis: usize, column: usize, row: usize) -> Lanes<i32> {
        let one = STEPS as f64 * (1u64 << FRACTION_BITS) as f64;
        let start = self.origin[axis]
            + self.per_column[axis] * column as f64
            + self.per_row[axis] * row as f64;
        let step = (self.per_column[axis] * one) as i64;
        let mut position = (start * one) as i64;
        let mut out = [0; LANES];
        for slot in &mut out {
            *slot = round_half_even(position);
            position = position.wrapping_add(step);
        }
        out
    }
}

/// Rounds to the nearest step, ties to even, like OpenCV's `cvRound`.
#[inline(always)]
fn round_half_even(position: i64) -> i32 {
    const BELOW_HALF: i64 = (1 << (FRACTION_BITS - 1)) - 1;
    let odd = (position >> FRACTION_BITS) & 1;
    (position.wrapping_add(BELOW_HALF + odd) >> FRACTION_BITS) as i32
}

/// Bottom-left, top-left and top-right corner (before rotation), rounded to `f32` like in OpenCV's
/// `RotatedRect::points`.
fn corners(roi: &RotatedRect) -> [[f64; 2]; 3] {
    let (sin, cos) = libm::sincos(roi.rotation as f64);
    let (a, b) = (sin as f32 * 0.5, cos as f32 * 0.5);
    let (w, h) = (roi.size.width, roi.size.height);
    let (cx, cy) = (roi.center.x, roi.center.y);
    let bottom_left = [cx - a * h - b * w, cy + b * h - a * w];
    let top_left = [cx + a * h - b * w, cy - b * h - a * w];
    let top_right = [2.0 * cx - bottom_left[0], 2.0 * cy - bottom_left[1]];
    [bottom_left, top_left, top_right].map(|corner| corner.map(f64::from))
}
