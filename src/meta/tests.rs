// SPDX-License-Identifier: MPL-2.0

use std::time::Duration;

use super::*;
use facetrack::blendshape::{BlendshapeSource, Blendshapes, MEDIAPIPE_CHANNELS};
use facetrack::geometry::{Point, Rect};
use facetrack::observation::{
    Attributes, Features, FitFailure, Gaze, Gender, HeadPose, Landmark, LandmarkScheme, Landmarks,
    ModelFit, MorphableFit, Observation, Origin, Pupil,
};
use facetrack::report::{FrameStatus, SearchExtent, TrackedFace};

const WIDTH: u32 = 1920;
const HEIGHT: u32 = 1080;

fn source() -> Arc<ReportSource> {
    Arc::new(ReportSource {
        engine: "mediapipe".into(),
        device: "cuda:1".into(),
        execution_provider: "CUDAExecutionProvider".into(),
        device_reason: "GPU mode ENABLED".into(),
        load_time: Duration::from_nanos(1_234_567_891),
        generator: "gst-plugin-facetrack 0.2.0".into(),
        models: vec![
            ModelFile {
                name: "face  landmarker.task".into(),
                sha256: "ab".repeat(32),
            },
            ModelFile {
                name: "b.onnx".into(),
                sha256: "cd".repeat(32),
            },
        ],
        options: r#"{"engine":"mediapipe"}"#.into(),
    })
}

/// A face with everything; `seed` makes awkward fractions.
fn full_face(id: u32, seed: f32) -> TrackedFace {
    let face = Observation {
        bbox: Rect::new(100.1 + seed, -20.7 / seed, 333.333 * seed, 401.01),
        confidence: Some(0.1 + seed / 7.0),
        origin: Origin::Tracked,
        landmarks: Some(Landmarks {
            scheme: LandmarkScheme::MediaPipe478,
            points: (0..478)
                .map(|i| Landmark {
                    x: 100.3 + i as f32 * 3.3 * seed,
                    y: 50.7 + i as f32 * 1.9,
                    z: -30.3 + i as f32 / 7.0,
                })
                .collect(),
            confidences: (0..478).map(|i| i as f32 / 479.3).collect(),
        }),
        key_points: (0..6)
            .map(|i| Point::new(i as f32 * 1.1, -i as f32 * seed))
            .collect(),
        blendshapes: Some(corrected(seed).from_source(BlendshapeSource::Derived)),
        pose: Some(HeadPose {
            matrix: std::array::from_fn(|r| {
                std::array::from_fn(|c| (r * 4 + c) as f32 * 0.3 * seed)
            }),
        }),
        gaze: Some(Gaze {
            right: Pupil {
                position: Point::new(612.3 * seed, 401.7),
                confidence: 0.91 * seed,
            },
            left: Pupil {
                position: Point::new(731.9, -3.1 * seed),
                confidence: 0.03,
            },
        }),
        fit: Some(fit(seed)),
        morphable: Some(Ok(morphable(seed))),
        features: Some(Features(std::array::from_fn(|i| 0.1 * i as f32 - seed))),
        secondary_landmarks: Some(contour(seed)),
        attributes: Some(Attributes {
            age: 31.7 * seed,
            gender: Gender::Male,
        }),
        embedding: Some(
            (0..512)
                .map(|i| (i as f32 - 255.3) / 3344.0 * seed)
                .collect(),
        ),
    };
    TrackedFace { id, face }
}

fn blendshapes(seed: f32) -> Blendshapes {
    let names = MEDIAPIPE_CHANNELS.iter().map(|name| name.to_string());
    let values = (0..52).map(|i| i as f32 * 0.017 * seed);
    Blendshapes::new(names.collect(), values.collect())
}

fn corrected(seed: f32) -> Blendshapes {
    let raw = blendshapes(seed);
    let values = raw.values().iter().map(|value| value * 0.7).collect();
    raw.corrected(values)
}

/// InsightFace's, with scores that its network does not have.
fn contour(seed: f32) -> Landmarks {
    Landmarks {
        scheme: LandmarkScheme::InsightFace106,
        points: (0..106)
            .map(|i| Landmark {
                x: 90.7 + i as f32 * 4.1 * seed,
                y: 410.3 - i as f32 * 2.3,
                z: 0.0,
            })
            .collect(),
        confidences: (0..106).map(|i| i as f32 / 107.3).collect(),
    }
}

