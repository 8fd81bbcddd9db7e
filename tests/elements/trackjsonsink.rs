// SPDX-License-Identifier: MPL-2.0
//! `trackjsonsink` fed with buffers that carry hand-made reports.

use crate::common;

use crate::common::bus::Watch;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::child::{CHILD, is_child};
use crate::common::faces::{face, full_face};
use crate::common::reports::{report, with_report};
use facetrack::report::FrameStatus;
use gst::prelude::*;
use gst_check::Harness;
use serde_json::Value as Json;

const PERIOD: gst::ClockTime = gst::ClockTime::from_mseconds(40);

/// A sink under test in a folder of its own.
pub struct Sink {
    pub harness: Harness,
    pub element: gst::Element,
    bus: Watch,
    pub folder: tempfile::TempDir,
}

impl Sink {
    /// The element with `location` in a fresh folder, not yet started.
    pub fn element() -> (gst::Element, Watch, tempfile::TempDir) {
        common::init();
        let element = gst::ElementFactory::make("trackjsonsink")
            .build()
            .expect("the element");
        let folder = tempfile::tempdir().expect("a folder");
        element.set_property("location", path_text(&folder.path().join("clip.json")));
        let bus = Watch::of(&element);
        (element, bus, folder)
    }

    pub fn with(set: impl FnOnce(&gst::Element)) -> Self {
        let (element, bus, folder) = Self::element();
        set(&element);
        Self::started(element, bus, folder)
    }

    fn started(element: gst::Element, bus: Watch, folder: tempfile::TempDir) -> Self {
        Self::try_start(element, bus, folder).expect("it starts")
    }

    /// `None` if the element refuses to start.
    pub fn try_start(element: gst::Element, bus: Watch, folder: tempfile::TempDir) -> Option<Self> {
        // This is what the harness does, but the harness ends the process if the element refuses.
        element.set_property("async", false);
        element.set_state(gst::State::Playing).ok()?;
        let mut harness = Harness::with_element(&element, Some("sink"), None);
        harness.set_src_caps_str("video/x-raw,format=RGB,width=640,height=360,framerate=25/1");
        Some(Self {
            harness,
            element,
            bus,
            folder,
        })
    }

    pub fn new() -> Self {
        Self::with(|_| ())
    }

    fn push(&mut self, buffer: gst::Buffer) {
        self.harness.push(buffer).expect("the sink takes it");
    }

    /// A buffer with one face, the `n`th of the stream from 0.
    pub fn push_nth(&mut self, n: u64) {
        self.push(nth(n));
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("clip.json")
    }

    pub fn partial(&self) -> PathBuf {
        self.folder.path().join("clip.json.partial")
    }

    pub fn eos(&mut self) {
        assert!(self.harness.push_event(gst::event::Eos::new()));
    }

    /// Ends the stream and reads the record.
    fn finish(mut self) -> Json {
        self.eos();
        assert!(!self.partial().exists());
        json(&self.path())
    }

    pub fn stop(&self) {
        self.element
            .set_state(gst::State::Null)
            .expect("stopping works");
    }

    fn error(&self) -> String {
        message(&self.bus, gst::MessageType::Error)
    }

    fn warning(&self) -> String {
        message(&self.bus, gst::MessageType::Warning)
    }
}

pub fn message(bus: &gst::Bus, kind: gst::MessageType) -> String {
    let message = bus.pop_filtered(&[kind]).expect("a message");
    match message.view() {
        gst::MessageView::Error(error) => error.error().to_string() + &debug(error.debug()),
        gst::MessageView::Warning(warning) => warning.error().to_string() + &debug(warning.debug()),
        other => panic!("{other:?}"),
    }
}

fn debug(text: Option<gst::glib::GString>) -> String {
    text.map(|text| text.to_string()).unwrap_or_default()
}

pub fn path_text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

pub fn json(path: &Path) -> Json {
    serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON")
}

fn bare(n: u64) -> gst::Buffer {
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().expect("just made");
    writable.set_pts(n * PERIOD);
    writable.set_duration(PERIOD);
    buffer
}

pub fn nth(n: u64) -> gst::Buffer {
    with_report(bare(n), &report(vec![full_face(1, n as f32)]))
}

/// A buffer before which others are lost.
fn interrupted(mut buffer: gst::Buffer) -> gst::Buffer {
    buffer.make_mut().set_flags(gst::BufferFlags::DISCONT);
    buffer
}

/// A GAP event of missing data, or of a picture that stands still.
fn gap(start: u64, frames: u64, flags: gst::GapFlags) -> gst::Event {
    gst::event::Gap::builder(start * PERIOD)
        .duration(frames * PERIOD)
        .gap_flags(flags)
        .build()
}

fn numbers(record: &Json) -> Vec<u64> {
    frames(record)
        .iter()
        .map(|frame| frame["frame"].as_u64().expect("a number"))
        .collect()
}

fn statuses(record: &Json) -> Vec<&str> {
    frames(record)
        .iter()
        .map(|frame| frame["status"].as_str().expect("a status"))
        .collect()
}

pub fn frames(record: &Json) -> &Vec<Json> {
    record["frames"].as_array().expect("frames")
}

