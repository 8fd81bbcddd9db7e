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

/// Loads the bundle that `config` names, or the one found by
/// [`SearchPaths::model`](crate::locate::SearchPaths::model).
///
/// # Errors
/// When the bundle or ONNX Runtime is missing, or the bundle is damaged or another one.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let source = Source::open(config.model.as_deref(), config)?;
    let parts = Parts {
        // The larger networks come first, because the runtime reuses the memory that it allocates
        // to load them.
        mesh: source.mesh()?,
        face_detector: source.network(
            "face_detector.tflite",
            &source.bundle.face_detector,
            // Several threads would be slower: the operators are small.
            SessionOptions {
                memory: Memory::Pieces,
                ..SessionOptions::default()
            },
        )?,
        files: source.bundle.files,
    };
    assemble(parts, config)
}

/// Opens the parts of the bundle `model`, or of the bundle found by
/// [`SearchPaths::model`](crate::locate::SearchPaths::model), that measure faces. The detector is
/// not opened. Also returns the files that were read.
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

/// Opens only the landmark network of the bundle `model`, or of the bundle found by
/// [`SearchPaths::model`](crate::locate::SearchPaths::model). Also returns the files that were
/// read.
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

/// A bundle, and the settings that its networks are opened with.
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
        options: SessionOptions,
    ) -> Result<Box<dyn Model>, ModelError> {
        let part = Bundle::part_path(&self.path, name);
        let onnx = tflite::load(&part, bytes)?;
        let model = OnnxModel::from_bytes(&self.runtime, &part, &onnx, options)?;
        Ok(Box::new(model))
    }

    fn landmarks(&self) -> Result<Box<dyn Model>, ModelError> {
        let bytes = &self.bundle.face_landmarks_detector;
        self.network("face_landmarks_detector.tflite", bytes, self.of_a_face())
    }

    /// Settings of a network that measures a face on each thread.
    fn of_a_face(&self) -> SessionOptions {
        SessionOptions {
            runs: self.threads,
            ..SessionOptions::default()
        }
    }

    fn mesh(&self) -> Result<MeshParts, ModelError> {
        let bundle = &self.bundle;
        Ok(MeshParts {
            face_landmarks_detector: self.landmarks()?,
            face_blendshapes: self.network(
                "face_blendshapes.tflite",
                &bundle.face_blendshapes,
                self.of_a_face(),
            )?,
            geometry_metadata: bundle.geometry_metadata.clone(),
            path: self.path.clone(),
        })
    }
}
