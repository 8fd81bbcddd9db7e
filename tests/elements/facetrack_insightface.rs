// SPDX-License-Identifier: MPL-2.0
//! `facetrack engine=insightface` in a pipeline, on the processor: what is wrong with settings and
//! packs, and what reaches a reader. Where it runs is the business of `facetrack_device.rs`.

use crate::common;

use std::fs;
use std::path::Path;

use crate::common::bus::refusal;
use crate::common::clip::{Clip, FRAMES};
use crate::common::pack::{Installed, element};
use crate::common::tool::Finished;
use facetrack::observation::{LandmarkScheme, Origin};
use facetrack::report::FrameReport;
use gst::prelude::*;
use gst_check::Harness;
use gstfacetrack::meta::FaceTrackMeta;

const DETECTOR: &str = "scrfd_500m_bnkps.onnx";

#[test]
fn packs_that_are_not_there_are_named() {
    if Installed::find().is_none() {
        return;
    }
    let empty = tempfile::tempdir().expect("a folder");
    let empty = empty.path().to_string_lossy().into_owned();
    for (pack, parts) in [
        ("/nowhere/buffalo_l", &["/nowhere/buffalo_l", "`model`"][..]),
        (
            "buffalo_xxl",
            &["buffalo_xxl", "searched in", "`models-dir`"],
        ),
        (&empty, &[&empty, "none of its .onnx files is a detector"]),
    ] {
        let error = refusal(&element(&[("model", pack)]));
        for part in parts {
            assert!(error.message().contains(part), "{part} not in {error}");
        }
    }
}

#[test]
fn a_pack_that_is_nowhere_is_reported_with_every_place() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let home = tempfile::tempdir().expect("a folder");
    let Finished { success, text } = installed
        .launch_any(&Clip::draw())
        .arg("engine=insightface")
        .env("FACETRACK_MODELS_DIR", "/nowhere/models")
        .env("INSIGHTFACE_HOME", "/nowhere/home")
        .env("HOME", &home.path().to_string_lossy())
        .args("! fakesink")
        .run();
    assert!(!success, "{text}");
    let own = home.path().join(".insightface/models");
    for part in [
        "buffalo_l",
        "/nowhere/models",
        "/nowhere/home/models",
        &own.to_string_lossy(),
        "/usr/share/facetrack/models",
    ] {
        assert!(text.contains(part), "{part} not in\n{text}");
    }
}

#[test]
fn a_damaged_network_is_named() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let published = fs::read(installed.pack.join(DETECTOR)).expect("the detector");
    let mut changed = published.clone();
    changed[published.len() / 2] ^= 1;
    for (name, bytes) in [
        ("det_10g.onnx", &published[..published.len() / 2]),
        ("det_10g.onnx", b"<html>404: Not Found</html>"),
        ("det_10g.onnx", b""),
        // A file of a published name has to be the published one.
        (DETECTOR, &changed),
    ] {
        if name == DETECTOR && !is_known(DETECTOR) {
            eprintln!("SKIPPED: {DETECTOR} is not in the manifest");
            continue;
        }
        let pack = tempfile::tempdir().expect("a folder");
        fs::write(pack.path().join(name), bytes).expect("a file");
        let error = refusal(&element(&[("model", &*pack.path().to_string_lossy())]));
        for part in [&*pack.path().join(name).to_string_lossy(), "`model`"] {
            assert!(error.message().contains(part), "{part} not in {error}");
        }
    }
}

/// Returns true if the manifest knows the hash of a file.
fn is_known(name: &str) -> bool {
    let files = &facetrack_assets::manifest::manifest().files;
    files.iter().any(|file| *file.name == *name)
}

