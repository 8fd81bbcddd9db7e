// SPDX-License-Identifier: MPL-2.0
//! One contract over every engine.

use crate::common::drawn;
use crate::common::engine as installed;
use crate::common::image;

use std::time::Duration;

use drawn::{Face, draw};
use facetrack::analyzer::{Analyzer, Tuning};
use facetrack::blendshape::BlendshapeSource;
use facetrack::engine::{Engine, EngineConfig, EngineKind, Frame};
use facetrack::image::{ImageView, PixelFormat};
use facetrack::observation::{Fields, Gaze, Observation};
use facetrack::report::ReportSource;
use facetrack::smoothing::OneEuro;
use facetrack::tracker::TrackerConfig;
use image::{FORMATS, Image};
use installed::{engine, look, look_at_rgb};

/// Every engine that can be had here.
fn engines() -> impl Iterator<Item = (EngineKind, Engine)> {
    EngineKind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind, engine(kind, &EngineConfig::default())?)))
}

/// The engines that look at pixels.
fn seeing_engines() -> impl Iterator<Item = (EngineKind, Engine)> {
    engines().filter(|(kind, _)| *kind != EngineKind::Scripted)
}

fn face_at(x: f64, y: f64, size: f64) -> Face {
    Face {
        x,
        y,
        size,
        half_roll: 0.05,
        jaw: 0.3,
        blink: 0.0,
    }
}

/// A walk over frames with and without a face.
fn walk(engine: &mut Engine) -> Vec<Vec<Observation>> {
    let size = (160, 120);
    (0..6u32)
        .map(|i| {
            let face = face_at(70.0 + 3.0 * f64::from(i), 60.0, 34.0);
            let faces: &[_] = if i == 3 { &[] } else { &[face] };
            let rgb = draw(size.0, size.1, faces);
            look_at_rgb(engine, size, &rgb, u64::from(i) * 40)
        })
        .collect()
}

fn assert_sound(kind: EngineKind, engine: &Engine, face: &Observation) {
    let info = &engine.info;
    let name = kind.name();
    let bbox = face.bbox;
    let mut numbers = vec![bbox.x, bbox.y, bbox.width, bbox.height];
    numbers.extend(face.key_points.iter().flat_map(|p| [p.x, p.y]));
    if let Some(landmarks) = &face.landmarks {
        assert_eq!(Some(landmarks.scheme), info.landmarks, "{name}");
        numbers.extend(landmarks.points.iter().flat_map(|p| [p.x, p.y, p.z]));
        assert_eq!(landmarks.points.len(), landmarks.scheme.count(), "{name}");
        numbers.extend(&landmarks.confidences);
        assert!(
            landmarks.confidences.is_empty()
                || landmarks.confidences.len() == landmarks.points.len(),
            "{name}"
        );
    }
    if let Some(blendshapes) = &face.blendshapes {
        assert_eq!(blendshapes.source(), info.blendshape_source, "{name}");
        let known = |channel| info.blendshapes.iter().any(|known| known == channel);
        assert!(blendshapes.names().iter().all(known), "{name}");
        // Values derived from landmarks may be absent for some faces. A network reports all its
        // values.
        if info.blendshape_source == BlendshapeSource::Measured {
            assert_eq!(blendshapes.names(), &info.blendshapes, "{name}");
        }
        assert_eq!(blendshapes.values().len(), blendshapes.names().len());
        numbers.extend(blendshapes.values());
    }
    if let Some(pose) = &face.pose {
        assert!(info.measures.contains(Fields::POSE), "{name}");
        numbers.extend(pose.matrix.iter().flatten());
    }
    if let Some(Gaze { right, left }) = face.gaze {
        assert!(info.measures.contains(Fields::GAZE), "{name}");
        numbers.extend([right, left].map(|pupil| pupil.confidence));
        numbers.extend([right, left].map(|pupil| pupil.position.x));
        numbers.extend([right, left].map(|pupil| pupil.position.y));
    }
    if let Some(features) = &face.features {
        assert!(info.measures.contains(Fields::FEATURES), "{name}");
        numbers.extend(features.0);
    }
    if let Some(fit) = &face.fit {
        assert!(info.measures.contains(Fields::FIT), "{name}");
        numbers.push(fit.error);
        numbers.extend(fit.quaternion);
        numbers.extend(fit.points.as_flattened());
        numbers.extend(fit.projected.iter().flat_map(|p| [p.x, p.y]));
    }
    if let Some(contour) = &face.secondary_landmarks {
        assert_eq!(Some(contour.scheme), info.secondary_landmarks, "{name}");
        assert_eq!(contour.points.len(), contour.scheme.count(), "{name}");
        numbers.extend(contour.points.iter().flat_map(|p| [p.x, p.y]));
    }
    if let Some(attributes) = face.attributes {
        assert!(info.measures.contains(Fields::ATTRIBUTES), "{name}");
        numbers.push(attributes.age);
    }
    if let Some(embedding) = &face.embedding {
        assert_eq!(embedding.len(), info.embedding, "{name}");
        numbers.extend(embedding.iter());
    }
    let is_fitted = info.measures.contains(Fields::MORPHABLE);
    assert_eq!(face.morphable.is_some(), is_fitted, "{name}");
    if let Some(Ok(fit)) = &face.morphable {
        numbers.extend([fit.origin.x, fit.origin.y, fit.scale, fit.residual]);
        numbers.extend(fit.shape.iter().chain(&fit.expression).chain(&fit.rotation));
        numbers.extend(fit.contour.iter().flat_map(|p| [p.x, p.y]));
        assert_eq!(fit.expression.len(), fit.expression_names.len(), "{name}");
    }
    assert!(numbers.iter().all(|n| n.is_finite()), "{name}: {face:?}");
    assert!(bbox.width > 0.0 && bbox.height > 0.0, "{name}: {bbox:?}");
    if let Some(confidence) = face.confidence {
        assert!((0.0..=1.0).contains(&confidence), "{name}: {confidence}");
    }
    assert!(
        face.key_points.len() == info.key_points || face.key_points.is_empty(),
        "{name}"
    );
}

