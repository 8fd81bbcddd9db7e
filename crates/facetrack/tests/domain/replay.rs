// SPDX-License-Identifier: MPL-2.0
//! Records read back.

use crate::common::faces;
use crate::common::noise;
use crate::common::same;

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use faces::{face, fitted_face, full_face, morphable_face, recognised_face};
use facetrack::blendshape::Blendshapes;
use facetrack::model::ModelFile;
use facetrack::observation::{FitFailure, LandmarkScheme};
use facetrack::record::{End, Export, Fields, FrameRecord, Metadata, Record, Storage};
use facetrack::replay::{Replay, ReplayError};
use facetrack::report::{FrameReport, FrameStatus, ReportSource, SearchExtent, TrackedFace};
use noise::{Noise, replace_value};
use same::assert_same;

const MS: u64 = 1_000_000;

/// A storage that is looked into afterwards.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<Cursor<Vec<u8>>>>);

impl Disk {
    fn text(&self) -> String {
        let bytes = self.0.lock().expect("whole").get_ref().clone();
        String::from_utf8(bytes).expect("UTF-8")
    }
}

impl Read for Disk {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.lock().expect("whole").read(bytes)
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("whole").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Disk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.lock().expect("whole").seek(to)
    }
}

impl Storage for Disk {
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let mut content = self.0.lock().expect("whole");
        content.get_mut().truncate(len as usize);
        Ok(())
    }

    fn replace_start(&mut self, old: u64, new: &[u8]) -> io::Result<()> {
        let mut content = self.0.lock().expect("whole");
        let rest = content.get_ref()[old as usize..].to_vec();
        *content.get_mut() = [new, &rest].concat();
        Ok(())
    }
}

/// A frame of a stream.
#[derive(Clone)]
struct Frame {
    status: FrameStatus,
    faces: Vec<TrackedFace>,
    size: Option<(u32, u32)>,
    engine: Option<&'static str>,
}

impl Frame {
    fn of(faces: Vec<TrackedFace>) -> Self {
        Self {
            status: match faces.is_empty() {
                true => FrameStatus::NoFace,
                false => FrameStatus::Tracked,
            },
            faces,
            size: None,
            engine: None,
        }
    }

