// SPDX-License-Identifier: MPL-2.0
//! The element `facetrack` with the scripted engine: states, buffers, events, errors.

use crate::common;

use crate::common::bus::{self, Watch};
use facetrack::engine::EngineKind;
use facetrack::observation::Origin;
use facetrack::report::{FrameReport, FrameStatus};
use gst::glib;
use gst::prelude::*;
use gst_check::Harness;
use gstfacetrack::meta::FaceTrackMeta;

const CAPS: &str = "video/x-raw,format=RGB,width=64,height=48,framerate=25/1";
const FRAME_SIZE: usize = 64 * 48 * 3;

fn element(properties: &str) -> gst::Element {
    common::init();
    gst::parse::launch(&format!("facetrack engine=scripted {properties}"))
        .expect("a good description")
}

/// An element that plays, with its bus.
struct Stream {
    harness: Harness,
    bus: Watch,
    frames: u64,
}

impl Stream {
    fn new(properties: &str) -> Self {
        Self::with_element(&element(properties))
    }

    fn with_element(element: &gst::Element) -> Self {
        let bus = Watch::of(element);
        let mut harness = Harness::with_element(element, Some("sink"), Some("src"));
        harness.set_src_caps_str(CAPS);
        Self {
            harness,
            bus,
            frames: 0,
        }
    }

    /// The next frame of a good stream.
    fn buffer(&mut self) -> gst::Buffer {
        let mut buffer = gst::Buffer::from_slice(vec![0u8; FRAME_SIZE]);
        let fields = buffer.get_mut().expect("the only reference");
        fields.set_pts(gst::ClockTime::from_mseconds(40 * self.frames));
        fields.set_duration(gst::ClockTime::from_mseconds(40));
        self.frames += 1;
        buffer
    }

    fn push(&mut self, buffer: gst::Buffer) -> FrameReport {
        let buffer = self.harness.push_and_pull(buffer).expect("it flows");
        FaceTrackMeta::from_buffer(&buffer).expect("a report")
    }

    fn next(&mut self) -> FrameReport {
        let buffer = self.buffer();
        self.push(buffer)
    }

    fn next_with(&mut self, flags: gst::BufferFlags) -> FrameReport {
        let mut buffer = self.buffer();
        buffer
            .get_mut()
            .expect("the only reference")
            .set_flags(flags);
        self.push(buffer)
    }

    fn next_at(&mut self, pts: Option<gst::ClockTime>) -> FrameReport {
        let mut buffer = self.buffer();
        buffer.get_mut().expect("the only reference").set_pts(pts);
        self.push(buffer)
    }

    fn caps(&mut self, caps: &str) {
        let caps: gst::Caps = caps.parse().expect("caps");
        assert!(self.harness.push_event(gst::event::Caps::new(&caps)));
    }

    fn segment(&mut self, start: gst::ClockTime) {
        let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
        segment.set_start(start);
        assert!(self.harness.push_event(gst::event::Segment::new(&segment)));
    }

    /// Structures of the element messages posted so far.
    fn structures(&self) -> Vec<gst::Structure> {
        std::iter::from_fn(|| self.bus.pop_filtered(&[gst::MessageType::Element]))
            .filter_map(|message| message.structure().map(|structure| structure.to_owned()))
            .filter(|structure| structure.name() == "facetrack")
            .collect()
    }

    /// `event` and `id` of each.
    fn events(&self) -> Vec<(String, u32)> {
        self.structures()
            .iter()
            .map(|s| (s.get("event").unwrap(), s.get("id").unwrap_or_default()))
            .collect()
    }

    fn error(&self) -> Option<String> {
        bus::error(&self.bus)
    }
}

fn ids(report: &FrameReport) -> Vec<u32> {
    report.faces.iter().map(|face| face.id).collect()
}