#[test]
fn settings_that_can_not_be_are_refused_with_what_can() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let pack = installed.pack.to_string_lossy().into_owned();
    for (settings, parts) in [
        (
            &[("det-size", "650")][..],
            &["`det-size`: 650", "multiple of 32"][..],
        ),
        (
            &[("allowed-modules", "detection,landmarks")],
            &[
                "`allowed-modules`",
                "\"landmarks\"",
                "detection, landmark_2d_106, landmark_3d_68, genderage, recognition",
            ],
        ),
        (
            &[("embedding", "true"), ("allowed-modules", "detection")],
            &["recognition", "not allowed", "`embedding`"],
        ),
    ] {
        let element = element(&[("model", pack.as_str())]);
        for (name, value) in settings {
            element.set_property_from_str(name, value);
        }
        let error = refusal(&element);
        assert!(error.matches(gst::LibraryError::Settings), "{error}");
        for part in parts {
            assert!(error.message().contains(part), "{part} not in {error}");
        }
    }
}

#[test]
fn the_environment_is_as_good_as_properties() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let home = tempfile::tempdir().expect("a folder");
    let models = home.path().join("models");
    fs::create_dir(&models).expect("a folder");
    std::os::unix::fs::symlink(&installed.pack, models.join("own")).expect("a link");
    let Finished { success, text } = installed
        .launch_any(&Clip::draw())
        .env("STEP5_TRACKING_ENGINE", "insightface")
        .env("INSIGHTFACE_HOME", &home.path().to_string_lossy())
        .env("STEP5_INSIGHTFACE_MODEL_NAME", "own")
        .env("STEP5_INSIGHTFACE_DET_SIZE", "320,320")
        .env("STEP5_INSIGHTFACE_ALLOWED_MODULES", "detection genderage")
        .env("STEP5_INSIGHTFACE_DETECT_EVERY_N", "2")
        .env("STEP5_INSIGHTFACE_MAX_FACES", "1")
        .args("! trackjsonsink verbose=true")
        .run();
    assert!(success, "{text}");
    assert!(
        text.contains(r#""tracking_engine":"insightface""#),
        "{text}"
    );
    assert_eq!(text.matches("\"age\":").count(), FRAMES, "{text}");
    assert_eq!(text.matches("\"landmarks_106\":[").count(), 0, "{text}");
    let held = text.matches(r#""origin":"held""#).count();
    assert_eq!(held, FRAMES / 2, "{text}");
}

#[test]
fn variables_that_are_not_understood_warn_and_do_not_count() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let Finished { success, text } = installed
        .launch(&Clip::draw())
        .env("STEP5_INSIGHTFACE_DET_SIZE", "640,480")
        .env("STEP5_INSIGHTFACE_ALLOWED_MODULES", "all of them")
        .args("! trackjsonsink")
        .run();
    assert!(success, "{text}");
    for part in [
        "STEP5_INSIGHTFACE_DET_SIZE=\"640,480\" ignored",
        "`det-size` is 0",
        "STEP5_INSIGHTFACE_ALLOWED_MODULES=\"all of them\" ignored",
        "`allowed-modules` is unset",
        "landmark_2d_106",
    ] {
        assert!(text.contains(part), "{part} not in\n{text}");
    }
    assert_eq!(text.matches("\"obj_1\"").count(), FRAMES, "{text}");
}

/// The reports of the clip's frames.
fn reports(properties: &str) -> Vec<FrameReport> {
    common::init();
    let clip = Clip::draw();
    let pipeline = gst::parse::launch(&format!(
        "{} ! facetrack engine=insightface {properties} ! appsink name=sink sync=false",
        clip.source()
    ))
    .expect("a pipeline");
    pull_all(&pipeline, &["sink"]).remove(0)
}

/// The reports that reach each of the appsinks.
fn pull_all(pipeline: &gst::Element, sinks: &[&str]) -> Vec<Vec<FrameReport>> {
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let reports = sinks.iter().map(|name| {
        let sink = bin.by_name(name).expect("the sink");
        let sink: gst_app::AppSink = sink.downcast().expect("an appsink");
        std::iter::from_fn(|| sink.pull_sample().ok())
            .map(|sample| FaceTrackMeta::from_buffer(sample.buffer().expect("a frame")))
            .map(|report| report.expect("a report"))
            .collect()
    });
    let reports = reports.collect();
    pipeline.set_state(gst::State::Null).expect("it stops");
    reports
}

