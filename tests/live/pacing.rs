// SPDX-License-Identifier: MPL-2.0
//! The element `facetrack` in live pipelines: latency, late frames, and what may change while
//! frames flow.

use crate::common;

use crate::common::bus::Watch;

use std::sync::mpsc;

use facetrack::observation::Origin;
use facetrack::report::{FrameReport, FrameStatus};
use gst::glib;
use gst::prelude::*;
use gst_check::Harness;
use gst_video::VideoRegionOfInterestMeta;
use gstfacetrack::meta::FaceTrackMeta;

const FRAME_SIZE: usize = 64 * 48 * 3;
const PERIOD: u64 = 40;

fn ms(ms: u64) -> gst::ClockTime {
    gst::ClockTime::from_mseconds(ms)
}

/// An element behind a camera of 25 frames a second, with a clock that stands still.
struct Camera {
    harness: Harness,
    bus: Watch,
    /// Time of the last frame, ms.
    last: u64,
}

impl Camera {
    fn new(properties: &str) -> Self {
        common::init();
        let element = gst::parse::launch(&format!("facetrack engine=scripted {properties}"))
            .expect("a good description");
        let bus = Watch::of(&element);
        let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
        harness.use_testclock();
        harness.set_src_caps_str("video/x-raw,format=RGB,width=64,height=48,framerate=25/1");
        Self {
            harness,
            bus,
            last: 0,
        }
    }

    fn element(&self) -> gst::Element {
        self.harness.element().expect("the element")
    }

    /// The frame of a time, which comes at another one.
    fn frame(&mut self, pts: u64, now: u64) -> FrameReport {
        self.flagged_frame(pts, now, gst::BufferFlags::empty())
    }

    fn flagged_frame(&mut self, pts: u64, now: u64, flags: gst::BufferFlags) -> FrameReport {
        self.harness.set_time(ms(now)).expect("a test clock");
        self.last = pts;
        let mut buffer = gst::Buffer::from_slice(vec![0u8; FRAME_SIZE]);
        let writable = buffer.get_mut().expect("the only reference");
        writable.set_pts(ms(pts));
        writable.set_flags(flags);
        let buffer = self.harness.push_and_pull(buffer).expect("it flows");
        assert_eq!(buffer.pts(), Some(ms(pts)));
        FaceTrackMeta::from_buffer(&buffer).expect("a report")
    }

    /// The next frame, in time.
    fn next_frame(&mut self) -> FrameReport {
        let time = self.last + PERIOD;
        self.frame(time, time)
    }

    /// Frames in time, until `happened`.
    fn frames_until(&mut self, mut happened: impl FnMut(&FrameReport) -> bool) -> FrameReport {
        (0..1_000_000)
            .map(|_| self.next_frame())
            .find(|report| happened(report))
            .expect("it happens")
    }

    fn messages(&self, kind: gst::MessageType) -> Vec<gst::Message> {
        std::iter::from_fn(|| self.bus.pop())
            .filter(|message| message.type_() == kind)
            .collect()
    }
}

fn origin(report: &FrameReport) -> Origin {
    report.faces[0].face.origin
}

#[test]
fn a_late_frame_passes_with_the_faces_of_the_one_before() {
    let mut camera = Camera::new("script=\"face dx=0.01\"");
    let seen = camera.frame(0, 0);
    let late = camera.frame(40, 500);
    assert_eq!(late.status, FrameStatus::Tracked);
    assert_eq!(origin(&late), Origin::Held);
    assert_eq!(late.faces[0].face.bbox, seen.faces[0].face.bbox);
    assert_eq!(origin(&camera.frame(480, 500)), Origin::Tracked);
    assert_eq!(late.faces[0].id, 1);
}

#[test]
fn faces_of_late_frames_move_on_where_that_is_asked_for() {
    let mut camera = Camera::new("script=\"face dx=0.01\" predict=true");
    camera.frame(0, 0);
    let seen = camera.frame(40, 40);
    let late = camera.frame(80, 500);
    assert_eq!(origin(&late), Origin::Predicted);
    let [from, to] = [&seen, &late].map(|report| report.faces[0].face.bbox.x);
    assert!((to - from - 0.64).abs() < 1e-3, "{from} {to}");
    camera.element().set_property("predict", false);
    let late = camera.frame(120, 500);
    assert_eq!(origin(&late), Origin::Held);
    assert_eq!(late.faces[0].face.bbox, seen.faces[0].face.bbox);
}