/// A sink that shows parts of frames would have `videocrop` leave them whole: what is analysed is
/// what is shown.
#[test]
fn pictures_are_cut_before_they_are_analysed() {
    common::init();
    if gst::ElementFactory::find("fakevideosink").is_none() {
        eprintln!("SKIPPED: there is no fakevideosink");
        return;
    }
    let pipeline = gst::parse::launch(
        "videotestsrc num-buffers=2 ! video/x-raw,width=640,height=480 ! videocrop left=100 \
         ! facetrack name=track engine=scripted ! fakevideosink name=sink sync=false",
    )
    .expect("a pipeline");
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    let pad = bin.by_name("track").and_then(|it| it.static_pad("src"));
    let pad = pad.expect("a pad");
    let (sender, widths) = std::sync::mpsc::channel();
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let report = info.buffer().and_then(|it| FaceTrackMeta::from_buffer(it));
        let _ = sender.send(report.expect("a report").width);
        gst::PadProbeReturn::Ok
    });
    common::play_to_end(&pipeline);
    assert_eq!(widths.try_iter().collect::<Vec<_>>(), [540, 540]);
}

#[test]
fn every_frame_carries_a_report() {
    let mut stream = Stream::new("script=\"face from=2 to=2; landmarks\"");
    let empty = stream.next();
    assert_eq!((empty.status, empty.faces.len()), (FrameStatus::NoFace, 0));
    assert_eq!((empty.width, empty.height), (64, 48));
    assert_eq!(empty.source.engine, "scripted");
    assert_eq!(empty.source.device, "cpu");

    let buffer = stream.buffer();
    let buffer = stream.harness.push_and_pull(buffer).expect("it flows");
    let report = FaceTrackMeta::from_buffer(&buffer).expect("a report");
    assert_eq!(report.status, FrameStatus::Tracked);
    let face = &report.faces[0].face;
    assert_eq!(face.landmarks.as_ref().map(|l| l.points.len()), Some(478));
    assert!(face.blendshapes.is_some() && face.pose.is_some());
    let regions = buffer.iter_meta::<gst_video::VideoRegionOfInterestMeta>();
    let regions: Vec<_> = regions
        .map(|region| {
            let track = region.param("object_id").expect("a track");
            (region.roi_type(), track.get::<i32>("id"))
        })
        .collect();
    assert_eq!(regions, [("face", Ok(1))]);
}

#[test]
fn it_goes_through_the_states_again_and_again() {
    let element = element("");
    for _ in 0..2 {
        for state in [
            gst::State::Ready,
            gst::State::Paused,
            gst::State::Playing,
            gst::State::Ready,
            gst::State::Null,
        ] {
            assert!(element.set_state(state).is_ok(), "{state:?}");
        }
    }
}

#[test]
fn a_second_stream_starts_with_id_1() {
    let mut stream = Stream::new("");
    stream.next();
    stream.frames += DEFAULT_MAX_AGE + 1;
    assert_eq!(ids(&stream.next_with(gst::BufferFlags::DISCONT)), [2]);
    let element = stream.harness.element().expect("the element");
    element.set_state(gst::State::Ready).expect("READY");
    element.set_state(gst::State::Playing).expect("PLAYING");
    stream
        .harness
        .push_event(gst::event::StreamStart::new("again"));
    stream.harness.set_src_caps_str(CAPS);
    stream.segment(gst::ClockTime::ZERO);
    assert_eq!(ids(&stream.next()), [1]);
    element.set_state(gst::State::Null).expect("NULL");
}

#[test]
fn every_format_of_the_template_flows_unchanged() {
    common::init();
    let template = element("").pad_template("sink").expect("a sink");
    let formats: Vec<String> = template
        .caps()
        .structure(0)
        .and_then(|structure| structure.get::<gst::List>("format").ok())
        .expect("a list of formats")
        .iter()
        .map(|format| format.get().expect("a name"))
        .collect();
    assert!(formats.len() >= 17, "{formats:?}");
    for format in formats {
        for (width, height) in [(33, 17), (1, 1)] {
            let pipeline = gst::parse::launch(&format!(
                "videotestsrc num-buffers=2 ! video/x-raw,format={format},width={width},height={height} \
                 ! facetrack engine=scripted script=face ! fakesink name=sink signal-handoffs=true"
            ))
            .expect("a pipeline");
            let ids = reported_ids(&pipeline);
            assert_eq!(ids, [vec![1], vec![1]], "{format} {width}×{height}");
        }
    }
}

