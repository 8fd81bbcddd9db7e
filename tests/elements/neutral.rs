// SPDX-License-Identifier: MPL-2.0
//! Rest values of blendshapes are learned, subtracted and kept in a file. The jaw of the scripted
//! face opens and closes, and its other blendshapes are 0.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common;
use crate::common::bus;
use facetrack::blendshape::Blendshapes;
use gst::prelude::*;
use gst_check::Harness;
use gstfacetrack::meta::FaceTrackMeta;
use serde_json::Value;
use tempfile::TempDir;

const CAPS: &str = "video/x-raw,format=RGB,width=64,height=48,framerate=25/1";
const FRAME_SIZE: usize = 64 * 48 * 3;

/// Number of frames in half a second. The last one is the first that is corrected.
const REQUESTED: usize = 14;

fn element(properties: &str) -> gst::Element {
    scripted("face; landmarks", properties)
}

fn scripted(script: &str, properties: &str) -> gst::Element {
    common::init();
    let line = format!("facetrack engine=scripted script=\"{script}\" {properties}");
    gst::parse::launch(&line).expect("a good description")
}

struct Stream {
    harness: Harness,
    frames: u64,
}

impl Stream {
    fn new(element: &gst::Element) -> Self {
        let mut harness = Harness::with_element(element, Some("sink"), Some("src"));
        harness.set_src_caps_str(CAPS);
        Self { harness, frames: 0 }
    }

    /// The blendshapes in the next frames, which have a face.
    fn next(&mut self, count: usize) -> Vec<Blendshapes> {
        let measured = (0..count).map(|_| self.push());
        measured.map(|it| it.expect("a face")).collect()
    }

    /// The blendshapes of the face in the next frame.
    fn push(&mut self) -> Option<Blendshapes> {
        let mut buffer = gst::Buffer::from_slice(vec![0u8; FRAME_SIZE]);
        let fields = buffer.get_mut().expect("the only reference");
        fields.set_pts(gst::ClockTime::from_mseconds(40 * self.frames));
        self.frames += 1;
        let buffer = self.harness.push_and_pull(buffer).expect("it flows");
        let report = FaceTrackMeta::from_buffer(&buffer).expect("a report");
        let face = &report.faces.first()?.face;
        Some(face.blendshapes.clone().expect("measured"))
    }

    /// The events of the messages so far, with the ids of the faces.
    fn events(&self) -> Vec<(String, u32)> {
        let element = self.harness.element().expect("the element");
        let bus = element.bus().expect("a bus");
        let messages = std::iter::from_fn(|| bus.pop());
        let event = |message: gst::Message| {
            let event = message.structure()?;
            Some((event.get("event").ok()?, event.get("id").ok()?))
        };
        messages.filter_map(event).collect()
    }

    fn end(&mut self) {
        assert!(self.harness.push_event(gst::event::Eos::new()));
    }
}

/// The measured `jawOpen`.
fn raw(blendshapes: &Blendshapes) -> f32 {
    let index = blendshapes
        .names()
        .iter()
        .position(|name| name == "jawOpen");
    let values = blendshapes.raw().unwrap_or(blendshapes.values());
    values[index.expect("a channel")]
}

fn jaw(blendshapes: &Blendshapes) -> f32 {
    blendshapes.get("jawOpen").expect("a channel")
}

fn is_corrected(blendshapes: &Blendshapes) -> bool {
    assert_eq!(blendshapes.is_corrected(), blendshapes.raw().is_some());
    blendshapes.is_corrected()
}

/// The median of the measured values.
fn rest(frames: &[Blendshapes]) -> f32 {
    let mut values: Vec<_> = frames.iter().map(raw).collect();
    values.sort_by(f32::total_cmp);
    values[values.len() / 2]
}