#[test]
fn late_frames_are_analysed_where_that_is_asked_for() {
    let mut camera = Camera::new("script=face late-frames=analyze");
    camera.frame(0, 0);
    assert_eq!(origin(&camera.frame(40, 500)), Origin::Tracked);
    camera
        .element()
        .set_property_from_str("late-frames", "hold");
    assert_eq!(origin(&camera.frame(80, 500)), Origin::Held, "at once");
}

#[test]
fn a_late_frame_without_faces_before_is_skipped() {
    let mut camera = Camera::new("script=\"face from=100\"");
    assert_eq!(camera.frame(0, 0).status, FrameStatus::NoFace);
    assert_eq!(camera.frame(40, 500).status, FrameStatus::Skipped);
}

#[test]
fn a_late_frame_that_starts_afresh_is_analysed() {
    let mut camera = Camera::new("script=face");
    camera.frame(0, 0);
    let afresh = camera.flagged_frame(400, 1000, gst::BufferFlags::DISCONT);
    assert_eq!(origin(&afresh), Origin::Detected);
    let near = camera.flagged_frame(440, 1000, gst::BufferFlags::DISCONT);
    assert_eq!(origin(&near), Origin::Held, "no frame is missing");
}

#[test]
fn upstreams_latency_is_allowed_for() {
    let mut camera = Camera::new("script=face");
    camera.harness.set_upstream_latency(ms(100));
    let latency = gst::event::Latency::new(ms(100));
    assert!(camera.harness.push_upstream_event(latency));
    camera.frame(0, 0);
    assert_eq!(origin(&camera.frame(40, 180)), Origin::Tracked);
    assert_eq!(origin(&camera.frame(80, 221)), Origin::Held);
}

#[test]
fn a_sinks_complaint_is_heeded_and_no_frame_is_dropped() {
    for (late_frames, forwards) in [("auto", false), ("auto", true), ("analyze", false)] {
        let mut camera = Camera::new(&format!("script=face late-frames={late_frames}"));
        let holds = late_frames == "auto";
        camera.element().set_property("qos", forwards);
        camera.frame(0, 0);
        let late = i64::try_from(ms(50).nseconds()).expect("a short time");
        let complaint = gst::event::Qos::new(gst::QOSType::Underflow, 1.5, late, ms(0));
        assert!(camera.harness.push_upstream_event(complaint));
        let held = origin(&camera.frame(40, 40)) == Origin::Held;
        assert_eq!(held, holds, "{late_frames}");
        assert_eq!(origin(&camera.frame(80, 80)), Origin::Tracked);
        let upstream = std::iter::from_fn(|| camera.harness.try_pull_upstream_event());
        let told = upstream.filter(|event| event.type_() == gst::EventType::Qos);
        assert_eq!(told.count() > 0, forwards, "a decoder would drop frames");
    }
}

#[test]
fn what_a_flush_ends_is_not_late() {
    let mut camera = Camera::new("script=face");
    camera.frame(0, 0);
    camera.harness.push_event(gst::event::FlushStart::new());
    camera.harness.push_event(gst::event::FlushStop::new(true));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    camera
        .harness
        .push_event(gst::event::Segment::new(&segment));
    assert_eq!(origin(&camera.frame(0, 500)), Origin::Detected);
    assert_eq!(origin(&camera.frame(40, 540)), Origin::Tracked);
}

#[test]
fn the_latency_is_measured_and_reported() {
    let mut camera = Camera::new("script=\"face; slow ms=20\"");
    camera.harness.set_upstream_latency(ms(7));
    assert_eq!(
        camera.harness.query_latency(),
        Some(ms(7)),
        "nothing is known"
    );
    camera.frame(0, 0);
    assert_eq!(camera.messages(gst::MessageType::Latency).len(), 1);
    let latency = camera.harness.query_latency().expect("an answer");
    assert!(latency >= ms(27), "{latency}");
    let stats: gst::Structure = camera.element().property("stats");
    let own: f64 = stats.get("latency").expect("a latency");
    assert_eq!(latency, ms(7 + own as u64), "{stats}");
}

/// A frame as it comes to a sink.
struct Shown {
    report: FrameReport,
    /// Delay of the frame.
    age: gst::ClockTime,
    /// Number of areas that `facetrackblur` covered.
    covered: usize,
}

