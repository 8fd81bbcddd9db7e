// SPDX-License-Identifier: MPL-2.0

use std::time::Duration;

use super::golden::Golden;
use super::*;
use crate::blendshape::BlendshapeSource;
use crate::engine::openseeface::Settings;
use crate::geometry::Rect;
use crate::observation::{Gaze, Landmark, LandmarkScheme, Landmarks, Pupil};

const FRAME: (usize, usize) = (640, 360);

fn faces(config: &EngineConfig) -> Faces {
    Faces::new(config, &LandmarkContract::FULL)
}

/// Frames of the recording with this name.
fn recorded(name: &str) -> Vec<Observation> {
    let sequences = Golden::read().sequences;
    let sequence = sequences.iter().find(|sequence| sequence.name == name);
    let frames = &sequence.expect("it was recorded").frames;
    frames
        .iter()
        .map(|frame| observation(&frame.places()))
        .collect()
}

fn observation(places: &Places) -> Observation {
    let place = |i: usize| Point::new(places[i].y as f32, places[i].x as f32);
    let points = (0..model::LANDMARKS).map(place);
    let points = points
        .map(|p| Landmark {
            x: p.x,
            y: p.y,
            z: 0.0,
        })
        .collect();
    let pupil = |i| Pupil {
        position: place(i),
        confidence: 0.9,
    };
    Observation {
        landmarks: Some(Landmarks::new(LandmarkScheme::OpenSeeFace66, points)),
        gaze: Some(Gaze {
            right: pupil(66),
            left: pupil(67),
        }),
        confidence: Some(0.9),
        ..Observation::from_bbox(Rect::default())
    }
}

fn face() -> Observation {
    recorded("converges at once").remove(0)
}

fn context(id: u32) -> Context {
    Context {
        id,
        frame_size: FRAME,
        time: Duration::ZERO,
        wanted: Wanted::Everything,
    }
}

/// A frame with one face.
fn see(faces: &mut Faces, face: &Observation) -> Observation {
    let mut face = face.clone();
    faces.begin_frame(std::slice::from_ref(&face));
    faces.complete(&mut face, &context(1)).unwrap();
    face
}

/// The same face with the mouth open and the eyes half closed.
fn grimace(face: &Observation) -> Observation {
    let mut face = face.clone();
    let points = &mut face.landmarks.as_mut().unwrap().points;
    for i in [63, 64, 65] {
        points[i].y += 20.0;
    }
    for i in [37, 38, 43, 44] {
        points[i].y += 5.0;
    }
    face
}

#[test]
fn a_face_is_measured_from_its_first_frame_on() {
    let mut faces = faces(&EngineConfig::default());
    let seen = see(&mut faces, &face());
    let fit = seen.fit.unwrap();
    assert!(fit.success && fit.error < 10.0);
    assert_eq!((fit.points.len(), fit.projected.len()), (70, 0));
    assert_eq!(
        fit.points[model::NOSE][..2],
        [0.0; 2],
        "the points are normalised"
    );
    assert!(seen.pose.is_some());
    assert_eq!(
        seen.features.unwrap().0,
        [0.0; 14],
        "nothing is known of its range"
    );
    let blendshapes = seen.blendshapes.unwrap();
    assert_eq!(blendshapes.values().len(), 8);
    assert_eq!(blendshapes.source(), BlendshapeSource::Derived);
}

#[test]
fn blendshapes_are_left_out_when_they_are_not_wanted() {
    let mut faces = faces(&EngineConfig::default());
    let mut seen = face();
    faces.begin_frame(std::slice::from_ref(&seen));
    let wanted = Wanted::AllButBlendshapes;
    let context = Context {
        wanted,
        ..context(1)
    };
    faces.complete(&mut seen, &context).unwrap();
    assert_eq!(seen.blendshapes, None);
    assert!(seen.features.is_some());
}

