// SPDX-License-Identifier: MPL-2.0
//! MediaPipe's engine against recordings of MediaPipe Tasks, where `FACETRACK_REFERENCE_DIR` names a folder with them:
//! `media/` with pictures and `out/mp0.10.21_tasks_image/IMAGES.json.gz` with what was found in them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::read::GzDecoder;
use gstfacetrack::face::engine::{
    Engine, EngineConfig, EngineError, EngineKind, Frame, RunningMode, Wanted, load,
};
use gstfacetrack::face::image::ImageView;
use gstfacetrack::face::model::ModelError;
use gstfacetrack::face::observation::Observation;
use serde::Deserialize;

/// Faces in the pictures, when they were recorded.
const MAX_FACES: usize = 4;

/// Bars of the parity: means of landmark errors per distance of the eyes, and of blendshape errors; largest rotation of
/// the head, degrees.
const MAX_LANDMARK_ERROR: f32 = 0.005;
const MAX_BLENDSHAPE_ERROR: f32 = 0.01;
const MAX_ROTATION: f32 = 0.5;

#[derive(Deserialize)]
struct Recording {
    frames: Vec<Picture>,
}

#[derive(Deserialize)]
struct Picture {
    image: String,
    faces: Vec<Face>,
}

#[derive(Deserialize)]
struct Face {
    landmarks: Vec<[f32; 3]>,
    blendshapes: BTreeMap<String, f32>,
    matrix: [[f32; 4]; 4],
}

impl Face {
    fn landmark_error(&self, face: &Observation) -> f32 {
        let points = &face.landmarks.as_ref().unwrap().points;
        let shifts = points
            .iter()
            .zip(&self.landmarks)
            .map(|(p, q)| (p.x - q[0]).hypot(p.y - q[1]));
        let ([ax, ay, _], [bx, by, _]) = (self.landmarks[33], self.landmarks[263]);
        shifts.sum::<f32>() / points.len() as f32 / (ax - bx).hypot(ay - by)
    }

    fn blendshape_error(&self, face: &Observation) -> f32 {
        let blendshapes = face.blendshapes.as_ref().unwrap();
        let errors = blendshapes
            .iter()
            .map(|(name, value)| (value - self.blendshapes[name]).abs());
        errors.sum::<f32>() / self.blendshapes.len() as f32
    }

    /// Angle between the poses, degrees.
    fn rotation(&self, face: &Observation) -> f32 {
        let ours = face.pose.unwrap().matrix;
        let dot = |a: &[[f32; 4]; 4], b: &[[f32; 4]; 4]| -> f32 {
            (0..9).map(|i| a[i / 3][i % 3] * b[i / 3][i % 3]).sum()
        };
        let scale = (dot(&ours, &ours) * dot(&self.matrix, &self.matrix)).sqrt() / 3.0;
        let cosine = (dot(&ours, &self.matrix) / scale - 1.0) / 2.0;
        cosine.clamp(-1.0, 1.0).acos().to_degrees()
    }
}

/// The folder of the recordings and an engine set up as they were made; `None`, said aloud, where one is missing.
fn set_up() -> Option<(PathBuf, Box<dyn Engine>)> {
    let Some(folder) = std::env::var_os("FACETRACK_REFERENCE_DIR") else {
        eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR is not set");
        return None;
    };
    let config = EngineConfig {
        running_mode: RunningMode::Image,
        max_faces: Some(MAX_FACES),
        ..EngineConfig::default()
    };
    match load(EngineKind::MediaPipe, &config) {
        Ok(engine) => Some((folder.into(), engine)),
        Err(EngineError::Model(
            reason @ (ModelError::Missing { .. } | ModelError::Runtime { .. }),
        )) => {
            eprintln!("SKIPPED: {reason}");
            None
        }
        Err(reason) => panic!("{reason}"),
    }
}

fn faces_in(engine: &mut dyn Engine, picture: &Path) -> Vec<Observation> {
    let decoder = png::Decoder::new(BufReader::new(File::open(picture).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let (width, height) = (info.width as usize, info.height as usize);
    let rgb: Vec<u8> = match info.color_type {
        png::ColorType::Rgb => pixels,
        png::ColorType::Rgba => pixels
            .chunks_exact(4)
            .flat_map(|p| [p[0], p[1], p[2]])
            .collect(),
        other => panic!("{}: {other:?}", picture.display()),
    };
    let image = ImageView::rgb(width, height, &rgb).unwrap();
    let time = Duration::ZERO;
    let mut faces = engine.process(&Frame { image, time }).unwrap();
    for face in &mut faces {
        engine
            .complete(face, (width, height), Wanted::Everything)
            .unwrap();
    }
    faces
}

#[test]
fn pictures_are_measured_as_mediapipe_does() {
    let Some((folder, mut engine)) = set_up() else {
        return;
    };
    let recording = folder.join("out/mp0.10.21_tasks_image/IMAGES.json.gz");
    let recording = GzDecoder::new(File::open(recording).unwrap());
    let recording: Recording = serde_json::from_reader(BufReader::new(recording)).unwrap();
    // Decoders of JPEG differ, those of PNG do not.
    let pictures = recording
        .frames
        .iter()
        .filter(|p| p.image.ends_with(".png"));
    let mut compared = 0;
    for picture in pictures {
        let name = &picture.image;
        let faces = faces_in(engine.as_mut(), &folder.join("media").join(name));
        assert_eq!(faces.len(), picture.faces.len(), "{name}");
        for recorded in &picture.faces {
            let face = faces
                .iter()
                .min_by(|a, b| {
                    recorded
                        .landmark_error(a)
                        .total_cmp(&recorded.landmark_error(b))
                })
                .unwrap();
            let landmarks = recorded.landmark_error(face);
            let blendshapes = recorded.blendshape_error(face);
            let rotation = recorded.rotation(face);
            eprintln!(
                "{name}: landmarks {landmarks:.6} blendshapes {blendshapes:.6} rotation {rotation:.4}°"
            );
            assert!(landmarks <= MAX_LANDMARK_ERROR, "{name}: {landmarks}");
            assert!(blendshapes <= MAX_BLENDSHAPE_ERROR, "{name}: {blendshapes}");
            assert!(rotation <= MAX_ROTATION, "{name}: {rotation}");
            compared += 1;
        }
    }
    assert!(compared > 0, "the recording holds pictures with faces");
}
