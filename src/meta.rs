// SPDX-License-Identifier: MPL-2.0
//! The metadata that carries a [`FrameReport`] on a buffer.
//!
//! One `GstCustomMeta` named `FaceTrackMeta` is the whole record. It has no tags, so every element
//! that copies metadata keeps it, also when the video is scaled or converted. Coordinates are
//! divided by the width and the height of the analysed frame, so they are valid for any size of the
//! picture. A second `GstCustomMeta`, `FaceTrackFrame`, is a witness: it shows whether elements
//! changed the picture, see [the frame at hand](#the-frame-at-hand). In addition, each face has a
//! `GstVideoRegionOfInterestMeta`: see [regions of interest](#regions-of-interest). With the
//! feature `analytics` there is a `GstAnalyticsRelationMeta` too.
//!
//! # Layout
//!
//! The structure of `FaceTrackMeta` has these fields. Ignore fields that are not listed. `version`
//! increases with every incompatible change.
//!
//! | field | type | |
//! |---|---|---|
//! | `version` | uint | 1 |
//! | `width`, `height` | uint | size of the analysed frame, px |
//! | `pixel-aspect-ratio` | fraction | shape of its pixels; absent = 1/1 |
//! | `status` | string | `tracked`, `no-face`, `skipped`, `gap`, `error` |
//! | `cut` | boolean | true if the frame is the first one of a shot after a hard cut; absent if not |
//! | `engine`, `device`, `generator` | string | engine, device and plugin that made the record |
//! | `execution-provider`, `device-reason` | string | what runs the networks (`built-in`, or ONNX Runtime's name of its execution provider), and the reason for the device |
//! | `load-time` | uint64 | how long the engine took to load, ns |
//! | `models` | string | one line per model file: SHA-256 in hex, two spaces, file name |
//! | `options` | string | options of facetrack that were set explicitly, as a JSON object; absent if none were |
//! | `analytics-pieces` | uint | number of pieces in the `GstAnalyticsRelationMeta` that go with the record; absent without |
//! | `faces` | uint | number of faces |
//! | `face-0`, `face-1`, … | structure `face` | one for each |
//!
//! and each face:
//!
//! | field | type | |
//! |---|---|---|
//! | `id` | uint | track, from 1 |
//! | `x`, `y`, `width`, `height` | double | box by its top-left corner, not cut to the frame; x by frame width, y by height |
//! | `origin` | string | `detected`, `tracked`, `held`, `predicted` |
//! | `confidence` | double | 0…1; absent where the engine has none |
//! | `landmark-scheme` | string | `mediapipe-478`, `openseeface-66`, `ibug-68`, `insightface-106`; absent without landmarks |
//! | `landmarks` | bytes | x, y, z of each landmark; z by frame width |
//! | `landmark-confidences` | bytes | a score for each landmark, 0…1; absent where the engine has none |
//! | `contour-scheme`, `contour`, `contour-confidences` | | as for `landmarks`: InsightFace's 106 points, if `landmarks` has other points; else absent |
//! | `key-points` | bytes | x, y of each key point; absent without |
//! | `blendshape-names` | string | channels, separated by commas; absent without blendshapes |
//! | `blendshapes` | bytes | a value for each name |
//! | `blendshape-source` | string | `measured` by a network, or `derived` from other figures; absent = measured |
//! | `raw-blendshapes` | bytes | the values before the rest values of the face were subtracted; absent if they were not, or if these values are unknown |
//! | `blendshapes-corrected` | boolean | true if rest values were subtracted; absent if not |
//! | `pose` | bytes | 4×4 matrix camera from head by rows; absent without |
//! | `age` | double | years, as a network guesses; absent without |
//! | `gender` | string | `female`, `male`, as it guesses; there with `age` |
//! | `embedding` | bytes | vector of unit length that identifies a person; absent unless requested |
//! | `gaze` | bytes | x, y, confidence of the right pupil, then of the left; absent without |
//! | `features` | bytes | OpenSeeFace's features in the order of [`Features::NAMES`]; absent without |
//! | `fit` | structure `fit` | OpenSeeFace's 3-D face model fitted to the landmarks; absent without |
//! | `morphable` | structure `morphable` | a morphable model fitted to the landmarks, or why it could not be; absent without |
//!
//! and a fit, in the conventions of [`ModelFit`]:
//!
//! | field | type | |
//! |---|---|---|
//! | `success` | boolean | if false, ignore the other fields |
//! | `error` | double | distance of the outline and the tip of the nose from the model; by frame width |
//! | `quaternion` | bytes | inverse rotation: x, y, z, w |
//! | `euler` | bytes | rotation as three angles in degrees |
//! | `rotation` | bytes | the same as axis times angle in radians |
//! | `translation` | bytes | camera from model: x, y, z in units of the model |
//! | `landmarks-3d` | bytes | x, y, z of each landmark in the model's space, then of pupils and eyeballs |
//! | `projected` | bytes | x, y of the requested points of the model in the picture |
//!
//! and a morphable model, in the conventions of [`MorphableFit`], either only this field:
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
//! | `expression` | bytes | coefficients of the expressions, 0 or more |
//! | `expression-names` | string | names of the expressions, separated by commas |
//! | `rotation` | bytes | camera from model as a unit quaternion: x, y, z, w |
//! | `origin` | bytes | x, y of the model's origin in the picture |
//! | `scale` | double | size of a millimetre of the model; by frame width |
//! | `residual` | double | mean distance of the landmarks from their vertices; by frame width |
//! | `contour` | bytes | x, y of the vertices that the outline's landmarks were matched with |
//! | `mesh` | bytes | x, y, z of every vertex, as in `landmarks`; absent unless requested |
//!
//! [`Features::NAMES`]: facetrack::observation::Features::NAMES
//! [`ModelFit`]: facetrack::observation::ModelFit
//! [`MorphableFit`]: facetrack::observation::MorphableFit
//!
//! `bytes` are a `GBytes` of little-endian 32-bit floats. Values are stored without loss, except
//! points of the picture, which are exact to the precision of a 32-bit float. Copies of a buffer
//! share them, so a mesh, which is the largest value, is written once.
//!
//! # Regions of interest
//!
//! A region has the type `face`, the box in whole pixels clipped to the frame, and the id of the
//! track. With the feature `analytics`, it has the id of the face's object detection instead, which
//! links both in DL Streamer. Its parameters are structures as DL Streamer's readers (`gstgva`,
//! `GVA::RegionOfInterest`) expect them:
//!
//! | structure | fields |
//! |---|---|
//! | `detection` | `x_min`, `x_max`, `y_min`, `y_max` (double): the box clipped to the frame, as fractions of the frame; `confidence` (double), absent if the engine has none; `label_id` (int) 0 |
//! | `object_id` | `id` (int): the track's |
//! | `key_points`, and one named as the landmarks' scheme | a tensor with `format` `landmark_points`: x, y of each point as fractions of the region; absent without |
//! | `blendshapes` | a tensor with `names` (string), separated by commas; absent without |
//! | `age`, `gender` | `label` (string): years, `female` or `male`; absent without |
//!
//! All but the first two have the engine's name as `model_name`. A tensor is a row of 32-bit floats
//! in `data_buffer` (a `GVariant` of bytes), with `dims` (array of uint: 1, their number),
//! `precision` (int) 10 and `layout` (int) 193.
//!
//! # The frame at hand
//!
//! [`FaceTrackMeta::in_frame`] returns faces in pixels of the frame that the caps of a buffer
//! describe, or the reason why they are [`Stale`]. Other readers do the same in these steps:
//!
//! 1. Without `FaceTrackFrame` on the buffer an element cropped, rotated or redrew the picture: the
//!    coordinates are invalid. `videocrop`, `videoflip`, `videobox` and other filters that make a
//!    new picture drop it; copying, `videoconvert`, `videoscale`, encoders, decoders and filters
//!    that work in place keep it.
//! 2. A `GstVideoCropMeta` says the same.
//! 3. If its field `scaled` (boolean) is false, the frame must have the record's `width` and
//!    `height`, and the coordinates are multiplied by them; with another size they are invalid.
//! 4. If it is true, the coordinates are multiplied by the frame's width and height. But if
//!    `videoscale` has `add-borders=true`, and the aspect ratio of the frame at hand (W by H, pixel
//!    aspect ratio P) differs from the analysed frame (w by h, pixel aspect ratio p), the picture
//!    has borders: with s = (w · p) / (h · P) it is W by ⌊W / s⌋ if that is no more than H, else ⌊H
//!    · s⌋ by H, and lies in the middle, its offset rounded down. No metadata contains the value of
//!    `add-borders`.
//!
//! `python/facetrack` reads all of this in Python. Without it, keep the record in a variable while
//! its faces are read, because the bindings do not keep it alive for structures inside it.
//!
//! ```python
//! record = buffer.get_custom_meta("FaceTrackMeta").get_structure()
//! for i in range(record.get_value("faces")):
//!     face = record.get_value(f"face-{i}")
//!     landmarks = struct.iter_unpack("<3f", face.get_value("landmarks").get_data())
//! ```
//!
//! ```c
//! GstStructure *record = gst_custom_meta_get_structure (gst_buffer_get_custom_meta (buffer, "FaceTrackMeta"));
//! const GstStructure *face = gst_value_get_structure (gst_structure_get_value (record, "face-0"));
//! GBytes *landmarks = g_value_get_boxed (gst_structure_get_value (face, "landmarks"));
//! ```