#[test]
fn a_good_end_makes_the_file() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    sink.push(with_report(bare(1), &report(vec![])));
    sink.push(with_report(
        bare(2),
        &report(vec![face(2, 400.0), face(1, 100.0)]),
    ));
    assert!(!sink.path().exists());
    assert_eq!(sink.element.property::<u32>("frames"), 3);
    assert_eq!(sink.element.property::<u32>("faces"), 3);
    let record = sink.finish();
    let head = &record["metadata"];
    assert_eq!(head["total_frames"], 3);
    assert_eq!(head["fps"], 25.0);
    assert_eq!(head["tracking_engine"], "handmade");
    assert_eq!(
        (&head["width"], &head["height"]),
        (&Json::from(1280), &Json::from(720))
    );
    assert_eq!(head["options"]["blendshape-profile"], "full");
    assert_eq!(numbers(&record), [1, 2, 3]);
    assert_eq!(statuses(&record), ["tracked", "no-face", "tracked"]);
    assert_eq!(record["frames"][2]["tracked_objects"][0]["id"], "obj_1");
    assert_eq!(record["frames"][2]["pts"], 80_000_000);
}

#[test]
fn the_file_is_there_at_end_of_stream() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clip.json");
    let pipeline = gst::parse::launch(&format!(
        "videotestsrc num-buffers=5 ! video/x-raw,framerate=25/1 ! trackjsonsink location={}",
        path_text(&path)
    ))
    .expect("a pipeline");
    let bus = pipeline.bus().expect("a bus");
    let (sender, receiver) = std::sync::mpsc::channel();
    bus.set_sync_handler(move |_, message| {
        if message.type_() == gst::MessageType::Eos {
            // The receiver waits only for this.
            let _ = sender.send(path.exists());
        }
        gst::BusSyncReply::Pass
    });
    pipeline.set_state(gst::State::Playing).expect("it plays");
    assert_eq!(
        receiver.recv_timeout(std::time::Duration::from_secs(20)),
        Ok(true)
    );
    pipeline.set_state(gst::State::Null).expect("it stops");
}

#[test]
fn a_preroll_is_one_frame() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clip.json");
    let pipeline = gst::parse::launch(&format!(
        "videotestsrc num-buffers=3 ! video/x-raw,framerate=25/1 ! trackjsonsink location={}",
        path_text(&path)
    ))
    .expect("a pipeline");
    pipeline.set_state(gst::State::Paused).expect("it pauses");
    let (result, ..) = pipeline.state(gst::ClockTime::from_seconds(20));
    assert_eq!(result, Ok(gst::StateChangeSuccess::Success));
    common::play_to_end(&pipeline);
    assert_eq!(numbers(&json(&path)), [1, 2, 3]);
}

#[test]
fn every_buffer_is_a_frame_whatever_it_carries() {
    let mut sink = Sink::new();
    sink.push(bare(0));
    let mut gap = bare(1);
    gap.make_mut().set_flags(gst::BufferFlags::GAP);
    sink.push(gap);
    sink.push(common::reports::with_malformed_meta(bare(2)));
    let mut late = nth(3);
    late.make_mut().set_flags(gst::BufferFlags::DISCONT);
    sink.push(late);
    let mut timeless = nth(4);
    timeless.make_mut().set_pts(None);
    sink.push(timeless);
    sink.push_nth(1);
    sink.push_nth(2);
    let record = sink.finish();
    assert_eq!(
        statuses(&record),
        [
            "skipped", "gap", "skipped", "tracked", "tracked", "tracked", "tracked"
        ]
    );
    assert_eq!(record["frames"][4]["pts"], Json::Null);
    assert_eq!(record["metadata"]["padded_frames"], 1);
}

fn times(record: &Json) -> Vec<u64> {
    let pts = frames(record).iter().map(|frame| frame["pts"].as_u64());
    pts.map(|pts| pts.expect("a time") / PERIOD.nseconds())
        .collect()
}

const HOLES: [&str; 7] = ["tracked", "gap", "gap", "tracked", "gap", "gap", "tracked"];

#[test]
fn lost_frames_are_filled_in() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    sink.push(interrupted(nth(3)));
    let missing = gap(4, 2, gst::GapFlags::DATA);
    assert!(sink.harness.push_event(missing));
    sink.push(interrupted(nth(6)));
    let record = sink.finish();
    assert_eq!(numbers(&record), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(statuses(&record), HOLES);
    assert_eq!(times(&record), [0, 1, 2, 3, 4, 5, 6]);
    let head = &record["metadata"];
    assert_eq!(head["padded_frames"], 4);
    // The harness is live: what it loses was never promised.
    assert_eq!(head["decode_errors"], 0);
    assert_eq!(head["complete"], true);
}

/// Times beyond the last one that GStreamer knows are none.
#[test]
fn a_gap_may_reach_beyond_the_end_of_time() {
    let mut sink = Sink::new();
    let last = u64::MAX / PERIOD.nseconds();
    sink.push_nth(last - 5);
    let missing = gap(last - 4, 20, gst::GapFlags::DATA);
    assert!(sink.harness.push_event(missing));
    let record = sink.finish();
    assert_eq!(frames(&record).len(), 21);
    assert_eq!(frames(&record)[20]["pts"], Json::Null);
}

