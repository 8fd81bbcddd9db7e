// SPDX-License-Identifier: MPL-2.0
//! A frame in gray, for detectors that do not use color.

use std::collections::BTreeSet;

use super::color::GrayLevels;
use super::picture::Picture;
use crate::image::{Arithmetic, ColorModel, Component, ImageView, Layout, Pixels, Plane};
use crate::memory::{self, OutOfMemory};

/// Weights of red, green and blue in grey, and digits after their point: `RGB2Gray<uchar>` in
/// OpenCV's `color_rgb.simd.hpp`.
const RED: u32 = 9798;
const GREEN: u32 = 19235;
const BLUE: u32 = 3735;
const DIGITS: u32 = 15;

/// Fills `out` with the frame's stored rows in gray, 0 black and 255 white.
///
/// Red, green and blue are converted like OpenCV's `COLOR_BGR2GRAY`. For Y′CbCr and gray the result
/// is luma, scaled to the full range and rounded to nearest. The two differ by a level if a
/// conversion to RGB would round or clip, and more if the frame's matrix has other weights than
/// BT.601.
///
/// # Errors
/// Returns an error if there is too little memory.
pub fn luma(image: &ImageView, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    out.clear();
    let [width, height] = image.stored_size();
    let purpose = format_args!("the brightness of {width}×{height} pixels");
    memory::reserve(out, width * height, purpose)?;
    read(image, &PixelSet::All, out)
}

/// Mean brightness of each cell of a grid of `columns`×`rows` cells, row by row, with the levels of
/// [`luma`]. Of each cell, `samples` pixels of its middle row are read.
///
/// # Errors
/// Returns an error if there is too little memory to unpack the image.
pub fn cells(
    image: &ImageView,
    [columns, rows]: [usize; 2],
    samples: usize,
) -> Result<Vec<f32>, OutOfMemory> {
    let [width, height] = image.stored_size();
    let spots = PixelSet::Crossings {
        columns: evenly(columns * samples, width),
        rows: evenly(rows, height),
    };
    let mut levels = Vec::with_capacity(columns * rows * samples);
    read(image, &spots, &mut levels)?;
    let sum = |cell: &[u8]| cell.iter().map(|level| u32::from(*level)).sum::<u32>();
    let cells = levels.chunks(samples);
    let cells = cells.map(|cell| sum(cell) as f32 / samples as f32);
    Ok(cells.collect())
}

/// The pixels in the middle of `count` equal parts of a side.
fn evenly(count: usize, side: usize) -> Vec<usize> {
    (0..count)
        .map(|n| (2 * n + 1) * side / (2 * count))
        .collect()
}

/// The pixels to read.
enum PixelSet {
    All,
    /// Pixels in certain columns and rows.
    Crossings {
        columns: Vec<usize>,
        rows: Vec<usize>,
    },
}

impl PixelSet {
    /// The rows to read, of `height` rows.
    fn rows(&self, height: usize) -> Box<dyn Iterator<Item = usize> + '_> {
        match self {
            Self::All => Box::new(0..height),
            Self::Crossings { rows, .. } => Box::new(rows.iter().copied()),
        }
    }

    /// Adds the levels of a row of `width` pixels.
    #[inline(always)]
    fn extend(&self, out: &mut Vec<u8>, width: usize, level: impl Fn(usize) -> u8) {
        match self {
            Self::All => out.extend((0..width).map(level)),
            Self::Crossings { columns, .. } => out.extend(columns.iter().map(|x| level(*x))),
        }
    }
}

/// Adds the levels of pixels, row by row.
fn read(image: &ImageView, pixels: &PixelSet, out: &mut Vec<u8>) -> Result<(), OutOfMemory> {
    match image.pixels() {
        Pixels::Samples(layout, Arithmetic::Bytes) => byte_rows(image, layout, pixels, out),
        Pixels::Samples(layout, Arithmetic::Floats) => {
            sample_rows(image, layout, &image.planes(), pixels, out);
        }
        Pixels::Rows(rows) => {
            let [_, height] = image.stored_size();
            let needed: BTreeSet<_> = pixels.rows(height).collect();
            let is_needed = |row| needed.contains(&row);
            let picture = Picture::unpack(&**rows, image.stored_size(), is_needed)?;
            sample_rows(image, rows.layout(), &[picture.plane()], pixels, out);
        }
    }
    Ok(())
}

/// Gray of an image in a common format, whose luma or colors are in the first plane.
fn byte_rows(image: &ImageView, layout: &Layout, pixels: &PixelSet, out: &mut Vec<u8>) {
    let colors = layout.colors();
    let offsets = [0, 1, 2].map(|index: usize| colors.get(index).map_or(0, |color| color.offset));
    match colors[0].step {
        1 => luma_rows::<1>(image, offsets[0], pixels, out),
        2 => luma_rows::<2>(image, offsets[0], pixels, out),
        3 => rgb_rows::<3>(image, offsets, pixels, out),
        _ => rgb_rows::<4>(image, offsets, pixels, out),
    }
}

