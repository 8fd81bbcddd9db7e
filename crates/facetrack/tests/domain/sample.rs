// SPDX-License-Identifier: MPL-2.0
//! The resampler against OpenCV, at the image's border, and with regions from outside reason.

use facetrack::geometry::{Point, RotatedRect, Size};
use facetrack::image::{
    self, Arithmetic, ChromaSite, ColorModel, ColorRange, Colorimetry, Component, ImageError,
    ImageView, PixelFormat, Plane, Word,
};
use facetrack::sample::{Border, Crop, Layout, Levels, SampleError, ValueRange, Window};
use serde_json::Value;

/// The upper bytes of Knuth's MMIX linear congruential generator, as in `golden/warp.py`.
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

fn region(x: f32, y: f32, width: f32, height: f32, rotation: f32) -> RotatedRect {
    RotatedRect {
        center: Point::new(x, y),
        size: Size::new(width, height),
        rotation,
    }
}

fn crop(roi: RotatedRect, width: usize, height: usize, border: Border) -> Crop {
    Crop {
        roi,
        width,
        height,
        range: ValueRange::BYTE,
        border,
        layout: Layout::Interleaved,
        levels: Levels::Whole,
        window: None,
        rows: None,
    }
}

fn sampled(crop: &Crop, image: &ImageView) -> Vec<f32> {
    let mut tensor = vec![f32::NAN; crop.len()];
    crop.sample(image, &mut tensor).expect("a good region");
    tensor
}

/// Planes of noise for a format, without padding.
fn planes(format: PixelFormat, width: usize, height: usize) -> Vec<(Vec<u8>, usize)> {
    let layout = format.plane_layout(width, height).into_iter();
    layout
        .map(|(row_bytes, rows)| (noise(row_bytes * rows), row_bytes))
        .collect()
}

fn view<'a>(
    format: PixelFormat,
    width: usize,
    height: usize,
    planes: &'a [(Vec<u8>, usize)],
) -> ImageView<'a> {
    view_of(format, width, height, Colorimetry::default(), planes)
}

fn view_of<'a>(
    format: PixelFormat,
    width: usize,
    height: usize,
    colorimetry: Colorimetry,
    planes: &'a [(Vec<u8>, usize)],
) -> ImageView<'a> {
    let planes: Vec<Plane> = planes
        .iter()
        .map(|(data, stride)| Plane {
            data,
            stride: *stride,
        })
        .collect();
    ImageView::new(format, width, height, colorimetry, &planes).expect("a whole image")
}

const FORMATS: [PixelFormat; 13] = {
    use PixelFormat::*;
    [
        Rgb, Bgr, Rgbx, Bgrx, Xrgb, Xbgr, Gray8, Nv12, Nv21, I420, Yv12, Yuy2, Uyvy,
    ]
};

#[test]
fn rgb_is_what_opencv_makes_of_it() {
    let golden: Value =
        serde_json::from_str(include_str!("../../../../tests/golden/warp.json")).expect("JSON");
    let mut want = include_bytes!("../../../../tests/golden/warp.bin").as_slice();
    let number = |value: &Value| value.as_f64().expect("a number");
    let [width, height] = [0, 1].map(|i| number(&golden["image"][i]) as usize);
    let pixels = noise(width * height * 3);
    let image = ImageView::rgb(width, height, &pixels).expect("a whole image");
    for case in golden["cases"].as_array().expect("cases") {
        let [x, y, w, h, rotation] =
            ["x", "y", "width", "height", "rotation"].map(|key| number(&case[key]) as f32);
        let [columns, rows] = ["columns", "rows"].map(|key| number(&case[key]) as usize);
        let border = match case["border"].as_str() {
            Some("black") => Border::Black,
            _ => Border::Replicate,
        };
        let crop = crop(region(x, y, w, h, rotation), columns, rows, border);
        let (own, rest) = want.split_at(crop.len());
        want = rest;
        let tensor = sampled(&crop, &image);
        let far = tensor
            .iter()
            .zip(own)
            .filter(|(a, b)| (*a - f32::from(**b)).abs() > 1.0)
            .count();
        let share = far as f64 / tensor.len() as f64;
        assert!(
            share <= 0.001,
            "{}: {far} of {}",
            case["name"],
            tensor.len()
        );
    }
    assert!(want.is_empty());
}

