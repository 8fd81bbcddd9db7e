// SPDX-License-Identifier: MPL-2.0
//! The samples of one component.

use smart_default::SmartDefault;

use super::{Neighbours, Raster, Rows, copy};
use crate::image::{ChromaSite, Component, MAX_STEP, Plane, Word};
use crate::sample::grid::{LANES, Lanes};

/// Maximum number of bytes of a word.
pub(super) const WORD: usize = 4;

/// Chroma samples of [`LANES`] pixels, and one on either side.
const CHROMA: usize = LANES / 2 + 2;

/// Position of the word that is read for a component's sample. Components whose samples are in the
/// same four bytes are read together.
#[derive(Clone, Copy)]
pub(super) struct Located {
    /// Bytes before the first word.
    pub offset: usize,
    /// Bytes of the word.
    pub bytes: usize,
    /// Bytes from a word to the next.
    pub step: usize,
    /// Lowest bit of the sample in the word.
    pub bit: u32,
    /// True if the previous component has the same word.
    pub is_shared: bool,
}

/// The words that hold the samples at positions, in the upper and in the lower row. If a sample and
/// its right neighbour fit into one word, only `left` is used.
#[derive(SmartDefault)]
pub(super) struct Words {
    #[default([[0; LANES]; 2])]
    left: [Lanes<u32>; 2],
    #[default([[0; LANES]; 2])]
    right: [Lanes<u32>; 2],
}

/// The samples of one component.
pub(super) struct Channel<'a> {
    rows: Rows<'a>,
    /// Columns and rows of samples.
    size: [usize; 2],
    subsampling: [u32; 2],
    /// True if a sample is on the first of the columns, and rows, that share it; `None` if samples
    /// are repeated instead of interpolated.
    cosited: Option<[bool; 2]>,
    /// Bytes from a sample to the next.
    pub step: u32,
    /// Bytes that hold the words of a sample and its right neighbour.
    span: usize,
    is_big_endian: bool,
    bit: u32,
    mask: u32,
    /// True if the previous channel's words hold the samples.
    pub is_shared: bool,
}

impl<'a> Channel<'a> {
    /// Creates a channel. Without a `site`, samples are repeated.
    pub(super) fn new(
        component: &Component,
        located: Located,
        size: [usize; 2],
        site: Option<ChromaSite>,
        plane: Plane<'a>,
    ) -> Self {
        let size = component.samples(size);
        let data = plane.data.get(located.offset..).unwrap_or_default();
        let rows = Rows::new(Plane { data, ..plane }, size[1]);
        Self {
            rows,
            size,
            subsampling: component.subsampling,
            cosited: site.map(|site| [site.horizontally_cosited, site.vertically_cosited]),
            step: component.step as u32,
            span: located.step + located.bytes,
            is_big_endian: component.word == Word::Be16,
            bit: located.bit,
            mask: component.max_code(),
            is_shared: located.is_shared,
        }
    }

    /// The neighbours of pixel positions.
    #[inline(always)]
    pub(super) fn raster(&self, x: &Lanes<i32>, y: &Lanes<i32>) -> Raster {
        Raster {
            x: self.neighbours(x, 0),
            y: self.neighbours(y, 1),
        }
    }

    #[inline(always)]
    fn neighbours(&self, positions: &Lanes<i32>, axis: usize) -> Neighbours {
        let (n, count) = (self.subsampling[axis], self.size[axis]);
        match self.cosited {
            Some(cosited) => Neighbours::interpolated(positions, n, cosited[axis], count),
            None => Neighbours::repeated(positions, count),
        }
    }

    /// Reads the words at the positions of `raster`.
    #[inline(always)]
    pub(super) fn gather(&self, raster: &Raster, words: &mut Words) {
        match self.span {
            ..=4 => self.gather_in::<4>(raster, words),
            5..=8 => self.gather_in::<8>(raster, words),
            _ => self.gather_in::<16>(raster, words),
        }
    }

    /// `SPAN` bytes hold the words of a sample and its right neighbour.
    #[inline(always)]
    fn gather_in<const SPAN: usize>(&self, raster: &Raster, words: &mut Words) {
        let offsets = self.rows.offsets(raster, self.step);
        let step = (self.step as usize).min(MAX_STEP);
        for i in 0..LANES {
            for (row, bytes) in self.rows.pair::<SPAN>(offsets[i]).iter().enumerate() {
                words.left[row][i] = word(bytes, 0);
                match SPAN {
                    4 => (),
                    8 => words.right[row][i] = (double_word(bytes) >> (8 * step)) as u32,
                    _ => words.right[row][i] = word(bytes, step),
                }
            }
        }
        if self.is_big_endian {
            swap(&mut words.left);
            swap(&mut words.right);
        }
    }

