// SPDX-License-Identifier: MPL-2.0
//! Drawing of a face.

use super::brush::Brush;
use super::color::Rgb;
use super::look::Look;
use super::panel;
use super::{Layers, Style};
use crate::geometry::{Point, Rect};
use crate::observation::{Gaze, HeadPose, Landmarks, Observation};
use crate::report::{FrameReport, TrackedFace};

/// Opacity of lines.
const OPACITY: u8 = 230;

/// Opacity of the lines of a mesh.
const MESH_OPACITY: u8 = 110;

/// Width of the lines of a mesh, relative to other lines.
const MESH_WIDTH: f32 = 0.6;

/// Radius of landmarks and of key points, in line widths.
const LANDMARK_RADIUS: f32 = 0.8;
const KEY_POINT_RADIUS: f32 = 1.6;

/// Length of the axes of a head, relative to the width of the face.
const AXIS_LENGTH: f32 = 0.5;

/// Colors of the x, y and z axes.
const AXES: [Rgb; 3] = [Rgb::VERMILLION, Rgb::GREEN, Rgb::BLUE];

/// Length of a gaze arrow, in distances between the middle of the eye and the pupil.
const GAZE_LENGTH: f32 = 4.0;

/// Scale factors from pixels of the analyzed frame to pixels of the canvas.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    x: f32,
    y: f32,
}

impl Scale {
    pub(super) fn new(report: &FrameReport, [width, height]: [f32; 2]) -> Self {
        Self {
            x: width / report.width.max(1) as f32,
            y: height / report.height.max(1) as f32,
        }
    }

    fn point(self, point: Point) -> Point {
        Point::new(point.x * self.x, point.y * self.y)
    }

    fn points(self, landmarks: &Landmarks) -> Vec<Point> {
        let points = landmarks.points.iter();
        points
            .map(|landmark| self.point(Point::new(landmark.x, landmark.y)))
            .collect()
    }

    fn rect(self, rect: &Rect) -> Rect {
        let corner = self.point(Point::new(rect.x, rect.y));
        Rect::new(
            corner.x,
            corner.y,
            rect.width * self.x,
            rect.height * self.y,
        )
    }
}

/// Draws all of a face but its texts.
pub(super) fn draw(brush: &mut Brush, tracked: &TrackedFace, scale: Scale, style: &Style) {
    let face = &tracked.face;
    let look = Look::of(tracked, style);
    let bbox = scale.rect(&face.bbox);
    let shown = |layer| style.layers.contains(layer);
    for landmarks in [&face.landmarks, &face.secondary_landmarks]
        .into_iter()
        .flatten()
    {
        let points = scale.points(landmarks);
        if shown(Layers::MESH) {
            mesh(brush, landmarks.scheme.mesh(), &points, look);
        }
        if shown(Layers::CONTOURS) {
            lines(brush, landmarks.scheme.contour_edges(), &points);
            brush.paint(look.color, look.opacity(OPACITY));
        }
        if shown(Layers::POINTS) {
            dots(brush, &points, LANDMARK_RADIUS);
            brush.paint(look.color, look.opacity(OPACITY));
        }
    }
    if shown(Layers::KEY_POINTS) {
        let points: Vec<_> = face.key_points.iter().map(|p| scale.point(*p)).collect();
        dots(brush, &points, KEY_POINT_RADIUS);
        brush.paint(Rgb::WHITE, look.opacity(OPACITY));
    }
    if shown(Layers::BOXES) {
        frame(brush, &bbox, look);
    }
    if let Some(gaze) = face.gaze.filter(|_| shown(Layers::GAZE)) {
        pupils(brush, &gaze, face.landmarks.as_ref(), scale);
        brush.paint(Rgb::YELLOW, look.opacity(OPACITY));
    }
    if let Some(pose) = face.pose.filter(|_| shown(Layers::POSE)) {
        axes(brush, &pose, middle(face, scale), bbox.width, look);
    }
}

