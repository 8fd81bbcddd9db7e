// SPDX-License-Identifier: MPL-2.0
//! Mixing of colors into samples.

use std::ops::Range;

use super::mask::{BLOCK, Mask, hull, is_empty, is_full};
use crate::image::{Component, MAX_SUBSAMPLING, Word};

/// `value` / 255 to the nearest, for products of two bytes.
#[inline(always)]
fn over_255(value: u16) -> u16 {
    let value = value + 128;
    (value + (value >> 8)) >> 8
}

/// `value` / 255, for products of a word and a byte, without a division, so that it can be
/// vectorized.
#[inline(always)]
fn div_255(value: u32) -> u32 {
    let value = value + 1;
    (value + ((value + (value >> 8)) >> 8)) >> 8
}

/// `weight` 255ths of `code` and the rest of `sample`, to the nearest.
#[inline(always)]
fn mix(sample: u32, code: u32, weight: u32) -> u32 {
    div_255(sample * (255 - weight) + code * weight + 127)
}

/// [`mix`] for bytes.
#[inline(always)]
fn mix_bytes(sample: u8, code: u8, weight: u16) -> u8 {
    over_255(u16::from(sample) * (255 - weight) + u16::from(code) * weight) as u8
}

/// The share, in 255ths, of a color of opacity `weight` over a color of opacity `alpha`/`max`, for
/// colors that are not multiplied by alpha. T. Porter, T. Duff: Compositing Digital Images, 1984,
/// "over".
#[inline(always)]
pub(super) fn share(weight: u8, alpha: u32, max: u32) -> u8 {
    let weight = u32::from(weight);
    if weight == 0 {
        return 0;
    }
    let both = weight * max + alpha * (255 - weight);
    // At most 255² · 65535, and half of 255 · 65535.
    ((weight * max * 255 + both / 2) / both) as u8
}

/// Weight of a color, in 255ths, in a pixel with a coverage of `covered` 255ths.
#[inline(always)]
pub(super) fn weight(covered: u8, opacity: u8) -> u8 {
    over_255(u16::from(covered) * u16::from(opacity)) as u8
}

/// Rows of a component that a mask covers.
pub(super) fn reduced_rows(mask: &Mask, [_, down]: [u32; 2]) -> Range<usize> {
    let rows = mask.rows();
    rows.start >> down..rows.end.div_ceil(1 << down)
}

/// The index of the first covered sample in a component's `row`, and the coverage of the samples
/// from there on. For a subsampled component it is the mean of the pixels that share a sample.
#[inline(always)]
pub(super) fn reduce<'a>(
    mask: &'a Mask,
    row: usize,
    [across, down]: [u32; 2],
    reduced: &'a mut Vec<u8>,
) -> (usize, &'a [u8]) {
    if [across, down] == [0, 0] {
        let span = mask.span(row);
        return (span.start, &mask.row(row)[span]);
    }
    let rows = row << down..((row + 1) << down).min(mask.height());
    let span = rows.clone().fold(0..0, |all, y| hull(&all, &mask.span(y)));
    if span.is_empty() {
        return (0, &[]);
    }
    let samples = span.start >> across..span.end.div_ceil(1 << across);
    let columns = samples.start << across..(samples.end << across).min(mask.width());
    reduced.clear();
    for start in columns.clone().step_by(BLOCK << across) {
        let block = start..(start + (BLOCK << across)).min(columns.end);
        let blocks = rows.clone().map(|y| &mask.row(y)[block.clone()]);
        let all_alike = if blocks.clone().all(is_empty) {
            Some(0)
        } else {
            blocks.clone().all(is_full).then_some(u8::MAX)
        };
        if let Some(covered) = all_alike {
            reduced.resize(reduced.len() + block.len().div_ceil(1 << across), covered);
            continue;
        }
        let mut sums = [0u16; BLOCK << MAX_SUBSAMPLING];
        for block in blocks {
            for (sum, covered) in sums.iter_mut().zip(block) {
                *sum += u16::from(*covered);
            }
        }
        reduced.extend(sums[..block.len()].chunks(1 << across).map(|sums| {
            let count = (sums.len() * rows.len()) as u32;
            mean(sums.iter().map(|sum| u32::from(*sum)).sum(), count)
        }));
    }
    (samples.start, reduced)
}