#[test]
fn a_bad_fit_tells_neither_pose_nor_features() {
    let mut faces = faces(&EngineConfig::default());
    let seen = see(&mut faces, &recorded("gets stuck")[0]);
    let fit = seen.fit.unwrap();
    assert!(fit.success && fit.error > 300.0);
    assert_eq!((seen.pose, seen.features), (None, None));
    let names = seen.blendshapes.unwrap().names().clone();
    assert_eq!(*names, ["jawOpen".to_owned()]);
}

#[test]
fn an_unsure_face_teaches_nothing() {
    let mut faces = faces(&EngineConfig::default());
    for (confidence, want) in [(Some(0.39), false), (Some(0.4), true), (None, true)] {
        let seen = see(
            &mut faces,
            &Observation {
                confidence,
                ..face()
            },
        );
        assert_eq!(seen.features.is_some(), want, "{confidence:?}");
        assert!(seen.pose.is_some());
        assert_eq!(seen.fit.unwrap().points[model::NOSE][0] == 0.0, want);
    }
}

#[test]
fn landmarks_that_are_no_numbers_are_no_fit() {
    let mut faces = faces(&EngineConfig::default());
    for value in [f32::NAN, f32::INFINITY, f32::MAX] {
        let mut broken = face();
        broken.landmarks.as_mut().unwrap().points[8].x = value;
        let seen = see(&mut faces, &broken);
        assert_eq!(seen.fit, Some(no_fit()), "{value}");
        assert_eq!((seen.pose, seen.features), (None, None));
    }
    assert!(see(&mut faces, &face()).features.is_some(), "it recovers");
}

#[test]
fn other_landmarks_are_left_alone() {
    let mut faces = faces(&EngineConfig::default());
    let mut other = face();
    other.landmarks.as_mut().unwrap().points.pop();
    assert_eq!(see(&mut faces, &other), other);
    let box_only = Observation::from_bbox(Rect::default());
    assert_eq!(see(&mut faces, &box_only), box_only);
}

#[test]
fn points_of_the_model_are_shown_when_asked_for() {
    for (pnp_points, contract, indices) in [
        (PnpPoints::None, LandmarkContract::FULL, &[][..]),
        (PnpPoints::Fitted, LandmarkContract::FULL, &model::CONTOUR),
        (
            PnpPoints::Fitted,
            LandmarkContract::TINY,
            &model::COARSE_CONTOUR,
        ),
        (
            PnpPoints::All,
            LandmarkContract::TINY,
            &std::array::from_fn::<usize, 66, _>(|i| i),
        ),
    ] {
        let openseeface = Settings {
            pnp_points,
            ..Settings::default()
        };
        let config = EngineConfig {
            openseeface,
            ..EngineConfig::default()
        };
        let seen = see(&mut Faces::new(&config, &contract), &face());
        let projected = seen.fit.unwrap().projected;
        assert_eq!(projected.len(), indices.len(), "{pnp_points:?}");
        let points = &seen.landmarks.unwrap().points;
        for (shown, &i) in projected.iter().zip(indices) {
            let distance = shown.distance(Point::new(points[i].x, points[i].y));
            assert!(distance < 15.0, "{pnp_points:?}: {i} is {distance} px away");
        }
    }
}

#[test]
fn a_face_without_gaze_has_a_fit_as_well() {
    let mut faces = faces(&EngineConfig::default());
    let seen = see(
        &mut faces,
        &Observation {
            gaze: None,
            ..face()
        },
    );
    assert!(seen.features.is_some());
    assert_eq!(seen.fit.unwrap().points.len(), 70);
}

#[test]
fn a_face_that_was_away_is_looked_for_anew() {
    let frames = recorded("gets stuck");
    let mut whole = faces(&EngineConfig::default());
    let errors: Vec<_> = frames
        .iter()
        .map(|frame| see(&mut whole, frame).fit.unwrap().error)
        .collect();
    assert!(errors[0] > 300.0 && errors[3] < 10.0, "{errors:?}");
    let leave: [fn(&mut Faces); 2] = [|faces| faces.begin_frame(&[]), Faces::reset];
    for leave in leave {
        leave(&mut whole);
        assert_eq!(see(&mut whole, &frames[0]).fit.unwrap().error, errors[0]);
    }
}

