// SPDX-License-Identifier: MPL-2.0
//! Files of `trackjsonsink` under attack: other writers, hostile names, kills and failing system
//! calls.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use std::{iter, thread};

use gst::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value as Json;

use crate::common::child::{arguments, child, is_child};
use crate::common::python::PYTHON;
use crate::common::strace::{self, Fault, Traced};
use crate::trackjsonsink::{Sink, frames, json, message, nth, path_text};
use facetrack::replay::Replay;

const FORMATS: [&str; 3] = ["dense", "jsonl", "reduced"];

fn mkfifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status();
    assert!(made.expect("mkfifo runs").success());
}

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names
        .map(|name| name.into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

/// A folder with an unfinished record of `count` frames in `clip.json.partial`.
fn broken_off(count: u64) -> Sink {
    let mut sink = Sink::new();
    (0..count).for_each(|n| sink.push_nth(n));
    sink.stop();
    sink
}

/// Another sink that records to the same place.
fn again(first: &Sink) -> Sink {
    let path = first.path();
    Sink::with(move |element| element.set_property("location", path_text(&path)))
}

#[test]
fn a_record_can_be_read_before_its_first_frame() {
    let sink = Sink::new();
    assert_eq!(frames(&json(&sink.partial())).len(), 0);
    let sink = Sink::with(|element| element.set_property_from_str("format", "reduced"));
    assert_eq!(json(&sink.partial())["total_frames"], 0);
}

#[test]
fn an_unfinished_record_is_put_back_if_no_frame_comes() {
    let first = broken_off(3);
    let second = again(&first);
    let folder = first.folder.path();
    assert_eq!(
        names(folder),
        ["clip.json.partial", "clip.json.partial.old"]
    );
    second.stop();
    assert_eq!(names(folder), ["clip.json.partial"]);
    assert_eq!(frames(&json(&first.partial())).len(), 3);
}

#[test]
fn an_unfinished_record_stays_until_another_is_finished() {
    let first = broken_off(3);
    let folder = first.folder.path();
    let mut second = again(&first);
    second.push_nth(0);
    second.stop();
    assert_eq!(
        names(folder),
        ["clip.json.partial", "clip.json.partial.old"]
    );
    let old = folder.join("clip.json.partial.old");
    assert_eq!(frames(&json(&old)).len(), 3);
    // The longer one of the two is kept.
    let mut third = again(&first);
    assert_eq!(frames(&json(&old)).len(), 3);
    third.push_nth(0);
    third.eos();
    assert_eq!(names(folder), ["clip.json"]);
}

#[test]
fn a_record_without_frames_takes_nothings_place() {
    let first = broken_off(3);
    let folder = first.folder.path();
    let old = folder.join("clip.json.partial.old");
    let second = again(&first);
    // As after a kill.
    let killed = fs::read(first.partial()).expect("a file");
    second.stop();
    fs::rename(first.partial(), &old).expect("a folder");
    fs::write(first.partial(), killed).expect("room");
    again(&first).stop();
    assert_eq!(names(folder), ["clip.json.partial"]);
    assert_eq!(frames(&json(&first.partial())).len(), 3);
}

#[test]
fn an_unfinished_file_is_a_regular_file() {
    for what in ["a link", "a dangling link", "a pipe", "a folder"] {
        let (element, bus, folder) = Sink::element();
        let (partial, target) = (
            folder.path().join("clip.json.partial"),
            folder.path().join("a"),
        );
        match what {
            "a pipe" => mkfifo(&partial),
            "a folder" => fs::create_dir(&partial).expect("room"),
            _ => symlink(&target, &partial).expect("room"),
        }
        if what == "a link" {
            fs::write(&target, "mine").expect("room");
        }
        let started = element.set_state(gst::State::Paused);
        assert!(started.is_err(), "{what}");
        let error = message(&bus, gst::MessageType::Error);
        assert!(
            error.contains("clip.json.partial is not a regular file"),
            "{error}"
        );
        if what == "a link" {
            assert_eq!(fs::read_to_string(&target).expect("a file"), "mine");
        }
        assert_eq!(target.exists(), what == "a link", "{what}");
        element.set_state(gst::State::Null).expect("it stops");
    }
}

fn next_error(bus: &gst::Bus) -> Option<String> {
    let error = bus.pop_filtered(&[gst::MessageType::Error])?;
    match error.view() {
        gst::MessageView::Error(error) => Some(error.error().to_string()),
        _ => None,
    }
}

/// Pipelines that record to one place at a time: each finishes its record, or is told why not.
#[test]
fn of_many_writers_none_loses_a_record() {
    const RECORDS: u64 = 150;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clip.json");
    let done = AtomicBool::new(false);
    let write = |length: u64| {
        let mut finished = 0;
        while !done.load(Ordering::Relaxed) {
            let (element, bus, folder) = Sink::element();
            element.set_property("location", path_text(&path));
            if let Some(mut sink) = Sink::try_start(element.clone(), bus.clone(), folder) {
                (0..length).for_each(|n| sink.push_nth(n));
                if sink.harness.push_event(gst::event::Eos::new()) {
                    finished += 1;
                }
            }
            element.set_state(gst::State::Null).expect("it stops");
            while let Some(text) = next_error(&bus) {
                let is_known = ["already exists", "another pipeline"];
                assert!(is_known.iter().any(|known| text.contains(known)), "{text}");
            }
        }
        finished
    };
    let (mut taken, start) = (0, Instant::now());
    let finished: u64 = thread::scope(|scope| {
        let writers: Vec<_> = [3, 4, 5]
            .map(|length| scope.spawn(move || write(length)))
            .into();
        while taken < RECORDS && start.elapsed() < Duration::from_secs(60) {
            let Ok(text) = fs::read_to_string(&path) else {
                continue;
            };
            let record: Json = serde_json::from_str(&text).expect("a finished record is whole");
            let count = frames(&record).len();
            assert!((3..=5).contains(&count), "{text}");
            assert_eq!(record["metadata"]["total_frames"], count);
            fs::remove_file(&path).expect("a file");
            taken += 1;
        }
        done.store(true, Ordering::Relaxed);
        let counts = writers
            .into_iter()
            .map(|writer| writer.join().expect("no panic"));
        counts.sum()
    });
    let left = u64::from(path.exists());
    assert_eq!(
        finished,
        taken + left,
        "each record is the only one of its name"
    );
    assert!(taken > 10, "{taken}");
}

/// Receives a message each time a sink waits for a reader of `pipe`.
fn waiting_for_reader(pipe: &Path) -> Receiver<()> {
    let category = gst::DebugCategory::get("trackjsonsink").expect("its category");
    category.set_threshold(gst::DebugLevel::Info);
    let text = format!("waiting for a reader of {}", pipe.display());
    let (sender, waiting) = mpsc::channel();
    gst::log::add_log_function(move |_, _, _, _, _, _, message| {
        if message.get().is_some_and(|it| it.as_str() == text) {
            // The test may have ended.
            let _ = sender.send(());
        }
    });
    waiting
}

#[test]
fn a_pipe_without_a_reader_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe);
    let start = || {
        Sink::with(|element| {
            element.set_property("location", path_text(&pipe));
            element.set_property_from_str("format", "jsonl");
        })
    };
    // Nobody ever reads.
    let mut sink = start();
    let element = sink.element.clone();
    let waiting = waiting_for_reader(&pipe);
    let stopping = thread::spawn(move || {
        waiting.recv().expect("it waits");
        element.set_state(gst::State::Null).expect("it stops");
    });
    let pushed = sink.harness.push(nth(0));
    assert_eq!(pushed, Err(gst::FlowError::Flushing));
    stopping.join().expect("no panic");

    // A reader that comes late gets everything.
    let mut sink = start();
    let (late, waiting) = (pipe.clone(), waiting_for_reader(&pipe));
    let reader = thread::spawn(move || {
        waiting.recv().expect("it waits");
        let mut text = String::new();
        let read = File::open(late).and_then(|mut pipe| pipe.read_to_string(&mut text));
        read.map(|_| text).expect("a pipe")
    });
    (0..100).for_each(|n| sink.push_nth(n));
    sink.eos();
    sink.stop();
    drop(sink);
    let text = reader.join().expect("no panic");
    assert_eq!(text.lines().count(), 102, "a header and a trailer");
}