    /// Writes the codes at the positions of `raster`, which `blend` makes of the neighbours.
    #[inline(always)]
    pub(super) fn interpolate(
        &self,
        Words { left, right }: &Words,
        raster: &Raster,
        out: &mut Lanes<f32>,
        blend: impl Fn([f32; 2], [f32; 2], f32, f32) -> f32,
    ) {
        let (right, right_bit) = if self.span <= WORD {
            (left, self.bit + 8 * self.step)
        } else {
            (right, self.bit)
        };
        let code = |word: u32, bit: u32| ((word >> bit) & self.mask) as i32 as f32;
        for i in 0..LANES {
            let top = [code(left[0][i], self.bit), code(right[0][i], right_bit)];
            let bottom = [code(left[1][i], self.bit), code(right[1][i], right_bit)];
            out[i] = blend(top, bottom, raster.x.weight[i], raster.y.weight[i]);
        }
    }

    /// `N` samples of one byte, `STEP` bytes apart, from column `x` of row `y` on.
    #[inline(always)]
    pub(super) fn run<const STEP: usize, const N: usize>(&self, x: usize, y: usize) -> [u8; N] {
        let bytes = self.row(y).get(x * STEP..).unwrap_or_default();
        let bytes = bytes.get(..(N - 1) * STEP + 1).unwrap_or_default();
        let mut out = [0; N];
        if bytes.len() > (N - 1) * STEP {
            for i in 0..N {
                out[i] = bytes[i * STEP];
            }
        }
        out
    }

    /// The bytes from the first sample of row `y` on.
    #[inline(always)]
    fn row(&self, y: usize) -> &[u8] {
        let row = self.rows.row(y);
        row.get(self.bit as usize / 8..).unwrap_or_default()
    }

    /// Chroma of one byte, `STEP` bytes apart, of the pixels from the even column `x` of row `y` on.
    #[inline(always)]
    pub(super) fn chroma<const STEP: usize>(&self, x: usize, y: usize) -> Lanes<u8> {
        let own = y >> self.subsampling[1];
        let [before, after] = self.quarters(1);
        let (other, quarters) = if y.is_multiple_of(2) {
            (own.saturating_sub(1), before)
        } else {
            ((own + 1).min(self.size[1] - 1), after)
        };
        let mut codes = self.columns::<STEP>(x, own);
        if quarters > 0 {
            let other = self.columns::<STEP>(x, other);
            for i in 0..LANES {
                codes[i] = mean(codes[i], other[i], quarters);
            }
        }
        codes
    }

    /// Weights, in quarters, of the previous chroma sample for an even pixel, and of the next
    /// chroma sample for an odd pixel; the sample of the pixel itself has the rest.
    #[inline(always)]
    fn quarters(&self, axis: usize) -> [u8; 2] {
        match self.cosited {
            Some(cosited) if self.subsampling[axis] > 0 => {
                if cosited[axis] {
                    [0, 2]
                } else {
                    [1, 1]
                }
            }
            _ => [0, 0],
        }
    }

    /// Horizontally interpolated chroma of the pixels from the even column `x` on, of row `y` of
    /// samples. Rounded like in `GstVideoChromaResample`.
    #[inline(always)]
    fn columns<const STEP: usize>(&self, x: usize, y: usize) -> Lanes<u8> {
        let samples = self.with_neighbours::<STEP>(x / 2, y);
        let [before, after] = self.quarters(0);
        let mut out = [0; LANES];
        for i in 0..LANES / 2 {
            out[2 * i] = mean(samples[i + 1], samples[i], before);
            out[2 * i + 1] = mean(samples[i + 1], samples[i + 2], after);
        }
        out
    }

    /// The sample before column `x`, and the samples from there on. The first and the last sample
    /// are repeated beyond the ends.
    #[inline(always)]
    fn with_neighbours<const STEP: usize>(&self, x: usize, y: usize) -> [u8; CHROMA] {
        let [count, _] = self.size;
        if x > 0 && x + CHROMA - 1 <= count {
            return self.run::<STEP, CHROMA>(x - 1, y);
        }
        let row = self.row(y);
        let mut out = [0; CHROMA];
        for i in 0..CHROMA {
            let column = (x + i).saturating_sub(1).min(count - 1);
            let sample = row.get(column * STEP);
            out[i] = sample.copied().unwrap_or(0);
        }
        out
    }
}

/// Four bytes from `at` on.
#[inline(always)]
fn word<const SPAN: usize>(bytes: &[u8; SPAN], at: usize) -> u32 {
    u32::from_le_bytes(copy(&bytes[at..at + WORD]))
}

/// The first eight bytes.
#[inline(always)]
fn double_word<const SPAN: usize>(bytes: &[u8; SPAN]) -> u64 {
    u64::from(word(bytes, 0)) | u64::from(word(bytes, WORD)) << 32
}

/// Swaps the bytes of each sample of two bytes.
#[inline(always)]
fn swap(words: &mut [Lanes<u32>; 2]) {
    for word in words.as_flattened_mut() {
        *word = (*word & 0x00ff_00ff) << 8 | (*word >> 8) & 0x00ff_00ff;
    }
}

/// The mean of two samples, with `quarters` quarters of `other`, rounded to the nearest level, ties
/// up.
#[inline(always)]
fn mean(own: u8, other: u8, quarters: u8) -> u8 {
    let (own, other, quarters) = (u16::from(own), u16::from(other), u16::from(quarters));
    ((own * (4 - quarters) + other * quarters + 2) >> 2) as u8
}
