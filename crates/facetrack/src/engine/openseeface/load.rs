// SPDX-License-Identifier: MPL-2.0
//! Loads the engine from the published files.

use std::path::{Path, PathBuf};

use facetrack_graph::Graph;

use super::networks::{Networks, Opened};
use super::{assemble, rewrite};
use crate::engine::{Engine, EngineConfig, EngineError, ModelRole};
use crate::model::{self, ModelError, ModelFile, file};
use crate::model::{Memory, SessionOptions};
use facetrack_assets::locate::{NotFound, SearchPaths};

/// Folder that a collection of models keeps them in.
const FAMILY: &str = "openseeface";

/// The published detector.
const DETECTOR: &str = "mnv3_detection_opt.onnx";

/// The published gaze network.
const GAZE: &str = "mnv3_gaze32_split_opt.onnx";

/// The published landmark networks by number, in search order. According to the help of
/// `facetracker.py`, whose default is network 3, the networks from 0 to 3 become better and slower,
/// network 4 is for winks, and those below 0 have smaller inputs and are fast. Names: `models` in
/// `tracker.py`.
const LANDMARKS: [(i32, &str); 8] = [
    (3, "lm_model3_opt.onnx"),
    (4, "lm_model4_opt.onnx"),
    (2, "lm_model2_opt.onnx"),
    (1, "lm_model1_opt.onnx"),
    (0, "lm_model0_opt.onnx"),
    (-2, "lm_modelV_opt.onnx"),
    (-3, "lm_modelU_opt.onnx"),
    (-1, "lm_modelT_opt.onnx"),
];

/// Loads the networks that `config` names, or those found by [`SearchPaths::model`].
///
/// # Errors
/// Returns an error if a runtime or a model is missing, damaged or not the expected one.
/// [`EngineError::Part`] says which model.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let mut opener = Opener {
        opener: config.opener(),
        options: SessionOptions {
            // Each thread measures a face.
            runs: config.threads,
            ..SessionOptions::default()
        },
    };
    let find = |name, explicit| config.paths.model(name, FAMILY, explicit);
    // The largest comes first, because ONNX Runtime reuses the memory that it allocates to load it.
    let open_gaze = || {
        let path = find(GAZE, config.gaze_model.as_deref());
        opener.open(ModelRole::Gaze, path, whole(rewrite::gaze))
    };
    let gaze = config.openseeface.gaze.then(open_gaze).transpose()?;
    let path = find_landmarks(config.landmark_model.as_deref(), &config.paths)?;
    let (landmarks, landmarks_file, peaks) =
        opener.open(ModelRole::Landmarks, Ok(path), rewrite::landmarks)?;
    // The detector runs only while a face is missing. Several threads would be slower: its
    // operators are small.
    opener.options = SessionOptions {
        memory: Memory::Pieces,
        ..SessionOptions::default()
    };
    let path = find(DETECTOR, config.detector_model.as_deref());
    let (detector, detector_file, ()) =
        opener.open(ModelRole::Detector, path, whole(rewrite::detector))?;
    let (gaze, gaze_file) = gaze.map(|(gaze, file, ())| (gaze, file)).unzip();
    let files = [Some(detector_file), Some(landmarks_file), gaze_file];
    let networks = Networks::new(detector, (landmarks, peaks), gaze)?;
    let files = files.into_iter().flatten().collect();
    Ok(assemble(networks, files, config).opened_by(opener.opener))
}

/// The landmark network that the property names by path or number, or the best one available.
fn find_landmarks(property: Option<&Path>, paths: &SearchPaths) -> Result<PathBuf, EngineError> {
    let names = LANDMARKS.map(|(_, name)| name);
    let found = match (property, property.and_then(published)) {
        (_, Some(name)) => paths.model(name?, FAMILY, None),
        (None, None) => paths.best_model(&names, FAMILY),
        (path, None) => paths.model(names[0], FAMILY, path),
    };
    found.map_err(|error| ModelError::from(error).of(ModelRole::Landmarks))
}