/// Plays a pipeline with a sink `sink` to its end.
fn play(pipeline: &str) -> Vec<Shown> {
    common::init();
    let pipeline = gst::parse::launch(pipeline).expect("a pipeline");
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    let sink = bin.by_name("sink").expect("a sink");
    let (sender, receiver) = mpsc::channel();
    sink.static_pad("sink")
        .expect("a pad")
        .add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
            let buffer = info.buffer().expect("a buffer");
            let report = FaceTrackMeta::from_buffer(buffer).expect("a report");
            let now = pad
                .parent_element()
                .and_then(|sink| sink.current_running_time());
            // The segments of these sources begin at 0.
            let time = buffer.pts().expect("a time");
            let age = now.unwrap_or_default().saturating_sub(time);
            let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
            let covered = regions.filter(|it| it.roi_type() == "redacted").count();
            let shown = Shown {
                report,
                age,
                covered,
            };
            sender.send(shown).expect("a listener");
            gst::PadProbeReturn::Ok
        })
        .expect("a probe");
    common::play_to_end(&pipeline);
    receiver.try_iter().collect()
}

/// Returns for each frame whether it was analysed.
fn analyzed(frames: &[Shown]) -> Vec<bool> {
    frames
        .iter()
        .map(|frame| match origin(&frame.report) {
            Origin::Detected | Origin::Tracked => true,
            Origin::Held | Origin::Predicted => false,
        })
        .collect()
}

/// A camera of 100 frames a second, and an engine that takes 40 ms a frame.
const SLOW: &str = "video/x-raw,width=64,height=48,framerate=100/1 ! facetrack engine=scripted script=\"face; slow ms=40\"";

#[test]
fn a_camera_four_times_too_fast_is_kept_up_with() {
    for (sink, waits) in [("sync=false", false), ("sync=true qos=true", true)] {
        let frames = play(&format!(
            "videotestsrc is-live=true num-buffers=300 ! {SLOW} ! fakesink name=sink {sink}"
        ));
        assert_eq!(frames.len(), 300, "every frame passes");
        let analyzed = analyzed(&frames);
        let looks: Vec<_> = (0..300).filter(|frame| analyzed[*frame]).collect();
        assert!(looks.len() >= 3, "{sink}: {looks:?}");
        for pair in looks.windows(2) {
            assert!(pair[1] - pair[0] >= 3, "{sink}: {looks:?}");
        }
        let mut ages: Vec<_> = frames.iter().map(|frame| frame.age).collect();
        let first = ages[0];
        ages.sort_unstable();
        // A frame and an analysis take 50 ms; without keeping up half of them would be older than 4
        // s. A machine that stands still for a second or two makes many as late as that.
        assert!(waits || ages[150] < first + ms(2000), "{ages:?}");
    }
}

#[test]
fn faces_stay_covered_while_frames_are_not_analysed() {
    for sink in ["sync=false", "sync=true qos=true"] {
        let frames = play(&format!(
            "videotestsrc is-live=true num-buffers=100 ! {SLOW} late-frames=hold \
             ! facetrackblur ! fakesink name=sink {sink}"
        ));
        assert_eq!(frames.len(), 100, "every frame passes");
        assert!(analyzed(&frames).contains(&false), "{sink}: none was late");
        let clear = frames.iter().position(|frame| frame.covered != 1);
        assert_eq!(clear, None, "{sink}");
    }
}

#[test]
fn every_frame_is_analysed_where_nobody_waits() {
    for (source, properties, sink) in [
        ("", "", "sync=false"),
        ("", "", "sync=true"),
        ("", "late-frames=analyze", "sync=true qos=true"),
        ("is-live=true", "late-frames=analyze", "sync=true qos=true"),
    ] {
        let frames = play(&format!(
            "videotestsrc {source} num-buffers=60 ! {SLOW} {properties} ! fakesink name=sink {sink}"
        ));
        assert_eq!(analyzed(&frames), [true; 60], "{source} {sink}");
    }
}

#[test]
fn inferences_a_second_of_the_stream_are_limited() {
    let mut camera = Camera::new("script=face max-fps=10");
    let mut looks = |start: u64| -> Vec<u64> {
        (start..start + 8)
            .filter(|frame| origin(&camera.frame(PERIOD * frame, 0)) != Origin::Held)
            .collect()
    };
    assert_eq!(looks(0), [0, 3, 5]);
    camera.element().set_property("max-fps", 0.0);
    assert_eq!(origin(&camera.frame(PERIOD * 8, 0)), Origin::Tracked);
}