fn fit(seed: f32) -> ModelFit {
    ModelFit {
        success: true,
        error: 2.3 * seed,
        quaternion: [0.1, -0.7, 0.7 * seed, 0.01],
        euler: [179.3 * seed, -3.3, 90.1],
        rotation: [-2.1, 0.3 * seed, 2.2],
        translation: [1.7, -2.2, -9.3 * seed],
        points: (0..70)
            .map(|i| [i as f32 * 0.013, -0.3 * seed, i as f32 / 7.0])
            .collect(),
        projected: (0..5)
            .map(|i| Point::new(i as f32 * 101.3, 7.7 * seed))
            .collect(),
    }
}

/// Returns a fit with every vertex of the Surrey Face Model.
fn morphable(seed: f32) -> MorphableFit {
    let names = [
        "anger",
        "disgust",
        "fear",
        "happiness",
        "sadness",
        "surprise",
    ];
    MorphableFit {
        shape: (0..63).map(|i| (i as f32 - 30.3) * 0.07 * seed).collect(),
        expression: (0..6).map(|i| i as f32 * 0.13 * seed).collect(),
        expression_names: names.map(str::to_owned).into(),
        rotation: [0.1, -0.7 * seed, 0.01, 0.7],
        origin: Point::new(-31.7 * seed, 407.3),
        scale: 1.37 * seed,
        residual: 2.13 * seed,
        contour: (0..15)
            .map(|i| Point::new(i as f32 * 33.3, 500.1 - i as f32 * seed))
            .collect(),
        mesh: Some(
            (0..3448)
                .map(|i| Landmark {
                    x: 300.1 + i as f32 * 0.1 * seed,
                    y: i as f32 * 0.3 - 50.7,
                    z: 40.3 - i as f32 / 37.0,
                })
                .collect(),
        ),
    }
}

fn report(faces: Vec<TrackedFace>) -> FrameReport {
    FrameReport {
        width: WIDTH,
        height: HEIGHT,
        status: match faces.is_empty() {
            true => FrameStatus::NoFace,
            false => FrameStatus::Tracked,
        },
        cut: faces.len() == 1,
        search: SearchExtent::Whole,
        repeated: faces.len() == 2,
        faces,
        source: source(),
    }
}

fn bare_face() -> TrackedFace {
    TrackedFace {
        id: 3,
        face: Observation::from_bbox(Rect::new(1.5, 2.5, 3.5, 4.5)),
    }
}

fn buffer_with(report: &FrameReport) -> gst::Buffer {
    gst::init().expect("GStreamer");
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().expect("just made");
    FaceTrackMeta::attach(writable, report).expect("the name is free");
    buffer
}

/// Same, with points within 1e-4 px.
fn assert_same(actual: &FrameReport, expected: &FrameReport) {
    let mut rounded = actual.clone();
    for (actual, expected) in std::iter::zip(&mut rounded.faces, &expected.faces) {
        let (actual, expected) = (&mut actual.face, &expected.face);
        for (a, e) in [
            (&mut actual.landmarks, &expected.landmarks),
            (
                &mut actual.secondary_landmarks,
                &expected.secondary_landmarks,
            ),
        ] {
            if let (Some(a), Some(e)) = (a, e) {
                snap_landmarks(&mut a.points, &e.points);
            }
        }
        snap_points(&mut actual.key_points, &expected.key_points);
        if let (Some(a), Some(e)) = (&mut actual.gaze, &expected.gaze) {
            for (a, e) in [(&mut a.right, e.right), (&mut a.left, e.left)] {
                snap_points(std::slice::from_mut(&mut a.position), &[e.position]);
            }
        }
        if let (Some(a), Some(e)) = (&mut actual.fit, &expected.fit) {
            snap_points(&mut a.projected, &e.projected);
        }
        if let (Some(Ok(a)), Some(Ok(e))) = (&mut actual.morphable, &expected.morphable) {
            snap_morphable(a, e);
        }
    }
    assert_eq!(&rounded, expected);
}

fn snap_morphable(actual: &mut MorphableFit, expected: &MorphableFit) {
    snap_points(std::slice::from_mut(&mut actual.origin), &[expected.origin]);
    snap_points(&mut actual.contour, &expected.contour);
    if let (Some(a), Some(e)) = (&mut actual.mesh, &expected.mesh) {
        let mut mesh = a.to_vec();
        snap_landmarks(&mut mesh, e);
        *a = mesh.into();
    }
}

