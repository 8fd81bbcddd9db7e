// SPDX-License-Identifier: MPL-2.0
//! Settings of engines.

use std::path::PathBuf;

use smart_default::SmartDefault;

use super::RunningMode;
use crate::device::Placement;
use crate::model::{Opener, RuntimeChoice};
use facetrack_assets::locate::SearchPaths;

/// Settings that an engine is loaded with. The defaults suit every engine. The settings of a single
/// engine have its name, and are defined in its folder. Fill the rest with
/// `..EngineConfig::default()`: later versions have more fields.
#[derive(Debug, Clone, PartialEq, SmartDefault)]
pub struct EngineConfig {
    /// Model file; `None` for the published one, which is searched in [`Self::paths`].
    pub model: Option<PathBuf>,
    /// Model file of the detector, for engines with several models; `None` as with `model`.
    pub detector_model: Option<PathBuf>,
    /// Model file of the landmarks, for engines with several models; `None` as with `model`.
    pub landmark_model: Option<PathBuf>,
    /// Model file of the gaze, for engines with several models; `None` as with `model`.
    pub gaze_model: Option<PathBuf>,
    /// Places to search for models and ONNX Runtime.
    pub paths: SearchPaths,
    /// Runtime of the networks on the CPU.
    pub runtime: RuntimeChoice,
    /// Relation of the frames to one another.
    pub running_mode: RunningMode,
    /// Maximum number of faces; `None` for the default of the engine: 5 for MediaPipe, 1 for
    /// OpenSeeFace, any number for the others.
    pub max_faces: Option<usize>,
    /// Threads that analyse a frame: each measures a face, and all of them run a large detector.
    #[default(1)]
    pub threads: usize,
    /// Maximum width, in pixels, of the detector's input; 0 for no limit, `None` for the default
    /// of the engine.
    pub detect_max_width: Option<usize>,
    /// Maximum IoU of two detected faces; `None` for the default of the engine.
    pub nms_threshold: Option<f32>,
    /// Factor of a `jawOpen` that is derived from landmarks.
    #[default(1.0)]
    pub jaw_open_scale: f32,
    /// The engine `opencv-haar`.
    #[cfg(feature = "opencv-haar")]
    pub opencv_haar: super::HaarSettings,
    /// The engine `openseeface`.
    #[cfg(feature = "openseeface")]
    pub openseeface: super::OpenSeeFaceSettings,
    /// The engine `eos`.
    #[cfg(feature = "eos")]
    pub eos: super::EosSettings,
    /// The engine `insightface`.
    #[cfg(feature = "insightface")]
    pub insightface: super::InsightFaceSettings,
    /// Device of the networks, for engines that can use a GPU.
    #[default(Placement::Cpu)]
    pub placement: Placement,
    /// Faces of an engine that follows a script.
    pub script: Option<String>,
}

impl EngineConfig {
    /// [`Self::detect_max_width`] of an engine with this default; `None` for no limit.
    pub(crate) fn max_width(&self, default: usize) -> Option<usize> {
        let width = self.detect_max_width.unwrap_or(default);
        (width > 0).then_some(width)
    }

    /// Opens networks on the CPU.
    pub(crate) fn opener(&self) -> Opener<'_> {
        Opener::new(&self.paths, self.runtime)
    }
}