#[test]
fn one_to_one_changes_nothing() {
    for (width, height) in [(1, 1), (3, 5), (1, 7), (9, 1), (131, 3)] {
        let data = noise(width * height * 3);
        let image = ImageView::rgb(width, height, &data).expect("enough bytes");
        let (w, h) = (width as f32, height as f32);
        let whole = crop(
            region(w / 2.0, h / 2.0, w, h, 0.0),
            width,
            height,
            Border::Black,
        );
        let want: Vec<f32> = data.iter().map(|v| f32::from(*v)).collect();
        assert_eq!(sampled(&whole, &image), want, "{width}×{height}");
    }
}

/// Runs of whole pixels from an even column on are read in another way than others.
#[test]
fn whole_pixels_are_the_same_whichever_column_a_crop_starts_at() {
    let sites = [(false, false), (false, true), (true, false), (true, true)];
    for (width, height) in [(64, 2), (66, 1), (195, 5), (640, 3)] {
        for format in FORMATS {
            let planes = planes(format, width, height);
            for (horizontally_cosited, vertically_cosited) in sites {
                let mut colorimetry = view(format, width, height, &planes).colorimetry();
                colorimetry.chroma_site = ChromaSite {
                    horizontally_cosited,
                    vertically_cosited,
                };
                let image = view_of(format, width, height, colorimetry, &planes);
                let even = straight(&image, 0, width + 30);
                let odd = straight(&image, 1, width + 29);
                assert_eq!(
                    even[1..],
                    odd,
                    "{format:?} {width}×{height} {colorimetry:?}"
                );
                // Also to the right and below, where there is no image.
                let colored = even.iter().filter(|column| column.iter().any(|v| *v > 0.0));
                assert!(colored.count() <= width);
            }
        }
    }
}

/// The columns of an image and of the black below it from `first` on, one to one.
fn straight(image: &ImageView, first: usize, count: usize) -> Vec<Vec<f32>> {
    let rows = image.height() + 2;
    let (w, h) = (count as f32, rows as f32);
    let roi = region(first as f32 + w / 2.0, h / 2.0, w, h, 0.0);
    let tensor = sampled(&crop(roi, count, rows, Border::Black), image);
    (0..count)
        .map(|column| {
            let pixels = (0..rows).map(|row| (row * count + column) * 3);
            pixels.flat_map(|at| tensor[at..at + 3].to_vec()).collect()
        })
        .collect()
}

#[test]
fn the_transform_takes_tensor_pixels_to_image_pixels() {
    let pixels = noise(64 * 64 * 3);
    let image = ImageView::rgb(64, 64, &pixels).expect("a whole image");
    let quarter_turn = region(20.0, 30.0, 16.0, 8.0, std::f32::consts::FRAC_PI_2);
    let crop = crop(quarter_turn, 32, 8, Border::Black);
    let mut tensor = vec![0.0; crop.len()];
    let image_from_tensor = crop.sample(&image, &mut tensor).expect("a good region");
    for (tensor, image) in [
        (Point::new(0.0, 0.0), Point::new(24.0, 22.0)),
        (Point::new(32.0, 0.0), Point::new(24.0, 38.0)),
        (Point::new(16.0, 4.0), Point::new(20.0, 30.0)),
    ] {
        let got = image_from_tensor.apply(tensor);
        assert!(got.distance(image) < 1e-4, "{tensor:?} → {got:?}");
    }
}

#[test]
fn layouts_and_ranges_hold_the_same_colors() {
    let pixels = noise(40 * 30 * 3);
    let image = ImageView::rgb(40, 30, &pixels).expect("a whole image");
    let bytes = crop(region(20.0, 15.0, 30.0, 20.0, 0.4), 70, 33, Border::Black);
    let signed = Crop {
        range: ValueRange::SIGNED,
        layout: Layout::Planar,
        ..bytes
    };
    let (interleaved, planar) = (sampled(&bytes, &image), sampled(&signed, &image));
    let elements = bytes.width * bytes.height;
    for (pixel, colors) in interleaved.chunks_exact(3).enumerate() {
        for (channel, level) in colors.iter().enumerate() {
            let value = planar[channel * elements + pixel];
            assert!((value - (level / 127.5 - 1.0)).abs() < 1e-6);
        }
    }
}

