// SPDX-License-Identifier: MPL-2.0
//! The metadata that carries a [`FrameReport`] on a buffer.
//!
//! One `GstCustomMeta` named `FaceTrackMeta` is the whole record. It has no tags, so every element that copies metadata
//! keeps it, also when the video is scaled or converted. Coordinates are divided by the width and the height of the frame
//! that was analysed, so that they hold for the picture whatever its size; cropping and flipping are not followed.
//! Beside it there is one `GstVideoRegionOfInterestMeta` for each face, with type `face`, the track's id, the box in whole
//! pixels cut to the frame, and a parameter structure `detection` with `confidence` (double) where the engine has one.
//!
//! # Layout
//!
//! The structure of `FaceTrackMeta` has these fields. A field that is not listed is to be ignored; a change that an old
//! reader would get wrong raises `version`.
//!
//! | field | type | |
//! |---|---|---|
//! | `version` | uint | 1 |
//! | `width`, `height` | uint | size of the analysed frame, px |
//! | `status` | string | `tracked`, `no-face`, `skipped`, `gap`, `error` |
//! | `engine`, `device`, `generator` | string | what made the record |
//! | `execution-provider`, `device-reason` | string | ONNX Runtime's name of what runs the networks, and why there |
//! | `load-time` | uint64 | how long the engine took to load, ns |
//! | `models` | string | a line for each model file: SHA-256 in hex, two blanks, file name |
//! | `faces` | uint | number of faces |
//! | `face-0`, `face-1`, … | structure `face` | one for each |
//!
//! and each face:
//!
//! | field | type | |
//! |---|---|---|
//! | `id` | uint | track, from 1 |
//! | `x`, `y`, `width`, `height` | double | box by its top-left corner, not cut to the frame; x by frame width, y by height |
//! | `origin` | string | `detected`, `tracked`, `held` |
//! | `confidence` | double | 0…1; absent where the engine has none |
//! | `landmark-scheme` | string | `mediapipe-478`, `openseeface-66`, `ibug-68`, `insightface-106`; absent without landmarks |
//! | `landmarks` | bytes | x, y, z of each landmark; z by frame width |
//! | `landmark-confidences` | bytes | a score for each landmark, 0…1; absent where the engine has none |
//! | `contour-scheme`, `contour`, `contour-confidences` | | as those of `landmarks`: InsightFace's 106 points, where `landmarks` are others; absent without |
//! | `key-points` | bytes | x, y of each key point; absent without |
//! | `blendshape-names` | string | channels, separated by commas; absent without blendshapes |
//! | `blendshapes` | bytes | a value for each name |
//! | `blendshape-source` | string | `measured` by a network, or `derived` from other figures; absent = measured |
//! | `pose` | bytes | 4×4 matrix camera from head by rows; absent without |
//! | `age` | double | years, as a network guesses; absent without |
//! | `gender` | string | `female`, `male`, as it guesses; there with `age` |
//! | `embedding` | bytes | the face as a point of unit length, by which people are told apart; absent unless asked for |
//! | `gaze` | bytes | x, y, confidence of the right pupil, then of the left; absent without |
//! | `features` | bytes | OpenSeeFace's features in the order of [`Features::NAMES`]; absent without |
//! | `fit` | structure `fit` | OpenSeeFace's 3-D face model fitted to the landmarks; absent without |
//! | `morphable` | structure `morphable` | a morphable model fitted to the landmarks, or why it could not be; absent without |
//!
//! and a fit, in the conventions of [`ModelFit`]:
//!
//! | field | type | |
//! |---|---|---|
//! | `success` | boolean | without it the rest means nothing |
//! | `error` | double | distance of the outline and the tip of the nose from the model; by frame width |
//! | `quaternion` | bytes | inverse rotation: x, y, z, w |
//! | `euler` | bytes | rotation as three angles in degrees |
//! | `rotation` | bytes | the same as axis times angle in radians |
//! | `translation` | bytes | camera from model: x, y, z in units of the model |
//! | `landmarks-3d` | bytes | x, y, z of each landmark in the model's space, then of pupils and eyeballs |
//! | `projected` | bytes | x, y of the model's points in the picture, as many as were asked for |
//!
//! and a morphable model, in the conventions of [`MorphableFit`], either this field alone:
//!
//! | field | type | |
//! |---|---|---|
//! | `failure` | string | `no-landmarks`, `not-finite`, `degenerate`, `out-of-frame`, `unsolvable` |
//!
//! or all of these but the last:
//!
//! | field | type | |
//! |---|---|---|
//! | `shape` | bytes | coefficients of the shape's components, in standard deviations |
//! | `expression` | bytes | coefficients of the expressions, from 0 on |
//! | `expression-names` | string | what the expressions are called, separated by commas |
//! | `rotation` | bytes | camera from model as a unit quaternion: x, y, z, w |
//! | `origin` | bytes | x, y of the model's origin in the picture |
//! | `scale` | double | size of a millimetre of the model; by frame width |
//! | `residual` | double | mean distance of the landmarks from their vertices; by frame width |
//! | `contour` | bytes | x, y of the vertices that the outline's landmarks were matched with |
//! | `mesh` | bytes | x, y, z of every vertex, as those of `landmarks`; absent unless asked for |
//!
//! [`Features::NAMES`]: crate::face::observation::Features::NAMES
//! [`ModelFit`]: crate::face::observation::ModelFit
//! [`MorphableFit`]: crate::face::observation::MorphableFit
//!
//! `bytes` are a `GBytes` of little-endian 32-bit floats. Everything comes back as the very floats that went in, but points of
//! the picture within the precision of a 32-bit float. A buffer's copies share them, so that a mesh, which is the largest of
//! all, is written once.
//!
//! ```python
//! meta = buffer.get_custom_meta("FaceTrackMeta").get_structure()
//! for i in range(meta.get_uint("faces")[1]):
//!     face = meta.get_value(f"face-{i}")
//!     landmarks = struct.iter_unpack("<3f", face.get_value("landmarks").get_data())
//! ```
//!
//! ```c
//! GstStructure *record = gst_custom_meta_get_structure (gst_buffer_get_custom_meta (buffer, "FaceTrackMeta"));
//! const GstStructure *face = gst_value_get_structure (gst_structure_get_value (record, "face-0"));
//! GBytes *landmarks = g_value_get_boxed (gst_structure_get_value (face, "landmarks"));
//! ```