/// Runs a pipeline with a fakesink `sink` to its end; the ids in each of its buffers.
fn reported_ids(pipeline: &gst::Element) -> Vec<Vec<u32>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    let sink = bin.by_name("sink").expect("a sink");
    sink.connect("handoff", false, move |arguments| {
        let buffer: gst::Buffer = arguments[1].get().expect("a buffer");
        let report = FaceTrackMeta::from_buffer(&buffer).expect("a report");
        sender.send(ids(&report)).expect("a listener");
        None
    });
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let bus = pipeline.bus().expect("a bus");
    let end = bus.timed_pop_filtered(
        gst::ClockTime::from_seconds(30),
        &[gst::MessageType::Eos, gst::MessageType::Error],
    );
    pipeline.set_state(gst::State::Null).expect("it stops");
    let end = end.expect("an end");
    assert_eq!(end.type_(), gst::MessageType::Eos, "{end:?}");
    receiver.try_iter().collect()
}

#[test]
fn frames_of_any_layout_are_asked_for_where_downstream_takes_them() {
    let video_meta = gst_video::VideoMeta::meta_api();
    for taken in [true, false] {
        let mut stream = Stream::new("");
        if taken {
            stream.harness.add_propose_allocation_meta(video_meta, None);
        }
        let caps: gst::Caps = CAPS.parse().expect("caps");
        let mut query = gst::query::Allocation::new(Some(&caps), true);
        let pad = stream.harness.srcpad().expect("the pad before the element");
        assert!(pad.peer_query(&mut query));
        let asked = query.find_allocation_meta::<gst_video::VideoMeta>();
        assert_eq!(asked.is_some(), taken);
    }
}

#[test]
fn other_formats_are_refused() {
    common::init();
    let element = element("");
    let sink = element.static_pad("sink").expect("a sink");
    for caps in [
        "video/x-raw(memory:DMABuf),format=NV12,width=64,height=48",
        "video/x-raw,format=RGB,width=16385,height=1",
        "video/x-raw(memory:GLMemory),format=RGBA,width=64,height=48",
    ] {
        let caps: gst::Caps = caps.parse().expect("caps");
        assert!(!sink.query_accept_caps(&caps), "{caps}");
    }
}

#[test]
fn other_formats_in_a_stream_are_reported_with_the_remedy() {
    let mut stream = Stream::new("");
    stream.next();
    let caps: gst::Caps = "video/x-raw(memory:GLMemory),format=RGBA,width=64,height=48"
        .parse()
        .expect("caps");
    stream.harness.push_event(gst::event::Caps::new(&caps));
    let buffer = stream.buffer();
    let refused = Err(gst::FlowError::NotNegotiated);
    assert_eq!(stream.harness.push(buffer), refused);
    let error = stream.error().expect("an error");
    assert!(error.contains("GLMemory"), "{error}");
    assert!(error.contains("gldownload"), "{error}");
}

#[test]
fn pixels_are_shared_after_a_tee() {
    common::init();
    let pipeline = gst::parse::launch(
        "videotestsrc num-buffers=5 ! video/x-raw,format=NV12,width=64,height=48 ! tee name=t \
         t. ! queue ! facetrack engine=scripted ! fakesink name=analysed signal-handoffs=true sync=false \
         t. ! queue ! fakesink name=plain signal-handoffs=true sync=false",
    )
    .expect("a pipeline");
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    let [analysed, plain] = ["analysed", "plain"].map(|name| {
        let (sender, receiver) = std::sync::mpsc::channel::<gst::Buffer>();
        bin.by_name(name)
            .expect("a sink")
            .connect("handoff", false, move |arguments| {
                sender
                    .send(arguments[1].get().expect("a buffer"))
                    .expect("a listener");
                None
            });
        receiver
    });
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let bus = pipeline.bus().expect("a bus");
    bus.timed_pop_filtered(gst::ClockTime::from_seconds(30), &[gst::MessageType::Eos])
        .expect("an end");
    let (analysed, plain): (Vec<_>, Vec<_>) =
        (analysed.try_iter().collect(), plain.try_iter().collect());
    assert_eq!((analysed.len(), plain.len()), (5, 5));
    for (analysed, plain) in std::iter::zip(analysed, plain) {
        assert_eq!(
            analysed.peek_memory(0).as_ptr(),
            plain.peek_memory(0).as_ptr(),
            "the same memory"
        );
        assert!(FaceTrackMeta::from_buffer(&analysed).is_some());
        assert!(FaceTrackMeta::from_buffer(&plain).is_none());
    }
    pipeline.set_state(gst::State::Null).expect("it stops");
}