/// Returns true if a pipe takes more data.
fn has_room(pipe: &File) -> bool {
    let mut descriptors = [PollFd::new(pipe, PollFlags::OUT)];
    poll(&mut descriptors, Some(&Timespec::default())).expect("a pipe") > 0
}

#[test]
fn a_reader_that_stops_reading_does_not_block_a_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    mkfifo(&pipe);
    let mut options = File::options();
    // For reading and writing, the pipe can be opened without a partner.
    let reader = options.read(true).write(true).open(&pipe).expect("a pipe");
    let mut sink = Sink::with(|element| {
        element.set_property("location", path_text(&pipe));
        element.set_property_from_str("format", "jsonl");
    });
    let element = sink.element.clone();
    let stopping = thread::spawn(move || {
        while has_room(&reader) {
            thread::yield_now();
        }
        element.set_state(gst::State::Null).expect("it stops");
    });
    let pushed = (0..10_000).find_map(|n| sink.harness.push(nth(n)).err());
    assert_eq!(pushed, Some(gst::FlowError::Flushing));
    stopping.join().expect("no panic");
}

/// The program in the documentation that reads unfinished files.
fn five_lines() -> String {
    let page = include_str!("../../docs/json-record.md");
    let program = page.split("```python\n").nth(1).expect("a program");
    program.split("```").next().expect("its end").to_owned()
}

