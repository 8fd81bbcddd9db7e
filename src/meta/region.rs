// SPDX-License-Identifier: MPL-2.0
//! Regions of interest, in the format of Intel's DL Streamer.
//!
//! Its readers (`gstgva.RegionOfInterest`, `GVA::RegionOfInterest`) call each parameter structure
//! of a region a tensor: one named `detection`, one named `object_id`, and results, which are
//! numbers in `data_buffer` or a word in `label`.

use gst::glib;
use gst::structure::Builder;
use gst_video::VideoRegionOfInterestMeta;

use super::fields::over;
#[cfg(feature = "analytics-tensor")]
use super::fields::{Scale, bytes_of_landmarks};
use super::frame::FrameShape;
use facetrack::geometry::{Point, Rect};
#[cfg(feature = "analytics-tensor")]
use facetrack::observation::Landmark;
use facetrack::observation::{Attributes, Observation};
use facetrack::report::{FrameReport, TrackedFace};

/// Type of the regions, and label of their content.
pub(crate) const TYPE: &str = "face";

/// Value of `label_id`: there is only one kind of objects.
const LABEL_ID: i32 = 0;

/// `GVA_PRECISION_FP32` of `gva_tensor_meta.h`.
const PRECISION_FP32: i32 = 10;

/// `GVA_LAYOUT_NC` of `gva_tensor_meta.h`: a row of numbers for each item of a batch.
const LAYOUT_NC: i32 = 193;

/// The format that `gstgvawatermarkimpl.cpp` draws as points: x, y of each, as fractions of the
/// region.
const LANDMARK_POINTS: &str = "landmark_points";

/// The frame of the regions, and the position of the report's picture in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Canvas {
    width: u32,
    height: u32,
    left: f32,
    top: f32,
    /// Size of the report's picture in the frame.
    across: f32,
    down: f32,
}

impl Canvas {
    pub(super) fn new(report: &FrameReport, frame: FrameShape) -> Self {
        let picture = FrameShape {
            width: report.width.max(1),
            height: report.height.max(1),
            ..frame
        };
        let place = picture.between_borders(frame);
        Self {
            width: frame.width,
            height: frame.height,
            left: place.left as f32,
            top: place.top as f32,
            across: (place.x / f64::from(picture.width)) as f32,
            down: (place.y / f64::from(picture.height)) as f32,
        }
    }

    /// For positions that are in pixels of the frame.
    pub(super) fn of_frame(frame: FrameShape) -> Self {
        Self {
            width: frame.width,
            height: frame.height,
            left: 0.0,
            top: 0.0,
            across: 1.0,
            down: 1.0,
        }
    }

    /// A point of the report in the frame, px.
    pub(crate) fn point(self, x: f32, y: f32) -> Point {
        Point::new(x * self.across + self.left, y * self.down + self.top)
    }

    /// Landmarks of the report as fractions of the frame; z as one of its width.
    #[cfg(feature = "analytics-tensor")]
    pub(crate) fn fractions(self, points: &[Landmark]) -> glib::Bytes {
        let points: Vec<_> = points
            .iter()
            .map(|p| {
                let Point { x, y } = self.point(p.x, p.y);
                let z = p.z * self.across;
                Landmark { x, y, z }
            })
            .collect();
        bytes_of_landmarks(&points, Scale::of(self.width, self.height))
    }

    /// The upper left and the lower right corner of a box of the report.
    fn corners(self, bbox: &Rect) -> [Point; 2] {
        let (right, bottom) = (bbox.right(), bbox.bottom());
        [self.point(bbox.x, bbox.y), self.point(right, bottom)]
    }

    /// The whole pixels that a box touches inside the frame: x, y, width, height.
    pub(crate) fn pixels(self, bbox: &Rect) -> [u32; 4] {
        let [from, to] = self.corners(bbox);
        // A cast to an integer saturates: a position left of the frame becomes 0.
        let x = (from.x.floor() as u32).min(self.width);
        let y = (from.y.floor() as u32).min(self.height);
        let right = (to.x.ceil() as u32).min(self.width);
        let bottom = (to.y.ceil() as u32).min(self.height);
        [x, y, right.saturating_sub(x), bottom.saturating_sub(y)]
    }

