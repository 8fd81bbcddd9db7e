// SPDX-License-Identifier: MPL-2.0
//! The head of a record.

use std::sync::Arc;
use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{SCHEMA, Totals};
use crate::face::model::ModelFile;
use crate::face::options::Value;
use crate::face::report::ReportSource;

/// What is known of a stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata {
    /// Path or URI of the video; empty when unknown.
    pub video_path: String,
    /// Frames a second; 0 when unknown or variable.
    pub fps: f64,
    /// Pixels a row of the frames that coordinates belong to.
    pub width: u32,
    /// Rows of those frames.
    pub height: u32,
    /// Name and version of what writes the record.
    pub generator: String,
    /// What analysed the frames; `None` before the first analysed one.
    pub source: Option<Arc<ReportSource>>,
    /// Options that shape the record.
    pub options: Vec<(&'static str, Value)>,
}

/// Metadata as JSON; the counts are `null` until they are known.
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
        } = self.metadata;
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
        map.serialize_entry("options", &OptionsJson(options))?;
        map.serialize_entry("padded_frames", &self.totals.map(|totals| totals.padded))?;
        map.serialize_entry(
            "execution_provider",
            source.map_or("", |s| &s.execution_provider),
        )?;
        map.serialize_entry("device_reason", source.map_or("", |s| &s.device_reason))?;
        map.serialize_entry("load_time_ms", &source.map(|s| milliseconds(s.load_time)))?;
        map.end()
    }
}

/// To a thousandth.
fn milliseconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

/// File name → SHA-256.
struct ModelsJson<'a>(&'a [ModelFile]);

impl Serialize for ModelsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|model| (&model.name, &model.sha256)))
    }
}

/// Option → value.
struct OptionsJson<'a>(&'a [(&'static str, Value)]);

impl Serialize for OptionsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.0 {
            match value {
                Value::Bool(value) => map.serialize_entry(name, value)?,
                Value::Int(value) => map.serialize_entry(name, value)?,
                Value::Float(value) => map.serialize_entry(name, value)?,
                Value::Text(value) => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}
