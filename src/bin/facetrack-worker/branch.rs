// SPDX-License-Identifier: MPL-2.0
//! The elements between the decoder and `facetrack`: only those that the stream needs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use facetrack::record::container::Movie;
use facetrack_assets::lock::lock;
use facetrack_jobs::Segment;
use gst::glib;
use gst::prelude::*;
use gst_video::VideoOrientationMethod;
use gstfacetrack::shown::Shown;
use gstfacetrack::stream::{self, VideoTimes};

use crate::faults;

/// Minimum number of threads of a decoder, see [`restrict`].
const MIN_THREADS: u32 = 2;

/// Links a decoded stream of video to `sink`, the pad of `facetrack`. `report` gets the reason if
/// that fails.
pub(crate) fn connector(
    pipeline: &gst::Pipeline,
    sink: gst::Pad,
    report: impl Fn(&gst::Pipeline, String) + Send + Sync + 'static,
) -> impl Fn(&gst::Pad) + Send + Sync + 'static {
    let pipeline = pipeline.downgrade();
    move |pad| {
        if let Some(pipeline) = pipeline.upgrade()
            && let Err(reason) = connect(&pipeline, pad, &sink)
        {
            report(&pipeline, reason);
        }
    }
}

/// Calls `connect` when the first frame comes, since the tags are known then, or when the stream
/// ends without a frame.
pub(crate) fn with_first_frame(
    pad: &gst::Pad,
    connect: impl Fn(&gst::Pad) + Send + Sync + 'static,
) {
    pad.add_probe(FRAMES | gst::PadProbeType::BLOCK, move |pad, info| {
        let event = info.event().map(|event| event.type_());
        if event.is_some_and(|event| event != gst::EventType::Eos) {
            return gst::PadProbeReturn::Pass;
        }
        connect(pad);
        gst::PadProbeReturn::Remove
    });
}

fn connect(pipeline: &gst::Pipeline, pad: &gst::Pad, sink: &gst::Pad) -> Result<(), String> {
    let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
    let mut last = pad.clone();
    for description in converters(pad, &caps, sink) {
        let bin = gst::parse::bin_from_description(description, true);
        let bin = bin.map_err(|error| format!("`{description}` cannot be built: {error}"))?;
        let added = pipeline.add(&bin);
        let started = added.and_then(|()| bin.sync_state_with_parent());
        started.map_err(|error| error.to_string())?;
        let pads = bin.static_pad("sink").zip(bin.static_pad("src"));
        let (input, output) = pads.ok_or("a converter has no pads")?;
        link(&last, &input)?;
        last = output;
    }
    link(&last, sink)
}

fn link(source: &gst::Pad, sink: &gst::Pad) -> Result<(), String> {
    let linked = source.link(sink);
    linked.map(|_| ()).map_err(|error| error.to_string())
}

/// Bins that make frames upright and progressive, in a format that `sink` takes.
fn converters(pad: &gst::Pad, caps: &gst::Caps, sink: &gst::Pad) -> Vec<&'static str> {
    let mut converters = Vec::new();
    if is_interlaced(caps) {
        // The deinterlacer yields one frame for each frame, so that their numbers stay the same.
        converters.push("videoconvert ! deinterlace mode=auto-strict fields=top");
    }
    if is_turned(pad) {
        converters.push("videoconvert ! videoflip video-direction=auto");
    }
    if converters.is_empty() && !sink.pad_template_caps().can_intersect(caps) {
        converters.push("videoconvert");
    }
    converters
}

fn is_interlaced(caps: &gst::CapsRef) -> bool {
    let mode = caps.structure(0);
    let mode = mode.and_then(|structure| structure.get::<String>("interlace-mode").ok());
    mode.is_some_and(|mode| mode != "progressive")
}

/// Returns true if a tag of the stream requires a rotation.
fn is_turned(pad: &gst::Pad) -> bool {
    let mut tags = (0..).map_while(|index| pad.sticky_event::<gst::event::Tag>(index));
    tags.any(|event| {
        let method = VideoOrientationMethod::from_tag(event.tag());
        method.is_some_and(|it| it != VideoOrientationMethod::Identity)
    })
}

/// Returns true if a pad of the decoder has raw video.
pub(crate) fn has_video(pad: &gst::Pad) -> bool {
    let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
    caps.structure(0)
        .is_some_and(|it| it.has_name("video/x-raw"))
}

