// SPDX-License-Identifier: MPL-2.0
//! The calibration of `facetrack` is kept in a file, and reset on request. The scripted engine
//! learns how many frames it saw.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::bus::{self, Watch};
use crate::common::child::{arguments, child, is_child};
use crate::common::strace::{self, Fault, Traced};
use crate::common::tool::{Tool, plugin};
use gst::prelude::*;
use gst_check::Harness;
use tempfile::TempDir;

const CAPS: &str = "video/x-raw,format=RGB,width=64,height=48,framerate=25/1";
const FRAME_SIZE: usize = 64 * 48 * 3;

/// A folder, and the file that is to be in it.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("faces.json");
    (folder, file)
}

fn element(script: &str, file: &Path) -> gst::Element {
    common::init();
    gst::ElementFactory::make("facetrack")
        .property("engine", "scripted")
        .property("script", script)
        .property("calibration-file", file.to_str())
        .build()
        .expect("the element")
}

/// An element that plays, with its bus.
struct Stream {
    harness: Harness,
    element: gst::Element,
    bus: Watch,
}

impl Stream {
    fn new(file: &Path) -> Self {
        Self::of(element("face; learns", file))
    }

    fn of(element: gst::Element) -> Self {
        let bus = Watch::of(&element);
        let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps_str(CAPS);
        Self {
            harness,
            element,
            bus,
        }
    }

    fn push(&mut self, frames: usize) {
        for _ in 0..frames {
            let buffer = gst::Buffer::from_slice(vec![0u8; FRAME_SIZE]);
            self.harness.push_and_pull(buffer).expect("it flows");
        }
    }

    fn end(&mut self) {
        assert!(self.harness.push_event(gst::event::Eos::new()));
    }

    fn reset(&self) {
        self.element.emit_by_name::<()>("reset-calibration", &[]);
    }

    fn go(&self, state: gst::State) {
        self.element.set_state(state).expect("the state");
    }

    /// Texts of warnings posted so far.
    fn warnings(&self) -> Vec<String> {
        bus::warnings(&self.bus)
    }
}

/// Frames that the file knows of; it is the only one in its folder.
#[track_caller]
fn learned(file: &Path) -> u64 {
    let folder = fs::read_dir(file.parent().expect("a folder")).expect("readable");
    assert_eq!(folder.count(), 1, "nothing else is left");
    let text = fs::read_to_string(file).expect("the file");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    json["frames"].as_u64().expect("a number")
}

#[test]
fn what_is_learned_goes_on_from_stream_to_stream() {
    let (_folder, file) = place();
    let mut first = Stream::new(&file);
    assert!(!file.exists(), "there is nothing to keep yet");
    first.push(3);
    assert!(!file.exists(), "the stream goes on");
    first.end();
    assert_eq!(learned(&file), 3);
    drop(first);

    let mut second = Stream::new(&file);
    second.push(2);
    second.end();
    assert_eq!(learned(&file), 5);
    assert_eq!(second.warnings(), [""; 0]);
}

#[test]
fn a_stream_that_is_stopped_is_kept() {
    let (_folder, file) = place();
    let mut stream = Stream::new(&file);
    stream.push(3);
    stream.go(gst::State::Ready);
    assert_eq!(learned(&file), 3);
}

#[test]
fn a_stream_that_fails_is_kept() {
    for script in ["learns; fail at=3", "learns; panic at=3"] {
        let (_folder, file) = place();
        let mut stream = Stream::of(element(script, &file));
        stream.push(3);
        assert_eq!(learned(&file), 2, "{script}");
    }
}

#[test]
fn a_file_that_says_the_same_is_not_written() {
    let (_folder, file) = place();
    fs::write(&file, "{ \"frames\": 3 }").expect("writable");
    let mut stream = Stream::new(&file);
    stream.end();
    stream.go(gst::State::Null);
    let text = fs::read_to_string(&file).expect("the file");
    assert_eq!(text, "{ \"frames\": 3 }");
}

#[track_caller]
fn assert_refused(file: &Path, words: &[&str]) {
    let error = bus::refusal(&element("learns", file)).to_string();
    let path = file.to_str().expect("UTF-8");
    for word in [path, "`calibration-file`", "set another file"]
        .iter()
        .chain(words)
    {
        assert!(error.contains(word), "{word} is not in: {error}");
    }
}

#[test]
fn what_is_not_a_calibration_is_refused_before_ready() {
    let (_folder, file) = place();
    for content in [
        &b""[..],
        b"{\"frames\":",
        b"{\"frames\":\"many\"}",
        b"\xff\xfe",
    ] {
        fs::write(&file, content).expect("writable");
        assert_refused(&file, &["is damaged", "Delete it"]);
        assert_eq!(fs::read(&file).expect("the file"), content, "it stays");
    }
}

