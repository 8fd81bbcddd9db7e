// SPDX-License-Identifier: MPL-2.0
//! The engine eos with its published files: faces that can't be fitted, and models that can't be
//! used.

use crate::common::drawn;
use crate::common::engine as installed;

use std::path::Path;
use std::time::Duration;

use drawn::{Face, draw};
use facetrack::engine::{
    Context, Engine, EngineConfig, EngineError, EngineKind, Frame, ModelRole, Thresholds, Wanted,
};
use facetrack::image::ImageView;
use facetrack::model::ModelError;
use facetrack::observation::{Fields, FitFailure, LandmarkScheme, Observation};
use installed::{engine as installed_engine, load, look_at_rgb};

const KIND: EngineKind = EngineKind::Eos;

const SIZE: (usize, usize) = (240, 200);

fn picture() -> Vec<u8> {
    let face = Face {
        x: 120.0,
        y: 100.0,
        size: 60.0,
        half_roll: 0.05,
        jaw: 0.3,
        blink: 0.0,
    };
    draw(SIZE.0, SIZE.1, &[face])
}

fn engine() -> Option<Engine> {
    installed_engine(KIND, &EngineConfig::default())
}

/// The face in the picture, before it is fitted.
fn measured(engine: &mut Engine) -> Observation {
    let pixels = picture();
    let frame = Frame {
        image: ImageView::rgb(SIZE.0, SIZE.1, &pixels).unwrap(),
        time: Duration::ZERO,
    };
    let found = engine.finder.find(&frame, &KIND.thresholds()).unwrap();
    let mut faces = found.faces;
    assert_eq!(faces.len(), 1);
    faces.remove(0)
}

fn context() -> Context {
    Context {
        id: 1,
        frame_size: SIZE,
        time: Duration::ZERO,
        wanted: Wanted::Everything,
    }
}

#[test]
fn a_drawn_face_is_fitted() {
    let Some(mut engine) = engine() else {
        return;
    };
    let measured = measured(&mut engine);
    let face = look_at_rgb(&mut engine, SIZE, &picture(), 40).remove(0);
    assert_eq!(
        (face.bbox, &face.key_points),
        (measured.bbox, &measured.key_points)
    );
    let fit = face.morphable.expect("tried").expect("a fit");
    assert_eq!((fit.shape.len(), fit.expression.len()), (63, 6));
    let points = |face: &Observation| face.landmarks.clone().expect("landmarks").points;
    let (ours, theirs) = (points(&measured), face.landmarks.expect("landmarks").points);
    assert_ne!(ours, theirs, "those of the mesh");
    let eyes = (ours[36].x - ours[45].x).hypot(ours[36].y - ours[45].y);
    let inner = 17..60;
    let apart = inner.map(|i| (ours[i].x - theirs[i].x).hypot(ours[i].y - theirs[i].y));
    let mean = apart.sum::<f32>() / 43.0 / eyes;
    assert!(mean < 0.1, "{mean}");
    let roll = face.pose.expect("a pose").euler_degrees().roll;
    assert!(
        (roll + 5.7).abs() < 5.0,
        "drawn with 2·atan(0.05) clockwise: {roll}"
    );
    assert!(
        face.blendshapes
            .is_some_and(|b| b.get("jawOpen") > Some(0.1))
    );
}

