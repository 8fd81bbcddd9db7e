// SPDX-License-Identifier: MPL-2.0
//! YuNet's faces, measured with MediaPipe's landmark and blendshape networks.
//!
//! `YunetMesh` finds faces and landmarks. Blendshapes and pose are derived from these. If
//! MediaPipe's network finds no face in a detection, the face has no landmarks, blendshapes and
//! pose.

use crate::engine::mediapipe::{self, METRES};
use crate::engine::{
    Engine, EngineConfig, EngineEntry, EngineError, EngineInfo, Frame, ModelRole, Setting,
    Thresholds,
};

use super::yunet::{self, Detector};
use super::yunet_mesh::YunetMesh;

/// The engine `opencv-yunet-pyfeat`.
pub static ENTRY: EngineEntry = EngineEntry {
    settings: &[
        Setting::Detection,
        Setting::Presence,
        Setting::Suppression,
        Setting::Landmarks,
        Setting::Networks,
        Setting::Models,
        Setting::ModelParts,
    ],
    thresholds: yunet::THRESHOLDS,
    detect_max_width: yunet::MAX_WIDTH,
    metres: Some(METRES),
    ..EngineEntry::new("opencv-yunet-pyfeat", |_| Ok(describe()), load)
};

/// Describes the engine before it is loaded, without models.
pub fn describe() -> EngineInfo {
    EngineInfo {
        key_points: yunet::KEY_POINTS,
        ..mediapipe::describe_mesh(ENTRY.name)
    }
}

/// Loads YuNet's file and MediaPipe's bundle, those that `config` names or the published ones.
///
/// # Errors
/// Returns an error if a runtime or a model is missing, damaged or not the expected one.
/// [`EngineError::Part`] says which model.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let opener = config.opener();
    let (detector, detector_file) =
        Detector::load(config.detector_model.as_deref(), config, &opener)
            .map_err(|error| error.of(ModelRole::Detector))?;
    let (landmarks, reader, mut files) =
        mediapipe::load_mesh(config.landmark_model.as_deref(), config, &opener)
            .map_err(|error| error.of(ModelRole::Landmarks))?;
    files.insert(0, detector_file);
    let info = EngineInfo {
        measures: reader.measures(),
        models: files,
        ..describe()
    };
    let mut faces = YunetMesh {
        detector,
        landmarks: vec![landmarks; config.threads.max(1)],
    };
    let finder =
        move |frame: &Frame<'_>, thresholds: &Thresholds| Ok(faces.find(&frame.image, thresholds)?);
    Ok(Engine::new(info, finder, reader).opened_by(opener))
}