/// All frames are corrected with this rest value.
#[track_caller]
fn assert_corrected(frames: &[Blendshapes], rest: f32) {
    for frame in frames {
        assert!(is_corrected(frame));
        let want = ((raw(frame) - rest) / (1.0 - rest)).clamp(0.0, 1.0);
        assert!((jaw(frame) - want).abs() < 1e-6, "{frame:?}");
    }
    let range = |value: fn(&Blendshapes) -> f32| frames.iter().map(value).fold(0.0, f32::max);
    assert!(range(raw) > rest, "the case shows nothing");
}

#[test]
fn the_signal_takes_the_next_half_second() {
    let element = element("");
    let mut stream = Stream::new(&element);
    assert!(!stream.next(5).iter().any(is_corrected));
    element.emit_by_name::<()>("set-neutral", &[]);
    let learning = stream.next(REQUESTED);
    let (last, before) = learning.split_last().expect("frames");
    assert!(!before.iter().any(is_corrected));
    assert!(is_corrected(last));
    assert_corrected(&stream.next(50), rest(&learning));
}

#[test]
fn gains_multiply_what_is_left_over_rest() {
    let element = element("neutral-time=0.4 blendshape-gain=jawOpen=1.5");
    let mut stream = Stream::new(&element);
    let bus = bus::Watch::of(&element);
    let learning = stream.next(11);
    let rest = rest(&learning);
    let mut assert_gain = |gain: f32| {
        for frame in stream.next(50) {
            let want = (gain * ((raw(&frame) - rest) / (1.0 - rest)).max(0.0)).min(1.0);
            assert!((jaw(&frame) - want).abs() < 1e-5, "{frame:?}");
        }
    };
    assert_gain(1.5);
    element.set_property("blendshape-gain", "jawOpen=0.5");
    assert_gain(0.5);
    element.set_property("blendshape-gain", "jaw=2");
    let warning = bus::warning(&bus).expect("a warning");
    assert!(warning.contains("\"jaw\" is not a blendshape"), "{warning}");
    assert_gain(0.5);
    element.set_property("blendshape-gain", None::<&str>);
    assert_gain(1.0);
}

#[test]
fn a_gain_that_no_face_can_have_is_an_error() {
    let element = element("blendshape-gain=jawOpen=11");
    let bus = bus::Watch::of(&element);
    assert!(element.set_state(gst::State::Ready).is_err());
    let error = bus::error(&bus).expect("an error");
    assert!(
        error.contains("`blendshape-gain`: the gain of jawOpen"),
        "{error}"
    );
}

#[test]
fn a_signal_before_the_stream_is_forgotten() {
    let element = element("");
    element.emit_by_name::<()>("set-neutral", &[]);
    assert!(!Stream::new(&element).next(20).iter().any(is_corrected));
}

#[test]
fn the_first_time_of_a_face_is_its_rest() {
    let mut stream = Stream::new(&element("neutral-time=0.4"));
    let learning = stream.next(11);
    assert!(!learning[..10].iter().any(is_corrected));
    assert_corrected(&stream.next(50), rest(&learning));
}

/// A face that is away for a second, and comes back elsewhere.
const AWAY: &str = "face x=0.2 y=0.3 size=0.2 to=20; face x=0.8 y=0.7 size=0.2 from=46; landmarks";

fn is_back_corrected(properties: &str) -> (bool, Vec<String>) {
    let mut stream = Stream::new(&scripted(
        AWAY,
        &format!("neutral-time=0.4 post-messages=on-change {properties}"),
    ));
    stream
        .harness
        .element()
        .expect("the element")
        .set_bus(Some(&gst::Bus::new()));
    let frames: Vec<_> = (0..50).map(|_| stream.push()).collect();
    let back = frames.iter().skip(21).flatten().next().expect("it is back");
    let events = stream.events().into_iter();
    (
        is_corrected(back),
        events.map(|(event, id)| format!("{event} {id}")).collect(),
    )
}

#[test]
fn a_face_that_was_away_keeps_its_rest_unless_people_take_turns() {
    let before = [
        "face-entered 1",
        "neutral-learned 1",
        "face-left 1",
        "face-entered 2",
    ];
    let (is_corrected, events) = is_back_corrected("");
    assert!(is_corrected);
    assert_eq!(events[..4], before);
    assert_eq!(events[4..], ["neutral-kept 2"]);
    let (is_corrected, events) = is_back_corrected("neutral-keep=false");
    assert!(!is_corrected);
    assert_eq!(events, before);
}

