// SPDX-License-Identifier: MPL-2.0
//! A frame's brightness, for detectors that see no colour.

use crate::face::image::PixelFormat::*;
use crate::face::image::{ColorRange, ImageView};

/// Weights of red, green and blue in grey, and digits after their point: `RGB2Gray<uchar>` in OpenCV's
/// `color_rgb.simd.hpp`.
const RED: u32 = 9798;
const GREEN: u32 = 19235;
const BLUE: u32 = 3735;
const DIGITS: u32 = 15;

/// Codes of black and white in luma of limited range: ITU-R BT.601-7.
const LIMITED_BLACK: i32 = 16;
const LIMITED_WHITE: i32 = 235;

/// Fills `out` with the frame's rows of grey, 0 black and 255 white, one after another.
///
/// Of red, green and blue it is what OpenCV's `COLOR_BGR2GRAY` makes of them; of Y′CbCr and grey it is luma, brought to
/// the full range and rounded to nearest. The two differ by a level where a conversion to RGB would round or clip, and
/// more where the frame's matrix has other weights than BT.601.
pub fn luma(image: &ImageView, out: &mut Vec<u8>) {
    out.clear();
    out.reserve(image.width() * image.height());
    match image.format() {
        Rgb => rgb_rows::<3>(image, [0, 1, 2], out),
        Bgr => rgb_rows::<3>(image, [2, 1, 0], out),
        Rgbx => rgb_rows::<4>(image, [0, 1, 2], out),
        Bgrx => rgb_rows::<4>(image, [2, 1, 0], out),
        Xrgb => rgb_rows::<4>(image, [1, 2, 3], out),
        Xbgr => rgb_rows::<4>(image, [3, 2, 1], out),
        Gray8 | Nv12 | Nv21 | I420 | Yv12 => luma_rows::<1>(image, 0, out),
        Yuy2 => luma_rows::<2>(image, 0, out),
        Uyvy => luma_rows::<2>(image, 1, out),
    }
}

fn rgb_rows<const BYTES: usize>(
    image: &ImageView,
    [red, green, blue]: [usize; 3],
    out: &mut Vec<u8>,
) {
    for row in rows::<BYTES>(image) {
        let (pixels, _) = row.as_chunks::<BYTES>();
        out.extend(pixels.iter().map(|pixel| {
            let [r, g, b] = [red, green, blue].map(|channel| u32::from(pixel[channel]));
            ((r * RED + g * GREEN + b * BLUE + (1 << (DIGITS - 1))) >> DIGITS) as u8
        }));
    }
}

fn luma_rows<const BYTES: usize>(image: &ImageView, offset: usize, out: &mut Vec<u8>) {
    let levels = levels(image.colorimetry().range);
    for row in rows::<BYTES>(image) {
        let (pixels, _) = row.as_chunks::<BYTES>();
        out.extend(
            pixels
                .iter()
                .map(|pixel| levels[usize::from(pixel[offset])]),
        );
    }
}

/// The pixels of each row of the first plane.
fn rows<'a, const BYTES: usize>(image: &ImageView<'a>) -> impl Iterator<Item = &'a [u8]> {
    let plane = image.plane(0);
    let bytes = image.width() * BYTES;
    (0..image.height()).map(move |row| &plane.data[row * plane.stride..][..bytes])
}

/// The level of each luma code.
fn levels(range: ColorRange) -> [u8; 256] {
    let span = LIMITED_WHITE - LIMITED_BLACK;
    std::array::from_fn(|code| match range {
        ColorRange::Full => code as u8,
        ColorRange::Limited => {
            let level = ((code as i32 - LIMITED_BLACK) * 255 + span / 2).div_euclid(span);
            level.clamp(0, 255) as u8
        }
    })
}
