// SPDX-License-Identifier: MPL-2.0
//! The output of `trackjsonsink` follows the published JSON Schema.

use crate::common;

use std::fs;

use crate::common::clip::{Clip, FRAMES};
use crate::common::engine::engine;
use crate::common::faces::{face, full_face, morphable_face, recognised_face};
use crate::common::reports::{report, with_report};
use facetrack::engine::{EngineConfig, EngineKind};
use facetrack::observation::{Fields, FitFailure};
use gst_check::Harness;
use jsonschema::Validator;
use serde_json::{Value as Json, json};

/// The schema, or one of its definitions.
fn validator(definition: &str) -> Validator {
    let text = include_str!("../../schema/facetrack-2.schema.json");
    let mut schema: Json = serde_json::from_str(text).expect("JSON");
    assert!(jsonschema::meta::is_valid(&schema));
    if !definition.is_empty() {
        assert!(schema["$defs"].get(definition).is_some());
        let object = schema.as_object_mut().expect("an object");
        object.remove("oneOf");
        object.insert("$ref".into(), json!(format!("#/$defs/{definition}")));
    }
    jsonschema::validator_for(&schema).expect("a schema")
}

fn assert_valid(definition: &str, document: &Json) {
    for definition in ["", definition] {
        let errors: Vec<_> = validator(definition)
            .iter_errors(document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{definition}: {errors:#?}");
    }
}

/// The sink's record of a stream with all possible contents.
fn record(format: &str, verbose: bool) -> String {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clip.json");
    let element = gst::ElementFactory::make("trackjsonsink")
        .property("location", path.to_str().expect("UTF-8"))
        .property_from_str("format", format)
        .property("verbose", verbose)
        .build()
        .expect("the element");
    let mut harness = Harness::with_element(&element, Some("sink"), None);
    harness.play();
    harness.set_src_caps_str("video/x-raw,format=RGB,width=640,height=360,framerate=30000/1001");
    let mut unfitted = morphable_face(3, 700.0);
    unfitted.face.morphable = Some(Err(FitFailure::OutOfFrame));
    let mut tracked = report(vec![
        full_face(1, 300.0),
        face(2, -50.0),
        unfitted,
        recognised_face(4, 1000.0),
    ]);
    // Not as large as the frame before it.
    (tracked.width, tracked.height) = (1920, 1080);
    let reports = [Some(report(vec![])), Some(tracked), None];
    for (i, report) in reports.iter().enumerate() {
        let mut buffer = gst::Buffer::new();
        let pts = gst::ClockTime::from_mseconds(100 * i as u64);
        let writable = buffer.make_mut();
        writable.set_pts((i != 2).then_some(pts));
        // Frames are lost before it.
        writable.set_flags(gst::BufferFlags::DISCONT);
        let buffer = match report {
            Some(report) => with_report(buffer, report),
            None => buffer,
        };
        harness.push(buffer).expect("the sink takes it");
    }
    assert!(harness.push_event(gst::event::Eos::new()));
    fs::read_to_string(path).expect("a file")
}

fn parse(text: &str) -> Json {
    serde_json::from_str(text).expect("JSON")
}

#[test]
fn whole_files_follow_the_schema() {
    assert_valid("dense", &parse(&record("dense", false)));
    assert_valid("dense", &parse(&record("dense", true)));
    assert_valid("reduced", &parse(&record("reduced", false)));
}

#[test]
fn lines_follow_the_schema() {
    let text = record("jsonl", true);
    let lines: Vec<Json> = text.lines().map(parse).collect();
    let [header, frames @ .., trailer] = lines.as_slice() else {
        panic!("{text}");
    };
    assert_valid("header", header);
    assert_valid("trailer", trailer);
    assert!(frames.len() > 3, "{text}");
    for frame in frames {
        assert_valid("frame", frame);
    }
}

/// The results of `facetrack` for a drawn face, as the sink writes them.
fn measured(settings: &str) -> Json {
    common::init();
    let clip = Clip::draw();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clip.json");
    let pipeline = gst::parse::launch(&format!(
        "{} ! facetrack {settings} ! trackjsonsink location={} verbose=true",
        clip.source(),
        path.display()
    ))
    .expect("a pipeline");
    common::play_to_end(&pipeline);
    parse(&fs::read_to_string(path).expect("a file"))
}

#[test]
fn what_each_engine_measures_follows_the_schema() {
    for kind in EngineKind::ALL {
        let Some(engine) = engine(kind, &EngineConfig::default()) else {
            continue;
        };
        let info = &engine.info;
        let name = kind.name();
        let record = measured(&format!("engine={name}"));
        assert_valid("dense", &record);
        assert_eq!(record["metadata"]["tracking_engine"], name);
        let models = record["metadata"]["models"].as_object().expect("a list");
        assert_eq!(models.len(), info.models.len(), "{name}");
        assert_eq!(record["metadata"]["device"], "cpu", "{name}");
        let provider = &record["metadata"]["execution_provider"];
        assert_eq!(*provider, info.runtimes.execution_provider(), "{name}");
        assert_eq!(record["metadata"]["complete"], true, "{name}");
        let frames = record["frames"].as_array().expect("frames");
        assert_eq!(frames.len(), FRAMES, "{name}");
        for frame in frames {
            let faces = frame["tracked_objects"].as_array().expect("faces");
            let [face] = faces.as_slice() else {
                panic!("{name}: {} faces", faces.len());
            };
            assert_eq!(
                face["blendshapes"].is_null(),
                info.blendshapes.is_empty(),
                "{name}"
            );
            assert_eq!(
                face.get("landmarks").is_some(),
                info.landmarks.is_some(),
                "{name}"
            );
            let key_points = face
                .get("key_points")
                .map_or(0, |points| points.as_array().expect("a list").len());
            assert_eq!(key_points, info.key_points, "{name}");
            let source = info.blendshape_source.to_string();
            let told = (!info.blendshapes.is_empty()).then_some(source);
            assert_eq!(
                face.get("blendshapes_source").and_then(Json::as_str),
                told.as_deref(),
                "{name}"
            );
            let measures = |field| info.measures.contains(field);
            for (key, reported) in [
                ("pose", measures(Fields::POSE)),
                ("gaze", measures(Fields::GAZE)),
                ("features", measures(Fields::FEATURES)),
                // Only OpenSeeFace's.
                ("eye_openness", measures(Fields::FEATURES)),
                ("landmark_confidence", measures(Fields::FEATURES)),
                ("fit", measures(Fields::FIT)),
                ("eos", measures(Fields::MORPHABLE)),
                ("eos_fit", measures(Fields::MORPHABLE)),
                ("age", measures(Fields::ATTRIBUTES)),
                ("gender", measures(Fields::ATTRIBUTES)),
                ("landmarks_106", kind == EngineKind::InsightFace),
                // Nobody asked for it.
                ("embedding", false),
            ] {
                assert_eq!(face.get(key).is_some(), reported, "{name}: {key}");
            }
        }
    }
}

#[test]
fn an_embedding_that_was_asked_for_is_written() {
    let kind = EngineKind::InsightFace;
    if engine(kind, &EngineConfig::default()).is_none() {
        return;
    }
    let record = measured("engine=insightface embedding=true");
    assert_valid("dense", &record);
    let face = &record["frames"][0]["tracked_objects"][0];
    let embedding = face["embedding"].as_array().expect("numbers");
    let squares = embedding
        .iter()
        .map(|v| v.as_f64().expect("a number").powi(2));
    assert!((squares.sum::<f64>() - 1.0).abs() < 1e-5);
    assert_eq!(embedding.len(), 512);
}

#[test]
fn the_page_describes_the_schema() {
    let schema = parse(include_str!("../../schema/facetrack-2.schema.json"));
    let page = common::record_page::markdown(&schema);
    common::generated::assert_generated("docs/json-record.md", &page);
}

#[test]
fn the_schema_tells_what_is_wrong() {
    let validator = validator("");
    let mut good = parse(&record("dense", true));
    for (key, value) in [
        ("expected_duration", json!(500)),
        ("variable_rate", json!(true)),
        ("orientation", json!("rotate-90")),
        ("pixel_aspect_ratio", json!(1.25)),
    ] {
        good["metadata"][key] = value;
    }
    assert!(validator.is_valid(&good));
    let tracked = "/frames/3/tracked_objects/1";
    let cases = [
        ("/metadata/schema", json!("facetrack-1")),
        ("/metadata/total_frames", Json::Null),
        ("/frames/0/tracked_objects", Json::Null),
        ("/frames/0/status", json!("asleep")),
        ("/frames/3/width", json!(0)),
        (&format!("{tracked}/id"), json!("1")),
        (&format!("{tracked}/source"), json!("mediapipe")),
        (&format!("{tracked}/centroid_x"), json!(1.5)),
        (&format!("{tracked}/blendshapes"), json!({})),
        (&format!("{tracked}/landmarks/7"), json!([1.0, 2.0])),
        (&format!("{tracked}/pose/matrix"), json!([1.0, 0.0])),
        ("/metadata/complete", Json::Null),
        ("/metadata/decode_errors", json!(-1)),
        ("/metadata/expected_duration", json!(0.5)),
        ("/metadata/variable_rate", json!(false)),
        ("/metadata/orientation", json!(90)),
        ("/metadata/pixel_aspect_ratio", json!("4/3")),
        (&format!("{tracked}/age"), json!("30")),
        (&format!("{tracked}/gender"), json!("unsure")),
        (&format!("{tracked}/embedding"), json!([])),
        (&format!("{tracked}/embedding/511"), Json::Null),
        (&format!("{tracked}/landmarks_106"), json!([[1.0, 2.0]])),
        (
            &format!("{tracked}/landmarks_106/7"),
            json!([1.0, 2.0, 3.0]),
        ),
        (&format!("{tracked}/gaze/left"), json!([1.0, 0.0])),
        (&format!("{tracked}/features/mouth_open"), Json::Null),
        (&format!("{tracked}/landmark_confidence/7"), json!("high")),
        (&format!("{tracked}/eye_openness"), json!([1.0])),
        (&format!("{tracked}/fit/success"), json!(1)),
        (&format!("{tracked}/fit/quaternion"), json!([0.0, 0.0, 0.0])),
        (
            &format!("{tracked}/fit/projected/0"),
            json!([1.0, 2.0, 3.0]),
        ),
        (&format!("{tracked}/eos"), json!({"shape_coeffs": [1.0]})),
        (&format!("{tracked}/eos/shape_coeffs/7"), json!("7")),
        (&format!("{tracked}/eos/expression_coeffs/5"), json!(-0.5)),
        (&format!("{tracked}/eos_fit/rotation"), json!([0.0, 1.0])),
        (&format!("{tracked}/eos_fit/contour/0"), json!([1.0])),
        (&format!("{tracked}/eos_fit/scale"), Json::Null),
        (
            &format!("{tracked}/eos_fit"),
            json!({"failure": "no mood for it"}),
        ),
        (&format!("{tracked}/blendshapes_source"), json!("made up")),
    ];
    for (pointer, value) in cases {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).expect(pointer) = value;
        assert!(!validator.is_valid(&bad), "{pointer}");
    }
}