fn snap_landmarks(actual: &mut [Landmark], expected: &[Landmark]) {
    for (a, e) in std::iter::zip(actual, expected) {
        for (a, e) in [(&mut a.x, e.x), (&mut a.y, e.y), (&mut a.z, e.z)] {
            snap(a, e);
        }
    }
}

fn snap_points(actual: &mut [Point], expected: &[Point]) {
    for (a, e) in std::iter::zip(actual, expected) {
        snap(&mut a.x, e.x);
        snap(&mut a.y, e.y);
    }
}

fn snap(actual: &mut f32, expected: f32) {
    // Coordinates here are below 6000: an f32 step is 5e-4 there, 6e-5 below 1024.
    let step = (expected.abs() * f32::EPSILON).max(1e-4);
    assert!(
        (*actual - expected).abs() <= step,
        "{actual} for {expected}"
    );
    *actual = expected;
}

#[test]
fn reports_come_back_as_they_went() {
    let mut failed_fit = bare_face();
    failed_fit.face.fit = Some(ModelFit {
        success: false,
        error: 0.0,
        quaternion: [0.0; 4],
        euler: [0.0; 3],
        rotation: [0.0; 3],
        translation: [0.0; 3],
        points: vec![],
        projected: vec![],
    });
    let mut without_mesh = bare_face();
    without_mesh.face.morphable = Some(Ok(MorphableFit {
        mesh: None,
        ..morphable(0.9)
    }));
    let mut of_another_model = bare_face();
    of_another_model.face.morphable = Some(Ok(MorphableFit {
        shape: vec![],
        expression: vec![],
        expression_names: Arc::new([]),
        contour: vec![],
        mesh: Some(Arc::new([])),
        ..morphable(0.9)
    }));
    let mut of_one_look = bare_face();
    of_one_look.face.secondary_landmarks = Some(Landmarks {
        confidences: vec![],
        ..contour(0.9)
    });
    of_one_look.face.attributes = Some(Attributes {
        age: 0.0,
        gender: Gender::Female,
    });
    of_one_look.face.embedding = Some(Arc::new([]));
    let unfitted = FitFailure::ALL.iter().map(|failure| {
        let mut face = bare_face();
        face.face.morphable = Some(Err(*failure));
        face
    });
    let cases = [
        report(vec![]),
        report(vec![bare_face()]),
        report(vec![failed_fit]),
        report(vec![without_mesh]),
        report(vec![of_another_model]),
        report(unfitted.collect()),
        report(vec![of_one_look]),
        report(vec![
            full_face(1, 0.7),
            bare_face(),
            full_face(u32::MAX, 1.3),
        ]),
        FrameReport {
            status: FrameStatus::Skipped,
            width: 1,
            height: 16384,
            ..report(vec![bare_face()])
        },
    ];
    for case in cases {
        let buffer = buffer_with(&case);
        assert_same(&FaceTrackMeta::read(&buffer).expect("a report"), &case);
    }
}

/// All but points of the picture, at every frame size.
#[test]
fn what_is_no_point_is_lossless() {
    for (i, (width, height)) in [(640, 360), (1920, 1080), (1, 1), (16383, 13), (7, 16384)]
        .into_iter()
        .enumerate()
    {
        let mut case = report(vec![full_face(1, 0.37 + i as f32 * 0.11)]);
        (case.width, case.height) = (width, height);
        let back = FaceTrackMeta::read(&buffer_with(&case)).expect("a report");
        let (back, case) = (&back.faces[0].face, &case.faces[0].face);
        assert_eq!(back.bbox, case.bbox);
        assert_eq!(back.confidence, case.confidence);
        assert_eq!(back.blendshapes, case.blendshapes);
        assert_eq!(back.pose, case.pose);
        assert_eq!(back.features, case.features);
        assert_eq!(back.attributes, case.attributes);
        assert_eq!(back.embedding, case.embedding);
        let confidences = |face: &Observation| {
            let gaze = face.gaze.expect("both eyes");
            let landmarks = face.landmarks.clone().expect("landmarks");
            (
                landmarks.confidences,
                face.secondary_landmarks
                    .clone()
                    .expect("a contour")
                    .confidences,
                gaze.right.confidence,
                gaze.left.confidence,
            )
        };
        assert_eq!(confidences(back), confidences(case));
        let in_space = |face: &Observation| ModelFit {
            projected: vec![],
            ..face.fit.clone().expect("a fit")
        };
        assert_eq!(in_space(back), in_space(case));
        let coefficients = |face: &Observation| MorphableFit {
            origin: Point::default(),
            contour: vec![],
            mesh: None,
            ..morphable_of(face)
        };
        assert_eq!(coefficients(back), coefficients(case));
    }
}

