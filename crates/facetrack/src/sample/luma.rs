// SPDX-License-Identifier: MPL-2.0
//! A frame's brightness, for detectors that see no colour.

use super::picture::Picture;
use super::source::GrayLevels;
use crate::image::PixelFormat::{self, *};
use crate::image::{ColorModel, ColorRange, Component, ImageView, Layout, Pixels, Plane, Word};

/// Weights of red, green and blue in grey, and digits after their point: `RGB2Gray<uchar>` in OpenCV's
/// `color_rgb.simd.hpp`.
const RED: u32 = 9798;
const GREEN: u32 = 19235;
const BLUE: u32 = 3735;
const DIGITS: u32 = 15;

/// Codes of black and white in luma of limited range: ITU-R BT.601-7.
const LIMITED_BLACK: i32 = 16;
const LIMITED_WHITE: i32 = 235;

/// Fills `out` with the frame's stored rows of grey, 0 black and 255 white, one after another.
///
/// Of red, green and blue it is what OpenCV's `COLOR_BGR2GRAY` makes of them; of Y′CbCr and grey it is luma, brought to
/// the full range and rounded to nearest. The two differ by a level where a conversion to RGB would round or clip, and
/// more where the frame's matrix has other weights than BT.601.
pub fn luma(image: &ImageView, out: &mut Vec<u8>) {
    out.clear();
    let [width, height] = image.stored_size();
    out.reserve(width * height);
    match image.pixels() {
        Pixels::Known(format) => known_rows(image, *format, out),
        Pixels::Samples(layout) => sample_rows(image, layout, &image.planes(), out),
        Pixels::Rows(rows) => {
            let picture = Picture::unpack(&**rows, image.stored_size(), |_| true);
            sample_rows(image, rows.layout(), &[picture.plane()], out);
        }
    }
}

fn known_rows(image: &ImageView, format: PixelFormat, out: &mut Vec<u8>) {
    match format {
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

/// Grey of an image in the format `layout`.
fn sample_rows(image: &ImageView, layout: &Layout, planes: &[Plane<'_>], out: &mut Vec<u8>) {
    let [width, height] = image.stored_size();
    let range = image.colorimetry().range;
    for y in 0..height {
        match (layout.model, layout.colors()) {
            (ColorModel::Rgb, [red, green, blue]) => {
                let codes = [red, green, blue].map(|c| (c, codes(c, planes, y)));
                out.extend((0..width).map(|x| {
                    let [r, g, b] = codes.map(|(c, codes)| {
                        let (code, max) = (code(c, codes, x), c.max_code());
                        (code * 255 + max / 2) / max
                    });
                    grey(r, g, b)
                }));
            }
            (_, colors) => {
                let luma = &colors[0];
                let (levels, codes) = (GrayLevels::new(luma.depth, range), codes(luma, planes, y));
                out.extend((0..width).map(|x| levels.level(code(luma, codes, x) as f32) as u8));
            }
        }
    }
}

/// The bytes from the first sample of a component in row `y` on.
fn codes<'a>(component: &Component, planes: &[Plane<'a>], y: usize) -> &'a [u8] {
    let plane = planes[component.plane];
    let row = (y >> component.subsampling[1]) * plane.stride;
    plane.data.get(row + component.offset..).unwrap_or_default()
}

/// The code of a component at column `x` of a row of `samples`.
fn code(component: &Component, samples: &[u8], x: usize) -> u32 {
    let at = (x >> component.subsampling[0]) * component.step;
    let byte = |index: usize| u32::from(samples.get(at + index).copied().unwrap_or(0));
    let word = match component.word {
        Word::Byte => byte(0),
        Word::Le16 => byte(0) | byte(1) << 8,
        Word::Be16 => byte(1) | byte(0) << 8,
    };
    (word >> component.shift) & component.max_code()
}

