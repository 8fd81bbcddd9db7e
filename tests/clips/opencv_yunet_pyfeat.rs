// SPDX-License-Identifier: MPL-2.0
//! Whole pipelines of YuNet with MediaPipe's networks against recordings of MediaPipe Tasks in
//! image mode, where `FACETRACK_REFERENCE_DIR` names a folder with them: `media/` with pictures and
//! clips, and `out/` with what was found in them.

use crate::common::recording;

use std::collections::HashMap;

use crate::common::player::{Player, folder, track};
use facetrack::blendshape::Blendshapes;
use facetrack::engine::EngineKind;
use facetrack::report::FrameReport;
use recording::{mean, p95};

const KIND: EngineKind = EngineKind::OpenCvYunetPyfeat;

/// The element's property that chooses it.
const ENGINE: &str = "engine=opencv-yunet-pyfeat";

const ORIGINAL: &str = "mp0.10.21_tasks_image";

/// Minimum overlap of boxes of the same face.
const LEAST_IOU: f32 = 0.5;

/// Minimum share of the original's faces that are found.
const LEAST_RECALL: f32 = 0.99;

/// Bars of the means: the networks look at other regions than MediaPipe's do, whose own modes
/// differ by 0.015 and 0.028 for the same reason.
const LANDMARKS: f32 = 0.02;
const BLENDSHAPES: f32 = 0.04;

/// Differences from a recording.
#[derive(Default)]
struct Differences {
    recorded: usize,
    matched: usize,
    landmarks: Vec<f32>,
    blendshapes: Vec<f32>,
    rotations: Vec<f32>,
}

impl Differences {
    fn add(&mut self, recorded: &recording::Frame, report: &FrameReport) {
        for face in &recorded.faces {
            self.recorded += 1;
            let nearest = report
                .faces
                .iter()
                .max_by(|a, b| face.iou(&a.face).total_cmp(&face.iou(&b.face)));
            let Some(ours) = nearest.filter(|ours| face.iou(&ours.face) >= LEAST_IOU) else {
                continue;
            };
            self.matched += 1;
            self.landmarks.extend(face.landmark_errors(&ours.face));
            self.blendshapes.extend(face.blendshape_errors(&ours.face));
            self.rotations.push(face.rotation(&ours.face));
        }
    }

    fn check(mut self, clip: &str, least_recall: f32) {
        let recall = self.matched as f32 / self.recorded as f32;
        let (landmarks, blendshapes) = (mean(&self.landmarks), mean(&self.blendshapes));
        eprintln!(
            "{clip}: recall {recall:.4}, landmarks {landmarks:.5} (p95 {:.5}), blendshapes {blendshapes:.5} (p95 {:.5}), rotation {:.3}°",
            p95(&mut self.landmarks),
            p95(&mut self.blendshapes),
            mean(&self.rotations),
        );
        assert!(
            self.matched > 0 && recall >= least_recall,
            "{clip}: {recall}"
        );
        assert!(landmarks <= LANDMARKS, "{clip}: {landmarks}");
        assert!(blendshapes <= BLENDSHAPES, "{clip}: {blendshapes}");
    }
}

#[test]
fn clips_are_measured_nearly_as_mediapipe_does() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    for clip in ["pyfeat_single_face", "pyfeat_WolfgangLanger_Pexels"] {
        let recording = recording::read(&folder, ORIGINAL, clip);
        let reports = track(&folder.join(format!("media/{clip}.mp4")), ENGINE);
        assert_eq!(reports.len(), recording.frames.len(), "{clip}");
        let mut differences = Differences::default();
        for (recorded, report) in recording.frames.iter().zip(&reports) {
            differences.add(recorded, report);
        }
        differences.check(clip, LEAST_RECALL);
    }
}

/// In `pyfeat_multi_face.jpg`, MediaPipe's detector takes a face and the neck below it for one
/// face, and its landmarks follow; YuNet finds the face, which therefore has no counterpart in the
/// recording.
#[test]
fn pictures_are_measured_nearly_as_mediapipe_does() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    let mut differences = Differences::default();
    for picture in recording::read(&folder, ORIGINAL, "IMAGES").frames {
        let reports = track(&folder.join("media").join(&picture.image), ENGINE);
        assert_eq!(reports.len(), 1, "{}", picture.image);
        differences.add(&picture, &reports[0]);
    }
    let without_the_neck = (differences.recorded - 1) as f32 / differences.recorded as f32;
    differences.check("pictures", without_the_neck);
}

/// The faces' blendshapes by identity, frame by frame.
fn blendshapes(reports: &[FrameReport]) -> Vec<HashMap<u32, Blendshapes>> {
    reports
        .iter()
        .map(|report| {
            let faces = report.faces.iter();
            faces
                .map(|face| (face.id, face.face.blendshapes.clone().expect("measured")))
                .collect()
        })
        .collect()
}

#[test]
fn blendshapes_are_repeated_per_face_and_forgotten_at_a_discontinuity() {
    let Some(folder) = folder(KIND) else {
        return;
    };
    const INTERVAL: usize = 3;
    const FRAMES: usize = 8;
    let clip = folder.join("media/synth_two_faces.mp4");
    let each = blendshapes(&Player::new(&clip, ENGINE).reports(FRAMES));
    let player = Player::new(&clip, &format!("{ENGINE} blendshape-interval={INTERVAL}"));
    let thinned = blendshapes(&player.reports(FRAMES));
    for (index, (seen, measured)) in thinned.iter().zip(&each).enumerate() {
        assert_eq!(seen.len(), 2, "frame {index}");
        let last = &each[index - index % INTERVAL];
        assert_eq!(seen, last, "frame {index}");
        assert_eq!(seen == measured, index % INTERVAL == 0, "frame {index}");
    }
    player.rewind();
    let again = blendshapes(&player.reports(1)).remove(0);
    let first = &each[0];
    for (id, blendshapes) in first {
        assert_eq!(again.get(&(id + 2)), Some(blendshapes), "measured anew");
    }
}