/// A decoder sets the flag after a frame that it can't decode.
#[test]
fn interruptions_without_notice_are_errors_in_a_file() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("clip.json");
    let pipeline = gst::parse::launch(&format!(
        "appsrc name=source format=time caps=video/x-raw,framerate=25/1 ! trackjsonsink location={}",
        path_text(&path)
    ));
    let pipeline = pipeline.expect("a pipeline").downcast::<gst::Bin>();
    let pipeline = pipeline.expect("a bin");
    let source = pipeline.by_name("source").expect("it is named");
    let source = source.downcast::<gst_app::AppSrc>().expect("a source");
    let buffers = [
        interrupted(nth(0)),
        nth(1),
        interrupted(nth(2)),
        interrupted(nth(5)),
    ];
    for buffer in buffers {
        source.push_buffer(buffer).expect("there is room");
    }
    source.end_of_stream().expect("it ends");
    common::play_to_end(pipeline.upcast_ref());
    let record = json(&path);
    assert_eq!(times(&record), [0, 1, 2, 3, 4, 5]);
    let head = &record["metadata"];
    assert_eq!(head["decode_errors"], 2);
    assert_eq!(head["padded_frames"], 2);
    assert_eq!(head["complete"], false);
    assert_eq!(head["incomplete_reason"], "2 decoding errors");
}

/// The stream is from a file of variable rate; demuxers announce its still pictures.
#[test]
fn uneven_times_are_no_loss() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    sink.push_nth(3);
    assert!(sink.harness.push_event(gap(4, 2, gst::GapFlags::empty())));
    sink.push_nth(6);
    let record = sink.finish();
    assert_eq!(times(&record), [0, 3, 6]);
    assert_eq!(record["metadata"]["padded_frames"], 0);
    assert_eq!(record["metadata"]["complete"], true);
}

#[test]
fn holes_in_time_are_filled_if_asked_for() {
    let mut sink = Sink::with(|element| element.set_property_from_str("fill-by", "timestamps"));
    sink.push_nth(0);
    sink.push_nth(3);
    assert!(sink.harness.push_event(gap(4, 2, gst::GapFlags::empty())));
    sink.push_nth(6);
    let record = sink.finish();
    assert_eq!(statuses(&record), HOLES);
    assert_eq!(times(&record), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(record["metadata"]["options"]["fill-by"], "timestamps");
}

/// A sink that is synchronised drops late buffers itself, and asks decoders to.
#[test]
fn holes_in_time_are_losses_where_late_frames_are_dropped() {
    for property in ["qos", "max-lateness"] {
        let mut sink = Sink::with(|element| {
            let value = if property == "qos" {
                "true"
            } else {
                "20000000"
            };
            element.set_property_from_str(property, value);
        });
        sink.push_nth(0);
        sink.push_nth(3);
        assert_eq!(times(&sink.finish()), [0, 1, 2, 3], "{property}");
    }
}

#[test]
fn holes_stay_where_they_are_not_to_be_filled() {
    let mut sink = Sink::with(|element| element.set_property("fill-gaps", false));
    sink.push_nth(0);
    sink.push(interrupted(nth(30)));
    assert_eq!(numbers(&sink.finish()), [1, 2]);

    let mut sink = Sink::with(|element| element.set_property_from_str("fill-by", "timestamps"));
    sink.harness
        .set_src_caps_str("video/x-raw,format=RGB,width=640,height=360,framerate=0/1");
    sink.push_nth(0);
    sink.push_nth(30);
    assert_eq!(numbers(&sink.finish()), [1, 2]);
}

/// The stream is from a small file that claims a frame every 0.1 ms.
#[test]
fn filling_ends_when_the_pipeline_stops() {
    let mut sink = Sink::with(|element| element.set_property_from_str("fill-by", "timestamps"));
    sink.harness
        .set_src_caps_str("video/x-raw,format=RGB,width=640,height=360,framerate=10000/1");
    let at = |tenths_of_ms: u64| {
        let mut buffer = bare(0);
        let pts = tenths_of_ms * gst::ClockTime::from_useconds(100);
        buffer.make_mut().set_pts(pts);
        buffer
    };
    for tenths_of_ms in 0..10 {
        sink.push(at(tenths_of_ms));
    }
    let (element, path) = (sink.element.clone(), sink.partial());
    let filling = std::thread::spawn(move || {
        let result = sink.harness.push(at(600_000));
        (result, sink)
    });
    while element.property::<u32>("frames") == 10 && !filling.is_finished() {
        std::thread::yield_now();
        if fs::metadata(&path).is_ok_and(|file| file.len() > 200_000) {
            break;
        }
    }
    element.set_state(gst::State::Null).expect("it stops");
    let (result, sink) = filling.join().expect("it ends");
    assert_eq!(result, Err(gst::FlowError::Flushing));
    let kept = frames(&json(&sink.partial())).len();
    assert!((1000..600_000).contains(&kept), "{kept}");
}

/// The streams are from an MP4 file with B-frames, whose timestamps begin at 80 ms, and from a
/// transport stream.
#[test]
fn times_are_those_of_the_video() {
    for (start, time, start_time) in [(2, 0, Json::Null), (20, 20, 800_000_000.into())] {
        let (element, _bus, folder) = Sink::element();
        let mut harness = Harness::with_element(&element, Some("sink"), None);
        harness.play();
        harness.push_event(gst::event::StreamStart::new("a video"));
        let caps = "video/x-raw,framerate=25/1".parse().expect("caps");
        harness.push_event(gst::event::Caps::new(&caps));
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_start(start * PERIOD);
        segment.set_time(time * PERIOD);
        harness.push_event(gst::event::Segment::new(&segment));
        for n in 0..3 {
            harness.push(nth(start + n)).expect("the sink takes it");
        }
        assert!(harness.push_event(gst::event::Eos::new()));
        let record = json(&folder.path().join("clip.json"));
        assert_eq!(times(&record), [0, 1, 2], "{start}");
        let told = record["metadata"].get("start_time");
        assert_eq!(told.unwrap_or(&Json::Null), &start_time);
    }
}

#[test]
fn the_rate_is_measured_where_it_is_missing_or_wrong() {
    for (caps, step, fps) in [("0/1", 1, 25.0), ("500/1", 1, 25.0), ("25/1", 2, 12.5)] {
        let mut sink = Sink::new();
        sink.harness.set_src_caps_str(&format!(
            "video/x-raw,width=640,height=360,framerate={caps}"
        ));
        (0..12).for_each(|n| sink.push_nth(n * step));
        let record = sink.finish();
        assert_eq!(record["metadata"]["fps"], fps, "{caps}");
        assert_eq!(record["metadata"].get("variable_rate"), None, "{caps}");
    }
    let mut sink = Sink::new();
    for n in [0, 1, 2, 3, 4, 8, 12, 16, 20, 24] {
        sink.push_nth(n);
    }
    let head = &sink.finish()["metadata"];
    assert_eq!(head["fps"], 9.375);
    assert_eq!(head["variable_rate"], true);
}

#[test]
fn damage_and_orientation_are_reported() {
    let mut sink = Sink::new();
    let mut tags = gst::TagList::new();
    let writable = tags.make_mut();
    writable.set_scope(gst::TagScope::Stream);
    writable.add::<gst::tags::ImageOrientation>(&"rotate-90", gst::TagMergeMode::Append);
    sink.push_nth(0);
    assert!(sink.harness.push_event(gst::event::Tag::new(tags)));
    let mut damaged = nth(1);
    damaged.make_mut().set_flags(gst::BufferFlags::CORRUPTED);
    sink.push(damaged);
    sink.eos();
    let warning = sink.warning();
    for part in ["1 damaged frame", "clip.json", "2 frames", "undamaged"] {
        assert!(warning.contains(part), "{warning}");
    }
    let record = json(&sink.path());
    assert_eq!(record["metadata"]["orientation"], "rotate-90");
    assert_eq!(record["metadata"]["corrupted_frames"], 1);
    assert_eq!(record["metadata"]["complete"], false);
}

#[test]
fn the_end_is_announced() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    sink.push(with_report(bare(1), &report(vec![])));
    sink.eos();
    let kinds = [gst::MessageType::Element, gst::MessageType::Warning];
    let message = sink.bus.pop_filtered(&kinds).expect("a message");
    let done = message.structure().expect("an element message");
    assert_eq!(done.name(), "trackjsonsink-done");
    assert_eq!(done.get("location"), Ok(path_text(&sink.path())));
    assert_eq!(
        (done.get("frames"), done.get("faces")),
        (Ok(2u64), Ok(1u64))
    );
    assert_eq!(done.get("complete"), Ok(true));
    for count in ["gap-frames", "decode-errors", "corrupted-frames"] {
        assert_eq!(done.get(count), Ok(0u64), "{count}");
    }
    assert!(!done.has_field("incomplete-reason"));
}

