// SPDX-License-Identifier: MPL-2.0
//! Colors and their codes in frames.

use std::str::FromStr;

use crate::image::{ColorModel, Colorimetry};

/// Red, green and blue, 0…255.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rgb(pub [u8; 3]);

impl Rgb {
    pub(super) const BLACK: Self = Self([0, 0, 0]);
    pub(super) const WHITE: Self = Self([255, 255, 255]);

    /// Colors that people with any kind of color vision can distinguish: M. Okabe, K. Ito: Color
    /// Universal Design, 2008, without black, ordered for maximum contrast between neighbors.
    pub const PALETTE: [Self; 7] = [
        Self::SKY_BLUE,
        Self::ORANGE,
        Self::GREEN,
        Self::YELLOW,
        Self::PURPLE,
        Self::VERMILLION,
        Self::BLUE,
    ];
    pub(super) const SKY_BLUE: Self = Self([0x56, 0xb4, 0xe9]);
    pub(super) const ORANGE: Self = Self([0xe6, 0x9f, 0x00]);
    pub(super) const GREEN: Self = Self([0x00, 0x9e, 0x73]);
    pub(super) const YELLOW: Self = Self([0xf0, 0xe4, 0x42]);
    pub(super) const PURPLE: Self = Self([0xcc, 0x79, 0xa7]);
    pub(super) const VERMILLION: Self = Self([0xd5, 0x5e, 0x00]);
    pub(super) const BLUE: Self = Self([0x00, 0x72, 0xb2]);

    /// The color of a track, which depends only on its id.
    pub fn of_track(id: u32) -> Self {
        let index = id.wrapping_sub(1) as usize % Self::PALETTE.len();
        Self::PALETTE[index]
    }

    /// Black or white, whichever has more contrast on this color.
    pub(super) fn contrast(self) -> Self {
        let [r, g, b] = self.0.map(u32::from);
        // The luma of BT.601 in thousandths.
        if 299 * r + 587 * g + 114 * b > 140_000 {
            Self::BLACK
        } else {
            Self::WHITE
        }
    }

    /// The code of the color in component `index` of `depth` bits: R, G, B, or Y′, Cb, Cr, or gray,
    /// then opaque alpha. By ITU-R BT.601-7, BT.709-6 and BT.2020-2.
    pub(super) fn code(
        self,
        model: ColorModel,
        colorimetry: Colorimetry,
        index: usize,
        depth: u32,
    ) -> u32 {
        let most = f64::from((1u32 << depth) - 1);
        let [r, g, b] = self.0.map(|level| f64::from(level) / 255.0);
        let (kr, kb) = colorimetry.matrix.luma_weights();
        let luma = kr * r + (1.0 - kr - kb) * g + kb * b;
        let chroma = |difference: f64| {
            let middle = f64::from(1u32 << (depth - 1));
            middle + difference * colorimetry.range.chroma_span(depth)
        };
        let code = match (model, index) {
            (ColorModel::Rgb, 0..=2) => [r, g, b][index] * most,
            (ColorModel::Yuv | ColorModel::Gray, 0) => {
                let (black, span) = colorimetry.range.luma_span(depth);
                black + luma * span
            }
            (ColorModel::Yuv, 1) => chroma((b - luma) / (2.0 * (1.0 - kb))),
            (ColorModel::Yuv, 2) => chroma((r - luma) / (2.0 * (1.0 - kr))),
            _ => most,
        };
        code.round().clamp(0.0, most) as u32
    }
}

impl FromStr for Rgb {
    type Err = String;

    /// Parses six hexadecimal digits, with or without a leading `#`.
    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim();
        let digits = digits.strip_prefix('#').unwrap_or(digits);
        let is_number = digits.len() == 6 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u32::from_str_radix(digits, 16) {
            Ok(number) if is_number => {
                let [_, r, g, b] = number.to_be_bytes();
                Ok(Self([r, g, b]))
            }
            _ => Err(format!(
                "{text:?} is not a color: use six hexadecimal digits, such as #E69F00"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{ColorMatrix, ColorRange};

    #[test]
    fn colors_are_read_from_hexadecimal_digits() {
        for text in ["#E69F00", "e69f00", " #e69F00 "] {
            assert_eq!(text.parse(), Ok(Rgb::ORANGE), "{text}");
        }
        for text in [
            "", "#", "orange", "#E69F0", "#E69F000", "-69f00", "+69f00", "#é9f00", "##E69F00",
        ] {
            let error = text.parse::<Rgb>().expect_err(text);
            assert!(error.contains("hexadecimal"), "{error}");
        }
    }

    #[test]
    fn tracks_have_colors_in_turn() {
        assert_eq!(Rgb::of_track(1), Rgb::SKY_BLUE);
        assert_eq!(Rgb::of_track(8), Rgb::SKY_BLUE);
        assert_ne!(Rgb::of_track(2), Rgb::of_track(3));
        Rgb::of_track(0);
        Rgb::of_track(u32::MAX);
    }

    /// Pure red, with the codes of the recommendations.
    #[test]
    fn codes_are_those_of_the_recommendations() {
        let colorimetry = |matrix, range| Colorimetry {
            matrix,
            range,
            ..Colorimetry::default()
        };
        let red = Rgb([255, 0, 0]);
        for (matrix, range, depth, want) in [
            (ColorMatrix::Bt601, ColorRange::Limited, 8, [81, 90, 240]),
            (ColorMatrix::Bt709, ColorRange::Limited, 8, [63, 102, 240]),
            (ColorMatrix::Bt709, ColorRange::Limited, 10, [250, 409, 960]),
            (ColorMatrix::Bt601, ColorRange::Full, 8, [76, 85, 255]),
        ] {
            let codes =
                [0, 1, 2].map(|i| red.code(ColorModel::Yuv, colorimetry(matrix, range), i, depth));
            assert_eq!(codes, want, "{matrix:?} {range:?} {depth}");
        }
        let any = Colorimetry::default();
        assert_eq!(
            [0, 1, 2, 3].map(|i| Rgb::ORANGE.code(ColorModel::Rgb, any, i, 5)),
            [28, 19, 0, 31]
        );
        assert_eq!(Rgb::WHITE.code(ColorModel::Gray, any, 0, 8), 235);
        assert_eq!(Rgb::WHITE.code(ColorModel::Yuv, any, 3, 16), 65535);
    }
}
