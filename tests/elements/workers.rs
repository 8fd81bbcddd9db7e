// SPDX-License-Identifier: MPL-2.0
//! `facetrack` with several workers: the same results and the same order as with one.

use std::sync::{Arc, Mutex};

use crate::common;
use crate::common::player::{self, Player};
use facetrack::engine::EngineKind;
use facetrack::report::TrackedFace;
use facetrack_assets::lock::lock;
use gst::prelude::*;
use gst_check::Harness;

const CAPS: &str = "video/x-raw,format=GRAY8,width=320,height=240,framerate=25/1";

/// An engine whose frames are independent with these properties, and the number of frames to
/// compare.
const ENGINES: [(EngineKind, &str, usize); 8] = [
    (EngineKind::OpenCvHaar, "", 8),
    (EngineKind::OpenCvYunet, "", 20),
    (EngineKind::OpenCvYunet, "select=center", 20),
    (EngineKind::OpenCvYunetPyfeat, "blendshape-interval=3", 20),
    (EngineKind::Eos, "", 20),
    (EngineKind::InsightFace, "", 10),
    (EngineKind::MediaPipe, "running-mode=image", 20),
    (EngineKind::OpenSeeFace, "running-mode=image", 20),
];

/// The faces of the first frames of a clip.
fn faces(
    clip: &str,
    (kind, properties, count): (EngineKind, &str, usize),
    workers: u32,
) -> Vec<Vec<TrackedFace>> {
    let Some(folder) = player::folder(kind) else {
        return Vec::new();
    };
    let name = kind.name();
    let properties = format!("engine={name} {properties} workers={workers}");
    let reports = Player::new(&folder.join("media").join(clip), &properties).reports(count);
    reports.into_iter().map(|report| report.faces).collect()
}

#[test]
fn the_faces_are_those_of_one_worker() {
    for engine in ENGINES {
        let [one, several] = [1, 3].map(|workers| faces("synth_two_faces.mp4", engine, workers));
        assert_eq!(one, several, "{engine:?}");
    }
}

/// An element, and what leaves it: times of buffers and types of events.
struct Stream {
    harness: Harness,
    left: Arc<Mutex<Vec<String>>>,
    frames: u64,
}

impl Stream {
    /// `None` if the cascade is missing.
    fn new(workers: u32) -> Option<Self> {
        player::folder(EngineKind::OpenCvHaar)?;
        let line = format!("facetrack engine=opencv-haar workers={workers}");
        let element = gst::parse::launch(&line).expect("a good description");
        let left = Arc::new(Mutex::new(Vec::new()));
        let log = left.clone();
        let pad = element.static_pad("src").expect("a pad");
        let kinds = gst::PadProbeType::BUFFER
            | gst::PadProbeType::EVENT_DOWNSTREAM
            | gst::PadProbeType::EVENT_FLUSH;
        pad.add_probe(kinds, move |_, info| {
            let item = match (info.buffer(), info.event()) {
                (Some(buffer), _) => format!("{:?}", buffer.pts().map(gst::ClockTime::mseconds)),
                (_, Some(event)) => event.type_().name().to_string(),
                _ => String::new(),
            };
            lock(&log).push(item);
            gst::PadProbeReturn::Ok
        });
        let mut harness = Harness::with_element(&element, Some("sink"), Some("src"));
        harness.set_src_caps_str(CAPS);
        Some(Self {
            harness,
            left,
            frames: 0,
        })
    }

    fn push(&mut self) {
        let mut buffer = gst::Buffer::from_slice(vec![90u8; 320 * 240]);
        let fields = buffer.get_mut().expect("the only reference");
        fields.set_pts(gst::ClockTime::from_mseconds(40 * self.frames));
        self.frames += 1;
        self.harness.push(buffer).expect("it flows");
    }

    fn event(&mut self, event: gst::Event) {
        assert!(self.harness.push_event(event));
    }

    fn take_left(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.left))
    }
}

