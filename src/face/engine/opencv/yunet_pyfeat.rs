// SPDX-License-Identifier: MPL-2.0
//! YuNet's faces, measured with MediaPipe's landmark and blendshape networks.

use crate::face::blendshape::MEDIAPIPE_CHANNELS;
use crate::face::engine::{
    Engine, EngineConfig, EngineError, EngineInfo, EngineKind, Frame, Thresholds, Wanted,
};
use crate::face::observation::{LandmarkScheme, Observation};

use super::yunet;

/// The engine.
pub struct YunetPyfeat {
    info: EngineInfo,
}

/// What the engine measures; no models are listed.
pub fn describe() -> EngineInfo {
    EngineInfo {
        name: EngineKind::OpenCvYunetPyfeat.name(),
        landmarks: Some(LandmarkScheme::MediaPipe478),
        key_points: yunet::KEY_POINTS,
        blendshapes: MEDIAPIPE_CHANNELS.map(str::to_owned).into(),
        pose: true,
        temporal: false,
        models: Vec::new(),
    }
}

/// Loads the networks that `config` names, or the published ones.
///
/// # Errors
/// When the runtime or a model is missing, damaged or another one.
#[cfg(feature = "onnx")]
pub fn load(_config: &EngineConfig) -> Result<YunetPyfeat, EngineError> {
    Err(EngineError::Config("under construction".to_owned()))
}

impl Engine for YunetPyfeat {
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
