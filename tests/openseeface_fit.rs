// SPDX-License-Identifier: MPL-2.0
//! OpenSeeFace's pose, 3-D points and features against recordings of `tracker.py`, where `FACETRACK_REFERENCE_DIR` names a
//! folder with them: `out/osf_m0*/` with landmarks and what was made of them. No network takes part: the recorded
//! landmarks go in.

#[path = "common/recording.rs"]
mod recording;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use gstfacetrack::face::engine::openseeface::{Faces, LandmarkContract};
use gstfacetrack::face::engine::{Context, EngineConfig, Wanted};
use gstfacetrack::face::geometry::{Point, Rect};
use gstfacetrack::face::observation::{
    Features, Gaze, Landmark, LandmarkScheme, Landmarks, Observation, Pupil,
};
use recording::{Recording, mean};
use serde::Deserialize;

/// What `tracker.py` made of a face.
#[derive(Deserialize)]
struct Face {
    id: u32,
    score: f32,
    /// The 66 landmarks and both pupils, px.
    landmarks: Vec<[f32; 2]>,
    /// Whether the eye is open, row, column and confidence of its pupil, right before left.
    eye_state: [[f32; 4]; 2],
    success: bool,
    quaternion: [f32; 4],
    euler: [f32; 3],
    rotation: [f32; 3],
    translation: [f32; 3],
    pnp_error: f32,
    pts_3d: Vec<[f32; 3]>,
    /// Empty before the first frame in which they were measured.
    features: BTreeMap<String, f32>,
    /// Right before left; empty as well.
    eye_blink: Vec<f32>,
}

/// Frames after which features are compared.
const LEARNED: usize = 50;

/// Means and maxima of what differs.
#[derive(Default)]
struct Differences(BTreeMap<&'static str, Vec<f32>>);

impl Differences {
    fn add(&mut self, name: &'static str, theirs: &[f32], ours: &[f32]) {
        assert_eq!(theirs.len(), ours.len(), "{name}");
        let difference = theirs.iter().zip(ours).map(|(a, b)| (a - b).abs());
        self.0.entry(name).or_default().extend(difference);
    }

    /// Says them, and holds each to its bar.
    fn check(&self, clip: &str, bars: &[(&str, f32, f32)]) {
        for (name, mean_bar, max_bar) in bars {
            let values = &self.0[name];
            let max = values.iter().copied().fold(0.0, f32::max);
            let mean = mean(values);
            eprintln!(
                "{clip}: {name} mean {mean:.6} max {max:.6} of {}",
                values.len()
            );
            assert!(
                mean <= *mean_bar && max <= *max_bar,
                "{clip}: {name}: {values:?}"
            );
        }
    }
}

/// The recordings; `None`, said aloud, where there are none.
fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("FACETRACK_REFERENCE_DIR");
    if folder.is_none() {
        eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR is not set");
    }
    folder.map(PathBuf::from)
}

/// What the engine's first half would say of a face.
fn observation(face: &Face) -> Observation {
    let points = face.landmarks.iter().take(66);
    let points = points.map(|&[x, y]| Landmark { x, y, z: 0.0 }).collect();
    let [right, left] = face.eye_state.map(|[_, row, column, confidence]| Pupil {
        position: Point::new(column, row),
        confidence,
    });
    Observation {
        confidence: Some(face.score),
        landmarks: Some(Landmarks::new(LandmarkScheme::OpenSeeFace66, points)),
        gaze: Some(Gaze { right, left }),
        ..Observation::from_bbox(Rect::default())
    }
}

/// Angle between two rotations, degrees.
fn angle(a: [f32; 4], b: [f32; 4]) -> f32 {
    let distance = |sign: f32| -> f32 {
        let squares = a.iter().zip(b).map(|(a, b)| (a - sign * b).powi(2));
        squares.sum::<f32>().sqrt()
    };
    let chord = distance(1.0).min(distance(-1.0));
    4.0 * (chord / 2.0).min(1.0).asin().to_degrees()
}

fn compare(original: &str, clip: &str, frame_size: (usize, usize), max_faces: usize) {
    let Some(folder) = folder() else {
        return;
    };
    let recording: Recording<Face> = recording::read(&folder, original, clip);
    let config = EngineConfig {
        max_faces: Some(max_faces),
        ..EngineConfig::default()
    };
    let mut faces = Faces::new(&config, &LandmarkContract::FULL);
    let mut differences = Differences::default();
    for (index, frame) in recording.frames.iter().enumerate() {
        let mut ours: Vec<_> = frame.faces.iter().map(observation).collect();
        faces.begin_frame(&ours);
        for (face, theirs) in ours.iter_mut().zip(&frame.faces) {
            let context = Context {
                id: theirs.id + 1,
                frame_size,
                time: Duration::from_millis(40) * index as u32,
                wanted: Wanted::Everything,
            };
            faces.complete(face, &context);
            let fit = face.fit.as_ref().unwrap();
            assert_eq!(fit.success, theirs.success, "{clip}: frame {index}");
            println!(
                "{index} {} {:?} {:?} {:?} {:?}",
                theirs.id, theirs.rotation, fit.rotation, theirs.pnp_error, fit.error
            );
            differences.add("turn", &[0.0], &[angle(theirs.quaternion, fit.quaternion)]);
            differences.add("euler", &theirs.euler, &fit.euler);
            differences.add("translation", &theirs.translation, &fit.translation);
            differences.add("error", &[theirs.pnp_error], &[fit.error]);
            let flat = |points: &[[f32; 3]]| points.concat();
            differences.add("points", &flat(&theirs.pts_3d), &flat(&fit.points));
            if let Some(features) = face.features.filter(|_| index >= LEARNED) {
                let names = Features::NAMES;
                differences.add(
                    "features",
                    &names.map(|name| theirs.features[name]),
                    &features.0,
                );
                differences.add("blink", &theirs.eye_blink, &features.eye_openness());
            }
        }
    }
    differences.check(
        clip,
        &[
            ("turn", 1.0, 1.0),
            ("euler", 1.0, 1.0),
            ("translation", 1.0, 1.0),
            ("error", 1.0, 1.0),
            ("points", 1.0, 1.0),
            ("features", 1.0, 1.0),
            ("blink", 1.0, 1.0),
        ],
    );
}

#[test]
fn wolfgang() {
    compare("osf_m0", "pyfeat_WolfgangLanger_Pexels", (640, 360), 1);
}
#[test]
fn single() {
    compare("osf_m0", "pyfeat_single_face", (640, 360), 1);
}
#[test]
fn gap() {
    compare("osf_m0", "synth_gap", (640, 360), 1);
}
#[test]
fn two() {
    compare("osf_m0_f4", "synth_two_faces", (1024, 512), 4);
}