/// The file of the landmark network whose number the property is; `None` for a path.
fn published(property: &Path) -> Option<Result<&'static str, EngineError>> {
    let number: i32 = property.to_str()?.parse().ok()?;
    let known = LANDMARKS.into_iter().find(|(known, _)| *known == number);
    Some(known.map(|(_, name)| name).ok_or_else(|| {
        let reason = format!("{number} is neither a number from -3 to 4 nor the path of a file");
        EngineError::config("landmark_model", reason)
    }))
}

/// A rewriter that yields only a graph.
fn whole(
    rewrite: fn(&Path, Vec<u8>) -> Result<Graph, ModelError>,
) -> impl Fn(&Path, Vec<u8>) -> Result<(Graph, ()), ModelError> {
    move |path, bytes| Ok((rewrite(path, bytes)?, ()))
}

/// Opens networks.
struct Opener<'a> {
    opener: model::Opener<'a>,
    options: SessionOptions,
}

impl Opener<'_> {
    /// Opens the network that `rewrite` makes of a file, and returns what it makes besides.
    fn open<T>(
        &self,
        role: ModelRole,
        path: Result<PathBuf, NotFound>,
        rewrite: impl Fn(&Path, Vec<u8>) -> Result<(Graph, T), ModelError>,
    ) -> Result<(Opened, ModelFile, T), EngineError> {
        let open = |path: PathBuf| {
            let (bytes, file) = file::read(&path, "ONNX")?;
            let (graph, rest) = rewrite(&path, bytes)?;
            // The key is not only the file: a file becomes another network in another role.
            let content = graph.clone().encode();
            let read = || Ok(graph.clone());
            let model = self.opener.open(&path, &content, read, self.options)?;
            Ok((Opened { model, path }, file, rest))
        };
        path.map_err(ModelError::from)
            .and_then(open)
            .map_err(|error| error.of(role))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_for_published_files() {
        let number = |text: &str| {
            let name = published(Path::new(text))?;
            Some(name.map_err(|error| error.to_string()))
        };
        let cases = [
            ("0", "lm_model0_opt.onnx"),
            ("4", "lm_model4_opt.onnx"),
            ("-1", "lm_modelT_opt.onnx"),
            ("-2", "lm_modelV_opt.onnx"),
            ("-3", "lm_modelU_opt.onnx"),
        ];
        for (text, file) in cases {
            assert_eq!(number(text), Some(Ok(file)), "{text}");
        }
        for text in ["5", "-4"] {
            let error = number(text).unwrap().unwrap_err();
            assert!(error.starts_with("landmark_model: "), "{error}");
        }
        for text in ["models/lm_model0_opt.onnx", "./3", "3.5", ""] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn the_best_landmark_model_that_is_there_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let paths = SearchPaths {
            models_dir: Some(root.path().to_owned()),
            ..SearchPaths::default()
        };
        let find =
            |property: Option<&str>| find_landmarks(property.map(Path::new), &paths).unwrap();
        for (_, name) in LANDMARKS {
            std::fs::write(root.path().join(name), b"x").unwrap();
        }
        assert_eq!(find(None), root.path().join("lm_model3_opt.onnx"));
        assert_eq!(find(Some("-1")), root.path().join("lm_modelT_opt.onnx"));
        let other = root.path().join("other.onnx");
        std::fs::write(&other, b"x").unwrap();
        assert_eq!(find(other.to_str()), other);
    }

    #[test]
    fn a_missing_file_is_an_error_of_the_landmark_model() {
        let nowhere = Path::new("/nowhere/lm.onnx");
        let error = find_landmarks(Some(nowhere), &SearchPaths::default()).unwrap_err();
        let role = ModelRole::Landmarks;
        assert!(
            matches!(error, EngineError::Part { role: own, .. } if own == role),
            "{error}"
        );
        assert!(error.to_string().contains("/nowhere/lm.onnx"), "{error}");
    }
}
