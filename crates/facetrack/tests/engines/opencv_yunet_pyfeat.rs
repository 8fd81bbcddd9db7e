// SPDX-License-Identifier: MPL-2.0
//! YuNet with MediaPipe's networks: drawn faces against the originals' own answers, and models that
//! can't be used.

use crate::common::drawn;
use crate::common::engine as installed;

use std::path::Path;
use std::time::Duration;

use drawn::{Face, draw};
use facetrack::engine::{EngineConfig, EngineError, EngineKind, Frame, ModelRole, Thresholds};
use facetrack::geometry::{Point, Rect};
use facetrack::image::ImageView;
use facetrack::model::ModelError;
use facetrack::observation::{Fields, Observation};
use installed::{engine as installed_engine, load, look_at_rgb};
use serde::Deserialize;

const KIND: EngineKind = EngineKind::OpenCvYunetPyfeat;

fn face_at(x: f64, y: f64, size: f64) -> Face {
    Face {
        x,
        y,
        size,
        half_roll: 0.05,
        jaw: 0.3,
        blink: 0.0,
    }
}

/// A picture of `golden/yunet_pyfeat.json`.
#[derive(Deserialize)]
struct Picture {
    name: String,
    width: usize,
    height: usize,
    faces: Vec<Face>,
    found: usize,
    pixel_sum: u64,
}

/// The originals' measurements of a face.
struct Golden {
    bbox: Rect,
    score: f32,
    key_points: Vec<Point>,
    landmarks: Vec<Point>,
    blendshapes: Vec<f32>,
}

const GOLDEN_VALUES: usize = 4 + 1 + 5 * 2 + 478 * 2 + 52;

impl Golden {
    fn new(values: &[f32]) -> Self {
        let (bbox, rest) = values.split_at(4);
        let (key_points, rest) = rest[1..].split_at(5 * 2);
        let (landmarks, blendshapes) = rest.split_at(478 * 2);
        let points = |values: &[f32]| -> Vec<Point> {
            values
                .chunks_exact(2)
                .map(|p| Point::new(p[0], p[1]))
                .collect()
        };
        Self {
            bbox: Rect::new(bbox[0], bbox[1], bbox[2], bbox[3]),
            score: values[4],
            key_points: points(key_points),
            landmarks: points(landmarks),
            blendshapes: blendshapes.to_vec(),
        }
    }

    /// Largest errors: box, key points and landmarks per distance of the eyes; score; blendshapes.
    fn errors(&self, face: &Observation) -> [f32; 5] {
        let eyes = self.landmarks[33].distance(self.landmarks[263]);
        let corners = |r: &Rect| [Point::new(r.x, r.y), Point::new(r.right(), r.bottom())];
        let landmarks = &face.landmarks.as_ref().expect("landmarks").points;
        let landmarks: Vec<Point> = landmarks.iter().map(|p| Point::new(p.x, p.y)).collect();
        let blendshapes = face.blendshapes.as_ref().expect("blendshapes").values();
        assert_eq!(blendshapes.len(), self.blendshapes.len());
        let differences =
            std::iter::zip(blendshapes, &self.blendshapes).map(|(a, b)| (a - b).abs());
        [
            farthest(&corners(&face.bbox), &corners(&self.bbox)) / eyes,
            farthest(&face.key_points, &self.key_points) / eyes,
            farthest(&landmarks, &self.landmarks) / eyes,
            (face.confidence.expect("a score") - self.score).abs(),
            differences.fold(0.0, f32::max),
        ]
    }
}

fn farthest(ours: &[Point], theirs: &[Point]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    std::iter::zip(ours, theirs)
        .map(|(a, b)| a.distance(*b))
        .fold(0.0, f32::max)
}

/// Three and more times the largest errors measured. A region that lies 1 % of its side elsewhere,
/// is 1 % larger or turned by 1° moves landmarks by more.
const GOLDEN_LIMITS: [f32; 5] = [0.002, 0.002, 0.002, 0.001, 0.005];

#[test]
fn drawn_faces_are_measured_as_the_originals_do() {
    let Some(mut engine) = installed_engine(KIND, &EngineConfig::default()) else {
        return;
    };
    let pictures: Vec<Picture> =
        serde_json::from_str(include_str!("../../../../tests/golden/yunet_pyfeat.json")).unwrap();
    let record: Vec<f32> = include_bytes!("../../../../tests/golden/yunet_pyfeat.bin")
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let mut goldens = record.chunks_exact(GOLDEN_VALUES).map(Golden::new);
    let mut worst = [0.0f32; 5];
    for picture in pictures {
        let (name, size) = (&picture.name, (picture.width, picture.height));
        let pixels = draw(size.0, size.1, &picture.faces);
        let sum: u64 = pixels.iter().copied().map(u64::from).sum();
        assert_eq!(sum, picture.pixel_sum, "the drawing is the generator's");
        let faces = look_at_rgb(&mut engine, size, &pixels, 0);
        assert_eq!(faces.len(), picture.found, "{name}");
        for (face, golden) in faces.iter().zip(goldens.by_ref()) {
            let errors = golden.errors(face);
            for (error, worst) in errors.into_iter().zip(&mut worst) {
                *worst = worst.max(error);
            }
            let within = std::iter::zip(errors, GOLDEN_LIMITS).all(|(e, limit)| e <= limit);
            assert!(within, "{name}: {errors:?}");
            assert!(face.pose.is_some(), "{name}");
        }
    }
    assert!(goldens.next().is_none(), "every recorded face was compared");
    eprintln!("largest errors: box, key points, landmarks, score, blendshapes {worst:?}");
}