#[test]
fn the_message_has_the_rest_values() {
    let element = element("neutral-time=0.4 post-messages=on-change");
    let mut stream = Stream::new(&element);
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    let learning = stream.next(11);
    let messages = std::iter::from_fn(|| bus.pop());
    let mut rests = messages.filter_map(|it| it.structure()?.get::<gst::Structure>("rest").ok());
    let values = rests.next().expect("a message");
    assert_eq!(values.get::<f32>("jawOpen"), Ok(rest(&learning)));
    assert_eq!(values.get::<f32>("mouthPucker"), Ok(0.0));
    assert!(!values.has_field("_neutral"));
    assert!(rests.next().is_none());
}

/// A folder, and the file that is to be in it.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rest.json");
    (folder, file)
}

fn with_file(file: &Path, properties: &str) -> gst::Element {
    element(&format!("neutral-file={} {properties}", file.display()))
}

#[test]
fn rest_values_go_on_from_stream_to_stream() {
    let (_folder, file) = place();
    let mut first = Stream::new(&with_file(&file, "neutral-time=0.4"));
    let learning = first.next(11);
    assert!(!file.exists(), "the stream goes on");
    first.end();
    let text = fs::read_to_string(&file).expect("the file");
    let json: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(&text).expect("JSON");
    assert_eq!(json.len(), 51, "all but `_neutral`");
    let written = json["jawOpen"].as_f64().expect("a number") as f32;
    assert_eq!(written, rest(&learning));
    drop(first);

    let mut second = Stream::new(&with_file(&file, ""));
    assert_corrected(&second.next(50), written);
    second.end();
    assert_eq!(fs::read_to_string(&file).expect("the file"), text);
}

#[test]
fn nothing_is_written_if_nothing_was_learned() {
    let (_folder, file) = place();
    let mut stream = Stream::new(&with_file(&file, "neutral-time=9"));
    stream.next(20);
    stream.end();
    assert!(!file.exists());
}

#[test]
fn files_without_rest_values_are_refused_before_ready() {
    let (folder, file) = place();
    for content in ["", "[]", "{\"jawOpen\": 2}", "{\"jaw\": 0.1}"] {
        fs::write(&file, content).expect("writable");
        let error = bus::refusal(&with_file(&file, "")).to_string();
        for word in ["`neutral-file`", "rest.json", "is damaged", "Delete it"] {
            assert!(error.contains(word), "{word} is not in: {error}");
        }
    }
    for (path, words) in [
        (folder.path().to_owned(), "cannot be read"),
        (folder.path().join("gone/rest.json"), "cannot be written"),
        (folder.path().join(".."), "not the path of a file"),
    ] {
        let error = bus::refusal(&with_file(&path, "")).to_string();
        assert!(error.contains(words), "{words} is not in: {error}");
    }
}

#[test]
fn an_engine_without_blendshapes_says_so() {
    let (_folder, file) = place();
    let error = bus::refusal(&with_file(&file, "script=face")).to_string();
    for word in ["the engine scripted", "Unset `neutral-file`"] {
        assert!(error.contains(word), "{error}");
    }
}

/// Number of the first frame that is corrected in the records below.
const FIRST: u64 = 20;

/// Plays 25 frames into trackjsonsinks with these properties. The signal comes with frame 7.
fn record(sinks: &str) {
    common::init();
    let line = format!(
        "videotestsrc num-buffers=25 ! video/x-raw,framerate=25/1 ! facetrack name=track \
         engine=scripted script=\"face; landmarks\" ! tee name=t {sinks}"
    );
    let pipeline = gst::parse::launch(&line).expect("a pipeline");
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a bin");
    let track = bin.by_name("track").expect("the element");
    let pad = track.static_pad("sink").expect("a pad");
    let frames = AtomicU64::new(0);
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, _| {
        if frames.fetch_add(1, Ordering::Relaxed) + 1 == FIRST - REQUESTED as u64 + 1 {
            let track = pad.parent_element().expect("the element");
            track.emit_by_name::<()>("set-neutral", &[]);
        }
        gst::PadProbeReturn::Ok
    });
    common::play_to_end(&pipeline);
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a record");
    serde_json::from_str(&text).expect("JSON")
}

