// SPDX-License-Identifier: MPL-2.0
//! Frames of any format whose samples lie at regular distances, of 5 to 16 bits.
//!
//! Colours are computed in floating point and rounded once, to the 256 levels that networks were
//! trained on. The common 8-bit formats have readers of their own, which are faster and follow
//! `videoconvert` to the bit.

use super::{Neighbours, Raster, Rows, Source, blend};
use crate::face::image::{
    ChromaSite, ColorModel, ColorRange, Colorimetry, Component, ImageView, Layout, Plane, Word,
};
use crate::face::sample::color::luma_weights;
use crate::face::sample::grid::{LANES, Lanes, STEP_BITS, STEPS};
use crate::face::sample::level::round;

/// A frame in the format that a [`Layout`] describes. `SPAN` bytes hold a sample and its right
/// neighbour.
pub struct Samples<'a, const SPAN: usize> {
    /// Red, green and blue, or Y′, Cb and Cr; grey is repeated.
    channels: [Channel<'a>; 3],
    to_rgb: ToRgb,
}

/// Bytes that hold a sample of `layout` and its right neighbour: 4, 8 or 16.
pub fn span(layout: &Layout) -> usize {
    let spans = layout.colors().iter();
    let span = spans.map(|c| c.step + c.word.bytes()).max().unwrap_or(0);
    span.next_power_of_two().max(4)
}

impl<'a, const SPAN: usize> Samples<'a, SPAN> {
    /// `planes` hold an image of the stored size of `image` in the format `layout`.
    pub fn new(layout: &Layout, image: &ImageView<'_>, planes: &[Plane<'a>]) -> Self {
        let colors = layout.colors();
        let channels = [0, 1, 2].map(|index: usize| {
            let component = &colors[index.min(colors.len() - 1)];
            Channel::new(
                component,
                image.stored_size(),
                image.colorimetry().chroma_site,
                planes[component.plane],
            )
        });
        Self {
            channels,
            to_rgb: ToRgb::new(layout, image.colorimetry()),
        }
    }
}

impl<const SPAN: usize> Source for Samples<'_, SPAN> {
    #[inline(always)]
    fn colors(&self, x: &Lanes<i32>, y: &Lanes<i32>, out: &mut [Lanes<f32>; 3]) {
        let [first, second, third] = &self.channels;
        let raster = first.raster(x, y);
        first.read::<SPAN>(&raster, &mut out[0]);
        if let ToRgb::Gray(gray) = &self.to_rgb {
            gray.apply(out);
            return;
        }
        let raster = match second.subsampling {
            [0, 0] => raster,
            _ => second.raster(x, y),
        };
        second.read::<SPAN>(&raster, &mut out[1]);
        third.read::<SPAN>(&raster, &mut out[2]);
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

/// The samples of one component.
struct Channel<'a> {
    rows: Rows<'a>,
    /// Columns and rows of samples.
    size: [usize; 2],
    subsampling: [u32; 2],
    /// Whether samples lie on the first of the columns, and rows, that share them.
    cosited: [bool; 2],
    /// Bytes from a sample to the next.
    step: u32,
    big_endian: bool,
    shift: u32,
    mask: u32,
}

