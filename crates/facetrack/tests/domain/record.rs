// SPDX-License-Identifier: MPL-2.0
//! The JSON record, as its readers get it.

use crate::common::faces;

use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use faces::{full_face, morphable, morphable_face, recognised_face};
use facetrack::blendshape::{BlendshapeSource, Blendshapes};
use facetrack::geometry::Rect;
use facetrack::model::ModelFile;
use facetrack::observation::{FitFailure, Landmark, MorphableFit, Observation};
use facetrack::record::joining::{Part, SeenFrame, Stated, join};
use facetrack::record::{
    BlendshapeProfile, Completeness, End, Export, Fields, FrameRecord, Metadata, Record, Storage,
};
use facetrack::report::{FrameStatus, ReportSource, SearchExtent, TrackedFace};
use serde_json::Value as Json;

/// A storage that others can look into, with room for `room` bytes.
#[derive(Clone)]
struct Disk {
    content: Arc<Mutex<Cursor<Vec<u8>>>>,
    room: Arc<Mutex<u64>>,
}

impl Disk {
    fn with_room(room: u64) -> Self {
        Self {
            content: Arc::default(),
            room: Arc::new(Mutex::new(room)),
        }
    }

    fn new() -> Self {
        Self::with_room(u64::MAX)
    }

    fn text(&self) -> String {
        String::from_utf8(self.content.lock().unwrap().get_ref().clone()).expect("UTF-8")
    }

    fn json(&self) -> Json {
        serde_json::from_str(&self.text()).expect("JSON")
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut content = self.content.lock().unwrap();
        let room = *self.room.lock().unwrap() - content.position();
        let fitting = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if fitting == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        content.write(&bytes[..fitting])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.content.lock().unwrap().seek(to)
    }
}

impl Storage for Disk {
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let mut content = self.content.lock().unwrap();
        content.get_mut().truncate(len as usize);
        Ok(())
    }

    fn replace_start(&mut self, old: u64, new: &[u8]) -> io::Result<()> {
        let mut content = self.content.lock().unwrap();
        let rest = content.get_ref()[old as usize..].to_vec();
        if (new.len() + rest.len()) as u64 > *self.room.lock().unwrap() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        *content.get_mut() = [new, &rest].concat();
        Ok(())
    }
}

/// A dense record on a disk with enough room for its head.
fn dense(disk: &Disk, export: Export, metadata: Metadata) -> Record {
    Record::dense(disk.clone(), export, metadata).expect("room")
}

fn source() -> Arc<ReportSource> {
    Arc::new(ReportSource {
        engine: "mediapipe".into(),
        device: "cpu".into(),
        execution_provider: "CPUExecutionProvider".into(),
        device_reason: "there is no GPU".into(),
        load_time: Duration::from_micros(12_500),
        generator: "gst-plugin-facetrack 0.2.0".into(),
        models: vec![ModelFile {
            name: "face_landmarker.task".into(),
            sha256: "64".repeat(32),
        }],
        ..ReportSource::default()
    })
}

fn metadata() -> Metadata {
    Metadata {
        video_path: "clip.mp4".into(),
        fps: 25.0,
        width: 640,
        height: 360,
        generator: "gst-plugin-facetrack 0.2.0".into(),
        source: Some(source()),
        completeness: whole(),
        ..Metadata::default()
    }
}

/// All of the video came.
fn whole() -> Completeness {
    Completeness {
        reason: None,
        ..Completeness::default()
    }
}

fn channels(values: &[(&str, f32)]) -> Blendshapes {
    Blendshapes::new(
        values.iter().map(|(name, _)| name.to_string()).collect(),
        values.iter().map(|(_, value)| *value).collect(),
    )
}

fn at(id: u32, bbox: Rect) -> TrackedFace {
    let face = Observation::from_bbox(bbox);
    TrackedFace { id, face }
}

fn tracked(faces: &[TrackedFace], pts: u64) -> FrameRecord<'_> {
    FrameRecord {
        pts: Some(pts),
        status: FrameStatus::Tracked,
        cut: false,
        search: SearchExtent::Whole,
        repeated: false,
        faces,
        size: None,
        engine: None,
    }
}

fn verbose() -> Export {
    Export {
        fields: Fields::all(),
        ..Export::default()
    }
}

fn dense_frame(faces: &[TrackedFace], export: Export) -> Json {
    let disk = Disk::new();
    let mut record = dense(&disk, export, metadata());
    record.frame(&tracked(faces, 0)).expect("room");
    record.close(End::Complete).expect("room");
    disk.json()["frames"][0].clone()
}

fn keys(object: &Json) -> Vec<&str> {
    object
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect()
}

