// SPDX-License-Identifier: MPL-2.0
//! `facetrack` where the system fails: no memory, no threads, files that change, clocks that jump.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, iter};

use gst::prelude::*;
use gst_check::Harness;

use crate::common::bus::Watch;
use crate::common::child::{arguments, child, is_child};
use crate::common::drawn::{self, Face};
use crate::common::engine::installed_paths;
use crate::common::faces::full_face;
use crate::common::reports::{report_of, with_report};
use crate::common::{self, bus};
use facetrack::engine::EngineConfig;
use facetrack::model::RuntimeChoice;
use facetrack::model::runtime::OnnxRuntime;
use facetrack::report::FrameStatus;
use gstfacetrack::meta::FaceTrackMeta;

const WIDTH: usize = 320;
const HEIGHT: usize = 240;
const CAPS: &str = "video/x-raw,format=RGB,width=320,height=240,framerate=25/1";

/// Maximum time to load an engine in the background.
const LOADING: Duration = Duration::from_secs(60);

/// A frame with a face.
fn frame(index: u64) -> gst::Buffer {
    let face = Face {
        x: 150.0,
        y: 115.0,
        size: 60.0,
        half_roll: 0.05,
        jaw: 0.3,
        blink: 0.0,
    };
    let mut buffer = gst::Buffer::from_slice(drawn::draw(WIDTH, HEIGHT, &[face]));
    let writable = buffer.get_mut().expect("new");
    writable.set_pts(index * gst::ClockTime::from_mseconds(40));
    buffer
}

fn element(properties: &str) -> (gst::Element, Watch) {
    common::init();
    let element = gst::parse::launch(&format!("facetrack {properties}")).expect("properties");
    let bus = Watch::of(&element);
    (element, bus)
}

fn harness(element: &gst::Element) -> Harness {
    let mut harness = Harness::with_element(element, Some("sink"), Some("src"));
    harness.set_src_caps_str(CAPS);
    harness
}

fn status(harness: &mut Harness, index: u64) -> Result<FrameStatus, gst::FlowError> {
    harness.push(frame(index))?;
    let buffer = harness.pull().expect("a frame for a frame");
    Ok(FaceTrackMeta::read(&buffer).expect("metadata").status)
}

/// Lets this process have so much more address space than it has.
fn limit_memory(more: u64) {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmSize:"));
    let size = line.and_then(|line| line.split_whitespace().nth(1));
    let size: u64 = size.expect("a size").parse().expect("kB");
    let process = std::process::id().to_string();
    let limit = format!("--as={}", size * 1024 + more);
    let limited = Command::new("prlimit")
        .args(["--pid", &process, &limit])
        .status();
    assert!(limited.expect("prlimit runs").success());
}

/// Runs a test as a child, and returns its output. A crash is a failure.
fn run(name: &str, arguments: &[&str]) -> String {
    let output = child(name, arguments).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    text
}

/// A thread needs a stack, for which there is no room.
#[test]
fn a_refused_thread_is_reported_and_the_engine_goes_on() {
    let name = "faults::a_refused_thread_is_reported_and_the_engine_goes_on";
    if is_child(name) {
        let (element, bus) = element("engine=scripted script=face");
        let mut harness = harness(&element);
        assert_eq!(status(&mut harness, 0), Ok(FrameStatus::Tracked));
        // Stacks of threads that are over would be used again. A thread that starts takes memory.
        let started = Arc::new(Barrier::new(9));
        let parked: Vec<_> = iter::repeat_n(&started, 8)
            .map(|started| {
                let started = started.clone();
                thread::spawn(move || {
                    started.wait();
                    thread::park();
                })
            })
            .collect();
        started.wait();
        limit_memory(1 << 20);
        element.set_property_from_str("engine", "opencv-haar");
        for index in 1..5 {
            assert_eq!(status(&mut harness, index), Ok(FrameStatus::Tracked));
        }
        let told = bus::warning(&bus);
        parked.iter().for_each(|thread| thread.thread().unpark());
        return println!("TOLD {}", told.unwrap_or_default());
    }
    let text = run(name, &[]);
    assert!(
        text.contains("the thread that loads the engine cannot be started"),
        "{text}"
    );
}

