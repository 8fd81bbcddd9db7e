// SPDX-License-Identifier: MPL-2.0
//! The engine from Google's model bundle.

use super::{MediaPipe, Parts};
use crate::face::engine::{EngineConfig, EngineError};
use crate::face::locate;
use crate::face::model::onnx::{OnnxModel, OnnxRuntime, SessionOptions};
use crate::face::model::task::Bundle;
use crate::face::model::{Model, ModelError, tflite};

/// The published bundle.
const BUNDLE: &str = "face_landmarker.task";

/// Folder that a collection of models keeps it in.
const FAMILY: &str = "mediapipe";

/// Loads the bundle that `config` names, or the one found by [`locate::model`].
///
/// # Errors
/// When the bundle or ONNX Runtime is missing, or the bundle is damaged or another one.
pub fn load(config: &EngineConfig) -> Result<MediaPipe, EngineError> {
    let path = locate::model(
        BUNDLE,
        FAMILY,
        config.model.as_deref(),
        config.models_dir.as_deref(),
    )?;
    let bundle = Bundle::open(&path)?;
    let runtime = OnnxRuntime::load(&locate::runtime(config.onnxruntime.as_deref()))?;
    let options = SessionOptions {
        threads: config.threads,
    };
    let network = |name: &str, bytes: &[u8]| -> Result<Box<dyn Model>, ModelError> {
        let part = Bundle::part_path(&path, name);
        let onnx = tflite::load(&part, bytes)?;
        let model = OnnxModel::from_bytes(&runtime, &part, &onnx, options)?;
        Ok(Box::new(model))
    };
    let parts = Parts {
        face_detector: network("face_detector.tflite", &bundle.face_detector)?,
        face_landmarks_detector: network(
            "face_landmarks_detector.tflite",
            &bundle.face_landmarks_detector,
        )?,
        face_blendshapes: network("face_blendshapes.tflite", &bundle.face_blendshapes)?,
        geometry_metadata: bundle.geometry_metadata,
        path: path.clone(),
        files: bundle.files,
    };
    MediaPipe::new(parts, config)
}
