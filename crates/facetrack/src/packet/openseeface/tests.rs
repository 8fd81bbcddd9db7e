// SPDX-License-Identifier: MPL-2.0

use std::time::Duration;

use super::*;
use crate::geometry::{Point, Rect};
use crate::observation::{FitFailure, Landmark};

const ID: i32 = -3;

const FRAME: Frame = Frame {
    time_of_day: 1_700_000_000.125,
    running_time: Duration::ZERO,
    rate: (25, 1),
    width: 1280,
    height: 720,
};

/// A face with everything, every number of it another one.
fn face() -> Observation {
    let pupil = |x, y, confidence| Pupil {
        position: Point::new(x, y),
        confidence,
    };
    let points = (0..66).map(|i| Landmark {
        x: 100.0 + i as f32,
        y: 300.0 + i as f32,
        z: 0.0,
    });
    Observation {
        landmarks: Some(Landmarks {
            confidences: (0..66).map(|i| i as f32 / 100.0).collect(),
            ..Landmarks::new(LandmarkScheme::OpenSeeFace66, points.collect())
        }),
        gaze: Some(Gaze {
            right: pupil(401.5, 402.5, 0.75),
            left: pupil(403.5, 404.5, 0.875),
        }),
        fit: Some(ModelFit {
            success: true,
            error: 1.5,
            quaternion: [0.1, 0.2, 0.3, 0.4],
            euler: [-170.0, 2.0, 93.0],
            rotation: [7.0; 3],
            translation: [-0.5, 0.25, -11.0],
            points: (0..70).map(|i| [i as f32, 0.5, -0.25]).collect(),
            projected: vec![Point::new(9.0, 9.0)],
        }),
        features: Some(Features(std::array::from_fn(|i| -(i as f32) / 16.0))),
        ..Observation::from_bbox(Rect::new(1.0, 2.0, 3.0, 4.0))
    }
}

fn packet(face: &Observation) -> Vec<u8> {
    let packet = encode(face, ID, &FRAME).expect("a packet");
    assert_eq!(packet.len(), SIZE);
    packet
}

fn float(packet: &[u8], at: usize) -> f32 {
    f32::from_le_bytes(packet[at..at + 4].try_into().expect("four bytes"))
}

/// Each number's place as `OpenSee.cs` reads it.
#[test]
fn every_number_is_in_its_place() {
    let packet = packet(&face());
    assert_eq!(packet[..8], 1_700_000_000.125f64.to_le_bytes());
    assert_eq!(packet[8..12], [0xfd, 0xff, 0xff, 0xff]);
    assert_eq!(packet[28], 1);
    let (points, model, features) = (345, 889, 1729);
    let cases = [
        ("width", 12, 1280.0),
        ("height", 16, 720.0),
        ("right eye", 20, 1.0 - 1.0 / 16.0),
        ("left eye", 24, 1.0),
        ("error", 29, 1.5),
        ("quaternion x", 33, 0.1),
        ("quaternion w", 45, 0.4),
        ("first angle", 49, -170.0),
        ("last angle", 57, 93.0),
        ("first of translation", 61, -0.5),
        ("last of translation", 69, -11.0),
        ("first score", 73, 0.0),
        ("last landmark's score", 73 + 65 * 4, 0.65),
        ("right pupil's score", 73 + 66 * 4, 0.75),
        ("left pupil's score", 73 + 67 * 4, 0.875),
        ("first x", points, 100.0),
        ("first y", points + 4, 300.0),
        ("last landmark's y", points + 65 * 8 + 4, 365.0),
        ("right pupil's x", points + 66 * 8, 401.5),
        ("right pupil's y", points + 66 * 8 + 4, 402.5),
        ("left pupil's x", points + 67 * 8, 403.5),
        ("left pupil's y", points + 67 * 8 + 4, 404.5),
        ("second model point's x", model + 12, 1.0),
        ("its y", model + 16, -0.5),
        ("its z", model + 20, 0.25),
        ("last model point's x", model + 69 * 12, 69.0),
        ("eye_r", features + 4, -1.0 / 16.0),
        ("mouth_wide", features + 13 * 4, -13.0 / 16.0),
    ];
    for (name, at, value) in cases {
        assert_eq!(float(&packet, at), value, "{name}");
    }
}

#[test]
fn what_was_not_measured_is_what_receivers_take_for_nothing() {
    let bare = packet(&Observation {
        gaze: None,
        features: None,
        ..face()
    });
    for at in [20, 24] {
        assert_eq!(float(&bare, at), 1.0, "an open eye");
    }
    let pupils = [73 + 66 * 4, 73 + 67 * 4, 345 + 66 * 8, 345 + 67 * 8 + 4];
    let features = (0..14).map(|i| 1729 + i * 4);
    for at in pupils.into_iter().chain(features) {
        assert_eq!(float(&bare, at), 0.0, "at {at}");
    }
}

#[test]
fn a_failed_fit_is_recognised_by_a_large_error() {
    let mut face = face();
    face.fit = Some(ModelFit {
        success: false,
        error: 0.0,
        quaternion: [0.0; 4],
        euler: [0.0; 3],
        rotation: [0.0; 3],
        translation: [0.0; 3],
        points: Vec::new(),
        projected: Vec::new(),
    });
    let packet = packet(&face);
    assert_eq!((packet[28], float(&packet, 29)), (0, 99999.0));
    assert!((889..1729).step_by(4).all(|at| float(&packet, at) == 0.0));
    assert_eq!(float(&packet, 345), 100.0, "landmarks are there");
}

/// Invalid values that another element may have attached to a buffer.
#[test]
fn numbers_too_few_or_too_many_do_not_move_the_others() {
    for (scores, points) in [(0, 0), (3, 69), (67, 71)] {
        let mut face = face();
        let landmarks = face.landmarks.as_mut().expect("landmarks");
        landmarks.confidences.resize(scores, 0.5);
        let fit = face.fit.as_mut().expect("a fit");
        fit.points.resize(points, [1.0; 3]);
        let packet = packet(&face);
        assert_eq!(float(&packet, 73 + 66 * 4), 0.75, "right pupil's score");
        assert_eq!(float(&packet, 1729 + 4), -1.0 / 16.0, "eye_r");
    }
}

#[test]
fn a_face_of_another_kind_has_no_packet() {
    let others = [
        Observation {
            landmarks: None,
            ..face()
        },
        Observation {
            fit: None,
            ..face()
        },
        Observation {
            landmarks: Some(Landmarks::new(
                LandmarkScheme::MediaPipe478,
                vec![Landmark::default(); 478],
            )),
            ..face()
        },
        // As eos reports one.
        Observation {
            landmarks: Some(Landmarks::new(
                LandmarkScheme::Ibug68,
                vec![Landmark::default(); 68],
            )),
            fit: None,
            morphable: Some(Err(FitFailure::Degenerate)),
            ..face()
        },
        Observation {
            landmarks: Some(Landmarks::new(
                LandmarkScheme::OpenSeeFace66,
                vec![Landmark::default(); 65],
            )),
            ..face()
        },
    ];
    for other in others {
        assert_eq!(encode(&other, ID, &FRAME), None);
    }
}