/// With each limit, the engine starts or the element reports why it does not. ONNX Runtime needs
/// more memory than is free in a new process.
#[test]
fn an_engine_without_memory_is_reported() {
    let name = "faults::an_engine_without_memory_is_reported";
    if is_child(name) {
        let (element, bus) = element(&arguments()[0]);
        limit_memory(arguments()[1].parse().expect("a number"));
        let started = element.set_state(gst::State::Paused);
        return match started {
            Ok(_) => println!("STARTED"),
            Err(_) => println!("REFUSED {}", bus::error(&bus).expect("an error")),
        };
    }
    let engine = "opencv-yunet".parse().expect("an engine");
    let config = EngineConfig {
        runtime: RuntimeChoice::OnnxRuntime,
        ..EngineConfig::default()
    };
    if common::engine::engine(engine, &config).is_none() {
        return;
    }
    let properties = "engine=opencv-yunet runtime=onnxruntime";
    let results = (0..48).step_by(3).map(|more| {
        let text = run(name, &[properties, &(more << 20).to_string()]);
        let is_told = text.contains("cannot") || text.contains("could not");
        assert!(text.contains("STARTED") || is_told, "{text}");
        text.contains("STARTED")
    });
    let results: Vec<_> = results.collect();
    assert!(
        results.contains(&true) && results.contains(&false),
        "{results:?}"
    );
}

/// With each limit, the frame passes or the element reports how much memory it lacks.
#[test]
fn a_frame_without_memory_is_an_error_that_says_how_much_is_needed() {
    let name = "faults::a_frame_without_memory_is_an_error_that_says_how_much_is_needed";
    if is_child(name) {
        let caps = &arguments()[1];
        common::init();
        let element = gst::parse::launch(&arguments()[0]).expect("an element");
        let bus = Watch::of(&element);
        let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps_str(caps);
        let caps: gst::Caps = caps.parse().expect("caps");
        let info = gst_video::VideoInfo::from_caps(&caps).expect("video");
        let report = report_of((info.width(), info.height()), vec![full_face(1, 500.0)]);
        let buffer = gst::Buffer::from_mut_slice(vec![0; info.size()]);
        let buffer = with_report(buffer, &report);
        limit_memory(arguments()[2].parse().expect("a number"));
        let flow = harness.push(buffer);
        return match bus::next(&bus, gst::MessageType::Error) {
            None => {
                flow.expect("it flows");
                println!("PASSED {:?}", bus::warnings(&bus));
            }
            Some(error) => {
                assert!(error.matches(gst::ResourceError::NoSpaceLeft), "{error}");
                println!("REFUSED {error}");
            }
        };
    }
    const FOUR_K: &str = "video/x-raw,format=RGB,width=3840,height=2160,framerate=25/1";
    // More than the 64 MiB that the C library keeps for a thread.
    const LARGE: &str = "video/x-raw,format=GRAY8,width=16000,height=8000,framerate=25/1";
    const UNPACKED: &str = "video/x-raw,format=v210,width=7680,height=4320,framerate=25/1";
    let yunet = "facetrack engine=opencv-yunet detect-max-width=0";
    let haar = "facetrack engine=opencv-haar min-size=3000";
    for (line, caps, engine) in [
        (yunet, FOUR_K, Some("opencv-yunet")),
        (haar, LARGE, Some("opencv-haar")),
        (haar, UNPACKED, Some("opencv-haar")),
        ("facetrackblur", LARGE, None),
        ("facetrackoverlay", LARGE, None),
    ] {
        let kind = engine.map(|engine| engine.parse().expect("an engine"));
        let is_missing = |kind| common::engine::engine(kind, &EngineConfig::default()).is_none();
        if kind.is_some_and(is_missing) {
            continue;
        }
        let limits = [0, 4, 16, 64, 96, 128, 192, 256, 384, 1024];
        let results = limits.map(|more: u64| {
            let text = run(name, &[line, caps, &(more << 20).to_string()]);
            let is_told = text.contains("MiB of memory") && text.contains("raise the memory limit");
            assert!(text.contains("PASSED") || is_told, "{text}");
            text.contains("PASSED")
        });
        assert!(
            results.contains(&true) && results.contains(&false),
            "{line}: {results:?}"
        );
    }
}

