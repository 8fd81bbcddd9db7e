// SPDX-License-Identifier: MPL-2.0
//! Pipelines that can't do what they are meant for say so, with the remedy.

use crate::common;

use crate::common::bus::Watch;

use crate::common::warned::warnings_of;
use gst::prelude::*;
use gst_check::Harness;

const TRACK: &str = "facetrack engine=scripted";

/// Puts what reads metadata into `line`.
fn readers(line: &str) -> [String; 2] {
    ["facetrackoverlay", "trackudpsink host=127.0.0.1 sync=false"].map(|reader| {
        let end = match reader.starts_with("facetrackoverlay") {
            true => "! fakesink",
            false => "",
        };
        format!("{line} ! {reader} {end}")
    })
}

#[test]
fn a_stream_without_metadata_is_warned_of_once() {
    for (frames, warned) in [(200, 1), (3, 1), (1, 1)] {
        for line in readers(&format!("videotestsrc num-buffers={frames}")) {
            let warnings = warnings_of(&line);
            assert_eq!(warnings.len(), warned, "{line}: {warnings:?}");
            let remedy = "put facetrack or trackjsonload before this element";
            assert!(warnings[0].contains(remedy), "{line}: {warnings:?}");
        }
    }
}

#[test]
fn a_stream_with_metadata_is_not_warned_of() {
    for line in readers(&format!(
        "videotestsrc num-buffers=200 ! {TRACK} script=\"face from=1000\""
    )) {
        assert_eq!(warnings_of(&line), [""; 0], "{line}");
    }
    let nothing_to_draw = "videotestsrc num-buffers=200 ! facetrackoverlay layers=0 ! fakesink";
    assert_eq!(warnings_of(nothing_to_draw), [""; 0]);
}

/// Also where other elements, bins and branches are in between.
#[test]
fn an_overlay_before_facetrack_is_reported() {
    for between in [
        "videoconvert",
        "queue ! videoscale ! queue",
        "tee name=t t. ! queue ! fakesink t. ! queue",
        "( videoconvert ! identity )",
    ] {
        for frames in [2, 200] {
            let line = format!(
                "videotestsrc num-buffers={frames} ! facetrackoverlay ! {between} ! {TRACK} ! fakesink"
            );
            let warnings = warnings_of(&line);
            assert_eq!(warnings.len(), 1, "{line}: {warnings:?}");
            let remedy = "which comes later in the pipeline: put facetrack before this element";
            assert!(warnings[0].contains(remedy), "{line}: {warnings:?}");
        }
    }
}

#[test]
fn options_of_other_engines_are_warned_of_in_one_message() {
    let warnings = |options: &str| {
        warnings_of(&format!(
            "videotestsrc num-buffers=5 ! {TRACK} {options} ! fakesink"
        ))
    };
    let told = warnings("embedding=true min-size=40 max-faces=2 smoothing=off");
    let [warning] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert!(
        warning.starts_with("no effect with engine=scripted: embedding (for insightface); min-size (for opencv-haar)."),
        "{warning}"
    );
    assert_eq!(warnings("max-faces=2 smoothing=off"), [""; 0]);
}

#[test]
fn an_option_of_another_engine_that_is_set_while_playing_is_warned_of() {
    common::init();
    let element = gst::ElementFactory::make("facetrack")
        .property("engine", "scripted")
        .build()
        .expect("the element");
    let bus = Watch::of(&element);
    let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str("video/x-raw,format=RGB,width=8,height=8,framerate=25/1");
    let mut warnings_after = |property: &str, value: f64| {
        element.set_property(property, value);
        let frame = gst::Buffer::from_slice(vec![0; 8 * 24]);
        harness.push_and_pull(frame).expect("it passes");
        common::bus::warnings(&bus)
    };
    assert_eq!(warnings_after("smoothing-beta", 1.0), [""; 0]);
    let warnings = warnings_after("detection-confidence", 0.9);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("detection-confidence (for mediapipe, "));
    assert_eq!(warnings_after("detection-confidence", 0.8), [""; 0]);
}

#[test]
fn a_gpu_for_an_engine_without_use_for_it_is_warned_of_once() {
    let line = format!("videotestsrc num-buffers=20 ! {TRACK} device=cuda ! fakesink");
    let warnings = warnings_of(&line);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("GPU mode is reserved for InsightFace only."));
    assert!(warnings[0].contains("Set device=auto"), "{warnings:?}");
}

#[test]
fn a_name_that_is_nearly_an_engines_is_answered_with_it() {
    common::init();
    let element = gst::ElementFactory::make("facetrack")
        .property("engine", "yunet")
        .build()
        .expect("the element");
    let refusal = common::bus::refusal(&element);
    assert!(refusal.matches(gst::LibraryError::Settings), "{refusal}");
    let suggestion = "unknown engine \"yunet\": did you mean `opencv-yunet`?";
    assert!(refusal.message().starts_with(suggestion), "{refusal}");
}