/// A stream that ends before its source said that it would.
#[test]
fn a_stream_that_ends_early_is_incomplete() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let play = |end: &str, name: &str| {
        let path = folder.path().join(name);
        let pipeline = gst::parse::launch(&format!(
            "videotestsrc num-buffers=100 ! video/x-raw,framerate=25/1 ! {end} ! facetrack engine=scripted ! trackjsonsink location={}",
            path_text(&path)
        ));
        common::play_to_end(&pipeline.expect("a pipeline"));
        json(&path)["metadata"].clone()
    };
    let whole = play("identity", "whole.json");
    assert_eq!(whole["complete"], true);
    // Only a container states a number.
    assert_eq!(whole.get("expected_frames"), None);
    let early = play("identity eos-after=20", "early.json");
    assert_eq!(early["complete"], false);
    assert_eq!(early["expected_duration"], 4_000_000_000u64);
    let reason = early["incomplete_reason"].as_str().expect("a reason");
    assert!(reason.contains("of 4.000 s"), "{reason}");
}

/// A branch of a `tee` that a program ends, while the other one continues.
#[test]
fn a_branch_that_is_ended_has_no_damage() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let [video, record] = ["clip.mov", "clip.json"].map(|name| folder.path().join(name));
    let encoded = gst::parse::launch(&format!(
        "videotestsrc num-buffers=75 ! video/x-raw,width=64,height=64,framerate=25/1 ! jpegenc ! qtmux ! filesink location={}",
        path_text(&video)
    ));
    common::play_to_end(&encoded.expect("a pipeline"));
    let pipeline = gst::parse::launch(&format!(
        "filesrc location={} ! decodebin ! facetrack engine=scripted ! tee name=tee ! queue ! fakesink \
         tee. ! queue ! trackjsonsink name=sink location={}",
        path_text(&video),
        path_text(&record)
    ));
    let pipeline = pipeline.expect("a pipeline");
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a bin");
    let bus = pipeline.bus().expect("a pipeline has one");
    let branch = bin.by_name("tee").and_then(|tee| tee.static_pad("src_1"));
    let frames = AtomicU64::new(0);
    let branch = branch.expect("its pad");
    branch.add_probe(gst::PadProbeType::BUFFER, move |pad, _| {
        let frame = frames.fetch_add(1, Ordering::Relaxed);
        if frame < 25 {
            return gst::PadProbeReturn::Ok;
        }
        if frame == 25 {
            let queue = pad.peer().expect("a queue");
            queue.send_event(gst::event::Eos::new());
        }
        gst::PadProbeReturn::Drop
    });
    let mut done = false;
    pipeline.set_state(gst::State::Playing).expect("it plays");
    while !done {
        let message = bus.timed_pop(gst::ClockTime::from_seconds(20));
        match message.expect("a message").view() {
            gst::MessageView::Warning(warning) => panic!("{warning:?}"),
            gst::MessageView::Element(element) => {
                let structure = element.structure().expect("a structure");
                done = structure.name() == "trackjsonsink-done";
            }
            _ => (),
        }
    }
    pipeline.set_state(gst::State::Null).expect("it stops");
    let metadata = json(&record)["metadata"].clone();
    assert_eq!(metadata["total_frames"], 25);
    assert_eq!(metadata["complete"], false);
    let reason = "the recording was ended at 1.000 s of 3.000 s";
    assert_eq!(metadata["incomplete_reason"], reason);
}

