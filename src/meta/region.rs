// SPDX-License-Identifier: MPL-2.0
//! Regions of interest, in the format of Intel's DL Streamer.
//!
//! Its readers (`gstgva.RegionOfInterest`, `GVA::RegionOfInterest`) call each parameter structure
//! of a region a tensor: one named `detection`, one named `object_id`, and results, which are
//! numbers in `data_buffer` or a word in `label`.

use gst::glib;
use gst_video::VideoRegionOfInterestMeta;

use super::fields::over;
use super::frame::FrameShape;
use facetrack::blendshape::Blendshapes;
use facetrack::geometry::{Point, Rect};
use facetrack::observation::{Attributes, Observation};
use facetrack::report::{FrameReport, TrackedFace};

/// Type of the regions, and the label of what is in them.
pub(crate) const TYPE: &str = "face";

/// `label_id`: there is one kind of things.
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
    /// The size of the report's picture in the frame.
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

    /// A point of the report in the frame, px.
    fn point(self, x: f32, y: f32) -> Point {
        Point::new(x * self.across + self.left, y * self.down + self.top)
    }

    /// The upper left and the lower right corner of a box of the report.
    fn corners(self, bbox: &Rect) -> [Point; 2] {
        let (right, bottom) = (bbox.right(), bbox.bottom());
        [self.point(bbox.x, bbox.y), self.point(right, bottom)]
    }

    /// The whole pixels that a box touches inside the frame.
    pub(crate) fn pixels(self, bbox: &Rect) -> Pixels {
        let [from, to] = self.corners(bbox);
        // A cast to an integer saturates: what lies left of the frame becomes 0.
        let x = (from.x.floor() as u32).min(self.width);
        let y = (from.y.floor() as u32).min(self.height);
        let right = (to.x.ceil() as u32).min(self.width);
        let bottom = (to.y.ceil() as u32).min(self.height);
        Pixels {
            x,
            y,
            width: right.saturating_sub(x),
            height: bottom.saturating_sub(y),
        }
    }

    /// Points in parts of these pixels: x, y of each.
    fn parts(self, pixels: Pixels, points: impl Iterator<Item = Point>) -> Vec<f32> {
        let (left, top) = (pixels.x as f32, pixels.y as f32);
        let (width, height) = (pixels.width.max(1), pixels.height.max(1));
        let part = |at: f32, of: u32| over(at, f64::from(of));
        points
            .map(|p| self.point(p.x, p.y))
            .flat_map(|p| [part(p.x - left, width), part(p.y - top, height)])
            .collect()
    }

    /// A box cut to the frame, in parts of it: left, right, top, bottom.
    fn sides(self, bbox: &Rect) -> [f64; 4] {
        let [from, to] = self.corners(bbox);
        let part = |at: f32, of: u32| (f64::from(at) / f64::from(of.max(1))).clamp(0.0, 1.0);
        [
            part(from.x, self.width),
            part(to.x, self.width),
            part(from.y, self.height),
            part(to.y, self.height),
        ]
    }
}

/// A box in whole pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pixels {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) width: u32,
    pub(crate) height: u32,
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
    let rect = (pixels.x, pixels.y, pixels.width, pixels.height);
    let mut region = VideoRegionOfInterestMeta::add(buffer, TYPE, rect);
    region.set_id(to_int(number));
    region.add_param(detection(face, canvas));
    region.add_param(object_id(tracked.id));
    let parts = Parts {
        canvas,
        pixels,
        engine,
    };
    for tensor in parts.tensors(face) {
        region.add_param(tensor);
    }
}

fn to_int(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn detection(face: &Observation, canvas: Canvas) -> gst::Structure {
    let [left, right, top, bottom] = canvas.sides(&face.bbox);
    gst::Structure::builder("detection")
        .field("x_min", left)
        .field("x_max", right)
        .field("y_min", top)
        .field("y_max", bottom)
        .field("label_id", LABEL_ID)
        .field_if_some("confidence", face.confidence.map(f64::from))
        .build()
}

fn object_id(track: u32) -> gst::Structure {
    gst::Structure::builder("object_id")
        .field("id", to_int(track))
        .build()
}

/// Formats the measurements in a region.
struct Parts<'a> {
    canvas: Canvas,
    pixels: Pixels,
    engine: &'a str,
}

impl Parts<'_> {
    /// A detector's key points come first, since `createFaceAlignmentFunction` of
    /// `pre_processors.cpp` turns a face upright by the first points that it finds.
    fn tensors(&self, face: &Observation) -> Vec<gst::Structure> {
        let mut tensors = Vec::new();
        if !face.key_points.is_empty() {
            tensors.push(self.points("key_points", face.key_points.iter().copied()));
        }
        if let Some(landmarks) = &face.landmarks {
            let points = landmarks.points.iter().map(|p| Point::new(p.x, p.y));
            tensors.push(self.points(&landmarks.scheme.to_string(), points));
        }
        tensors.extend(face.blendshapes.as_ref().map(|it| self.blendshapes(it)));
        tensors.extend(face.attributes.iter().flat_map(|it| self.words(it)));
        tensors
    }

    fn points(&self, name: &str, points: impl Iterator<Item = Point>) -> gst::Structure {
        self.row(name, &self.canvas.parts(self.pixels, points))
            .field("format", LANDMARK_POINTS)
            .build()
    }

    fn blendshapes(&self, blendshapes: &Blendshapes) -> gst::Structure {
        self.row("blendshapes", blendshapes.values())
            .field("names", blendshapes.names().join(","))
            .build()
    }

    /// A row of numbers.
    fn row(&self, name: &str, values: &[f32]) -> gst::structure::Builder {
        let bytes: Vec<u8> = values.iter().flat_map(|it| it.to_le_bytes()).collect();
        gst::Structure::builder(name)
            .field("model_name", self.engine)
            .field("precision", PRECISION_FP32)
            .field("layout", LAYOUT_NC)
            .field("dims", gst::Array::new([1, values.len() as u32]))
            .field("data_buffer", glib::Variant::array_from_fixed_array(&bytes))
    }

    /// Names as in DL Streamer's own sample, `face_detection_and_classification`.
    fn words(&self, attributes: &Attributes) -> [gst::Structure; 2] {
        let word = |name: &str, label: &str| {
            gst::Structure::builder(name)
                .field("model_name", self.engine)
                .field("label", label)
                .build()
        };
        let age = format!("{:.0}", attributes.age);
        [
            word("age", &age),
            word("gender", &attributes.gender.to_string()),
        ]
    }
}
