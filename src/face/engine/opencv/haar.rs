// SPDX-License-Identifier: MPL-2.0
//! OpenCV's cascade classifier.

use crate::face::engine::{
    Engine, EngineConfig, EngineError, EngineInfo, EngineKind, Frame, Thresholds, Wanted,
};
use crate::face::observation::Observation;

/// How faces are looked for: the arguments of OpenCV's `detectMultiScale`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Ratio of two neighbouring sizes, above 1.
    pub scale_factor: f64,
    /// Detections that agree on a face for it to count; 0 = every detection is a face.
    pub min_neighbors: usize,
    /// Least width and height of a face, px.
    pub min_size: usize,
    /// Greatest width and height of a face, px; `None` for no limit.
    pub max_size: Option<usize>,
}

impl Default for Search {
    /// As the pipeline that this engine replaces.
    fn default() -> Self {
        Self {
            scale_factor: 1.1,
            min_neighbors: 5,
            min_size: 30,
            max_size: None,
        }
    }
}

/// The engine.
pub struct Haar {
    info: EngineInfo,
}

/// What the engine measures; no models are listed.
pub fn describe() -> EngineInfo {
    EngineInfo {
        name: EngineKind::OpenCvHaar.name(),
        landmarks: None,
        key_points: 0,
        blendshapes: Vec::new().into(),
        pose: false,
        temporal: false,
        models: Vec::new(),
    }
}

/// Loads the cascade that `config` names, or the published one.
///
/// # Errors
/// When the cascade is missing, damaged or of another kind.
pub fn load(_config: &EngineConfig) -> Result<Haar, EngineError> {
    Err(EngineError::Config("under construction".to_owned()))
}

impl Engine for Haar {
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