#[test]
fn what_is_measured_reaches_a_reader_and_the_embedding_only_where_it_is_wanted() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let pack = installed.pack.display();
    for (properties, landmarks, attributes, embedding) in [
        ("", true, true, false),
        ("embedding=true", true, true, true),
        ("allowed-modules=landmark_2d_106", true, false, false),
        ("allowed-modules=recognition", false, false, false),
        (
            "allowed-modules=\"detection,recognition\" embedding=true",
            false,
            false,
            true,
        ),
        ("det-size=320 nms-threshold=0.3", true, true, false),
        ("detect-max-width=160", true, true, false),
    ] {
        let reports = reports(&format!("model={pack} {properties}"));
        assert_eq!(reports.len(), FRAMES, "{properties}");
        for report in reports {
            let [tracked] = report.faces.as_slice() else {
                panic!("{properties}: {} faces", report.faces.len());
            };
            assert_eq!(tracked.id, 1, "{properties}");
            let face = &tracked.face;
            assert_eq!(face.key_points.len(), 5);
            let scheme = face.landmarks.as_ref().map(|landmarks| landmarks.scheme);
            let wanted = landmarks.then_some(LandmarkScheme::InsightFace106);
            assert_eq!(scheme, wanted, "{properties}");
            assert_eq!(face.attributes.is_some(), attributes, "{properties}");
            let length = face.embedding.as_ref().map(|values| values.len());
            assert_eq!(length, embedding.then_some(512), "{properties}");
        }
    }
}

#[test]
fn what_a_pack_has_is_known_once_it_is_loaded() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let element = element(&[("model", &*installed.pack.to_string_lossy())]);
    let scheme = || {
        let capabilities: gst::Structure = element.property("capabilities");
        let pose = capabilities.get::<bool>("pose").expect("yes or no");
        (capabilities.get::<String>("landmark-scheme"), pose)
    };
    assert_eq!(scheme(), (Ok("ibug-68".to_owned()), true), "a full pack");
    element.set_state(gst::State::Ready).expect("READY");
    assert_eq!(scheme(), (Ok("insightface-106".to_owned()), false));
    element.set_property("allowed-modules", "landmark_3d_68");
    assert_eq!(scheme(), (Ok("ibug-68".to_owned()), true), "not yet loaded");
    element.set_state(gst::State::Null).expect("NULL");
}

#[test]
fn two_elements_at_once_see_the_same() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let clip = Clip::draw();
    let track = format!(
        "queue ! facetrack engine=insightface embedding=true model={}",
        installed.pack.display()
    );
    let pipeline = gst::parse::launch(&format!(
        "{} ! tee name=t t. ! {track} ! appsink name=a sync=false t. ! {track} ! appsink name=b sync=false",
        clip.source()
    ))
    .expect("a pipeline");
    let [a, b] = pull_all(&pipeline, &["a", "b"])
        .try_into()
        .expect("two of them");
    assert_eq!(a.len(), FRAMES);
    let faces = |reports: Vec<FrameReport>| -> Vec<_> {
        reports.into_iter().map(|report| report.faces).collect()
    };
    assert_eq!(faces(a), faces(b));
}

/// Plays `element` frame by frame.
struct Stream {
    harness: Harness,
    sent: u64,
}

impl Stream {
    fn new(installed: &Installed) -> Self {
        let element = element(&[("model", &*installed.pack.to_string_lossy())]);
        Self {
            harness: Harness::with_element(&element, Some("sink"), Some("src")),
            sent: 0,
        }
    }

    fn caps(&mut self, (width, height): (usize, usize)) {
        let caps = format!("video/x-raw,format=GRAY8,width={width},height={height},framerate=25/1");
        match self.sent {
            0 => self.harness.set_src_caps_str(&caps),
            _ => {
                let caps: gst::Caps = caps.parse().expect("caps");
                assert!(self.harness.push_event(gst::event::Caps::new(&caps)));
            }
        }
    }

