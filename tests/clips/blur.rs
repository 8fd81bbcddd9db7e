// SPDX-License-Identifier: MPL-2.0
//! Faces in clips after `facetrackblur`, in two passes: detectors do not find them, and a recogniser
//! does not match them with the clear faces.

use std::iter::zip;
use std::path::Path;

use crate::common;
use crate::common::engine::{engine, look_at_rgb};
use crate::common::frames::{self, CLIPS, Decoded};
use crate::common::player::folder;
use facetrack::engine::insightface::Settings;
use facetrack::engine::{Engine, EngineConfig, EngineKind};
use facetrack::observation::Observation;

/// Clips with one face or two in most frames, and modes.
const CASES: [(&str, &str); 5] = [
    ("pyfeat_single_face.mp4", "pixelate"),
    ("pyfeat_single_face.mp4", "blur"),
    ("pyfeat_WolfgangLanger_Pexels.mp4", "pixelate"),
    ("synth_gap.mp4", "pixelate"),
    ("synth_two_faces.mp4", "pixelate"),
];

/// Maximum share of frames with a face that a detector finds.
const MAX_FOUND: f64 = 0.01;

/// Minimum cosine of two embeddings of one person in InsightFace's demo
/// `web-demos/src_recognition/main.py`.
const SAME_PERSON: f32 = 0.28;

/// Every so many clear frames give embeddings to compare with.
const CLEAR_STEP: usize = 24;

fn play(launch: &str) {
    let pipeline = gst::parse::launch(launch).unwrap_or_else(|error| panic!("{launch}: {error}"));
    common::play_to_end(&pipeline);
}

/// The frames of a clip after two passes.
fn blurred(clip: &Path, blur: &str) -> Vec<Decoded> {
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("clip.json");
    let (clip_path, record) = (clip.display(), record.display());
    play(&format!(
        "filesrc location={clip_path} ! decodebin ! facetrack engine=mediapipe max-faces=4 \
         ! trackjsonsink location={record} verbose=true"
    ));
    let elements =
        format!("{CLIPS} ! trackjsonload location={record} look-ahead=25 ! facetrackblur {blur}");
    frames::decode(clip, &elements).collect()
}

fn find(engine: &mut Engine, frame: &Decoded) -> Vec<Observation> {
    look_at_rgb(engine, (frame.width, frame.height), &frame.rgb, 0)
}

fn cosine(a: &Observation, b: &Observation) -> f32 {
    let embeddings = a.embedding.iter().zip(&b.embedding);
    let products = embeddings.flat_map(|(a, b)| zip(a.iter(), b.iter()));
    products.map(|(a, b)| a * b).sum()
}

/// Two detectors. The second one also recognises.
fn attackers() -> Option<[Engine; 2]> {
    let recogniser = EngineConfig {
        insightface: Settings {
            embedding: true,
            ..Settings::default()
        },
        ..EngineConfig::default()
    };
    Some([
        engine(EngineKind::OpenCvYunet, &EngineConfig::default())?,
        engine(EngineKind::InsightFace, &recogniser)?,
    ])
}

#[test]
fn covered_faces_are_neither_found_nor_recognised() {
    let Some(folder) = folder(EngineKind::MediaPipe) else {
        return;
    };
    let Some([mut yunet, mut insightface]) = attackers() else {
        return;
    };
    for (name, mode) in CASES {
        let clip = folder.join("media").join(name);
        let clear = frames::decode(&clip, CLIPS).step_by(CLEAR_STEP);
        let clear: Vec<_> = clear
            .flat_map(|frame| find(&mut insightface, &frame))
            .collect();
        assert!(!clear.is_empty(), "{name}");
        let covered = blurred(&clip, &format!("mode={mode}"));
        let mut found = [0; 2];
        let mut closest = f32::MIN;
        for frame in &covered {
            let faces = find(&mut insightface, frame);
            found[0] += usize::from(!find(&mut yunet, frame).is_empty());
            found[1] += usize::from(!faces.is_empty());
            let cosines = faces
                .iter()
                .flat_map(|face| clear.iter().map(|it| cosine(it, face)));
            closest = cosines.fold(closest, f32::max);
        }
        let case = format!("{name} {mode}: {found:?} of {}, {closest}", covered.len());
        let most = covered.len() as f64 * MAX_FOUND;
        assert!(found.iter().all(|count| *count as f64 <= most), "{case}");
        assert!(closest < SAME_PERSON, "{case}");
    }
}
