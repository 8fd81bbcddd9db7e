// SPDX-License-Identifier: MPL-2.0
//! YuNet's engine: models that can't be used, and drawn faces against OpenCV's own answers.

use crate::common::drawn;
use crate::common::engine as installed;
use crate::common::yunet;

use std::path::Path;
use std::time::Duration;

use drawn::{Face, draw};
use facetrack::engine::{Engine, EngineConfig, EngineError, EngineKind, Frame, Thresholds};
use facetrack::image::ImageView;
use facetrack::model::ModelError;
use facetrack::observation::Observation;
use facetrack_assets::locate::SearchPaths;
use facetrack_graph::Graph;
use installed::{engine, installed_paths, load};
use serde::Deserialize;
use yunet::Found;

const KIND: EngineKind = EngineKind::OpenCvYunet;

fn find(engine: &mut Engine, size: (usize, usize), rgb: &[u8]) -> Vec<Observation> {
    find_with(engine, size, rgb, &KIND.thresholds())
}

fn find_with(
    engine: &mut Engine,
    size: (usize, usize),
    rgb: &[u8],
    thresholds: &Thresholds,
) -> Vec<Observation> {
    let image = ImageView::rgb(size.0, size.1, rgb).unwrap();
    let time = Duration::ZERO;
    let frame = Frame { image, time };
    engine.finder.find(&frame, thresholds).unwrap().faces
}

fn with_detection(detection: f32) -> Thresholds {
    Thresholds {
        detection,
        ..KIND.thresholds()
    }
}

/// Error of loading `bytes` from a file that has another name than the published one.
fn error_of(bytes: &[u8]) -> EngineError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.onnx");
    std::fs::write(&path, bytes).unwrap();
    let error = load(KIND, &of_model(&path)).err();
    let error = error.expect("this model can't be loaded");
    assert!(error.to_string().contains("other.onnx"), "{error}");
    error
}

fn of_model(path: &Path) -> EngineConfig {
    EngineConfig {
        model: Some(path.to_owned()),
        ..EngineConfig::default()
    }
}

fn published() -> Option<Vec<u8>> {
    let file = "face_detection_yunet_2023mar.onnx";
    match installed_paths().model(file, "yunet", None) {
        Ok(path) => Some(std::fs::read(path).unwrap()),
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            None
        }
    }
}

#[test]
fn models_that_can_not_be_used_are_errors_at_load() {
    let missing = load(KIND, &of_model(Path::new("/nowhere/nothing.onnx"))).err();
    let missing = missing.expect("there is no such file");
    assert!(
        matches!(missing, EngineError::Model(ModelError::Missing { .. })),
        "{missing}"
    );
    for text in ["", "no network"] {
        let error = error_of(text.as_bytes());
        assert!(
            matches!(error, EngineError::Model(ModelError::Format { .. })),
            "{error}"
        );
    }
    let Some(bytes) = published() else {
        return;
    };
    let cut = error_of(&bytes[..bytes.len() / 2]);
    assert!(
        matches!(cut, EngineError::Model(ModelError::Format { .. })),
        "{cut}"
    );
    // Without the name of an output, which occurs once where it is yielded and once where it is
    // declared.
    let renamed = error_of(&replaced(&bytes, b"kps_16", b"kpt_16"));
    assert!(
        matches!(renamed, EngineError::Model(ModelError::Tensors { .. })),
        "{renamed}"
    );
    assert!(renamed.to_string().contains("kps_16"), "{renamed}");
}

