// SPDX-License-Identifier: MPL-2.0
//! Coverage mixed into samples.

use std::ops::Range;

use super::mask::{BLOCK, Mask, is_empty};
use crate::image::{Component, Word};

/// Most columns and rows that a sample of a component stands for, as a power of 2.
pub(super) const MAX_SUBSAMPLING: u32 = 3;

/// `value` / 255 to the nearest, for products of two bytes.
#[inline(always)]
fn over_255(value: u16) -> u16 {
    let value = value + 128;
    (value + (value >> 8)) >> 8
}

/// `value` / 255, for products of a word and a byte: a division that the processor's vectors have.
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

/// As [`mix`], of bytes.
#[inline(always)]
fn mix_bytes(sample: u8, code: u8, weight: u16) -> u8 {
    over_255(u16::from(sample) * (255 - weight) + u16::from(code) * weight) as u8
}

/// The weight of a colour that lies with `weight` 255ths over one of which `alpha` of `most` is to be seen, where colours are
/// not multiplied with alpha: its share in what is to be seen of both. T. Porter, T. Duff: Compositing Digital Images, 1984,
/// "over".
#[inline(always)]
pub(super) fn share(weight: u8, alpha: u32, most: u32) -> u8 {
    let weight = u32::from(weight);
    let seen = weight * most + alpha * (255 - weight);
    match weight {
        0 => 0,
        // At most 255² · 65535, and half of 255 · 65535.
        _ => ((weight * most * 255 + seen / 2) / seen) as u8,
    }
}

/// Sample `index` of a component's row.
#[inline(always)]
pub(super) fn sample(line: &[u8], component: &Component, index: usize) -> u32 {
    let bytes = &line[component.offset + index * component.step..];
    let word = match component.word {
        Word::Byte => u32::from(bytes[0]),
        Word::Le16 => u32::from(u16::from_le_bytes([bytes[0], bytes[1]])),
        Word::Be16 => u32::from(u16::from_be_bytes([bytes[0], bytes[1]])),
    };
    (word >> component.shift) & ((1 << component.depth) - 1)
}

/// How much of a colour is mixed in where `covered` of a pixel is covered, 255ths.
#[inline(always)]
pub(super) fn weight(covered: u8, opacity: u8) -> u8 {
    over_255(u16::from(covered) * u16::from(opacity)) as u8
}

/// The rows of a component in which a mask covers something.
pub(super) fn reduced_rows(mask: &Mask, [_, down]: [u32; 2]) -> Range<usize> {
    let rows = mask.rows();
    match rows.is_empty() {
        true => 0..0,
        false => rows.start >> down..((rows.end - 1) >> down) + 1,
    }
}

/// What is covered of the samples of a component's `row`, and which of them is the first: for a component of lower
/// resolution the mean of the pixels that a sample stands for.
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
    let spans = rows.clone().map(|y| mask.span(y));
    let span = spans.filter(|span| !span.is_empty()).reduce(|a, b| {
        let (start, end) = (a.start.min(b.start), a.end.max(b.end));
        start..end
    });
    let Some(span) = span else {
        return (0, &[]);
    };
    let samples = span.start >> across..((span.end - 1) >> across) + 1;
    let columns = samples.start << across..(samples.end << across).min(mask.width());
    reduced.clear();
    for start in columns.clone().step_by(BLOCK << across) {
        let block = start..(start + (BLOCK << across)).min(columns.end);
        let blocks = rows.clone().map(|y| &mask.row(y)[block.clone()]);
        if blocks.clone().all(is_empty) {
            reduced.resize(reduced.len() + block.len().div_ceil(1 << across), 0);
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
    let mean = match count.is_power_of_two() {
        true => sum >> count.trailing_zeros(),
        false => sum / count,
    };
    mean as u8
}

/// Most words of a pixel in one plane.
pub(super) const MAX_LANES: usize = 4;

/// Components of one kind whose samples lie side by side in the pixels of a plane, and a colour's codes for them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lanes {
    pub plane: usize,
    pub subsampling: [u32; 2],
    word: Word,
    shift: u32,
    depth: u32,
    /// Words from a pixel to the next.
    count: usize,
    codes: [u16; MAX_LANES],
    /// All bits for a word that holds a component, none for one that stays as it is.
    touched: [u16; MAX_LANES],
}

impl Lanes {
    /// One component alone.
    pub fn new(component: &Component, code: u32) -> Self {
        let bytes = component.word.bytes();
        let mut lanes = Self {
            plane: component.plane,
            subsampling: component.subsampling,
            word: component.word,
            shift: component.shift,
            depth: component.depth,
            count: component.step / bytes,
            codes: [0; MAX_LANES],
            touched: [0; MAX_LANES],
        };
        let lane = component.offset / bytes;
        lanes.codes[lane] = code as u16;
        lanes.touched[lane] = u16::MAX;
        lanes
    }