/// Default of `max-age`.
const DEFAULT_MAX_AGE: u64 = 7;

/// Decoders mark the frame after those that they drop, or cannot decode, as discontinuous.
#[test]
fn a_discontinuity_ages_faces_by_the_missing_frames() {
    for (age, lost, id) in [(7, 0, 1), (7, 7, 1), (7, 8, 2), (2, 2, 1), (2, 3, 2)] {
        let mut stream = Stream::new(&format!("script=face tracker=centroid max-age={age}"));
        stream.next_with(gst::BufferFlags::DISCONT);
        stream.frames += lost;
        let next = stream.next_with(gst::BufferFlags::DISCONT);
        assert_eq!(ids(&next), [id], "{lost} of {age}");
    }
    let mut stream = Stream::new("script=face");
    stream.next();
    stream.next();
    stream.frames = 0;
    let back = stream.next_with(gst::BufferFlags::DISCONT);
    assert_eq!(ids(&back), [2], "the time went back");
}

#[test]
fn what_breaks_the_stream_ends_the_ids() {
    let mut stream = Stream::new("script=face");
    assert_eq!(ids(&stream.next_with(gst::BufferFlags::DISCONT)), [1]);
    assert_eq!(ids(&stream.next()), [1]);

    stream.frames += DEFAULT_MAX_AGE + 1;
    let cut = stream.next_with(gst::BufferFlags::DISCONT);
    assert_eq!(ids(&cut), [2]);
    assert_eq!(cut.faces[0].face.origin, Origin::Detected);

    assert!(stream.harness.push_event(gst::event::FlushStart::new()));
    assert!(stream.harness.push_event(gst::event::FlushStop::new(true)));
    stream.segment(gst::ClockTime::ZERO);
    assert_eq!(ids(&stream.next()), [3], "after a flush");

    stream.segment(gst::ClockTime::ZERO);
    assert_eq!(ids(&stream.next()), [3], "the same segment again");
    let other = gst::event::StreamStart::new("other");
    assert!(stream.harness.push_event(other));
    assert_eq!(ids(&stream.next()), [4], "another stream");

    stream.caps(CAPS);
    assert_eq!(ids(&stream.next()), [4], "the same caps again");
    stream.caps("video/x-raw,format=BGR,width=64,height=48,framerate=25/1");
    assert_eq!(ids(&stream.next()), [5], "other caps");
}

/// As from matroskademux, if the sound begins before the picture.
#[test]
fn a_segment_continues_the_ids_if_the_frames_follow() {
    let mut stream = Stream::new("script=face tracker=centroid");
    assert_eq!(ids(&stream.next()), [1]);
    stream.segment(gst::ClockTime::from_mseconds(5));
    assert_eq!(ids(&stream.next()), [1]);
    stream.frames += DEFAULT_MAX_AGE + 1;
    stream.segment(gst::ClockTime::from_mseconds(10));
    assert_eq!(ids(&stream.next()), [2], "after a gap");
    stream.frames = 1;
    stream.segment(gst::ClockTime::from_mseconds(20));
    assert_eq!(ids(&stream.next()), [3], "the time went back");
}

