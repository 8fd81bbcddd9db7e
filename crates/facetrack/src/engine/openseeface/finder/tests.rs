// SPDX-License-Identifier: MPL-2.0
//! Faces from frame to frame, over networks that answer from a script.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ndarray::{ArrayD, ArrayViewD, IxDyn};

use super::*;
use crate::engine::network::Network;
use crate::engine::openseeface::networks::{detector_contract, gaze_contract};
use crate::engine::openseeface::{LandmarkContract, Peaks, Settings, THRESHOLDS};
use crate::geometry::Point;
use crate::model::{Model, TensorSpec};
use crate::observation::Pupil;

const SIZE: (usize, usize) = (448, 448);

/// Answers of the networks.
struct Script {
    /// Cell, heat and radius of each face that the detector finds.
    detections: Vec<([usize; 2], f32, f32)>,
    /// Scores of the faces that are measured next.
    scores: VecDeque<f32>,
    /// The heat of pupils.
    pupils: f32,
    detector_runs: usize,
    landmark_runs: usize,
}

type Shared = Arc<Mutex<Script>>;

type Answer = fn(&mut Script) -> Vec<ArrayD<f32>>;

/// A network of the script.
struct Scripted(Shared, Answer);

impl Model for Scripted {
    fn inputs(&self) -> &[TensorSpec] {
        &[]
    }

    fn outputs(&self) -> &[TensorSpec] {
        &[]
    }

