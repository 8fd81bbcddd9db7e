// SPDX-License-Identifier: MPL-2.0
//! Networks from Google's model bundle.

use std::path::{Path, PathBuf};

use facetrack_graph::tflite;

use super::blendshapes::BlendshapeNetwork;
use super::detector::Detector;
use super::geometry::FaceGeometry;
use super::mesh::MeshReader;
use super::{LandmarkDetector, assemble};
use crate::engine::{Engine, EngineConfig, EngineError};
use crate::model::runtime::{Memory, OnnxModel, OnnxRuntime, SessionOptions};
use crate::model::task::Bundle;
use crate::model::{Model, ModelError, ModelFile, format_error};

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
    // The larger networks come first, because the runtime reuses the memory that it allocates to
    // load them. Each runs once before the next one is opened.
    let (landmarks, reader) = (source.landmarks()?, source.reader()?);
    // Several threads would be slower: the operators are small.
    let options = SessionOptions {
        memory: Memory::Pieces,
        ..SessionOptions::default()
    };
    let bytes = &source.bundle.face_detector;
    let detector = source.network("face_detector.tflite", bytes, options)?;
    let detector = Detector::new(detector, &source.path)?;
    let files = source.bundle.files;
    Ok(assemble(detector, landmarks, reader, files, config))
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
) -> Result<(LandmarkDetector, MeshReader, Vec<ModelFile>), ModelError> {
    let source = Source::open(model, config)?;
    Ok((source.landmarks()?, source.reader()?, source.bundle.files))
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
    Ok((source.landmarks()?, source.bundle.files))
}

/// A bundle, and the settings that its networks are opened with.
struct Source {
    path: PathBuf,
    bundle: Bundle,
    runtime: OnnxRuntime,
    /// Settings of a network that measures a face on each thread.
    of_a_face: SessionOptions,
}

impl Source {
    fn open(model: Option<&Path>, config: &EngineConfig) -> Result<Self, ModelError> {
        let path = config.paths.model(BUNDLE, FAMILY, model)?;
        Ok(Self {
            bundle: Bundle::open(&path)?,
            path,
            runtime: OnnxRuntime::load(&config.paths)?,
            of_a_face: SessionOptions {
                runs: config.threads,
                ..SessionOptions::default()
            },
        })
    }

    fn network(
        &self,
        name: &str,
        bytes: &[u8],
        options: SessionOptions,
    ) -> Result<Box<dyn Model>, ModelError> {
        let part = Bundle::part_path(&self.path, name);
        let graph = tflite::read(bytes).map_err(|reason| format_error(&part, "TFLite", reason))?;
        let model = OnnxModel::from_bytes(&self.runtime, &part, &graph.encode(), options)?;
        Ok(Box::new(model))
    }

    fn landmarks(&self) -> Result<LandmarkDetector, ModelError> {
        let bytes = &self.bundle.face_landmarks_detector;
        let network = self.network("face_landmarks_detector.tflite", bytes, self.of_a_face)?;
        LandmarkDetector::new(network, &self.path)
    }

    fn reader(&self) -> Result<MeshReader, ModelError> {
        let bytes = &self.bundle.face_blendshapes;
        let network = self.network("face_blendshapes.tflite", bytes, self.of_a_face)?;
        let blendshapes = BlendshapeNetwork::new(network, &self.path)?;
        let geometry = self.bundle.geometry_metadata.as_deref();
        let geometry = geometry.map(FaceGeometry::from_metadata).transpose();
        Ok(MeshReader {
            blendshapes: vec![blendshapes; self.of_a_face.runs.max(1)],
            geometry: geometry
                .map_err(|reason| format_error(&self.path, "face geometry", reason))?,
        })
    }
}