#[test]
fn what_can_not_be_read_or_written_is_refused_before_ready() {
    let (folder, _) = place();
    assert_refused(folder.path(), &["cannot be read"]);
    let nowhere = folder.path().join("gone/faces.json");
    assert_refused(&nowhere, &["cannot be written", "its folder"]);
    let file = folder.path().join("file");
    fs::write(&file, "").expect("writable");
    assert_refused(&file.join("faces.json"), &["cannot be read"]);
    assert_refused(Path::new("/proc/faces.json"), &["cannot be written"]);
}

#[test]
fn what_names_no_file_is_refused_before_ready() {
    let (folder, _) = place();
    for name in [".", "faces/", "faces/.", "faces/.."] {
        let path = folder.path().join(name);
        let error = bus::refusal(&element("learns", &path)).to_string();
        for word in [
            "`calibration-file`",
            name,
            "not the path of a file",
            "unset it",
        ] {
            assert!(error.contains(word), "{word} is not in: {error}");
        }
    }
}

#[test]
fn an_empty_text_is_no_file() {
    let element = element("learns", Path::new(""));
    element.set_state(gst::State::Ready).expect("READY");
    element.set_state(gst::State::Null).expect("NULL");
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_refused_at_once() {
    let (_folder, file) = place();
    let made = Command::new("mkfifo").arg(&file).status();
    assert!(made.expect("coreutils").success());
    for path in [file.as_path(), Path::new("/dev/zero")] {
        assert_refused(path, &["cannot be read", "not a regular file"]);
    }
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let (_folder, file) = place();
    let large = fs::File::create(&file).expect("writable");
    large.set_len(1 << 40).expect("a sparse file");
    assert_refused(&file, &["is damaged", "larger than"]);
}

#[cfg(unix)]
#[test]
fn mode_and_owner_of_the_file_are_kept() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let (_folder, file) = place();
    fs::write(&file, "{\"frames\":3}").expect("writable");
    // Only root can give files away.
    let owner = chown(&file, Some(1234), Some(5678)).is_ok();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("the owner or root");
    let before = fs::metadata(&file).expect("the file");
    let mut stream = Stream::new(&file);
    stream.push(2);
    stream.end();
    assert_eq!(learned(&file), 5);
    let after = fs::metadata(&file).expect("the file");
    let kept = |found: &fs::Metadata| (found.mode(), found.uid(), found.gid());
    assert_eq!(kept(&after), kept(&before), "given away: {owner}");
}

/// A user without privileges cannot give a file to root, so the file is overwritten in its place.
#[cfg(unix)]
#[test]
fn a_file_of_another_user_stays_theirs() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    const NOBODY: &str = "--reuid=65534 --regid=65534 --clear-groups gst-launch-1.0";
    let (folder, file) = place();
    fs::write(&file, "{\"frames\":3}").expect("writable");
    if fs::metadata(&file).expect("the file").uid() != 0 {
        return eprintln!("SKIPPED: only root can act as another user");
    }
    fs::copy(plugin(), folder.path().join("libgstfacetrack.so")).expect("the plugin");
    for (path, mode) in [(folder.path(), 0o777), (&file, 0o666)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("root");
    }
    let before = fs::metadata(&file).expect("the file");
    let shown = folder.path().to_str().expect("UTF-8");
    let run = Tool::new("setpriv")
        .env("GST_PLUGIN_PATH", shown)
        .env("GST_REGISTRY", &format!("{shown}/registry"))
        .args(NOBODY)
        .args("videotestsrc num-buffers=2 ! facetrack engine=scripted")
        .arg("script=face; learns")
        .arg(&format!("calibration-file={}", file.display()))
        .args("! fakesink")
        .run();
    assert!(run.success, "{}", run.text);
    assert_eq!(fs::read(&file).expect("the file"), b"{\"frames\":5}");
    let after = fs::metadata(&file).expect("the file");
    assert_eq!((after.uid(), after.ino()), (0, before.ino()));
}

#[cfg(unix)]
#[test]
fn what_a_link_leads_to_is_written() {
    for (content, frames) in [(Some("{\"frames\":3}"), 5), (None, 2)] {
        let (_folder, file) = place();
        let (folder, _) = place();
        let link = folder.path().join("link.json");
        if let Some(content) = content {
            fs::write(&file, content).expect("writable");
        }
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        let mut stream = Stream::new(&link);
        stream.push(2);
        stream.end();
        assert_eq!(learned(&file), frames);
        assert!(link.is_symlink());
    }
}