#[test]
fn landmarks_that_are_no_face_are_distinguished_from_those_that_are() {
    let Some(mut engine) = engine() else {
        return;
    };
    let face = measured(&mut engine);
    let doctored = |change: &dyn Fn(usize, &mut facetrack::observation::Landmark)| {
        let mut face = face.clone();
        let landmarks = face.landmarks.as_mut().expect("landmarks");
        let points = landmarks.points.iter_mut().enumerate();
        points.for_each(|(i, point)| change(i, point));
        face
    };
    for (name, doctored, failure, are_kept) in [
        (
            "a NaN",
            doctored(&|i, p| p.x = if i == 30 { f32::NAN } else { p.x }),
            FitFailure::NotFinite,
            false,
        ),
        (
            "a line",
            doctored(&|i, p| (p.x, p.y) = (50.0 + i as f32, 50.0 + i as f32)),
            FitFailure::Degenerate,
            true,
        ),
        (
            "a point",
            doctored(&|_, p| (p.x, p.y) = (50.0, 50.0)),
            FitFailure::Degenerate,
            true,
        ),
        (
            "outside",
            doctored(&|_, p| p.x += 500.0),
            FitFailure::OutOfFrame,
            true,
        ),
    ] {
        let mut ours = doctored.clone();
        engine
            .completer
            .complete(&mut ours, &context())
            .expect(name);
        assert_eq!(ours.morphable, Some(Err(failure)), "{name}");
        assert_eq!(ours.pose, None, "{name}");
        let kept = doctored.landmarks.filter(|_| are_kept);
        assert_eq!(ours.landmarks, kept, "{name}");
        assert_eq!(ours.bbox, face.bbox, "{name}");
    }
    let mut again = face;
    engine.completer.complete(&mut again, &context()).unwrap();
    assert!(matches!(again.morphable, Some(Ok(_))));
}

#[test]
fn a_face_without_presence_is_reported_as_yunet_sees_it() {
    let Some(mut engine) = engine() else {
        return;
    };
    let present = look_at_rgb(&mut engine, SIZE, &picture(), 0).remove(0);
    let thresholds = Thresholds {
        presence: 1.0,
        ..KIND.thresholds()
    };
    let pixels = picture();
    let frame = Frame {
        image: ImageView::rgb(SIZE.0, SIZE.1, &pixels).unwrap(),
        time: Duration::from_millis(40),
    };
    let absent = engine.look(&frame, &thresholds).unwrap().remove(0);
    let bare = Observation {
        landmarks: None,
        blendshapes: None,
        pose: None,
        morphable: Some(Err(FitFailure::NoLandmarks)),
        ..present
    };
    assert_eq!(absent, bare);
}

#[test]
fn all_files_are_on_record() {
    let Some(engine) = engine() else {
        return;
    };
    let info = engine.info;
    let names: Vec<&str> = info.models.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "face_detection_yunet_2023mar.onnx",
            "face_landmarker.task",
            "sfm_shape_3448.bin",
            "expression_blendshapes_3448.bin",
            "ibug_to_sfm.txt",
            "sfm_model_contours.json",
        ]
    );
    assert_eq!(info.landmarks, Some(LandmarkScheme::Ibug68));
    assert_eq!((info.key_points, info.blendshapes.len()), (5, 1));
    assert!(info.measures.contains(Fields::POSE) && info.temporal);
}

/// Error of loading the engine with `config`; `None`, with a message, if other files that it needs
/// are not installed.
fn refusal(config: &EngineConfig) -> Option<EngineError> {
    engine()?;
    Some(load(KIND, config).err().expect("it can't be loaded"))
}

#[test]
fn files_that_can_not_be_used_are_named_with_their_role() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("other.bin");
    std::fs::write(&text, "no model").unwrap();
    let text = text.as_path();
    let nowhere = Path::new("/nowhere/a.bin");
    type Setting = fn(&mut EngineConfig) -> &mut Option<std::path::PathBuf>;
    let settings: [(Setting, Option<ModelRole>); 3] = [
        (|config| &mut config.model, None),
        (
            |config| &mut config.detector_model,
            Some(ModelRole::Detector),
        ),
        (
            |config| &mut config.landmark_model,
            Some(ModelRole::Landmarks),
        ),
    ];
    for (setting, expected) in settings {
        for (path, name) in [(nowhere, "/nowhere/a.bin"), (text, "other.bin")] {
            let mut config = EngineConfig::default();
            *setting(&mut config) = Some(path.to_owned());
            let Some(error) = refusal(&config) else {
                return;
            };
            let (role, source) = match error {
                EngineError::Model(source) => (None, source),
                EngineError::Part { role, source } => (Some(role), source),
                other => panic!("{other}"),
            };
            assert_eq!(role, expected);
            assert!(!matches!(source, ModelError::Run { .. }), "{source}");
            assert!(source.to_string().contains(name), "{source}");
        }
    }
}
