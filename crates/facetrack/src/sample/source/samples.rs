// SPDX-License-Identifier: MPL-2.0
//! Frames in any format whose samples are at regular distances, with 5 to 16 bits.
//!
//! Colors are computed in floating point and rounded once, to the 256 levels that networks were
//! trained on. The common 8-bit formats have readers of their own, which are faster and reproduce
//! `videoconvert` to the bit.

use super::{Neighbours, Raster, Rows, Source, blend};
use crate::image::{
    ChromaSite, ColorModel, ColorRange, Colorimetry, Component, ImageView, Layout, MAX_STEP, Plane,
    Word,
};
use crate::sample::grid::{LANES, Lanes, STEP_BITS, STEPS};
use crate::sample::level::round;

/// A frame in the format that a [`Layout`] describes. `FIRST` bytes hold the words of the first
/// component's sample and its right neighbour, `OTHERS` bytes the words of the other components.
pub struct Samples<'a, const FIRST: usize, const OTHERS: usize> {
    /// Red, green and blue, or Y′, Cb and Cr; gray is repeated.
    channels: [Channel<'a>; 3],
    to_rgb: ToRgb,
}

/// Bytes that hold the words of a sample and its right neighbour, for the first component of
/// `layout` and for the others: 4, 8 or 16.
pub fn spans(layout: &Layout) -> [usize; 2] {
    let channels = located(layout);
    let span = |located: &Located| (located.step + located.bytes).next_power_of_two().max(4);
    let [first, second, third] = channels.map(|located| span(&located));
    [first, second.max(third)]
}

/// Position of the word that is read for a component's sample. Components whose samples are in the
/// same four bytes are read together.
#[derive(Clone, Copy)]
struct Located {
    /// Bytes before the first word.
    offset: usize,
    /// Bytes of the word.
    bytes: usize,
    /// Bytes from a word to the next.
    step: usize,
    /// Lowest bit of the sample in the word.
    bit: u32,
    /// Whether the previous component has the same word.
    is_shared: bool,
}

/// Maximum number of bytes of a word.
const WORD: usize = 4;

/// Positions of the three components of `layout`; gray is repeated.
fn located(layout: &Layout) -> [Located; 3] {
    let colors = layout.colors();
    let components = [0, 1, 2].map(|index: usize| &colors[index.min(colors.len() - 1)]);
    let is_together = |a: &Component, b: &Component| {
        let place = |c: &Component| (c.plane, c.step, c.subsampling, c.word);
        place(a) == place(b)
    };
    [0, 1, 2].map(|index: usize| {
        let own = components[index];
        let group = components.iter().filter(|other| is_together(own, other));
        let offsets = || group.clone().map(|other| other.offset);
        let first = offsets().min().unwrap_or(own.offset);
        let bytes = offsets().max().unwrap_or(own.offset) - first + own.word.bytes();
        let fits = bytes <= WORD && (own.step >= WORD || own.step + bytes <= WORD);
        let (offset, bytes) = if fits {
            (first, bytes)
        } else {
            (own.offset, own.word.bytes())
        };
        Located {
            offset,
            bytes,
            step: own.step,
            bit: 8 * (own.offset - offset) as u32 + own.shift,
            is_shared: fits && index > 0 && is_together(components[index - 1], own),
        }
    })
}

impl<'a, const FIRST: usize, const OTHERS: usize> Samples<'a, FIRST, OTHERS> {
    /// `planes` hold an image with the stored size of `image`, in the format of `layout`.
    pub fn new(layout: &Layout, image: &ImageView<'_>, planes: &[Plane<'a>]) -> Self {
        let colors = layout.colors();
        let located = located(layout);
        let channels = [0, 1, 2].map(|index: usize| {
            let component = &colors[index.min(colors.len() - 1)];
            let site = image.colorimetry().chroma_site;
            let plane = planes[component.plane];
            Channel::new(component, located[index], image.stored_size(), site, plane)
        });
        Self {
            channels,
            to_rgb: ToRgb::new(layout, image.colorimetry()),
        }
    }
}

