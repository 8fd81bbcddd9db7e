// SPDX-License-Identifier: MPL-2.0
//! Faces drawn from ellipses: enough for the networks, and free of anybody's rights.
//! `tests/golden/drawing.py` draws the same pixels, operation for operation in `f64`.

use serde::Deserialize;

/// A face to draw.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Face {
    /// Centre, px.
    pub x: f64,
    /// Centre, px.
    pub y: f64,
    /// Half the distance from ear to ear, roughly, px.
    pub size: f64,
    /// Tangent of half the roll, clockwise on screen: rational, so that both languages turn alike.
    #[serde(default)]
    pub half_roll: f64,
    /// Opening of the mouth, 0…1.
    #[serde(default)]
    pub jaw: f64,
    /// Closing of the eyes, 0…1.
    #[serde(default)]
    pub blink: f64,
}

/// Centre, radii, in face sizes, and colour.
type Ellipse = ([f64; 4], [f64; 3]);

const BACKGROUND: [f64; 3] = [90.0, 110.0, 130.0];

/// Width of the soft edge, in radii.
const EDGE: f64 = 0.08;

fn ellipses(face: &Face) -> [Ellipse; 13] {
    let (lid, gap) = (1.0 - 0.9 * face.blink, 0.3 * face.jaw);
    let (skin, brow, white) = (
        [215.0, 165.0, 138.0],
        [60.0, 40.0, 30.0],
        [245.0, 240.0, 238.0],
    );
    [
        ([0.0, -0.25, 0.98, 1.15], [50.0, 35.0, 28.0]),
        ([0.0, 1.5, 0.45, 0.8], [190.0, 140.0, 115.0]),
        ([0.0, 0.05 + gap * 0.5, 0.8, 1.1 + gap * 0.5], skin),
        ([-0.35, -0.33, 0.24, 0.045], brow),
        ([0.35, -0.33, 0.24, 0.045], brow),
        ([-0.33, -0.13, 0.17, 0.085 * lid], white),
        ([0.33, -0.13, 0.17, 0.085 * lid], white),
        ([-0.33, -0.13, 0.075, 0.08 * lid], brow),
        ([0.33, -0.13, 0.075, 0.08 * lid], brow),
        ([0.0, 0.28, 0.13, 0.07], [175.0, 120.0, 98.0]),
        ([0.0, 0.12, 0.06, 0.2], [228.0, 180.0, 152.0]),
        ([0.0, 0.58 + gap, 0.3, 0.075 + gap], [165.0, 75.0, 75.0]),
        ([0.0, 0.57 + gap, 0.26, 0.012 + gap], [90.0, 35.0, 35.0]),
    ]
}

/// A tightly packed RGB image with `faces`.
pub fn draw(width: usize, height: usize, faces: &[Face]) -> Vec<u8> {
    let mut pixels = Vec::with_capacity(width * height * 3);
    let shapes: Vec<_> = faces.iter().map(|face| (face, ellipses(face))).collect();
    for row in 0..height {
        for column in 0..width {
            let mut color = BACKGROUND;
            for (face, ellipses) in &shapes {
                let (x, y) = face_coordinates(face, column as f64 + 0.5, row as f64 + 0.5);
                for ellipse in ellipses {
                    paint(&mut color, ellipse, x, y);
                }
            }
            pixels.extend(color.map(|value| (value + 0.5).floor() as u8));
        }
    }
    pixels
}

fn face_coordinates(face: &Face, x: f64, y: f64) -> (f64, f64) {
    let t = face.half_roll;
    let norm = 1.0 + t * t;
    let (cos, sin) = ((1.0 - t * t) / norm, 2.0 * t / norm);
    let (dx, dy) = ((x - face.x) / face.size, (y - face.y) / face.size);
    (cos * dx + sin * dy, cos * dy - sin * dx)
}

fn paint(color: &mut [f64; 3], ([cx, cy, rx, ry], ink): &Ellipse, x: f64, y: f64) {
    let (u, v) = ((x - cx) / rx, (y - cy) / ry);
    let distance = (u * u + v * v).sqrt();
    let share = ((1.0 - distance) / EDGE + 0.5).clamp(0.0, 1.0);
    for (value, ink) in color.iter_mut().zip(ink) {
        *value = *value * (1.0 - share) + ink * share;
    }
}
