// SPDX-License-Identifier: MPL-2.0
//! Selects the pixels that networks receive.

use crate::geometry::{Point, Rect, RotatedRect, Size};
use crate::sample::{Border, Crop, ValueRange, Window};

/// Range of the networks' inputs: `mean` and `std` in `Tracker`, which are ImageNet's.
const RANGE: ValueRange = ValueRange::normalized([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);

/// Margins on each side of a face's box, relative to its width and height, cut to whole pixels:
/// `predict` in `tracker.py`.
const MARGIN: Size = Size::new(0.1, 0.125);

/// Minimum side of a face, px: `predict` in `tracker.py`.
const LEAST: usize = 4;

/// The pixels around a face, with a margin; `None` for a face that is too small, or outside the
/// image of `width`×`height` pixels.
pub(super) fn around(face: &Rect, [width, height]: [usize; 2]) -> Option<Window> {
    let grow_x = (face.width * MARGIN.width).trunc();
    let grow_y = (face.height * MARGIN.height).trunc();
    let corners = [
        (face.x - grow_x, face.y - grow_y),
        (face.right() + grow_x, face.bottom() + grow_y),
    ];
    let corners = corners.map(|(x, y)| [f64::from(x), f64::from(y)]);
    between(corners, [width, height]).filter(|w| w.width >= LEAST && w.height >= LEAST)
}

/// The pixels from one corner to the other, the second excluded; `None` if the region is empty.
pub(super) fn between(corners: [[f64; 2]; 2], size: [usize; 2]) -> Option<Window> {
    let [[left, top], [right, bottom]] = corners.map(|corner| clamp_to_image(corner, size));
    let window = Window {
        x: left,
        y: top,
        width: right.checked_sub(left)?,
        height: bottom.checked_sub(top)?,
    };
    (window.width > 0 && window.height > 0).then_some(window)
}

/// `clamp_to_im` in `tracker.py`: columns end before the last one, and rows start one further down.
fn clamp_to_image([x, y]: [f64; 2], [width, height]: [usize; 2]) -> [usize; 2] {
    let clamp = |value: f64, count: usize| match value {
        below if below < 0.0 => 0.0,
        beyond if beyond >= count as f64 => count as f64 - 1.0,
        inside => inside,
    };
    [clamp(x, width) as usize, (clamp(y, height) + 1.0) as usize]
}

/// Crop that shows `window` in `columns`×`rows` elements, normalised, with the edge repeated.
pub(super) fn shown(window: Window, columns: usize, rows: usize) -> Crop {
    let roi = resized(&window, columns, rows);
    Crop {
        window: Some(window),
        ..Crop::planar(roi, [columns, rows], RANGE, Border::Replicate)
    }
}

/// The region that spreads `columns`×`rows` elements over a window as OpenCV's `resize` does: the
/// centre of each element is at the centre of the part of the window that it covers.
pub(super) fn resized(window: &Window, columns: usize, rows: usize) -> RotatedRect {
    let middle = |first: usize, count: usize, elements: usize| {
        let step = count as f64 / elements as f64;
        (first as f64 + (count as f64 + step - 1.0) / 2.0) as f32
    };
    let x = middle(window.x, window.width, columns);
    let y = middle(window.y, window.height, rows);
    RotatedRect {
        center: Point::new(x, y),
        size: Size::new(window.width as f32, window.height as f32),
        rotation: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::ImageView;

    fn window(x: usize, y: usize, width: usize, height: usize) -> Option<Window> {
        Some(Window {
            x,
            y,
            width,
            height,
        })
    }

    #[test]
    fn windows_around_faces() {
        // Left, top, width, height of the face in 640×360, and what `predict` in tracker.py makes
        // of it.
        for (face, want) in [
            ([100.0, 100.0, 100.0, 80.0], window(90, 91, 120, 100)),
            // Growth is cut to whole pixels: 9.9 to 9, 9.875 to 9.
            ([100.0, 100.0, 99.0, 79.0], window(91, 92, 117, 97)),
            // Corners are cut to whole pixels.
            ([100.75, 100.75, 10.5, 8.5], window(99, 100, 13, 11)),
            // Columns end before the last one, rows begin at the second one.
            ([-50.0, -50.0, 2000.0, 2000.0], window(0, 1, 639, 359)),
            ([-50.0, -50.0, 60.0, 60.0], window(0, 1, 16, 17)),
            ([630.0, 350.0, 60.0, 60.0], window(624, 344, 15, 16)),
            // Too small, outside, inside out, no number.
            ([100.0, 100.0, 4.0, 3.5], None),
            ([100.0, 100.0, 4.0, 4.0], window(100, 101, 4, 4)),
            ([700.0, 100.0, 50.0, 50.0], None),
            ([100.0, 400.0, 50.0, 50.0], None),
            ([-100.0, 100.0, 50.0, 50.0], None),
            ([100.0, 100.0, -50.0, -50.0], None),
            ([f32::NAN, f32::NAN, f32::NAN, f32::NAN], None),
        ] {
            let [x, y, width, height] = face;
            let face = Rect::new(x, y, width, height);
            assert_eq!(around(&face, [640, 360]), want, "{face:?}");
        }
        for size in [[1, 1], [3, 100], [100, 3], [16384, 2]] {
            let face = Rect::new(-100.0, -100.0, 1e6, 1e6);
            assert_eq!(around(&face, size), None, "{size:?}");
        }
    }

    #[test]
    fn elements_lie_where_opencv_resizes() {
        // A ramp shows where each element looks. Positions of cv2.resize: (i + 0.5)·n/elements −
        // 0.5, inside the window.
        let ramp: Vec<u8> = (0..4 * 60).flat_map(|i| [(i % 60) * 4; 3]).collect();
        let image = ImageView::rgb(60, 4, &ramp).unwrap();
        for (x, width, columns, want) in [
            (10, 8, 4, [10.5, 12.5, 14.5, 16.5].as_slice()),
            (10, 6, 4, &[10.25, 11.75, 13.25, 14.75]),
            (10, 2, 4, &[10.0, 10.25, 10.75, 11.0]),
            (56, 4, 2, &[56.5, 58.5]),
        ] {
            let window = window(x, 0, width, 4).unwrap();
            let crop = Crop {
                range: crate::sample::ValueRange::between(0.0, 255.0 / 4.0),
                ..shown(window, columns, 1)
            };
            let mut tensor = vec![0.0; crop.len()];
            crop.sample(&image, &mut tensor).unwrap();
            assert_eq!(&tensor[..columns], want, "{window:?}");
        }
    }
}