impl<const FIRST: usize, const OTHERS: usize> Source for Samples<'_, FIRST, OTHERS> {
    #[inline(always)]
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>, out: &mut [Lanes<f32>; 3]) {
        let [first, second, third] = &self.channels;
        let mut raster = first.raster(x, y);
        let mut words = Words::default();
        first.gather::<FIRST>(&raster, &mut words);
        first.blend::<FIRST>(&words, &raster, &mut out[0]);
        match &self.to_rgb {
            ToRgb::Gray(gray) => return gray.apply(out),
            ToRgb::Yuv(_) => raster = second.raster(x, y),
            ToRgb::Rgb(_) => (),
        }
        for (channel, out) in [second, third].into_iter().zip(&mut out[1..]) {
            if !channel.is_shared {
                channel.gather::<OTHERS>(&raster, &mut words);
            }
            channel.blend::<OTHERS>(&words, &raster, out);
        }
        match &self.to_rgb {
            ToRgb::Rgb(scales) => scale(scales, out),
            ToRgb::Yuv(matrix) => matrix.apply(out),
            ToRgb::Gray(_) => (),
        }
    }

    #[inline(always)]
    fn pixels(&self, x: usize, y: usize, out: &mut [Lanes<f32>; 3]) {
        let columns = std::array::from_fn(|i| (x + i) as i32 * STEPS);
        self.colors(&columns, &[y as i32 * STEPS; LANES], out);
    }
}

/// The words that hold the samples at positions, in the upper and in the lower row. If a sample and
/// its right neighbour fit into one word, only `left` is used.
struct Words {
    left: [Lanes<u32>; 2],
    right: [Lanes<u32>; 2],
}

impl Default for Words {
    fn default() -> Self {
        Self {
            left: [[0; LANES]; 2],
            right: [[0; LANES]; 2],
        }
    }
}

/// The samples of one component.
struct Channel<'a> {
    rows: Rows<'a>,
    /// Columns and rows of samples.
    size: [usize; 2],
    subsampling: [u32; 2],
    /// Whether a sample is on the first of the columns, and rows, that share it.
    cosited: [bool; 2],
    /// Bytes from a sample to the next.
    step: u32,
    is_big_endian: bool,
    bit: u32,
    mask: u32,
    is_shared: bool,
}

impl<'a> Channel<'a> {
    fn new(
        component: &Component,
        located: Located,
        size: [usize; 2],
        site: ChromaSite,
        plane: Plane<'a>,
    ) -> Self {
        let size = component.samples(size);
        let data = plane.data.get(located.offset..).unwrap_or_default();
        let rows = Rows::new(Plane { data, ..plane }, size[1]);
        Self {
            rows,
            size,
            subsampling: component.subsampling,
            cosited: [site.horizontally_cosited, site.vertically_cosited],
            step: component.step as u32,
            is_big_endian: component.word == Word::Be16,
            bit: located.bit,
            mask: component.max_code(),
            is_shared: located.is_shared,
        }
    }

    /// The neighbours of pixel positions.
    #[inline(always)]
    fn raster(&self, x: &Lanes<i32>, y: &Lanes<i32>) -> Raster {
        let axis = |positions: &Lanes<i32>, axis: usize| {
            Neighbours::shared(
                positions,
                self.subsampling[axis],
                self.cosited[axis],
                self.size[axis],
            )
        };
        Raster {
            x: axis(x, 0),
            y: axis(y, 1),
        }
    }

    /// Reads the words at the positions of `raster`.
    #[inline(always)]
    fn gather<const SPAN: usize>(&self, raster: &Raster, words: &mut Words) {
        let offsets = self.rows.offsets(raster, self.step);
        for i in 0..LANES {
            for (row, bytes) in self.rows.pair::<SPAN>(offsets[i]).iter().enumerate() {
                words.left[row][i] = word(bytes, 0);
                match SPAN {
                    4 => (),
                    8 => words.right[row][i] = word(bytes, WORD),
                    _ => words.right[row][i] = word(bytes, (self.step as usize).min(MAX_STEP)),
                }
            }
        }
        if self.is_big_endian {
            swap(&mut words.left);
            swap(&mut words.right);
        }
    }

    /// Writes the codes at the positions of `raster`, interpolated.
    #[inline(always)]
    fn blend<const SPAN: usize>(&self, words: &Words, raster: &Raster, out: &mut Lanes<f32>) {
        let Words { left, right } = words;
        let (right, right_bit) = match SPAN {
            4 => (left, self.bit + 8 * self.step),
            8 => (right, self.bit + 8 * (self.step - WORD as u32)),
            _ => (right, self.bit),
        };
        let code = |word: u32, bit: u32| ((word >> bit) & self.mask) as i32 as f32;
        for i in 0..LANES {
            let top = [code(left[0][i], self.bit), code(right[0][i], right_bit)];
            let bottom = [code(left[1][i], self.bit), code(right[1][i], right_bit)];
            out[i] = blend(top, bottom, raster.x.weight[i], raster.y.weight[i]);
        }
    }
}

