// SPDX-License-Identifier: MPL-2.0
//! A picture in every pixel format.

use facetrack::image::{ColorRange, Colorimetry, ImageView, PixelFormat, Plane};

/// Every format.
pub const FORMATS: [PixelFormat; 13] = [
    PixelFormat::Rgb,
    PixelFormat::Bgr,
    PixelFormat::Rgbx,
    PixelFormat::Bgrx,
    PixelFormat::Xrgb,
    PixelFormat::Xbgr,
    PixelFormat::Gray8,
    PixelFormat::Nv12,
    PixelFormat::Nv21,
    PixelFormat::I420,
    PixelFormat::Yv12,
    PixelFormat::Yuy2,
    PixelFormat::Uyvy,
];

/// An image in any format, full range BT.601.
pub struct Image {
    format: PixelFormat,
    width: usize,
    height: usize,
    planes: Vec<(Vec<u8>, usize)>,
}

impl Image {
    /// The image as a view for engines.
    pub fn view(&self) -> ImageView<'_> {
        let planes: Vec<_> = self
            .planes
            .iter()
            .map(|(data, stride)| Plane {
                data,
                stride: *stride,
            })
            .collect();
        let colorimetry = Colorimetry {
            range: ColorRange::Full,
            ..Colorimetry::default()
        };
        ImageView::new(self.format, self.width, self.height, colorimetry, &planes).unwrap()
    }

    /// The same picture as packed RGB; rows are padded by five bytes.
    pub fn from_rgb(format: PixelFormat, width: usize, height: usize, rgb: &[u8]) -> Self {
        use PixelFormat::*;
        let pixel = |x: usize, y: usize| -> [f32; 3] {
            let (x, y) = (x.min(width - 1), y.min(height - 1));
            std::array::from_fn(|channel| f32::from(rgb[(y * width + x) * 3 + channel]))
        };
        let luma = |[r, g, b]: [f32; 3]| 0.299 * r + 0.587 * g + 0.114 * b;
        // Chroma over `w`×`h` pixels; 0 is U, 1 is V.
        let chroma = |which: usize, x: usize, y: usize, w: usize, h: usize| {
            let sum: f32 = (0..w * h)
                .map(|i| {
                    let p = pixel(x + i % w, y + i / w);
                    match which {
                        0 => (p[2] - luma(p)) / 1.772,
                        _ => (p[0] - luma(p)) / 1.402,
                    }
                })
                .sum();
            sum / (w * h) as f32 + 128.0
        };
        let value = |plane: usize, column: usize, y: usize| -> f32 {
            let rgb_of = |bytes: usize, order: [usize; 4]| {
                let channel = order[column % bytes];
                pixel(column / bytes, y)
                    .get(channel)
                    .copied()
                    .unwrap_or(77.0)
            };
            let packed = |y_first: usize| {
                let (pair, slot) = (column / 4 * 2, column % 4);
                match slot % 2 == y_first {
                    true => luma(pixel(pair + slot / 2, y)),
                    false => chroma(slot / 2, pair, y, 2, 1),
                }
            };
            match (format, plane) {
                (Rgb, _) => rgb_of(3, [0, 1, 2, 3]),
                (Bgr, _) => rgb_of(3, [2, 1, 0, 3]),
                (Rgbx, _) => rgb_of(4, [0, 1, 2, 3]),
                (Bgrx, _) => rgb_of(4, [2, 1, 0, 3]),
                (Xrgb, _) => rgb_of(4, [3, 0, 1, 2]),
                (Xbgr, _) => rgb_of(4, [3, 2, 1, 0]),
                (Yuy2, _) => packed(0),
                (Uyvy, _) => packed(1),
                (_, 0) => luma(pixel(column, y)),
                (Nv12, _) => chroma(column % 2, column / 2 * 2, y * 2, 2, 2),
                (Nv21, _) => chroma(1 - column % 2, column / 2 * 2, y * 2, 2, 2),
                (I420, _) => chroma(plane - 1, column * 2, y * 2, 2, 2),
                (_, _) => chroma(2 - plane, column * 2, y * 2, 2, 2),
            }
        };
        let planes = format
            .plane_layout(width, height)
            .into_iter()
            .enumerate()
            .map(|(plane, (row_bytes, rows))| {
                let stride = row_bytes + 5;
                let mut data = vec![0xaa; stride * rows];
                for y in 0..rows {
                    for column in 0..row_bytes {
                        data[y * stride + column] =
                            value(plane, column, y).round().clamp(0.0, 255.0) as u8;
                    }
                }
                (data, stride)
            })
            .collect();
        Self {
            format,
            width,
            height,
            planes,
        }
    }
}