#[test]
fn frames_without_metadata_bring_one_warning() {
    for frames in [1, 49, 50, 200] {
        let mut sink = Sink::new();
        (0..frames).for_each(|n| sink.push(bare(n)));
        sink.eos();
        let warning = sink.warning();
        assert!(warning.contains("Put facetrack"), "{warning}");
        let another = sink.bus.pop_filtered(&[gst::MessageType::Warning]);
        assert!(another.is_none(), "{frames}");
    }
    let mut sink = Sink::new();
    (0..40).for_each(|n| sink.push(bare(n)));
    (40..60).for_each(|n| sink.push_nth(n));
    sink.eos();
    let warning = sink.bus.pop_filtered(&[gst::MessageType::Warning]);
    assert!(warning.is_none());
}

#[test]
fn a_stream_without_a_frame_is_an_error() {
    let mut sink = Sink::new();
    assert!(!sink.harness.push_event(gst::event::Eos::new()));
    assert!(sink.error().contains("no frame"));
    let left = fs::read_dir(sink.folder.path()).expect("a folder").count();
    assert_eq!(left, 0);
}

#[test]
fn fields_and_the_path_of_the_video_can_be_set() {
    let mut sink = Sink::with(|element| {
        element.set_property_from_str("fields", "pose+landmarks");
        element.set_property("video-path", "somewhere/else.mp4");
    });
    sink.push_nth(0);
    let record = sink.finish();
    let object = &record["frames"][0]["tracked_objects"][0];
    for (key, is_there) in [
        ("pose", true),
        ("landmarks", true),
        ("gaze", false),
        ("box", false),
    ] {
        assert_eq!(object.get(key).is_some(), is_there, "{key}");
    }
    let head = &record["metadata"];
    assert_eq!(head["video_path"], "somewhere/else.mp4");
    assert_eq!(head["options"]["fields"], "landmarks+pose");
}

#[test]
fn seeks_and_new_segments_count_on_without_filling() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    assert!(sink.harness.push_event(gst::event::FlushStart::new()));
    assert!(sink.harness.push_event(gst::event::FlushStop::new(true)));
    let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
    segment.set_start(100 * PERIOD);
    let segment_event = gst::event::Segment::new(&segment);
    assert!(sink.harness.push_event(segment_event));
    sink.push_nth(100);
    assert!(sink.harness.push_event(gst::event::Segment::new(&segment)));
    sink.push_nth(300);
    assert_eq!(numbers(&sink.finish()), [1, 2, 3]);
}

#[test]
fn a_jump_of_days_fills_nothing() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    sink.push(interrupted(nth(10_000_000)));
    sink.push_nth(10_000_001);
    assert_eq!(numbers(&sink.finish()), [1, 2, 3]);
}

#[test]
fn other_caps_in_mid_stream_change_nothing() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    let caps = "video/x-raw,format=NV12,width=320,height=180,framerate=25/1";
    let caps = caps.parse().expect("caps");
    assert!(sink.harness.push_event(gst::event::Caps::new(&caps)));
    sink.push(interrupted(nth(2)));
    let record = sink.finish();
    assert_eq!(statuses(&record), ["tracked", "gap", "tracked"]);
    let [first, last] =
        [0, 2].map(|i| record["frames"][i]["tracked_objects"][0]["bbox_ymin"].clone());
    assert_eq!(first, last, "coordinates are the report's");
}

/// A reader of an unfinished record sees only the head that was written first.
#[test]
fn the_size_in_the_head_stays_and_frames_of_another_say_so() {
    for format in ["dense", "jsonl"] {
        let mut sink = Sink::with(|element| element.set_property_from_str("format", format));
        sink.push(bare(0));
        sink.push_nth(1);
        sink.eos();
        let text = fs::read_to_string(sink.path()).expect("a record");
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].contains("\"width\":640,"), "{text}");
        assert!(!lines[1].contains("\"width\""), "{text}");
        assert!(lines[2].contains("\"width\":1280,"), "{text}");
        assert!(!lines[3].contains("\"width\":1280,"), "{text}");
    }
}

#[test]
fn a_stop_without_eos_keeps_a_readable_partial() {
    let mut sink = Sink::new();
    for n in 0..200 {
        sink.push_nth(n);
    }
    sink.stop();
    let warning = sink.warning();
    assert!(warning.contains("clip.json.partial"), "{warning}");
    assert!(warning.contains("200 frames"), "{warning}");
    assert!(!sink.path().exists());
    let record = json(&sink.partial());
    assert_eq!(frames(&record).len(), 200);
    assert_eq!(record["metadata"]["total_frames"], 200);
}