fn morphable_of(face: &Observation) -> MorphableFit {
    let fit = face.morphable.clone().expect("a fit");
    fit.expect("no failure")
}

/// The reader shows the picture twice as wide and three times as high.
#[test]
fn a_fitted_model_is_the_same_part_of_the_picture_at_every_size() {
    let mut case = report(vec![bare_face()]);
    let fit = MorphableFit {
        origin: Point::new(480.0, 270.0),
        scale: 1.5,
        residual: 3.0,
        contour: vec![Point::new(960.0, 540.0)],
        mesh: Some(Arc::new([Landmark {
            x: 240.0,
            y: 135.0,
            z: -60.0,
        }])),
        ..morphable(0.7)
    };
    case.faces[0].face.morphable = Some(Ok(fit.clone()));
    let shown = read_changed(&case, |record| {
        record.set("width", 2 * WIDTH);
        record.set("height", 3 * HEIGHT);
    });
    let shown = morphable_of(&shown.expect("a report").faces[0].face);
    let want = MorphableFit {
        origin: Point::new(960.0, 810.0),
        scale: 3.0,
        residual: 6.0,
        contour: vec![Point::new(1920.0, 1620.0)],
        mesh: Some(Arc::new([Landmark {
            x: 480.0,
            y: 405.0,
            z: -120.0,
        }])),
        ..fit
    };
    assert_eq!(shown, want);
}

/// The contour goes with the picture; what a face looks like does not hang on its size.
#[test]
fn a_contour_is_the_same_part_of_the_picture_at_every_size() {
    let mut case = report(vec![full_face(1, 0.7)]);
    let at = |x, y| {
        let points = vec![Landmark { x, y, z: 0.0 }];
        Some(Landmarks::new(LandmarkScheme::InsightFace106, points))
    };
    case.faces[0].face.secondary_landmarks = at(480.0, 270.0);
    let shown = read_changed(&case, |record| {
        record.set("width", 2 * WIDTH);
        record.set("height", 3 * HEIGHT);
    });
    let shown = &shown.expect("a report").faces[0].face;
    let measured = &case.faces[0].face;
    assert_eq!(shown.secondary_landmarks, at(960.0, 810.0));
    assert_eq!(shown.attributes, measured.attributes);
    assert_eq!(shown.embedding, measured.embedding);
}

/// A face without a measurement has no field that could be read as one.
#[test]
fn what_was_not_measured_is_absent() {
    let buffer = buffer_with(&report(vec![bare_face()]));
    let meta = CustomMeta::from_buffer(&buffer, FaceTrackMeta::NAME).expect("attached");
    let face: gst::Structure = meta.structure().get("face-0").expect("a face");
    let fields: Vec<_> = face.fields().map(|field| field.to_string()).collect();
    assert_eq!(fields, ["id", "x", "y", "width", "height", "origin"]);
}

/// An older plugin wrote the metadata.
#[test]
fn a_source_that_tells_less_is_read() {
    let told = report(vec![]);
    let back = read_changed(&told, |record| {
        record.remove_fields(["execution-provider", "device-reason", "load-time"]);
    });
    let known = ReportSource {
        execution_provider: String::new(),
        device_reason: String::new(),
        load_time: Duration::ZERO,
        ..ReportSource::clone(&told.source)
    };
    assert_eq!(*back.expect("a report").source, known);
}

/// A mesh is some 40 kB: who copies a buffer shares its bytes.
#[test]
fn a_mesh_is_written_once() {
    let buffer = buffer_with(&report(vec![full_face(1, 0.7)]));
    let copy = buffer.copy();
    let [original, copied] = [&buffer, &copy].map(|buffer| {
        let meta = CustomMeta::from_buffer(buffer, FaceTrackMeta::NAME).expect("attached");
        let face: gst::Structure = meta.structure().get("face-0").expect("a face");
        let fit: gst::Structure = face.get("morphable").expect("a fit");
        let mesh: glib::Bytes = fit.get("mesh").expect("a mesh");
        (mesh.as_ptr(), mesh.len())
    });
    assert_eq!(original, copied);
    assert_eq!(original.1, 3448 * 3 * 4);
}