#[test]
fn a_file_without_a_size_is_found_by_the_name_that_opencv_5_uses() {
    let Some(bytes) = published() else {
        return;
    };
    let mut graph = Graph::read(bytes).unwrap();
    for axis in [2, 3] {
        graph.set_input_extent(axis, None);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("face_detection_yunet_2026may.onnx");
    std::fs::write(path, graph.encode()).unwrap();
    let paths = SearchPaths {
        models_dir: Some(folder.path().to_owned()),
        ..SearchPaths::default()
    };
    let config = EngineConfig {
        paths,
        ..EngineConfig::default()
    };
    let mut without_size = facetrack::engine::load(KIND, &config).unwrap();
    assert_eq!(
        without_size.info.models[0].name,
        "face_detection_yunet_2026may.onnx"
    );
    let Some(mut usual) = engine(KIND, &EngineConfig::default()) else {
        return;
    };
    let scene = &scenes()[0];
    let faces = find(&mut usual, (scene.width, scene.height), &scene.pixels());
    assert!(!faces.is_empty());
    assert_eq!(
        find(
            &mut without_size,
            (scene.width, scene.height),
            &scene.pixels()
        ),
        faces
    );
}

fn replaced(bytes: &[u8], from: &[u8; 6], to: &[u8; 6]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> = (0..bytes.len() - from.len())
        .filter(|at| bytes[*at..].starts_with(from))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

/// A scene of `golden/yunet.json`.
#[derive(Deserialize)]
struct Scene {
    name: String,
    width: usize,
    height: usize,
    max_width: usize,
    threshold: f32,
    nms: f32,
    faces: Vec<Face>,
    pixel_sum: u64,
    found: Vec<Found>,
}

impl Scene {
    fn pixels(&self) -> Vec<u8> {
        let pixels = draw(self.width, self.height, &self.faces);
        let sum: u64 = pixels.iter().copied().map(u64::from).sum();
        assert_eq!(sum, self.pixel_sum, "the drawing is the generator's");
        pixels
    }

    fn config(&self) -> EngineConfig {
        EngineConfig {
            detect_max_width: Some(self.max_width),
            nms_threshold: Some(self.nms),
            ..EngineConfig::default()
        }
    }

    /// Largest distance of a corner or key point in px of what the network saw, and largest
    /// difference of a score. Three and more times what was measured: one network in two runtimes,
    /// and a resampler with other roundings.
    fn limits(&self) -> (f32, f32) {
        match self.max_width {
            width if (1..self.width).contains(&width) => (0.1, 0.001),
            _ => (0.001, 0.0001),
        }
    }
}

fn scenes() -> Vec<Scene> {
    serde_json::from_str(include_str!("../../../../tests/golden/yunet.json")).unwrap()
}

#[test]
fn drawn_faces_are_found_as_opencv_does() {
    for scene in scenes() {
        let Some(mut engine) = engine(KIND, &scene.config()) else {
            return;
        };
        let size = (scene.width, scene.height);
        let thresholds = with_detection(scene.threshold);
        let faces = find_with(&mut engine, size, &scene.pixels(), &thresholds);
        assert_eq!(faces.len(), scene.found.len(), "{}", scene.name);
        let scale = match scene.max_width {
            0 => 1.0,
            width => (scene.width as f32 / width as f32).max(1.0),
        };
        let (mut distance, mut score) = (0.0f32, 0.0f32);
        for (face, found) in faces.iter().zip(&scene.found) {
            distance = distance.max(found.largest_distance(face) / scale);
            score = score.max(found.score_error(face));
        }
        let name = &scene.name;
        eprintln!(
            "{name}: {} faces, {distance} px, score {score}",
            faces.len()
        );
        let limits = scene.limits();
        assert!(distance <= limits.0 && score <= limits.1, "{name}");
    }
}

#[test]
fn key_points_are_those_of_a_face_in_a_mirror() {
    let Some(mut engine) = engine(KIND, &EngineConfig::default()) else {
        return;
    };
    let scene = &scenes()[0];
    let faces = find(&mut engine, (scene.width, scene.height), &scene.pixels());
    let [left_eye, right_eye, nose, left_corner, right_corner] = faces[0].key_points[..] else {
        panic!("{:?}", faces[0]);
    };
    assert!(left_eye.x < nose.x && nose.x < right_eye.x);
    assert!(left_corner.x < nose.x && nose.x < right_corner.x);
    assert!(left_eye.y < nose.y && nose.y < left_corner.y);
}

#[test]
fn thresholds_and_the_number_of_faces_are_kept_to() {
    let crowd = &scenes()[2];
    let size = (crowd.width, crowd.height);
    let pixels = crowd.pixels();
    let Some(mut all) = engine(KIND, &crowd.config()) else {
        return;
    };
    let faces = find(&mut all, size, &pixels);
    assert_eq!(faces.len(), crowd.found.len(), "the default is to find all");
    let score = |face: &Observation| face.confidence.unwrap();
    assert!(faces.is_sorted_by(|a, b| score(a) >= score(b)));

    let thresholds = with_detection(score(&faces[9]));
    let best = find_with(&mut all, size, &pixels, &thresholds);
    assert_eq!(best, faces[..10]);

    let few = EngineConfig {
        max_faces: Some(3),
        ..crowd.config()
    };
    let mut few = engine(KIND, &few).expect("it was there before");
    assert_eq!(find(&mut few, size, &pixels), faces[..3]);
}

#[test]
fn frames_of_changing_size_are_taken() {
    let Some(mut engine) = engine(KIND, &EngineConfig::default()) else {
        return;
    };
    let scenes = scenes();
    for index in [0, 1, 5, 1, 0] {
        let scene = &scenes[index];
        let faces = find(&mut engine, (scene.width, scene.height), &scene.pixels());
        assert_eq!(faces.len(), scene.found.len(), "{}", scene.name);
    }
}
