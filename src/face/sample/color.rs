// SPDX-License-Identifier: MPL-2.0
//! From an image's numbers to red, green and blue in 0…255.

use crate::face::image::{ColorMatrix, ColorRange, Colorimetry};

/// Neutral chroma code at 8 bits.
const NEUTRAL: f32 = 128.0;

/// Weights of red and blue in luma; ITU-R BT.601-7, BT.709-6, BT.2020-2.
fn luma_weights(matrix: ColorMatrix) -> (f32, f32) {
    match matrix {
        ColorMatrix::Bt601 => (0.299, 0.114),
        ColorMatrix::Bt709 => (0.2126, 0.0722),
        ColorMatrix::Bt2020 => (0.2627, 0.0593),
    }
}

/// A stretch of codes to 0…255: value = code·scale + offset.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    scale: f32,
    offset: f32,
}

impl Stretch {
    /// For luma, grey and R′G′B′ codes: 219 codes from 16 on are black to white when the range is limited.
    pub fn of_luma(range: ColorRange) -> Self {
        match range {
            ColorRange::Full => Self {
                scale: 1.0,
                offset: 0.0,
            },
            ColorRange::Limited => Self {
                scale: 255.0 / 219.0,
                offset: -16.0 * 255.0 / 219.0,
            },
        }
    }

    /// The stretched code, not yet limited to 0…255.
    #[inline(always)]
    pub fn apply(&self, code: f32) -> f32 {
        code * self.scale + self.offset
    }
}

/// Y′CbCr → R′G′B′ with all constants gathered.
#[derive(Debug, Clone, Copy)]
pub struct YuvToRgb {
    luma: Stretch,
    red_from_v: f32,
    green_from_u: f32,
    green_from_v: f32,
    blue_from_u: f32,
}

impl YuvToRgb {
    /// R = Y + 2(1−Kr)·V, B = Y + 2(1−Kb)·U, G from Y = Kr·R + Kg·G + Kb·B; chroma spans 224 codes in the limited range.
    pub fn new(colorimetry: Colorimetry) -> Self {
        let (kr, kb) = luma_weights(colorimetry.matrix);
        let kg = 1.0 - kr - kb;
        let chroma = match colorimetry.range {
            ColorRange::Full => 1.0,
            ColorRange::Limited => 255.0 / 224.0,
        };
        let (red_from_v, blue_from_u) = (2.0 * (1.0 - kr) * chroma, 2.0 * (1.0 - kb) * chroma);
        Self {
            luma: Stretch::of_luma(colorimetry.range),
            red_from_v,
            green_from_u: -blue_from_u * kb / kg,
            green_from_v: -red_from_v * kr / kg,
            blue_from_u,
        }
    }

    /// Red, green and blue, limited to 0…255.
    #[inline(always)]
    pub fn apply(&self, y: f32, u: f32, v: f32) -> [f32; 3] {
        let y = self.luma.apply(y);
        let (u, v) = (u - NEUTRAL, v - NEUTRAL);
        [
            y + self.red_from_v * v,
            y + self.green_from_u * u + self.green_from_v * v,
            y + self.blue_from_u * u,
        ]
        .map(limit)
    }
}

/// `value` brought into 0…255.
#[inline(always)]
pub fn limit(value: f32) -> f32 {
    value.max(0.0).min(255.0)
}
