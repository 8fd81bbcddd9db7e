// SPDX-License-Identifier: MPL-2.0

use super::*;
use crate::face::blendshape::{BlendshapeSource, Blendshapes, MEDIAPIPE_CHANNELS};
use crate::face::geometry::Point;
use crate::face::observation::{
    Features, Gaze, HeadPose, Landmark, LandmarkScheme, Landmarks, ModelFit, Observation, Origin,
    Pupil,
};

const WIDTH: u32 = 1920;
const HEIGHT: u32 = 1080;

fn source() -> Arc<ReportSource> {
    Arc::new(ReportSource {
        engine: "mediapipe".into(),
        device: "cpu".into(),
        generator: "gst-plugin-facetrack 0.1.0".into(),
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
        blendshapes: Some(blendshapes(seed).from_source(BlendshapeSource::Derived)),
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
        morphable: None,
        features: Some(Features(std::array::from_fn(|i| 0.1 * i as f32 - seed))),
        ..Observation::from_bbox(Rect::new(0.0, 0.0, 0.0, 0.0))
    };
    TrackedFace { id, face }
}

fn blendshapes(seed: f32) -> Blendshapes {
    let names = MEDIAPIPE_CHANNELS.iter().map(|name| name.to_string());
    let values = (0..52).map(|i| i as f32 * 0.017 * seed);
    Blendshapes::new(names.collect(), values.collect())
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

fn report(faces: Vec<TrackedFace>) -> FrameReport {
    FrameReport {
        width: WIDTH,
        height: HEIGHT,
        status: match faces.is_empty() {
            true => FrameStatus::NoFace,
            false => FrameStatus::Tracked,
        },
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
        if let (Some(a), Some(e)) = (&mut actual.landmarks, &expected.landmarks) {
            for (a, e) in std::iter::zip(&mut a.points, &e.points) {
                for (a, e) in [(&mut a.x, e.x), (&mut a.y, e.y), (&mut a.z, e.z)] {
                    snap(a, e);
                }
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
    }
    assert_eq!(&rounded, expected);
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
    let cases = [
        report(vec![]),
        report(vec![bare_face()]),
        report(vec![failed_fit]),
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
        let confidences = |face: &Observation| {
            let gaze = face.gaze.expect("both eyes");
            let landmarks = face.landmarks.clone().expect("landmarks");
            (
                landmarks.confidences,
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
    }
}

/// As one that an older plugin wrote.
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
    assert_eq!(records.count(), 1);
    let types: Vec<_> = buffer
        .iter_meta::<VideoRegionOfInterestMeta>()
        .map(|region| region.roi_type())
        .collect();
    assert_eq!(types, ["car", "face"]);
}

/// As an element does that gets a frame which a tee has shared.
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
    assert_eq!(regions[0].params().count(), 0);
    assert_eq!(regions[1].rect(), (0, 1000, 20, 80));
    assert_eq!((regions[1].id(), regions[1].roi_type()), (9, "face"));
    let detection = regions[1].param("detection").expect("a score");
    assert_eq!(detection.get::<f64>("confidence"), Ok(0.75));
}

/// What somebody else may put on a buffer under this name.
#[test]
fn malformed_metadata_is_told_and_never_panics() {
    let whole = report(vec![full_face(1, 0.7)]);
    assert_eq!(read_spoilt(&whole, |_| ()), None);
    type Spoil = fn(&mut gst::StructureRef);
    let cases: [(&str, Spoil); 8] = [
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
    let newer = read_spoilt(&whole, |s| s.set("version", 2u32));
    assert_eq!(newer, Some(MetaError::Version(2)));
    assert!(MetaError::Version(2).to_string().contains("update"));

    let in_face: [(&str, Spoil); 17] = [
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
        ("pose", |s| s.set("pose", bytes(48))),
        ("gaze", |s| s.set("gaze", bytes(12))),
        ("gaze", |s| s.set("gaze", 1.5f64)),
        ("features", |s| s.set("features", bytes(52))),
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