/// `sum` / `count` to the nearest.
#[inline(always)]
fn mean(sum: u32, count: u32) -> u8 {
    let sum = sum + count / 2;
    let mean = if count.is_power_of_two() {
        sum >> count.trailing_zeros()
    } else {
        sum / count
    };
    mean as u8
}

/// Maximum number of words of a pixel in a plane.
pub(super) const MAX_LANES: usize = 4;

/// Components with samples side by side in the pixels of a plane, and the codes of a color for
/// them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lanes {
    /// The components, which differ only in their offset; it is 0 here.
    pub component: Component,
    codes: [u16; MAX_LANES],
    /// All bits for a word that holds a component, none for a word that stays unchanged.
    touched: [u16; MAX_LANES],
}

impl Lanes {
    /// Groups components, given with their codes, that can be mixed together.
    pub(super) fn of<'a>(components: impl Iterator<Item = (&'a Component, u32)>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (component, code) in components {
            let lane = component.offset / component.word.bytes();
            let component = Component {
                offset: 0,
                ..*component
            };
            let known = all.iter().position(|lanes| lanes.component == component);
            let index = known.unwrap_or(all.len());
            if known.is_none() {
                all.push(Self {
                    component,
                    codes: [0; MAX_LANES],
                    touched: [0; MAX_LANES],
                });
            }
            all[index].codes[lane] = code as u16;
            all[index].touched[lane] = u16::MAX;
        }
        all
    }

    /// Words from a pixel to the next.
    pub(super) fn words(&self) -> usize {
        self.component.step / self.component.word.bytes()
    }

    /// Adds the codes in the words of pixels of a row to `sums`.
    pub(super) fn add(&self, row: &[u8], pixels: Range<usize>, sums: &mut [u64; MAX_LANES]) {
        match self.words() {
            1 => self.add_words::<1>(row, pixels, sums),
            2 => self.add_words::<2>(row, pixels, sums),
            3 => self.add_words::<3>(row, pixels, sums),
            _ => self.add_words::<MAX_LANES>(row, pixels, sums),
        }
    }

    fn add_words<const N: usize>(
        &self,
        row: &[u8],
        pixels: Range<usize>,
        sums: &mut [u64; MAX_LANES],
    ) {
        let Component { word, step, .. } = self.component;
        // The last pixel of a plane may lack bytes that hold no sample.
        let end = row.len().min(pixels.end * step);
        let bytes = &row[pixels.start * step..end];
        let of_row: [u32; N] = match word {
            Word::Byte => self.row_sums(bytes, u16::from),
            Word::Le16 => self.row_sums(bytes.as_chunks().0, u16::from_le_bytes),
            Word::Be16 => self.row_sums(bytes.as_chunks().0, u16::from_be_bytes),
        };
        for (sum, of_row) in sums.iter_mut().zip(of_row) {
            *sum += u64::from(of_row);
        }
    }

    /// Sums of the codes in the words of a row, by lane.
    #[inline(always)]
    fn row_sums<const N: usize, W: Copy>(&self, words: &[W], value: fn(W) -> u16) -> [u32; N] {
        let (shift, max) = (self.component.shift, self.component.max_code() as u16);
        let mut sums = [0; N];
        let mut add = |pixel: &[W]| {
            for (sum, word) in sums.iter_mut().zip(pixel) {
                *sum += u32::from((value(*word) >> shift) & max);
            }
        };
        let (pixels, rest) = words.as_chunks::<N>();
        pixels.iter().for_each(|pixel| add(pixel));
        add(rest);
        sums
    }

    /// Mixes a component's code into its bits of a word.
    #[inline(always)]
    fn mix(&self, word: u16, code: u16, weight: u16) -> u16 {
        let Component { shift, .. } = self.component;
        let max = self.component.max_code() as u16;
        let sample = (word >> shift) & max;
        let mixed = mix(sample.into(), code.into(), weight.into()) as u16;
        word & !(max << shift) | mixed << shift
    }
}