/// Gray of an image in the format of `layout`.
fn sample_rows(
    image: &ImageView,
    layout: &Layout,
    planes: &[Plane<'_>],
    pixels: &PixelSet,
    out: &mut Vec<u8>,
) {
    let [width, height] = image.stored_size();
    let range = image.colorimetry().range;
    for y in pixels.rows(height) {
        match (layout.model, layout.colors()) {
            (ColorModel::Rgb, [red, green, blue]) => {
                let rows = [red, green, blue].map(|c| (c, row(c, planes, y)));
                pixels.extend(out, width, |x| {
                    let [r, g, b] = rows.map(|(c, row)| {
                        let (code, max) = (c.code(row, x >> c.subsampling[0]), c.max_code());
                        (code * 255 + max / 2) / max
                    });
                    gray(r, g, b)
                });
            }
            (_, colors) => {
                let luma = &colors[0];
                let (levels, row) = (GrayLevels::new(luma.depth, range), row(luma, planes, y));
                pixels.extend(out, width, |x| {
                    levels.level(luma.code(row, x >> luma.subsampling[0]) as f32) as u8
                });
            }
        }
    }
}

/// The bytes from the row of a component with pixels of row `y` on.
fn row<'a>(component: &Component, planes: &[Plane<'a>], y: usize) -> &'a [u8] {
    let plane = planes[component.plane];
    &plane.data[(y >> component.subsampling[1]) * plane.stride..]
}

/// Converts a color to gray: `RGB2Gray<uchar>` in OpenCV's `color_rgb.simd.hpp`.
fn gray(red: u32, green: u32, blue: u32) -> u8 {
    ((red * RED + green * GREEN + blue * BLUE + (1 << (DIGITS - 1))) >> DIGITS) as u8
}

fn rgb_rows<const BYTES: usize>(
    image: &ImageView,
    offsets: [usize; 3],
    pixels: &PixelSet,
    out: &mut Vec<u8>,
) {
    for row in rows::<BYTES>(image, pixels) {
        pixels.extend(out, row.len(), |x| {
            let [r, g, b] = offsets.map(|offset| u32::from(row[x][offset]));
            gray(r, g, b)
        });
    }
}

fn luma_rows<const BYTES: usize>(
    image: &ImageView,
    offset: usize,
    pixels: &PixelSet,
    out: &mut Vec<u8>,
) {
    let gray = GrayLevels::new(8, image.colorimetry().range);
    let levels: [u8; 256] = std::array::from_fn(|code| gray.level(code as f32) as u8);
    for row in rows::<BYTES>(image, pixels) {
        pixels.extend(out, row.len(), |x| levels[usize::from(row[x][offset])]);
    }
}

/// The pixels of the rows of the first plane that are read.
fn rows<'a, const BYTES: usize>(
    image: &ImageView<'a>,
    pixels: &'a PixelSet,
) -> impl Iterator<Item = &'a [[u8; BYTES]]> {
    let [plane, ..] = image.planes();
    let [width, height] = image.stored_size();
    let rows = pixels.rows(height);
    rows.map(move |row| &plane.data[row * plane.stride..].as_chunks().0[..width])
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::image::PixelFormat::{self, *};
    use crate::image::{ColorRange, Colorimetry};

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
        luma(&image, &mut out).unwrap();
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

    /// One sample per cell is the pixel in its middle, in any format.
    #[test]
    fn cells_have_the_brightness_of_their_pixels() {
        for format in [Rgb, Bgrx, Gray8, Nv12, I420, Yuy2] {
            let planes: Vec<Vec<u8>> = format
                .plane_layout(12, 9)
                .iter()
                .map(|(bytes, rows)| (0..bytes * rows).map(|at| (at * 7 % 256) as u8).collect())
                .collect();
            let planes: Vec<Plane> = std::iter::zip(&planes, format.plane_layout(12, 9))
                .map(|(data, (stride, _))| Plane { data, stride })
                .collect();
            let image = ImageView::new(format, 12, 9, Colorimetry::default(), &planes).unwrap();
            let mut all = Vec::new();
            luma(&image, &mut all).unwrap();
            let level = |x: usize, y: usize| f32::from(all[y * 12 + x]);
            let middles = [1, 4, 7]
                .map(|y| [1, 4, 7, 10].map(|x| level(x, y)))
                .concat();
            assert_eq!(cells(&image, [4, 3], 1).unwrap(), middles, "{format:?}");
            let mean = (0..12).map(|x| level(x, 4)).sum::<f32>() / 12.0;
            assert_eq!(cells(&image, [1, 1], 12).unwrap(), [mean], "{format:?}");
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
