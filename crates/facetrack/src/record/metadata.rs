// SPDX-License-Identifier: MPL-2.0
//! The head of a record.

use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::{Completeness, SCHEMA, Totals};
use crate::model::ModelFile;
use crate::report::ReportSource;

/// What is known of a stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata {
    /// Path or URI of the video; empty when unknown.
    pub video_path: String,
    /// Frames per second; 0 when unknown.
    pub fps: f64,
    /// Pixels a row of the frames that coordinates belong to.
    pub width: u32,
    /// Rows of those frames.
    pub height: u32,
    /// Name and version of what writes the record.
    pub generator: String,
    /// What analysed the frames; `None` before the first analysed one.
    pub source: Option<Arc<ReportSource>>,
    /// Options that shape the record, and other options that were set explicitly.
    pub options: Map<String, Value>,
    /// Whether the record has all of the video.
    pub completeness: Completeness,
    /// Whether the time of a frame does not follow from its number.
    pub variable_rate: bool,
    /// How the frames still have to be turned for display, as the tag `image-orientation` says it.
    pub orientation: Option<String>,
    /// Width of a pixel divided by its height in the analysed frames; `None` for square pixels.
    pub pixel_aspect_ratio: Option<f64>,
    /// Stream time of a frame with the time 0, ns.
    pub start_time: u64,
}

/// Metadata as JSON; what is counted is `null` until it is known.
pub(super) struct MetadataJson<'a> {
    pub(super) metadata: &'a Metadata,
    pub(super) totals: Option<Totals>,
}

impl Serialize for MetadataJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Metadata {
            video_path,
            fps,
            width,
            height,
            generator,
            source,
            options,
            completeness,
            variable_rate,
            orientation,
            pixel_aspect_ratio,
            start_time,
        } = self.metadata;
        let is_known = self.totals.is_some();
        let source = source.as_deref();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("video_path", video_path)?;
        map.serialize_entry("total_frames", &self.totals.map(|totals| totals.frames))?;
        map.serialize_entry("fps", fps)?;
        map.serialize_entry("tracking_engine", source.map_or("", |s| &s.engine))?;
        map.serialize_entry("width", width)?;
        map.serialize_entry("height", height)?;
        map.serialize_entry("schema", SCHEMA)?;
        map.serialize_entry("generator", source.map_or(generator, |s| &s.generator))?;
        map.serialize_entry("device", source.map_or("", |s| &s.device))?;
        map.serialize_entry("models", &ModelsJson(source.map_or(&[], |s| &s.models)))?;
        map.serialize_entry("options", options)?;
        map.serialize_entry("padded_frames", &self.totals.map(|totals| totals.padded))?;
        map.serialize_entry(
            "execution_provider",
            source.map_or("", |s| &s.execution_provider),
        )?;
        map.serialize_entry("device_reason", source.map_or("", |s| &s.device_reason))?;
        map.serialize_entry("complete", &is_known.then(|| completeness.is_complete()))?;
        if let Some(reason) = completeness.reason.as_ref().filter(|_| is_known) {
            map.serialize_entry("incomplete_reason", reason)?;
        }
        if let Some(duration) = completeness.expected_duration {
            map.serialize_entry("expected_duration", &duration)?;
        }
        if let Some(frames) = completeness.expected_frames {
            map.serialize_entry("expected_frames", &frames)?;
        }
        map.serialize_entry(
            "decode_errors",
            &is_known.then_some(completeness.decode_errors),
        )?;
        map.serialize_entry(
            "corrupted_frames",
            &is_known.then_some(completeness.corrupted),
        )?;
        if *variable_rate {
            map.serialize_entry("variable_rate", variable_rate)?;
        }
        if let Some(orientation) = orientation {
            map.serialize_entry("orientation", orientation)?;
        }
        if let Some(ratio) = pixel_aspect_ratio {
            map.serialize_entry("pixel_aspect_ratio", ratio)?;
        }
        if *start_time > 0 {
            map.serialize_entry("start_time", start_time)?;
        }
        if let Some(source) = source.filter(|source| !source.options.is_empty()) {
            map.serialize_entry("facetrack_options", &source.options)?;
        }
        map.end()
    }
}

/// File name → SHA-256.
struct ModelsJson<'a>(&'a [ModelFile]);

impl Serialize for ModelsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|model| (&model.name, &model.sha256)))
    }
}