/// Faces are marked from the first corrected frame on.
#[track_caller]
fn assert_marked(frames: &[Value], is_verbose: bool) {
    assert_eq!(frames.len(), 25);
    for (number, frame) in (1..).zip(frames) {
        let face = &frame["tracked_objects"][0];
        let is_corrected = number >= FIRST;
        let mark = face.get("blendshapes_corrected");
        assert_eq!(mark, is_corrected.then_some(&Value::Bool(true)), "{number}");
        let raw = &face["blendshapes_raw"]["jawOpen"];
        assert_eq!(raw.is_f64(), is_corrected && is_verbose, "{number}: {raw}");
    }
}

#[test]
fn the_record_says_what_was_corrected() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let sink = |properties: &str, name: &str| {
        let path = path(name);
        format!(
            "t. ! queue ! trackjsonsink {properties} location={} ",
            path.display()
        )
    };
    record(
        &[
            sink("verbose=true", "verbose.json"),
            sink("", "plain.json"),
            sink("format=jsonl", "lines.jsonl"),
            sink("blendshape-profile=none", "without.json"),
        ]
        .concat(),
    );
    for (name, is_verbose) in [("verbose.json", true), ("plain.json", false)] {
        let record = read(&path(name));
        assert_eq!(record["metadata"]["corrected_from"], FIRST, "{name}");
        assert_marked(record["frames"].as_array().expect("frames"), is_verbose);
    }
    let without = read(&path("without.json"))["frames"].to_string();
    assert!(!without.contains("blendshapes_corrected"));

    let lines = fs::read_to_string(path("lines.jsonl")).expect("a record");
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<Value> = lines.collect();
    let [head, frames @ .., tail] = &lines[..] else {
        panic!("{lines:?}");
    };
    assert_eq!(head["metadata"].get("corrected_from"), None);
    assert_eq!(tail["trailer"]["corrected_from"], FIRST);
    assert_marked(frames, false);

    for name in ["verbose.json", "plain.json"] {
        let again = path(&format!("again-{name}"));
        let line = format!(
            "videotestsrc num-buffers=25 ! video/x-raw,framerate=25/1 ! trackjsonload location={} \
             ! trackjsonsink verbose=true location={}",
            path(name).display(),
            again.display()
        );
        common::play_to_end(&gst::parse::launch(&line).expect("a pipeline"));
        let again = read(&again);
        assert_eq!(again["metadata"]["corrected_from"], FIRST, "{name}");
        assert_marked(
            again["frames"].as_array().expect("frames"),
            name == "verbose.json",
        );
    }
}

/// The record of 20 frames with these properties of facetrack.
fn record_with(properties: &str) -> Value {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clip.json");
    let line = format!(
        "videotestsrc num-buffers=20 ! video/x-raw,framerate=25/1 ! facetrack engine=scripted \
         script=\"face; landmarks\" {properties} ! trackjsonsink verbose=true location={}",
        path.display()
    );
    common::play_to_end(&gst::parse::launch(&line).expect("a pipeline"));
    read(&path)
}

#[test]
fn a_record_without_a_neutral_face_does_not_mention_one() {
    let text = record_with("").to_string();
    assert!(text.contains("\"jawOpen\"") && !text.contains("corrected"));
}

#[test]
fn the_record_has_the_time_of_rest() {
    let metadata = record_with("neutral-time=0.4")["metadata"].take();
    assert_eq!(metadata["facetrack_options"]["neutral-time"], 0.4);
    assert_eq!(metadata["corrected_from"], 11);
}