#[cfg(feature = "analytics")]
mod analytics;
mod face;
mod fields;
mod fits;
mod frame;
mod missing;
#[cfg(not(feature = "analytics"))]
mod no_analytics;
pub(crate) mod region;
pub(crate) mod track_times;

use std::ops::ControlFlow;
use std::sync::{Arc, Once};
use std::time::Duration;

use gst::glib;
use gst::meta::CustomMeta;
use gst_video::{VideoInfo, VideoRegionOfInterestMeta};
use thiserror::Error;

use self::face::{face_from_structure, structure_from_face};
use self::fields::{Fields, Scale, malformed};
pub use self::frame::{Fit, FrameShape, Stale};
#[cfg(not(feature = "analytics"))]
use self::no_analytics as analytics;
use self::region::Canvas;
pub use self::track_times::{TrackHistory, TrackTimes};
use facetrack::model::ModelFile;
use facetrack::report::{FrameReport, ReportSource};
pub(crate) use missing::{MissingMetaCounter, asks_for_source, remedy};

/// Version of the layout that is written.
const VERSION: u32 = 2;

/// The version before it, which is read too: the secondary landmarks have other names.
const VERSION_1: u32 = 1;

/// Field: how many pieces of the `GstAnalyticsRelationMeta` go with the record.
const ANALYTICS_PIECES: &str = "analytics-pieces";