/// Mixes a color into the pixels of a row from `first` on, with at most `opacity` 255ths.
pub(super) fn row(line: &mut [u8], lanes: &Lanes, covered: (usize, &[u8]), opacity: u8) {
    match lanes.words() {
        1 => color::<1>(line, lanes, covered, opacity),
        2 => color::<2>(line, lanes, covered, opacity),
        3 => color::<3>(line, lanes, covered, opacity),
        _ => color::<MAX_LANES>(line, lanes, covered, opacity),
    }
}

fn color<const N: usize>(line: &mut [u8], lanes: &Lanes, covered: (usize, &[u8]), opacity: u8) {
    let codes = [std::array::from_fn::<_, N, _>(|lane| lanes.codes[lane]); BLOCK];
    pixels::<N>(line, lanes, covered, opacity, |_| codes.as_flattened());
}

/// Mixes a row of colors, given as the words of each pixel, into the pixels from `first` on.
pub(super) fn row_of(line: &mut [u8], lanes: &Lanes, covered: (usize, &[u8]), colors: &[u16]) {
    match lanes.words() {
        1 => pixels::<1>(line, lanes, covered, u8::MAX, |at| &colors[at..]),
        2 => pixels::<2>(line, lanes, covered, u8::MAX, |at| &colors[2 * at..]),
        3 => pixels::<3>(line, lanes, covered, u8::MAX, |at| &colors[3 * at..]),
        _ => pixels::<MAX_LANES>(line, lanes, covered, u8::MAX, |at| {
            &colors[MAX_LANES * at..]
        }),
    }
}

/// Mixes colors into pixels of `N` words. `codes` are the words of the colors from a covered pixel
/// on. All words of a block are mixed, so that the loop can be vectorized; words that stay unchanged
/// have a weight of 0.
fn pixels<'a, const N: usize>(
    line: &mut [u8],
    lanes: &Lanes,
    (first, coverage): (usize, &[u8]),
    opacity: u8,
    codes: impl Fn(usize) -> &'a [u16],
) {
    let touched: [_; N] = std::array::from_fn(|lane| lanes.touched[lane]);
    for (index, block) in coverage.chunks(BLOCK).enumerate() {
        if is_empty(block) {
            continue;
        }
        let codes = codes(index * BLOCK);
        let start = (first + index * BLOCK) * N * lanes.component.word.bytes();
        let samples = &mut line[start..];
        let is_full = opacity == u8::MAX && is_full(block);
        let is_bytes = lanes.component.word == Word::Byte && lanes.component.depth == 8;
        if is_full && is_bytes {
            // As with a weight of 1, without mixing.
            let touched = [touched.map(|touched| touched as u8); BLOCK];
            let codes = codes.iter().zip(touched[..block.len()].as_flattened());
            for (sample, (code, touched)) in samples.iter_mut().zip(codes) {
                *sample = *code as u8 & touched | *sample & !touched;
            }
            continue;
        }
        let mut weights = [[0; N]; BLOCK];
        for (weights, covered) in weights.iter_mut().zip(block) {
            let weight = u16::from(self::weight(*covered, opacity));
            *weights = touched.map(|touched| weight & touched);
        }
        let mixed = codes.iter().zip(weights[..block.len()].as_flattened());
        match lanes.component.word {
            Word::Byte if is_bytes => {
                for (sample, (code, weight)) in samples.iter_mut().zip(mixed) {
                    *sample = mix_bytes(*sample, *code as u8, *weight);
                }
            }
            Word::Byte => {
                for (sample, (code, weight)) in samples.iter_mut().zip(mixed) {
                    *sample = lanes.mix((*sample).into(), *code, *weight) as u8;
                }
            }
            Word::Le16 => {
                for (sample, (code, weight)) in samples.as_chunks_mut().0.iter_mut().zip(mixed) {
                    *sample = lanes
                        .mix(u16::from_le_bytes(*sample), *code, *weight)
                        .to_le_bytes();
                }
            }
            Word::Be16 => {
                for (sample, (code, weight)) in samples.as_chunks_mut().0.iter_mut().zip(mixed) {
                    *sample = lanes
                        .mix(u16::from_be_bytes(*sample), *code, *weight)
                        .to_be_bytes();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
