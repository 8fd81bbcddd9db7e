// SPDX-License-Identifier: MPL-2.0
#![doc = include_str!("../docs/metadata.md")]
//!
//! This module attaches the metadata and reads it.

#[cfg(feature = "analytics")]
mod analytics;
mod cost;
mod face;
mod fields;
mod fits;
mod frame;
mod missing;
#[cfg(not(feature = "analytics"))]
mod no_analytics;
pub mod redaction;
pub(crate) mod region;
pub(crate) mod track_times;

use std::ops::ControlFlow;
use std::sync::{Arc, Once};
use std::time::Duration;

use gst::glib;
use gst::meta::CustomMeta;
use gst_video::{VideoInfo, VideoRegionOfInterestMeta};
use thiserror::Error;

pub use self::cost::Cost;
use self::face::{face_from_structure, structure_from_face};
use self::fields::{Fields, Scale, malformed};
pub use self::frame::{Fit, FrameShape, Stale};
#[cfg(not(feature = "analytics"))]
use self::no_analytics as analytics;
use self::region::Canvas;
pub use self::track_times::{TrackHistory, TrackTimes};
use facetrack::model::ModelFile;
use facetrack::report::{FrameReport, ReportSource, SearchExtent};
pub(crate) use missing::{MissingMetaCounter, asks_for_source, remedy};

/// Version of the layout that is written.
const VERSION: u32 = 2;

/// The previous version, which is read as well. It has other names for the secondary landmarks.
const VERSION_1: u32 = 1;

/// Field: number of pieces of the `GstAnalyticsRelationMeta` that belong to the record.
const ANALYTICS_PIECES: &str = "analytics-pieces";

/// Field: true if a shot begins at the frame.
const CUT: &str = "cut";

/// Field: extent of the search for faces.
const SEARCH: &str = "search";

/// Field: true if the frame repeats the picture of the frame before.
const REPEATED: &str = "repeated";

/// The metadata; see the module's documentation for its layout.
#[derive(Debug)]
pub enum FaceTrackMeta {}

/// Reason why a buffer yields no report.
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
    /// The record does not match the pixels of this frame any more.
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
    /// Returns an error if the name of the metadata is registered for another type. With the
    /// feature `analytics`, also returns an error if GStreamer's library refuses the relations. The
    /// buffer then has no record at all.
    pub fn attach(
        buffer: &mut gst::BufferRef,
        report: &FrameReport,
    ) -> Result<(), glib::BoolError> {
        let shape = FrameShape::square(report.width, report.height);
        Self::attach_seen(buffer, report, shape, &[])
    }

    /// Attaches `report` like [`FaceTrackMeta::attach`], to a frame that may have another shape. If
    /// the report has another size, the frame is the same picture scaled, with borders if the
    /// aspect ratios differ ([`Fit::Borders`]). The pixel aspect ratio of the report is assumed to
    /// be the same as in the frame. `times` has one entry for each face, in the same order. A face
    /// without an entry is assumed to have appeared at the buffer's time.
    ///
    /// # Errors
    /// Returns an error if the name of the metadata is registered for another type. With the
    /// feature `analytics`, also returns an error if GStreamer's library refuses the relations. The
    /// buffer then has no record at all.
    pub fn attach_seen(
        buffer: &mut gst::BufferRef,
        report: &FrameReport,
        frame: FrameShape,
        times: &[TrackTimes],
    ) -> Result<(), glib::BoolError> {
        Self::register();
        Self::detach(buffer);
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

    /// Removes the report from a buffer, if it has one.
    pub fn detach(buffer: &mut gst::BufferRef) {
        if let Ok(earlier) = CustomMeta::from_buffer(buffer, Self::NAME) {
            let pieces = earlier.structure().get(ANALYTICS_PIECES).ok();
            remove(buffer, pieces);
        }
    }

    /// The report on a buffer, in pixels of the analysed frame; `None` if there is no readable
    /// report.
    pub fn from_buffer(buffer: &gst::BufferRef) -> Option<FrameReport> {
        Self::read(buffer).ok()
    }

    /// Reads the report like [`FaceTrackMeta::from_buffer`], and returns the reason if there is
    /// none.
    ///
    /// # Errors
    /// Returns [`MetaError`]
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
    /// Returns [`MetaError::Stale`] if elements changed the picture in another way, and the errors
    /// of [`FaceTrackMeta::read`].
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
    record.set(SEARCH, report.search.to_string());
    if report.repeated {
        record.set(REPEATED, true);
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
        .collect::<Result<Vec<_>, _>>()?;
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
    let status = record.named("status")?;
    let search = record.optional(SEARCH, Fields::named)?;
    Ok(FrameReport {
        width,
        height,
        status,
        cut: record.optional(CUT, Fields::get)?.unwrap_or_default(),
        search: search.unwrap_or_else(|| SearchExtent::of(status, &faces)),
        repeated: record.optional(REPEATED, Fields::get)?.unwrap_or_default(),
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

/// Returns the models in the form of `sha256sum`.
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