    /// Components with their codes, those together that can be mixed together.
    pub fn of<'a>(components: impl Iterator<Item = (&'a Component, u32)>) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (component, code) in components {
            let new = Self::new(component, code);
            match all.iter_mut().find(|lanes| lanes.is_beside(&new)) {
                Some(lanes) => lanes.take(&new),
                None => all.push(new),
            }
        }
        all
    }

    /// Has what another one has, in words that hold nothing here.
    fn take(&mut self, other: &Self) {
        for lane in 0..MAX_LANES {
            self.codes[lane] |= other.codes[lane];
            self.touched[lane] |= other.touched[lane];
        }
    }

    fn is_beside(&self, other: &Self) -> bool {
        let place = |lanes: &Self| (lanes.plane, lanes.subsampling, lanes.count);
        let kind = |lanes: &Self| (lanes.word, lanes.shift, lanes.depth);
        place(self) == place(other) && kind(self) == kind(other)
    }

    /// The largest code.
    #[inline(always)]
    fn most(&self) -> u16 {
        ((1u32 << self.depth) - 1) as u16
    }

    /// Mixes a component's code into its bits of a word.
    #[inline(always)]
    fn mix(&self, word: u16, code: u16, weight: u16) -> u16 {
        let most = self.most();
        let sample = (word >> self.shift) & most;
        let mixed = mix(sample.into(), code.into(), weight.into()) as u16;
        word & !(most << self.shift) | mixed << self.shift
    }
}

/// Mixes a colour into the pixels of a row from `first` on, at most `opacity` 255ths of it.
pub(super) fn row(line: &mut [u8], lanes: &Lanes, covered: (usize, &[u8]), opacity: u8) {
    match lanes.count {
        1 => pixels::<1>(line, lanes, covered, opacity),
        2 => pixels::<2>(line, lanes, covered, opacity),
        3 => pixels::<3>(line, lanes, covered, opacity),
        _ => pixels::<MAX_LANES>(line, lanes, covered, opacity),
    }
}

/// As [`row`], of pixels of `N` words. All words of a block are mixed alike, which makes use of the processor's vectors: a
/// branch for those that stay as they are would cost more than mixing in nothing.
fn pixels<const N: usize>(
    line: &mut [u8],
    lanes: &Lanes,
    (first, coverage): (usize, &[u8]),
    opacity: u8,
) {
    let codes = [std::array::from_fn::<_, N, _>(|lane| lanes.codes[lane]); BLOCK];
    let touched: [_; N] = std::array::from_fn(|lane| lanes.touched[lane]);
    for (index, block) in coverage.chunks(BLOCK).enumerate() {
        if is_empty(block) {
            continue;
        }
        let mut weights = [[0; N]; BLOCK];
        for (weights, covered) in weights.iter_mut().zip(block) {
            let weight = u16::from(self::weight(*covered, opacity));
            *weights = touched.map(|touched| weight & touched);
        }
        let mixed = codes
            .as_flattened()
            .iter()
            .zip(weights[..block.len()].as_flattened());
        let start = (first + index * BLOCK) * N * lanes.word.bytes();
        let samples = &mut line[start..];
        match lanes.word {
            Word::Byte if lanes.depth == 8 => {
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

/// Whether these pixels of a row have the colour already, in blocks of at most [`BLOCK`].
pub(super) fn is_filled(
    line: &[u8],
    lanes: &Lanes,
    blocks: impl Iterator<Item = Range<usize>>,
) -> bool {
    match lanes.count {
        1 => are_filled::<1>(line, lanes, blocks),
        2 => are_filled::<2>(line, lanes, blocks),
        3 => are_filled::<3>(line, lanes, blocks),
        _ => are_filled::<MAX_LANES>(line, lanes, blocks),
    }
}

/// As [`is_filled`], of pixels of `N` words.
fn are_filled<const N: usize>(
    line: &[u8],
    lanes: &Lanes,
    mut blocks: impl Iterator<Item = Range<usize>>,
) -> bool {
    let bits = lanes.most() << lanes.shift;
    let codes = [std::array::from_fn::<_, N, _>(|lane| lanes.codes[lane] << lanes.shift); BLOCK];
    let touched = [std::array::from_fn::<_, N, _>(|lane| lanes.touched[lane] & bits); BLOCK];
    blocks.all(|columns| {
        let codes = codes[..columns.len()].as_flattened();
        let wanted = codes.iter().zip(touched.as_flattened());
        let samples = &line[columns.start * N * lanes.word.bytes()..];
        let (pairs, _) = samples.as_chunks();
        let differs = |word: u16, (code, bits): (&u16, &u16)| (word ^ code) & bits;
        let differences = match lanes.word {
            Word::Byte => std::iter::zip(samples, wanted).fold(0, |all, (byte, wanted)| {
                all | differs((*byte).into(), wanted)
            }),
            Word::Le16 => std::iter::zip(pairs, wanted).fold(0, |all, (pair, wanted)| {
                all | differs(u16::from_le_bytes(*pair), wanted)
            }),
            Word::Be16 => std::iter::zip(pairs, wanted).fold(0, |all, (pair, wanted)| {
                all | differs(u16::from_be_bytes(*pair), wanted)
            }),
        };
        differences == 0
    })
}

#[cfg(test)]
mod tests;
