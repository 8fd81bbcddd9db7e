// SPDX-License-Identifier: MPL-2.0
//! The head of a record.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::completeness::Completeness;
use crate::model::ModelFile;
use crate::report::ReportSource;

/// Properties of a stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata {
    /// Path or URI of the video; empty when unknown.
    pub video_path: String,
    /// Frames per second; 0 when unknown.
    pub fps: f64,
    /// Width, in pixels, of the frames to which coordinates belong.
    pub width: u32,
    /// Height of those frames.
    pub height: u32,
    /// Name and version of the program that writes the record.
    pub generator: String,
    /// The engine that analysed the first frame, with the models of all engines, and the device of
    /// the last one; `None` before the first analysed frame.
    pub source: Option<Arc<ReportSource>>,
    /// Options that shape the record, and other options that were set explicitly.
    pub options: Map<String, Value>,
    /// Completeness of the record.
    pub completeness: Completeness,
    /// True if the time of a frame does not follow from its number.
    pub variable_rate: bool,
    /// Rotation that the frames still need for display, as in the tag `image-orientation`.
    pub orientation: Option<String>,
    /// Rotation that was applied to the frames, as in this tag.
    pub turned: Option<String>,
    /// [`fingerprint`](super::container::fingerprint) of the video file; `None` for other sources.
    pub video_fingerprint: Option<String>,
    /// Width of a pixel divided by its height in the analysed frames; `None` for square pixels.
    pub pixel_aspect_ratio: Option<f64>,
    /// Stream time of a frame with the time 0, ns.
    pub start_time: u64,
}

impl Metadata {
    /// Takes what the next frame says of its engine.
    pub fn take_source(&mut self, source: &Arc<ReportSource>) {
        let Some(first) = &self.source else {
            self.source = Some(source.clone());
            return;
        };
        let mut models = first.models.clone();
        let is_new = |model: &&ModelFile| !first.models.contains(model);
        models.extend(source.models.iter().filter(is_new).cloned());
        self.source = Some(Arc::new(ReportSource {
            engine: first.engine.clone(),
            models,
            ..ReportSource::clone(source)
        }));
    }
}
