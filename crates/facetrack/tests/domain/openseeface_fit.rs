// SPDX-License-Identifier: MPL-2.0
//! OpenSeeFace's pose, 3-D points and features against recordings of `tracker.py`, where
//! `FACETRACK_REFERENCE_DIR` names a folder with them: `out/osf_m0*/` with landmarks and what was
//! made of them. No network takes part: the recorded landmarks go in.

use crate::common::recording;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use facetrack::engine::openseeface::{Faces, LandmarkContract};
use facetrack::engine::{Completer, Context, EngineConfig, Wanted};
use facetrack::geometry::{Point, Rect};
use facetrack::observation::{
    Features, Gaze, HeadPose, Landmark, LandmarkScheme, Landmarks, Observation, Pupil,
};
use recording::{Recording, angle, mean};
use serde::Deserialize;

/// Results of `tracker.py` for a face.
#[derive(Deserialize)]
struct Face {
    id: u32,
    score: f32,
    /// The 66 landmarks and both pupils, px.
    landmarks: Vec<[f32; 2]>,
    /// For each eye, right before left: 1 if it is open, then row, column and confidence of its
    /// pupil.
    eye_state: [[f32; 4]; 2],
    success: bool,
    quaternion: [f32; 4],
    euler: [f32; 3],
    rotation: [f32; 3],
    translation: [f32; 3],
    pnp_error: f32,
    pts_3d: Vec<[f32; 3]>,
    /// Empty until they were measured in a frame.
    features: BTreeMap<String, f32>,
    /// Right before left; empty as well.
    eye_blink: Vec<f32>,
}

/// Values to compare, with limits of the mean and of the maximum difference; angles in degrees, the
/// error in px, features in their range, and lengths in units of the model, about the width of a
/// face.
///
/// The recording is rounded. While the search comes from the camera to the face, which can take
/// three frames, the last digit decides where it is; afterwards it forgets that.
const BARS: [(&str, f32, f32); 8] = [
    ("first turns", 0.5, 1.0),
    ("turn", 0.001, 0.05),
    ("euler", 0.001, 0.05),
    ("translation", 0.0001, 0.001),
    ("error", 0.001, 0.01),
    ("points", 0.0001, 0.001),
    ("features", 0.001, 0.02),
    ("eye openness", 0.001, 0.02),
];

/// Number of frames that the search may take.
const ON_THE_WAY: usize = 3;

/// Frames after which features are compared; before, one measure can be the median.
const LEARNED: usize = 50;

/// Maximum mean difference of each angle of the head from MediaPipe's, degrees. MediaPipe's face
/// has another shape.
const MAX_MEDIAPIPE_DIFFERENCE: f32 = 6.0;

/// A recorded clip: who made it, its name, width and height of its frames, and the most faces in
/// one.
type Clip = (&'static str, &'static str, (usize, usize), usize);

const CLIPS: [Clip; 6] = [
    ("osf_m0", "pyfeat_single_face", (640, 360), 1),
    ("osf_m0", "pyfeat_WolfgangLanger_Pexels", (640, 360), 1),
    ("osf_m0", "synth_gap", (640, 360), 1),
    ("osf_m0_f4", "synth_two_faces", (1024, 512), 4),
    ("osf_m0_gstdecode", "pyfeat_single_face", (640, 360), 1),
    (
        "osf_m0_gstdecode",
        "pyfeat_WolfgangLanger_Pexels",
        (640, 360),
        1,
    ),
];