#[test]
fn an_engine_that_learns_nothing_says_so() {
    let (_folder, file) = place();
    let error = bus::refusal(&element("face", &file)).to_string();
    for word in ["the engine scripted", "Unset `calibration-file`"] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn a_file_that_can_not_be_written_at_the_end_is_reported() {
    let (folder, file) = place();
    let mut stream = Stream::new(&file);
    stream.push(1);
    fs::remove_dir(folder.path()).expect("it is empty");
    stream.end();
    let warnings = stream.warnings();
    let [warning] = warnings.as_slice() else {
        panic!("{warnings:?}");
    };
    assert!(warning.contains(file.to_str().expect("UTF-8")), "{warning}");
    assert!(warning.contains("cannot be written"), "{warning}");

    fs::create_dir(folder.path()).expect("it was there");
    stream.go(gst::State::Ready);
    assert_eq!(learned(&file), 1, "it is not lost yet");
    assert_eq!(stream.warnings(), [""; 0]);
}

#[test]
fn reset_takes_effect_with_the_next_frame() {
    let (_folder, file) = place();
    let mut stream = Stream::new(&file);
    stream.push(3);
    stream.reset();
    stream.push(2);
    stream.end();
    assert_eq!(learned(&file), 2);
    stream.reset();
    stream.go(gst::State::Ready);
    assert_eq!(learned(&file), 0, "no frame followed");
}

#[test]
fn reset_works_in_ready_and_not_before() {
    let (_folder, file) = place();
    fs::write(&file, "{\"frames\":7}").expect("writable");
    let element = element("learns", &file);
    element.emit_by_name::<()>("reset-calibration", &[]);
    element.set_state(gst::State::Ready).expect("READY");
    element.set_state(gst::State::Null).expect("NULL");
    assert_eq!(learned(&file), 7, "nothing was there to be reset");

    element.set_state(gst::State::Ready).expect("READY");
    element.emit_by_name::<()>("reset-calibration", &[]);
    element.set_state(gst::State::Null).expect("NULL");
    assert_eq!(learned(&file), 0);
}

#[test]
fn another_file_may_be_set_in_ready() {
    let (_folder, file) = place();
    let (_other_folder, other) = place();
    let element = element("learns", &file);
    element.set_state(gst::State::Ready).expect("READY");
    element.set_property("calibration-file", other.to_str());
    let mut stream = Stream::of(element);
    stream.push(2);
    stream.end();
    assert_eq!(learned(&other), 2);
    assert!(!file.exists());
}

#[test]
fn a_reset_is_of_the_file_that_was_set() {
    let (_folder, file) = place();
    let (_other_folder, other) = place();
    fs::write(&file, "{\"frames\":7}").expect("writable");
    fs::write(&other, "{\"frames\":9}").expect("writable");
    let element = element("learns", &file);
    element.set_state(gst::State::Ready).expect("READY");
    element.emit_by_name::<()>("reset-calibration", &[]);
    element.set_property("calibration-file", other.to_str());
    element.set_state(gst::State::Paused).expect("PAUSED");
    element.set_state(gst::State::Null).expect("NULL");
    assert_eq!((learned(&file), learned(&other)), (0, 9));
}

#[test]
fn a_reset_after_a_failure_is_none_of_the_next_stream() {
    let (_folder, file) = place();
    let mut failing = Stream::of(element("learns; fail at=3", &file));
    failing.push(3);
    failing.reset();
    failing.go(gst::State::Null);
    failing.go(gst::State::Playing);
    failing.harness.set_src_caps_str(CAPS);
    failing.push(1);
    failing.go(gst::State::Null);
    assert_eq!(learned(&file), 3);
}

/// Learns from two more frames, and prints what the bus says.
fn learn(file: &Path) {
    let mut stream = Stream::new(file);
    stream.push(2);
    stream.end();
    for warning in stream.warnings() {
        println!("TOLD {warning}");
    }
}

#[test]
fn a_fault_is_reported_and_leaves_the_old_file_or_the_new_one() {
    let name = "calibration::a_fault_is_reported_and_leaves_the_old_file_or_the_new_one";
    if is_child(name) {
        return learn(Path::new(&arguments()[0]));
    }
    if strace::is_missing() {
        return;
    }
    for (call, error, when, frames) in [
        ("fchmod", "EPERM", "1+", 5),
        ("fsync", "EIO", "1+", 3),
        ("renameat", "EACCES", "1+", 3),
        // The end of the stream fails, and the stop after it writes the file.
        ("fsync", "EIO", "1", 5),
        ("renameat", "EACCES", "1", 5),
    ] {
        let (_folder, file) = place();
        fs::write(&file, r#"{"frames":3}"#).expect("room");
        let program = child(name, &[file.to_str().expect("UTF-8")]);
        let Traced { text, calls } = Fault { call, error, when }.inject(&program, &[]);
        let what = format!("{error} in {call} {when}: {text}{calls}");
        assert!(calls.contains("(INJECTED)"), "{what}");
        let is_told = text.contains("TOLD") && text.contains("faces.json");
        assert_eq!(is_told, call != "fchmod", "{what}");
        assert_eq!(learned(&file), frames, "{what}");
    }
}
