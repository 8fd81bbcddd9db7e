// SPDX-License-Identifier: MPL-2.0
//! Bilinear interpolation in fixed point, with the result of OpenCV's `INTER_LINEAR_EXACT`
//! (`interpolationLinear` and `resize_bitExact` in its `resize.cpp`): weights in 256ths, and one
//! rounding at the end. As intermediate values are not rounded, columns may be interpolated before
//! rows. Then only one row has to be gathered from instead of two.

/// The neighbours of a position along an axis: pixel `first` and the one after it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Tap {
    first: u32,
    /// Weight of the second neighbour, in 256ths; the first has the rest.
    weight: u32,
}

/// The unit of weights: `ufixedpoint16` has 8 digits after the point.
const ONE: u32 = 256;

/// Resizes images. Contains working memory.
#[derive(Debug, Default)]
pub(super) struct Resizer {
    width: usize,
    columns: Vec<Tap>,
    rows: Vec<Tap>,
    column_sums: Vec<u16>,
}

impl Resizer {
    /// Prepares for resizing images from one size to another. Widths and heights are in pixels,
    /// more than 1.
    pub(super) fn begin(&mut self, from: [usize; 2], to: [usize; 2]) {
        self.width = from[0];
        fill(&mut self.columns, from[0], to[0]);
        fill(&mut self.rows, from[1], to[1]);
    }

    /// Writes row `row` of the resized `image`.
    #[inline(always)]
    pub(super) fn row(&mut self, image: &[u8], row: usize, out: &mut [u8]) {
        let column_sums = &mut self.column_sums;
        let Tap { first, weight } = self.rows[row];
        let pair = &image[first as usize * self.width..][..2 * self.width];
        let (upper, lower) = pair.split_at(self.width);
        let (own, other) = ((ONE - weight) as u16, weight as u16);
        column_sums.clear();
        column_sums.extend(
            std::iter::zip(upper, lower).map(|(a, b)| u16::from(*a) * own + u16::from(*b) * other),
        );
        for (out, tap) in out.iter_mut().zip(&self.columns) {
            let first = tap.first as usize;
            let [a, b] = [0, 1].map(|next| u32::from(column_sums[first + next]));
            let sum = a * (ONE - tap.weight) + b * tap.weight;
            *out = ((sum + ONE * ONE / 2) / (ONE * ONE)) as u8;
        }
    }
}

/// `interpolationLinear::getCoeffs`: pixel centres are aligned. Beyond the first and the last pixel
/// centre, values are constant.
fn fill(taps: &mut Vec<Tap>, from: usize, to: usize) {
    let scale = 1.0 / (to as f64 / from as f64);
    let last_first = from.saturating_sub(2) as f64;
    taps.clear();
    taps.extend((0..to).map(|i| {
        let place = (scale * (i as f64 + 0.5) - 0.5).clamp(0.0, from as f64 - 1.0);
        let first = place.floor().min(last_first);
        Tap {
            first: first as u32,
            weight: ((place - first) * f64::from(ONE)).round_ties_even() as u32,
        }
    }));
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Noise resized by OpenCV. Images are in hexadecimal, row by row.
    #[derive(Deserialize)]
    struct Case {
        from: [usize; 2],
        to: [usize; 2],
        image: String,
        resized: String,
    }

    #[derive(Deserialize)]
    struct Golden {
        sizes: Vec<Case>,
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits = |i| &hex[2 * i..2 * i + 2];
        let bytes = (0..hex.len() / 2).map(|i| u8::from_str_radix(digits(i), 16));
        bytes.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn images_are_resized_as_opencv_resizes_them() {
        let golden = include_str!("../../../../../../tests/golden/haar.json");
        let golden: Golden = serde_json::from_str(golden).unwrap();
        let mut resizer = Resizer::default();
        for case in golden.sizes {
            let image = bytes(&case.image);
            resizer.begin(case.from, case.to);
            let mut resized = vec![0; case.to[0] * case.to[1]];
            for (row, out) in resized.chunks_exact_mut(case.to[0]).enumerate() {
                resizer.row(&image, row, out);
            }
            assert_eq!(
                resized,
                bytes(&case.resized),
                "{:?} to {:?}",
                case.from,
                case.to
            );
        }
    }
}