#[test]
fn rows_that_are_not_asked_for_keep_their_values() {
    for format in FORMATS {
        let planes = planes(format, 33, 17);
        let image = view(format, 33, 17, &planes);
        for layout in [Layout::Planar, Layout::Interleaved] {
            let whole = Crop {
                layout,
                ..crop(region(15.0, 9.0, 30.0, 20.0, 0.2), 12, 8, Border::Replicate)
            };
            let expected = sampled(&whole, &image);
            for rows in [0, 3, 8, 9] {
                let mut tensor = vec![-1.0; whole.len()];
                let some = Crop {
                    rows: Some(rows),
                    ..whole
                };
                some.sample(&image, &mut tensor).expect("a good region");
                for (index, (value, expected)) in tensor.iter().zip(&expected).enumerate() {
                    let row = match layout {
                        Layout::Planar => index / 12 % 8,
                        Layout::Interleaved => index / 36,
                    };
                    let expected = if row < rows { *expected } else { -1.0 };
                    assert_eq!(*value, expected, "{format:?} {layout:?}");
                }
            }
        }
    }
}

#[test]
fn what_lies_outside_is_the_border() {
    for format in FORMATS {
        let planes = planes(format, 33, 17);
        let image = view(format, 33, 17, &planes);
        let corner = sampled(
            &crop(region(0.5, 0.5, 1.0, 1.0, 0.0), 1, 1, Border::Replicate),
            &image,
        );
        let outside = region(-500.0, -300.0, 90.0, 90.0, 0.3);
        let replicated = sampled(&crop(outside, 9, 9, Border::Replicate), &image);
        for pixel in replicated.chunks_exact(3) {
            assert_eq!(pixel, corner, "{format:?}");
        }
        let black = Crop {
            range: ValueRange::SIGNED,
            ..crop(outside, 9, 9, Border::Black)
        };
        assert!(
            sampled(&black, &image).iter().all(|v| *v == -1.0),
            "{format:?}"
        );
    }
}

#[test]
fn the_black_border_blends_over_one_pixel() {
    let white = [255; 8 * 8 * 3];
    let image = ImageView::rgb(8, 8, &white).expect("a whole image");
    // Elements lie half a pixel apart from (−2, 3) on.
    let crop = crop(region(0.0, 5.0, 4.0, 4.0, 0.0), 8, 8, Border::Black);
    let row: Vec<f32> = sampled(&crop, &image)[..8 * 3]
        .iter()
        .copied()
        .step_by(3)
        .collect();
    assert_eq!(row, [0.0, 0.0, 0.0, 128.0, 255.0, 255.0, 255.0, 255.0]);
}

#[test]
fn unreasonable_regions_are_reported_or_shown_as_border() {
    const NAN: f32 = f32::NAN;
    const INFINITE: f32 = f32::INFINITY;
    let numbers = [
        NAN,
        INFINITE,
        -INFINITE,
        -1e30,
        -1e7,
        -40.0,
        -1e-30,
        0.0,
        1e-30,
        0.3,
        7.0,
        300.0,
        1e5,
        1e7,
        1.6e7,
        1e30,
        f32::MAX,
        f32::MIN,
    ];
    for (index, format) in FORMATS.into_iter().enumerate() {
        for (width, height) in [(1, 1), (2, 1), (1, 2), (5, 3)] {
            let planes = planes(format, width, height);
            let image = view(format, width, height, &planes);
            // Every number in every place, against a changing background.
            for (turn, number) in numbers.into_iter().enumerate() {
                for place in 0..5 {
                    let mut values =
                        [1, 2, 3, 4, 5].map(|step| numbers[(turn * step + index) % numbers.len()]);
                    values[place] = number;
                    let [x, y, w, h, rotation] = values;
                    try_region(&image, region(x, y, w, h, rotation));
                    try_region(&image, region(1.0, number, 3.0, 2.0, 0.5));
                    try_region(&image, region(1.0, 1.0, number, 2.0, number));
                }
            }
        }
    }
}