#[test]
fn a_face_without_presence_is_reported_as_yunet_sees_it() {
    let Some(mut engine) = installed_engine(KIND, &EngineConfig::default()) else {
        return;
    };
    let size = (240, 200);
    let rgb = draw(size.0, size.1, &[face_at(120.0, 100.0, 60.0)]);
    let present = look_at_rgb(&mut engine, size, &rgb, 0).remove(0);
    assert!(present.landmarks.is_some() && present.blendshapes.is_some());
    let thresholds = Thresholds {
        presence: 1.0,
        ..KIND.thresholds()
    };
    let frame = Frame {
        image: ImageView::rgb(size.0, size.1, &rgb).unwrap(),
        time: Duration::ZERO,
    };
    let absent = engine.look(&frame, &thresholds).unwrap().remove(0);
    let bare = Observation {
        confidence: present.confidence,
        origin: present.origin,
        key_points: present.key_points.clone(),
        ..Observation::from_bbox(present.bbox)
    };
    assert_eq!(absent, bare);
    assert_eq!(
        absent.centroid(),
        present.centroid(),
        "no jump between the two"
    );
}

#[test]
fn as_many_faces_as_asked_for_and_the_best_of_them() {
    let size = (400, 200);
    let faces = [face_at(100.0, 100.0, 50.0), face_at(300.0, 100.0, 60.0)];
    let rgb = draw(size.0, size.1, &faces);
    let look_for = |max_faces| {
        let config = EngineConfig {
            max_faces,
            ..EngineConfig::default()
        };
        Some(look_at_rgb(
            &mut installed_engine(KIND, &config)?,
            size,
            &rgb,
            0,
        ))
    };
    let Some(all) = look_for(None) else {
        return;
    };
    assert_eq!(all.len(), 2);
    assert!(all[0].confidence >= all[1].confidence);
    assert_eq!(look_for(Some(1)), Some(vec![all[0].clone()]));
}

/// Returns the reason why the engine can't be loaded with `config`; `None`, with a message, if its
/// runtime is not installed.
fn refusal(config: &EngineConfig) -> Option<EngineError> {
    let error = load(KIND, config).err().expect("it can't be loaded");
    if let EngineError::Part {
        source: ModelError::Runtime { .. },
        ..
    } = error
    {
        eprintln!("SKIPPED: {error}");
        return None;
    }
    Some(error)
}

#[track_caller]
fn assert_is_of(error: &EngineError, expected: ModelRole, file: &str) {
    assert!(
        matches!(error, EngineError::Part { role, .. } if *role == expected),
        "{error}"
    );
    assert!(
        error.to_string().contains(file),
        "{file} is not in: {error}"
    );
}

#[test]
fn a_detector_that_can_not_be_used_is_named_with_its_role() {
    let folder = tempfile::tempdir().unwrap();
    let config = |path: &Path| EngineConfig {
        detector_model: Some(path.to_owned()),
        ..EngineConfig::default()
    };
    let missing = refusal(&config(Path::new("/nowhere/yunet.onnx"))).unwrap();
    assert_is_of(&missing, ModelRole::Detector, "/nowhere/yunet.onnx");
    let text = folder.path().join("text.onnx");
    std::fs::write(&text, "no network").unwrap();
    if let Some(foreign) = refusal(&config(&text)) {
        assert_is_of(&foreign, ModelRole::Detector, "text.onnx");
    }
}

#[test]
fn landmarks_that_can_not_be_used_are_named_with_their_role() {
    if installed_engine(KIND, &EngineConfig::default()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("face_mesh.onnx");
    std::fs::write(&text, "no bundle").unwrap();
    for (path, told) in [
        (Path::new("/nowhere/a.task"), "/nowhere/a.task"),
        (&text, "face_mesh.onnx"),
        (folder.path(), "face_detector.tflite"),
    ] {
        let config = EngineConfig {
            landmark_model: Some(path.to_owned()),
            ..EngineConfig::default()
        };
        let error = refusal(&config).unwrap();
        assert_is_of(&error, ModelRole::Landmarks, told);
    }
}

#[test]
fn both_files_are_on_record() {
    let Some(engine) = installed_engine(KIND, &EngineConfig::default()) else {
        return;
    };
    let info = engine.info;
    let names: Vec<&str> = info.models.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names,
        ["face_detection_yunet_2023mar.onnx", "face_landmarker.task"]
    );
    assert_eq!((info.key_points, info.blendshapes.len()), (5, 52));
    assert!(info.measures == Fields::POSE && !info.temporal);
}