mod face;
mod fields;
mod fit;
mod morphable;

use std::ops::ControlFlow;
use std::sync::{Arc, Once};
use std::time::Duration;

use gst::glib;
use gst::meta::CustomMeta;
use gst_video::VideoRegionOfInterestMeta;
use thiserror::Error;

use self::face::{face_from_structure, structure_from_face};
use self::fields::{Fields, Scale};
use crate::face::geometry::Rect;
use crate::face::model::ModelFile;
use crate::face::report::{FrameReport, FrameStatus, ReportSource, TrackedFace};

/// Version of the layout.
const VERSION: u32 = 1;

/// Type of the region-of-interest metadata.
const ROI_TYPE: &str = "face";

/// The name of the parameter structure that readers of regions of interest look for (Intel DL Streamer's).
const ROI_PARAM: &str = "detection";

/// The metadata; see the module's documentation for its layout.
#[derive(Debug)]
pub enum FaceTrackMeta {}

/// Why a buffer yields no report.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum MetaError {
    /// The buffer has no such metadata.
    #[error("the buffer has no FaceTrackMeta")]
    Absent,
    /// The metadata is of a layout that this reader does not know.
    #[error("FaceTrackMeta has version {0}, this plugin reads version {VERSION}: update it")]
    Version(u32),
    /// A field is missing, of another type or has a value that it can't have.
    #[error("field `{0}` of FaceTrackMeta is missing or malformed")]
    Malformed(String),
}

impl FaceTrackMeta {
    /// The name under which the metadata is registered.
    pub const NAME: &str = "FaceTrackMeta";

    /// Makes the metadata known to GStreamer. Once is enough, more do no harm.
    pub fn register() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            if !CustomMeta::is_registered(Self::NAME) {
                CustomMeta::register_simple(Self::NAME);
            }
        });
    }

    /// Puts `report` on a buffer, in place of an earlier one and its regions of interest.
    ///
    /// # Errors
    /// When something else has taken the metadata's name.
    pub fn attach(
        buffer: &mut gst::BufferRef,
        report: &FrameReport,
    ) -> Result<(), glib::BoolError> {
        Self::register();
        if CustomMeta::from_buffer(buffer, Self::NAME).is_ok() {
            remove(buffer);
        }
        let mut meta = CustomMeta::add(buffer, Self::NAME)?;
        write(meta.mut_structure(), report);
        for face in &report.faces {
            add_region(buffer, face, report);
        }
        Ok(())
    }

    /// The report on a buffer, in pixels of the frame that was analysed; `None` when there is none that can be read.
    pub fn from_buffer(buffer: &gst::BufferRef) -> Option<FrameReport> {
        Self::read(buffer).ok()
    }

    /// As [`FaceTrackMeta::from_buffer`], and tells why there is none.
    ///
    /// # Errors
    /// [`MetaError`], whatever is on the buffer.
    pub fn read(buffer: &gst::BufferRef) -> Result<FrameReport, MetaError> {
        let meta = CustomMeta::from_buffer(buffer, Self::NAME).map_err(|_| MetaError::Absent)?;
        report_from_structure(Fields(meta.structure()))
    }
}

