// SPDX-License-Identifier: MPL-2.0
//! Reads runs of whole pixels side by side, where only chroma lies between its samples.

use super::Rows;
use crate::sample::grid::{LANES, Lanes};

/// Chroma samples of [`LANES`] pixels, and one on either side.
const CHROMA: usize = LANES / 2 + 2;

/// The samples of one kind in a plane where they lie at equal distances.
#[derive(Clone, Copy)]
pub struct Component<'a> {
    rows: Rows<'a>,
    /// Bytes before the first one of a row.
    offset: usize,
    /// Bytes from one to the next.
    step: usize,
}

/// Quarters that the neighbour before an even pixel, and that the one after an odd pixel, has in chroma of half
/// resolution; the sample of the pixel itself has the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Quarters(pub [u8; 2]);

impl Quarters {
    /// Each sample holds for two pixels.
    pub const REPEATED: Self = Self([0, 0]);

    /// Samples lie on the even pixels or between two pixels.
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

    /// Chroma of half the columns, of which row `y` has `count`, at the pixels from the even column `x` on; rounded as
    /// `GstVideoChromaResample` does.
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

    /// The sample before column `x`, and those from there on; the first and the last of `count` are repeated where there
    /// is none.
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

/// The nearest level to a mean in which `other` has so many quarters, upwards from the middle.
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