#[test]
fn a_reset_forgets_the_frames_before() {
    let mut camera = Camera::new("script=face post-messages=on-change");
    camera.element().emit_by_name::<()>("reset", &[]);
    assert_eq!(camera.frame(0, 0).faces[0].id, 1);
    assert_eq!(camera.frame(40, 40).faces[0].id, 1);
    camera.messages(gst::MessageType::Element);
    camera.element().emit_by_name::<()>("reset", &[]);
    let after = camera.frame(80, 80);
    assert_eq!(after.faces[0].id, 2);
    assert_eq!(origin(&after), Origin::Detected);
    let events: Vec<String> = camera
        .messages(gst::MessageType::Element)
        .iter()
        .filter_map(|message| message.structure()?.get("event").ok())
        .collect();
    assert_eq!(events, ["face-left", "face-entered"]);
}

/// The message that reports a loaded engine.
fn ready(messages: &[gst::Message]) -> Option<String> {
    messages
        .iter()
        .filter_map(|message| message.structure())
        .find(|structure| structure.name() == "facetrack-ready")
        .and_then(|structure| structure.get("engine").ok())
}

/// The engine of the tests without ONNX Runtime, whose model is OpenCV's file.
const CASCADE: &str = "opencv-haar";

#[test]
fn another_engine_takes_over_while_frames_flow() {
    let mut camera = Camera::new("script=face");
    let config = facetrack::engine::EngineConfig::default();
    let kind = CASCADE.parse().expect("an engine");
    if common::engine::engine(kind, &config).is_none() {
        return;
    }
    camera.frame(0, 0);
    camera.messages(gst::MessageType::Element);
    let element = camera.element();
    element.set_property("engine", CASCADE);
    let first = camera.frames_until(|report| report.source.engine == CASCADE);
    assert!(first.faces.is_empty(), "no face is in these frames");
    let messages = camera.messages(gst::MessageType::Element);
    assert_eq!(ready(&messages).as_deref(), Some(CASCADE));
    let capabilities: gst::Structure = element.property("capabilities");
    assert_eq!(capabilities.get("engine"), Ok(CASCADE));

    element.set_property("engine", "scripted");
    let back = camera.frames_until(|report| report.source.engine == "scripted");
    assert_eq!(back.faces[0].id, 2, "ids go on");
    assert_eq!(origin(&back), Origin::Detected);
    element.set_state(gst::State::Null).expect("it stops");
}

#[test]
fn an_engine_that_can_not_be_loaded_leaves_the_one_at_work() {
    for (engine, model, remedy) in [
        ("dlib", None, "mediapipe"),
        (CASCADE, Some("/nowhere/cascade.xml"), "facetrack fetch"),
    ] {
        let mut camera = Camera::new("script=face");
        camera.frame(0, 0);
        camera.bus.set_flushing(true);
        camera.bus.set_flushing(false);
        let element = camera.element();
        element.set_property("model", model);
        element.set_property("engine", engine);
        let mut warning = None::<glib::Error>;
        let bus = camera.bus.clone();
        let last = camera.frames_until(|_| {
            let warned = bus.pop_filtered(&[gst::MessageType::Warning, gst::MessageType::Error]);
            warning = warned.map(|message| match message.view() {
                gst::MessageView::Warning(warning) => warning.error(),
                _ => panic!("{message:?}"),
            });
            warning.is_some()
        });
        assert_eq!(last.source.engine, "scripted");
        assert_eq!(last.faces[0].id, 1, "nothing is forgotten");
        let text = warning.expect("a warning").message().to_owned();
        assert!(text.contains("the engine was not changed"), "{text}");
        assert!(text.contains(model.unwrap_or(engine)), "{text}");
        assert!(text.contains(remedy), "{text}");
        assert_eq!(element.property::<String>("engine"), "scripted");
        camera.next_frame();
        let told = camera.messages(gst::MessageType::Warning);
        assert!(told.is_empty(), "told once");
    }
}

#[test]
fn an_engine_that_is_set_back_stays_at_work() {
    let mut camera = Camera::new("script=face");
    camera.frame(0, 0);
    let element = camera.element();
    element.set_property("engine", CASCADE);
    camera.frame(40, 40);
    element.set_property("engine", "scripted");
    assert_eq!(camera.frame(80, 80).faces[0].id, 1, "it is the one at work");
    element.set_state(gst::State::Null).expect("it stops");
}
