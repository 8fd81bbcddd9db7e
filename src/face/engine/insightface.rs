// SPDX-License-Identifier: MPL-2.0
//! InsightFace: the models of a pack such as `buffalo_l`, as `insightface.app.FaceAnalysis` of insightface 2.1 runs them
//! (deepinsight/insightface, commit 7fadd420).
//!
//! A pack is a folder of ONNX files, each recognised by its tensors: SCRFD finds faces and five key points; the other
//! networks look at each face: 106 landmarks, 68 landmarks in space with the head's pose, age and gender, an embedding. The
//! networks behind the detector see all faces of a frame in one run each.

pub mod resilient;

use crate::face::blendshape::BlendshapeSource;
#[cfg(feature = "onnx")]
use crate::face::engine::EngineError;
use crate::face::engine::{EngineConfig, EngineInfo, EngineKind, Thresholds};
use crate::face::options::choices;

/// Least scores: `det_thresh` of `FaceAnalysis.prepare`.
pub const THRESHOLDS: Thresholds = Thresholds {
    detection: 0.5,
    presence: 0.5,
    tracking: 0.5,
};

/// Greatest IoU of two detected faces: `nms_thresh` of `SCRFD`.
pub const NMS_THRESHOLD: f32 = 0.4;

/// Side of the detector's input, px.
pub const DET_SIZE: usize = 640;

/// Widest frame that the detector is given unless told otherwise, px.
pub const MAX_WIDTH: usize = 1280;

choices! {
    /// What a network of a pack does: InsightFace's names of its tasks.
    pub enum Module {
        Detection = "detection": "finds faces",
        Landmark2d106 = "landmark_2d_106": "106 landmarks",
        Landmark3d68 = "landmark_3d_68": "68 landmarks in space, and the head's pose",
        GenderAge = "genderage": "age and gender",
        Recognition = "recognition": "the embedding",
    }
}

/// What this engine alone can be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Modules that run, where the pack has them; `None` for all. The detector always runs.
    pub allowed_modules: Option<Vec<Module>>,
    /// Side of the detector's input, px: a multiple of 32.
    pub det_size: usize,
    /// Whether to measure the embedding, which identifies people.
    pub embedding: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            allowed_modules: None,
            det_size: DET_SIZE,
            embedding: false,
        }
    }
}

/// What the engine measures with a full pack; the loaded engine says what its own has.
pub fn describe(config: &EngineConfig) -> EngineInfo {
    let _ = &config.insightface;
    EngineInfo {
        key_points: 5,
        blendshape_source: BlendshapeSource::Derived,
        ..EngineInfo::of_boxes(EngineKind::InsightFace)
    }
}

/// Loads the pack that `config` names, or the one that is there.
///
/// # Errors
/// When the runtime or the pack is missing, or a file of it damaged; the message names it.
#[cfg(feature = "onnx")]
pub fn load(_config: &EngineConfig) -> Result<super::scripted::Scripted, EngineError> {
    Err(EngineError::Config("not loaded yet".to_owned()))
}
