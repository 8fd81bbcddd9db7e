// SPDX-License-Identifier: MPL-2.0
//! The engine over networks that answer from a script.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ndarray::{ArrayD, ArrayViewD, IxDyn};

use super::blendshapes::BlendshapeNetwork;
use super::geometry::FaceGeometry;
use super::*;
use crate::engine::{Context, Wanted};
use crate::image::ImageView;
use crate::model::{Model, ModelError, TensorSpec};
use crate::observation::{Fields, Landmark, LandmarkScheme, Landmarks};

/// Answers that all networks of a test share.
#[derive(Debug, Clone)]
struct Script {
    /// Centres of the detections, units of the letterbox.
    detections: Vec<(f32, f32)>,
    presence_logit: f32,
    /// A coordinate of the landmark network's answer.
    landmark: fn(usize) -> f32,
    blendshape: f32,
    detector_runs: usize,
    landmark_runs: usize,
}

type Shared = Arc<Mutex<Script>>;

type Answer = Box<dyn Fn(&mut Script) -> Vec<ArrayD<f32>> + Send + Sync>;

/// A network of the script.
struct Scripted {
    inputs: [TensorSpec; 1],
    answer: Answer,
    script: Shared,
}

impl Model for Scripted {
    fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    fn outputs(&self) -> &[TensorSpec] {
        &[]
    }

    fn run(&self, _: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError> {
        Ok((self.answer)(&mut self.script.lock().unwrap()))
    }
}

fn scripted(
    script: &Shared,
    shape: &[usize],
    answer: impl Fn(&mut Script) -> Vec<ArrayD<f32>> + Send + Sync + 'static,
) -> Box<dyn Model> {
    let shape = shape.iter().copied().map(Some).collect();
    let name = "input".to_owned();
    Box::new(Scripted {
        inputs: [TensorSpec { name, shape }],
        answer: Box::new(answer),
        script: script.clone(),
    })
}

fn tensor(shape: &[usize], values: Vec<f32>) -> ArrayD<f32> {
    ArrayD::from_shape_vec(IxDyn(shape), values).unwrap()
}

fn detector(script: &mut Script) -> Vec<ArrayD<f32>> {
    script.detector_runs += 1;
    let (mut boxes, mut scores) = (vec![0.0; 896 * 16], vec![-100.0; 896]);
    let centers = anchors::centers();
    for (slot, (x, y)) in script.detections.iter().enumerate() {
        let (dx, dy) = (x - centers[slot].x, y - centers[slot].y);
        let values = &mut boxes[slot * 16..][..16];
        values[..4].copy_from_slice(&[dx * 128.0, dy * 128.0, 25.6, 25.6]);
        values[4..8].copy_from_slice(&[dx * 128.0 - 5.0, dy * 128.0, dx * 128.0 + 5.0, dy * 128.0]);
        scores[slot] = 3.0 - slot as f32;
    }
    vec![tensor(&[1, 896, 16], boxes), tensor(&[1, 896, 1], scores)]
}

fn landmark_network(script: &mut Script) -> Vec<ArrayD<f32>> {
    script.landmark_runs += 1;
    vec![
        tensor(&[1, 1, 1, 1434], (0..1434).map(script.landmark).collect()),
        tensor(&[1, 1, 1, 1], vec![script.presence_logit]),
    ]
}

/// A face that fills two thirds of its region, so that the next region is the same.
fn steady(index: usize) -> f32 {
    let (point, axis) = (index / 3, index % 3);
    let third = 256.0 / 6.0;
    match (point, axis) {
        (_, 2) => 0.0,
        (33, 0) => third,
        (263, 0) => 256.0 - third,
        (10, 1) => third,
        (152, 1) => 256.0 - third,
        _ => 128.0,
    }
}

fn script(detections: &[(f32, f32)]) -> Shared {
    Arc::new(Mutex::new(Script {
        detections: detections.to_vec(),
        presence_logit: 5.0,
        landmark: steady,
        blendshape: 0.25,
        detector_runs: 0,
        landmark_runs: 0,
    }))
}

/// Path of the networks, for messages.
fn path() -> &'static Path {
    Path::new("scripted")
}

