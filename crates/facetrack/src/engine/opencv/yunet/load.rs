// SPDX-License-Identifier: MPL-2.0
//! Loads the detector and the engine from the published file.

use std::path::Path;

use super::{Detector, describe, rewrite};
use crate::engine::{Engine, EngineConfig, EngineError, EngineInfo, Found, Frame, Thresholds};
use crate::model::{Memory, SessionOptions};
use crate::model::{ModelError, ModelFile, Opener, file};
use crate::observation::Observation;
use crate::profile;

/// The published files of the network, in the order of the search. The second one, which came with
/// OpenCV 5, has the same weights and declares no size.
const FILES: [&str; 2] = [
    "face_detection_yunet_2023mar.onnx",
    "face_detection_yunet_2026may.onnx",
];

/// Folder that a collection of models keeps it in.
const FAMILY: &str = "yunet";

/// Loads the network that `config` names, or the one found by
/// [`SearchPaths::model`](facetrack_assets::locate::SearchPaths::model).
///
/// # Errors
/// Returns an error if a runtime or the model is missing, damaged or another one.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let opener = config.opener();
    let (mut detector, file) = Detector::load(config.model.as_deref(), config, &opener)?;
    let info = EngineInfo {
        models: vec![file],
        ..describe()
    };
    let finder = move |frame: &Frame<'_>, thresholds: &Thresholds| {
        let Found { faces, search } =
            profile::time_detection(|| detector.detect(&frame.image, thresholds.detection))?;
        let faces = faces.into_iter().map(Observation::from).collect();
        Ok(Found { faces, search })
    };
    Ok(Engine::new(info, finder, ()).opened_by(opener))
}

impl Detector {
    /// The detector of the file `model`, or of the published one that is found by
    /// [`SearchPaths::model`](facetrack_assets::locate::SearchPaths::model).
    ///
    /// # Errors
    /// Returns an error if a runtime or the model is missing, damaged or another one.
    pub fn load(
        model: Option<&Path>,
        config: &EngineConfig,
        opener: &Opener<'_>,
    ) -> Result<(Self, ModelFile), ModelError> {
        let path = match (config.paths.model(FILES[0], FAMILY, model), model) {
            // The error names the file that can be fetched.
            (Err(missing), None) => {
                let other = config.paths.best_model(&FILES[1..], FAMILY);
                other.map_err(|_| missing)?
            }
            (path, _) => path?,
        };
        let (bytes, file) = file::read(&path, "ONNX")?;
        let options = SessionOptions {
            threads: config.threads,
            memory: Memory::Pieces,
            ..SessionOptions::default()
        };
        let read = || rewrite(&path, bytes.clone());
        let model = opener.open(&path, &bytes, read, options)?;
        Ok((Self::new(model, &path, config)?, file))
    }
}