#[test]
fn every_engine_has_its_name() {
    for (kind, engine) in engines() {
        assert_eq!(engine.info.name, kind.name());
    }
}

/// Even noise without a pattern: the high bytes of Marsaglia's 32-bit xorshift.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 24) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

#[test]
fn frames_without_a_face_hold_none() {
    for (kind, mut engine) in seeing_engines() {
        for (width, height) in [(1, 1), (64, 48), (320, 240), (16384, 40)] {
            let bytes = width * height * 3;
            let pictures = [
                vec![0; bytes],
                vec![128; bytes],
                vec![255; bytes],
                noise(bytes),
            ];
            for (time, picture) in pictures.iter().enumerate() {
                engine.reset();
                let faces = look_at_rgb(&mut engine, (width, height), picture, time as u64);
                let name = kind.name();
                assert!(
                    faces.is_empty(),
                    "{name}, {width}×{height}, picture {time}: {faces:?}"
                );
            }
        }
    }
}

#[test]
fn empty_frames_do_not_get_as_far_as_an_engine() {
    for (width, height) in [(0, 0), (0, 1), (1, 0)] {
        assert!(
            ImageView::rgb(width, height, &[]).is_err(),
            "{width}×{height}"
        );
    }
}

#[test]
fn frames_of_any_size_and_format_are_taken() {
    let sizes = [
        (1, 1),
        (1, 2),
        (2, 1),
        (3, 3),
        (17, 5),
        (16384, 2),
        (2, 16384),
        (257, 255),
    ];
    for (kind, mut engine) in engines() {
        for (index, (width, height)) in sizes.into_iter().enumerate() {
            let noise = noise(width * height * 3);
            for format in FORMATS {
                let image = Image::from_rgb(format, width, height, &noise);
                for face in look(&mut engine, image.view(), index as u64 * 40) {
                    assert_sound(kind, &engine, &face);
                }
            }
        }
    }
}

#[test]
fn a_change_of_size_while_following_a_face_is_survived() {
    for (kind, mut engine) in seeing_engines() {
        let rgb = draw(160, 120, &[face_at(73.0, 60.0, 34.0)]);
        let there = look_at_rgb(&mut engine, (160, 120), &rgb, 0);
        assert_eq!(there.len(), 1, "{}", kind.name());
        for (time, size) in [(40, (1, 1)), (80, (16, 4)), (120, (40, 30))] {
            let grey = vec![100; size.0 * size.1 * 3];
            for face in look_at_rgb(&mut engine, size, &grey, time) {
                assert_sound(kind, &engine, &face);
            }
        }
    }
}