/// The writer does not check numbers; the reader does.
#[test]
fn numbers_that_are_not_finite_come_back_as_they_went() {
    let mut face = bare_face();
    face.face.morphable = Some(Ok(MorphableFit {
        shape: vec![f32::NAN],
        origin: Point::new(f32::INFINITY, f32::NAN),
        scale: f32::NAN,
        residual: f32::NEG_INFINITY,
        ..morphable(0.7)
    }));
    let buffer = buffer_with(&report(vec![face]));
    let back = FaceTrackMeta::read(&buffer).expect("a report");
    let back = morphable_of(&back.faces[0].face);
    assert!(back.shape[0].is_nan() && back.scale.is_nan() && back.origin.y.is_nan());
    assert_eq!(back.origin.x, f32::INFINITY);
    assert_eq!(back.residual, f32::NEG_INFINITY);
}

/// Plugins before version 2 of the metadata used these names.
#[test]
fn secondary_landmarks_are_read_by_their_older_names() {
    let whole = report(vec![full_face(1, 0.7)]);
    let back = read_changed(&whole, |record| {
        record.set("version", 1u32);
        in_first_face(record, |face| {
            for (name, older) in [
                ("secondary-landmark-scheme", "contour-scheme"),
                ("secondary-landmarks", "contour"),
                ("secondary-landmark-confidences", "contour-confidences"),
            ] {
                let value = face.value(name).expect("a field").clone();
                face.set_value(older, value);
                face.remove_field(name);
            }
        });
    });
    assert_same(&back.expect("a report"), &whole);
}

/// An older plugin wrote the metadata.
#[test]
fn blendshapes_of_no_known_source_are_measured() {
    let mut face = bare_face();
    face.face.blendshapes = Some(blendshapes(0.7).from_source(BlendshapeSource::Derived));
    let back = read_changed(&report(vec![face]), |record| {
        in_first_face(record, |face| face.remove_field("blendshape-source"));
    });
    let channels = back.expect("a report").faces[0].face.blendshapes.clone();
    assert_eq!(channels, Some(blendshapes(0.7)));
}

#[test]
fn a_second_report_takes_the_place_of_the_first() {
    let mut buffer = buffer_with(&report(vec![full_face(1, 0.7), bare_face()]));
    let writable = buffer.get_mut().expect("not shared");
    VideoRegionOfInterestMeta::add(writable, "car", (0, 0, 1, 1));
    let second = report(vec![bare_face()]);
    FaceTrackMeta::attach(writable, &second).expect("the name is free");
    assert_eq!(FaceTrackMeta::read(&buffer), Ok(second));
    let records = buffer
        .iter_meta::<gst::Meta>()
        .filter(|meta| meta.try_as_custom_meta().is_some());
    // The record and its witness.
    assert_eq!(records.count(), 2);
    let types: Vec<_> = buffer
        .iter_meta::<VideoRegionOfInterestMeta>()
        .map(|region| region.roi_type())
        .collect();
    assert_eq!(types, ["car", "face"]);
}

/// The buffer is copied, as by an element that gets a frame from a tee.
#[test]
fn a_copied_report_can_be_replaced_too() {
    let first = buffer_with(&report(vec![bare_face()]));
    let mut copy = first.copy();
    drop(first);
    let second = report(vec![full_face(2, 0.7)]);
    FaceTrackMeta::attach(copy.make_mut(), &second).expect("the name is free");
    assert_same(&FaceTrackMeta::read(&copy).expect("a report"), &second);
}

#[test]
fn each_face_has_a_region_of_interest() {
    let mut outside = bare_face();
    outside.face.bbox = Rect::new(-50.0, 2000.0, 10.0, 10.0);
    let mut at_edge = bare_face();
    at_edge.id = 9;
    at_edge.face.bbox = Rect::new(-10.5, 1000.2, 30.0, 200.0);
    at_edge.face.confidence = Some(0.75);
    let buffer = buffer_with(&report(vec![outside, at_edge]));
    let regions: Vec<_> = buffer.iter_meta::<VideoRegionOfInterestMeta>().collect();
    assert_eq!(regions[0].rect(), (0, 1080, 0, 0));
    assert_eq!(regions[1].rect(), (0, 1000, 20, 80));
    assert_eq!(regions[1].roi_type(), "face");
    // With the feature, a region has the number of a detection.
    if cfg!(not(feature = "analytics")) {
        assert_eq!(regions[1].id(), 9);
    }
    let detections = regions
        .iter()
        .map(|region| region.param("detection").expect("one"));
    let scores: Vec<_> = detections.map(|it| it.get("confidence").ok()).collect();
    assert_eq!(scores, [None, Some(0.75f64)]);
}