impl<'a> Channel<'a> {
    fn new(component: &Component, size: [usize; 2], site: ChromaSite, plane: Plane<'a>) -> Self {
        let size = component.samples(size);
        let data = plane.data.get(component.offset..).unwrap_or_default();
        let rows = Rows::new(Plane { data, ..plane }, size[1]);
        Self {
            rows,
            size,
            subsampling: component.subsampling,
            cosited: [site.horizontally_cosited, site.vertically_cosited],
            step: component.step as u32,
            big_endian: component.word == Word::Be16,
            shift: component.shift,
            mask: component.max_code(),
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

    /// Writes the codes at the positions of `raster`.
    #[inline(always)]
    fn read<const SPAN: usize>(&self, raster: &Raster, out: &mut Lanes<f32>) {
        let offsets = self.rows.offsets(raster, self.step);
        let mut words = [[0; LANES]; 4];
        for i in 0..LANES {
            let [top, bottom] = self.rows.pair::<SPAN>(offsets[i]);
            let [top, bottom] = [top, bottom].map(|bytes| neighbours(bytes, self.step));
            (words[0][i], words[1][i]) = (top[0], top[1]);
            (words[2][i], words[3][i]) = (bottom[0], bottom[1]);
        }
        if self.big_endian {
            let words = words.as_flattened_mut();
            words.iter_mut().for_each(|word| *word = swapped(*word));
        }
        for i in 0..LANES {
            let [a, b, c, d] = [0, 1, 2, 3]
                .map(|tap: usize| ((words[tap][i] >> self.shift) & self.mask) as i32 as f32);
            out[i] = blend([a, b], [c, d], raster.x.weight[i], raster.y.weight[i]);
        }
    }
}

/// The first word of a run of bytes and the one `step` bytes after it, each in its lower half.
#[inline(always)]
fn neighbours<const SPAN: usize>(bytes: [u8; SPAN], step: u32) -> [u32; 2] {
    match SPAN {
        4 => {
            let bits = u32::from_le_bytes(std::array::from_fn(|i| bytes[i]));
            [bits, bits >> (8 * step)]
        }
        8 => {
            let bits = u64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
            [bits as u32, (bits >> (8 * step)) as u32]
        }
        _ => {
            let bits = u128::from_le_bytes(std::array::from_fn(|i| bytes[i]));
            [bits as u32, (bits >> (8 * step)) as u32]
        }
    }
}

/// A big-endian word of two bytes that was read as a little-endian one.
#[inline(always)]
fn swapped(word: u32) -> u32 {
    (word & 0xff) << 8 | (word >> 8) & 0xff
}

impl Neighbours {
    /// Along an axis of `count` samples that 2ⁿ pixels each share, for pixel `positions`.
    #[inline(always)]
    fn shared(positions: &Lanes<i32>, n: u32, cosited: bool, count: usize) -> Self {
        let bits = STEP_BITS + n;
        // Without cositing a sample lies in the middle of its pixels.
        let middle = match cosited {
            true => 0,
            false => STEPS / 2 * ((1 << n) - 1),
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
    /// Levels of a code; as `videoconvert` does, whatever the range.
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
    /// For codes of `depth` bits; ITU-R BT.601-7 and BT.2100-2.
    pub fn new(depth: u32, range: ColorRange) -> Self {
        let unit = (f64::from(depth) - 8.0).exp2();
        let (black, span) = match range {
            ColorRange::Limited => (16.0 * unit, 219.0 * unit),
            ColorRange::Full => (0.0, f64::from(depth).exp2() - 1.0),
        };
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
    /// R = Y + 2(1−Kr)·V, B = Y + 2(1−Kb)·U, and G such that Y = Kr·R + Kg·G + Kb·B.
    fn new(luma: Gray, depth: u32, colorimetry: Colorimetry) -> Self {
        let (kr, kb) = luma_weights(colorimetry.matrix);
        let kg = 1.0 - kr - kb;
        let span = match colorimetry.range {
            ColorRange::Limited => 224.0 * (f64::from(depth) - 8.0).exp2(),
            ColorRange::Full => f64::from(depth).exp2() - 1.0,
        };
        let levels = |weight: f64| (weight * 255.0 / span) as f32;
        Self {
            luma,
            middle: (f64::from(depth) - 1.0).exp2() as f32,
            red_from_v: levels(2.0 * (1.0 - kr)),
            green_from_u: levels(-2.0 * (1.0 - kb) * kb / kg),
            green_from_v: levels(-2.0 * (1.0 - kr) * kr / kg),
            blue_from_u: levels(2.0 * (1.0 - kb)),
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