    /// The report on a frame of this size that comes out.
    fn next(&mut self, (width, height): (usize, usize)) -> FrameReport {
        let stride = width.next_multiple_of(4);
        let mut buffer = gst::Buffer::from_slice(vec![128u8; stride * height]);
        let fields = buffer.get_mut().expect("the only reference");
        fields.set_pts(gst::ClockTime::from_mseconds(40 * self.sent));
        self.sent += 1;
        let buffer = self.harness.push_and_pull(buffer).expect("it flows");
        FaceTrackMeta::from_buffer(&buffer).expect("a report")
    }
}

#[test]
fn frames_of_any_size_come_out_again_and_none_is_lost() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let mut stream = Stream::new(&installed);
    for size in [
        (1, 1),
        (2, 3),
        (31, 33),
        (640, 1),
        (1, 640),
        (639, 641),
        (1920, 1080),
        (16384, 2),
        (2, 16384),
        (320, 240),
    ] {
        stream.caps(size);
        for _ in 0..2 {
            let report = stream.next(size);
            assert_eq!((report.width as usize, report.height as usize), size);
            assert!(report.faces.is_empty(), "{size:?}: {:?}", report.faces);
        }
    }
    let harness = &mut stream.harness;
    assert!(harness.push_event(gst::event::FlushStart::new()));
    assert!(harness.push_event(gst::event::FlushStop::new(true)));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    assert!(harness.push_event(gst::event::Segment::new(&segment)));
    assert_eq!(stream.next((320, 240)).width, 320, "after a flush");
    assert!(stream.harness.push_event(gst::event::Eos::new()));
    assert_eq!(stream.harness.buffers_received() as u64, stream.sent);
}

#[test]
fn a_seek_begins_anew_and_loads_nothing_again() {
    let Some(installed) = Installed::find() else {
        return;
    };
    common::init();
    let clip = Clip::draw();
    let pipeline = gst::parse::launch(&format!(
        "{} ! facetrack engine=insightface model={} ! appsink name=sink sync=false max-buffers=1",
        clip.source(),
        installed.pack.display()
    ))
    .expect("a pipeline");
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    let sink: gst_app::AppSink = bin
        .by_name("sink")
        .and_then(|sink| sink.downcast().ok())
        .expect("an appsink");
    let pull = || -> Vec<FrameReport> {
        std::iter::from_fn(|| sink.pull_sample().ok())
            .filter_map(|sample| FaceTrackMeta::from_buffer(sample.buffer()?))
            .collect()
    };
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let first = pull();
    pipeline
        .seek_simple(gst::SeekFlags::FLUSH, gst::ClockTime::ZERO)
        .expect("a clip that can be played again");
    let second = pull();
    let bus = pipeline.bus().expect("a bus");
    let loads = std::iter::from_fn(|| bus.pop())
        .filter(|message| {
            let structure = message.structure();
            structure.is_some_and(|structure| structure.name() == "facetrack-ready")
        })
        .count();
    pipeline.set_state(gst::State::Null).expect("it stops");
    assert_eq!((first.len(), second.len()), (FRAMES, FRAMES));
    assert_eq!(loads, 1);
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first.faces[0].face.bbox, second.faces[0].face.bbox);
        assert_eq!(second.faces[0].face.origin, Origin::Detected);
    }
    assert_eq!((first[0].faces[0].id, second[0].faces[0].id), (1, 2));
}

#[test]
fn a_missing_runtime_is_named() {
    let Some(installed) = Installed::find() else {
        return;
    };
    let Finished { success, text } = installed
        .launch(&Clip::draw())
        .args("runtime=onnxruntime")
        .env("FACETRACK_ONNXRUNTIME", "/nowhere/libonnxruntime.so")
        .args("! fakesink")
        .run();
    assert!(!success, "{text}");
    for part in [
        "/nowhere/libonnxruntime.so",
        "facetrack fetch",
        "`onnxruntime`",
    ] {
        assert!(text.contains(part), "{part} not in\n{text}");
    }
    assert!(Path::new(&installed.runtime).is_file());
}