/// Invalid values that another element may attach to a buffer under this name.
#[test]
fn malformed_metadata_is_reported_and_never_panics() {
    let whole = report(vec![full_face(1, 0.7)]);
    assert_eq!(read_spoilt(&whole, |_| ()), None);
    type Spoil = fn(&mut gst::StructureRef);
    let cases: [(&str, Spoil); 10] = [
        ("load-time", |s| s.set("load-time", 1.5f64)),
        ("device-reason", |s| s.set("device-reason", 7i32)),
        ("version", |s| s.remove_field("version")),
        ("width", |s| s.set("width", 0u32)),
        ("height", |s| s.set("height", "tall")),
        ("status", |s| s.set("status", "asleep")),
        ("engine", |s| s.set("engine", None::<String>)),
        ("models", |s| s.set("models", "no-hash")),
        ("face-1", |s| s.set("faces", u32::MAX)),
        ("face-0", |s| s.set("face-0", None::<gst::Structure>)),
    ];
    for (field, spoil) in cases {
        let error = read_spoilt(&whole, spoil);
        assert_eq!(error, Some(MetaError::Malformed(field.to_owned())));
    }
    assert_eq!(read_spoilt(&whole, |s| s.set("options", 7i32)), None);
    let newer = read_spoilt(&whole, |s| s.set("version", 3u32));
    assert_eq!(newer, Some(MetaError::Version(3)));
    assert!(MetaError::Version(3).to_string().contains("update"));

    let in_face: [(&str, Spoil); 29] = [
        ("id", |s| s.set("id", 0u32)),
        ("x", |s| s.set("x", "left")),
        ("origin", |s| s.set("origin", "elsewhere")),
        ("confidence", |s| s.set("confidence", 1i32)),
        ("landmarks", |s| s.set("landmarks", bytes(16))),
        ("landmarks", |s| s.set("landmarks", None::<glib::Bytes>)),
        ("key-points", |s| s.set("key-points", bytes(7))),
        ("blendshapes", |s| s.set("blendshapes", bytes(4))),
        ("landmark-confidences", |s| {
            s.set("landmark-confidences", bytes(8));
        }),
        ("blendshape-source", |s| {
            s.set("blendshape-source", "made up")
        }),
        ("raw-blendshapes", |s| s.set("raw-blendshapes", bytes(4))),
        ("blendshapes-corrected", |s| {
            s.set("blendshapes-corrected", "yes");
        }),
        ("pose", |s| s.set("pose", bytes(48))),
        ("gaze", |s| s.set("gaze", bytes(12))),
        ("gaze", |s| s.set("gaze", 1.5f64)),
        ("features", |s| s.set("features", bytes(52))),
        ("secondary-landmarks", |s| {
            s.set("secondary-landmarks", bytes(16))
        }),
        ("secondary-landmarks", |s| {
            s.set("secondary-landmarks", None::<glib::Bytes>)
        }),
        ("secondary-landmark-scheme", |s| {
            s.remove_field("secondary-landmark-scheme")
        }),
        ("secondary-landmark-scheme", |s| {
            s.set("secondary-landmark-scheme", "dlib-68")
        }),
        ("secondary-landmark-confidences", |s| {
            s.set("secondary-landmark-confidences", bytes(8));
        }),
        ("age", |s| s.set("age", "young")),
        ("gender", |s| s.set("gender", "unsure")),
        ("gender", |s| s.remove_field("gender")),
        ("embedding", |s| s.set("embedding", bytes(2047))),
        ("embedding", |s| s.set("embedding", 1.5f64)),
        ("fit", |s| s.set("fit", "tight")),
        ("success", |s| {
            s.set("fit", gst::Structure::new_empty("fit"))
        }),
        ("quaternion", |s| {
            let mut fit: gst::Structure = s.get("fit").expect("a fit");
            fit.set("quaternion", bytes(32));
            s.set("fit", fit);
        }),
    ];
    for (field, spoil) in in_face {
        let error = read_spoilt(&whole, |record| in_first_face(record, spoil));
        assert_eq!(error, Some(MetaError::Malformed(field.to_owned())));
    }
}