/// Field: whether a shot begins at the frame.
const CUT: &str = "cut";

/// The metadata; see the module's documentation for its layout.
#[derive(Debug)]
pub enum FaceTrackMeta {}

/// Why a buffer yields no report.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
pub enum MetaError {
    /// The buffer has no such metadata.
    #[error("the buffer has no FaceTrackMeta")]
    Absent,
    /// The metadata is of a layout that this reader does not know.
    #[error(
        "FaceTrackMeta has version {0}, but this plugin reads versions {VERSION_1} and {VERSION}: update the plugin"
    )]
    Version(u32),
    /// A field is missing, of another type or has a value that it can't have.
    #[error("field `{0}` of FaceTrackMeta is missing or malformed")]
    Malformed(String),
    /// The record is not of this frame's pixels any more.
    #[error(
        "the positions of faces in this frame are unknown: {0}; put facetrack after that element"
    )]
    Stale(#[from] Stale),
}

impl FaceTrackMeta {
    /// The name under which the metadata is registered.
    pub const NAME: &str = "FaceTrackMeta";

    /// Registers the metadata with GStreamer. Further calls have no effect.
    pub fn register() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            if !CustomMeta::is_registered(Self::NAME) {
                CustomMeta::register_simple(Self::NAME);
            }
            frame::register();
        });
    }

    /// Attaches `report` to a buffer, and replaces an earlier report with its regions and
    /// relations. The frame's pixels are square, and the faces have no history.
    ///
    /// # Errors
    /// If the name of the metadata is registered for something else; with the feature `analytics`
    /// also if GStreamer's library refuses the relations. The buffer then has no record at all.
    pub fn attach(
        buffer: &mut gst::BufferRef,
        report: &FrameReport,
    ) -> Result<(), glib::BoolError> {
        let shape = FrameShape::square(report.width, report.height);
        Self::attach_seen(buffer, report, shape, &[])
    }

    /// As [`FaceTrackMeta::attach`], to a frame of another shape: if the report has another size,
    /// the frame is the same picture scaled, with borders if the aspect ratios differ
    /// ([`Fit::Borders`]). The pixel aspect ratio of the report is assumed to be the same as in the
    /// frame. `times` has one entry for each face, in the same order. A face without an entry is
    /// assumed to have appeared at the buffer's time.
    ///
    /// # Errors
    /// If the name of the metadata is registered for something else; with the feature `analytics`
    /// also if GStreamer's library refuses the relations. The buffer then has no record at all.
    pub fn attach_seen(
        buffer: &mut gst::BufferRef,
        report: &FrameReport,
        frame: FrameShape,
        times: &[TrackTimes],
    ) -> Result<(), glib::BoolError> {
        Self::register();
        if let Ok(earlier) = CustomMeta::from_buffer(buffer, Self::NAME) {
            let pieces = earlier.structure().get(ANALYTICS_PIECES).ok();
            remove(buffer, pieces);
        }
        let canvas = Canvas::new(report, frame);
        let times = complete(times, buffer, report);
        let (numbers, pieces) = analytics::add(buffer, report, canvas, &times)?;
        let mut meta = CustomMeta::add(buffer, Self::NAME)?;
        let record = meta.mut_structure();
        write(record, report);
        record.set(frame::PIXEL_ASPECT_RATIO, frame.sound_ratio());
        record.set_if_some(ANALYTICS_PIECES, pieces);
        let scaled = (frame.width, frame.height) != (report.width, report.height);
        frame::attach(buffer, scaled)?;
        for (face, number) in std::iter::zip(&report.faces, numbers) {
            region::add(buffer, face, number, canvas, &report.source.engine);
        }
        Ok(())
    }

    /// The report on a buffer, in pixels of the analysed frame; `None` if there is no readable
    /// report.
    pub fn from_buffer(buffer: &gst::BufferRef) -> Option<FrameReport> {
        Self::read(buffer).ok()
    }

    /// As [`FaceTrackMeta::from_buffer`], with the reason if there is none.
    ///
    /// # Errors
    /// [`MetaError`]
    pub fn read(buffer: &gst::BufferRef) -> Result<FrameReport, MetaError> {
        let meta = CustomMeta::from_buffer(buffer, Self::NAME).map_err(|_| MetaError::Absent)?;
        let structure = meta.structure();
        let analysed = analysed_frame(structure)?;
        let scale = analysed.scale();
        let size = (analysed.width, analysed.height);
        report_from_structure(Fields { structure, scale }, size)
    }

    /// Size and pixel aspect ratio of the analysed frame; `None` without a readable record.
    pub fn analysed_frame(buffer: &gst::BufferRef) -> Option<FrameShape> {
        let meta = CustomMeta::from_buffer(buffer, Self::NAME).ok()?;
        analysed_frame(meta.structure()).ok()
    }

    /// The report on a buffer, in pixels of the frame that its caps describe, after elements that
    /// copy, convert, scale or encode the video. The report has the width and height of this frame.
    /// Values that are not positions in the picture, such as the pose, refer to the analysed
    /// picture. `frame` may be encoded video.
    ///
    /// # Errors
    /// [`MetaError::Stale`] if elements changed the picture in another way; the errors of
    /// [`FaceTrackMeta::read`].
    pub fn in_frame(
        buffer: &gst::BufferRef,
        frame: &VideoInfo,
        fit: Fit,
    ) -> Result<FrameReport, MetaError> {
        let meta = CustomMeta::from_buffer(buffer, Self::NAME).map_err(|_| MetaError::Absent)?;
        let structure = meta.structure();
        let scale = analysed_frame(structure)?.placed(buffer, frame, fit)?;
        let size = (frame.width(), frame.height());
        report_from_structure(Fields { structure, scale }, size)
    }
}

