// SPDX-License-Identifier: MPL-2.0
//! Engines that are loaded while a stream runs. A program of its own, because it counts the threads
//! of its process.

#[path = "../common/mod.rs"]
mod common;

use std::fs;

use common::bus::Watch;
use facetrack::engine::EngineConfig;
use gst::prelude::*;
use gst_check::Harness;

/// An engine that takes a while to load, and no ONNX Runtime.
const CASCADE: &str = "opencv-haar";

/// Linux's flag of threads that are over, though they are still listed; proc(5), `/proc/pid/stat`,
/// field 9.
const PF_EXITING: u32 = 4;

/// Threads of this process that load an engine.
fn loaders() -> usize {
    let threads = fs::read_dir("/proc/self/task").expect("Linux");
    let stats =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("stat")).ok());
    stats.filter(|stat| is_loading(stat)).count()
}

/// Returns true if a line `number (name) state …` describes a thread that loads an engine.
fn is_loading(stat: &str) -> bool {
    let (name, fields) = stat.rsplit_once(") ").expect("a name");
    let flags = fields.split(' ').nth(6).expect("flags");
    let flags: u32 = flags.parse().expect("a number");
    name.ends_with("(facetrack-load") && flags & PF_EXITING == 0
}

/// Returns true if a message since the last call reports a loaded engine.
fn has_loaded(bus: &gst::Bus, engine: &str) -> bool {
    std::iter::from_fn(|| bus.pop()).any(|message| {
        message.structure().is_some_and(|structure| {
            structure.name() == "facetrack-ready" && structure.get("engine") == Ok(engine)
        })
    })
}

/// Engines are changed often, and the stream is stopped in several ways.
#[test]
fn one_engine_is_loaded_at_a_time_and_none_outlives_the_stream() {
    common::init();
    let kind = CASCADE.parse().expect("an engine");
    if common::engine::engine(kind, &EngineConfig::default()).is_none() {
        return;
    }
    let element = gst::parse::launch("facetrack engine=scripted script=face").expect("good");
    let bus = Watch::of(&element);
    let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
    harness.set_src_caps_str("video/x-raw,format=RGB,width=64,height=48,framerate=25/1");
    let mut most = 0;
    let mut pass = || {
        let buffer = gst::Buffer::from_slice(vec![0u8; 64 * 48 * 3]);
        harness.push_and_pull(buffer).expect("it flows");
        most = most.max(loaders());
    };
    for number in 0..60 {
        element.set_property("engine", [CASCADE, "scripted"][number % 2]);
        pass();
        pass();
    }
    element.set_property("engine", CASCADE);
    let frames = (0..1_000_000).find(|_| {
        pass();
        has_loaded(&bus, CASCADE)
    });
    assert!(frames.is_some(), "it is loaded");
    element.set_property("engine", "scripted");
    pass();
    assert_eq!(most, 1, "at once");
    element.set_state(gst::State::Null).expect("it stops");
    assert_eq!(loaders(), 0);
}