/// An engine with the networks of the script.
fn assembled(script: &Shared, geometry: Option<FaceGeometry>, config: &EngineConfig) -> Engine {
    let face_detector = scripted(script, &[1, 3, 128, 128], detector);
    let landmarks = scripted(script, &[1, 3, 256, 256], landmark_network);
    let blendshapes = scripted(script, &[1, 146, 2], |script| {
        vec![tensor(&[52], vec![script.blendshape; 52])]
    });
    let reader = MeshReader {
        blendshapes: vec![BlendshapeNetwork::new(blendshapes, path()).unwrap()],
        geometry,
    };
    let detector = Detector::new(face_detector, path()).unwrap();
    let landmarks = LandmarkDetector::new(landmarks, path()).unwrap();
    assemble(detector, landmarks, reader, Vec::new(), config)
}

fn canonical_face() -> FaceGeometry {
    FaceGeometry::from_metadata(&geometry::tests::metadata_bytes()).unwrap()
}

fn engine(script: &Shared, running_mode: RunningMode, max_faces: usize) -> Engine {
    let config = EngineConfig {
        running_mode,
        max_faces: Some(max_faces),
        ..EngineConfig::default()
    };
    let engine = assembled(script, Some(canonical_face()), &config);
    let mut script = script.lock().unwrap();
    (script.detector_runs, script.landmark_runs) = (0, 0);
    engine
}

fn see(engine: &mut Engine, frame: u64) -> Vec<Observation> {
    see_with(engine, frame, &ENTRY.thresholds)
}

fn see_with(engine: &mut Engine, frame: u64, thresholds: &Thresholds) -> Vec<Observation> {
    // Each frame shows another picture: the detector does not run again on the same input.
    let pixels = [frame as u8; 200 * 100 * 3];
    let frame = Frame {
        image: ImageView::rgb(200, 100, &pixels).unwrap(),
        time: Duration::from_millis(frame * 40),
    };
    engine.finder.find(&frame, thresholds).unwrap().faces
}

fn runs(script: &Shared) -> (usize, usize) {
    let script = script.lock().unwrap();
    (script.detector_runs, script.landmark_runs)
}

#[test]
fn a_followed_face_is_not_detected_again() {
    let script = script(&[(0.5, 0.5)]);
    let mut engine = engine(&script, RunningMode::Video, 1);
    let first = see(&mut engine, 0);
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].origin, Origin::Detected);
    assert!(first[0].confidence.unwrap() > 0.99);
    // The detection is a fifth of 200 px wide, the region half as much again, the face two thirds
    // of that.
    let bbox = first[0].bbox;
    assert!(
        (bbox.x - 80.0).abs() < 0.01 && (bbox.width - 40.0).abs() < 0.01,
        "{bbox:?}"
    );
    let second = see(&mut engine, 1);
    assert_eq!(second[0].origin, Origin::Tracked);
    assert!(second[0].bbox.iou(&bbox) > 0.99);
    assert_eq!(runs(&script), (1, 2));
}

#[test]
fn the_detector_runs_while_faces_are_missing_and_replaces_those_it_finds_again() {
    let script = script(&[(0.25, 0.5), (0.75, 0.5)]);
    let mut engine = engine(&script, RunningMode::Video, 3);
    for frame in 0..3 {
        let faces = see(&mut engine, frame);
        assert_eq!(faces.len(), 2, "frame {frame}");
        assert!(faces.iter().all(|face| face.origin == Origin::Detected));
    }
    assert_eq!(runs(&script), (3, 6));
    script.lock().unwrap().detections.clear();
    let faces = see(&mut engine, 3);
    assert_eq!(faces.len(), 2);
    assert!(faces.iter().all(|face| face.origin == Origin::Tracked));
}

