// SPDX-License-Identifier: MPL-2.0
//! Reads the four neighbors of each position from frames of all formats, and interpolates between
//! them.
//!
//! Positions are inside the image, in 32nds of a pixel, from the index of the first pixel to the
//! index of the last. The neighbors are pixel `first` and the next one. `first` is at most the last
//! but one pixel; on the last pixel the second neighbor has the whole weight. Therefore nothing
//! outside the image is read, except if a side has a single pixel: then the second neighbor has no
//! weight.

mod channel;
mod samples;

pub(super) use samples::Samples;

use super::grid::{LANES, Lanes, STEP_BITS, STEPS};
use super::level::round;
use crate::image::Plane;

/// Neighbors of positions along one axis.
struct Neighbours {
    first: Lanes<u32>,
    /// Weight of the second neighbor; the first one has the rest.
    weight: Lanes<f32>,
}

impl Neighbours {
    /// Neighbors along an axis of `count` samples that 2ⁿ pixels each share, for pixel `positions`.
    #[inline(always)]
    fn interpolated(positions: &Lanes<i32>, n: u32, cosited: bool, count: usize) -> Self {
        let bits = STEP_BITS + n;
        // Without cositing a sample is in the middle of its pixels.
        let middle = if cosited {
            0
        } else {
            STEPS / 2 * ((1 << n) - 1)
        };
        let last = (count as i32 - 1) << bits;
        let last_first = count.saturating_sub(2) as i32;
        let unit = 1.0 / (1u32 << bits) as f32;
        let mut out = Self {
            first: [0; LANES],
            weight: [0.0; LANES],
        };
        for i in 0..LANES {
            let own = (positions[i] - middle).clamp(0, last);
            let first = (own >> bits).min(last_first);
            out.first[i] = first as u32;
            out.weight[i] = (own - (first << bits)) as f32 * unit;
        }
        out
    }

    /// Neighbors along an axis of `count` samples that are repeated for two pixels each, for pixel
    /// `positions`.
    #[inline(always)]
    fn repeated(positions: &Lanes<i32>, count: usize) -> Self {
        let mut own = [0; LANES];
        for i in 0..LANES {
            let pixel = positions[i] >> STEP_BITS;
            // The sample changes only after an odd pixel.
            let weight = (positions[i] & (STEPS - 1)) * (pixel & 1);
            own[i] = ((pixel >> 1) << STEP_BITS) + weight;
        }
        Self::interpolated(&own, 0, true, count)
    }
}

/// Neighbors of positions in a plane.
pub(super) struct Raster {
    x: Neighbours,
    y: Neighbours,
}

/// A plane to read vertical neighbors from.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// The plane without its last row.
    upper: &'a [u8],
    /// The plane without its first row, as long as `upper`, so that one bounds check is enough for
    /// both. If the plane has a single row, both are this row.
    lower: &'a [u8],
    stride: u32,
}

impl<'a> Rows<'a> {
    fn new(plane: Plane<'a>, rows: usize) -> Self {
        let below = if rows > 1 { plane.stride } else { 0 };
        let lower = plane.data.get(below..).unwrap_or_default();
        let upper = plane.data.get(..lower.len()).unwrap_or_default();
        Self {
            upper,
            lower,
            stride: plane.stride as u32,
        }
    }

    /// The bytes from row `y` on.
    #[inline(always)]
    fn row(&self, y: usize) -> &'a [u8] {
        let stride = self.stride as usize;
        let row = match y.checked_sub(1) {
            None => Some(self.upper),
            Some(above) => self.lower.get(above * stride..),
        };
        row.unwrap_or_default()
    }

    /// Byte offsets of pixels of `bytes` bytes; an image's planes are known to hold less than 4
    /// GiB.
    #[inline(always)]
    fn offsets(&self, Raster { x, y }: &Raster, bytes: u32) -> Lanes<u32> {
        let mut out = [0; LANES];
        for i in 0..LANES {
            let row = y.first[i].wrapping_mul(self.stride);
            out[i] = row.wrapping_add(x.first[i].wrapping_mul(bytes));
        }
        out
    }

    /// `N` bytes from `offset` on, and the bytes below them. Bytes beyond the end are read as 0;
    /// they are padding or have a weight of 0.
    #[inline(always)]
    fn pair<const N: usize>(&self, offset: u32) -> [[u8; N]; 2] {
        let range = offset as usize..offset as usize + N;
        match (self.upper.get(range.clone()), self.lower.get(range)) {
            (Some(upper), Some(lower)) => [copy(upper), copy(lower)],
            _ => [load_tail(self.upper, offset), load_tail(self.lower, offset)],
        }
    }
}

#[inline(always)]
fn copy<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().unwrap_or([0; N])
}

#[cold]
fn load_tail<const N: usize>(data: &[u8], offset: u32) -> [u8; N] {
    std::array::from_fn(|i| data.get(offset as usize + i).copied().unwrap_or(0))
}

/// Bilinear interpolation; exact in `f32` for 8-bit samples and weights of up to 6 binary digits.
#[inline(always)]
fn blend(top: [f32; 2], bottom: [f32; 2], wx: f32, wy: f32) -> f32 {
    let top = top[0] + (top[1] - top[0]) * wx;
    let bottom = bottom[0] + (bottom[1] - bottom[0]) * wx;
    top + (bottom - top) * wy
}

/// [`blend`] that rounds along rows, like `GstVideoChromaResample`.
#[inline(always)]
fn blend_rows(top: [f32; 2], bottom: [f32; 2], wx: f32, wy: f32) -> f32 {
    let top = round(top[0] + (top[1] - top[0]) * wx);
    let bottom = round(bottom[0] + (bottom[1] - bottom[0]) * wx);
    top + (bottom - top) * wy
}