    fn run(&self, _: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError> {
        Ok((self.1)(&mut self.0.lock().unwrap()))
    }
}

fn detector(script: &mut Script) -> Vec<ArrayD<f32>> {
    script.detector_runs += 1;
    let mut maps = ArrayD::zeros(IxDyn(&[1, 2, 56, 56]));
    for ([column, row], heat, radius) in &script.detections {
        maps[[0, 0, *row, *column]] = *heat;
        maps[[0, 1, *row, *column]] = *radius;
    }
    vec![maps.clone(), maps]
}

/// A face that fills its window but for a margin, so that the next window is about the same. Its
/// eyes are level.
fn landmark_network(script: &mut Script) -> Vec<ArrayD<f32>> {
    script.landmark_runs += 1;
    let score = script.scores.pop_front().unwrap_or(0.0);
    let mut cells = ArrayD::from_elem(IxDyn(&[1, 28, 28, 3 * 66]), 0.5);
    cells.slice_mut(ndarray::s![.., .., .., ..66]).fill(-1.0);
    for point in 0..66 {
        let [row, column] = match point {
            0 => [3, 3],
            16 => [24, 24],
            36 => [10, 8],
            39 => [10, 12],
            42 => [10, 15],
            45 => [10, 19],
            _ => [14, 14],
        };
        cells[[0, row, column, point]] = score;
    }
    vec![cells]
}

/// Pupils in the middle of the eyes: cell 4 of 8.
fn gaze_network(script: &mut Script) -> Vec<ArrayD<f32>> {
    let mut maps = ArrayD::from_elem(IxDyn(&[2, 3, 8, 8]), 0.5);
    maps.slice_mut(ndarray::s![.., 0, .., ..]).fill(0.0);
    for eye in 0..2 {
        maps[[eye, 0, 4, 4]] = script.pupils;
    }
    vec![maps]
}

/// A detector that finds these faces, and networks that see them clearly.
fn script(detections: &[([usize; 2], f32, f32)]) -> Shared {
    Arc::new(Mutex::new(Script {
        detections: detections.to_vec(),
        scores: VecDeque::from([0.875; 100]),
        pupils: 0.75,
        detector_runs: 0,
        landmark_runs: 0,
    }))
}

fn finder(script: &Shared, max_faces: usize) -> FaceFinder {
    finder_in(RunningMode::Video, script, max_faces)
}

fn finder_in(running_mode: RunningMode, script: &Shared, max_faces: usize) -> FaceFinder {
    let network = |answer: Answer, contract| {
        let model = Box::new(Scripted(script.clone(), answer));
        Network::new(model, Path::new("scripted.onnx"))
            .with(contract)
            .unwrap()
    };
    let networks = Networks {
        detector: network(detector, detector_contract()),
        landmarks: network(landmark_network, LandmarkContract::FULL.tensors()),
        peaks: Peaks::of_maps(LandmarkContract::FULL),
        gaze: Some(network(gaze_network, gaze_contract())),
    };
    let config = EngineConfig {
        max_faces: Some(max_faces),
        running_mode,
        openseeface: Settings {
            scan_every: 3,
            discard_after: 2,
            ..Settings::default()
        },
        ..EngineConfig::default()
    };
    FaceFinder::new(networks, &config)
}

/// Returns the faces that are found in a gray frame.
fn see_in(finder: &mut FaceFinder, size: (usize, usize)) -> Vec<Observation> {
    see_with(finder, size, &THRESHOLDS)
}

fn see_with(
    finder: &mut FaceFinder,
    (width, height): (usize, usize),
    thresholds: &Thresholds,
) -> Vec<Observation> {
    let grey = vec![128; width * height * 3];
    let frame = Frame {
        image: ImageView::rgb(width, height, &grey).unwrap(),
        time: Duration::ZERO,
    };
    finder.find(&frame, thresholds).unwrap().faces
}

fn see(finder: &mut FaceFinder) -> Vec<Observation> {
    see_in(finder, SIZE)
}

/// A face in the middle of the image, and one in its corner.
const MIDDLE: ([usize; 2], f32, f32) = ([28, 28], 0.75, 0.25);
const CORNER: ([usize; 2], f32, f32) = ([8, 8], 0.875, 0.25);

#[test]
fn a_face_is_found_and_then_followed() {
    let script = script(&[MIDDLE]);
    let mut finder = finder(&script, 1);
    let found = see(&mut finder).remove(0);
    // The box is the extent of the landmarks: cells 3 to 24 of 27 in a window of 134×140 px from
    // (157, 155) on.
    let per_cell = |pixels: f32| pixels / 224.0 * 223.0 / 27.0;
    let (x, y) = (per_cell(134.0), per_cell(140.0));
    let bbox = Rect::new(157.0 + 3.0 * x, 155.0 + 3.0 * y, 21.0 * x, 21.0 * y);
    assert!(found.bbox.iou(&bbox) > 0.9999, "{:?} {bbox:?}", found.bbox);
    assert_eq!(found.origin, Origin::Detected);
    assert_eq!(found.confidence, Some(0.875));
    for _ in 0..5 {
        let followed = see(&mut finder).remove(0);
        assert_eq!(followed.origin, Origin::Tracked);
        assert_eq!(followed.confidence, Some(0.875));
        assert!(followed.bbox.iou(&found.bbox) < 1.0);
    }
    assert_eq!(script.lock().unwrap().detector_runs, 1);
    finder.reset();
    assert_eq!(see(&mut finder)[0], found);
}

#[test]
fn a_lost_face_is_looked_for_at_its_place_and_then_in_the_whole_frame() {
    let script = script(&[MIDDLE]);
    let mut finder = finder(&script, 1);
    // Scores at the place and where the detector finds the face, number of faces, and whether the
    // detector runs.
    for (frame, (scores, faces, searches)) in [
        (&[0.875][..], 1, 1),
        (&[0.5, 0.875], 1, 1),
        (&[0.875], 1, 0),
        (&[0.5, 0.5], 0, 1),
        (&[0.875], 1, 0),
        (&[0.5, 0.5], 0, 1),
        (&[0.5, 0.5], 0, 1),
        (&[0.5, 0.5], 0, 1),
        // The position is not searched any more.
        (&[0.875], 1, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let before = script.lock().unwrap().detector_runs;
        script.lock().unwrap().scores = scores.iter().copied().collect();
        assert_eq!(see(&mut finder).len(), faces, "{frame}");
        let script = script.lock().unwrap();
        assert_eq!(script.detector_runs - before, searches, "{frame}");
        assert!(script.scores.is_empty(), "{frame}");
    }
}

#[test]
fn one_lost_face_of_two_is_searched_for() {
    let script = script(&[MIDDLE, CORNER]);
    let mut finder = finder(&script, 2);
    assert_eq!(see(&mut finder).len(), 2);
    // The detector finds both faces; the first is also followed.
    script.lock().unwrap().scores = VecDeque::from([0.875, 0.5, 0.875, 0.875]);
    let mut origins: Vec<_> = see(&mut finder).iter().map(|face| face.origin).collect();
    origins.sort_by_key(|origin| *origin == Origin::Detected);
    assert_eq!(origins, [Origin::Tracked, Origin::Detected]);
    assert_eq!(script.lock().unwrap().detector_runs, 2);
}

#[test]
fn pictures_that_stand_alone_are_searched_each() {
    let script = script(&[MIDDLE]);
    let mut finder = finder_in(RunningMode::Image, &script, 1);
    for picture in 1..4 {
        let faces = see(&mut finder);
        assert_eq!(faces.len(), 1);
        assert_eq!(faces[0].origin, Origin::Detected);
        assert_eq!(script.lock().unwrap().detector_runs, picture);
    }
}

#[test]
fn with_fewer_faces_than_wanted_every_third_frame_is_searched() {
    let script = script(&[MIDDLE]);
    let mut finder = finder(&script, 2);
    let mut seen = Vec::new();
    for frame in 0..8 {
        if frame == 4 {
            script.lock().unwrap().detections.push(CORNER);
        }
        let faces = see(&mut finder).len();
        seen.push((faces, script.lock().unwrap().detector_runs));
    }
    assert_eq!(
        seen,
        [
            (1, 1),
            (1, 1),
            (1, 1),
            (1, 2),
            (1, 2),
            (1, 2),
            (2, 3),
            (2, 3)
        ]
    );
}

#[test]
fn the_best_faces_come_first_and_no_more_than_wanted() {
    for (max_faces, scores, want) in [
        (2, [0.75, 0.875], vec![(0.875, 1), (0.75, 0)]),
        (2, [0.875, 0.75], vec![(0.875, 0), (0.75, 1)]),
        (1, [0.75, 0.875], vec![(0.75, 0)]),
    ] {
        let script = script(&[MIDDLE, CORNER]);
        script.lock().unwrap().scores = scores.into();
        let faces = see(&mut finder(&script, max_faces));
        // The detector is surer of the corner, and is the first to choose.
        let is_middle = |face: &Observation| usize::from(face.bbox.x > 100.0);
        let got: Vec<_> = faces
            .iter()
            .map(|face| (face.confidence.unwrap(), is_middle(face)))
            .collect();
        assert_eq!(got, want);
    }
}

#[test]
fn a_followed_face_is_one_with_the_detection_of_it() {
    let script = script(&[MIDDLE]);
    let mut finder = finder(&script, 2);
    // The third frame after the first is searched too: what is followed, then what is found.
    for (scores, origin, confidence) in [
        ([0.75, 0.8125], Origin::Tracked, 0.75),
        ([0.6875, 0.8125], Origin::Detected, 0.8125),
    ] {
        finder.reset();
        script.lock().unwrap().scores = VecDeque::from([0.875; 3]);
        script.lock().unwrap().scores.extend(scores);
        for _ in 0..3 {
            assert_eq!(see(&mut finder).len(), 1);
        }
        let faces = see(&mut finder);
        assert_eq!(faces.len(), 1);
        assert_eq!(
            (faces[0].origin, faces[0].confidence),
            (origin, Some(confidence))
        );
    }
}

#[test]
fn thresholds_are_those_of_detector_and_landmarks() {
    for (detection, presence, runs, faces) in
        [(0.75, 0.874, 1, 1), (0.75, 0.875, 1, 0), (0.751, 0.5, 0, 0)]
    {
        let script = script(&[MIDDLE]);
        let mut finder = finder(&script, 1);
        let thresholds = Thresholds {
            detection,
            presence,
            ..THRESHOLDS
        };
        let found = see_with(&mut finder, SIZE, &thresholds);
        assert_eq!(found.len(), faces, "{detection} {presence}");
        assert_eq!(script.lock().unwrap().landmark_runs, runs);
    }
}

#[test]
fn answers_that_are_no_numbers_are_no_face() {
    for score in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let script = script(&[MIDDLE]);
        script.lock().unwrap().scores = VecDeque::from([score; 3]);
        let mut finder = finder(&script, 1);
        assert_eq!(see(&mut finder), [], "{score}");
    }
    for (heat, radius) in [
        (f32::NAN, 0.25),
        (f32::INFINITY, 0.25),
        (0.75, f32::NAN),
        (0.75, f32::MAX),
    ] {
        let script = script(&[([28, 28], heat, radius)]);
        assert_eq!(see(&mut finder(&script, 1)), [], "{heat} {radius}");
    }
}

#[test]
fn pupils_are_in_the_middle_of_the_eyes() {
    let script = script(&[MIDDLE]);
    let mut finder = finder(&script, 1);
    let face = see(&mut finder).remove(0);
    let gaze = face.gaze.unwrap();
    let points = &face.landmarks.unwrap().points;
    for (pupil, [a, b]) in [(gaze.right, [36, 39]), (gaze.left, [42, 45])] {
        let middle = Point::new((points[a].x + points[b].x) / 2.0, points[a].y);
        // An eye's picture is in whole pixels.
        assert!(
            pupil.position.distance(middle) < 1.5,
            "{pupil:?} {middle:?}"
        );
        assert_eq!(pupil.confidence, 0.75);
    }
    script.lock().unwrap().pupils = f32::NAN;
    let gaze = see(&mut finder)[0].gaze.unwrap();
    assert_eq!([gaze.right, gaze.left], [Pupil::default(); 2]);
    finder.networks[0].gaze = None;
    assert_eq!(see(&mut finder)[0].gaze, None);
}

#[test]
fn frames_change_their_size() {
    let script = script(&[MIDDLE]);
    let mut finder = finder(&script, 1);
    for (size, faces) in [
        (SIZE, 1),
        ((1, 1), 0),
        ((16384, 2), 0),
        ((3, 900), 0),
        ((640, 360), 1),
    ] {
        finder.reset();
        assert_eq!(see_in(&mut finder, size).len(), faces, "{size:?}");
        for other in [(1, 1), (40, 30), (1000, 20)] {
            see_in(&mut finder, other);
        }
    }
}
