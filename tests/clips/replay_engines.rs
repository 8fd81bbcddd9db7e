// SPDX-License-Identifier: MPL-2.0
//! The results of each engine for a clip, recorded, replayed, and recorded again.

use crate::common;

use std::fs;
use std::path::Path;

use crate::common::clip::Clip;
use crate::common::engine::engine;
use crate::common::same::assert_same;
use facetrack::engine::{EngineConfig, EngineKind};

fn play(launch: &str) {
    let pipeline = gst::parse::launch(launch).unwrap_or_else(|error| panic!("{launch}: {error}"));
    common::play_to_end(&pipeline);
}

/// Records what `facetrack` finds in the frames of `source`, replays it over them, and records it
/// again.
fn assert_comes_back(source: &str, tracker: &str, sink: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name| folder.path().join(name).display().to_string();
    let (first, second) = (path("first.json"), path("second.json"));
    play(&format!(
        "{source} ! facetrack {tracker} ! trackjsonsink location={first} {sink}"
    ));
    play(&format!(
        "{source} ! trackjsonload location={first} ! trackjsonsink location={second} {sink}"
    ));
    let read = |path: &str| fs::read_to_string(path).expect("a record");
    let (first, second) = (read(&first), read(&second));
    assert!(first.contains("\"obj_1\""), "{tracker}: no face is found");
    assert_same(&second, &first);
}

const SINKS: [&str; 2] = ["verbose=true", "verbose=true format=jsonl"];

#[test]
fn scripted_faces_come_back() {
    common::init();
    let source =
        "videotestsrc num-buffers=60 ! video/x-raw,width=321,height=241,framerate=30000/1001";
    for tracker in [
        "engine=scripted",
        "engine=scripted script=\"landmarks;face x=0.3 dx=0.013 dy=0.007;face x=0.7 size=0.2 dx=-0.011 from=5 to=20\"",
        "engine=scripted script=\"landmarks;face dx=0.0123\" inference-interval=3",
        "engine=scripted script=\"landmarks;face dx=0.0123\" smoothing=one-euro tracker=iou",
    ] {
        for sink in SINKS {
            assert_comes_back(source, tracker, sink);
        }
    }
}

#[test]
fn drawn_faces_of_every_engine_come_back() {
    common::init();
    let clip = Clip::draw();
    for kind in EngineKind::ALL {
        if engine(kind, &EngineConfig::default()).is_none() {
            continue;
        }
        let more = match kind {
            EngineKind::OpenSeeFace => "pnp-points=all",
            EngineKind::Eos => "mesh=true",
            EngineKind::InsightFace => "embedding=true",
            _ => "",
        };
        for sink in SINKS {
            assert_comes_back(
                &clip.source(),
                &format!("engine={} {more}", kind.name()),
                sink,
            );
        }
    }
}

#[test]
fn faces_of_a_clip_come_back() {
    common::init();
    let Some(folder) = std::env::var_os("FACETRACK_REFERENCE_DIR") else {
        eprintln!("SKIPPED: FACETRACK_REFERENCE_DIR is not set");
        return;
    };
    let clip = Path::new(&folder).join("media/pyfeat_single_face.mp4");
    let source = format!("filesrc location={} ! decodebin", clip.display());
    for kind in EngineKind::ALL {
        if engine(kind, &EngineConfig::default()).is_some() {
            assert_comes_back(&source, &format!("engine={}", kind.name()), "verbose=true");
        }
    }
}