#[test]
fn a_stop_before_the_first_frame_leaves_nothing() {
    let sink = Sink::new();
    sink.stop();
    assert_eq!(
        fs::read_dir(sink.folder.path()).expect("a folder").count(),
        0
    );
    assert!(
        sink.bus
            .pop_filtered(&[gst::MessageType::Warning])
            .is_none()
    );
}

#[test]
fn a_start_without_a_frame_leaves_no_lines_either() {
    let sink = Sink::with(|element| element.set_property_from_str("format", "jsonl"));
    assert!(sink.path().exists(), "readers may wait for it");
    sink.stop();
    assert!(!sink.path().exists());
}

#[test]
fn an_end_after_a_failed_frame_is_no_good_end() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    let mut failed = report(Vec::new());
    failed.status = FrameStatus::Error;
    sink.push(with_report(bare(1), &failed));
    sink.eos();
    assert!(!sink.path().exists());
    assert_eq!(statuses(&json(&sink.partial())), ["tracked", "error"]);
    assert!(sink.warning().contains("incomplete"));
}

#[test]
fn an_end_without_any_video_is_no_good_end() {
    let (element, bus, folder) = Sink::element();
    let mut harness = Harness::with_element(&element, Some("sink"), None);
    harness.play();
    assert!(!harness.push_event(gst::event::Eos::new()));
    let error = message(&bus, gst::MessageType::Error);
    assert!(error.contains("no video"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_finished_record_is_not_overwritten_unless_asked_for() {
    let (element, bus, folder) = Sink::element();
    let path = folder.path().join("clip.json");
    fs::write(&path, "old").expect("room");
    assert!(
        element.set_state(gst::State::Ready).is_err(),
        "there is a record"
    );
    let error = message(&bus, gst::MessageType::Error);
    assert!(
        error.contains(path_text(&path)) && error.contains("overwrite=true"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&path).expect("a file"), "old");
    element.set_state(gst::State::Null).expect("it stops");

    let mut sink = Sink::with(|element| {
        element.set_property("location", path_text(&path));
        element.set_property("overwrite", true);
    });
    sink.push_nth(0);
    assert_eq!(
        fs::read_to_string(&path).expect("a file"),
        "old",
        "until the end"
    );
    sink.eos();
    assert_eq!(frames(&json(&path)).len(), 1);
}

#[test]
fn a_record_that_appears_meanwhile_is_kept_too() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    fs::write(sink.path(), "other").expect("room");
    assert!(!sink.harness.push_event(gst::event::Eos::new()));
    assert!(sink.error().contains("overwrite=true"));
    assert_eq!(fs::read_to_string(sink.path()).expect("a file"), "other");
    assert_eq!(frames(&json(&sink.partial())).len(), 1);
}

#[test]
fn an_element_records_again_to_another_place() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    sink.eos();
    sink.element.set_state(gst::State::Ready).expect("it stops");
    assert!(
        sink.element.set_state(gst::State::Paused).is_err(),
        "the record exists"
    );
    assert!(sink.error().contains("overwrite=true"));

    let second = sink.folder.path().join("second.json");
    sink.element.set_property("location", path_text(&second));
    sink.element
        .set_state(gst::State::Playing)
        .expect("it starts");
    let start = gst::event::StreamStart::new("second");
    assert!(sink.harness.push_event(start));
    sink.harness.set_src_caps_str("video/x-raw,framerate=25/1");
    sink.push_nth(0);
    sink.eos();
    assert_eq!(numbers(&json(&second)), [1]);
    assert_eq!(sink.element.property::<u32>("frames"), 1);
}

#[test]
fn what_comes_after_the_end_is_dropped() {
    let mut sink = Sink::new();
    sink.push_nth(0);
    sink.eos();
    assert!(sink.harness.push_event(gst::event::FlushStart::new()));
    assert!(sink.harness.push_event(gst::event::FlushStop::new(true)));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    assert!(sink.harness.push_event(gst::event::Segment::new(&segment)));
    sink.push_nth(0);
    assert_eq!(numbers(&json(&sink.path())), [1]);
    sink.stop();
    assert_eq!(numbers(&json(&sink.path())), [1]);
}

/// Locations that can't be written, and what the error has to name.
#[test]
fn places_that_can_not_be_written_are_reported_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let nowhere = folder.path().join("none/clip.json");
    let cases = [
        (
            path_text(&nowhere),
            "dense",
            vec![path_text(&nowhere), "Create its folder"],
        ),
        (path_text(folder.path()), "dense", vec!["is a folder"]),
        ("/dev/full", "dense", vec!["/dev/full", "format=jsonl"]),
        ("-", "reduced", vec!["Set location"]),
        (
            "/proc/clip.json",
            "jsonl",
            vec!["/proc/clip.json", "another location"],
        ),
    ];
    for (location, format, parts) in cases {
        let (element, bus, _folder) = Sink::element();
        element.set_property("location", location);
        element.set_property_from_str("format", format);
        assert!(
            element.set_state(gst::State::Playing).is_err(),
            "it can't be written"
        );
        let error = message(&bus, gst::MessageType::Error);
        for part in parts {
            assert!(error.contains(part), "{location}: {error}");
        }
        element.set_state(gst::State::Null).expect("it stops");
    }
}

