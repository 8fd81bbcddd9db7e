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
use crate::model::task::Bundle;
use crate::model::{Memory, SessionOptions};
use crate::model::{Model, ModelError, ModelFile, Opener, format_error};

/// The published bundle.
const BUNDLE: &str = "face_landmarker.task";

/// Folder that a collection of models keeps it in.
const FAMILY: &str = "mediapipe";

/// Loads the bundle that `config` names, or the one found by
/// [`SearchPaths::model`](facetrack_assets::locate::SearchPaths::model).
///
/// # Errors
/// Returns an error if the bundle or a runtime that it needs is missing, or the bundle is damaged
/// or not the expected one.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let opener = config.opener();
    let source = Source::open(config.model.as_deref(), config, &opener)?;
    // The larger networks come first, because ONNX Runtime reuses the memory that it allocates to
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
    Ok(assemble(detector, landmarks, reader, files, config).opened_by(opener))
}

/// Opens the parts of the bundle `model`, or of the bundle found by
/// [`SearchPaths::model`](facetrack_assets::locate::SearchPaths::model), that measure faces. The detector is
/// not opened. Also returns the files that were read.
///
/// # Errors
/// Returns the errors of [`load`].
pub(crate) fn load_mesh(
    model: Option<&Path>,
    config: &EngineConfig,
    opener: &Opener<'_>,
) -> Result<(LandmarkDetector, MeshReader, Vec<ModelFile>), ModelError> {
    let source = Source::open(model, config, opener)?;
    Ok((source.landmarks()?, source.reader()?, source.bundle.files))
}

/// Opens only the landmark network of the bundle `model`, or of the bundle found by
/// [`SearchPaths::model`](facetrack_assets::locate::SearchPaths::model). Also returns the files that were
/// read.
///
/// # Errors
/// Returns the errors of [`load`].
pub(crate) fn load_landmarks(
    model: Option<&Path>,
    config: &EngineConfig,
    opener: &Opener<'_>,
) -> Result<(LandmarkDetector, Vec<ModelFile>), ModelError> {
    let source = Source::open(model, config, opener)?;
    Ok((source.landmarks()?, source.bundle.files))
}

/// A bundle, and the settings that its networks are opened with.
struct Source<'a> {
    path: PathBuf,
    bundle: Bundle,
    opener: &'a Opener<'a>,
    /// Settings of a network that measures a face on each thread.
    of_a_face: SessionOptions,
}

impl<'a> Source<'a> {
    fn open(
        model: Option<&Path>,
        config: &EngineConfig,
        opener: &'a Opener<'a>,
    ) -> Result<Self, ModelError> {
        let path = config.paths.model(BUNDLE, FAMILY, model)?;
        Ok(Self {
            bundle: Bundle::open(&path)?,
            path,
            opener,
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
        let read = || tflite::read(bytes).map_err(|reason| format_error(&part, "TFLite", reason));
        self.opener.open(&part, bytes, read, options)
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