fn write(record: &mut gst::StructureRef, report: &FrameReport) {
    let source = &report.source;
    record.set("version", VERSION);
    record.set("width", report.width);
    record.set("height", report.height);
    record.set("status", report.status.name());
    record.set("engine", source.engine.as_str());
    record.set("device", source.device.as_str());
    record.set("execution-provider", source.execution_provider.as_str());
    record.set("device-reason", source.device_reason.as_str());
    record.set("load-time", nanoseconds(source.load_time));
    record.set("generator", source.generator.as_str());
    record.set("models", models_text(&source.models));
    record.set("faces", report.faces.len() as u32);
    let scale = Scale::of(report.width, report.height);
    for (i, face) in report.faces.iter().enumerate() {
        record.set(face_field(i), structure_from_face(face, scale));
    }
}

fn report_from_structure(record: Fields<'_>) -> Result<FrameReport, MetaError> {
    let version = record.uint("version")?;
    if version != VERSION {
        return Err(MetaError::Version(version));
    }
    let width = record.positive("width")?;
    let height = record.positive("height")?;
    let scale = Scale::of(width, height);
    let faces = (0..record.uint("faces")? as usize)
        .map(|i| face_from_structure(record.structure(&face_field(i))?, scale))
        .collect::<Result<_, _>>()?;
    let optional_text = |name| {
        record
            .optional(name, Fields::text)
            .map(Option::unwrap_or_default)
    };
    let load_time = record.optional("load-time", Fields::uint64)?;
    let source = ReportSource {
        engine: record.text("engine")?.to_owned(),
        device: record.text("device")?.to_owned(),
        execution_provider: optional_text("execution-provider")?.to_owned(),
        device_reason: optional_text("device-reason")?.to_owned(),
        load_time: load_time.map(Duration::from_nanos).unwrap_or_default(),
        generator: record.text("generator")?.to_owned(),
        models: models_from_text(record.text("models")?)
            .ok_or_else(|| MetaError::Malformed("models".to_owned()))?,
    };
    Ok(FrameReport {
        width,
        height,
        status: record.named("status", FrameStatus::from_name)?,
        faces,
        source: Arc::new(source),
    })
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn face_field(index: usize) -> String {
    format!("face-{index}")
}

/// As `sha256sum` writes it.
fn models_text(models: &[ModelFile]) -> String {
    let lines: Vec<_> = models
        .iter()
        .map(|model| format!("{}  {}", model.sha256, model.name))
        .collect();
    lines.join("\n")
}

fn models_from_text(text: &str) -> Option<Vec<ModelFile>> {
    text.lines()
        .map(|line| {
            let (sha256, name) = line.split_once("  ")?;
            Some(ModelFile {
                name: name.to_owned(),
                sha256: sha256.to_owned(),
            })
        })
        .collect()
}

fn add_region(buffer: &mut gst::BufferRef, tracked: &TrackedFace, report: &FrameReport) {
    let rect = cut_to_frame(&tracked.face.bbox, report.width, report.height);
    let mut region = VideoRegionOfInterestMeta::add(buffer, ROI_TYPE, rect);
    region.set_id(i32::try_from(tracked.id).unwrap_or(i32::MAX));
    if let Some(confidence) = tracked.face.confidence {
        let detection = gst::Structure::builder(ROI_PARAM)
            .field("confidence", f64::from(confidence))
            .build();
        region.add_param(detection);
    }
}

/// The whole pixels that a box touches inside the frame: x, y, width, height.
fn cut_to_frame(bbox: &Rect, width: u32, height: u32) -> (u32, u32, u32, u32) {
    // A cast to an integer saturates: what lies left of the frame becomes 0.
    let x = (bbox.x.floor() as u32).min(width);
    let y = (bbox.y.floor() as u32).min(height);
    let right = (bbox.right().ceil() as u32).min(width);
    let bottom = (bbox.bottom().ceil() as u32).min(height);
    (x, y, right.saturating_sub(x), bottom.saturating_sub(y))
}

/// Removes an earlier record and its regions. It is not changed in place: on a copied buffer GStreamer 1.22 ties the
/// record's structure to the life of the buffer that it was copied from.
fn remove(buffer: &mut gst::BufferRef) {
    buffer.foreach_meta_mut(|meta| {
        ControlFlow::Continue(match is_ours(&meta.as_meta_ref()) {
            true => gst::buffer::BufferMetaForeachAction::Remove,
            false => gst::buffer::BufferMetaForeachAction::Keep,
        })
    });
}

fn is_ours(meta: &gst::MetaRef<'_, gst::Meta>) -> bool {
    let record = meta
        .try_as_custom_meta()
        .is_some_and(|custom| custom.has_name(FaceTrackMeta::NAME));
    let region = meta
        .downcast_ref::<VideoRegionOfInterestMeta>()
        .is_some_and(|region| region.roi_type() == ROI_TYPE);
    record || region
}

#[cfg(test)]
mod tests;
