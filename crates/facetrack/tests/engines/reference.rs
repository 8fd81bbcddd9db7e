// SPDX-License-Identifier: MPL-2.0
//! MediaPipe's engine against recordings of MediaPipe Tasks, where `FACETRACK_REFERENCE_DIR` names
//! a folder with them: `media/` with pictures and `out/mp0.10.21_tasks_image/IMAGES.json.gz` with
//! what was found in them.

use crate::common::engine as installed;
use crate::common::recording;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use facetrack::engine::{Engine, EngineConfig, EngineKind, RunningMode};
use facetrack::observation::Observation;
use installed::{engine, look_at_rgb};
use recording::{Recording, mean};

/// Faces in the pictures, when they were recorded.
const MAX_FACES: usize = 4;

/// Bars of the parity: means of landmark errors per distance of the eyes, and of blendshape errors;
/// largest rotation of the head, degrees.
const MAX_LANDMARK_ERROR: f32 = 0.005;
const MAX_BLENDSHAPE_ERROR: f32 = 0.01;
const MAX_ROTATION: f32 = 0.5;

/// The folder of the recordings and an engine set up as they were made; `None`, said aloud, where
/// one is missing.
fn set_up() -> Option<(PathBuf, Engine)> {
    let Some(folder) = std::env::var_os("FACETRACK_REFERENCE_DIR") else {
        eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR is not set");
        return None;
    };
    let config = EngineConfig {
        running_mode: RunningMode::Image,
        max_faces: Some(MAX_FACES),
        ..EngineConfig::default()
    };
    Some((folder.into(), engine(EngineKind::MediaPipe, &config)?))
}

fn faces_in(engine: &mut Engine, picture: &Path) -> Vec<Observation> {
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
    look_at_rgb(engine, (width, height), &rgb, 0)
}

#[test]
fn pictures_are_measured_as_mediapipe_does() {
    let Some((folder, mut engine)) = set_up() else {
        return;
    };
    let recording: Recording = recording::read(&folder, "mp0.10.21_tasks_image", "IMAGES");
    // JPEG decoders differ, PNG decoders do not.
    let pictures = recording
        .frames
        .iter()
        .filter(|p| p.image.ends_with(".png"));
    let mut compared = 0;
    for picture in pictures {
        let name = &picture.image;
        let faces = faces_in(&mut engine, &folder.join("media").join(name));
        assert_eq!(faces.len(), picture.faces.len(), "{name}");
        for recorded in &picture.faces {
            let face = faces
                .iter()
                .max_by(|a, b| recorded.iou(a).total_cmp(&recorded.iou(b)))
                .unwrap();
            let landmarks = mean(&recorded.landmark_errors(face));
            let blendshapes = mean(&recorded.blendshape_errors(face));
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