fn read_by_five_lines(program: &str, path: &Path) -> usize {
    let output = Command::new(PYTHON)
        .args(["-c", program])
        .arg(path)
        .output();
    let output = output.expect("Python runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{path:?}: {output:?}");
    let count = text.split(' ').next().expect("a count");
    count.parse().expect("a number")
}

/// The number of complete lines of frames.
fn whole_lines(text: &str) -> usize {
    let lines = text.split_inclusive('\n').skip(1);
    let frames = lines.filter(|line| line.starts_with("{\"frame\":"));
    let frames = frames.map(|line| line.trim_end().trim_end_matches(','));
    frames
        .filter(|line| serde_json::from_str::<Json>(line).is_ok())
        .count()
}

/// Checks an unfinished file, and returns how many frames it has.
fn check_unfinished(program: &str, path: &Path) -> usize {
    let text = String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
    let count = read_by_five_lines(program, path);
    assert_eq!(count, whole_lines(&text), "{path:?}");
    if !text.is_empty() && !text.contains("frames_analysis") {
        let replay = Replay::open(File::open(path).expect("a file"));
        let replay = replay.unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let numbers: Vec<_> = replay.frames().map(|(number, _)| number).collect();
        assert!(
            numbers.iter().copied().eq(1..=count as u64),
            "{path:?}: {numbers:?}"
        );
    }
    count
}

fn check_finished(path: &Path) {
    let text = fs::read_to_string(path).expect("a file");
    let record: Json = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path:?} is whole"));
    let (list, total) = match record.get("metadata") {
        Some(metadata) => (&record["frames"], &metadata["total_frames"]),
        None => (&record["frames_analysis"], &record["total_frames"]),
    };
    assert_eq!(
        list.as_array().map(Vec::len),
        Some(length("dense") as usize),
        "{path:?}"
    );
    assert_eq!(*total, length("dense"));
}

/// Frames of a record under attack: some writes of 64 kB, or a write each.
fn length(format: &str) -> u64 {
    if format == "jsonl" { 20 } else { 200 }
}

/// Records one file after the other, until it is killed.
fn record_forever(folder: &Path, format: &str, pause: Duration) {
    println!("ready");
    for index in 0.. {
        let path = folder.join(format!("{index}.json"));
        if path.exists() {
            continue;
        }
        let mut sink = Sink::with(|element| {
            element.set_property("location", path_text(&path));
            element.set_property_from_str("format", format);
        });
        for n in 0..length(format) {
            sink.push_nth(n);
            thread::sleep(pause);
        }
        sink.eos();
    }
}

/// Waits until the child has started its work.
fn wait_until_ready(child: &mut Child) {
    let output = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(output).lines();
    let ready = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("ready")));
    assert!(ready.is_some(), "it starts");
}