/// Leaves everything other than video undecoded, and limits the threads of the decoder.
///
/// Decoders of libav have two threads at least. With one, GStreamer 1.22 loses the first frames of
/// an H.264 stream that begins between two key frames: libav requests a buffer for a missing
/// reference, and the request fails. At 1080p, the second thread costs 10 % more CPU time for
/// decoding, and 20 MB.
///
/// These decoders copy their frames. Otherwise GStreamer 1.22 to 1.26 can abort the process: if a
/// stream whose width is not a multiple of 16 is negotiated again with several threads, a buffer of
/// the size before cropping fails an assertion. Videos of phones have such widths.
pub(crate) fn restrict(decoder: &gst::Element, threads: u32) {
    decoder.connect("autoplug-continue", false, |arguments| {
        let caps = arguments[2].get::<gst::Caps>().ok();
        let name = caps.as_ref().and_then(|caps| caps.structure(0));
        let is_sound = name.is_some_and(|it| it.name().starts_with("audio/"));
        // The type of a file whose beginning looks like sound, such as an MPEG-4 file of sound, has
        // no details yet.
        let is_track = name.is_some_and(|it| it.n_fields() > 0);
        Some((!(is_sound && is_track)).to_value())
    });
    let Some(bin) = decoder.downcast_ref::<gst::Bin>() else {
        return;
    };
    faults::work_around(bin);
    bin.connect_deep_element_added(move |_, _, element| {
        let has_threads = element.has_property_with_type("max-threads", glib::Type::I32);
        if threads > 0 && has_threads {
            element.set_property("max-threads", threads.max(MIN_THREADS) as i32);
        }
        if element.has_property("direct-rendering") {
            element.set_property("direct-rendering", false);
        }
    });
}

/// Ends the segments behind `pad` at `stop`, a stream time in ns, if they do not end before, or
/// leaves their end open.
pub(crate) fn set_stop(pad: &gst::Pad, stop: Option<u64>) {
    let stop = stop.map(gst::ClockTime::from_nseconds);
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |_, info| {
        if let Some(gst::EventView::Segment(event)) = info.event().map(|event| event.view()) {
            let mut segment = event.segment().clone();
            if let Some(segment) = segment.downcast_mut::<gst::ClockTime>() {
                let position = segment.position_from_stream_time(stop);
                if stop.is_none() || position.is_some() {
                    segment.set_stop(position);
                }
            }
            let event = gst::event::Segment::builder(&segment).seqnum(event.seqnum());
            info.data = Some(gst::PadProbeData::Event(event.build()));
        }
        gst::PadProbeReturn::Ok
    });
}

/// Plays files to their last frame. After a seek, matroskademux ends the segment at the duration
/// that is in the file, and some programs leave out the last frame there. Without an edit list,
/// qtdemux ends the segment at the duration of the track, although frames that begin late are shown
/// after it.
pub(crate) fn keep_last_frames(decoder: &gst::Element, segment: Segment, movie: &Movie) {
    let is_played_on = movie.frames.is_some() && movie.edits.is_empty();
    let demuxers = [
        segment.start.map(|_| "matroskademux"),
        is_played_on.then_some("qtdemux"),
    ];
    let Some(bin) = decoder.downcast_ref::<gst::Bin>() else {
        return;
    };
    bin.connect_deep_element_added(move |_, _, element| {
        let factory = element.factory().map(|factory| factory.name());
        if demuxers
            .iter()
            .flatten()
            .any(|name| factory.as_deref() == Some(*name))
        {
            element.connect_pad_added(|_, pad| set_stop(pad, None));
        }
    });
}