/// A model is read once: what becomes of its file later matters only to the next start.
#[test]
fn a_model_that_changes_while_it_is_used_does_no_harm() {
    let found = installed_paths().model("haarcascade_frontalface_default.xml", "haar", None);
    let found = match found {
        Ok(found) => found,
        Err(error) => return eprintln!("SKIPPED: {error}"),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let model = folder.path().join("mine.xml");
    fs::copy(found, &model).expect("room");
    let (element, bus) = element(&format!("engine=opencv-haar model={}", model.display()));
    let mut harness = harness(&element);
    let before = status(&mut harness, 0);
    fs::write(&model, "no cascade").expect("room");
    assert_eq!(status(&mut harness, 1), before);
    fs::remove_file(&model).expect("a file");
    assert_eq!(status(&mut harness, 2), before);
    element.set_state(gst::State::Null).expect("it stops");
    assert!(element.set_state(gst::State::Paused).is_err());
    let error = bus::error(&bus).expect("an error");
    assert!(error.contains("mine.xml"), "{error}");
    element.set_state(gst::State::Null).expect("it stops");
}

/// The library stays in memory, whatever takes the place of its file.
#[test]
fn a_runtime_that_is_replaced_while_it_is_used_does_no_harm() {
    let name = "faults::a_runtime_that_is_replaced_while_it_is_used_does_no_harm";
    if is_child(name) {
        let runtime = Path::new(&arguments()[0]).to_owned();
        let properties = format!(
            "engine=opencv-yunet runtime=onnxruntime onnxruntime={}",
            runtime.display()
        );
        let (element, bus) = element(&properties);
        let mut harness = harness(&element);
        let before = status(&mut harness, 0);
        assert_eq!(before, Ok(FrameStatus::Tracked));
        let other = runtime.with_extension("new");
        fs::write(&other, "no library").expect("room");
        fs::rename(other, &runtime).expect("a file");
        assert_eq!(status(&mut harness, 1), before);
        // Another engine in the same process uses the library in memory.
        element.set_property_from_str("engine", "mediapipe");
        let start = Instant::now();
        let switched = (2..)
            .take_while(|_| start.elapsed() < LOADING)
            .any(|index| {
                harness.push(frame(index)).expect("it flows");
                let buffer = harness.pull().expect("a frame for a frame");
                let report = FaceTrackMeta::read(&buffer).expect("metadata");
                report.source.engine == "mediapipe" && report.status == FrameStatus::Tracked
            });
        assert!(switched, "{:?}", bus::warnings(&bus));
        assert_eq!(bus::warnings(&bus), [""; 0]);
        return;
    }
    let runtime = OnnxRuntime::load(&installed_paths());
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return eprintln!("SKIPPED: {error}"),
    };
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("libonnxruntime.so");
    fs::copy(runtime.path(), &copy).expect("room");
    run(name, &[copy.to_str().expect("UTF-8")]);
}

/// Hours forward and back, as when a laptop wakes up or its clock is set.
#[test]
fn a_clock_that_jumps_loses_no_frame() {
    let (element, bus) = element("engine=scripted script=face max-fps=10");
    let mut harness = harness(&element);
    harness.use_testclock();
    let clock = harness.testclock().expect("a test clock");
    let clock = clock
        .downcast::<gst_check::TestClock>()
        .expect("a test clock");
    let hour = gst::ClockTime::from_seconds(3600);
    for (index, time) in [0, 1, 100, 100, 101, 5000].into_iter().enumerate() {
        clock.set_time(time * hour);
        let status = status(&mut harness, index as u64);
        assert!(status.is_ok(), "{index}: {status:?}");
    }
    assert_eq!(bus::error(&bus), None);
    assert_eq!(harness.buffers_received(), 6);
}