fn try_region(image: &ImageView, roi: RotatedRect) {
    for border in [Border::Black, Border::Replicate] {
        let crop = crop(roi, 67, 3, border);
        let mut tensor = vec![NAN_MARK; crop.len()];
        match crop.sample(image, &mut tensor) {
            Ok(_) => assert!(
                tensor.iter().all(|v| (0.0..=255.0).contains(v)),
                "{roi:?} {border:?}"
            ),
            Err(_) => assert!(tensor.iter().all(|v| *v == NAN_MARK)),
        }
    }
}

/// No level.
const NAN_MARK: f32 = -7.0;

#[test]
fn errors_say_what_is_wrong() {
    let pixels = noise(4 * 4 * 3);
    let image = ImageView::rgb(4, 4, &pixels).expect("a whole image");
    let good = region(2.0, 2.0, 4.0, 4.0, 0.0);
    let fails = |roi: RotatedRect, length: usize| {
        let mut tensor = vec![0.0; length];
        crop(roi, 4, 4, Border::Black)
            .sample(&image, &mut tensor)
            .expect_err("a bad region or tensor")
    };
    let empty = region(2.0, 2.0, 0.0, 4.0, 0.0);
    assert_eq!(fails(empty, 48), SampleError::Region(empty));
    let nowhere = region(2.0, 2.0, 4.0, -1.0, 0.0);
    assert_eq!(fails(nowhere, 48), SampleError::Region(nowhere));
    let far = region(2e7, 2.0, 4.0, 4.0, 0.0);
    assert_eq!(fails(far, 48), SampleError::TooFar(far));
    assert!(fails(good, 47).to_string().contains("48 elements, not 47"));
}

#[test]
fn the_widest_images_are_read_to_their_last_pixel() {
    for format in FORMATS {
        let (width, height) = (16384, 3);
        let planes = planes(format, width, height);
        let image = view(format, width, height, &planes);
        let whole = region(8192.0, 1.5, 16384.0, 3.0, 0.0);
        let wide = sampled(&crop(whole, width, height, Border::Replicate), &image);
        let corner = region(16383.5, 2.5, 1.0, 1.0, 0.0);
        let last = sampled(&crop(corner, 1, 1, Border::Replicate), &image);
        assert_eq!(wide[wide.len() - 3..], last, "{format:?}");
        let far_right = region(17000.0, 100.0, 1.0, 1.0, 0.0);
        let beyond = sampled(&crop(far_right, 1, 1, Border::Replicate), &image);
        assert_eq!(last, beyond, "{format:?}");
    }
}

#[test]
fn padding_is_never_looked_at() {
    for format in FORMATS {
        let (width, height) = (13, 7);
        let tight = planes(format, width, height);
        let padded: Vec<(Vec<u8>, usize)> = tight
            .iter()
            .map(|(data, stride)| {
                let rows = data.chunks_exact(*stride);
                (
                    rows.flat_map(|row| [row, &[0xa5; 5]].concat()).collect(),
                    stride + 5,
                )
            })
            .collect();
        let crop = crop(region(5.0, 4.0, 20.0, 20.0, 0.6), 70, 70, Border::Replicate);
        assert_eq!(
            sampled(&crop, &view(format, width, height, &tight)),
            sampled(&crop, &view(format, width, height, &padded)),
            "{format:?}"
        );
    }
}

#[test]
fn grey_has_its_range() {
    let codes = [0u8, 16, 126, 235, 255];
    let plane = Plane {
        data: &codes,
        stride: 5,
    };
    // Full range as it is; limited range with videoconvert's arithmetic, about 2 levels below (code
    // − 16)·255/219.
    for (range, want) in [
        (ColorRange::Full, [0.0, 16.0, 126.0, 235.0, 255.0]),
        (ColorRange::Limited, [0.0, 0.0, 126.0, 253.0, 255.0]),
    ] {
        let colorimetry = Colorimetry {
            range,
            ..Colorimetry::default()
        };
        let image = ImageView::new(PixelFormat::Gray8, 5, 1, colorimetry, &[plane]).expect("whole");
        let crop = crop(region(2.5, 0.5, 5.0, 1.0, 0.0), 5, 1, Border::Black);
        let tensor = sampled(&crop, &image);
        let levels: Vec<f32> = tensor.iter().copied().step_by(3).collect();
        assert_eq!(levels, want, "{range:?}");
        assert!(tensor.chunks_exact(3).all(|p| p[0] == p[1] && p[1] == p[2]));
    }
}