/// Draws the texts of a face if it is in the frame. Its blendshapes avoid the plates in `taken`.
pub(super) fn write(
    brush: &mut Brush,
    tracked: &TrackedFace,
    scale: Scale,
    style: &Style,
    taken: &mut Vec<Rect>,
) {
    let look = Look::of(tracked, style);
    let bbox = scale.rect(&tracked.face.bbox);
    if !brush.shows(&bbox) {
        return;
    }
    if style.layers.contains(Layers::BLENDSHAPES) {
        panel::blendshapes(brush, &tracked.face, &bbox, look, style.blendshapes, taken);
    }
    if style.layers.contains(Layers::LABELS) {
        panel::label(brush, tracked, &bbox, look);
    }
}

/// Draws the edges whose points exist.
fn lines(brush: &mut Brush, edges: impl Iterator<Item = [u16; 2]>, points: &[Point]) {
    for edge in edges {
        if let [Some(from), Some(to)] = edge.map(|index| points.get(usize::from(index))) {
            brush.line(*from, *to);
        }
    }
}

fn mesh(brush: &mut Brush, edges: impl Iterator<Item = [u16; 2]>, points: &[Point], look: Look) {
    let width = brush.line_width;
    brush.line_width = width * MESH_WIDTH;
    lines(brush, edges, points);
    brush.paint(look.color, look.opacity(MESH_OPACITY));
    brush.line_width = width;
}

fn dots(brush: &mut Brush, points: &[Point], radius: f32) {
    for point in points {
        brush.dot(*point, radius);
    }
}

/// The box, dashed if the face was not measured in this frame.
fn frame(brush: &mut Brush, bbox: &Rect, look: Look) {
    let (right, bottom) = (bbox.right(), bbox.bottom());
    let corners = [
        Point::new(bbox.x, bbox.y),
        Point::new(right, bbox.y),
        Point::new(right, bottom),
        Point::new(bbox.x, bottom),
    ];
    for (index, from) in corners.into_iter().enumerate() {
        let to = corners[(index + 1) % corners.len()];
        if look.measured {
            brush.line(from, to);
        } else {
            brush.dashes(from, to);
        }
    }
    brush.paint(look.color, look.opacity(OPACITY));
}

/// Pupils, with an arrow for each eye with a known rim.
fn pupils(brush: &mut Brush, gaze: &Gaze, landmarks: Option<&Landmarks>, scale: Scale) {
    for (pupil, eye) in [gaze.right, gaze.left].into_iter().zip(eyes(landmarks)) {
        if pupil.confidence <= 0.0 {
            continue;
        }
        let at = scale.point(pupil.position);
        brush.dot(at, KEY_POINT_RADIUS);
        if let Some(eye) = eye.map(|eye| scale.point(eye)) {
            let (x, y) = ((at.x - eye.x) * GAZE_LENGTH, (at.y - eye.y) * GAZE_LENGTH);
            brush.arrow(at, Point::new(at.x + x, at.y + y));
        }
    }
}

/// The middles of the eyes' rims, right eye of the face first.
fn eyes(landmarks: Option<&Landmarks>) -> [Option<Point>; 2] {
    let Some(landmarks) = landmarks else {
        return [None; 2];
    };
    landmarks.scheme.eyes().map(|rim| {
        let points: Option<Vec<_>> = rim
            .iter()
            .map(|index| landmarks.points.get(usize::from(*index)).copied())
            .collect();
        Some(Landmarks::new(landmarks.scheme, points?).extent().center())
    })
}

/// The middle of a face.
fn middle(face: &Observation, scale: Scale) -> Point {
    let landmarks = face.landmarks.as_ref();
    scale.point(landmarks.map_or(face.bbox.center(), Landmarks::mean))
}

/// The axes of a head in orthographic projection. The camera's y points up, the frame's y down.
fn axes(brush: &mut Brush, pose: &HeadPose, from: Point, width: f32, look: Look) {
    let m = &pose.matrix;
    for (axis, color) in AXES.into_iter().enumerate() {
        let squares = m[..3].iter().map(|row| row[axis] * row[axis]);
        let length = squares.sum::<f32>().sqrt();
        let scale = width * AXIS_LENGTH / length;
        let to = Point::new(from.x + m[0][axis] * scale, from.y - m[1][axis] * scale);
        brush.arrow(from, to);
        brush.paint(color, look.opacity(OPACITY));
    }
}
