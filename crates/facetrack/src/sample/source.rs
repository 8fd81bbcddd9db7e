// SPDX-License-Identifier: MPL-2.0
//! Reads the four neighbors of each position from frames of all formats, and interpolates between
//! them.
//!
//! Positions are inside the image, in 32nds of a pixel, from the index of the first pixel to the
//! index of the last. The neighbors are pixel `first` and the next one. `first` is at most the last
//! but one pixel; on the last pixel the second neighbor has the whole weight. Therefore nothing
//! outside the image is read, except if a side has a single pixel: then the second neighbor has no
//! weight.

mod gray;
mod pixels;
mod rgb;
mod samples;
mod yuv;

pub use gray::Gray;
pub use rgb::PackedRgb;
pub use samples::{Gray as GrayLevels, Samples, spans};
pub use yuv::Yuv;

use super::color::{Spread, spread};
use super::grid::{LANES, Lanes, STEP_BITS};
use super::level::code;
use crate::image::Plane;

/// Colors at positions.
pub trait Source {
    /// Writes red, green and blue, 0…255 and not rounded, at positions inside the image.
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>, out: &mut [Lanes<f32>; 3]);

    /// Writes red, green and blue, whole numbers of 0…255, of [`LANES`] pixels of row `y` from the
    /// even column `x` on. The result equals [`Source::colors`], but is computed faster.
    fn pixels(&self, x: usize, y: usize, out: &mut [Lanes<f32>; 3]);
}

/// Neighbors of positions along one axis.
struct Neighbours {
    first: Lanes<u32>,
    /// Weight of the second neighbor; the first one has the rest.
    weight: Lanes<f32>,
}

impl Neighbours {
    /// `positions` are in 2^−`BITS` of the distance between two of `count` samples.
    #[inline(always)]
    fn new<const BITS: u32>(positions: &Lanes<i32>, count: usize) -> Self {
        let last_first = count.saturating_sub(2) as i32;
        let mut out = Self {
            first: [0; LANES],
            weight: [0.0; LANES],
        };
        for i in 0..LANES {
            let first = (positions[i] >> BITS).min(last_first);
            out.first[i] = first as u32;
            out.weight[i] = (positions[i] - (first << BITS)) as f32 / (1 << BITS) as f32;
        }
        out
    }
}

/// Neighbors of positions in a plane.
pub struct Raster {
    x: Neighbours,
    y: Neighbours,
}

impl Raster {
    /// In a plane of one sample for each pixel.
    #[inline(always)]
    fn new(x: &Lanes<i32>, y: &Lanes<i32>, size: [usize; 2]) -> Self {
        Self {
            x: Neighbours::new::<STEP_BITS>(x, size[0]),
            y: Neighbours::new::<STEP_BITS>(y, size[1]),
        }
    }
}

/// A plane to read vertical neighbors from.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    /// The plane without its last row.
    upper: &'a [u8],
    /// The plane without its first row, as long as `upper`, so that one bounds check is enough for
    /// both. If the plane has a single row, both have it.
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

/// The byte of `word` at bit `shift`.
#[inline(always)]
fn byte(word: u32, shift: u32) -> f32 {
    ((word >> shift) & 0xff) as i32 as f32
}

/// Bilinear interpolation; exact in `f32` for 8-bit samples and weights of up to 6 binary digits.
#[inline(always)]
fn blend(top: [f32; 2], bottom: [f32; 2], wx: f32, wy: f32) -> f32 {
    let top = top[0] + (top[1] - top[0]) * wx;
    let bottom = bottom[0] + (bottom[1] - bottom[0]) * wx;
    top + (bottom - top) * wy
}

/// Bit positions of the top left, top right, bottom left and bottom right neighbor in a word of
/// [`join`].
const LUMA_SHIFTS: [u32; 4] = [0, 8, 16, 24];

/// Two pairs of bytes in one word.
#[inline(always)]
fn join(pairs: [[u8; 2]; 2]) -> u32 {
    let [low, high] = pairs.map(u16::from_le_bytes);
    u32::from(low) | u32::from(high) << 16
}

/// Interpolates luma stored in words.
#[inline(always)]
fn blend_luma(words: &Lanes<u32>, raster: &Raster, out: &mut Lanes<Spread>) {
    for i in 0..LANES {
        let [a, b, c, d] = LUMA_SHIFTS.map(|shift| byte(words[i], shift));
        let luma = blend([a, b], [c, d], raster.x.weight[i], raster.y.weight[i]);
        out[i] = spread(code(luma));
    }
}