#[test]
fn a_window_is_an_image_of_its_own() {
    let (width, height) = (90, 20);
    let data = noise(width * height * 3);
    let image = ImageView::rgb(width, height, &data).expect("enough bytes");
    let window = Window {
        x: 4,
        y: 5,
        width: 70,
        height: 9,
    };
    let row = |y: usize| &data[((y + window.y) * width + window.x) * 3..][..window.width * 3];
    let cut: Vec<u8> = (0..window.height).flat_map(row).copied().collect();
    let cut = ImageView::rgb(window.width, window.height, &cut).expect("enough bytes");
    for border in [Border::Black, Border::Replicate] {
        for (roi, columns, rows) in [
            (region(35.0, 4.5, 70.0, 9.0, 0.0), 70, 9),
            (region(34.875, 4.25, 70.0, 9.0, 0.0), 93, 16),
            (region(30.0, 4.0, 90.0, 30.0, 0.5), 80, 20),
            (region(-60.0, 4.0, 30.0, 30.0, 0.0), 8, 8),
        ] {
            let own = crop(roi, columns, rows, border);
            let mut windowed = own;
            windowed.roi.center.x += window.x as f32;
            windowed.roi.center.y += window.y as f32;
            windowed.window = Some(window);
            let (want, got) = (sampled(&own, &cut), sampled(&windowed, &image));
            assert_eq!(got, want, "{border:?} {roi:?}");
        }
    }
}

#[test]
fn windows_that_are_no_part_of_the_image_are_refused() {
    let data = noise(8 * 6 * 3);
    let image = ImageView::rgb(8, 6, &data).expect("enough bytes");
    for (x, y, width, height) in [
        (0, 0, 0, 6),
        (0, 0, 8, 0),
        (1, 0, 8, 6),
        (0, 6, 8, 1),
        (usize::MAX, 0, 8, 6),
    ] {
        let window = Window {
            x,
            y,
            width,
            height,
        };
        let crop = Crop {
            window: Some(window),
            ..crop(region(4.0, 3.0, 8.0, 6.0, 0.0), 2, 2, Border::Black)
        };
        let error = crop.sample(&image, &mut [0.0; 12]).unwrap_err();
        assert_eq!(error, SampleError::Window(window));
    }
}

#[test]
fn channels_have_ranges_of_their_own() {
    let image = ImageView::rgb(1, 1, &[0, 51, 255]).expect("enough bytes");
    let crop = Crop {
        range: ValueRange::normalized([0.5, 0.1, 0.25], [0.5, 0.2, 0.25]),
        ..crop(region(0.5, 0.5, 1.0, 1.0, 0.0), 1, 1, Border::Replicate)
    };
    for layout in [Layout::Planar, Layout::Interleaved] {
        let tensor = sampled(&Crop { layout, ..crop }, &image);
        for (got, want) in tensor.iter().zip([-1.0, 0.5, 3.0]) {
            assert!((got - want).abs() < 1e-6, "{tensor:?}");
        }
    }
}

#[test]
fn exact_levels_are_not_rounded() {
    // Two pixels of 0 and 3, and the middle between them.
    let pixels = [0, 0, 0, 3, 3, 3];
    let image = ImageView::rgb(2, 1, &pixels).unwrap();
    for (levels, want) in [(Levels::Whole, 2.0), (Levels::Exact, 1.5)] {
        let crop = Crop {
            roi: RotatedRect {
                center: Point::new(1.0, 0.5),
                size: Size::new(1.0, 1.0),
                rotation: 0.0,
            },
            width: 1,
            height: 1,
            range: ValueRange::BYTE,
            border: Border::Replicate,
            layout: Layout::Planar,
            levels,
            window: None,
            rows: None,
        };
        let mut tensor = [0.0; 3];
        crop.sample(&image, &mut tensor).unwrap();
        assert_eq!(tensor, [want; 3], "{levels:?}");
    }
}

