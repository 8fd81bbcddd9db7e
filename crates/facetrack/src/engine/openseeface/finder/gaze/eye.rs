// SPDX-License-Identifier: MPL-2.0
//! An eye as its network sees it: `extract_face` and `prepare_eye` in `tracker.py`.
//!
//! The picture of the face is rotated around a corner of the eye until both corners are on one row,
//! and the picture of the eye is cut out of it. As in the original, positions are rounded to whole
//! pixels, and the rotated picture to whole levels, before it is resized for the network. Without
//! this rounding, the pupil would be found at another position.

use std::f64::consts::TAU;

use crate::engine::openseeface::finder::crop;
use crate::geometry::{Point, RotatedRect};
use crate::image::ImageView;
use crate::observation::{Landmark, Landmarks};
use crate::sample::{Border, Crop, Layout, ValueRange, Window};

/// Width and height of a face's picture, relative to the landmarks' extent: `extract_face`.
const FACE: f64 = 1.2;

/// Width and height of an eye's picture, relative to the eye's width: `corners_to_eye`.
const RADIUS: [f64; 2] = [1.4, 1.2];

/// The corners of the right eye and of the left eye, from left to right in a picture of an upright
/// face.
const CORNERS: [[usize; 2]; 2] = [[36, 39], [42, 45]];

/// Maximum number of columns and rows of an eye's picture before it is resized for the network.
/// Larger eyes are sampled more coarsely, which limits their cost.
const MOST: usize = 256;

/// Side of an eye. The network was trained on right eyes; left eyes are mirrored for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Right,
    Left,
}

/// Position of an eye.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Eye {
    side: Side,
    /// The pixels of the face in the image.
    face: Window,
    /// The corner that the face is turned around, px of the face.
    pivot: [f64; 2],
    /// Clockwise angle of the line through the corners, radians.
    angle: f64,
    /// The pixels of the eye in the turned face.
    window: Window,
}

impl Eye {
    /// The right eye and the left eye of the face with these 66 landmarks, in an image of that many
    /// columns and rows; `None` if an eye has no pixel in it.
    pub(super) fn both(landmarks: &Landmarks, size: [usize; 2]) -> Option<[Self; 2]> {
        let face = face_window(landmarks, size)?;
        let [right, left] = CORNERS.map(|corners| {
            let [a, b] = corners.map(|index| landmarks.points.get(index));
            Some([pixel(a?, &face), pixel(b?, &face)])
        });
        Some([
            Self::between(Side::Right, face, right?)?,
            Self::between(Side::Left, face, left?)?,
        ])
    }

    /// The eye between two corners, whole px of the face.
    fn between(side: Side, face: Window, [pivot, end]: [[f64; 2]; 2]) -> Option<Self> {
        let angle = libm::atan2(end[1] - pivot[1], end[0] - pivot[0]).rem_euclid(TAU);
        let end = turned(pivot, end, -angle);
        let half = libm::hypot(end[0] - pivot[0], end[1] - pivot[1]) / 2.0;
        let corner = |sign: f64| -> [f64; 2] {
            [0, 1].map(|axis: usize| (pivot[axis] + end[axis]) / 2.0 + sign * half * RADIUS[axis])
        };
        let window = crop::between([corner(-1.0), corner(1.0)], [face.width, face.height])?;
        Some(Self {
            side,
            face,
            pivot,
            angle,
            window,
        })
    }

    /// Takes a position in the unit square of the network's input to the image.
    pub(super) fn image_from_input(&self, [u, v]: [f64; 2]) -> Point {
        let u = match self.side {
            Side::Right => u,
            Side::Left => 1.0 - u,
        };
        let (window, face) = (&self.window, &self.face);
        let x = window.x as f64 + window.width as f64 * u;
        let y = window.y as f64 + window.height as f64 * v;
        let [x, y] = turned(self.pivot, [x, y], self.angle);
        Point::new((x + face.x as f64) as f32, (y + face.y as f64) as f32)
    }

