// SPDX-License-Identifier: MPL-2.0
//! MediaPipe's engine: models that can't be used, and drawn faces against MediaPipe's own answers.

use crate::common::drawn;
use crate::common::engine as installed;

use std::io::{Cursor, Write};
use std::time::Duration;

use drawn::{Face, draw};
use facetrack::analyzer::{Analyzer, Tuning};
use facetrack::engine::{EngineConfig, EngineError, EngineKind, Frame, RunningMode};
use facetrack::image::ImageView;
use facetrack::model::ModelError;
use facetrack::observation::Observation;
use facetrack::report::ReportSource;
use facetrack::smoothing::OneEuro;
use facetrack::tracker::TrackerConfig;
use installed::{engine, installed_paths, load};
use serde::Deserialize;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

fn mediapipe_error(config: EngineConfig) -> EngineError {
    load(EngineKind::MediaPipe, &config)
        .err()
        .expect("this model can't be loaded")
}

#[test]
fn models_that_can_not_be_used_are_errors_at_load() {
    let folder = tempfile::tempdir().unwrap();
    let config = |file: &str| EngineConfig {
        model: Some(folder.path().join(file)),
        ..EngineConfig::default()
    };
    let missing = mediapipe_error(config("nothing.task"));
    assert!(matches!(
        missing,
        EngineError::Model(ModelError::Missing { .. })
    ));
    assert!(missing.to_string().contains("nothing.task"), "{missing}");

    std::fs::write(folder.path().join("text.task"), "no bundle").unwrap();
    let text = mediapipe_error(config("text.task"));
    assert!(matches!(
        text,
        EngineError::Model(ModelError::Format { .. })
    ));
    assert!(text.to_string().contains("text.task"), "{text}");

    let Some(bundle) = installed_bundle() else {
        return;
    };
    let cut = &bundle[..bundle.len() / 2];
    std::fs::write(folder.path().join("cut.task"), cut).unwrap();
    let cut = mediapipe_error(config("cut.task"));
    assert!(
        matches!(cut, EngineError::Model(ModelError::Format { .. })),
        "{cut}"
    );

    let mut changed = bundle;
    *changed.last_mut().unwrap() ^= 1;
    std::fs::write(folder.path().join("face_landmarker.task"), changed).unwrap();
    let changed = mediapipe_error(config("face_landmarker.task"));
    assert!(
        matches!(changed, EngineError::Model(ModelError::Hash { .. })),
        "{changed}"
    );
}

#[test]
fn a_damaged_network_is_named_with_its_bundle() {
    let mut bundle = ZipWriter::new(Cursor::new(Vec::new()));
    for part in [
        "face_detector.tflite",
        "face_landmarks_detector.tflite",
        "face_blendshapes.tflite",
        "geometry_pipeline_metadata_landmarks.binarypb",
    ] {
        let options = SimpleFileOptions::default();
        bundle.start_file(part, options).unwrap();
        bundle.write_all(b"no network").unwrap();
    }
    let bundle = bundle.finish().unwrap().into_inner();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.task");
    std::fs::write(&path, bundle).unwrap();
    let error = mediapipe_error(EngineConfig {
        model: Some(path),
        ..EngineConfig::default()
    });
    if matches!(error, EngineError::Model(ModelError::Runtime { .. })) {
        eprintln!("SKIPPED: {error}");
        return;
    }
    let wanted = "other.task (face_landmarks_detector.tflite) is not a valid TFLite file: ";
    assert!(error.to_string().contains(wanted), "{error}");
}

fn installed_bundle() -> Option<Vec<u8>> {
    let path = installed_paths().model("face_landmarker.task", "mediapipe", None);
    match path {
        Ok(path) => Some(std::fs::read(path).unwrap()),
        Err(reason) => {
            eprintln!("SKIPPED: {reason}");
            None
        }
    }
}

/// A scene of `golden/faces.json`.
#[derive(Deserialize)]
struct Scene {
    name: String,
    width: usize,
    height: usize,
    running_mode: String,
    max_faces: usize,
    frames: Vec<SceneFrame>,
}

#[derive(Deserialize)]
struct SceneFrame {
    t_ms: u64,
    faces: Vec<Face>,
    found: usize,
    pixel_sum: u64,
}

/// MediaPipe's measurements of a face.
struct Golden {
    landmarks: Vec<[f32; 3]>,
    blendshapes: Vec<f32>,
    matrix: Vec<f32>,
}

const GOLDEN_VALUES: usize = 478 * 3 + 52 + 16;