/// Displayed twice as wide as it is stored, an image is the same as one with interpolated columns
/// between its own.
#[test]
fn pixels_of_another_shape_are_seen_as_displayed() {
    let (width, height) = (40, 30);
    let stored = noise(width * height * 3);
    let wide: Vec<u8> = stored
        .chunks(width * 3)
        .flat_map(|row| {
            (0..width).flat_map(|x| {
                let next = (x + 1).min(width - 1);
                let mean =
                    |c: usize| (u16::from(row[3 * x + c]) + u16::from(row[3 * next + c])) / 2;
                let own = [row[3 * x], row[3 * x + 1], row[3 * x + 2]];
                own.into_iter().chain([0, 1, 2].map(|c| mean(c) as u8))
            })
        })
        .collect();
    let stored = ImageView::rgb(width, height, &stored).expect("a whole image");
    let stored = stored.with_pixel_aspect_ratio(2.0);
    let wide = ImageView::rgb(2 * width, height, &wide).expect("a whole image");
    assert_eq!(stored.width(), wide.width());
    for border in [Border::Black, Border::Replicate] {
        for window in [
            None,
            Some(Window {
                x: 10,
                y: 5,
                width: 40,
                height: 20,
            }),
        ] {
            let crop = Crop {
                window,
                ..crop(region(30.0, 14.0, 16.0, 12.0, 0.3), 24, 18, border)
            };
            let pairs = std::iter::zip(sampled(&crop, &stored), sampled(&crop, &wide));
            let worst = pairs.fold(0.0, |worst: f32, (a, b)| worst.max((a - b).abs()));
            // Positions are rounded to 32nds of a stored pixel.
            assert!(
                worst <= 255.0 / 32.0 + 1.0,
                "{border:?} {window:?}: {worst}"
            );
        }
    }
}

#[test]
fn layouts_that_cannot_be_read_are_refused() {
    let component = |plane, step, subsampling| Component {
        plane,
        offset: 0,
        step,
        subsampling: [subsampling; 2],
        word: Word::Byte,
        shift: 0,
        depth: 8,
    };
    let plane = Plane {
        data: &[0; 4096],
        stride: 64,
    };
    let good = component(0, 1, 0);
    let wide = Component {
        word: Word::Le16,
        depth: 10,
        ..component(0, 2, 0)
    };
    let unreadable = [
        (ColorModel::Gray, vec![], 0),
        (ColorModel::Yuv, vec![good], 1),
        (ColorModel::Rgb, vec![good, good, component(3, 1, 0)], 2),
        (ColorModel::Rgb, vec![good, component(0, 1, 1), good], 1),
        (ColorModel::Yuv, vec![good, component(0, 1, 1), good], 2),
        (ColorModel::Gray, vec![component(0, 13, 0)], 0),
        (ColorModel::Gray, vec![component(0, 1, 64)], 0),
        (ColorModel::Gray, vec![Component { depth: 9, ..good }], 0),
    ];
    let bytes = [
        (ColorModel::Gray, vec![wide], 0),
        (ColorModel::Gray, vec![component(0, 3, 0)], 0),
        (ColorModel::Rgb, vec![good, good, good], 0),
        (ColorModel::Yuv, vec![good, wide, wide], 1),
        (ColorModel::Yuv, vec![component(1, 1, 0), good, good], 0),
    ];
    let unreadable = unreadable.map(|it| (Arithmetic::Floats, it));
    let bytes = bytes.map(|it| (Arithmetic::Bytes, it));
    for (arithmetic, (model, components, culprit)) in unreadable.into_iter().chain(bytes) {
        let layout = image::Layout { model, components };
        let colorimetry = Colorimetry::default();
        let view = ImageView::with_layout(&layout, arithmetic, 8, 8, colorimetry, &[plane; 4]);
        let error = view.expect_err("an unreadable layout");
        assert_eq!(
            error,
            ImageError::Component { index: culprit },
            "{layout:?}"
        );
    }
}
