// SPDX-License-Identifier: MPL-2.0
//! From Y′CbCr codes to red, green and blue, with the 8-bit arithmetic of GStreamer's `videoconvert`.
//!
//! `videoconvert` multiplies signed codes (code − 128), spread to 16 bits, by coefficients in 256ths and keeps the upper
//! half of each product (`video_orc_convert_AYUV_ARGB`). With limited range its result lies about two levels below the
//! exact one, which is why it is followed to the bit here: a network sees the same picture whether or not a
//! `videoconvert` stands before the element.

use super::grid::Lanes;
use crate::image::{ColorMatrix, ColorRange, Colorimetry};

/// Weights of red and blue in luma; ITU-R BT.601-7, BT.709-6, BT.2020-2; the others as in
/// `gst_video_color_matrix_get_Kr_Kb`.
pub(crate) fn luma_weights(matrix: ColorMatrix) -> (f64, f64) {
    match matrix {
        ColorMatrix::Bt601 => (0.299, 0.114),
        ColorMatrix::Bt709 => (0.2126, 0.0722),
        ColorMatrix::Bt2020 => (0.2627, 0.0593),
        ColorMatrix::Fcc => (0.30, 0.11),
        ColorMatrix::Smpte240m => (0.212, 0.087),
    }
}

/// Codes from black to white, and from the lowest to the highest chroma; ITU-R BT.601-7.
fn spans(range: ColorRange) -> (f64, f64) {
    match range {
        ColorRange::Full => (255.0, 255.0),
        ColorRange::Limited => (219.0, 224.0),
    }
}

/// A code as `videoconvert` multiplies it: less 128, both bytes of 16 bits alike.
pub type Spread = i16;

/// The spread form of a code.
#[inline(always)]
pub fn spread(code: u8) -> Spread {
    (u16::from(code ^ 0x80) * 0x0101) as i16
}

/// Coefficients of Y′CbCr → R′G′B′ in 256ths.
#[derive(Debug, Clone, Copy)]
pub struct YuvToRgb {
    luma: i16,
    red_from_v: i16,
    green_from_u: i16,
    green_from_v: i16,
    blue_from_u: i16,
}

impl YuvToRgb {
    /// R = Y + 2(1−Kr)·V, B = Y + 2(1−Kb)·U, and G such that Y = Kr·R + Kg·G + Kb·B.
    pub fn new(colorimetry: Colorimetry) -> Self {
        let (kr, kb) = luma_weights(colorimetry.matrix);
        let kg = 1.0 - kr - kb;
        let (luma_span, chroma_span) = spans(colorimetry.range);
        let fixed = |weight: f64, span: f64| (weight * 255.0 / span * 256.0).round_ties_even();
        Self {
            luma: fixed(1.0, luma_span) as i16,
            red_from_v: fixed(2.0 * (1.0 - kr), chroma_span) as i16,
            green_from_u: fixed(-2.0 * (1.0 - kb) * kb / kg, chroma_span) as i16,
            green_from_v: fixed(-2.0 * (1.0 - kr) * kr / kg, chroma_span) as i16,
            blue_from_u: fixed(2.0 * (1.0 - kb), chroma_span) as i16,
        }
    }

    /// Writes red, green and blue, whole numbers of 0…255.
    #[inline(always)]
    pub fn apply(
        &self,
        [luma, cb, cr]: &[Lanes<Spread>; 3],
        [red, green, blue]: &mut [Lanes<f32>; 3],
    ) {
        for i in 0..luma.len() {
            let y = upper(luma[i], self.luma);
            let g = y + upper(cb[i], self.green_from_u) + upper(cr[i], self.green_from_v);
            red[i] = level(y + upper(cr[i], self.red_from_v));
            green[i] = level(g);
            blue[i] = level(y + upper(cb[i], self.blue_from_u));
        }
    }

    /// Writes the level of grey, a whole number of 0…255, to all three channels.
    #[inline(always)]
    pub fn apply_gray(&self, luma: &Lanes<Spread>, [red, green, blue]: &mut [Lanes<f32>; 3]) {
        for i in 0..luma.len() {
            red[i] = level(upper(luma[i], self.luma));
            green[i] = red[i];
            blue[i] = red[i];
        }
    }
}

/// The upper half of a product.
#[inline(always)]
fn upper(a: i16, b: i16) -> i16 {
    ((i32::from(a) * i32::from(b)) >> 16) as i16
}

/// From less 128 to 0…255.
#[inline(always)]
fn level(signed: i16) -> f32 {
    f32::from(signed.clamp(-128, 127) + 128)
}
