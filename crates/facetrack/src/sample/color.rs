// SPDX-License-Identifier: MPL-2.0
//! Converts codes to red, green and blue.
//!
//! Colors of the common 8-bit formats are computed with the arithmetic of GStreamer's
//! `videoconvert`. Colors of other formats are computed in floating point, and rounded once to the
//! 256 levels that networks were trained on.
//!
//! `videoconvert` multiplies signed codes (code − 128), spread to 16 bits, by coefficients in
//! 256ths and keeps the upper half of each product (`video_orc_convert_AYUV_ARGB`). With limited
//! range its result is about two levels below the exact one. It is reproduced to the bit, so that a
//! network sees the same picture with and without a `videoconvert` before the element.

use super::grid::{LANES, Lanes};
use super::level::{code, round};
use crate::image::{Arithmetic, ColorModel, ColorRange, Colorimetry, Layout};

/// Conversion of codes to levels of red, green and blue, 0…255. Like `videoconvert`, RGB is
/// independent of the range.
pub(crate) enum ToRgb {
    /// Codes are levels.
    RgbBytes,
    /// Levels per code.
    Rgb([f32; 3]),
    /// Y′CbCr or gray, like `videoconvert`.
    YuvBytes(YuvToRgb),
    /// Y′CbCr or gray, in floating point.
    Yuv(Matrix),
}

impl ToRgb {
    pub(crate) fn new(layout: &Layout, arithmetic: Arithmetic, colorimetry: Colorimetry) -> Self {
        use Arithmetic::*;
        let colors = layout.colors();
        match (layout.model, arithmetic) {
            (ColorModel::Rgb, Bytes) => Self::RgbBytes,
            (ColorModel::Rgb, Floats) => Self::Rgb(
                [0, 1, 2].map(|index: usize| (255.0 / f64::from(colors[index].max_code())) as f32),
            ),
            (_, Bytes) => Self::YuvBytes(YuvToRgb::new(colorimetry)),
            (_, Floats) => Self::Yuv(Matrix::new(layout, colorimetry)),
        }
    }

    /// Replaces interpolated codes of luma, in the first channel, by levels in all channels.
    #[inline(always)]
    pub(crate) fn apply_gray(&self, out: &mut [Lanes<f32>; 3]) {
        let mut levels = out[0];
        match self {
            Self::RgbBytes | Self::Rgb(_) => (),
            Self::YuvBytes(matrix) => {
                let mut codes = [0; LANES];
                for i in 0..LANES {
                    codes[i] = spread(code(levels[i]));
                }
                for i in 0..LANES {
                    levels[i] = level(upper(codes[i], matrix.luma));
                }
            }
            Self::Yuv(matrix) => {
                for level in &mut levels {
                    *level = matrix.luma.level(*level);
                }
            }
        }
        *out = [levels; 3];
    }