#[test]
fn faces_that_have_met_are_followed_by_their_landmarks_for_a_while() {
    let script = script(&[(0.4, 0.5), (0.6, 0.5)]);
    let mut engine = engine(&script, RunningMode::Video, 3);
    let mut origins = |frame| {
        let faces = see(&mut engine, frame);
        let origins: Vec<_> = faces.iter().map(|face| face.origin).collect();
        origins
    };
    let both = |origin| vec![origin; 2];
    assert_eq!(origins(0), both(Origin::Detected));
    assert_eq!(origins(1), both(Origin::Tracked));
    script.lock().unwrap().presence_logit = -0.1;
    assert!(origins(2).is_empty());
    let mut apart = script.lock().unwrap();
    (apart.detections, apart.presence_logit) = (vec![(0.2, 0.5), (0.8, 0.5)], 5.0);
    drop(apart);
    assert_eq!(
        origins(3),
        both(Origin::Detected),
        "they are apart from all"
    );
    // The last meeting was in frame 2.
    assert_eq!(origins(102), both(Origin::Tracked));
    assert_eq!(origins(103), both(Origin::Detected));
}

#[test]
fn image_mode_detects_in_every_frame() {
    let script = script(&[(0.25, 0.5), (0.75, 0.5)]);
    let mut engine = engine(&script, RunningMode::Image, 1);
    for frame in 0..3 {
        let faces = see(&mut engine, frame);
        assert_eq!(faces.len(), 1, "no more than asked for");
        assert_eq!(faces[0].origin, Origin::Detected);
    }
    assert_eq!(runs(&script), (3, 3));
}

#[test]
fn a_face_without_presence_is_dropped_and_looked_for_again() {
    let script = script(&[(0.5, 0.5)]);
    let mut engine = engine(&script, RunningMode::Video, 1);
    assert_eq!(see(&mut engine, 0).len(), 1);
    script.lock().unwrap().presence_logit = -0.1;
    assert!(see(&mut engine, 1).is_empty());
    script.lock().unwrap().presence_logit = 5.0;
    assert_eq!(see(&mut engine, 2)[0].origin, Origin::Detected);
}

#[test]
fn thresholds_may_change_between_frames() {
    let script = script(&[(0.5, 0.5)]);
    let mut engine = engine(&script, RunningMode::Image, 1);
    let stricter = |detection, presence| Thresholds {
        detection,
        presence,
        ..Thresholds::DEFAULT
    };
    // The detection's score is sigmoid(3) = 0.953, the presence sigmoid(5) = 0.993.
    for (thresholds, faces) in [
        (stricter(0.95, 0.99), 1),
        (stricter(0.96, 0.99), 0),
        (stricter(0.95, 0.994), 0),
    ] {
        let found = see_with(&mut engine, 0, &thresholds);
        assert_eq!(found.len(), faces, "{thresholds:?}");
    }
}

#[test]
fn reset_forgets_the_faces_followed() {
    let script = script(&[(0.5, 0.5)]);
    let mut engine = engine(&script, RunningMode::Video, 1);
    see(&mut engine, 0);
    engine.reset();
    assert_eq!(see(&mut engine, 1)[0].origin, Origin::Detected);
}

#[test]
fn answers_that_are_no_faces_are_dropped() {
    type Answers = fn(usize) -> f32;
    let bad: [(&str, Answers); 6] = [
        ("one place", |_| 128.0),
        ("no numbers", |_| f32::NAN),
        ("one infinity", |i| {
            if i == 700 { f32::INFINITY } else { steady(i) }
        }),
        ("too far", |i| steady(i) * 1e37),
        ("where neighbouring pixels cannot be distinguished", |i| {
            steady(i) * 1e6
        }),
        ("one depth of that kind", |i| {
            if i == 701 { 1e30 } else { steady(i) }
        }),
    ];
    for (name, landmark) in bad {
        let script = script(&[(0.5, 0.5)]);
        let mut engine = engine(&script, RunningMode::Video, 1);
        script.lock().unwrap().landmark = landmark;
        assert!(see(&mut engine, 0).is_empty(), "{name}");
        script.lock().unwrap().landmark = steady;
        assert_eq!(see(&mut engine, 1).len(), 1, "{name}");
    }
    let script = script(&[
        (f32::NAN, 0.5),
        (0.5, f32::INFINITY),
        (1e30, 0.5),
        (0.5, 0.5),
    ]);
    let mut engine = engine(&script, RunningMode::Image, 4);
    let faces = see(&mut engine, 0);
    assert_eq!(faces.len(), 1);
}

/// The first face of a frame of 200×100.
fn context(wanted: Wanted) -> Context {
    Context {
        id: 1,
        frame_size: (200, 100),
        time: Duration::ZERO,
        wanted,
    }
}

