// SPDX-License-Identifier: MPL-2.0
//! Files that are played on a machine that is too slow for the engine: a real decoder, and a sink
//! that waits for the clock and reports late frames.

use crate::common;

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::encoded::{ffmpeg, has_ffmpeg};
use serde_json::Value as Json;

/// Frames of the clip, 25 per second.
const FRAMES: usize = 75;

/// Time from frame to frame, ns.
const PERIOD: u64 = 40_000_000;

/// Default of `max-age`.
const MAX_AGE: usize = 7;

/// Maximum lateness of shown frames, ns: the default of video sinks.
const MAX_LATENESS: u64 = 20_000_000;

/// Twice as slow as the clip is played.
const SLOW: &str = "facetrack engine=scripted script=\"face; slow ms=80\"";

/// The record of a clip that is played in a pipeline; `{sink}` is a sink that waits and `{record}`
/// is the recording one. `None`, reported, without ffmpeg.
fn play(between: &str) -> Option<Json> {
    common::init();
    if !has_ffmpeg() {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let [clip, record] = ["clip.mp4", "clip.json"].map(|name| folder.path().join(name));
    let source = format!("testsrc2=size=320x180:rate=25 -frames:v {FRAMES}");
    // Every frame is a reference: the decoder skips none without decoding it.
    let codec = "-c:v libx264 -preset ultrafast -bf 0 -pix_fmt yuv420p";
    ffmpeg(&format!("-f lavfi -i {source} {codec}"), &clip);
    let sink = format!("fakesink sync=true qos=true max-lateness={MAX_LATENESS}");
    let between = between.replace("{sink}", &sink);
    let between = between.replace(
        "{record}",
        &format!("trackjsonsink location={}", text(&record)),
    );
    let pipeline = gst::parse::launch(&format!(
        "filesrc location={} ! qtdemux ! h264parse ! avdec_h264 ! {between}",
        text(&clip)
    ));
    common::play_to_end(&pipeline.expect("a pipeline"));
    let record = std::fs::read(&record).expect("a record");
    Some(serde_json::from_slice(&record).expect("JSON"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

fn frames(record: &Json) -> &[Json] {
    record["frames"].as_array().expect("a list")
}

/// Returns for each frame whether it was filled in.
fn gaps(record: &Json) -> Vec<bool> {
    let frames = frames(record).iter();
    frames.map(|frame| frame["status"] == "gap").collect()
}

fn ids(record: &Json) -> BTreeSet<&str> {
    let faces = frames(record).iter().flat_map(|frame| {
        let faces = frame["tracked_objects"].as_array().expect("a list");
        faces.iter().map(|face| face["id"].as_str().expect("an id"))
    });
    faces.collect()
}

/// Every frame of the clip has its number and its time, whatever was dropped.
#[track_caller]
fn check_times(record: &Json) {
    let times = frames(record).iter().map(|frame| frame["pts"].as_u64());
    let want = (0..FRAMES as u64).map(|frame| Some(frame * PERIOD));
    assert!(times.eq(want), "{record}");
}

#[test]
fn no_frame_is_dropped_for_a_sink_that_is_late() {
    let display = format!("{SLOW} ! tee name=tee ! queue ! {{sink}}  tee. ! queue ! {{record}}");
    let Some(record) = play(&display) else {
        return;
    };
    check_times(&record);
    assert_eq!(ids(&record), BTreeSet::from(["obj_1"]));
    assert!(!gaps(&record).contains(&true));
    assert_eq!(record["metadata"]["complete"], true);
}

/// By `qos=true`, or because the QoS events do not pass `facetrack`.
#[test]
fn frames_that_the_decoder_drops_are_no_damage() {
    for display in [
        format!("{SLOW} qos=true ! tee name=tee ! queue ! {{sink}}  tee. ! queue ! {{record}}"),
        // The slow branch holds up the other one.
        format!(
            "tee name=tee ! queue ! {{sink}}  tee. ! queue max-size-buffers=1 ! {SLOW} ! {{record}}"
        ),
    ] {
        let Some(record) = play(&display) else {
            return;
        };
        check_times(&record);
        let gaps = gaps(&record);
        let runs = gaps.split(|is_gap| !is_gap);
        let long = runs.filter(|run| run.len() > MAX_AGE).count();
        let dropped = gaps.iter().filter(|is_gap| **is_gap).count();
        assert!(dropped > 0, "the machine keeps up");
        // A long run at the end is not followed by a face.
        let lives = [long, long + 1];
        assert!(lives.contains(&ids(&record).len()), "{:?}", ids(&record));
        let head = &record["metadata"];
        assert_eq!(head["decode_errors"], 0);
        assert_eq!(head["dropped_frames"], dropped);
        assert_eq!(head["complete"], false);
        let reason = head["incomplete_reason"].as_str().expect("a reason");
        assert!(reason.contains("because a sink was late"), "{reason}");
        assert!(!reason.contains("error"), "{reason}");
    }
}