#[test]
fn a_seek_ends_the_ids() {
    common::init();
    let pipeline = gst::parse::launch(
        "videotestsrc num-buffers=100 ! video/x-raw,width=64,height=48,framerate=25/1 \
         ! facetrack engine=scripted script=face ! fakesink name=sink sync=false",
    )
    .expect("a pipeline");
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    let last = || {
        let sink = bin.by_name("sink").expect("a sink");
        let sample: gst::Sample = sink.property("last-sample");
        ids(&FaceTrackMeta::from_buffer(sample.buffer().expect("a buffer")).expect("a report"))
    };
    pipeline.set_state(gst::State::Paused).expect("it pauses");
    pipeline
        .state(gst::ClockTime::from_seconds(30))
        .0
        .expect("preroll");
    assert_eq!(last(), [1]);
    pipeline
        .seek_simple(gst::SeekFlags::FLUSH, gst::ClockTime::from_seconds(1))
        .expect("a seekable pipeline");
    pipeline
        .state(gst::ClockTime::from_seconds(30))
        .0
        .expect("preroll");
    assert_eq!(last(), [2]);
    pipeline.set_state(gst::State::Null).expect("it stops");
}

#[test]
fn pictures_of_gaps_are_analysed_and_empty_buffers_pass() {
    let mut stream = Stream::new("script=face");
    stream.next();
    let mut gap = stream.buffer();
    gap.make_mut().set_flags(gst::BufferFlags::GAP);
    let gap = stream.harness.push_and_pull(gap).expect("it flows");
    assert!(gap.flags().contains(gst::BufferFlags::GAP), "it stays one");
    let gap = FaceTrackMeta::from_buffer(&gap).expect("a report");
    assert_eq!((gap.status, ids(&gap)), (FrameStatus::Tracked, vec![1]));

    let mut empty = gst::Buffer::new();
    empty
        .get_mut()
        .expect("the only reference")
        .set_pts(gst::ClockTime::from_seconds(1));
    assert_eq!(stream.push(empty).status, FrameStatus::Skipped);

    assert!(
        stream
            .harness
            .push_event(gst::event::Gap::builder(gst::ClockTime::from_seconds(2)).build())
    );
    assert_eq!(ids(&stream.next()), [1], "the face goes on");
}

#[test]
fn bad_timestamps_do_not_break_it() {
    let mut stream = Stream::new("script=\"face dx=0.01; landmarks\" smoothing=one-euro");
    let seconds = gst::ClockTime::from_seconds;
    for pts in [
        None,
        Some(seconds(5)),
        None,
        Some(seconds(1)),
        Some(seconds(1)),
        None,
    ] {
        let report = stream.next_at(pts);
        assert_eq!(ids(&report), [1], "{pts:?}");
        let points = &report.faces[0]
            .face
            .landmarks
            .as_ref()
            .expect("landmarks")
            .points;
        assert!(points.iter().all(|p| p.x.is_finite() && p.y.is_finite()));
    }
}

#[test]
fn a_buffer_that_is_too_small_is_an_error() {
    let mut stream = Stream::new("");
    let result = stream.harness.push(gst::Buffer::from_slice([0u8; 10]));
    assert!(result.is_ok(), "the frame itself is passed on");
    let error = stream.error().expect("an error");
    assert!(
        error.contains("10 bytes is too small for 64×48 RGB"),
        "{error}"
    );
}