    fn without_faces(status: FrameStatus) -> Self {
        Self {
            status,
            ..Self::of(vec![])
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Format {
    Dense,
    Jsonl,
}

const FORMATS: [Format; 2] = [Format::Dense, Format::Jsonl];

fn source() -> Arc<ReportSource> {
    Arc::new(ReportSource {
        engine: "handmade".into(),
        device: "cuda:1".into(),
        execution_provider: "CUDAExecutionProvider".into(),
        device_reason: String::new(),
        load_time: Duration::ZERO,
        generator: "a test 1.0".into(),
        models: ["b.task", "a.onnx"]
            .map(|name| ModelFile {
                name: name.into(),
                sha256: "0b".repeat(32),
            })
            .into(),
        options: r#"{"engine":"handmade","detection-confidence":0.25,"max-faces":3,"mesh":true}"#
            .into(),
    })
}

fn head(source: Option<Arc<ReportSource>>) -> Metadata {
    Metadata {
        video_path: "clip.mp4".into(),
        fps: 25.0,
        width: 1280,
        height: 720,
        generator: "a test 1.0".into(),
        source,
        ..Metadata::default()
    }
}

fn export(fields: Fields) -> Export {
    Export {
        fields,
        ..Export::default()
    }
}

/// Index of a frame that is the first one of a shot.
const CUT: usize = 2;

/// The frame that repeats the picture before it.
const REPEATED: usize = 3;

/// The text of a stream whose engine is known once a frame is analysed.
fn record(frames: &[Frame], format: Format, fields: Fields) -> String {
    record_of(head(None), frames, format, fields)
}

fn record_of(head: Metadata, frames: &[Frame], format: Format, fields: Fields) -> String {
    let disk = Disk::default();
    let mut record = match format {
        Format::Dense => Record::dense(disk.clone(), export(fields), head).expect("room"),
        Format::Jsonl => Record::jsonl(disk.clone(), export(fields), head),
    };
    for (i, frame) in frames.iter().enumerate() {
        if !matches!(frame.status, FrameStatus::Skipped | FrameStatus::Gap) {
            record.metadata_mut().source = Some(source());
        }
        record
            .frame(&FrameRecord {
                pts: (i % 5 != 4).then_some(i as u64 * 40 * MS),
                status: frame.status,
                cut: i == CUT,
                search: SearchExtent::Whole,
                repeated: i == REPEATED,
                faces: &frame.faces,
                size: frame.size,
                engine: frame.engine,
            })
            .expect("room");
    }
    record.close(End::Complete).expect("room");
    disk.text()
}

fn open(text: impl AsRef<[u8]>) -> Result<Replay<Cursor<Vec<u8>>>, ReplayError> {
    Replay::open(Cursor::new(text.as_ref().to_vec()))
}

/// Values that a record gives for all its frames.
fn reports(text: impl AsRef<[u8]>) -> Result<Vec<Option<FrameReport>>, ReplayError> {
    let mut replay = open(text)?;
    let frames = replay.frames().len();
    (0..frames)
        .map(|place| replay.report(place, (1280, 720)))
        .collect()
}

fn error(text: impl AsRef<[u8]>) -> String {
    reports(text).expect_err("it is broken").to_string()
}

/// The frames that reports were made of.
fn frames(reports: Vec<Option<FrameReport>>, unseen: FrameStatus) -> Vec<Frame> {
    let frame = |report: Option<FrameReport>| match report {
        Some(report) => {
            assert_eq!(*report.source, *source());
            Frame {
                status: report.status,
                faces: report.faces,
                size: Some((report.width, report.height)),
                engine: None,
            }
        }
        None => Frame::without_faces(unseen),
    };
    reports.into_iter().map(frame).collect()
}

/// Everything that can be in a record.
fn everything() -> Vec<Frame> {
    let mut unfitted = morphable_face(4, 500.0);
    unfitted.face.morphable = Some(Err(FitFailure::OutOfFrame));
    let mut other_size = Frame::of(vec![full_face(9, 40.5)]);
    other_size.size = Some((640, 360));
    vec![
        Frame::without_faces(FrameStatus::Skipped),
        Frame::of(vec![]),
        Frame::of(vec![face(2, -50.25), full_face(1, 300.0), unfitted]),
        Frame::without_faces(FrameStatus::Gap),
        Frame::of(vec![fitted_face(1, 300.0), morphable_face(7, 1300.0)]),
        Frame::of(vec![recognised_face(1, 310.0)]),
        other_size,
        Frame::without_faces(FrameStatus::Skipped),
        Frame::without_faces(FrameStatus::Error),
    ]
}

#[test]
fn frames_name_an_engine_that_was_set_later() {
    let other = Frame {
        engine: Some("another"),
        ..Frame::without_faces(FrameStatus::NoFace)
    };
    let first = Frame {
        engine: Some("handmade"),
        ..other.clone()
    };
    for format in FORMATS {
        let text = record(
            &[first.clone(), other.clone(), first.clone()],
            format,
            Fields::empty(),
        );
        let named = text.matches(r#""tracking_engine":"another""#).count();
        assert_eq!(named, 1, "{text}");
        let reports = reports(&text).expect("a record");
        let engines: Vec<_> = reports
            .iter()
            .flatten()
            .map(|report| &*report.source.engine)
            .collect();
        assert_eq!(engines, ["handmade", "another", "handmade"]);
    }
}

#[test]
fn the_metadata_have_the_first_engine_and_the_models_of_all() {
    let other = Arc::new(ReportSource {
        engine: "another".into(),
        device: "cpu".into(),
        models: vec![ModelFile {
            name: "c.onnx".into(),
            sha256: "0c".repeat(32),
        }],
        ..ReportSource::clone(&source())
    });
    let mut metadata = head(None);
    for source in [&source(), &other, &source(), &other] {
        metadata.take_source(source);
    }
    let taken = metadata.source.expect("a source");
    assert_eq!((&*taken.engine, &*taken.device), ("handmade", "cpu"));
    let models: Vec<_> = taken.models.iter().map(|model| &*model.name).collect();
    assert_eq!(models, ["b.task", "a.onnx", "c.onnx"]);
}

#[test]
fn recording_what_was_read_gives_the_same_text() {
    for format in FORMATS {
        let text = record(&everything(), format, Fields::all());
        let read = frames(reports(&text).expect("a record"), FrameStatus::Skipped);
        assert_same(&record(&read, format, Fields::all()), &text);
    }
}

#[test]
fn the_shape_of_pixels_is_read() {
    for (ratio, want) in [(Some(1.25), 1.25), (None, 1.0), (Some(-1.0), 1.0)] {
        let head = Metadata {
            pixel_aspect_ratio: ratio,
            ..head(Some(source()))
        };
        for format in FORMATS {
            let text = record_of(head.clone(), &everything(), format, Fields::all());
            let replay = open(text).expect("a record");
            assert_eq!(replay.pixel_aspect_ratio(), want, "{format:?}");
        }
    }
}

#[test]
fn first_frames_of_shots_and_repeated_pictures_are_read_as_such() {
    for format in FORMATS {
        let read = reports(record(&everything(), format, Fields::all())).expect("a record");
        let frames = |is_meant: fn(&FrameReport) -> bool| -> Vec<_> {
            let is_meant = |at: &usize| read[*at].as_ref().is_some_and(is_meant);
            (0..read.len()).filter(is_meant).collect()
        };
        assert_eq!(frames(|report| report.cut), [CUT], "{format:?}");
        assert_eq!(frames(|report| report.repeated), [REPEATED], "{format:?}");
    }
}

#[test]
fn positions_that_were_rounded_over_a_whole_pixel_come_back() {
    let mut noise = Noise::new(7);
    let frames_of = |noise: &mut Noise| -> Vec<Frame> {
        (0..60)
            .map(|_| {
                let mut faces = noise.faces(3, (1280.0, 720.0));
                // Smaller faces are left out.
                faces.retain(|it| it.face.bbox.width >= 1.0 && it.face.bbox.height >= 1.0);
                Frame::of(faces)
            })
            .collect()
    };
    for _ in 0..20 {
        let text = record(&frames_of(&mut noise), Format::Dense, Fields::all());
        let read = frames(reports(&text).expect("a record"), FrameStatus::Skipped);
        assert_same(&record(&read, Format::Dense, Fields::all()), &text);
    }
}

#[test]
fn what_was_read_is_what_was_recorded() {
    let written = fitted_face(3, 100.0);
    let text = record(
        &[Frame::of(vec![written.clone()])],
        Format::Dense,
        Fields::all(),
    );
    let read = reports(text).expect("a record")[0]
        .clone()
        .expect("a report");
    assert_eq!((read.width, read.height), (1280, 720));
    assert_eq!(read.status, FrameStatus::Tracked);
    let [read] = &read.faces[..] else {
        panic!("{read:?}");
    };
    assert_eq!(read.id, 3);
    // The values that have more than three decimals.
    let (read, mut want) = (read.face.clone(), written.face);
    want.confidence = Some(0.988);
    let scores = want.landmarks.as_mut().expect("landmarks");
    for score in &mut scores.confidences {
        *score = (*score * 1000.0).round() / 1000.0;
    }
    assert_eq!(read, want);
}

/// Records of earlier versions have no scheme.
#[test]
fn landmarks_without_a_scheme_are_known_by_their_number() {
    let text = record(&everything(), Format::Dense, Fields::all());
    let older = LandmarkScheme::ALL.iter().fold(text.clone(), |text, it| {
        text.replace(&format!(",\"landmark_scheme\":\"{it}\""), "")
    });
    assert!(older.len() < text.len() && !older.contains("landmark_scheme"));
    assert_eq!(
        reports(older).expect("a record"),
        reports(text).expect("a record")
    );
}

#[test]
fn a_plain_record_yields_what_it_has() {
    let written = full_face(3, 100.75);
    let text = record(
        &[Frame::of(vec![written.clone()])],
        Format::Jsonl,
        Fields::empty(),
    );
    let read = reports(text).expect("a record")[0]
        .clone()
        .expect("a report");
    let read = &read.faces[0].face;
    let mut want = face(3, 0.0).face;
    want.bbox = facetrack::geometry::Rect::new(100.0, 120.0, 80.0, 96.0);
    want.confidence = Some(0.988);
    want.pose = written.face.pose;
    let blendshapes = written.face.blendshapes.expect("some");
    let (names, values) = (blendshapes.names(), blendshapes.values());
    want.blendshapes = Some(Blendshapes::new(names.clone(), values.to_vec()).assume_corrected());
    assert_eq!(*read, want);
}

#[test]
fn a_record_without_an_engine_says_nothing_of_its_frames() {
    for format in FORMATS {
        let text = record(
            &[Frame::without_faces(FrameStatus::Skipped)],
            format,
            Fields::all(),
        );
        assert_eq!(reports(text).expect("a record"), [None]);
        let text = record(&[], format, Fields::all());
        assert_eq!(reports(text).expect("a record"), []);
    }
}

#[test]
fn records_that_others_have_laid_out_anew_are_read() {
    let text = record(&everything(), Format::Dense, Fields::all());
    let want = reports(&text).expect("a record");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let pretty = serde_json::to_string_pretty(&json).expect("JSON");
    assert_eq!(reports(&pretty).expect("a record"), want);
    assert_eq!(reports(json.to_string()).expect("a record"), want);
    let broken = pretty.replacen("\"obj_7\"", "7", 1);
    let line = 1 + broken[..broken.find("\"frame\": 5").expect("it")]
        .matches('\n')
        .count();
    let message = error(&broken);
    // The line of the frame's opening brace.
    assert!(
        message.contains(&format!("line {}, frame 5", line - 1)),
        "{message}"
    );
}

#[test]
fn records_that_broke_off_are_read_to_their_last_whole_frame() {
    for format in FORMATS {
        let text = record(&everything(), format, Fields::all());
        let whole = reports(&text).expect("a record");
        let first = text.find('\n').expect("lines") + 1;
        let mut noise = Noise::new(3);
        for _ in 0..200 {
            let end = first + noise.below(text.len() - first);
            let mut cut = text.as_bytes().to_vec();
            cut.truncate(end);
            let mut replay = open(&cut).unwrap_or_else(|e| panic!("cut at {end}: {e}"));
            let read = replay.frames().len();
            let lines = cut.split(|byte| *byte == b'\n').count();
            assert!(read + 3 > lines, "{read} frames of {lines} lines");
            for (place, wanted) in whole.iter().enumerate().take(read) {
                let report = replay.report(place, (1280, 720)).expect("whole");
                // A jsonl record without its end does not name the engine.
                if let Some(report) = report {
                    assert_eq!(
                        Some(report.faces),
                        wanted.clone().map(|report| report.faces)
                    );
                }
            }
        }
    }
}

#[test]
fn errors_name_the_line_and_the_frame() {
    let text = record(&everything(), Format::Dense, Fields::all());
    let replaced = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    for (broken, parts) in [
        (String::new(), &["it is empty"][..]),
        (" \n\n".to_owned(), &["it is empty"]),
        (
            "hello\nworld\n".to_owned(),
            &["line 1, column 1", "format=dense"],
        ),
        ("[1,2]".to_owned(), &["line 1", "format=dense"]),
        ("[]".to_owned(), &["expected an object"]),
        (
            "{\"metadata\":7}\n".to_owned(),
            &["line 1", "expected an object"],
        ),
        (
            replaced("{\"id\":\"obj_2\"", "7,{\"id\":\"obj_2\""),
            &[
                "line 4, frame 3",
                "expected an object at column",
                "of the frame",
            ],
        ),
        ("{}".to_owned(), &["`metadata` and `frames` are missing"]),
        (
            "{\"frames_analysis\":[\n],\"fps\":25.0,\"total_frames\":0}\n".to_owned(),
            &["reduced record", "format=dense"],
        ),
        (
            replaced("facetrack-2", "facetrack-9"),
            &["facetrack-9", "update"],
        ),
        (replaced("b.task", ""), &["metadata", "SHA-256"]),
        (replaced("b.task", "b\\nc"), &["metadata", "SHA-256"]),
        (replaced("0b0b", "xyzz"), &["metadata", "SHA-256"]),
        (replaced("a test", "a\\u0000test"), &["metadata", "NUL"]),
        (
            replaced("\"frame\":4", "\"frame\":3"),
            &["line 5, frame 3", "after frame 3"],
        ),
        (replaced("\"frame\":4", "\"frame\":-4"), &["line 5"]),
        (
            replaced("\"frame\":4,", ""),
            &["line 5", "missing field `frame`"],
        ),
        (
            replaced("\"tracked_objects\"", "\"objects\""),
            &["line 2, frame 1", "tracked_objects"],
        ),
        (
            replaced("no-face", "no-body"),
            &["line 3, frame 2", "no-body"],
        ),
        (replaced("obj_1", "obj_0"), &["line 4, frame 3", "obj_0"]),
        (replaced("obj_1", "obj_4294967296"), &["line 4, frame 3"]),
        (
            replaced("jawOpen", "jaw,Open"),
            &["frame 3", "obj_1", "jaw,Open"],
        ),
        (replaced("jawOpen", "jaw\\u0000"), &["frame 3", "obj_1"]),
        (replaced("jawOpen", ""), &["frame 3", "no name"]),
        (replaced("\"anger\"", "\"an,ger\""), &["frame 3", "an,ger"]),
        (
            replaced("\"anger\",", ""),
            &["frame 3", "expression_coeffs"],
        ),
        (
            replaced("\"failure\":\"out-of-frame\"", "\"failure\":\"mood\""),
            &["mood"],
        ),
        (
            replaced("\"landmarks\":[", "\"landmarks\":[[1,2,3],"),
            &["479 landmarks"],
        ),
        (
            replaced("\"mediapipe-478\"", "\"ibug-68\""),
            &["frame 3", "ibug-68 does not have 478 landmarks"],
        ),
        (
            replaced("\"mediapipe-478\"", "\"dlib-68\""),
            &["frame 3", "dlib-68"],
        ),
        (
            replaced("\"landmark_confidence\":[", "\"landmark_confidence\":[1,"),
            &["differ in length"],
        ),
        (
            replaced("\"landmarks_106\":[", "\"landmarks_106\":[[1,2],"),
            &["107 points"],
        ),
        (
            replaced("\"gender\":\"female\",", ""),
            &["`age` and `gender`"],
        ),
        (replaced("\"eye_l\"", "\"eye\""), &["no feature \"eye_l\""]),
        (
            replaced("\"box\":[", "\"box\":[1e39,"),
            &["frame 3", "number out of range"],
        ),
        (replaced("\"box\":[", "\"box\":[NaN,"), &["line 4"]),
        (
            replaced("\"box\":[", "\"box\":[1e999,"),
            &["line 4", "out of range"],
        ),
        (replaced("\"measured\"", "\"guessed\""), &["guessed"]),
        (
            replaced(
                "\"blendshapes_raw\":{\"_neutral\"",
                "\"blendshapes_raw\":{\"rest\"",
            ),
            &["frame 3", "obj_1", "`blendshapes_raw`"],
        ),
        (
            replaced("\"width\":640", "\"width\":0"),
            &["frame 7", "no size"],
        ),
    ] {
        let message = error(&broken);
        for part in parts {
            assert!(message.contains(part), "{part} in {message}");
        }
        assert!(!message.contains("struct "), "{message}");
        assert!(!message.contains(" at line "), "{message}");
    }
}

/// With and without decimals.
#[test]
fn boxes_without_an_extent_are_errors() {
    let whole = record(&everything(), Format::Dense, Fields::empty());
    for (key, value) in [
        ("bbox_width", "0"),
        ("bbox_height", "0"),
        ("bbox_width", "-7"),
    ] {
        let broken = whole.replacen(
            &format!("\"{key}\":"),
            &format!("\"{key}\":{value},\"old\":"),
            1,
        );
        let message = error(&broken);
        for part in ["frame 3", "obj_", "no extent"] {
            assert!(message.contains(part), "{key}: {part} in {message}");
        }
    }
    let exact = record(&everything(), Format::Dense, Fields::all());
    let start = exact.find("\"box\":[").expect("a box") + 7;
    let end = start + exact[start..].find(']').expect("its end");
    let broken = format!("{}1,2,0,0{}", &exact[..start], &exact[end..]);
    let message = error(&broken);
    assert!(message.contains("no extent"), "{message}");
}

#[test]
fn deep_nesting_is_an_error_and_no_crash() {
    let text = record(&everything(), Format::Dense, Fields::all());
    let deep = "[".repeat(1_000_000);
    for (from, to) in [
        ("\"frame\":4", format!("\"x\":{deep}")),
        ("\"video_path\":", format!("\"x\":{deep}")),
        ("{\"metadata\":", deep.clone()),
        ("\"box\":", format!("\"box\":{deep}")),
    ] {
        assert!(!error(text.replacen(from, &to, 1)).is_empty());
    }
}

/// Reading any file ends with a report or an error.
#[test]
fn damaged_records_do_no_harm() {
    let mut noise = Noise::new(11);
    let values = [
        "null",
        "-1",
        "1e38",
        "-1e38",
        "1e-45",
        "1e999",
        "18446744073709551615",
        "4294967295",
        "[]",
        "{}",
        "\"\"",
        "\"obj_1\"",
        "true",
        "NaN",
        "2147483647",
        "-2147483648",
        "0.0",
    ];
    let mut read = 0;
    for format in FORMATS {
        let text = record(&everything(), format, Fields::all());
        for _ in 0..1500 {
            let mut damaged = text.clone().into_bytes();
            for _ in 0..=noise.below(3) {
                if damaged.is_empty() {
                    break;
                }
                let at = noise.below(damaged.len());
                match noise.below(4) {
                    0 => damaged[at] = noise.below(256) as u8,
                    1 => drop(damaged.drain(at..(at + noise.below(40)).min(damaged.len()))),
                    2 => replace_value(&mut damaged, at, values[noise.below(values.len())]),
                    _ => damaged.truncate(at.max(1)),
                }
            }
            read += usize::from(reports(&damaged).is_ok());
        }
    }
    assert!(read > 100, "{read} of 3000: most damage goes no deeper");
}

/// The record has the form of the older pipeline, which had the dense format first.
#[test]
fn foreign_records_without_what_was_added_are_read() {
    let text = r#"{
  "metadata": {"video_path": "clip.mp4", "total_frames": 2, "fps": 25.0, "tracking_engine": "mediapipe"},
  "frames": [
    {"frame": 1, "tracked_objects": []},
    {"frame": 2, "tracked_objects": [{"id": "obj_1", "centroid_x": 695, "centroid_y": 301, "bbox_xmin": 568,
      "bbox_xmax": 800, "source": "face_landmarker", "label": "face", "confidence": 0.0,
      "blendshapes": {"_neutral": 4.157e-06, "jawOpen": 0.12507}, "bbox_ymin": 166, "bbox_ymax": 436,
      "bbox_width": 232, "bbox_height": 270}]}
  ]
}"#;
    let reports = reports(text).expect("a record");
    let [Some(empty), Some(tracked)] = &reports[..] else {
        panic!("{reports:?}");
    };
    assert_eq!(empty.status, FrameStatus::NoFace);
    assert_eq!(tracked.status, FrameStatus::Tracked);
    assert_eq!(tracked.source.engine, "mediapipe");
    assert_eq!((tracked.width, tracked.height), (1280, 720));
    let face = &tracked.faces[0].face;
    assert_eq!(face.confidence, None);
    assert_eq!(
        face.blendshapes.as_ref().and_then(|b| b.get("jawOpen")),
        Some(0.12507)
    );
}