#[test]
fn pictures_stand_alone() {
    let config = EngineConfig {
        running_mode: RunningMode::Image,
        ..EngineConfig::default()
    };
    let mut faces = faces(&config);
    let (first, second) = (face(), grimace(&face()));
    let seen = see(&mut faces, &first);
    assert_eq!(seen.features, None);
    assert!(seen.pose.is_some());
    see(&mut faces, &second);
    assert_eq!(see(&mut faces, &first), seen);
}

#[test]
fn a_picture_that_stands_alone_needs_no_frame_before_it() {
    let config = EngineConfig {
        running_mode: RunningMode::Image,
        ..EngineConfig::default()
    };
    let mut pictures = faces(&config);
    for sequence in Golden::read().sequences {
        for frame in &sequence.frames {
            let mut seen = observation(&frame.places());
            pictures.begin_frame(std::slice::from_ref(&seen));
            let frame_size = sequence.size();
            let context = Context {
                frame_size,
                ..context(1)
            };
            pictures.complete(&mut seen, &context).unwrap();
            let error = seen.fit.unwrap().error;
            assert!(error < 10.0, "{}: {error}", sequence.name);
            assert!(seen.pose.is_some(), "{}", sequence.name);
        }
    }
}

#[test]
fn the_box_goes_with_landmarks_that_were_smoothed() {
    let mut faces = faces(&EngineConfig::default());
    let mut smoothed = face();
    smoothed.bbox = Rect::new(1.0, 2.0, 3.0, 4.0);
    let want = smoothed.landmarks.as_ref().unwrap().extent();
    assert_eq!(see(&mut faces, &smoothed).bbox, want);
}

/// A face that learned what a grimace is.
fn learned() -> Faces {
    let mut faces = faces(&EngineConfig::default());
    for _ in 0..10 {
        see(&mut faces, &face());
    }
    see(&mut faces, &grimace(&face()));
    faces
}

#[test]
fn what_was_learned_outlives_the_face() {
    let mut same = learned();
    same.begin_frame(&[]);
    let want = see(&mut same, &face()).features.unwrap();
    assert_ne!(want.0, [0.0; 14], "it learned something");
    let mut other = learned();
    other.begin_frame(&[]);
    other.forget(1);
    let mut seen = face();
    other.begin_frame(std::slice::from_ref(&seen));
    other.complete(&mut seen, &context(2)).unwrap();
    assert_eq!(seen.features, Some(want));
}

#[test]
fn a_calibration_goes_on_where_it_was_saved() {
    let mut before = learned();
    before.reset();
    let mut after = faces(&EngineConfig::default());
    after
        .set_calibration(&before.calibration().unwrap())
        .unwrap();
    for face in [face(), grimace(&face()), face()] {
        let want = see(&mut before, &face).features;
        assert_eq!(see(&mut after, &face).features, want);
    }
    assert_eq!(after.calibration(), before.calibration());

    let reason = after.set_calibration("{}").unwrap_err().to_string();
    assert!(reason.contains("not a calibration"), "{reason}");
    assert_eq!(after.calibration(), before.calibration(), "nothing changed");

    after.reset_calibration();
    assert_eq!(
        after.calibration(),
        faces(&EngineConfig::default()).calibration()
    );
    assert_eq!(
        see(&mut after, &grimace(&face())).features.unwrap().0,
        [0.0; 14]
    );
}

#[test]
fn a_calibration_of_more_faces_fills_the_slots_that_there_are() {
    let many = EngineConfig {
        max_faces: Some(3),
        ..EngineConfig::default()
    };
    let calibration = faces(&many).calibration().unwrap();
    let mut one = faces(&EngineConfig::default());
    let want = one.calibration();
    one.set_calibration(&calibration).unwrap();
    assert_eq!(one.calibration(), want);
}