#[test]
fn complete_derives_from_the_landmarks_given() {
    let script = script(&[(0.5, 0.5)]);
    let mut engine = engine(&script, RunningMode::Video, 1);
    let mut face = see(&mut engine, 0).remove(0);
    assert_eq!((&face.blendshapes, &face.pose), (&None, &None));
    for point in &mut face.landmarks.as_mut().unwrap().points {
        point.x += 7.0;
    }
    let before = face.bbox;
    engine
        .completer
        .complete(&mut face, &context(Wanted::AllButBlendshapes))
        .unwrap();
    assert!((face.bbox.x - before.x - 7.0).abs() < 1e-4);
    assert_eq!(face.blendshapes, None);
    engine
        .completer
        .complete(&mut face, &context(Wanted::Everything))
        .unwrap();
    assert_eq!(
        face.blendshapes.as_ref().unwrap().get("jawOpen"),
        Some(0.25)
    );

    script.lock().unwrap().blendshape = f32::NAN;
    engine
        .completer
        .complete(&mut face, &context(Wanted::Everything))
        .unwrap();
    assert_eq!(face.blendshapes, None, "absent, not made up");
}

#[test]
fn faces_that_are_not_this_engines_are_left_alone() {
    let script = script(&[]);
    let mut engine = engine(&script, RunningMode::Video, 1);
    let mut bare = Observation::from_bbox(Default::default());
    engine
        .completer
        .complete(&mut bare, &context(Wanted::Everything))
        .unwrap();
    let mut short = Observation {
        landmarks: Some(Landmarks::new(
            LandmarkScheme::MediaPipe478,
            vec![Landmark::default(); 5],
        )),
        ..bare
    };
    engine
        .completer
        .complete(&mut short, &context(Wanted::Everything))
        .unwrap();
    assert_eq!((short.blendshapes, short.pose), (None, None));
}

#[test]
fn what_is_measured_is_known_before_the_first_frame() {
    let script = script(&[]);
    let engine = |geometry| assembled(&script, geometry, &EngineConfig::default());
    let info = engine(Some(canonical_face())).info;
    assert_eq!(info.blendshapes.len(), 52);
    assert!(info.measures == Fields::POSE && info.temporal);
    assert!(engine(None).info.measures.is_empty());
}

#[test]
fn broken_networks_are_refused() {
    let script = script(&[]);
    let at = |shape: &[usize], answer: fn(&mut Script) -> Vec<ArrayD<f32>>| {
        scripted(&script, shape, answer)
    };
    let of_detector = |model| Detector::new(model, path()).err();
    for (name, error, told) in [
        (
            "another input size",
            of_detector(at(&[1, 3, 192, 192], detector)),
            "[1, 3, 128, 128]",
        ),
        (
            "another rank",
            of_detector(at(&[3, 128, 128], detector)),
            "face detector",
        ),
        (
            "networks mixed up",
            of_detector(at(&[1, 3, 128, 128], landmark_network)),
            "face detector",
        ),
        (
            "no output",
            LandmarkDetector::new(at(&[1, 3, 256, 256], |_| Vec::new()), path()).err(),
            "face landmarks detector",
        ),
        (
            "blendshapes of another model",
            BlendshapeNetwork::new(
                at(&[1, 146, 2], |_| vec![tensor(&[53], vec![0.0; 53])]),
                path(),
            )
            .err(),
            "face blendshapes",
        ),
    ] {
        let error = error.expect(name).to_string();
        assert!(
            error.contains("scripted") && error.contains(told),
            "{name}: {error}"
        );
    }
}

#[test]
fn a_network_that_changes_its_outputs_is_an_error() {
    let script = script(&[(0.5, 0.5)]);
    let shrinking = scripted(&script, &[1, 3, 128, 128], |script| {
        let mut outputs = detector(script);
        if script.detector_runs > 1 {
            outputs.truncate(1);
        }
        outputs
    });
    let mut detector = Detector::new(shrinking, Path::new("scripted")).unwrap();
    let pixels = [0; 12];
    let image = ImageView::rgb(2, 2, &pixels).unwrap();
    let error = detector.detect(&image, 0.5).unwrap_err();
    assert!(matches!(error, ModelError::Run { .. }), "{error}");
}
