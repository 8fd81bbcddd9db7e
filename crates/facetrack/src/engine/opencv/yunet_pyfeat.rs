// SPDX-License-Identifier: MPL-2.0
//! YuNet's faces, measured with MediaPipe's landmark and blendshape networks.
//!
//! `YunetMesh` finds faces and landmarks. Blendshapes and pose are derived from these. If
//! MediaPipe's network finds no face in a detection, the face has no landmarks, blendshapes and
//! pose.

use crate::blendshape::{MEDIAPIPE_CHANNELS, MEDIAPIPE_NEAR_ZERO};
use crate::engine::independent::Independent;
use crate::engine::mediapipe::{FaceMesh, METRES, MeshParts};
use crate::engine::{
    Engine, EngineConfig, EngineEntry, EngineError, EngineInfo, EngineKind, ModelRole, Setting,
    mediapipe,
};
use crate::model::ModelFile;
use crate::observation::LandmarkScheme;

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
        landmarks: Some(LandmarkScheme::MediaPipe478),
        key_points: yunet::KEY_POINTS,
        blendshapes: MEDIAPIPE_CHANNELS.map(str::to_owned).into(),
        near_zero_blendshapes: &MEDIAPIPE_NEAR_ZERO,
        pose: true,
        ..EngineInfo::of_boxes(EngineKind::OpenCvYunetPyfeat)
    }
}

/// Loads YuNet's file and MediaPipe's bundle, those that `config` names or the published ones.
///
/// # Errors
/// When the runtime or a model is missing, damaged or another one. [`EngineError::Part`] says which
/// model.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let (detector, detector_file) = Detector::load(config.detector_model.as_deref(), config)
        .map_err(|error| error.of(ModelRole::Detector))?;
    let (mesh, mut files) = mediapipe::load_mesh(config.landmark_model.as_deref(), config)
        .map_err(|error| error.of(ModelRole::Landmarks))?;
    files.insert(0, detector_file);
    assemble(detector, mesh, files, config.threads)
}

/// The engine made of a detector and of the parts that measure its faces; `files` are where they
/// came from, for the record. Each network of `mesh` is run once.
///
/// # Errors
/// [`EngineError::Model`] if a part is invalid or does not run.
pub fn assemble(
    detector: Detector,
    mesh: MeshParts,
    files: Vec<ModelFile>,
    threads: usize,
) -> Result<Engine, EngineError> {
    let FaceMesh { landmarks, reader } =
        FaceMesh::new(mesh, threads).map_err(|error| error.of(ModelRole::Landmarks))?;
    let info = reader.described(EngineInfo {
        models: files,
        ..describe()
    });
    let mut faces = YunetMesh {
        detector,
        landmarks,
    };
    let finder = Independent::new(info, yunet::THRESHOLDS, move |frame, thresholds| {
        Ok(faces.find(&frame.image, thresholds)?)
    });
    Ok(Engine::new(finder, reader))
}