#[test]
fn an_unwritable_folder_is_reported_with_a_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).expect("ours");
    let path = folder.path().join("clip.json");
    if fs::write(folder.path().join("probe"), "").is_ok() {
        eprintln!("SKIPPED: this user may write to folders that are not writable (root?)");
        return;
    }
    let (element, bus, _folder) = Sink::element();
    element.set_property("location", path_text(&path));
    assert!(
        element.set_state(gst::State::Paused).is_err(),
        "it can't be written"
    );
    let error = message(&bus, gst::MessageType::Error);
    assert!(error.contains("Make its folder writable"), "{error}");
    element.set_state(gst::State::Null).expect("it stops");
}

#[test]
fn a_full_device_is_an_error() {
    let mut sink = Sink::with(|element| {
        element.set_property("location", "/dev/full");
        element.set_property_from_str("format", "jsonl");
    });
    assert_eq!(sink.harness.push(nth(0)), Err(gst::FlowError::Error));
    let error = sink.error();
    assert!(
        error.contains("/dev/full") && error.contains("Free disk space"),
        "{error}"
    );
    assert_eq!(sink.harness.push(nth(1)), Err(gst::FlowError::Error));
    assert!(
        !sink.harness.push_event(gst::event::Eos::new()),
        "no good end"
    );
}

#[test]
fn a_vanished_folder_is_reported_and_the_record_rescued() {
    for format in ["dense", "jsonl", "reduced"] {
        let name = format!("facetrack-rescue-{}.{format}", std::process::id());
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).expect("room");
        let mut sink = Sink::with(|element| {
            element.set_property_from_str("format", format);
            element.set_property("location", path_text(&inner.join(&name)));
        });
        sink.push_nth(0);
        fs::remove_dir_all(&inner).expect("ours");
        assert!(!sink.harness.push_event(gst::event::Eos::new()), "{format}");
        let error = sink.error();
        let rescued = std::env::temp_dir().join(&name);
        assert!(
            error.contains("was removed") && error.contains(path_text(&rescued)),
            "{error}"
        );
        let text = fs::read_to_string(&rescued).expect("a record");
        assert!(text.contains(r#"{"frame":1,"#), "{text}");
        fs::remove_file(rescued).expect("ours");
    }
}

#[test]
fn an_unknown_profile_is_refused_with_the_list() {
    let (element, bus, _folder) = Sink::element();
    element.set_property("blendshape-profile", "lips");
    assert!(
        element.set_state(gst::State::Ready).is_err(),
        "no such profile"
    );
    let error = message(&bus, gst::MessageType::Error);
    assert!(
        error.contains("full, none, mouth, mediapipe, custom"),
        "{error}"
    );
    element.set_state(gst::State::Null).expect("it stops");
}

#[test]
fn options_shape_the_record() {
    let mut sink = Sink::with(|element| {
        element.set_property("blendshape-profile", "custom");
        element.set_property("blendshape-keys", "jawOpen,eyeBlinkLeft");
        element.set_property("verbose", true);
    });
    sink.push_nth(0);
    let record = sink.finish();
    let object = &record["frames"][0]["tracked_objects"][0];
    let channels: Vec<_> = object["blendshapes"]
        .as_object()
        .expect("channels")
        .keys()
        .collect();
    assert_eq!(channels, ["jawOpen", "eyeBlinkLeft"]);
    assert_eq!(object["landmarks"].as_array().map(Vec::len), Some(478));
    assert_eq!(record["metadata"]["options"]["verbose"], true);
}

#[test]
fn the_video_is_named_where_upstream_knows_it() {
    common::init();
    let folder = tempfile::tempdir().expect("a folder");
    let [video, path] = ["clip ä.rgb", "clip.json"].map(|name| folder.path().join(name));
    fs::write(&video, vec![0; 16 * 16 * 3 * 2]).expect("room");
    let pipeline = gst::parse::launch(
        "filesrc name=src ! rawvideoparse width=16 height=16 format=rgb framerate=25/1 ! queue ! trackjsonsink name=sink",
    )
    .expect("a pipeline")
    .downcast::<gst::Bin>()
    .expect("a bin");
    for (name, location) in [("src", &video), ("sink", &path)] {
        let element = pipeline.by_name(name).expect("it is named");
        element.set_property("location", path_text(location));
    }
    common::play_to_end(pipeline.upcast_ref());
    let record = json(&path);
    assert_eq!(record["metadata"]["video_path"], path_text(&video));
    assert_eq!(record["metadata"]["total_frames"], 2);
    assert_eq!(record["metadata"]["tracking_engine"], "");
}

#[test]
fn jsonl_can_be_read_while_it_grows() {
    let mut sink = Sink::with(|element| element.set_property_from_str("format", "jsonl"));
    sink.push_nth(0);
    let text = fs::read_to_string(sink.path()).expect("under its own name");
    assert_eq!(text.lines().count(), 2);
    sink.eos();
    let text = fs::read_to_string(sink.path()).expect("a file");
    let last: Json = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["trailer"]["total_frames"], 1);
}

#[test]
fn reduced_is_written_too() {
    let mut sink = Sink::with(|element| element.set_property_from_str("format", "reduced"));
    sink.push_nth(0);
    sink.push(interrupted(nth(2)));
    let record = sink.finish();
    assert_eq!(record["total_frames"], 3);
    assert_eq!(
        record["frames_analysis"][2]["tracked_objects"][0]["id"],
        "obj_1"
    );
}