/// The buffers and events that leave a stream with an event of every kind between its frames.
fn order(workers: u32) -> Option<Vec<String>> {
    let mut stream = Stream::new(workers)?;
    stream.push();
    stream.push();
    stream.event(gst::event::Tag::new(gst::TagList::new()));
    stream.push();
    let gap = gst::event::Gap::builder(gst::ClockTime::from_mseconds(120));
    stream.event(gap.build());
    (0..7).for_each(|_| stream.push());
    stream
        .harness
        .set_src_caps_str(&CAPS.replace("25/1", "30/1"));
    stream.push();
    let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
    segment.set_start(gst::ClockTime::from_mseconds(40));
    stream.event(gst::event::Segment::new(&segment));
    (0..5).for_each(|_| stream.push());
    let structure = gst::Structure::new_empty("x");
    stream.event(gst::event::CustomDownstream::new(structure));
    (0..3).for_each(|_| stream.push());
    stream.event(gst::event::Eos::new());
    Some(stream.take_left())
}

#[test]
fn frames_and_events_leave_in_the_order_in_which_they_came() {
    let Some(one) = order(1) else { return };
    for workers in [2, 3, 16] {
        assert_eq!(order(workers).as_ref(), Some(&one), "{workers} workers");
    }
}

#[test]
fn a_short_stream_leaves_before_its_end() {
    let Some(mut stream) = Stream::new(16) else {
        return;
    };
    stream.take_left();
    stream.push();
    stream.push();
    stream.event(gst::event::Eos::new());
    assert!(
        stream
            .take_left()
            .ends_with(&["Some(0)", "Some(40)", "eos"].map(str::to_owned))
    );
}

#[test]
fn a_flush_discards_the_frames_under_way() {
    let Some(mut stream) = Stream::new(16) else {
        return;
    };
    (0..16).for_each(|_| stream.push());
    stream.event(gst::event::FlushStart::new());
    stream.event(gst::event::FlushStop::new(true));
    stream.take_left();
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    stream.event(gst::event::Segment::new(&segment));
    stream.push();
    stream.event(gst::event::Eos::new());
    assert_eq!(stream.take_left(), ["segment", "Some(640)", "eos"]);
}

#[test]
fn a_blocked_stream_does_not_stop_another_one_with_the_same_networks() {
    if player::folder(EngineKind::OpenCvYunet).is_none() {
        return;
    }
    let line = "videotestsrc num-buffers=30 ! video/x-raw,width=320,height=240 \
                ! facetrack engine=opencv-yunet workers=2 name=tracker ! fakesink sync=false";
    let [blocked, other] = [(); 2].map(|()| gst::parse::launch(line).expect("a pipeline"));
    let bin = blocked.downcast_ref::<gst::Bin>().expect("a pipeline");
    let tracker = bin.by_name("tracker").expect("the filter");
    let pad = tracker.static_pad("src").expect("a pad");
    let kinds = gst::PadProbeType::BLOCK | gst::PadProbeType::BUFFER;
    let probe = pad
        .add_probe(kinds, |_, _| gst::PadProbeReturn::Ok)
        .expect("a probe");
    blocked.set_state(gst::State::Playing).expect("it plays");
    common::play_to_end(&other);
    pad.remove_probe(probe);
    blocked.set_state(gst::State::Null).expect("it stops");
}

#[test]
fn a_stream_can_be_stopped_at_any_frame() {
    if player::folder(EngineKind::OpenCvYunet).is_none() {
        return;
    }
    let line = "videotestsrc ! video/x-raw,width=320,height=240 \
                ! facetrack engine=opencv-yunet workers=3 ! appsink name=out sync=false max-buffers=1";
    let pipeline = gst::parse::launch(line).expect("a pipeline");
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    let out = bin.by_name("out").and_downcast::<gst_app::AppSink>();
    let out = out.expect("an appsink");
    for frames in 0..10 {
        pipeline.set_state(gst::State::Playing).expect("it plays");
        for _ in 0..frames {
            out.pull_sample().expect("a frame");
        }
        pipeline.set_state(gst::State::Null).expect("it stops");
    }
}

#[test]
fn an_engine_that_follows_faces_says_that_it_has_one_worker() {
    if player::folder(EngineKind::MediaPipe).is_none() {
        return;
    }
    for (mode, warns) in [("video", true), ("image", false)] {
        let line = format!(
            "videotestsrc num-buffers=2 ! facetrack workers=2 running-mode={mode} ! fakesink"
        );
        let warnings = common::warned::warnings_of(&line);
        let warned = warnings
            .iter()
            .any(|text| text.contains("`workers` has no effect"));
        assert_eq!(warned, warns, "{mode}: {warnings:?}");
    }
}