/// Four bytes from `at` on.
#[inline(always)]
fn word<const SPAN: usize>(bytes: &[u8; SPAN], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// Swaps the bytes of each sample of two bytes.
#[inline(always)]
fn swap(words: &mut [Lanes<u32>; 2]) {
    for word in words.as_flattened_mut() {
        *word = (*word & 0x00ff_00ff) << 8 | (*word >> 8) & 0x00ff_00ff;
    }
}

impl Neighbours {
    /// Along an axis of `count` samples that 2ⁿ pixels each share, for pixel `positions`.
    #[inline(always)]
    fn shared(positions: &Lanes<i32>, n: u32, cosited: bool, count: usize) -> Self {
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
}

/// From codes to levels of red, green and blue, 0…255.
enum ToRgb {
    /// Levels per code; like `videoconvert`, independent of the range.
    Rgb([f32; 3]),
    Yuv(Matrix),
    Gray(Gray),
}

impl ToRgb {
    fn new(layout: &Layout, colorimetry: Colorimetry) -> Self {
        let colors = layout.colors();
        let gray = Gray::new(colors[0].depth, colorimetry.range);
        match layout.model {
            ColorModel::Rgb => Self::Rgb(
                [0, 1, 2].map(|index: usize| (255.0 / f64::from(colors[index].max_code())) as f32),
            ),
            ColorModel::Yuv => Self::Yuv(Matrix::new(gray, colors[1].depth, colorimetry)),
            ColorModel::Gray => Self::Gray(gray),
        }
    }
}

#[inline(always)]
fn scale(scales: &[f32; 3], out: &mut [Lanes<f32>; 3]) {
    for (channel, scale) in out.iter_mut().zip(scales) {
        for code in channel {
            *code = round(*code * scale);
        }
    }
}

/// From luma codes to levels.
#[derive(Clone, Copy)]
pub struct Gray {
    black: f32,
    scale: f32,
}

impl Gray {
    /// For codes of `depth` bits.
    pub fn new(depth: u32, range: ColorRange) -> Self {
        let (black, span) = range.luma_span(depth);
        Self {
            black: black as f32,
            scale: (255.0 / span) as f32,
        }
    }

    /// The level of a code, rounded.
    #[inline(always)]
    pub fn level(self, code: f32) -> f32 {
        round(((code - self.black) * self.scale).clamp(0.0, 255.0))
    }

    /// Writes the levels of the first channel's codes to all three.
    #[inline(always)]
    fn apply(self, [red, green, blue]: &mut [Lanes<f32>; 3]) {
        for i in 0..LANES {
            red[i] = self.level(red[i]);
            green[i] = red[i];
            blue[i] = red[i];
        }
    }
}

/// From codes of Y′CbCr to levels of R′G′B′.
struct Matrix {
    luma: Gray,
    /// The code of no chroma.
    middle: f32,
    red_from_v: f32,
    green_from_u: f32,
    green_from_v: f32,
    blue_from_u: f32,
}

impl Matrix {
    /// For chroma codes of `depth` bits.
    fn new(luma: Gray, depth: u32, colorimetry: Colorimetry) -> Self {
        let span = colorimetry.range.chroma_span(depth);
        let [red_from_v, green_from_u, green_from_v, blue_from_u] = colorimetry
            .matrix
            .chroma_weights()
            .map(|weight| (weight * 255.0 / span) as f32);
        Self {
            luma,
            middle: (f64::from(depth) - 1.0).exp2() as f32,
            red_from_v,
            green_from_u,
            green_from_v,
            blue_from_u,
        }
    }

    #[inline(always)]
    fn apply(&self, [first, second, third]: &mut [Lanes<f32>; 3]) {
        let level = |value: f32| round(value.clamp(0.0, 255.0));
        for i in 0..LANES {
            let y = (first[i] - self.luma.black) * self.luma.scale;
            let (u, v) = (second[i] - self.middle, third[i] - self.middle);
            first[i] = level(y + v * self.red_from_v);
            second[i] = level(y + u * self.green_from_u + v * self.green_from_v);
            third[i] = level(y + u * self.blue_from_u);
        }
    }
}