/// Runs the test `name` of this program in a process of its own, by way of a shell that first does
/// `setup`, and returns what it printed.
fn run_child(name: &str, setup: &str, environment: &[(&str, &str)]) -> String {
    let program = std::env::current_exe().expect("this program");
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!(
            "{setup} exec \"$0\" --exact trackjsonsink::{name} --nocapture --test-threads=1"
        ))
        .arg(program)
        .env(CHILD, name)
        .envs(environment.iter().copied())
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains("1 passed"), "{text}");
    text
}

#[test]
fn standard_output_gets_lines() {
    let name = "standard_output_gets_lines";
    if is_child(name) {
        let mut sink = Sink::with(|element| element.set_property("location", "-"));
        sink.push_nth(0);
        return sink.eos();
    }
    let text = run_child(name, "", &[]);
    let lines: Vec<Json> = text
        .lines()
        // The test harness says something, too, some of it on the same line.
        .filter_map(|line| serde_json::from_str(line.get(line.find('{')?..)?).ok())
        .collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[0]["metadata"]["options"]["format"], "jsonl");
    assert_eq!(lines[1]["frame"], 1);
    assert_eq!(lines[2]["trailer"]["total_frames"], 1);
}

/// A limit on the size of files stands in for a full disk.
#[test]
fn a_full_disk_keeps_what_was_written() {
    let name = "a_full_disk_keeps_what_was_written";
    if is_child(name) {
        let mut sink = Sink::new();
        let failed = (0..10_000).find(|n| sink.harness.push(nth(*n)).is_err());
        let failed = failed.expect("the limit is reached");
        let error = sink.error();
        assert!(error.contains("clip.json.partial"), "{error}");
        let warning = sink.warning();
        let record = json(&sink.partial());
        let kept = frames(&record).len();
        assert!(kept > 50 && kept as u64 <= failed, "{kept} of {failed}");
        assert_eq!(record["metadata"]["total_frames"], kept);
        assert!(warning.contains(&format!("{kept} frames")), "{warning}");
        assert!(!sink.path().exists());
        return;
    }
    run_child(name, "trap '' XFSZ; ulimit -f 600;", &[]);
}

#[test]
fn the_environment_gives_defaults() {
    let name = "the_environment_gives_defaults";
    if is_child(name) {
        let mut sink = Sink::with(|element| element.set_property("verbose", false));
        let warning = sink.warning();
        assert!(
            warning.contains("STEP5_BLENDSHAPES_INCLUDE_TONGUE"),
            "{warning}"
        );
        sink.push_nth(0);
        let record = sink.finish();
        let object = &record["frames"][0]["tracked_objects"][0];
        assert_eq!(object["blendshapes"].as_object().map(|c| c.len()), Some(27));
        assert_eq!(object.get("landmarks"), None, "an explicit property wins");
        return;
    }
    let environment = [
        ("STEP5_BLENDSHAPES_PROFILE", "mouth"),
        ("STEP5_BLENDSHAPES_INCLUDE_TONGUE", "perhaps"),
        ("STEP5_EXPORT_VERBOSE_FIELDS", "ALL"),
    ];
    run_child(name, "", &environment);
}

/// This runs in another process, where no other test takes memory.
#[test]
fn memory_does_not_grow_with_the_stream() {
    let name = "memory_does_not_grow_with_the_stream";
    if !is_child(name) {
        run_child(name, "", &[]);
        return;
    }
    let mut sink = Sink::new();
    let template = with_report(bare(0), &report(vec![face(1, 100.0)]));
    let mut push = |n: u64| {
        let mut buffer = template.copy();
        buffer.make_mut().set_pts(n * PERIOD);
        sink.push(buffer);
    };
    (0..1000).for_each(&mut push);
    let before = common::resident_bytes();
    (1000..100_000).for_each(&mut push);
    let grown = common::resident_bytes().saturating_sub(before);
    assert!(grown < 2 << 20, "{grown} bytes");
    sink.eos();
    let text = fs::read_to_string(sink.path()).expect("a file");
    assert_eq!(text.lines().count(), 100_002);
    let head = text.lines().next().expect("a head");
    assert!(head.contains(r#""total_frames":100000"#), "{head}");
}

/// The engine is changed, and changed back.
#[test]
fn frames_name_the_engine_that_made_them() {
    let mut sink = Sink::new();
    let engines = ["first", "second", "second", "first"];
    for (n, engine) in (0..).zip(engines) {
        let mut report = report(vec![]);
        Arc::make_mut(&mut report.source).engine = engine.into();
        sink.push(with_report(bare(n), &report));
    }
    let record = sink.finish();
    assert_eq!(record["metadata"]["tracking_engine"], "first");
    let frames = record["frames"].as_array().expect("frames").iter();
    let named = frames.map(|frame| frame.get("tracking_engine").cloned());
    let named: Vec<_> = named.collect();
    let second = Some(Json::from("second"));
    assert_eq!(named, [None, second.clone(), second, None]);
}

/// The GPU fails during the stream.
#[test]
fn the_head_tells_where_the_engine_ran_last() {
    let mut sink = Sink::new();
    for (n, device) in [(0, "cuda:0"), (1, "cuda:0"), (2, "cpu")] {
        let mut report = report(vec![]);
        let source = Arc::make_mut(&mut report.source);
        source.device = device.into();
        sink.push(with_report(bare(n), &report));
    }
    let record = sink.finish();
    let head = &record["metadata"];
    assert_eq!(head["device"], "cpu");
    assert_eq!(
        (&head["width"], &head["height"]),
        (&1280.into(), &720.into())
    );
}