impl Golden {
    fn new(values: &[f32]) -> Self {
        let (landmarks, rest) = values.split_at(478 * 3);
        let (blendshapes, matrix) = rest.split_at(52);
        Self {
            landmarks: landmarks
                .chunks_exact(3)
                .map(|p| [p[0], p[1], p[2]])
                .collect(),
            blendshapes: blendshapes.to_vec(),
            matrix: matrix.to_vec(),
        }
    }

    /// Distance of the outer eye corners, px.
    fn eyes(&self) -> f32 {
        let ([ax, ay, _], [bx, by, _]) = (self.landmarks[33], self.landmarks[263]);
        (ax - bx).hypot(ay - by)
    }

    /// Largest errors: landmarks and depth per distance of the eyes, blendshapes, matrix.
    fn errors(&self, face: &Observation) -> [f32; 4] {
        let points = &face.landmarks.as_ref().unwrap().points;
        let pairs = || points.iter().zip(&self.landmarks);
        let shift = pairs().map(|(p, q)| (p.x - q[0]).hypot(p.y - q[1]));
        let depth = pairs().map(|(p, q)| (p.z - q[2]).abs());
        let matrix = face.pose.unwrap().matrix;
        [
            max(shift) / self.eyes(),
            max(depth) / self.eyes(),
            max_difference(
                face.blendshapes.as_ref().unwrap().values(),
                &self.blendshapes,
            ),
            max_difference(matrix.as_flattened(), &self.matrix),
        ]
    }
}

fn max(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(0.0, f32::max)
}

fn max_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    max(a.iter().zip(b).map(|(a, b)| (a - b).abs()))
}

/// The frame loop in the configuration of a scene; `None` where models or runtime are not
/// installed.
fn analyzer(scene: &Scene) -> Option<Analyzer> {
    let config = EngineConfig {
        running_mode: match scene.running_mode.as_str() {
            "video" => RunningMode::Video,
            _ => RunningMode::Image,
        },
        max_faces: Some(scene.max_faces),
        ..EngineConfig::default()
    };
    let kind = EngineKind::MediaPipe;
    let tuning = Tuning {
        smoothing: kind.smooths_natively(&config).then_some(OneEuro::default()),
        ..Tuning::default()
    };
    let source = ReportSource {
        engine: kind.name().to_owned(),
        device: "cpu".to_owned(),
        generator: "test".to_owned(),
        ..ReportSource::default()
    };
    let engine = engine(kind, &config)?;
    Some(Analyzer::new(
        engine,
        TrackerConfig::default(),
        tuning,
        source,
    ))
}

/// Three and more times the largest errors measured; the networks themselves differ by 2e-3 px from
/// LiteRT, and a followed face sees its own differences again.
const GOLDEN_LIMITS: [f32; 4] = [0.002, 0.002, 0.01, 0.01];

#[test]
fn drawn_faces_are_measured_as_mediapipe_does() {
    let scenes: Vec<Scene> =
        serde_json::from_str(include_str!("../../../../tests/golden/faces.json")).unwrap();
    let record: Vec<f32> = include_bytes!("../../../../tests/golden/faces.bin")
        .chunks_exact(4)
        .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let mut goldens = record.chunks_exact(GOLDEN_VALUES).map(Golden::new);
    let mut worst = [0.0f32; 4];
    for scene in scenes {
        let Some(mut analyzer) = analyzer(&scene) else {
            return;
        };
        for (index, frame) in scene.frames.iter().enumerate() {
            let pixels = draw(scene.width, scene.height, &frame.faces);
            let sum: u64 = pixels.iter().copied().map(u64::from).sum();
            assert_eq!(sum, frame.pixel_sum, "the drawing is the generator's");
            let image = ImageView::rgb(scene.width, scene.height, &pixels).unwrap();
            let time = Duration::from_millis(frame.t_ms);
            let faces = analyzer.analyze(&Frame { image, time }).unwrap().faces;
            assert_eq!(faces.len(), frame.found, "{} frame {index}", scene.name);
            for golden in goldens.by_ref().take(frame.found) {
                let errors = faces
                    .iter()
                    .map(|seen| golden.errors(&seen.face))
                    .min_by(|a, b| a[0].total_cmp(&b[0]))
                    .unwrap();
                for (error, worst) in errors.into_iter().zip(&mut worst) {
                    *worst = worst.max(error);
                }
                let within = errors
                    .iter()
                    .zip(GOLDEN_LIMITS)
                    .all(|(e, limit)| *e <= limit);
                assert!(within, "{} frame {index}: {errors:?}", scene.name);
            }
        }
    }
    assert!(goldens.next().is_none(), "every recorded face was compared");
    eprintln!("largest errors: landmarks, depth per eye distance, blendshapes, matrix {worst:?}");
}