fn write(record: &mut gst::StructureRef, report: &FrameReport) {
    let source = &report.source;
    record.set("version", VERSION);
    record.set("width", report.width);
    record.set("height", report.height);
    record.set("status", report.status.to_string());
    if report.cut {
        record.set(CUT, true);
    }
    record.set("engine", source.engine.as_str());
    record.set("device", source.device.as_str());
    record.set("execution-provider", source.execution_provider.as_str());
    record.set("device-reason", source.device_reason.as_str());
    record.set("load-time", nanoseconds(source.load_time));
    record.set("generator", source.generator.as_str());
    record.set("models", models_text(&source.models));
    if !source.options.is_empty() {
        record.set("options", source.options.as_str());
    }
    record.set("faces", report.faces.len() as u32);
    let scale = Scale::of(report.width, report.height);
    for (i, face) in report.faces.iter().enumerate() {
        record.set(face_field(i), structure_from_face(face, scale));
    }
}

fn analysed_frame(structure: &gst::StructureRef) -> Result<FrameShape, MetaError> {
    let scale = Scale::of(1, 1);
    let record = Fields { structure, scale };
    match record.get("version")? {
        VERSION_1 | VERSION => FrameShape::from_record(record),
        other => Err(MetaError::Version(other)),
    }
}

/// The report in pixels of a frame of this size.
fn report_from_structure(
    record: Fields<'_>,
    (width, height): (u32, u32),
) -> Result<FrameReport, MetaError> {
    let faces = (0..record.get::<u32>("faces")? as usize)
        .map(|i| face_from_structure(record.structure(&face_field(i))?))
        .collect::<Result<_, _>>()?;
    let text = |name| record.get::<String>(name);
    let optional_text = |name| {
        let text = record.optional(name, Fields::get::<String>);
        text.map(Option::unwrap_or_default)
    };
    let load_time = record.optional("load-time", Fields::get)?;
    let source = ReportSource {
        engine: text("engine")?,
        device: text("device")?,
        execution_provider: optional_text("execution-provider")?,
        device_reason: optional_text("device-reason")?,
        load_time: load_time.map(Duration::from_nanos).unwrap_or_default(),
        generator: text("generator")?,
        models: models_from_text(&text("models")?).ok_or_else(|| malformed("models"))?,
        options: text("options").unwrap_or_default(),
    };
    Ok(FrameReport {
        width,
        height,
        status: record.named("status")?,
        cut: record.optional(CUT, Fields::get)?.unwrap_or_default(),
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
    let line = |model: &ModelFile| format!("{}  {}", model.sha256, model.name);
    let lines: Vec<_> = models.iter().map(line).collect();
    lines.join("\n")
}

fn models_from_text(text: &str) -> Option<Vec<ModelFile>> {
    let model = |line: &str| {
        let (sha256, name) = line.split_once("  ")?;
        let [name, sha256] = [name, sha256].map(str::to_owned);
        Some(ModelFile { name, sha256 })
    };
    text.lines().map(model).collect()
}

/// A time for each face.
fn complete(
    known: &[TrackTimes],
    buffer: &gst::BufferRef,
    report: &FrameReport,
) -> Vec<TrackTimes> {
    let now = TrackTimes::at(buffer.pts().unwrap_or_default());
    let times = known.iter().copied().chain(std::iter::repeat(now));
    times.take(report.faces.len()).collect()
}

/// Removes an earlier record, its witness, its regions, and its relations unless another element
/// has added to them. They are not changed in place, because on a copied buffer GStreamer 1.22 ties
/// the lifetime of the record's structure to the original buffer.
fn remove(buffer: &mut gst::BufferRef, pieces: Option<u32>) {
    buffer.foreach_meta_mut(|meta| {
        let meta = meta.as_meta_ref();
        let relations = pieces.is_some_and(|pieces| analytics::holds(&meta, pieces));
        ControlFlow::Continue(if relations || is_ours(&meta) {
            gst::buffer::BufferMetaForeachAction::Remove
        } else {
            gst::buffer::BufferMetaForeachAction::Keep
        })
    });
}

fn is_ours(meta: &gst::MetaRef<'_, gst::Meta>) -> bool {
    let record = meta.try_as_custom_meta().is_some_and(|custom| {
        custom.has_name(FaceTrackMeta::NAME) || custom.has_name(frame::WITNESS)
    });
    let region = meta
        .downcast_ref::<VideoRegionOfInterestMeta>()
        .is_some_and(|region| region.roi_type() == region::TYPE);
    record || region
}

#[cfg(test)]
mod tests;