/// Differences, by name.
#[derive(Default)]
struct Differences(BTreeMap<&'static str, Vec<f32>>);

impl Differences {
    fn add(&mut self, name: &'static str, theirs: &[f32], ours: &[f32]) {
        assert_eq!(theirs.len(), ours.len(), "{name}");
        let differences = theirs.iter().zip(ours).map(|(a, b)| (a - b).abs());
        self.0.entry(name).or_default().extend(differences);
    }

    /// Says them, and holds each to its bar.
    fn check(&self, clip: &str) {
        for (name, mean_bar, max_bar) in BARS {
            let differences = &self.0[name];
            assert!(differences.iter().all(|d| d.is_finite()), "{clip}: {name}");
            let max = differences.iter().copied().fold(0.0, f32::max);
            let mean = mean(differences);
            eprintln!("{clip}: {name}: mean {mean:.6}, max {max:.6}");
            assert!(mean <= mean_bar && max <= max_bar, "{clip}: {name}");
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

/// A face as the engine's finder reports it.
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

/// Calls `check` with the number of each frame, and each of its faces as it was recorded and as it
/// is fitted here.
fn replay(
    folder: &Path,
    (original, clip, frame_size, max_faces): Clip,
    mut check: impl FnMut(usize, &Face, &Observation),
) {
    let recording: Recording<Face> = recording::read(folder, original, clip);
    let config = EngineConfig {
        max_faces: Some(max_faces),
        ..EngineConfig::default()
    };
    let mut faces = Faces::new(&config, &LandmarkContract::FULL);
    for (index, frame) in recording.frames.iter().enumerate() {
        let mut seen: Vec<_> = frame.faces.iter().map(observation).collect();
        faces.begin_frame(&seen);
        for (face, theirs) in seen.iter_mut().zip(&frame.faces) {
            let context = Context {
                id: theirs.id + 1,
                frame_size,
                time: Duration::from_millis(40) * index as u32,
                wanted: Wanted::Everything,
            };
            faces.complete(face, &context).unwrap();
            check(index, theirs, face);
        }
    }
}

#[test]
fn faces_are_fitted_as_the_original_does() {
    let Some(folder) = folder() else {
        return;
    };
    for clip in CLIPS {
        let name = format!("{}/{}", clip.0, clip.1);
        let mut differences = Differences::default();
        replay(&folder, clip, |index, theirs, face| {
            let fit = face.fit.as_ref().expect("a fit");
            assert_eq!(fit.success, theirs.success, "{name}: frame {index}");
            assert_eq!(
                face.pose.is_some(),
                theirs.pnp_error <= 300.0,
                "{name}: frame {index}"
            );
            assert_eq!(
                face.features.is_some(),
                theirs.pnp_error <= 300.0,
                "{name}: frame {index}"
            );
            let turn = angle(theirs.quaternion, fit.quaternion);
            if index < ON_THE_WAY {
                differences.add("first turns", &[0.0], &[turn]);
                return;
            }
            differences.add("turn", &[0.0], &[turn]);
            differences.add("euler", &theirs.euler, &fit.euler);
            differences.add("translation", &theirs.translation, &fit.translation);
            differences.add("translation", &theirs.rotation, &fit.rotation);
            differences.add("error", &[theirs.pnp_error], &[fit.error]);
            differences.add("points", &theirs.pts_3d.concat(), &fit.points.concat());
            if let Some(features) = face.features.filter(|_| index >= LEARNED) {
                let recorded = Features::NAMES.map(|name| theirs.features[name]);
                differences.add("features", &recorded, &features.0);
                let openness = features.eye_openness();
                differences.add("eye openness", &theirs.eye_blink, &openness);
            }
        });
        differences.check(&name);
    }
}

/// The head's pose in the conventions of every engine, against another engine's.
#[test]
fn heads_turn_as_mediapipe_sees_them_turn() {
    let Some(folder) = folder() else {
        return;
    };
    for clip in &CLIPS[..2] {
        let theirs: Recording = recording::read(&folder, "mp0.10.21_tasks_video", clip.1);
        let mut differences = [vec![], vec![], vec![]];
        replay(&folder, *clip, |index, _, face| {
            let (Some(pose), [theirs]) = (face.pose, theirs.frames[index].faces.as_slice()) else {
                return;
            };
            let theirs = HeadPose {
                matrix: theirs.matrix,
            };
            let (ours, theirs) = (pose.euler_degrees(), theirs.euler_degrees());
            differences[0].push((ours.yaw - theirs.yaw).abs());
            differences[1].push((ours.pitch - theirs.pitch).abs());
            differences[2].push((ours.roll - theirs.roll).abs());
        });
        let differences = differences.map(|differences| mean(&differences));
        eprintln!(
            "{}: yaw, pitch, roll {differences:.2?}° from MediaPipe's",
            clip.1
        );
        let most = differences.into_iter().fold(0.0, f32::max);
        assert!(most <= MAX_MEDIAPIPE_DIFFERENCE, "{}", clip.1);
    }
}