    /// Points in parts of a box of pixels: x, y of each.
    fn parts(self, pixels: [u32; 4], points: impl Iterator<Item = Point>) -> Vec<f32> {
        let [left, top, width, height] = pixels;
        let part = |at: f32, from: u32, of: u32| over(at - from as f32, f64::from(of.max(1)));
        points
            .map(|p| self.point(p.x, p.y))
            .flat_map(|p| [part(p.x, left, width), part(p.y, top, height)])
            .collect()
    }
}

/// Adds the region of a face, under this number.
pub(super) fn add(
    buffer: &mut gst::BufferRef,
    tracked: &TrackedFace,
    number: u32,
    canvas: Canvas,
    engine: &str,
) {
    let face = &tracked.face;
    let pixels = canvas.pixels(&face.bbox);
    let mut region = VideoRegionOfInterestMeta::add(buffer, TYPE, pixels.into());
    region.set_id(to_int(number));
    region.add_param(detection(face, canvas));
    let object_id = gst::Structure::builder("object_id").field("id", to_int(tracked.id));
    region.add_param(object_id.build());
    for tensor in tensors(face, |points| canvas.parts(pixels, points)) {
        region.add_param(tensor.field("model_name", engine).build());
    }
}

pub(super) fn to_int(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The box cut to the frame, in parts of it.
fn detection(face: &Observation, canvas: Canvas) -> gst::Structure {
    let [from, to] = canvas.corners(&face.bbox);
    let part = |at: f32, of: u32| (f64::from(at) / f64::from(of.max(1))).clamp(0.0, 1.0);
    gst::Structure::builder("detection")
        .field("x_min", part(from.x, canvas.width))
        .field("x_max", part(to.x, canvas.width))
        .field("y_min", part(from.y, canvas.height))
        .field("y_max", part(to.y, canvas.height))
        .field("label_id", LABEL_ID)
        .field_if_some("confidence", face.confidence.map(f64::from))
        .build()
}

/// The measurements of a face; `parts` puts points into parts of the region. A detector's key
/// points come first, since `createFaceAlignmentFunction` of `pre_processors.cpp` turns a face
/// upright by the first points that it finds.
fn tensors(
    face: &Observation,
    parts: impl Fn(&mut dyn Iterator<Item = Point>) -> Vec<f32>,
) -> Vec<Builder> {
    let mut tensors = Vec::new();
    let points = |name: &str, points: &mut dyn Iterator<Item = Point>| {
        row(name, &parts(points)).field("format", LANDMARK_POINTS)
    };
    if !face.key_points.is_empty() {
        tensors.push(points("key_points", &mut face.key_points.iter().copied()));
    }
    if let Some(landmarks) = &face.landmarks {
        let mut flat = landmarks.points.iter().map(|p| Point::new(p.x, p.y));
        tensors.push(points(&landmarks.scheme.to_string(), &mut flat));
    }
    if let Some(blendshapes) = &face.blendshapes {
        let names = blendshapes.names().join(",");
        tensors.push(row("blendshapes", blendshapes.values()).field("names", names));
    }
    // Names as in DL Streamer's own sample, `face_detection_and_classification`.
    if let Some(Attributes { age, gender }) = face.attributes {
        tensors.push(gst::Structure::builder("age").field("label", format!("{age:.0}")));
        tensors.push(gst::Structure::builder("gender").field("label", gender.to_string()));
    }
    tensors
}

/// A row of numbers.
fn row(name: &str, values: &[f32]) -> Builder {
    let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
    gst::Structure::builder(name)
        .field("precision", PRECISION_FP32)
        .field("layout", LAYOUT_NC)
        .field("dims", gst::Array::new([1, values.len() as u32]))
        .field("data_buffer", glib::Variant::array_from_fixed_array(&bytes))
}