#[test]
fn metadata_of_another_frame_is_an_error() {
    use gst_video::{VideoFormat, VideoFrameFlags, VideoMeta};
    for (format, width, words) in [
        (
            VideoFormat::Bgr,
            64,
            "describes a BGR frame of 64×48 pixels",
        ),
        (
            VideoFormat::Rgb,
            32,
            "describes a RGB frame of 32×48 pixels",
        ),
    ] {
        let mut stream = Stream::new("");
        let mut buffer = stream.buffer();
        let flags = VideoFrameFlags::empty();
        VideoMeta::add(buffer.make_mut(), flags, format, width, 48).expect("a meta");
        assert_eq!(stream.push(buffer).status, FrameStatus::Error);
        let error = stream.error().expect("an error");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn faces_enter_and_leave() {
    let mut stream = Stream::new(
        "script=\"face x=0.2 from=2 to=3; face x=0.8 from=3\" tracker=centroid max-distance=5 max-age=1 post-messages=on-change",
    );
    for _ in 0..5 {
        stream.next();
    }
    let structures = stream.structures();
    let entered = structures.first().expect("a message");
    assert_eq!(entered.get("event"), Ok("face-entered"));
    assert_eq!(entered.get("pts"), Ok(gst::ClockTime::from_mseconds(40)));
    assert_eq!(
        entered.get("running-time"),
        Ok(gst::ClockTime::from_mseconds(40))
    );
    let events: Vec<(&str, u32)> = structures
        .iter()
        .map(|s| (s.get("event").unwrap(), s.get("id").unwrap()))
        .collect();
    assert_eq!(
        events,
        [("face-entered", 1), ("face-entered", 2), ("face-left", 1)]
    );
    stream.harness.push_event(gst::event::Eos::new());
    assert_eq!(stream.events(), [("face-left".to_owned(), 2)]);
}

#[test]
fn only_the_selected_face_enters_and_leaves() {
    let mut stream = Stream::new(
        "script=\"face x=0.2 size=0.2; face x=0.8 size=0.6 from=3; face size=0.1 to=2\" select=largest tracker=iou max-age=1 post-messages=on-change",
    );
    let first: Vec<_> = (0..52).map(|_| ids(&stream.next())).collect();
    assert_eq!(first, vec![vec![1]; 52]);
    assert_eq!(stream.events(), [("face-entered".to_owned(), 1)]);
    assert_eq!(ids(&stream.next()), [3], "it is larger for two seconds");
    let [left, entered] = ["face-left", "face-entered"].map(str::to_owned);
    assert_eq!(stream.events(), [(left.clone(), 1), (entered.clone(), 3)]);

    let element = stream.harness.element().expect("the element");
    element.set_property("select-id", 1u32);
    element.set_property_from_str("select", "id");
    assert_eq!(ids(&stream.next()), [1], "it may change while playing");
    assert_eq!(stream.events(), [(left.clone(), 3), (entered, 1)]);
    stream.harness.push_event(gst::event::Eos::new());
    assert_eq!(stream.events(), [(left, 1)]);
}

#[test]
fn every_frame_is_reported_on_request() {
    let mut stream = Stream::new("script=\"face from=2\" post-messages=every-frame");
    stream.next();
    let first = stream.structures();
    assert_eq!(first.len(), 1);
    assert_eq!(first[0].get("event"), Ok("frame"));
    assert_eq!(first[0].get("status"), Ok("no-face"));
    assert_eq!(first[0].get("faces"), Ok(0u32));
    stream.next();
    let second = stream.structures();
    assert_eq!(second.len(), 2, "{second:?}");
    let ids: gst::Array = second[1].get("ids").expect("ids");
    assert_eq!(ids.first().and_then(|id| id.get::<u32>().ok()), Some(1));
}

#[test]
fn nothing_is_reported_without_a_request() {
    let mut stream = Stream::new("");
    stream.next();
    assert!(stream.structures().is_empty());
    let element = stream.harness.element().expect("the element");
    element.set_property_from_str("post-messages", "every-frame");
    stream.next();
    assert_eq!(stream.structures().len(), 1, "it may change while playing");
}

#[test]
fn smoothing_may_change_while_playing() {
    let mut stream = Stream::new("script=\"face x=0.2 dx=0.02; landmarks\"");
    let element = stream.harness.element().expect("the element");
    let center = |report: FrameReport| report.faces[0].face.bbox.center().x;
    let before = center(stream.next());
    element.set_property_from_str("smoothing", "one-euro");
    element.set_property("smoothing-beta", 0.0);
    let start = center(stream.next());
    let moved = center(stream.next()) - start;
    assert!(
        (start - before - 1.28).abs() < 1e-3,
        "the first passes: {start}"
    );
    assert!(moved < 0.5, "then it lags: {moved}");
}

#[test]
fn a_failed_frame_is_passed_on_and_ends_the_stream() {
    for (script, words) in [
        ("face; fail at=2", "the script says fail at=2"),
        ("face; panic at=2", "panicked: the script says panic"),
    ] {
        let mut stream = Stream::new(&format!("script=\"{script}\""));
        stream.next();
        assert_eq!(stream.next().status, FrameStatus::Error, "{script}");
        let error = stream.error().expect("an error");
        assert!(error.contains(words), "{error}");

        let buffer = stream.buffer();
        assert_eq!(stream.harness.push(buffer), Err(gst::FlowError::Error));
        assert!(stream.error().is_none(), "told once");

        let element = stream.harness.element().expect("the element");
        element.set_state(gst::State::Null).expect("NULL");
        element.set_state(gst::State::Playing).expect("it recovers");
        element.set_state(gst::State::Null).expect("NULL");
    }
}

#[test]
fn what_can_not_be_is_refused_before_ready() {
    let unknown = element("");
    unknown.set_property("engine", "dlib");
    let error = bus::refusal(&unknown).to_string();
    assert!(error.contains("\"dlib\""), "{error}");
    for kind in EngineKind::ALL {
        assert!(error.contains(kind.name()), "{error}");
    }

    let error = bus::refusal(&element("script=nose")).to_string();
    assert!(error.contains("unknown clause \"nose\""), "{error}");
}

#[test]
fn the_engine_may_change_in_ready() {
    let element = element("script=face");
    element.set_state(gst::State::Ready).expect("READY");
    element.set_property("script", "face; landmarks");
    let mut stream = Stream::with_element(&element);
    assert!(stream.next().faces[0].face.landmarks.is_some());
}

#[test]
fn read_only_properties_tell_what_is_going_on() {
    let element = element("script=\"face; landmarks\"");
    assert_eq!(element.property::<Option<String>>("active-device"), None);
    assert_eq!(element.property::<Option<gst::Structure>>("stats"), None);
    let capabilities: gst::Structure = element.property("capabilities");
    assert_eq!(capabilities.get("engine"), Ok("scripted"));
    assert_eq!(capabilities.get("landmark-scheme"), Ok("mediapipe-478"));
    assert_eq!(capabilities.get("landmarks"), Ok(478u32));
    assert_eq!(capabilities.get("pose"), Ok(true));
    assert_eq!(capabilities.get("attributes"), Ok(false));
    assert_eq!(capabilities.get("embedding"), Ok(0u32));
    let channels: gst::Array = capabilities.get("blendshapes").expect("channels");
    assert_eq!(channels.len(), 52);
    assert_eq!(channels[0].get(), Ok("_neutral"));
    let near_zero: gst::Array = capabilities.get("near-zero-blendshapes").expect("a list");
    assert!(near_zero.is_empty(), "the script moves them all");

    let mut stream = Stream::with_element(&element);
    stream.next();
    stream.next();
    assert_eq!(element.property::<String>("active-device"), "cpu");
    assert_eq!(
        element.property::<String>("active-execution-provider"),
        "CPUExecutionProvider"
    );
    assert_eq!(
        element.property::<String>("device-reason"),
        "CPU-only mode (GPU disabled or not supported for this engine)"
    );
    let stats: gst::Structure = element.property("stats");
    for stage in [
        "detection",
        "landmarks",
        "track",
        "smooth",
        "complete",
        "total",
    ] {
        let figures: gst::Structure = stats.get(stage).expect(stage);
        assert_eq!(figures.get("count"), Ok(2u64), "{stage}");
        for figure in ["mean", "p50", "p95"] {
            assert!(figures.get::<f64>(figure).expect(figure) >= 0.0);
        }
    }
}

#[test]
fn loading_is_reported() {
    let element = element("device=cuda");
    let bus = Watch::of(&element);
    element.set_state(gst::State::Ready).expect("READY");
    let ready = std::iter::from_fn(|| bus.pop())
        .filter_map(|message| message.structure().map(|structure| structure.to_owned()))
        .find(|structure| structure.name() == "facetrack-ready")
        .expect("a message");
    assert_eq!(ready.get("engine"), Ok("scripted"));
    assert_eq!(ready.get("device"), Ok("cpu"));
    let reason: String = ready.get("reason").expect("a reason");
    assert!(reason.contains("GPU mode is reserved"), "{reason}");
    assert!(ready.get::<f64>("load-time").expect("a time") >= 0.0);
    assert!(ready.get::<gst::Structure>("models").is_ok());
    element.set_state(gst::State::Null).expect("NULL");
}

/// The warnings posted so far; there is no error.
fn warnings(bus: &gst::Bus) -> Vec<glib::Error> {
    std::iter::from_fn(|| bus.pop())
        .filter_map(|message| match message.view() {
            gst::MessageView::Warning(warning) => Some(warning.error()),
            gst::MessageView::Error(error) => panic!("{error:?}"),
            _ => None,
        })
        .collect()
}

#[test]
fn what_happens_to_the_gpu_is_reported_and_no_frame_is_lost() {
    let mut stream = Stream::new("script=\"face; reduce at=2; fall-back at=4\"");
    let element = stream.harness.element().expect("the element");
    let reason = || element.property::<String>("device-reason");
    let mut told = Vec::new();
    let before = reason();
    for frame in 1..=5 {
        let report = stream.next();
        assert_eq!(ids(&report), [1], "frame {frame}");
        assert_eq!(report.source.device_reason, reason(), "frame {frame}");
        assert_eq!(reason() == before, frame < 4, "frame {frame}");
        let warnings = warnings(&stream.bus);
        told.extend(warnings.into_iter().map(|warning| (frame, warning)));
    }
    let [(2, reduced), (4, fell_back)] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert!(reduced.matches(gst::ResourceError::NoSpaceLeft));
    assert_eq!(
        reduced.message(),
        "too little GPU memory, det-size reduced to 320 px: the script says reduce at=2"
    );
    assert!(fell_back.matches(gst::ResourceError::Failed));
    assert_eq!(
        fell_back.message(),
        "the GPU failed, continuing on the CPU: the script says fall-back at=4"
    );
    assert_eq!(fell_back.message(), reason());
    assert_eq!(element.property::<String>("active-device"), "cpu");
}

#[test]
fn what_happens_to_the_gpu_before_a_failure_is_reported_first() {
    let mut stream = Stream::new("script=\"face; fall-back at=2; fail at=2\"");
    stream.next();
    assert_eq!(stream.next().status, FrameStatus::Error);
    let kinds = [gst::MessageType::Warning, gst::MessageType::Error];
    let first = stream.bus.pop_filtered(&kinds).expect("a message");
    assert_eq!(first.type_(), gst::MessageType::Warning);
    assert!(stream.error().is_some());
}

#[test]
fn what_happens_to_the_gpu_while_loading_is_reported_before_ready() {
    let element = element("script=\"reduce at=0; fall-back at=0\"");
    let bus = Watch::of(&element);
    element.set_state(gst::State::Paused).expect("PAUSED");
    let told: Vec<_> = std::iter::from_fn(|| bus.pop())
        .filter(|message| message.type_() != gst::MessageType::StateChanged)
        .collect();
    let [reduced, left, ready] = told.as_slice() else {
        panic!("{told:?}");
    };
    for warning in [reduced, left] {
        assert_eq!(warning.type_(), gst::MessageType::Warning);
    }
    let ready = ready.structure().expect("a message of the element");
    let fell_back = "the GPU failed, continuing on the CPU: the script says fall-back at=0";
    assert_eq!(ready.get("reason"), Ok(fell_back));
    assert_eq!(element.property::<String>("device-reason"), fell_back);
    element.set_state(gst::State::Null).expect("NULL");
}

/// The clauses that make `scripted` fail are for tests. Cargo turns them on for tests only.
#[test]
fn released_builds_have_no_faults() {
    let features = |edges: &str| {
        let output = std::process::Command::new(env!("CARGO"))
            .args(["tree", "--offline", "--invert=facetrack", "--edges", edges])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).contains("test-faults")
    };
    assert!(features("features"));
    assert!(!features("features,no-dev"));
}