    /// Replaces interpolated codes by levels.
    #[inline(always)]
    pub(crate) fn apply(&self, out: &mut [Lanes<f32>; 3]) {
        match self {
            Self::RgbBytes => (),
            Self::Rgb(scales) => scale(scales, out),
            Self::YuvBytes(matrix) => {
                let mut codes = [[0; LANES]; 3];
                for (codes, values) in codes.iter_mut().zip(&*out) {
                    for i in 0..LANES {
                        codes[i] = spread(code(values[i]));
                    }
                }
                matrix.apply(&codes, out);
            }
            Self::Yuv(matrix) => matrix.apply(out),
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

/// A code in the form that `videoconvert` multiplies: minus 128, in both bytes of 16 bits.
pub(crate) type Spread = i16;

/// The spread form of a code.
#[inline(always)]
pub(crate) fn spread(code: u8) -> Spread {
    (u16::from(code ^ 0x80) * 0x0101) as i16
}

/// Coefficients of Y′CbCr → R′G′B′ in 256ths.
#[derive(Debug, Clone, Copy)]
pub(crate) struct YuvToRgb {
    luma: i16,
    /// See [`ColorMatrix::chroma_weights`](crate::image::ColorMatrix::chroma_weights).
    chroma: [i16; 4],
}

impl YuvToRgb {
    /// The coefficients for codes of 8 bits.
    fn new(colorimetry: Colorimetry) -> Self {
        let fixed =
            |weight: f64, span: f64| (weight * 255.0 / span * 256.0).round_ties_even() as i16;
        let (_, luma_span) = colorimetry.range.luma_span(8);
        let chroma_span = colorimetry.range.chroma_span(8);
        let weights = colorimetry.matrix.chroma_weights();
        Self {
            luma: fixed(1.0, luma_span),
            chroma: weights.map(|weight| fixed(weight, chroma_span)),
        }
    }

    /// Writes red, green and blue, whole numbers of 0…255.
    #[inline(always)]
    pub(crate) fn apply(
        &self,
        [luma, cb, cr]: &[Lanes<Spread>; 3],
        [red, green, blue]: &mut [Lanes<f32>; 3],
    ) {
        let [red_from_v, green_from_u, green_from_v, blue_from_u] = self.chroma;
        for i in 0..LANES {
            let y = upper(luma[i], self.luma);
            let g = y + upper(cb[i], green_from_u) + upper(cr[i], green_from_v);
            red[i] = level(y + upper(cr[i], red_from_v));
            green[i] = level(g);
            blue[i] = level(y + upper(cb[i], blue_from_u));
        }
    }
}

/// The upper half of a product.
#[inline(always)]
fn upper(a: i16, b: i16) -> i16 {
    ((i32::from(a) * i32::from(b)) >> 16) as i16
}

/// Maps −128…127 to 0…255.
#[inline(always)]
fn level(signed: i16) -> f32 {
    f32::from(signed.clamp(-128, 127) + 128)
}

/// Conversion of luma codes to levels.
#[derive(Clone, Copy)]
pub(crate) struct GrayLevels {
    black: f32,
    scale: f32,
}

impl GrayLevels {
    /// Creates the conversion of codes of `depth` bits.
    pub(crate) fn new(depth: u32, range: ColorRange) -> Self {
        let (black, span) = range.luma_span(depth);
        Self {
            black: black as f32,
            scale: (255.0 / span) as f32,
        }
    }

    /// The level of a code, rounded.
    #[inline(always)]
    pub(crate) fn level(self, code: f32) -> f32 {
        round(((code - self.black) * self.scale).clamp(0.0, 255.0))
    }
}

/// Conversion of Y′CbCr codes to R′G′B′ levels.
pub(crate) struct Matrix {
    luma: GrayLevels,
    /// The code of no chroma.
    middle: f32,
    /// See [`ColorMatrix::chroma_weights`](crate::image::ColorMatrix::chroma_weights).
    chroma: [f32; 4],
}

impl Matrix {
    fn new(layout: &Layout, colorimetry: Colorimetry) -> Self {
        let colors = layout.colors();
        let (luma, chroma) = (colors[0].depth, colors[colors.len() - 1].depth);
        let span = colorimetry.range.chroma_span(chroma);
        let weights = colorimetry.matrix.chroma_weights();
        Self {
            luma: GrayLevels::new(luma, colorimetry.range),
            middle: (1u32 << (chroma - 1)) as f32,
            chroma: weights.map(|weight| (weight * 255.0 / span) as f32),
        }
    }

    #[inline(always)]
    fn apply(&self, [first, second, third]: &mut [Lanes<f32>; 3]) {
        let [red_from_v, green_from_u, green_from_v, blue_from_u] = self.chroma;
        let level = |value: f32| round(value.clamp(0.0, 255.0));
        for i in 0..LANES {
            let y = (first[i] - self.luma.black) * self.luma.scale;
            let (u, v) = (second[i] - self.middle, third[i] - self.middle);
            first[i] = level(y + v * red_from_v);
            second[i] = level(y + u * green_from_u + v * green_from_v);
            third[i] = level(y + u * blue_from_u);
        }
    }
}
