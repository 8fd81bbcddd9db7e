// SPDX-License-Identifier: MPL-2.0
//! The results for one frame after engine, tracker and smoothing: the content of the metadata and
//! of the JSON.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use strum::VariantArray;

use super::device::Placement;
use super::model::{ModelFile, Runtimes};
use super::observation::Observation;
use crate::words::display_as_serialized;

/// One analysed frame.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameReport {
    /// Width, in pixels, of the frame to which the coordinates belong.
    pub width: u32,
    /// Height of that frame.
    pub height: u32,
    /// Status of the frame.
    pub status: FrameStatus,
    /// True if the frame is the first one of a shot after a hard cut.
    pub cut: bool,
    /// Whether the faces are all faces that the engine can find in the frame.
    pub search: SearchExtent,
    /// True if the frame repeats the picture of the frame before.
    pub repeated: bool,
    /// Faces with their identities.
    pub faces: Vec<TrackedFace>,
    /// The engine and models of the report; shared by all frames of a stream.
    pub source: Arc<ReportSource>,
}

/// Status of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, VariantArray)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum FrameStatus {
    /// At least one face.
    Tracked,
    /// Analysed, and no face.
    NoFace,
    /// Not analysed.
    Skipped,
    /// Filled in for a hole in the stream.
    Gap,
    /// The analysis failed.
    Error,
}

display_as_serialized!(FrameStatus);

/// Extent of the search for faces in a frame, from the widest one. Only [`SearchExtent::Whole`] excludes
/// that the frame shows a face that is not reported, as far as the engine can find it.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    VariantArray,
)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "kebab-case")]
pub enum SearchExtent {
    /// The whole frame was searched, and every face that was found is reported.
    #[default]
    Whole,
    /// Faces were found that are not reported: they are not selected, or the tracker waits for
    /// another frame that shows them.
    Partial,
    /// As many faces were found as the engine may report, so there may be more.
    Limited,
    /// Only the neighbourhoods of the faces of earlier frames were searched.
    KnownFaces,
    /// The frame was not searched: its faces, if any, come from earlier frames.
    None,
    /// The report may have been made of another video, or of frames of another shape.
    OtherVideo,
}

display_as_serialized!(SearchExtent);

impl SearchExtent {
    /// The extent that follows from the status and the faces of a frame, where none is stated.
    pub fn of(status: FrameStatus, faces: &[TrackedFace]) -> Self {
        let is_analysed = match status {
            FrameStatus::Tracked => !faces.is_empty(),
            FrameStatus::NoFace => true,
            FrameStatus::Skipped | FrameStatus::Gap | FrameStatus::Error => false,
        };
        let is_older = |face: &TrackedFace| !face.face.origin.is_measured();
        if is_analysed && !faces.iter().any(is_older) {
            Self::Whole
        } else {
            Self::None
        }
    }
}

/// A face with an identity.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackedFace {
    /// Identity of the face, from 1. It is never used again in a stream.
    pub id: u32,
    /// The measurements.
    pub face: Observation,
}

/// Engine, device and models that made a report.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportSource {
    /// Engine name.
    pub engine: String,
    /// `cpu` or `cuda:<index>`.
    pub device: String,
    /// `built-in`, or ONNX Runtime's name of its execution provider.
    pub execution_provider: String,
    /// Reason for the device.
    pub device_reason: String,
    /// Time that the engine took to load.
    pub load_time: Duration,
    /// Name and version of the plugin.
    pub generator: String,
    /// Models read.
    pub models: Vec<ModelFile>,
    /// Options of the analysis that were set explicitly, as [`options_text`] writes them. Another
    /// text counts as no options.
    pub options: String,
}

impl ReportSource {
    /// Sets the device to `placement`, with this reason. On the CPU, the networks run in
    /// `runtimes`.
    pub fn place(&mut self, placement: &Placement, runtimes: &Runtimes, reason: impl Into<String>) {
        self.device = placement.device();
        self.execution_provider = match placement {
            Placement::Cpu => runtimes.execution_provider(),
            Placement::Cuda(_) => placement.execution_provider().to_owned(),
        };
        self.device_reason = reason.into();
    }
}

/// Options by name as a JSON object; empty if there are none.
pub fn options_text(options: &Map<String, Value>) -> String {
    if options.is_empty() {
        return String::new();
    }
    // A map of plain values can be serialised.
    serde_json::to_string(options).unwrap_or_default()
}
