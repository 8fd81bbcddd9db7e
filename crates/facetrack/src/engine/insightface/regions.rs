// SPDX-License-Identifier: MPL-2.0
//! Regions of a frame that networks receive for a face: `face_align.py`.

use nalgebra::Vector2;

use crate::geometry::{Point, Rect, RotatedRect};

/// Side of the square around a face, relative to the longer side of its box: `get` in `landmark.py`
/// and `attribute.py`.
const MARGIN: f32 = 1.5;

/// Positions of eyes, nose and corners of the mouth in an aligned image of 112×112 pixels:
/// `arcface_dst`.
const ALIGNED: [Point; 5] = [
    Point::new(38.2946, 51.6963),
    Point::new(73.5318, 51.5014),
    Point::new(56.0252, 71.7366),
    Point::new(41.5493, 92.3655),
    Point::new(70.7299, 92.2041),
];

/// The side of that image, px, and of another one with a margin of 8 px to the left and right:
/// `estimate_norm`.
const ALIGNED_SIDE: usize = 112;
const WIDE_SIDE: usize = 128;
const WIDE_MARGIN: f32 = 8.0;

/// The square around a face: `transform` without rotation.
pub(super) fn around(bbox: &Rect) -> RotatedRect {
    RotatedRect::square(bbox.center(), bbox.width.max(bbox.height) * MARGIN)
}

/// Returns true if InsightFace defines an aligned image of `side`×`side` pixels.
pub(super) fn is_aligned_side(side: usize) -> bool {
    side > 0 && (side.is_multiple_of(ALIGNED_SIDE) || side.is_multiple_of(WIDE_SIDE))
}

/// The square whose `side`×`side` pixels show the five key points of a face as closely as possible
/// at their places in an aligned image: `norm_crop`. `None` unless there are five points, and for
/// points that coincide or are not finite.
pub(super) fn aligned(key_points: &[Point], side: usize) -> Option<RotatedRect> {
    let key_points: &[Point; 5] = key_points.try_into().ok()?;
    let wanted = aligned_points(side);
    let [from, to] = [&wanted, key_points].map(mean);
    // The least-squares similarity is a quotient of complex numbers. This is the inverse of
    // skimage's `SimilarityTransform.estimate`, which adds up the same products.
    let (mut real, mut imaginary, mut spread) = (0.0, 0.0, 0.0);
    for (key_point, wanted) in key_points.iter().zip(&wanted) {
        let (p, w) = (place(key_point) - to, place(wanted) - from);
        real += p.dot(&w);
        imaginary += p.perp(&w);
        spread += p.norm_squared();
    }
    // Input pixels per pixel of the frame, and the turn from the frame to the input.
    let scale = libm::hypot(real, imaginary) / spread;
    let turn = libm::atan2(imaginary, real);
    if !(scale.is_normal() && turn.is_finite()) {
        return None;
    }
    let (sin, cos) = libm::sincos(turn);
    let half = side as f64 / 2.0;
    let (dx, dy) = ((half - from.x) / scale, (half - from.y) / scale);
    let x = to.x + cos * dx + sin * dy;
    let y = to.y - sin * dx + cos * dy;
    let center = Point::new(x as f32, y as f32);
    Some(RotatedRect {
        rotation: -turn as f32,
        ..RotatedRect::square(center, (side as f64 / scale) as f32)
    })
}

/// [`ALIGNED`] in an image of `side`×`side` pixels.
pub(super) fn aligned_points(side: usize) -> [Point; 5] {
    let (unit, margin) = if side.is_multiple_of(ALIGNED_SIDE) {
        (ALIGNED_SIDE, 0.0)
    } else {
        (WIDE_SIDE, WIDE_MARGIN)
    };
    let ratio = side as f32 / unit as f32;
    ALIGNED.map(|p| Point::new((p.x + margin) * ratio, p.y * ratio))
}

fn place(point: &Point) -> Vector2<f64> {
    Vector2::new(point.x, point.y).map(f64::from)
}

fn mean(points: &[Point; 5]) -> Vector2<f64> {
    points.iter().map(place).sum::<Vector2<f64>>() / points.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_square_lies_around_the_longer_side() {
        for (bbox, center, side) in [
            (Rect::new(10.0, 20.0, 40.0, 60.0), (30.0, 50.0), 90.0),
            (Rect::new(-30.0, 20.0, 80.0, 60.0), (10.0, 50.0), 120.0),
        ] {
            let square = around(&bbox);
            assert_eq!((square.center.x, square.center.y), center);
            assert_eq!((square.size.width, square.size.height), (side, side));
            assert_eq!(square.rotation, 0.0);
        }
    }

    /// The place in the frame of a pixel of an aligned image.
    fn in_frame(region: &RotatedRect, side: usize, pixel: Point) -> Point {
        let unit = 1.0 / side as f32;
        let outer_from_unit = region.outer_from_unit();
        outer_from_unit.apply(Point::new(pixel.x * unit, pixel.y * unit))
    }

    #[test]
    fn key_points_of_a_similar_face_land_on_the_aligned_ones() {
        for (side, scale, turn, x, y) in [
            (112, 1.0, 0.0, 0.0, 0.0),
            (112, 2.5, 0.6, 100.0, 50.0),
            (224, 0.25, -2.0, -10.0, 700.0),
            (128, 1.5, 0.1, 30.0, 20.0),
            (256, 3.0, 3.0, 30.0, 20.0),
        ] {
            let (sin, cos) = f32::sin_cos(turn);
            let wanted = aligned_points(side);
            let face = wanted.map(|p| {
                let p = Point::new(scale * p.x, scale * p.y);
                Point::new(cos * p.x - sin * p.y + x, sin * p.x + cos * p.y + y)
            });
            let region = aligned(&face, side).unwrap();
            for (wanted, face) in wanted.into_iter().zip(face) {
                let distance = in_frame(&region, side, wanted).distance(face);
                assert!(
                    distance < 1e-3 * scale.max(1.0),
                    "{side} {turn}: {distance}"
                );
            }
        }
    }

    #[test]
    fn a_face_that_is_not_similar_is_shown_as_skimage_has_it() {
        // `estimate_norm` of InsightFace 2.1 with skimage 0.26 for these points, inverted.
        let face = [
            (251.0, 170.0),
            (331.0, 166.0),
            (287.0, 218.0),
            (263.0, 254.0),
            (327.0, 250.0),
        ];
        let face = face.map(|(x, y)| Point::new(x, y));
        let region = aligned(&face, 112).unwrap();
        for (aligned, (x, y)) in [
            ((0.0, 0.0), (164.3095, 62.4128)),
            ((112.0, 0.0), (405.1887, 51.5173)),
            ((0.0, 112.0), (175.2051, 303.292)),
        ] {
            let found = in_frame(&region, 112, Point::new(aligned.0, aligned.1));
            assert!(found.distance(Point::new(x, y)) < 1e-2, "{found:?}");
        }
    }

    #[test]
    fn points_that_say_nothing_have_no_square() {
        assert_eq!(aligned(&[Point::default(); 5], 112), None);
        assert_eq!(aligned(&ALIGNED[..4], 112), None);
        let mut face = ALIGNED;
        face[2].y = f32::NAN;
        assert_eq!(aligned(&face, 112), None);
        for (side, is_one) in [
            (112, true),
            (128, true),
            (224, true),
            (144, false),
            (0, false),
        ] {
            assert_eq!(is_aligned_side(side), is_one, "{side}");
        }
    }
}