/// Invalid values that another element may have written into a fitted model.
#[test]
fn a_malformed_fitted_model_is_reported() {
    let whole = report(vec![full_face(1, 0.7)]);
    type Spoil = fn(&mut gst::StructureRef);
    let cases: [(&str, Spoil); 19] = [
        ("failure", |s| s.set("failure", "tired")),
        ("failure", |s| s.set("failure", 1i32)),
        ("shape", |s| s.remove_field("shape")),
        ("shape", |s| s.set("shape", bytes(63 * 4 - 1))),
        ("shape", |s| s.set("shape", "round")),
        ("expression", |s| s.set("expression", bytes(5 * 4))),
        ("expression", |s| s.set("expression-names", "joy")),
        ("expression-names", |s| s.remove_field("expression-names")),
        ("rotation", |s| s.set("rotation", bytes(12))),
        ("rotation", |s| s.set("rotation", bytes(32))),
        ("origin", |s| s.set("origin", bytes(4))),
        ("origin", |s| s.remove_field("origin")),
        ("scale", |s| s.set("scale", 1i32)),
        ("scale", |s| s.remove_field("scale")),
        ("residual", |s| s.remove_field("residual")),
        ("contour", |s| s.set("contour", bytes(12))),
        ("contour", |s| s.remove_field("contour")),
        ("mesh", |s| s.set("mesh", bytes(3448 * 4))),
        ("mesh", |s| s.set("mesh", None::<glib::Bytes>)),
    ];
    for (field, spoil) in cases {
        let error = read_spoilt(&whole, |record| {
            in_first_face(record, |face| {
                let mut fit: gst::Structure = face.get("morphable").expect("a fit");
                spoil(&mut fit);
                face.set("morphable", fit);
            });
        });
        assert_eq!(error, Some(MetaError::Malformed(field.to_owned())));
    }
    for spoil in [(|s| s.set("morphable", "soft")) as Spoil, |s| {
        s.set("morphable", None::<gst::Structure>)
    }] {
        let error = read_spoilt(&whole, |record| in_first_face(record, spoil));
        assert_eq!(error, Some(MetaError::Malformed("morphable".to_owned())));
    }
}

fn in_first_face(record: &mut gst::StructureRef, change: impl Fn(&mut gst::StructureRef)) {
    let mut face: gst::Structure = record.get("face-0").expect("a face");
    change(&mut face);
    record.set("face-0", face);
}

fn bytes(len: usize) -> glib::Bytes {
    glib::Bytes::from_owned(vec![0u8; len])
}

fn read_spoilt(report: &FrameReport, spoil: impl Fn(&mut gst::StructureRef)) -> Option<MetaError> {
    read_changed(report, spoil).err()
}

fn read_changed(
    report: &FrameReport,
    change: impl Fn(&mut gst::StructureRef),
) -> Result<FrameReport, MetaError> {
    let mut buffer = buffer_with(report);
    let writable = buffer.get_mut().expect("not shared");
    let mut meta = CustomMeta::from_mut_buffer(writable, FaceTrackMeta::NAME).expect("attached");
    change(meta.mut_structure());
    FaceTrackMeta::read(&buffer)
}

#[test]
fn a_buffer_without_it_has_none() {
    gst::init().expect("GStreamer");
    assert_eq!(
        FaceTrackMeta::read(&gst::Buffer::new()),
        Err(MetaError::Absent)
    );
    assert_eq!(FaceTrackMeta::from_buffer(&gst::Buffer::new()), None);
}

#[test]
fn the_cost_of_an_analysis_is_beside_the_report() {
    let mut buffer = buffer_with(&report(vec![full_face(1, 1.0)]));
    let report = FaceTrackMeta::read(&buffer);
    assert_eq!(FaceTrackMeta::cost(&buffer), Cost::default());
    let cost = Cost {
        time: Some(Duration::from_nanos(8_260_001)),
        gpu_memory: Some(812),
    };
    FaceTrackMeta::set_cost(buffer.make_mut(), cost);
    assert_eq!(FaceTrackMeta::cost(&buffer), cost);
    assert_eq!(FaceTrackMeta::read(&buffer), report);
    let mut plain = gst::Buffer::new();
    FaceTrackMeta::set_cost(plain.make_mut(), cost);
    assert_eq!(FaceTrackMeta::cost(&plain), Cost::default());
}
