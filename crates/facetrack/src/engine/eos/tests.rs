// SPDX-License-Identifier: MPL-2.0
//! The engine over networks that answer the same of every image, and over a small model.

use std::path::Path;
use std::time::Duration;

use ndarray::{ArrayD, ArrayViewD, IxDyn};

use super::*;
use crate::blendshape::Blendshapes;
use crate::engine::Frame;
use crate::geometry::Rect;
use crate::image::ImageView;
use crate::model::{Model, ModelError, TensorSpec};
use crate::morphable::{Expression, LandmarkMapping, ModelContours, ShapeModel};
use crate::observation::{Landmark, MorphableFit};

const SIZE: (usize, usize) = (64, 48);

/// Answers with what `answer` makes of its input's shape.
struct Fake<F> {
    inputs: Vec<TensorSpec>,
    answer: F,
}

impl<F: Fn(&[usize]) -> Vec<ArrayD<f32>> + Send + Sync> Model for Fake<F> {
    fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    fn outputs(&self) -> &[TensorSpec] {
        &[]
    }

    fn run(&self, inputs: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError> {
        Ok((self.answer)(inputs[0].shape()))
    }
}

/// YuNet that sees a face in the first cell of stride 8.
fn detector() -> Detector {
    let answer = |shape: &[usize]| {
        let outputs = [8, 16, 32].map(|stride| {
            let shape = [1, 16, shape[2] / stride, shape[3] / stride];
            ArrayD::from_elem(IxDyn(&shape), -20.0)
        });
        let mut outputs = Vec::from(outputs);
        for channel in 0..16 {
            outputs[0][[0, channel, 0, 0]] = 1.0;
        }
        outputs
    };
    let inputs = Vec::new();
    let model = Box::new(Fake { inputs, answer });
    Detector::new(model, Path::new("fake.onnx"), &EngineConfig::default()).unwrap()
}

/// MediaPipe's network that sees the vertex i at (i / 2, 40), with the presence of this logit.
fn landmark_network(presence: f32) -> LandmarkDetector {
    let answer = move |_: &[usize]| {
        let points = (0..478).flat_map(|i| [i as f32 / 2.0, 40.0, 0.0]);
        let points = ArrayD::from_shape_vec(IxDyn(&[1, 1434]), points.collect());
        vec![points.unwrap(), ArrayD::from_elem(IxDyn(&[1, 1]), presence)]
    };
    let inputs = vec![TensorSpec {
        name: "input".to_owned(),
        shape: [1, 3, 256, 256].map(Some).into(),
    }];
    LandmarkDetector::new(Box::new(Fake { inputs, answer }), Path::new("fake.task")).unwrap()
}

/// A cloud with a vertex for each landmark, mm, whose jaw can open and which can be wider.
fn model() -> FaceModel {
    let vertex = |i: usize| {
        let angle = i as f32 * 2.4;
        let reach = 8.0 + i as f32 / 2.0;
        [
            reach * angle.cos(),
            -reach * angle.sin(),
            6.0 * (i as f32).cos(),
        ]
    };
    let mean: Vec<_> = (0..68).map(vertex).collect();
    let basis = mean
        .iter()
        .flat_map(|[x, ..]| [x / 10.0, 0.0, 0.0])
        .collect();
    let offset = |i: usize| [0.0, if (55..60).contains(&i) { -5.0 } else { 0.0 }, 0.0];
    let inner = (8..9).chain(17..60).chain(61..64).chain(65..68);
    FaceModel::new(
        ShapeModel {
            mean,
            components: 1,
            basis,
            triangles: vec![[20, 40, 60], [40, 20, 50]],
            texture_coordinates: Vec::new(),
        },
        vec![Expression {
            name: "surprise".to_owned(),
            offsets: (0..68).map(offset).collect(),
        }],
        LandmarkMapping {
            vertices: inner.map(|i| (i, i)).collect(),
            right_contour: (0..8).collect(),
            left_contour: (9..17).collect(),
        },
        ModelContours {
            right: (0..8).collect(),
            left: (9..17).collect(),
        },
    )
    .unwrap()
}

/// The mean face of the model, larger by `width` sideways, from the front in the middle of a frame
/// of [`SIZE`].
fn seen(width: f32) -> Vec<Landmark> {
    let model = model();
    let vertices = model.shape().mean.iter();
    let place = |[x, y, z]: &[f32; 3]| Landmark {
        x: 32.0 + x * width / 2.0,
        y: 24.0 - y / 2.0,
        z: -z / 2.0,
    };
    vertices.map(place).collect()
}

fn face(points: Vec<Landmark>) -> Observation {
    Observation {
        landmarks: Some(Landmarks::new(LandmarkScheme::Ibug68, points)),
        ..Observation::from_bbox(Rect::new(5.0, 6.0, 40.0, 30.0))
    }
}

fn engine_with(config: &EngineConfig, presence: f32) -> Engine {
    let network = landmark_network(presence);
    assemble(detector(), network, model(), Vec::new(), config)
}

fn engine(eos: Settings) -> Engine {
    let config = EngineConfig {
        eos,
        ..EngineConfig::default()
    };
    engine_with(&config, 5.0)
}

fn context(id: u32) -> Context {
    Context {
        id,
        frame_size: SIZE,
        time: Duration::ZERO,
        wanted: Wanted::Everything,
    }
}

/// The face with these landmarks as `engine` completes it.
fn completed(engine: &mut Engine, points: Vec<Landmark>, id: u32) -> Observation {
    let mut face = face(points);
    engine.completer.complete(&mut face, &context(id)).unwrap();
    face
}

fn fit(face: &Observation) -> &MorphableFit {
    let fit = face.morphable.as_ref().expect("a fit was tried");
    fit.as_ref().expect("a fit")
}

/// The faces that `engine` finds in a grey frame.
fn processed(engine: &mut Engine) -> Observation {
    let pixels = vec![99; SIZE.0 * SIZE.1 * 3];
    let frame = Frame {
        image: ImageView::rgb(SIZE.0, SIZE.1, &pixels).unwrap(),
        time: Duration::ZERO,
    };
    let found = engine.finder.find(&frame, &ENTRY.thresholds).unwrap();
    let mut faces = found.faces;
    assert_eq!(faces.len(), 1);
    faces.remove(0)
}

#[test]
fn faces_are_yunets_with_68_points_of_the_mesh() {
    let face = processed(&mut engine(Settings::default()));
    assert_eq!(face.key_points.len(), yunet::KEY_POINTS);
    assert!(face.confidence.is_some_and(|score| score > 0.7));
    let landmarks = face.landmarks.unwrap();
    assert_eq!(landmarks.scheme, LandmarkScheme::Ibug68);
    let along = |i: usize| landmarks.points[i].x - landmarks.points[0].x;
    // The vertices 127, 234 and 93 are 107 and -34 apart.
    assert!((along(1) / along(2) + 107.0 / 34.0).abs() < 1e-3);
    assert_eq!((face.morphable, face.pose), (None, None));
}

#[test]
fn a_face_that_the_mesh_does_not_see_stays_one() {
    let mut engine = engine_with(&EngineConfig::default(), -5.0);
    let found = processed(&mut engine);
    assert_eq!(found.landmarks, None);
    let mut face = found.clone();
    engine.completer.complete(&mut face, &context(1)).unwrap();
    let bare = Observation {
        morphable: Some(Err(FitFailure::NoLandmarks)),
        ..found
    };
    assert_eq!(face, bare);
}

#[test]
fn landmarks_and_pose_become_those_of_the_fit() {
    let mut engine = engine(Settings::default());
    let measured = seen(1.0);
    let face = completed(&mut engine, measured.clone(), 1);
    let fit = fit(&face);
    assert_eq!((fit.shape.len(), fit.expression.len()), (1, 1));
    assert_eq!(*fit.expression_names, ["surprise".to_owned()]);
    assert!(fit.residual < 0.3, "{fit:?}");
    assert!((fit.scale - 0.5).abs() < 0.01, "{fit:?}");
    assert!(fit.origin.distance(Point::new(32.0, 24.0)) < 0.1, "{fit:?}");
    assert!(fit.rotation[3] > 0.999, "{fit:?}");
    assert_eq!(fit.mesh, None);
    let matrix = face.pose.unwrap().matrix;
    assert!((matrix[0][0] - 1.0).abs() < 1e-3);
    assert!(matrix[0][3].abs() < 0.2 && matrix[1][3].abs() < 0.2);
    let landmarks = face.landmarks.unwrap();
    assert_eq!(landmarks.scheme, LandmarkScheme::Ibug68);
    assert_eq!(landmarks.points.len(), 68);
    let [ours, theirs] = [landmarks.points[33], measured[33]];
    assert!((ours.x - theirs.x).hypot(ours.y - theirs.y) < 0.3);
    assert_eq!(face.bbox, Rect::new(5.0, 6.0, 40.0, 30.0), "YuNet's");
}

#[test]
fn the_pose_is_relative_to_the_middle_of_the_image_in_millimetres() {
    let mut moved = seen(1.0);
    for point in &mut moved {
        point.x += 10.0;
        point.y += 4.0;
    }
    let face = completed(&mut engine(Settings::default()), moved, 1);
    let matrix = face.pose.unwrap().matrix;
    for (value, want) in [(matrix[0][3], 20.0), (matrix[1][3], -8.0)] {
        assert!((value - want).abs() < 0.3, "{matrix:?}");
    }
    assert_eq!(matrix[2][3], 0.0);
}

#[test]
fn a_mesh_is_there_when_asked_for_and_has_the_landmarks() {
    let settings = Settings {
        mesh: true,
        ..Settings::default()
    };
    let face = completed(&mut engine(settings), seen(1.2), 1);
    let mesh = fit(&face).mesh.as_ref().expect("every vertex");
    let landmarks = &face.landmarks.as_ref().unwrap().points;
    assert_eq!(mesh.len(), 68);
    for i in (17..60).chain([8]) {
        let [a, b] = [mesh[i], landmarks[i]];
        assert!((a.x - b.x).abs() + (a.y - b.y).abs() + (a.z - b.z).abs() < 1e-3);
    }
}

/// Every number that `face` has.
fn numbers(face: &Observation) -> Vec<f32> {
    let points = face.landmarks.iter().flat_map(|l| &l.points);
    let mut numbers: Vec<f32> = points.flat_map(|p| [p.x, p.y, p.z]).collect();
    numbers.extend(face.pose.iter().flat_map(|pose| pose.matrix.as_flattened()));
    numbers.extend(face.blendshapes.iter().flat_map(Blendshapes::values));
    if let Some(Ok(fit)) = &face.morphable {
        numbers.extend([fit.residual, fit.scale, fit.origin.x, fit.origin.y]);
        numbers.extend(fit.shape.iter().chain(&fit.expression).chain(&fit.rotation));
        numbers.extend(fit.contour.iter().flat_map(|p| [p.x, p.y]));
    }
    numbers
}

#[test]
fn landmarks_that_are_no_face_are_reported_with_the_reason() {
    let all = |change: fn(&mut Landmark)| {
        let mut points = seen(1.0);
        points.iter_mut().for_each(change);
        points
    };
    let one = |x: f32| {
        let mut points = seen(1.0);
        points[30].x = x;
        points
    };
    let mut most = seen(1.0);
    most.iter_mut().take(35).for_each(|p| p.x -= 200.0);
    for (name, points, failure, are_kept) in [
        ("a NaN", one(f32::NAN), FitFailure::NotFinite, false),
        ("infinite", one(f32::INFINITY), FitFailure::NotFinite, false),
        (
            "all NaN",
            all(|p| p.y = f32::NAN),
            FitFailure::NotFinite,
            false,
        ),
        (
            "a line",
            all(|p| p.y = p.x / 2.0),
            FitFailure::Degenerate,
            true,
        ),
        (
            "a point",
            all(|p| (p.x, p.y) = (9.0, 9.0)),
            FitFailure::Degenerate,
            true,
        ),
        (
            "left of it",
            all(|p| p.x -= 100.0),
            FitFailure::OutOfFrame,
            true,
        ),
        (
            "below it",
            all(|p| p.y += 60.0),
            FitFailure::OutOfFrame,
            true,
        ),
        ("most of it", most, FitFailure::OutOfFrame, true),
        ("none", Vec::new(), FitFailure::NoLandmarks, true),
    ] {
        for identity in [Identity::Running, Identity::PerFrame] {
            let mesh = true;
            let mut engine = engine(Settings { identity, mesh });
            let face = completed(&mut engine, points.clone(), 1);
            assert_eq!(face.morphable, Some(Err(failure)), "{name}");
            assert_eq!(face.pose, None, "{name}");
            let kept = face.landmarks.as_ref().map(|landmarks| &landmarks.points);
            assert_eq!(kept, Some(&points).filter(|_| are_kept), "{name}");
            assert!(numbers(&face).iter().all(|n| n.is_finite()), "{name}");

            let next = completed(&mut engine, seen(1.0), 1);
            assert!(matches!(next.morphable, Some(Ok(_))), "after {name}");
        }
    }
}

#[test]
fn no_landmarks_whatever_make_a_number_that_is_none() {
    let sizes = [1e-30, 1e-6, 1.0, 1e6, 1e30, f32::MAX];
    let changes: [fn(usize, Landmark, f32) -> Landmark; 3] = [
        |_, p, size| Landmark {
            x: p.x * size,
            y: p.y * size,
            z: p.z * size,
        },
        |i, p, size| match i {
            7 => Landmark { x: size, ..p },
            _ => p,
        },
        |i, p, size| match i % 2 {
            0 => Landmark { y: size, ..p },
            _ => p,
        },
    ];
    for change in changes {
        for size in sizes.into_iter().flat_map(|size| [size, -size]) {
            let points = seen(1.0).into_iter().enumerate();
            let points = points.map(|(i, p)| change(i, p, size)).collect();
            let mut engine = engine(Settings::default());
            let face = completed(&mut engine, points, 1);
            assert!(face.morphable.is_some());
            assert!(numbers(&face).iter().all(|n| n.is_finite()), "{size}");
            let next = completed(&mut engine, seen(1.0), 1);
            assert!(matches!(next.morphable, Some(Ok(_))), "after {size}");
            assert!(numbers(&next).iter().all(|n| n.is_finite()), "{size}");
        }
    }
}

#[test]
fn a_face_that_is_half_inside_is_fitted() {
    let mut points = seen(1.0);
    for point in &mut points {
        point.x -= 32.0;
    }
    let face = completed(&mut engine(Settings::default()), points, 1);
    assert!(matches!(face.morphable, Some(Ok(_))));
}

#[test]
fn an_open_jaw_is_that_of_the_landmarks_measured() {
    let mut open = seen(1.0);
    for i in 61..64 {
        open[i].y = 10.0;
        open[i + 4].y = 14.0;
    }
    (open[8].y, open[33].y) = (35.0, 15.0);
    (open[36].y, open[45].y) = (20.0, 20.0);
    open[45].x = open[36].x + 10.0;
    let config = EngineConfig {
        jaw_open_scale: 2.0,
        ..EngineConfig::default()
    };
    let mut engine = engine_with(&config, 5.0);
    let found = completed(&mut engine, open.clone(), 1);
    let blendshapes = found.blendshapes.expect("an open jaw");
    assert_eq!(blendshapes.source(), BlendshapeSource::Derived);
    assert_eq!(blendshapes.names(), &engine.info.blendshapes);
    assert!((blendshapes.values()[0] - 0.4).abs() < 1e-5);

    let mut face = face(open);
    let wanted = Wanted::AllButBlendshapes;
    let context = Context {
        wanted,
        ..context(1)
    };
    engine.completer.complete(&mut face, &context).unwrap();
    assert_eq!(face.blendshapes, None);
    assert!(matches!(face.morphable, Some(Ok(_))));
}

#[test]
fn a_shape_is_that_of_its_identity() {
    let running = || engine(Settings::default());
    let first = completed(&mut running(), seen(1.3), 1);
    let mut engine = running();
    for _ in 0..3 {
        completed(&mut engine, seen(1.0), 1);
    }
    let after_others = completed(&mut engine, seen(1.3), 1);
    assert_ne!(first, after_others, "the frames before count");
    assert_eq!(first, completed(&mut engine, seen(1.3), 2), "another face");
    engine.completer.forget(1);
    assert_eq!(first, completed(&mut engine, seen(1.3), 1), "forgotten");
    engine.reset();
    assert_eq!(first, completed(&mut engine, seen(1.3), 2), "reset");
}

#[test]
fn frames_that_stand_alone_share_nothing() {
    let alone = EngineConfig {
        running_mode: RunningMode::Image,
        ..EngineConfig::default()
    };
    let per_frame = EngineConfig {
        eos: Settings {
            identity: Identity::PerFrame,
            mesh: false,
        },
        ..EngineConfig::default()
    };
    for config in [alone, per_frame] {
        assert!(!describe(&config).temporal);
        let first = completed(&mut engine_with(&config, 5.0), seen(1.3), 1);
        let mut engine = engine_with(&config, 5.0);
        completed(&mut engine, seen(1.0), 1);
        assert_eq!(first, completed(&mut engine, seen(1.3), 1));
    }
    assert!(describe(&EngineConfig::default()).temporal);
}