/// `RGB2Gray<uchar>` in OpenCV's `color_rgb.simd.hpp`.
fn grey(red: u32, green: u32, blue: u32) -> u8 {
    ((red * RED + green * GREEN + blue * BLUE + (1 << (DIGITS - 1))) >> DIGITS) as u8
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
            grey(r, g, b)
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
    let [width, height] = image.stored_size();
    let bytes = width * BYTES;
    (0..height).map(move |row| &plane.data[row * plane.stride..][..bytes])
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

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::image::{Colorimetry, PixelFormat, Plane};

    /// Red, green, blue, and what OpenCV makes of them.
    #[derive(Deserialize)]
    struct Golden {
        greys: Vec<[u8; 4]>,
    }

    /// Grey of an image of 4 columns whose planes have that many bytes beyond each row.
    fn grey(format: PixelFormat, range: ColorRange, planes: &[Vec<u8>], padding: usize) -> Vec<u8> {
        let height = planes[0].len() / (format.plane_layout(4, 1)[0].0);
        let padded: Vec<(Vec<u8>, usize)> = std::iter::zip(planes, format.plane_layout(4, height))
            .map(|(plane, (bytes, _))| {
                let rows = plane.chunks_exact(bytes);
                let padded = rows.flat_map(|row| [row, &vec![0xaa; padding]].concat());
                (padded.collect(), bytes + padding)
            })
            .collect();
        let planes: Vec<Plane> = padded
            .iter()
            .map(|(data, stride)| Plane {
                data,
                stride: *stride,
            })
            .collect();
        let colorimetry = Colorimetry {
            range,
            ..Colorimetry::default()
        };
        let image = ImageView::new(format, 4, height, colorimetry, &planes).unwrap();
        let mut out = vec![1, 2, 3];
        luma(&image, &mut out);
        out
    }

    #[test]
    fn colors_are_as_grey_as_opencv_makes_them() {
        let golden = include_str!("../../../../tests/golden/haar.json");
        let golden: Golden = serde_json::from_str(golden).unwrap();
        let colors = &golden.greys[..golden.greys.len() / 4 * 4];
        let expected: Vec<u8> = colors.iter().map(|color| color[3]).collect();
        // Channels in their order in memory; 3 stands for a byte that is ignored.
        for (format, order) in [
            (Rgb, &[0, 1, 2][..]),
            (Bgr, &[2, 1, 0]),
            (Rgbx, &[0, 1, 2, 3]),
            (Bgrx, &[2, 1, 0, 3]),
            (Xrgb, &[3, 0, 1, 2]),
            (Xbgr, &[3, 2, 1, 0]),
        ] {
            let pixels = colors.iter().flat_map(|c| order.iter().map(|i| c[*i]));
            let plane = vec![pixels.collect()];
            for padding in [0, 5] {
                let grey = grey(format, ColorRange::Limited, &plane, padding);
                assert_eq!(grey, expected, "{format:?}");
            }
        }
    }

    #[test]
    fn luma_is_brought_to_the_full_range() {
        let codes = [0, 16, 17, 100, 126, 234, 235, 255];
        let limited = [0, 0, 1, 98, 128, 254, 255, 255];
        for format in [Gray8, Nv12, Nv21, I420, Yv12, Yuy2, Uyvy] {
            let luma: Vec<u8> = match format {
                Yuy2 => codes.iter().flat_map(|code| [*code, 77]).collect(),
                Uyvy => codes.iter().flat_map(|code| [77, *code]).collect(),
                _ => codes.to_vec(),
            };
            let chroma = format.plane_layout(4, 2).into_iter().skip(1);
            let chroma = chroma.map(|(bytes, rows)| vec![77; bytes * rows]);
            let planes: Vec<Vec<u8>> = std::iter::once(luma).chain(chroma).collect();
            for padding in [0, 3] {
                let grey = |range| grey(format, range, &planes, padding);
                assert_eq!(grey(ColorRange::Full), codes, "{format:?}");
                assert_eq!(grey(ColorRange::Limited), limited, "{format:?}");
            }
        }
    }
}
