// SPDX-License-Identifier: MPL-2.0
//! Networks from Google's model bundle.

use std::path::{Path, PathBuf};

use super::{LandmarkDetector, MeshParts, Parts, assemble};
use crate::engine::{Engine, EngineConfig, EngineError};
use crate::model::runtime::{Memory, OnnxModel, OnnxRuntime, SessionOptions};
use crate::model::task::Bundle;
use crate::model::{Model, ModelError, ModelFile, tflite};

/// The published bundle.
const BUNDLE: &str = "face_landmarker.task";

/// Folder that a collection of models keeps it in.
const FAMILY: &str = "mediapipe";

/// Loads the bundle that `config` names, or the one found by [`SearchPaths::model`](crate::locate::SearchPaths::model).
///
/// # Errors
/// When the bundle or ONNX Runtime is missing, or the bundle is damaged or another one.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let source = Source::open(config.model.as_deref(), config)?;
    let parts = Parts {
        // The larger networks come first: what the runtime lays aside while it loads one is there for the others.
        mesh: source.mesh()?,
        face_detector: source.network(
            "face_detector.tflite",
            &source.bundle.face_detector,
            Memory::Pieces,
        )?,
        files: source.bundle.files,
    };
    assemble(parts, config)
}

/// The parts of the bundle `model`, or of the one found by [`SearchPaths::model`](crate::locate::SearchPaths::model), that measure faces; and the files read.
/// The detector's network is not opened.
///
/// # Errors
/// When the bundle or ONNX Runtime is missing, or the bundle is damaged or another one.
pub fn load_mesh(
    model: Option<&Path>,
    config: &EngineConfig,
) -> Result<(MeshParts, Vec<ModelFile>), ModelError> {
    let source = Source::open(model, config)?;
    Ok((source.mesh()?, source.bundle.files))
}

/// The landmark network alone of the bundle `model`, or of the one found by [`SearchPaths::model`](crate::locate::SearchPaths::model); and the files read.
///
/// # Errors
/// As [`load_mesh`].
pub fn load_landmarks(
    model: Option<&Path>,
    config: &EngineConfig,
) -> Result<(LandmarkDetector, Vec<ModelFile>), ModelError> {
    let source = Source::open(model, config)?;
    let detector = LandmarkDetector::new(source.landmarks()?, &source.path)?;
    Ok((detector, source.bundle.files))
}

/// A bundle, and what its networks are opened with.
struct Source {
    path: PathBuf,
    bundle: Bundle,
    runtime: OnnxRuntime,
    threads: usize,
}

impl Source {
    fn open(model: Option<&Path>, config: &EngineConfig) -> Result<Self, ModelError> {
        let path = config.paths.model(BUNDLE, FAMILY, model)?;
        Ok(Self {
            bundle: Bundle::open(&path)?,
            path,
            runtime: OnnxRuntime::load(&config.paths.runtime_candidates())?,
            threads: config.threads,
        })
    }

    fn network(
        &self,
        name: &str,
        bytes: &[u8],
        memory: Memory,
    ) -> Result<Box<dyn Model>, ModelError> {
        let part = Bundle::part_path(&self.path, name);
        let onnx = tflite::load(&part, bytes)?;
        let options = SessionOptions {
            threads: self.threads,
            memory,
            ..SessionOptions::default()
        };
        let model = OnnxModel::from_bytes(&self.runtime, &part, &onnx, options)?;
        Ok(Box::new(model))
    }

    fn landmarks(&self) -> Result<Box<dyn Model>, ModelError> {
        self.network(
            "face_landmarks_detector.tflite",
            &self.bundle.face_landmarks_detector,
            Memory::Planned,
        )
    }

    fn mesh(&self) -> Result<MeshParts, ModelError> {
        let bundle = &self.bundle;
        Ok(MeshParts {
            face_landmarks_detector: self.landmarks()?,
            face_blendshapes: self.network(
                "face_blendshapes.tflite",
                &bundle.face_blendshapes,
                Memory::Planned,
            )?,
            geometry_metadata: bundle.geometry_metadata.clone(),
            path: self.path.clone(),
        })
    }
}