/// `FACETRACK_ATTACK` multiplies the number of kills.
fn kills() -> u64 {
    let factor = std::env::var("FACETRACK_ATTACK").ok();
    let factor: u64 = factor.map_or(1, |factor| factor.parse().expect("a number"));
    24 * factor
}

#[test]
fn a_killed_record_is_readable() {
    let name = "record_files::a_killed_record_is_readable";
    if is_child(name) {
        let arguments = arguments();
        let pause = Duration::from_micros(arguments[2].parse().expect("a number"));
        return record_forever(Path::new(&arguments[0]), &arguments[1], pause);
    }
    let program = five_lines();
    let cases = FORMATS.map(|format| [(format, "0"), (format, "500")]);
    let cases = cases.as_flattened().iter().cycle();
    let folders: Vec<_> = iter::repeat_with(|| tempfile::tempdir().expect("a folder"))
        .take(6)
        .collect();
    let (mut readable, mut killed_in_work) = (0, 0);
    // Any moment of two records may be hit.
    let mut random = fastrand::Rng::with_seed(18);
    for (kill, (format, pause)) in iter::zip(0..kills(), cases) {
        let folder = folders[kill as usize % folders.len()].path();
        let mut child = child(name, &[path_text(folder), format, pause])
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        wait_until_ready(&mut child);
        let most = if *pause == "0" { 60_000 } else { 300_000 };
        thread::sleep(Duration::from_micros(random.u64(0..most)));
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        killed_in_work += u64::from(check_folder(&program, folder, format) > 0);
        readable += 1;
    }
    println!(
        "{readable} of {} readable, {killed_in_work} with frames",
        kills()
    );
    assert!(killed_in_work > kills() / 4, "{killed_in_work}");
    for (folder, format) in iter::zip(&folders, FORMATS.map(|format| [format; 2]).as_flattened()) {
        assert_clean_after(folder.path(), format);
    }
}

/// Checks every file in the folder, and returns how many frames the unfinished ones have.
fn check_folder(program: &str, folder: &Path, format: &str) -> usize {
    let mut unfinished = 0;
    for name in names(folder) {
        let path = folder.join(&name);
        let is_partial = [".json.partial", ".json.partial.old"];
        if is_partial.iter().any(|suffix| name.ends_with(suffix)) {
            unfinished += check_unfinished(program, &path);
        } else {
            assert!(name.ends_with(".json"), "{name} is a stray file");
            if !is_finished(&path, format) {
                unfinished += check_unfinished(program, &path);
            }
        }
    }
    unfinished
}

/// Returns true if a file with its final name is finished; checks that it is whole then. With
/// jsonl, the trailer shows this.
fn is_finished(path: &Path, format: &str) -> bool {
    if format != "jsonl" {
        check_finished(path);
        return true;
    }
    let text = String::from_utf8_lossy(&fs::read(path).expect("a file")).into_owned();
    let last = text.lines().last().unwrap_or_default();
    let is_finished = last.starts_with("{\"trailer\"") && text.ends_with('\n');
    assert!(
        !is_finished || whole_lines(&text) as u64 == length(format),
        "{path:?}"
    );
    is_finished
}

/// A run that finishes its record leaves no other file.
fn assert_clean_after(folder: &Path, format: &str) {
    if format == "jsonl" {
        return;
    }
    let free = (0..).map(|index| folder.join(format!("{index}.json")));
    let path = free
        .into_iter()
        .find(|path| !path.exists())
        .expect("a name");
    let mut sink = Sink::with(|element| {
        element.set_property("location", path_text(&path));
        element.set_property_from_str("format", format);
    });
    sink.push_nth(0);
    sink.eos();
    let stray: Vec<_> = names(folder);
    let stray = stray.iter().filter(|name| !name.ends_with(".json"));
    assert_eq!(stray.count(), 0, "{folder:?}");
}

/// The system calls on files of a record, with an error that each may have.
const FAULTS: [(&str, &str); 8] = [
    ("openat", "EACCES"),
    ("write", "EIO"),
    ("lseek", "EIO"),
    ("ftruncate", "EIO"),
    ("fsync", "EIO"),
    ("rename", "EACCES"),
    ("renameat2", "EACCES"),
    ("unlink", "EACCES"),
];

