// SPDX-License-Identifier: MPL-2.0
//! The head of a record, read back.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value as Json};

use super::{Replay, ReplayError};
use crate::model::ModelFile;
use crate::record::timeline::Filling;
use crate::record::wire::Head;
use crate::record::{SCHEMA, SCHEMA_1};
use crate::report::{ReportSource, options_text};

/// Times of a record's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// Timestamps of the buffers.
    Timestamps,
    /// Stream times that start at this one, ns.
    Stream(u64),
}

impl Head {
    /// Rejects values that the readers of this schema would misinterpret.
    ///
    /// # Errors
    /// Returns [`ReplayError::Schema`], [`ReplayError::Head`].
    pub(super) fn check(&self) -> Result<(), ReplayError> {
        let known = [SCHEMA, SCHEMA_1];
        let schema = self.schema.as_deref();
        if let Some(other) = schema.filter(|schema| !known.contains(schema)) {
            return Err(ReplayError::Schema(other.to_owned()));
        }
        let texts = [
            &self.tracking_engine,
            &self.generator,
            &self.device,
            &self.execution_provider,
            &self.device_reason,
        ];
        // Texts of GStreamer end at a zero byte.
        if texts.iter().any(|text| text.contains('\0')) {
            return Err(ReplayError::Head(
                "a string contains the character NUL".into(),
            ));
        }
        let damaged = self
            .models
            .iter()
            .find(|(name, sha256)| !is_model(name, sha256));
        damaged.map_or(Ok(()), |(name, _)| {
            Err(ReplayError::Head(format!(
                "{name:?} is not a model file with its SHA-256"
            )))
        })
    }

    /// Returns true if an engine had analysed a frame before these metadata were written.
    pub(super) fn knows_engine(&self) -> bool {
        !self.tracking_engine.is_empty()
    }

    /// The engine that analysed the frames.
    pub(super) fn source(&self) -> Arc<ReportSource> {
        let models = self.models.clone().into_iter();
        Arc::new(ReportSource {
            engine: self.tracking_engine.clone(),
            device: self.device.clone(),
            execution_provider: self.execution_provider.clone(),
            device_reason: self.device_reason.clone(),
            load_time: self.load_time_ms.map(from_milliseconds).unwrap_or_default(),
            generator: self.generator.clone(),
            models: models
                .map(|(name, sha256)| ModelFile { name, sha256 })
                .collect(),
            options: options_text(&self.facetrack_options),
        })
    }

    /// Width and height of the analysed frames, px.
    pub(super) fn size(&self) -> Option<(u32, u32)> {
        (self.width > 0 && self.height > 0).then_some((self.width, self.height))
    }

    fn is_first_schema(&self) -> bool {
        self.schema.as_deref() == Some(SCHEMA_1)
    }
}

impl<S> Replay<S> {
    /// Frames per second; `None` when unknown.
    pub fn fps(&self) -> Option<f64> {
        Some(self.index.head.fps).filter(|fps| *fps > 0.0)
    }

    /// Width of a pixel divided by its height in the analysed frames.
    pub fn pixel_aspect_ratio(&self) -> f64 {
        let ratio = self.index.head.pixel_aspect_ratio;
        ratio.filter(|ratio| *ratio > 0.0).unwrap_or(1.0)
    }

    /// The engine that analysed the frames; empty when unknown.
    pub fn engine(&self) -> &str {
        &self.index.source.engine
    }

    /// Properties of `trackjsonsink` that affect the record, with their values.
    pub fn options(&self) -> &Map<String, Json> {
        &self.index.head.options
    }

    /// Properties of `facetrack` that affect the results and were set explicitly, with their values.
    pub fn facetrack_options(&self) -> &Map<String, Json> {
        &self.index.head.facetrack_options
    }

    /// Returns the rule for the numbers of missing frames.
    pub fn filling(&self) -> Filling {
        let head = &self.index.head;
        let option = |name| self.options().get(name);
        if option("fill-gaps").and_then(Json::as_bool) == Some(false) {
            Filling::Never
        } else if head.is_first_schema() {
            Filling::Timestamps1
        } else if option("fill-by").is_some_and(|by| by == "timestamps") {
            Filling::Timestamps
        } else {
            Filling::Loss
        }
    }

    /// The kind of time that frames have.
    pub fn times(&self) -> Times {
        let head = &self.index.head;
        if head.is_first_schema() {
            Times::Timestamps
        } else {
            Times::Stream(head.start_time)
        }
    }
}

/// Converts milliseconds with decimals, as in records of the first schema. The cast saturates for
/// values out of range.
fn from_milliseconds(time: f64) -> Duration {
    Duration::from_micros((time * 1e3).round() as u64)
}

fn is_model(name: &str, sha256: &str) -> bool {
    let named = !name.is_empty() && !name.contains(char::is_control);
    named && sha256.len() == 64 && sha256.bytes().all(|digit| digit.is_ascii_hexdigit())
}