    /// The picture of the eye in the image, in as many columns and rows.
    fn region(&self, columns: usize, rows: usize) -> RotatedRect {
        let straight = crop::resized(&self.window, columns, rows);
        let center = [straight.center.x, straight.center.y].map(f64::from);
        let [x, y] = turned(self.pivot, center, self.angle);
        let (left, top) = (self.face.x as f64, self.face.y as f64);
        RotatedRect {
            center: Point::new((x + left) as f32, (y + top) as f32),
            rotation: self.angle as f32,
            ..straight
        }
    }
}

/// The pixels around the landmarks.
fn face_window(landmarks: &Landmarks, size: [usize; 2]) -> Option<Window> {
    let extent = landmarks.extent();
    let min = [extent.x, extent.y].map(f64::from);
    let max = [extent.right(), extent.bottom()].map(f64::from);
    let corner = |sign: f64, beyond: f64| -> [f64; 2] {
        [0, 1].map(|axis: usize| {
            let radius = FACE * (max[axis] - min[axis]) / 2.0;
            (min[axis] + max[axis]) / 2.0 + sign * radius + beyond
        })
    };
    crop::between([corner(-1.0, 0.0), corner(1.0, 1.0)], size)
}

/// The pixel of the face at a landmark, rounded towards 0.
fn pixel(landmark: &Landmark, face: &Window) -> [f64; 2] {
    [
        (f64::from(landmark.x) - face.x as f64).trunc(),
        (f64::from(landmark.y) - face.y as f64).trunc(),
    ]
}

/// `point`, turned clockwise around `pivot`: `rotate`.
fn turned(pivot: [f64; 2], point: [f64; 2], angle: f64) -> [f64; 2] {
    let (sin, cos) = libm::sincos(angle);
    let (x, y) = (point[0] - pivot[0], point[1] - pivot[1]);
    [pivot[0] + cos * x - sin * y, pivot[1] + sin * x + cos * y]
}

/// Buffers for the picture of an eye.
#[derive(Clone, Default)]
pub(super) struct Patch {
    /// Output of the resampler.
    levels: Vec<f32>,
    /// The same picture in bytes, transposed.
    pixels: Vec<u8>,
}

impl Patch {
    /// Fills `input`, 3 channels of `side`×`side` columns of rows, with the network's view of
    /// `eye`; `None` if it cannot be sampled.
    pub(super) fn show(
        &mut self,
        image: &ImageView<'_>,
        eye: &Eye,
        side: usize,
        input: &mut [f32],
    ) -> Option<()> {
        let (columns, rows) = (eye.window.width.min(MOST), eye.window.height.min(MOST));
        let region = eye.region(columns, rows);
        let turned = Crop {
            layout: Layout::Interleaved,
            window: Some(eye.face),
            ..Crop::planar(region, [columns, rows], ValueRange::BYTE, Border::Black)
        };
        self.levels.resize(turned.len(), 0.0);
        turned.sample(image, &mut self.levels).ok()?;
        self.transpose(eye.side, columns);
        let patch = ImageView::rgb(rows, columns, &self.pixels).ok()?;
        crop::shown(Window::whole(&patch), side, side)
            .sample(&patch, input)
            .ok()?;
        Some(())
    }

    /// Converts the levels to bytes: columns become rows, starting with the last column for a left
    /// eye.
    fn transpose(&mut self, side: Side, columns: usize) {
        let (levels, _) = self.levels.as_chunks::<3>();
        self.pixels.clear();
        for column in 0..columns {
            let column = match side {
                Side::Right => column,
                Side::Left => columns - 1 - column,
            };
            let pixels = levels.iter().skip(column).step_by(columns);
            self.pixels
                .extend(pixels.flatten().map(|level| *level as u8));
        }
    }
}

#[cfg(test)]
mod tests;
