// SPDX-License-Identifier: MPL-2.0
//! Helpers for the tests of the elements.
#![allow(dead_code, reason = "each test program uses its part")]

pub mod bus;
pub mod child;
pub mod clip;
pub mod column_page;
pub mod encoded;
pub mod ffmpeg;
pub mod frames;
pub mod generated;
pub mod metadata_page;
pub mod pack;
pub mod padded;
pub mod player;
pub mod property_table;
pub mod python;
pub mod record_page;
pub mod reports;
pub mod rotated;
pub mod strace;
pub mod tool;
pub mod warned;

#[path = "../../crates/facetrack/tests/common/mod.rs"]
mod domain;

pub use domain::*;

use std::path::{Path, PathBuf};
use std::sync::Once;

use gst::prelude::*;

/// GStreamer with the plugin of this crate.
pub fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        gst::init().expect("GStreamer starts");
        gstfacetrack::plugin_register_static().expect("the plugin registers");
    });
}

/// A file of the repository.
pub fn file(path: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = package.ancestors();
    let root = folders.find(|folder| folder.join("Cargo.lock").is_file());
    root.expect("the workspace").join(path)
}

/// Says that a test is skipped for want of something in these packages. Where `CI` says that all
/// are installed it fails.
#[track_caller]
pub fn skip_for_want_of(what: &str, packages: &str) {
    let why = format!("{what} is missing. Run `scripts/system-packages.sh {packages}`");
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    assert!(!is_ci, "{why}");
    eprintln!("SKIPPED: {why}");
}

/// Plays a pipeline to its end. The limit ends one that stands still, also on a busy machine.
pub fn play_to_end(pipeline: &gst::Element) {
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let message = pipeline.bus().expect("a bus").timed_pop_filtered(
        gst::ClockTime::from_seconds(600),
        &[gst::MessageType::Eos, gst::MessageType::Error],
    );
    let message = message.expect("it ends");
    assert_eq!(message.type_(), gst::MessageType::Eos, "{message:?}");
    pipeline.set_state(gst::State::Null).expect("it stops");
}

/// Memory of this process that is in RAM.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a line");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .expect("a number");
    kib * 1024
}