#[test]
fn engines_are_deterministic_and_reset_forgets() {
    for (kind, mut first) in engines() {
        let Some(mut second) = engine(kind, &EngineConfig::default()) else {
            continue;
        };
        let once = walk(&mut first);
        assert_eq!(once, walk(&mut second), "{}", kind.name());
        for face in once.iter().flatten() {
            assert_sound(kind, &first, face);
        }
        // The script counts frames from the load, whatever the stream does.
        if kind != EngineKind::Scripted {
            first.reset();
            first.completer.reset_calibration();
            assert_eq!(once, walk(&mut first), "{}", kind.name());
        }
    }
}

/// Everything that completion needs of a frame travels with the faces that were found in it.
#[test]
fn frames_that_are_found_ahead_are_completed_as_one_by_one() {
    let pictures: Vec<_> = (0..6u32)
        .map(|i| draw(160, 120, &[face_at(70.0 + 3.0 * f64::from(i), 60.0, 34.0)]))
        .collect();
    let frame = |index: usize| Frame {
        image: ImageView::rgb(160, 120, &pictures[index]).unwrap(),
        time: Duration::from_millis(40 * index as u64),
    };
    let tuning = Tuning {
        smoothing: Some(OneEuro::default()),
        ..Tuning::default()
    };
    for kind in EngineKind::ALL {
        let analyzer = || {
            let engine = engine(kind, &EngineConfig::default())?;
            let tracker = TrackerConfig::default();
            Some(Analyzer::new(
                engine,
                tracker,
                tuning,
                ReportSource::default(),
            ))
        };
        let (Some(mut ahead), Some(mut in_turn)) = (analyzer(), analyzer()) else {
            continue;
        };
        let want: Vec<_> = (0..6)
            .map(|i| in_turn.analyze(&frame(i)).unwrap())
            .collect();
        let found: Vec<_> = (0..6).map(|i| ahead.find(&frame(i)).unwrap()).collect();
        for (found, want) in found.into_iter().zip(want) {
            assert_eq!(ahead.complete(found).unwrap(), want, "{}", kind.name());
        }
    }
}

#[test]
fn a_calibration_comes_back_and_nothing_else_is_taken_for_one() {
    for (kind, mut engine) in engines() {
        let name = kind.name();
        walk(&mut engine);
        let Some(calibration) = engine.completer.calibration() else {
            assert!(engine.completer.set_calibration("{}").is_err(), "{name}");
            continue;
        };
        engine.completer.reset_calibration();
        engine.completer.set_calibration(&calibration).expect(name);
        assert_eq!(
            engine.completer.calibration().as_ref(),
            Some(&calibration),
            "{name}"
        );
        for text in ["", "calibration", "null", "{\"faces\":", "[1e999]"] {
            assert!(
                engine.completer.set_calibration(text).is_err(),
                "{name}: {text:?}"
            );
            assert_eq!(
                engine.completer.calibration().as_ref(),
                Some(&calibration),
                "{name}"
            );
        }
    }
}

#[test]
fn every_format_shows_the_same_face() {
    let (width, height) = (201, 151);
    let rgb = draw(width, height, &[face_at(100.0, 75.0, 40.0)]);
    for (kind, mut engine) in seeing_engines() {
        let mut reference = None;
        for format in FORMATS {
            engine.reset();
            let image = Image::from_rgb(format, width, height, &rgb);
            let faces = look(&mut engine, image.view(), 0);
            assert_eq!(faces.len(), 1, "{} {format:?}", kind.name());
            let reference = reference.get_or_insert_with(|| faces[0].clone());
            let iou = faces[0].bbox.iou(&reference.bbox);
            // Grey lacks the colours that the networks were shown.
            let limit = if format == PixelFormat::Gray8 {
                0.8
            } else {
                0.95
            };
            assert!(iou > limit, "{} {format:?}: {iou}", kind.name());
        }
    }
}
