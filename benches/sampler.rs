// SPDX-License-Identifier: MPL-2.0
//! Milliseconds that the resampler takes for a detector's and a landmark network's input, and for a
//! whole frame as it is and at a width of 640, for every frame format.
//!
//! `cargo bench --package facetrack --bench sampler [-- FORMAT…]`

use std::time::{Duration, Instant};

use facetrack::geometry::{Point, RotatedRect, Size};
use facetrack::image::{
    self, Arithmetic, ColorModel, Colorimetry, Component, ImageView, PixelFormat, Plane, Word,
};
use facetrack::instructions;
use facetrack::sample::{Border, Crop, Layout, Levels, ValueRange};

const FORMATS: [PixelFormat; 13] = {
    use PixelFormat::*;
    [
        Rgb, Bgr, Rgbx, Bgrx, Xrgb, Xbgr, Gray8, Nv12, Nv21, I420, Yv12, Yuy2, Uyvy,
    ]
};

/// Time spent on each figure.
const BUDGET: Duration = Duration::from_millis(400);

fn main() {
    instructions::set_from_vars(std::env::var_os).expect("an instruction set");
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    println!("ms a crop (median), one thread");
    println!(
        "{:<10}{:<12}{:>14}{:>14}{:>14}{:>14}{:>14}{:>14}",
        "format",
        "frame",
        "detector 128",
        "face 256",
        "… interleaved",
        "… on a corner",
        "one to one",
        "640 wide"
    );
    let layouts = layouts();
    for (width, height) in [(640, 360), (1920, 1080)] {
        let common = FORMATS.map(|format| (format!("{format:?}"), Format::Common(format)));
        let described = layouts
            .iter()
            .map(|(name, layout)| ((*name).to_owned(), Format::Described(layout)));
        for (name, format) in common.into_iter().chain(described) {
            if !wanted.is_empty() && !wanted.contains(&name) {
                continue;
            }
            let figures = measure(format, width, height);
            print!("{name:<10}{:<12}", format!("{width}×{height}"));
            figures.iter().for_each(|ms| print!("{ms:>14.3}"));
            println!();
        }
    }
}

/// Form of a format for the resampler.
#[derive(Clone, Copy)]
enum Format<'a> {
    Common(PixelFormat),
    Described(&'a image::Layout),
}

impl Format<'_> {
    /// For each plane bytes of a row and number of rows.
    fn planes(self, width: usize, height: usize) -> Vec<(usize, usize)> {
        match self {
            Self::Common(format) => format.plane_layout(width, height),
            Self::Described(layout) => layout.plane_layout(width, height),
        }
    }
}

/// 10-bit formats with their names.
fn layouts() -> [(&'static str, image::Layout); 3] {
    let component = |plane, offset, step, subsampling, shift| Component {
        plane,
        offset,
        step,
        subsampling,
        word: Word::Le16,
        shift,
        depth: 10,
    };
    let yuv = |components: [Component; 3]| image::Layout {
        model: ColorModel::Yuv,
        components: components.into(),
    };
    [
        (
            "I420_10LE",
            yuv([0, 1, 2].map(|i: usize| component(i, 0, 2, [i.min(1) as u32; 2], 0))),
        ),
        (
            "I422_10LE",
            yuv([0, 1, 2].map(|i: usize| component(i, 0, 2, [i.min(1) as u32, 0], 0))),
        ),
        (
            "P010_10LE",
            yuv([
                component(0, 0, 2, [0, 0], 6),
                component(1, 0, 4, [1, 1], 6),
                component(1, 2, 4, [1, 1], 6),
            ]),
        ),
    ]
}

fn measure(format: Format, width: usize, height: usize) -> [f64; 6] {
    let buffers: Vec<(Vec<u8>, usize)> = format
        .planes(width, height)
        .into_iter()
        .map(|(row_bytes, rows)| (noise(row_bytes * rows), row_bytes))
        .collect();
    let planes: Vec<Plane> = buffers
        .iter()
        .map(|(data, stride)| Plane {
            data,
            stride: *stride,
        })
        .collect();
    let colorimetry = Colorimetry::default();
    let image = match format {
        Format::Common(format) => ImageView::new(format, width, height, colorimetry, &planes),
        Format::Described(layout) => {
            let arithmetic = Arithmetic::Floats;
            ImageView::with_layout(layout, arithmetic, width, height, colorimetry, &planes)
        }
    };
    let image = image.expect("planes of the format's layout");
    let (w, h) = (width as f32, height as f32);
    let face = Crop {
        roi: RotatedRect {
            center: Point::new(w * 0.5, h * 0.5),
            size: Size::new(h * 0.55, h * 0.55),
            rotation: 0.21,
        },
        width: 256,
        height: 256,
        range: ValueRange::UNIT,
        border: Border::Replicate,
        layout: Layout::Planar,
        levels: Levels::Whole,
        window: None,
        rows: None,
    };
    let mut on_a_corner = face;
    on_a_corner.roi.center = Point::new(w * 0.05, h * 0.05);
    let mut interleaved = face;
    interleaved.layout = Layout::Interleaved;
    let mut detector = face;
    detector.roi = RotatedRect {
        center: face.roi.center,
        size: Size::new(w, w),
        rotation: 0.0,
    };
    (detector.width, detector.height) = (128, 128);
    detector.border = Border::Black;
    let whole = |columns: usize, rows: usize| Crop {
        roi: RotatedRect {
            center: face.roi.center,
            size: Size::new(w, h),
            rotation: 0.0,
        },
        width: columns,
        height: rows,
        range: ValueRange::BYTE,
        border: Border::Black,
        layout: Layout::Planar,
        levels: Levels::Whole,
        window: None,
        rows: None,
    };
    let one_to_one = whole(width, height);
    let narrow = whole(640, 640 * height / width);
    [detector, face, interleaved, on_a_corner, one_to_one, narrow]
        .map(|crop| median_ms(&crop, &image))
}

fn median_ms(crop: &Crop, image: &ImageView) -> f64 {
    let mut tensor = vec![0.0; crop.len()];
    let mut times = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < BUDGET {
        let start = Instant::now();
        crop.sample(image, &mut tensor).expect("a good region");
        times.push(start.elapsed());
    }
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// Bytes of a linear congruential generator (Knuth's MMIX constants).
fn noise(count: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}
