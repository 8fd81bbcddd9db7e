// SPDX-License-Identifier: MPL-2.0
//! Reads runs of adjacent pixels, for which only chroma is interpolated.

use super::Rows;
use crate::sample::grid::{LANES, Lanes};

/// Chroma samples of [`LANES`] pixels, and one on either side.
const CHROMA: usize = LANES / 2 + 2;

/// The samples of a component, at equal distances in a plane.
#[derive(Clone, Copy)]
pub struct Component<'a> {
    rows: Rows<'a>,
    /// Bytes before the first sample of a row.
    offset: usize,
    /// Bytes from one sample to the next.
    step: usize,
}

/// Weights, in quarters, of the previous chroma sample for an even pixel, and of the next chroma
/// sample for an odd pixel; the sample of the pixel itself has the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Quarters(pub [u8; 2]);

impl Quarters {
    /// Each sample is repeated for two pixels.
    pub const REPEATED: Self = Self([0, 0]);

    /// Samples are on the even pixels, or between two pixels.
    pub fn interpolated(cosited: bool) -> Self {
        Self(if cosited { [0, 2] } else { [1, 1] })
    }
}

impl<'a> Component<'a> {
    pub fn new(rows: Rows<'a>, offset: usize, step: usize) -> Self {
        Self { rows, offset, step }
    }

    /// `N` samples from column `x` of row `y` on.
    #[inline(always)]
    pub fn run<const N: usize>(&self, x: usize, y: usize) -> [u8; N] {
        let row = self.rows.row(y);
        let bytes = row.get(self.offset + x * self.step..).unwrap_or_default();
        match self.step {
            1 => every::<1, N>(bytes),
            2 => every::<2, N>(bytes),
            3 => every::<3, N>(bytes),
            _ => every::<4, N>(bytes),
        }
    }

    /// Horizontally interpolated chroma of the pixels from the even column `x` on. Row `y` has
    /// `count` samples. Rounded like in `GstVideoChromaResample`.
    #[inline(always)]
    pub fn columns(&self, x: usize, y: usize, count: usize, quarters: Quarters) -> Lanes<u8> {
        let samples = self.with_neighbours(x / 2, y, count);
        let Quarters([before, after]) = quarters;
        let mut out = [0; LANES];
        for i in 0..LANES / 2 {
            out[2 * i] = blend(samples[i + 1], samples[i], before);
            out[2 * i + 1] = blend(samples[i + 1], samples[i + 2], after);
        }
        out
    }

    /// The sample before column `x`, and the samples from there on. The first and the last of
    /// `count` samples are repeated beyond the ends.
    #[inline(always)]
    fn with_neighbours(&self, x: usize, y: usize, count: usize) -> [u8; CHROMA] {
        if x > 0 && x + CHROMA - 1 <= count {
            return self.run(x - 1, y);
        }
        let row = self.rows.row(y);
        let mut out = [0; CHROMA];
        for i in 0..CHROMA {
            let column = (x + i).saturating_sub(1).min(count - 1);
            let sample = row.get(self.offset + column * self.step);
            out[i] = sample.copied().unwrap_or(0);
        }
        out
    }
}

/// The mean of two samples, with `quarters` quarters of `other`, rounded to the nearest level, ties
/// up.
#[inline(always)]
pub fn blend(own: u8, other: u8, quarters: u8) -> u8 {
    let (own, other, quarters) = (u16::from(own), u16::from(other), u16::from(quarters));
    ((own * (4 - quarters) + other * quarters + 2) >> 2) as u8
}

/// The first of every `STEP` bytes.
#[inline(always)]
fn every<const STEP: usize, const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let bytes = bytes.get(..(N - 1) * STEP + 1).unwrap_or_default();
    if bytes.len() > (N - 1) * STEP {
        for i in 0..N {
            out[i] = bytes[i * STEP];
        }
    }
    out
}