/// Records a file, and prints what the bus says.
fn record_once(path: &Path, format: &str) {
    let (element, bus, folder) = Sink::element();
    element.set_property("location", path_text(path));
    element.set_property_from_str("format", format);
    if let Some(mut sink) = Sink::try_start(element.clone(), bus.clone(), folder) {
        let failed = (0..length(format)).any(|n| sink.harness.push(nth(n)).is_err());
        if !failed {
            sink.harness.push_event(gst::event::Eos::new());
        }
    }
    element.set_state(gst::State::Null).expect("it stops");
    while let Some(message) = bus.pop() {
        match message.view() {
            gst::MessageView::Error(error) => println!("ERROR {}", error.error()),
            gst::MessageView::Warning(warning) => println!("WARNING {}", warning.error()),
            gst::MessageView::Element(_) => println!("DONE"),
            _ => (),
        }
    }
}

/// Lets the nth call of a run fail, and checks the run. Returns true if the run made that many
/// calls.
fn survives(call: &str, error: &str, nth: usize, format: &str) -> bool {
    let name = "record_files::a_fault_is_reported_and_nothing_is_lost";
    let kept = broken_off(3);
    let path = kept.path();
    let files = ["", ".partial", ".partial.old", ".partial.new"];
    let files = files.map(|suffix| format!("{}{suffix}", path.display()));
    let mut paths: Vec<&str> = files.iter().map(String::as_str).collect();
    paths.push(path_text(kept.folder.path()));
    let when = &nth.to_string();
    let fault = Fault { call, error, when };
    let Traced { text, calls } = fault.inject(&child(name, &[path_text(&path), format]), &paths);
    let what = format!("{format}: {error} in {call} {nth}: {text}{calls}");
    let is_whole = path.exists() && is_finished(&path, format);
    assert_eq!(
        text.contains("DONE"),
        is_whole && !text.contains("ERROR"),
        "{what}"
    );
    if !calls.contains("(INJECTED)") {
        assert!(text.contains("DONE"), "{what}");
        return false;
    }
    let is_named = text.contains("clip.json") && text.contains("os error");
    assert!(text.contains("DONE") || is_named, "{what}");
    // The record of the earlier run is there, unless this one is finished.
    let kept = [".partial", ".partial.old"].map(|suffix| format!("{}{suffix}", path.display()));
    let is_kept = |path: &String| Path::new(path).exists() && whole_lines_in(path) >= 3;
    assert!(
        (is_whole && format != "jsonl") || kept.iter().any(is_kept),
        "{what}"
    );
    let new = format!("{}.partial.new", path.display());
    assert!(!Path::new(&new).exists(), "{what}");
    true
}

fn whole_lines_in(path: &str) -> usize {
    whole_lines(&fs::read_to_string(path).expect("a file"))
}

#[test]
fn a_fault_is_reported_and_nothing_is_lost() {
    let name = "record_files::a_fault_is_reported_and_nothing_is_lost";
    if is_child(name) {
        let arguments = arguments();
        return record_once(Path::new(&arguments[0]), &arguments[1]);
    }
    if strace::is_missing() {
        return;
    }
    for format in FORMATS {
        for (call, error) in FAULTS {
            let faults = (1..).find(|nth| !survives(call, error, *nth, format));
            println!(
                "{format}: {call} fails in {:?} places",
                faults.map(|count| count - 1)
            );
        }
    }
}

#[test]
fn lines_are_written_to_what_a_link_leads_to() {
    let first = Sink::new();
    let target = first.path().with_file_name("target.jsonl");
    let link = first.path().with_file_name("link.jsonl");
    symlink("target.jsonl", &link).expect("room");
    let mut sink = Sink::with(|element| {
        element.set_property_from_str("format", "jsonl");
        element.set_property("location", path_text(&link));
    });
    sink.push_nth(0);
    sink.eos();
    sink.stop();
    assert!(link.is_symlink());
    assert!(fs::read_to_string(&target).is_ok_and(|text| text.lines().count() > 1));
}