#[test]
fn dense_is_the_specified_sample() {
    let disk = Disk::new();
    let mut record = dense(&disk, Export::default(), metadata());
    record
        .frame(&FrameRecord::empty(FrameStatus::NoFace, Some(0)))
        .expect("room");
    let mut face = at(1, Rect::new(568.9, 166.9, 232.9, 270.9));
    face.face.blendshapes = Some(channels(&[
        ("_neutral", 4.157e-06),
        ("jawOpen", 0.125_07),
        ("mouthShrugUpper", 0.3),
    ]));
    record.frame(&tracked(&[face], 40_000_000)).expect("room");
    record.close(End::Complete).expect("room");

    let text = disk.text();
    let lines: Vec<&str> = text.lines().collect();
    let (head, tail) = lines[0].split_once("  ").expect("slack");
    assert_eq!(
        head,
        concat!(
            r#"{"metadata":{"video_path":"clip.mp4","total_frames":2,"fps":25.0,"tracking_engine":"mediapipe","#,
            r#""width":640,"height":360,"schema":"facetrack-2","generator":"gst-plugin-facetrack 0.2.0","device":"cpu","#,
            r#""models":{"face_landmarker.task":"6464646464646464646464646464646464646464646464646464646464646464"},"#,
            r#""options":{},"padded_frames":0,"execution_provider":"CPUExecutionProvider","#,
            r#""complete":true,"decode_errors":0,"corrupted_frames":0}"#
        )
    );
    assert_eq!(tail.trim_start(), r#","frames":["#);
    assert_eq!(
        lines[1..],
        [
            r#"{"frame":1,"tracked_objects":[],"pts":0,"status":"no-face"},"#,
            concat!(
                r#"{"frame":2,"tracked_objects":[{"id":"obj_1","centroid_x":685,"centroid_y":302,"bbox_xmin":568,"#,
                r#""bbox_xmax":800,"source":"face_landmarker","label":"face","confidence":0.0,"#,
                r#""blendshapes":{"_neutral":0.000004157,"jawOpen":0.12507,"mouthShrugUpper":0.3},"bbox_ymin":166,"#,
                r#""bbox_ymax":436,"bbox_width":232,"bbox_height":270,"is_speaking":true,"speaking_confidence":0.4,"#,
                r#""speaking_method":"visual_primary","speaking_sources":{"visual":{"jaw_open":0.12507,"#,
                r#""jaw_threshold":0.08,"mouth_activity":0.1,"confidence":1.0}}}],"pts":40000000,"status":"tracked"}"#
            ),
            "]}",
        ]
    );
}

#[test]
fn verbose_adds_its_keys_after_the_others() {
    let plain = dense_frame(&[full_face(1, 600.123_4)], Export::default());
    let detailed = dense_frame(&[full_face(1, 600.123_4)], verbose());
    let (plain, detailed) = (
        &plain["tracked_objects"][0],
        &detailed["tracked_objects"][0],
    );
    let mut known = keys(plain);
    assert_eq!(known.pop(), Some("blendshapes_corrected"));
    assert_eq!(known.pop(), Some("pose"));
    assert_eq!(known.len(), 17);
    let added = keys(detailed);
    assert_eq!(added[..17], known);
    assert_eq!(
        added[17..],
        [
            "landmarks",
            "eos",
            "box",
            "key_points",
            "pose",
            "age",
            "gender",
            "embedding",
            "landmarks_106",
            "gaze",
            "features",
            "origin",
            "landmark_confidence",
            "eye_openness",
            "fit",
            "eos_fit",
            "blendshapes_source",
            "blendshapes_raw",
            "blendshapes_corrected",
            "landmark_scheme",
        ]
    );

    assert_eq!(detailed["landmarks"].as_array().map(Vec::len), Some(478));
    assert_eq!(detailed["landmarks"][0].to_string(), "[600.123,120.5,-6.0]");
    assert_eq!(detailed["box"].to_string(), "[600.123,120.5,80.25,96.75]");
    assert_eq!(detailed["key_points"][0].to_string(), "[610.623,150.25]");
    assert_eq!(keys(&detailed["pose"]), ["matrix", "yaw", "pitch", "roll"]);
    assert_eq!(
        detailed["pose"]["matrix"][1].to_string(),
        "[0.0,1.0,0.0,-1.25]"
    );
    assert_eq!(detailed["age"].to_string(), "30.25");
    assert_eq!(detailed["gender"], "female");
    let embedding = full_face(1, 0.0).face.embedding.expect("measured");
    assert_eq!(floats(&detailed["embedding"]), *embedding);
    assert_eq!(
        detailed["landmarks_106"].as_array().map(Vec::len),
        Some(106)
    );
    assert_eq!(detailed["landmarks_106"][1].to_string(), "[600.873,199.75]");
    assert_eq!(detailed["origin"], "detected");
    assert_eq!(detailed["confidence"].to_string(), "0.988");
    assert_eq!(
        detailed["gaze"].to_string(),
        concat!(
            r#"{"right":{"x":622.498,"y":148.5,"confidence":0.75},"#,
            r#""left":{"x":658.248,"y":148.5,"confidence":0.5}}"#
        )
    );
    assert_eq!(keys(&detailed["features"]).len(), 14);
    assert_eq!(detailed["features"]["eye_l"].to_string(), "-0.25");
    assert_eq!(detailed["features"]["mouth_wide"].to_string(), "0.5625");
    assert_eq!(
        detailed["landmark_confidence"].as_array().map(Vec::len),
        Some(478)
    );
    assert_eq!(detailed["landmark_confidence"][239].to_string(), "0.5");
    assert_eq!(detailed["eye_openness"].to_string(), "[0.813,0.75]");
    let fit = &detailed["fit"];
    assert_eq!(
        keys(fit),
        [
            "success",
            "error",
            "quaternion",
            "euler",
            "rotation",
            "translation",
            "landmarks_3d",
            "projected",
        ]
    );
    assert_eq!(fit["quaternion"].to_string(), "[0.5,-0.5,0.5,0.5]");
    assert_eq!(fit["landmarks_3d"][481].to_string(), "[0.5,-0.25,0.125]");
    assert_eq!(fit["projected"][2].to_string(), "[640.373,160.5]");
    assert_eq!(detailed["blendshapes_source"], "measured");
    let names = |key: &str| keys(&detailed[key]);
    assert_eq!(names("blendshapes_raw"), names("blendshapes"));
    assert_eq!(
        detailed["blendshapes_raw"]["jawOpen"].to_string(),
        "0.6953125"
    );
}

/// The points may have a depth or not.
#[test]
fn the_106_points_have_one_name_wherever_they_are() {
    let face = recognised_face(1, 600.123_4);
    let frame = dense_frame(std::slice::from_ref(&face), verbose());
    let object = &frame["tracked_objects"][0];
    assert_eq!(
        keys(object)[17..],
        [
            "landmarks",
            "box",
            "key_points",
            "age",
            "gender",
            "embedding",
            "landmarks_106",
            "origin",
            "landmark_scheme",
        ]
    );
    assert_eq!(object["landmark_scheme"], "insightface-106");
    assert_eq!(object["landmarks"][105].to_string(), "[678.873,147.75,0.0]");
    assert_eq!(object["landmarks_106"][105].to_string(), "[678.873,147.75]");

    let mut beside = morphable_face(1, 600.123_4);
    beside.face.secondary_landmarks = face.face.landmarks;
    let frame = dense_frame(&[beside], verbose());
    let beside = &frame["tracked_objects"][0];
    assert_eq!(beside["landmarks"].as_array().map(Vec::len), Some(68));
    assert_eq!(beside["landmark_scheme"], "ibug-68");
    assert_eq!(beside["landmarks_106"], object["landmarks_106"]);
    for absent in ["age", "gender", "embedding"] {
        assert!(beside.get(absent).is_none(), "{absent}");
    }
}

/// The embedding identifies people, so a record has it only on request.
#[test]
fn plain_and_reduced_records_say_nothing_of_looks() {
    let face = recognised_face(1, 600.0);
    let plain = dense_frame(std::slice::from_ref(&face), Export::default());
    assert_eq!(keys(&plain["tracked_objects"][0]).len(), 17);
    let disk = Disk::new();
    let mut record = Record::reduced(disk.clone(), metadata()).expect("room");
    record.frame(&tracked(&[face], 0)).expect("room");
    record.close(End::Complete).expect("room");
    let object = &disk.json()["frames_analysis"][0]["tracked_objects"][0];
    assert_eq!(keys(object).len(), 8);
}

#[test]
fn the_coefficients_follow_the_landmarks_and_the_rest_of_the_fit_is_added() {
    let face = morphable_face(1, 600.123_4);
    let frame = dense_frame(std::slice::from_ref(&face), verbose());
    let object = &frame["tracked_objects"][0];
    assert_eq!(
        keys(object)[17..],
        [
            "landmarks",
            "eos",
            "box",
            "key_points",
            "pose",
            "origin",
            "eos_fit",
            "blendshapes_source",
            "landmark_scheme",
        ]
    );
    assert_eq!(object["landmarks"].as_array().map(Vec::len), Some(68));
    assert_eq!(object["blendshapes"].to_string(), r#"{"jawOpen":0.25}"#);
    assert_eq!(object["blendshapes_source"], "derived");

    let fit = morphable(600.123_4);
    let eos = &object["eos"];
    assert_eq!(keys(eos), ["shape_coeffs", "expression_coeffs"]);
    assert_eq!(floats(&eos["shape_coeffs"]), fit.shape);
    assert_eq!(floats(&eos["expression_coeffs"]), fit.expression);
    let rest = &object["eos_fit"];
    assert_eq!(
        keys(rest),
        [
            "expressions",
            "rotation",
            "origin",
            "scale",
            "residual",
            "contour"
        ]
    );
    assert_eq!(
        rest["expressions"].to_string(),
        r#"["anger","disgust","fear","happiness","sadness","surprise"]"#
    );
    assert_eq!(rest["rotation"].to_string(), "[0.5,-0.5,0.5,0.5]");
    assert_eq!(rest["origin"].to_string(), "[640.373,160.5]");
    assert_eq!(
        rest["scale"].as_f64().map(|scale| scale as f32),
        Some(fit.scale)
    );
    assert_eq!(rest["residual"].to_string(), "1.25");
    assert_eq!(rest["contour"].as_array().map(Vec::len), Some(15));
    assert_eq!(rest["contour"][1].to_string(), "[605.123,180.25]");

    let plain = dense_frame(&[face], Export::default());
    assert_eq!(
        keys(&plain["tracked_objects"][0])[17..],
        ["pose", "blendshapes_source"]
    );
}

/// Reads a list as 32-bit floats.
fn floats(list: &Json) -> Vec<f32> {
    let numbers = list.as_array().expect("a list").iter();
    numbers
        .map(|number| number.as_f64().expect("a number") as f32)
        .collect()
}

#[test]
fn a_fit_that_there_is_not_says_why() {
    for &failure in FitFailure::ALL {
        let mut face = morphable_face(1, 300.0);
        face.face.morphable = Some(Err(failure));
        let frame = dense_frame(&[face], verbose());
        let object = &frame["tracked_objects"][0];
        assert_eq!(object.get("eos"), None);
        let why = format!(r#"{{"failure":"{}"}}"#, failure);
        assert_eq!(object["eos_fit"].to_string(), why);
    }
}

#[test]
fn a_fit_with_numbers_that_are_not_finite_is_left_out() {
    type Spoil = fn(&mut MorphableFit);
    let nan = f32::NAN;
    let spoilt: [(&str, Spoil); 7] = [
        ("eos", |fit| fit.shape[62] = f32::INFINITY),
        ("eos", |fit| fit.expression[0] = f32::NAN),
        ("eos_fit", |fit| fit.rotation[3] = f32::NAN),
        ("eos_fit", |fit| fit.origin.y = f32::NEG_INFINITY),
        ("eos_fit", |fit| fit.scale = f32::NAN),
        ("eos_fit", |fit| fit.residual = f32::INFINITY),
        ("eos_fit", |fit| fit.contour[14].x = f32::NAN),
    ];
    for (key, spoil) in spoilt {
        let mut fit = morphable(300.0);
        spoil(&mut fit);
        let mut face = morphable_face(1, 300.0);
        face.face.morphable = Some(Ok(fit));
        let frame = dense_frame(&[face], verbose());
        let object = &frame["tracked_objects"][0];
        for other in ["eos", "eos_fit"] {
            assert_eq!(object.get(other).is_some(), other != key, "{other}");
        }
    }
    // The mesh is none of the record's.
    let mut fit = morphable(300.0);
    fit.mesh = Some(
        vec![Landmark {
            x: nan,
            y: nan,
            z: nan,
        }]
        .into(),
    );
    let mut face = morphable_face(1, 300.0);
    face.face.morphable = Some(Ok(fit));
    let frame = dense_frame(&[face], verbose());
    let text = frame["tracked_objects"][0]["eos_fit"].to_string();
    assert!(
        !text.contains("mesh") && text.contains("residual"),
        "{text}"
    );
}

/// Also if a reader knows only the seventeen keys, and if a profile keeps only the speech.
#[test]
fn derived_blendshapes_say_so_after_the_known_keys() {
    let mut face = at(1, Rect::new(0.0, 0.0, 10.0, 10.0));
    let derived = channels(&[("eyeBlinkLeft", 0.25), ("jawOpen", 0.5)]);
    face.face.blendshapes = Some(derived.from_source(BlendshapeSource::Derived));
    let silent = Export {
        profile: BlendshapeProfile::None,
        ..Export::default()
    };
    for (export, added) in [
        (Export::default(), &["blendshapes_source"][..]),
        (silent, &["blendshapes_source"]),
        (verbose(), &["box", "origin", "blendshapes_source"]),
    ] {
        let frame = dense_frame(&[face.clone()], export);
        let object = &frame["tracked_objects"][0];
        assert_eq!(keys(object)[16], "speaking_sources");
        assert_eq!(keys(object)[17..], *added);
        assert_eq!(object["blendshapes_source"], "derived");
        assert_eq!(object["is_speaking"], true);
    }
}

#[test]
fn without_evidence_of_speech_the_keys_are_there() {
    let frame = dense_frame(&[at(1, Rect::new(0.0, 0.0, 10.0, 10.0))], verbose());
    let object = &frame["tracked_objects"][0];
    assert_eq!(object["blendshapes"], Json::Null);
    assert_eq!(object["is_speaking"], false);
    assert_eq!(object["speaking_confidence"].to_string(), "0.0");
    assert_eq!(object["speaking_method"], "no_detection");
    assert_eq!(object["speaking_sources"].to_string(), "{}");
    assert_eq!(keys(object)[17..], ["box", "origin"]);
}

#[test]
fn the_profile_does_not_touch_the_speaking_rule() {
    let mut face = at(1, Rect::new(0.0, 0.0, 10.0, 10.0));
    face.face.blendshapes = Some(channels(&[("jawOpen", 0.5)]));
    let export = Export {
        profile: BlendshapeProfile::None,
        ..Export::default()
    };
    let frame = dense_frame(&[face], export);
    assert_eq!(frame["tracked_objects"][0]["blendshapes"], Json::Null);
    assert_eq!(frame["tracked_objects"][0]["is_speaking"], true);
}

#[test]
fn faces_are_sorted_and_truncated_toward_zero() {
    let faces = [
        at(1, Rect::new(280.0, 80.0, 40.9, 40.0)),
        at(2, Rect::new(-30.7, -10.2, 20.0, 20.0)),
    ];
    let frame = dense_frame(&faces, Export::default());
    let ids: Vec<_> = frame["tracked_objects"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|object| object["id"].clone())
        .collect();
    assert_eq!(ids, ["obj_2", "obj_1"]);
    let object = &frame["tracked_objects"][0];
    let whole = [
        "centroid_x",
        "centroid_y",
        "bbox_xmin",
        "bbox_xmax",
        "bbox_ymin",
        "bbox_ymax",
    ]
    .map(|key| object[key].as_i64().expect("an integer"));
    assert_eq!(whole, [-20, 0, -30, -10, -10, 10]);
}

#[test]
fn numbers_that_are_not_finite_never_reach_the_file() {
    let mut broken = full_face(7, 600.123_4);
    let nan = f32::NAN;
    let face = &mut broken.face;
    if let Some(landmarks) = &mut face.landmarks {
        landmarks.confidences[2] = nan;
    }
    if let Some(gaze) = &mut face.gaze {
        gaze.left.position.y = f32::NEG_INFINITY;
    }
    if let Some(features) = &mut face.features {
        features.0[3] = nan;
    }
    if let Some(fit) = &mut face.fit {
        fit.points[1][2] = nan;
    }
    if let Some(Ok(fit)) = &mut face.morphable {
        fit.shape[5] = nan;
        fit.origin.x = nan;
    }
    if let Some(contour) = &mut face.secondary_landmarks {
        contour.points[105].y = nan;
    }
    if let Some(attributes) = &mut face.attributes {
        attributes.age = f32::INFINITY;
    }
    face.embedding = Some(Arc::new([0.5, nan]));
    face.confidence = Some(nan);
    face.key_points[1].x = f32::INFINITY;
    if let Some(pose) = &mut face.pose {
        pose.matrix[2][3] = nan;
    }
    face.blendshapes = Some(channels(&[("jawOpen", nan), ("jawLeft", 0.5)]));
    let nowhere = at(8, Rect::new(nan, 0.0, 10.0, 10.0));
    let frame = dense_frame(&[broken.clone(), nowhere], verbose());
    let objects = frame["tracked_objects"].as_array().expect("a list");
    assert_eq!(objects.len(), 1);
    assert_eq!(objects[0]["confidence"].to_string(), "0.0");
    assert_eq!(objects[0]["blendshapes"].to_string(), r#"{"jawLeft":0.5}"#);
    let left = ["box", "origin", "blendshapes_source"];
    assert_eq!(keys(&objects[0])[17], "landmarks");
    assert_eq!(keys(&objects[0])[18..21], left);
    assert_eq!(keys(&objects[0])[21..], ["landmark_scheme"]);

    if let Some(landmarks) = &mut broken.face.landmarks {
        landmarks.points[3].z = nan;
    }
    let frame = dense_frame(&[broken], verbose());
    assert_eq!(keys(&frame["tracked_objects"][0])[17..], left);
}

#[test]
fn an_empty_stream_is_a_whole_record() {
    let disk = Disk::new();
    let mut record = dense(&disk, Export::default(), Metadata::default());
    record.close(End::Complete).expect("room");
    assert_eq!(disk.json()["frames"], Json::Array(vec![]));
    assert_eq!(disk.json()["metadata"]["total_frames"], 0);

    let disk = Disk::new();
    Record::reduced(disk.clone(), metadata())
        .expect("room")
        .close(End::Complete)
        .expect("room");
    assert_eq!(
        disk.text(),
        "{\"frames_analysis\":[\n],\"fps\":25.0,\"total_frames\":0}\n"
    );
}

#[test]
fn what_is_known_only_later_is_in_the_finished_head() {
    let disk = Disk::new();
    let mut record = dense(&disk, Export::default(), Metadata::default());
    for _ in 0..12 {
        record
            .frame(&FrameRecord::empty(FrameStatus::Gap, None))
            .expect("room");
    }
    *record.metadata_mut() = metadata();
    record.close(End::Complete).expect("room");
    let head = &disk.json()["metadata"];
    assert_eq!(head["total_frames"], 12);
    assert_eq!(head["padded_frames"], 12);
    assert_eq!(head["tracking_engine"], "mediapipe");
    assert_eq!(head.get("device_reason"), None);
    assert_eq!(disk.json()["frames"][11]["pts"], Json::Null);
}

/// Also where the metadata are longer than the place that was kept for them, or much shorter, and
/// with more frames than are moved at once.
#[test]
fn a_file_does_not_depend_on_when_the_metadata_were_known() {
    let faces = [full_face(1, 600.123_4)];
    for length in [0, 100, 1000, 4000, 100_000] {
        let last = Metadata {
            video_path: "ä".repeat(length),
            ..metadata()
        };
        let record = |first: Metadata| {
            let disk = Disk::new();
            let mut record = dense(&disk, Export::default(), first);
            for i in 0..100 {
                record.frame(&tracked(&faces, i)).expect("room");
            }
            *record.metadata_mut() = last.clone();
            record.close(End::Complete).expect("room");
            disk
        };
        let known_first = record(last.clone());
        assert_eq!(known_first.json()["metadata"]["total_frames"], 100);
        for first in [Metadata::default(), metadata()] {
            assert_eq!(record(first).text(), known_first.text(), "{length}");
        }
        let text = known_first.text();
        let line = text.lines().next().expect("a head");
        let blanks = line.matches(' ').count();
        assert!((1024..1024 + 4096).contains(&blanks), "{blanks}");
    }
}

#[test]
fn metadata_that_find_no_room_on_the_disk_leave_the_counts_right() {
    for end in [End::Complete, End::Broken] {
        let disk = Disk::new();
        let mut record = dense(&disk, Export::default(), metadata());
        record.frame(&tracked(&[], 0)).expect("room");
        *disk.room.lock().unwrap() = disk.text().len() as u64 + 100;
        record.metadata_mut().video_path = "ä".repeat(4000);
        let error = record.close(end).expect_err("the disk is full");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        let head = &disk.json()["metadata"];
        assert_eq!(head["video_path"], "clip.mp4");
        assert_eq!(head["total_frames"], 1);
    }
}

#[test]
fn a_record_without_an_end_says_that_it_is_incomplete() {
    let disk = Disk::new();
    let mut record = dense(&disk, Export::default(), Metadata::default());
    record.frame(&tracked(&[], 0)).expect("room");
    let head = &disk.json()["metadata"];
    assert_eq!(head["complete"], false);
    assert_eq!(head["incomplete_reason"], "the stream broke off");
}

#[test]
fn what_is_known_of_the_video_is_in_the_head() {
    let known = Metadata {
        completeness: Completeness {
            is_ended_early: false,
            reason: Some("it is cut off".into()),
            expected_duration: Some(4_000_000_000),
            expected_frames: Some(100),
            decode_errors: 1,
            corrupted: 2,
            dropped: 3,
            ..Completeness::default()
        },
        variable_rate: true,
        orientation: Some("rotate-90".into()),
        pixel_aspect_ratio: Some(1.25),
        start_time: 780_000_000,
        ..metadata()
    };
    let disk = Disk::new();
    let mut record = dense(&disk, Export::default(), known);
    record.close(End::Complete).expect("room");
    let text = disk.text();
    let added = concat!(
        r#""complete":false,"incomplete_reason":"it is cut off","expected_duration":4000000000,"expected_frames":100,"#,
        r#""decode_errors":1,"corrupted_frames":2,"dropped_frames":3,"variable_rate":true,"orientation":"rotate-90","pixel_aspect_ratio":1.25,"start_time":780000000}"#
    );
    assert!(text.contains(added), "{text}");
}

#[test]
fn fields_select_parts() {
    let face = full_face(1, 600.123_4);
    let source = Fields::ORIGIN;
    for (fields, added) in [
        (Fields::empty(), &[][..]),
        (Fields::POSE, &[]),
        (
            Fields::LANDMARKS,
            &[
                "landmarks",
                "landmarks_106",
                "landmark_confidence",
                "landmark_scheme",
            ],
        ),
        (Fields::BOX | Fields::KEY_POINTS, &["box", "key_points"]),
        (Fields::ATTRIBUTES, &["age", "gender"]),
        (Fields::EMBEDDING, &["embedding"]),
        (Fields::GAZE | Fields::FIT, &["gaze", "fit"]),
        (Fields::FEATURES, &["features", "eye_openness"]),
        (Fields::MORPHABLE, &["eos", "eos_fit"]),
        (source, &["origin", "blendshapes_source"]),
    ] {
        let export = Export {
            fields,
            ..Export::default()
        };
        let frame = dense_frame(std::slice::from_ref(&face), export);
        let mut keys = keys(&frame["tracked_objects"][0]);
        // The pose is always there.
        keys.retain(|key| !["blendshapes_corrected", "pose"].contains(key));
        assert_eq!(keys[17..], *added);
    }
}

#[test]
fn jsonl_has_a_header_and_a_trailer() {
    let disk = Disk::new();
    let mut record = Record::jsonl(disk.clone(), verbose(), metadata());
    record
        .frame(&tracked(&[morphable_face(1, 600.123_4)], 0))
        .expect("room");
    assert_eq!(disk.text().lines().count(), 2, "flushed per line");
    record
        .frame(&FrameRecord::empty(FrameStatus::Skipped, Some(1)))
        .expect("room");
    record.close(End::Complete).expect("room");
    let text = disk.text();
    let lines: Vec<Json> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 4);
    for counted in ["total_frames", "complete", "decode_errors"] {
        assert_eq!(lines[0]["metadata"][counted], Json::Null);
        assert_ne!(lines[3]["trailer"][counted], Json::Null);
    }
    assert_eq!(lines[1]["frame"], 1);
    let object = &lines[1]["tracked_objects"][0];
    assert!(object["eos"].is_object() && object["eos_fit"].is_object());
    assert_eq!(lines[2]["status"], "skipped");
    assert_eq!(lines[3]["trailer"]["total_frames"], 2);

    let disk = Disk::new();
    let mut record = Record::jsonl(disk.clone(), Export::default(), metadata());
    record.frame(&tracked(&[], 0)).expect("room");
    record.close(End::Broken).expect("room");
    assert!(!disk.text().contains("trailer"));
}

#[test]
fn reduced_is_what_the_reducer_makes() {
    let disk = Disk::new();
    let mut record = Record::reduced(disk.clone(), metadata()).expect("room");
    record
        .frame(&tracked(&[full_face(1, 600.123_4)], 0))
        .expect("room");
    record
        .frame(&FrameRecord::empty(FrameStatus::NoFace, None))
        .expect("room");
    record.close(End::Complete).expect("room");
    assert_eq!(
        disk.text(),
        concat!(
            "{\"frames_analysis\":[\n",
            r#"{"frame":1,"tracked_objects":[{"id":"obj_1","centroid_x":640,"source":"face_landmarker","label":"face","#,
            r#""confidence":0.988,"active_speakers":[],"bbox_width":80,"bbox_height":96}]},"#,
            "\n{\"frame\":2,\"tracked_objects\":[]}\n",
            "],\"fps\":25.0,\"total_frames\":2}\n"
        )
    );
}

/// Every state that a crash could leave behind is a whole document.
#[test]
fn the_storage_holds_whole_json_after_every_frame() {
    let faces = [full_face(1, 600.123_4)];
    for reduced in [false, true] {
        let disk = Disk::new();
        let mut record = match reduced {
            true => Record::reduced(disk.clone(), metadata()).expect("room"),
            false => dense(&disk, Export::default(), metadata()),
        };
        disk.json();
        for i in 0..300 {
            record.frame(&tracked(&faces, i)).expect("room");
            disk.json();
        }
        record.close(End::Broken).expect("room");
        let list = if reduced { "frames_analysis" } else { "frames" };
        assert_eq!(disk.json()[list].as_array().map(Vec::len), Some(300));
    }
}

#[test]
fn a_full_disk_keeps_every_whole_write() {
    let faces = [full_face(1, 600.123_4)];
    for reduced in [false, true] {
        for room in [100_000, 150_000, 196_608, 250_001] {
            let disk = Disk::with_room(room);
            let mut record = match reduced {
                true => Record::reduced(disk.clone(), metadata()).expect("room"),
                false => dense(&disk, Export::default(), metadata()),
            };
            let error = (0..10_000)
                .find_map(|i| record.frame(&tracked(&faces, i)).err())
                .expect("the disk is full");
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
            record.close(End::Broken).expect("no new room is needed");
            let json = disk.json();
            let list = if reduced {
                &json["frames_analysis"]
            } else {
                &json["frames"]
            };
            let kept = list.as_array().expect("frames").len();
            assert!(kept > 10, "{kept}");
            let total = match reduced {
                true => &json["total_frames"],
                false => &json["metadata"]["total_frames"],
            };
            assert_eq!(*total, kept);
        }
    }
}

#[test]
fn a_disk_full_from_the_start_holds_nothing() {
    let disk = Disk::with_room(10);
    let record = Record::dense(disk.clone(), Export::default(), metadata());
    let error = record.err().expect("the disk is full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.text(), "");
}

/// Faces of a frame that moves on by a pixel: one that stays, and one from frame 6 on, whose
/// blendshapes are corrected.
fn walkers(frame: u64, ids: [u32; 2]) -> Vec<TrackedFace> {
    let x = frame as f32;
    let mut faces = vec![at(ids[0], Rect::new(10.0 + x, 20.0, 80.0, 90.0))];
    if frame >= 6 {
        let mut second = at(ids[1], Rect::new(300.0 - x, 40.0, 70.0, 80.0));
        let blendshapes = Blendshapes::new(Arc::from(["jawOpen".to_owned()]), vec![0.5]);
        second.face.blendshapes = Some(blendshapes.assume_corrected());
        faces.push(second);
    }
    faces
}

/// Records the frames of a video of 16 frames that begins 0.7 s after 0.
fn walk(frames: std::ops::Range<u64>, ids: [u32; 2]) -> Disk {
    let disk = Disk::new();
    let metadata = Metadata {
        start_time: 700_000_000,
        ..metadata()
    };
    let mut record = dense(&disk, Export::default(), metadata);
    for frame in frames {
        let faces = walkers(frame, ids);
        let status = FrameStatus::Tracked;
        let frame = FrameRecord {
            pts: Some(frame * 40_000_000),
            status,
            cut: false,
            search: SearchExtent::Whole,
            repeated: false,
            faces: &faces,
            size: None,
            engine: None,
        };
        record.frame(&frame).expect("room");
    }
    record.close(End::Complete).expect("room");
    disk
}

/// A part whose two frames before it were tracked, too.
fn part_of_walk(folder: &std::path::Path, frames: std::ops::Range<u64>, ids: [u32; 2]) -> Part {
    let record = folder.join(format!("{}-{}.json", frames.start, frames.end));
    let seen = |frame: u64| SeenFrame {
        time: frame * 40_000_000 + 700_000_000,
        picture: frame,
        faces: walkers(frame, ids)
            .iter()
            .map(|it| {
                (it.id, {
                    let b = it.face.bbox;
                    [b.x, b.y, b.width, b.height]
                })
            })
            .collect(),
    };
    let before = (frames.start.saturating_sub(2)..frames.start).map(seen);
    let before = before.collect();
    let text = walk(frames, ids).text();
    std::fs::write(&record, text).expect("room");
    Part { record, before }
}

#[test]
fn parts_join_to_the_record_of_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let parts = [
        part_of_walk(folder.path(), 0..5, [1, 9]),
        part_of_walk(folder.path(), 5..10, [2, 1]),
        part_of_walk(folder.path(), 10..10, [1, 2]),
        part_of_walk(folder.path(), 10..16, [4, 3]),
    ];
    let stated = Stated {
        rate: Some(25.0),
        ..Stated::default()
    };
    let mut joined = Vec::new();
    join(&parts[..2], stated, &mut joined).expect("dense records");
    assert_eq!(String::from_utf8(joined), Ok(walk(0..10, [1, 2]).text()));
    let mut joined = Vec::new();
    join(
        &[parts[0].clone(), parts[1].clone(), parts[3].clone()],
        stated,
        &mut joined,
    )
    .expect("dense records");
    assert_eq!(String::from_utf8(joined), Ok(walk(0..16, [1, 2]).text()));
    let mut joined = Vec::new();
    join(&parts, stated, &mut joined).expect("dense records");
    let joined: Json = serde_json::from_slice(&joined).expect("JSON");
    assert_eq!(joined["metadata"], walk(0..16, [1, 2]).json()["metadata"]);
    // Nobody is known across an empty part, so the faces count as new.
    assert_eq!(joined["frames"][15]["tracked_objects"][0]["id"], "obj_4");
}

#[test]
fn only_dense_records_are_joined() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("a.json");
    let part = Part {
        record: record.clone(),
        before: Vec::new(),
    };
    let text = walk(0..2, [1, 2]).text();
    for text in [
        &text[..text.len() / 2],
        "{}",
        "",
        &text.replace("obj_1", "obj_x"),
    ] {
        std::fs::write(&record, text).expect("room");
        let error = join(std::slice::from_ref(&part), Stated::default(), io::sink())
            .expect_err("no dense record");
        let kinds = [io::ErrorKind::InvalidData, io::ErrorKind::UnexpectedEof];
        assert!(kinds.contains(&error.kind()), "{error:?}: {text}");
    }
}

#[test]
fn frames_of_another_size_keep_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let record = |name: &str, width| {
        let disk = Disk::new();
        let mut record = dense(
            &disk,
            Export::default(),
            Metadata {
                width,
                ..metadata()
            },
        );
        let own = FrameRecord {
            size: Some((320, 180)),
            ..FrameRecord::empty(FrameStatus::NoFace, Some(0))
        };
        record.frame(&own).expect("room");
        let next = FrameRecord::empty(FrameStatus::NoFace, Some(40_000_000));
        record.frame(&next).expect("room");
        record.close(End::Complete).expect("room");
        let record = folder.path().join(name);
        std::fs::write(&record, disk.text()).expect("room");
        Part {
            record,
            before: Vec::new(),
        }
    };
    let parts = [record("a.json", 640), record("b.json", 800)];
    let mut joined = Vec::new();
    join(&parts, Stated::default(), &mut joined).expect("dense records");
    let joined: Json = serde_json::from_slice(&joined).expect("JSON");
    assert_eq!(joined["metadata"]["width"], 640);
    let width = |frame: usize| joined["frames"][frame]["width"].clone();
    let expected = [320.into(), Json::Null, 320.into(), 800.into()];
    assert_eq!([0, 1, 2, 3].map(width), expected);
    assert_eq!(joined["frames"][3]["height"], 360);
}
