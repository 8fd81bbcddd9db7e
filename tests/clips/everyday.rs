// SPDX-License-Identifier: MPL-2.0
//! Whole pipelines against recordings of MediaPipe Tasks in video mode, where
//! `FACETRACK_REFERENCE_DIR` names a folder with them: `media/` with clips and `out/` with what was
//! found in them.
//!
//! The recordings were made of frames that OpenCV decoded; another decoder by itself moves the
//! landmarks by 0.001.

use crate::common::recording;

use crate::common::player::{folder, track};
use facetrack::engine::EngineKind;
use facetrack::report::FrameReport;
use recording::{Recording, mean, p95};

/// Bars of the parity.
const LEAST_RECALL_AND_PRECISION: f32 = 0.99;
const LEAST_IOU: f32 = 0.5;
const LANDMARKS_MEAN: f32 = 0.003;
const LANDMARKS_P95: f32 = 0.01;
const BLENDSHAPES_MEAN: f32 = 0.005;
const BLENDSHAPES_P95: f32 = 0.02;
const ROTATION_MEAN: f32 = 0.5;

fn compare(clip: &str, recording: &Recording, reports: &[FrameReport]) {
    let (mut landmarks, mut blendshapes, mut rotations) = (vec![], vec![], vec![]);
    for (recorded, report) in recording.frames.iter().zip(reports) {
        for face in &recorded.faces {
            let nearest = report
                .faces
                .iter()
                .max_by(|a, b| face.iou(&a.face).total_cmp(&face.iou(&b.face)));
            let Some(ours) = nearest.filter(|ours| face.iou(&ours.face) >= LEAST_IOU) else {
                continue;
            };
            landmarks.extend(face.landmark_errors(&ours.face));
            blendshapes.extend(face.blendshape_errors(&ours.face));
            rotations.push(face.rotation(&ours.face));
        }
    }
    let matched = rotations.len() as f32;
    let theirs: usize = recording.frames.iter().map(|f| f.faces.len()).sum();
    let ours: usize = reports.iter().map(|report| report.faces.len()).sum();
    let figures = [
        (
            "recall",
            matched / theirs as f32,
            LEAST_RECALL_AND_PRECISION,
        ),
        (
            "precision",
            matched / ours as f32,
            LEAST_RECALL_AND_PRECISION,
        ),
        ("landmarks, mean", mean(&landmarks), LANDMARKS_MEAN),
        ("landmarks, p95", p95(&mut landmarks), LANDMARKS_P95),
        ("blendshapes, mean", mean(&blendshapes), BLENDSHAPES_MEAN),
        ("blendshapes, p95", p95(&mut blendshapes), BLENDSHAPES_P95),
        ("rotation, mean, degrees", mean(&rotations), ROTATION_MEAN),
    ];
    for (index, (name, figure, bar)) in figures.into_iter().enumerate() {
        eprintln!("{clip}: {name} {figure:.5}");
        let holds = if index < 2 {
            figure >= bar
        } else {
            figure <= bar
        };
        assert!(holds, "{clip}: {name} is {figure}, the bar is {bar}");
    }
}

#[test]
fn clips_are_measured_as_mediapipe_does() {
    let Some(folder) = folder(EngineKind::MediaPipe) else {
        return;
    };
    for (original, clip, max_faces) in [
        ("mp0.10.21_tasks_video", "pyfeat_single_face", 1),
        ("mp0.10.21_tasks_video", "pyfeat_WolfgangLanger_Pexels", 1),
        ("mp0.10.21_tasks_video", "synth_gap", 1),
        ("mp0.10.21_tasks_video4", "synth_two_faces", 4),
    ] {
        let recording = recording::read(&folder, original, clip);
        let reports = track(
            &folder.join(format!("media/{clip}.mp4")),
            &format!("max-faces={max_faces}"),
        );
        assert_eq!(reports.len(), recording.frames.len(), "{clip}");
        compare(clip, &recording, &reports);
    }
}

#[test]
fn no_face_is_seen_where_there_is_none() {
    let Some(folder) = folder(EngineKind::MediaPipe) else {
        return;
    };
    let reports = track(&folder.join("media/pyfeat_no_face.mp4"), "max-faces=1");
    assert!(!reports.is_empty());
    assert!(reports.iter().all(|report| report.faces.is_empty()));
}
