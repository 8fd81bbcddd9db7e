// SPDX-License-Identifier: MPL-2.0
//! The engine from the published files.

use super::{MAX_WIDTH, assemble};
use crate::engine::opencv::yunet::Detector;
use crate::engine::{Engine, EngineConfig, EngineError, ModelRole, mediapipe};
use crate::morphable;

/// Loads YuNet's file, MediaPipe's bundle and eos' files, those that `config` names or the
/// published ones.
///
/// # Errors
/// Returns an error if a runtime or a model is missing, damaged or not the expected one.
/// [`EngineError::Part`] says which model.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    // The smallest file comes first, so that a missing file is reported early.
    let (model, model_files) = morphable::load(config.model.as_deref(), &config.paths)?;
    let detecting = EngineConfig {
        detect_max_width: config.detect_max_width.or(Some(MAX_WIDTH)),
        ..config.clone()
    };
    let opener = config.opener();
    let (detector, detector_file) =
        Detector::load(config.detector_model.as_deref(), &detecting, &opener)
            .map_err(|error| error.of(ModelRole::Detector))?;
    let (landmarks, landmark_files) =
        mediapipe::load_landmarks(config.landmark_model.as_deref(), config, &opener)
            .map_err(|error| error.of(ModelRole::Landmarks))?;
    let mut files = vec![detector_file];
    files.extend(landmark_files);
    files.extend(model_files);
    Ok(assemble(detector, landmarks, model, files, config).opened_by(opener))
}
