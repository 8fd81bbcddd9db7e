// SPDX-License-Identifier: MPL-2.0
//! From Y′CbCr codes to red, green and blue, with the 8-bit arithmetic of GStreamer's
//! `videoconvert`.
//!
//! `videoconvert` multiplies signed codes (code − 128), spread to 16 bits, by coefficients in
//! 256ths and keeps the upper half of each product (`video_orc_convert_AYUV_ARGB`). With limited
//! range its result is about two levels below the exact one. It is reproduced to the bit, so that a
//! network sees the same picture with and without a `videoconvert` before the element.

use super::grid::Lanes;
use crate::image::Colorimetry;

/// A code as `videoconvert` multiplies it: minus 128, in both bytes of 16 bits.
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
    /// The coefficients for codes of 8 bits.
    pub fn new(colorimetry: Colorimetry) -> Self {
        let fixed =
            |weight: f64, span: f64| (weight * 255.0 / span * 256.0).round_ties_even() as i16;
        let (_, luma_span) = colorimetry.range.luma_span(8);
        let chroma_span = colorimetry.range.chroma_span(8);
        let [red_from_v, green_from_u, green_from_v, blue_from_u] = colorimetry
            .matrix
            .chroma_weights()
            .map(|weight| fixed(weight, chroma_span));
        Self {
            luma: fixed(1.0, luma_span),
            red_from_v,
            green_from_u,
            green_from_v,
            blue_from_u,
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

    /// Writes the level of gray, a whole number of 0…255, to all three channels.
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

/// Maps −128…127 to 0…255.
#[inline(always)]
fn level(signed: i16) -> f32 {
    f32::from(signed.clamp(-128, 127) + 128)
}