/// Time of a frame that passes a pad, ns.
pub(crate) type Clock = Box<dyn Fn(&gst::Pad, &gst::PadProbeInfo<'_>) -> Option<u64> + Send + Sync>;

/// Creates a clock of stream times.
pub(crate) fn stream_clock() -> Clock {
    Box::new(|pad, info| stream_time(pad, info.buffer()?))
}

/// Creates a clock for a video that is played from its beginning: the first frame is at 0.
pub(crate) fn video_clock(movie: Movie) -> Clock {
    let video = Mutex::new(Video::new(movie));
    Box::new(move |_, info| lock(&video).time_of(info))
}

/// The times of a video.
struct Video {
    times: VideoTimes,
    shown: Shown,
}

impl Video {
    fn new(movie: Movie) -> Self {
        let mut shown = Shown::default();
        shown.set_movie(movie);
        let times = VideoTimes::default();
        Self { times, shown }
    }

    /// Time of a frame that passes, ns; `None` for events, and for frames that do not count.
    fn time_of(&mut self, info: &gst::PadProbeInfo<'_>) -> Option<u64> {
        if let Some(gst::EventView::Segment(event)) = info.event().map(|event| event.view()) {
            self.times.begin(event.segment());
            self.shown.begin(event.segment());
        }
        let buffer = info.buffer()?;
        let counts = self.shown.counts(buffer);
        counts.then(|| self.times.of_frame(buffer.pts()))?
    }
}

/// Types of probes for buffers and their segments.
pub(crate) const FRAMES: gst::PadProbeType =
    gst::PadProbeType::BUFFER.union(gst::PadProbeType::EVENT_DOWNSTREAM);

/// Ends the stream at `pad` with the first frame at `stop` ns, or after it. Calls `on_end` before.
pub(crate) fn end_at(
    pad: &gst::Pad,
    stop: u64,
    clock: Clock,
    on_end: impl Fn() + Send + Sync + 'static,
) {
    let has_ended = AtomicBool::new(false);
    pad.add_probe(FRAMES, move |pad, info| {
        let time = clock(pad, info);
        if time.is_none_or(|time| time < stop) {
            return gst::PadProbeReturn::Ok;
        }
        if !has_ended.swap(true, Ordering::SeqCst)
            && let Some(peer) = pad.peer()
        {
            on_end();
            peer.send_event(gst::event::Eos::new());
        }
        info.flow_res = Err(gst::FlowError::Eos);
        gst::PadProbeReturn::Handled
    });
}

/// Drops the frames at `pad` before `start` ns. Calls `on_drop` with the stream time at which `clock`
/// is 0, ns.
pub(crate) fn begin_at(
    pad: &gst::Pad,
    start: u64,
    clock: Clock,
    on_drop: impl Fn(u64) + Send + Sync + 'static,
) {
    pad.add_probe(FRAMES, move |pad, info| {
        let Some(time) = clock(pad, info).filter(|time| *time < start) else {
            return gst::PadProbeReturn::Ok;
        };
        let now = info.buffer().and_then(|buffer| stream_time(pad, buffer));
        on_drop(now.map_or(0, |now| now - time));
        gst::PadProbeReturn::Drop
    });
}

/// Stream time of a frame, ns.
pub(crate) fn stream_time(pad: &gst::Pad, buffer: &gst::BufferRef) -> Option<u64> {
    let event = pad.sticky_event::<gst::event::Segment>(0)?;
    stream::time(event.segment(), buffer.pts())
}

/// Drops everything that the decoder yields before the seek to the part that is played. Calls
/// `on_held` with the stream time of the first frame, ns, once the second frame has come, since
/// that may change it.
pub(crate) fn hold_until_sought(
    pad: &gst::Pad,
    movie: Movie,
    on_held: impl Fn(u64) + Send + Sync + 'static,
) {
    let is_sought = AtomicBool::new(false);
    let (frames, is_held) = (AtomicU64::new(0), AtomicBool::new(false));
    let video = Mutex::new(Video::new(movie));
    pad.add_probe(FRAMES | gst::PadProbeType::EVENT_FLUSH, move |_, info| {
        let event = info.event().map(|event| event.type_());
        if event == Some(gst::EventType::FlushStop) {
            is_sought.store(true, Ordering::SeqCst);
        }
        if is_sought.load(Ordering::SeqCst) {
            return gst::PadProbeReturn::Ok;
        }
        let mut video = lock(&video);
        video.time_of(info);
        let is_end = event == Some(gst::EventType::Eos);
        if !(is_end || info.buffer().is_some()) {
            return gst::PadProbeReturn::Ok;
        }
        let is_second = frames.fetch_add(1, Ordering::SeqCst) == 1;
        if (is_end || is_second) && !is_held.swap(true, Ordering::SeqCst) {
            on_held(video.times.start());
        }
        gst::PadProbeReturn::Handled
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoders_have_two_threads_and_copy_their_frames() {
        gst::init().expect("GStreamer");
        for (threads, set) in [(0, 0), (1, 2), (2, 2), (3, 3)] {
            let bin = gst::ElementFactory::make("decodebin").build();
            let bin = bin.expect("decodebin").downcast::<gst::Bin>();
            let bin = bin.expect("a bin");
            restrict(bin.upcast_ref(), threads);
            let decoder = gst::ElementFactory::make("avdec_h264").build();
            let decoder = decoder.expect("gst-libav");
            bin.add(&decoder).expect("it is added");
            assert_eq!(decoder.property::<i32>("max-threads"), set);
            assert!(!decoder.property::<bool>("direct-rendering"));
        }
    }
}
