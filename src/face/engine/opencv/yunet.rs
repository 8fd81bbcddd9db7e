// SPDX-License-Identifier: MPL-2.0
//! OpenCV's YuNet.

use crate::face::engine::{
    Engine, EngineConfig, EngineError, EngineInfo, EngineKind, Frame, Thresholds, Wanted,
};
use crate::face::image::ImageView;
use crate::face::model::{ModelError, ModelFile};
use crate::face::nms::Detection;
use crate::face::observation::Observation;

/// Least scores, as the pipeline that this engine replaces had them.
pub const THRESHOLDS: Thresholds = Thresholds {
    detection: 0.7,
    presence: 0.5,
    tracking: 0.5,
};

/// Greatest IoU of two detected faces: the default of OpenCV's `FaceDetectorYN`.
pub const NMS_THRESHOLD: f32 = 0.3;

/// Widest frame that the network sees unless told otherwise, px.
pub const MAX_WIDTH: usize = 640;

/// Key points of a face: eyes (left in the image first), nose tip, corners of the mouth (left in the image first).
pub const KEY_POINTS: usize = 5;

/// Finds faces with YuNet.
pub struct Detector {}

impl Detector {
    /// The detector of the YuNet file that is found by [`crate::face::locate::model`] or that `model` names.
    ///
    /// # Errors
    /// When the runtime or the model is missing, damaged or another one.
    #[cfg(feature = "onnx")]
    pub fn load(
        _model: Option<&std::path::Path>,
        _config: &EngineConfig,
    ) -> Result<(Self, ModelFile), ModelError> {
        Ok((
            Self {},
            ModelFile {
                name: String::new(),
                sha256: String::new(),
            },
        ))
    }

    /// Faces whose score is not below `min_score`, best first, in image px.
    ///
    /// # Errors
    /// [`ModelError::Run`].
    pub fn detect(
        &mut self,
        _image: &ImageView<'_>,
        _min_score: f32,
    ) -> Result<Vec<Detection>, ModelError> {
        Ok(Vec::new())
    }
}

/// The engine.
pub struct Yunet {
    info: EngineInfo,
}

/// What the engine measures; no models are listed.
pub fn describe() -> EngineInfo {
    EngineInfo {
        name: EngineKind::OpenCvYunet.name(),
        landmarks: None,
        key_points: KEY_POINTS,
        blendshapes: Vec::new().into(),
        pose: false,
        temporal: false,
        models: Vec::new(),
    }
}

/// Loads the network that `config` names, or the published one.
///
/// # Errors
/// When the runtime or the model is missing, damaged or another one.
#[cfg(feature = "onnx")]
pub fn load(_config: &EngineConfig) -> Result<Yunet, EngineError> {
    Err(EngineError::Config("under construction".to_owned()))
}

impl Engine for Yunet {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn process(&mut self, _frame: &Frame<'_>) -> Result<Vec<Observation>, EngineError> {
        Ok(Vec::new())
    }

    fn complete(
        &mut self,
        _: &mut Observation,
        _: (usize, usize),
        _: Wanted,
    ) -> Result<(), EngineError> {
        Ok(())
    }

    fn reset(&mut self) {}

    fn set_thresholds(&mut self, _: Thresholds) {}
}
