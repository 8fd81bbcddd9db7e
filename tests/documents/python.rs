// SPDX-License-Identifier: MPL-2.0
//! The Python module `facetrack`, compared with the JSON of the same stream.

use crate::common::{self, file};
use crate::docs;

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::faces::{face, fitted_face, full_face, morphable_face, recognised_face};
use crate::common::python::{self, PYTHON};
use crate::common::reports::{report, with_report};
use crate::common::tool::{Finished, Tool};
use docs::Files;
use facetrack::observation::FitFailure;
use facetrack::report::TrackedFace;
use gst_check::Harness;

/// Frames of the sample clip, each with one face.
const FRAMES: usize = 72;

fn has_bindings() -> bool {
    python::has_bindings("GstVideo", "gir1.2-gst-plugins-base-1.0")
}

/// Counts for each value the faces behind `line` that have it, and those with the same value in
/// their JSON.
fn compared(line: &str, given: impl Fn(Tool) -> Tool) -> BTreeMap<String, usize> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let json = folder.path().join("faces.json");
    let tool = python::program("tests/compare_faces.py")
        .arg(line)
        .arg(&json.to_string_lossy());
    let Finished { success, text } = given(tool).run();
    assert!(success, "{line}\n{text}");
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, count)| (name.to_owned(), count.parse().expect("a number")))
        .collect()
}

/// Each engine's faces on the sample clip, with what it measures of each.
#[test]
fn faces_are_those_of_the_json() {
    let Some(files) = Files::find().filter(|_| has_bindings()) else {
        return;
    };
    let values = ["status", "engine", "box", "origin", "confidence"];
    for (engine, more) in [
        (
            "mediapipe max-faces=1",
            &["landmarks", "blendshapes", "pose.matrix", "pose.roll"][..],
        ),
        ("opencv-yunet", &["key_points"]),
        ("opencv-haar", &[]),
        (
            "openseeface pnp-points=all",
            &["landmark_confidences", "gaze.left", "features", "fit.euler"],
        ),
        (
            "eos mesh=true",
            &["key_points", "morphable.shape", "morphable.mesh"],
        ),
    ] {
        let family = engine.split(' ').next().unwrap_or_default();
        if !files.have(family) {
            continue;
        }
        let line = format!(
            "filesrc location={} ! decodebin ! facetrack engine={engine}",
            files.clip.display()
        );
        let seen = compared(&line, |tool| files.given_to(tool));
        for name in values.iter().chain(more) {
            assert_eq!(
                seen.get(*name),
                Some(&FRAMES),
                "{engine}: {name} of {seen:?}"
            );
        }
    }
}

/// Writes the JSON of a stream with one frame of these faces.
fn record(faces: Vec<TrackedFace>, path: &Path) {
    common::init();
    let line = format!("trackjsonsink verbose=true location={}", path.display());
    let mut sink = Harness::new_parse(&line);
    sink.set_src_caps_str("video/x-raw,format=RGB,width=1280,height=720,framerate=25/1");
    sink.play();
    let mut buffer = gst::Buffer::new();
    let frame = buffer.make_mut();
    frame.set_pts(gst::ClockTime::ZERO);
    sink.push(with_report(buffer, &report(faces)))
        .expect("the sink takes it");
    assert!(sink.push_event(gst::event::Eos::new()));
}

/// Faces with everything that any engine measures, and with nothing but a box.
#[test]
fn every_value_is_read_and_absent_ones_are_none() {
    if !has_bindings() {
        return;
    }
    let mut failed = face(6, 900.0);
    failed.face.morphable = Some(Err(FitFailure::OutOfFrame));
    let faces = vec![
        full_face(1, 100.25),
        face(2, -20.5),
        fitted_face(3, 300.75),
        morphable_face(4, 500.5),
        recognised_face(5, 700.0),
        failed,
    ];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let written = folder.path().join("written.json");
    record(faces, &written);
    let line = format!(
        "videotestsrc num-buffers=1 ! video/x-raw,width=1280,height=720,framerate=25/1 ! trackjsonload location={}",
        written.display()
    );
    let seen = compared(&line, |tool| tool);
    for (name, count) in [
        ("box", 6),
        ("landmarks", 4),
        ("landmark_confidences", 2),
        ("landmarks_106", 2),
        ("key_points", 3),
        ("blendshapes", 3),
        ("raw_blendshapes", 2),
        ("pose.yaw", 3),
        ("gaze.right", 2),
        ("features", 2),
        ("age", 2),
        ("gender", 2),
        ("embedding", 2),
        ("fit.landmarks_3d", 2),
        ("fit.projected", 2),
        ("morphable.origin", 2),
        ("morphable.failure", 1),
    ] {
        assert_eq!(seen.get(name), Some(&count), "{name} of {seen:?}");
    }
}

/// Faces are kept after their pipeline has gone, and buffers without metadata have none.
#[test]
fn values_outlive_their_buffer() {
    if !has_bindings() {
        return;
    }
    let output = python::program("tests/keep_faces.py").run();
    assert!(output.success, "{}", output.text);
    assert_eq!(output.text, "12 faces kept\n");
}

/// Without their modules, the programs name the packages that have them.
#[test]
fn missing_modules_are_named_with_their_packages() {
    for (program, package) in [
        ("examples/read_metadata.py", "gir1.2-gst-plugins-base-1.0"),
        ("examples/annotate.py", "gir1.2-gst-plugins-base-1.0"),
        ("examples/plot_blendshapes.py", "python3-matplotlib"),
    ] {
        // Without its site module Python does not see Debian's modules.
        let tool = Tool::new(PYTHON).arg("-S");
        let Finished { success, text } = tool.arg(&file(program).to_string_lossy()).run();
        assert!(!success, "{text}");
        assert!(!text.contains("Traceback"), "{text}");
        for part in ["No module named", "sudo apt-get install", package] {
            assert!(text.contains(part), "{program}: {part} is not in: {text}");
        }
    }
}
