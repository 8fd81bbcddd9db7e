// SPDX-License-Identifier: MPL-2.0
//! The elements between the decoder and `facetrack`: only those that the stream needs.

use std::sync::atomic::{AtomicBool, Ordering};

use facetrack::container::Movie;
use facetrack_jobs::Part;
use gst::glib;
use gst::prelude::*;
use gst_video::VideoOrientationMethod;
use gstfacetrack::stream;

/// Threads of a decoder at least, see [`restrict`].
const MIN_THREADS: u32 = 2;

/// Links the first decoded stream of video to `sink`, the pad of `facetrack`, when its first frame
/// comes: the tags are known then. `report` gets the reason if that fails.
pub fn connect_with_first_frame(
    pipeline: &gst::Pipeline,
    pad: &gst::Pad,
    sink: gst::Pad,
    report: impl Fn(&gst::Pipeline, String) + Send + Sync + 'static,
) {
    let pipeline = pipeline.downgrade();
    let kinds = gst::PadProbeType::BLOCK | gst::PadProbeType::BUFFER;
    pad.add_probe(kinds, move |pad, _| {
        if let Some(pipeline) = pipeline.upgrade()
            && let Err(reason) = connect(&pipeline, pad, &sink)
        {
            report(&pipeline, reason);
        }
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
        // One frame for each frame, so that their numbers stay.
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

/// Whether a tag of the stream asks for a rotation.
fn is_turned(pad: &gst::Pad) -> bool {
    let mut tags = (0..).map_while(|index| pad.sticky_event::<gst::event::Tag>(index));
    tags.any(|event| {
        let method = VideoOrientationMethod::from_tag(event.tag());
        method.is_some_and(|it| it != VideoOrientationMethod::Identity)
    })
}

/// Whether a pad of the decoder has raw video.
pub fn has_video(pad: &gst::Pad) -> bool {
    let caps = pad.current_caps().unwrap_or_else(|| pad.query_caps(None));
    caps.structure(0)
        .is_some_and(|it| it.has_name("video/x-raw"))
}

/// The type of a still picture, if the decoder reads one.
pub fn still(decoder: &gst::Bin) -> Option<String> {
    let caps = decoder
        .by_name("typefind")?
        .property::<Option<gst::Caps>>("caps")?;
    let name = caps.structure(0)?.name().to_string();
    name.starts_with("image/").then_some(name)
}

/// Leaves everything other than video undecoded, and limits the threads of the decoder.
///
/// Decoders of libav have two threads at least. With one, GStreamer 1.22 loses the first frames of
/// an H.264 stream that begins between two key frames: libav asks for a buffer for a missing
/// reference, and gets none. The second thread takes 10 % more CPU time of decoding, and 20 MB, at
/// 1080p.
///
/// They copy their frames out. Without that, GStreamer 1.22 to 1.26 can abort the process when a
/// stream is negotiated again whose width is not a multiple of 16, with several threads: a buffer
/// of the size before cropping fails an assertion. Videos of phones have such widths.
pub fn restrict(decoder: &gst::Element, threads: u32) {
    decoder.connect("autoplug-continue", false, |arguments| {
        let caps = arguments[2].get::<gst::Caps>().ok();
        let name = caps.as_ref().and_then(|caps| caps.structure(0));
        let is_sound = name.is_some_and(|it| it.name().starts_with("audio/"));
        // The type of a file that only begins like sound, such as an MPEG-4 file of sound, has no
        // details yet.
        let is_track = name.is_some_and(|it| it.n_fields() > 0);
        Some((!(is_sound && is_track)).to_value())
    });
    let Some(bin) = decoder.downcast_ref::<gst::Bin>() else {
        return;
    };
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
pub fn set_stop(pad: &gst::Pad, stop: Option<u64>) {
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
/// qtdemux ends it at the duration of the track, after which frames are shown that begin late.
pub fn keep_last_frames(decoder: &gst::Element, part: Part, movie: &Movie) {
    let is_played_on = movie.frames.is_some() && movie.edits.is_empty();
    let demuxers = [
        part.start.map(|_| "matroskademux"),
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

/// Drops the frames at `pad` before `start`, a stream time in ns.
pub fn begin_at(pad: &gst::Pad, start: u64) {
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let time = info.buffer().and_then(|buffer| stream_time(pad, buffer));
        if time.is_some_and(|time| time < start) {
            return gst::PadProbeReturn::Drop;
        }
        gst::PadProbeReturn::Ok
    });
}

/// Ends the stream at `pad` with the first frame at `stop`, a stream time in ns, or after it.
pub fn end_at(pad: &gst::Pad, stop: u64) {
    let has_ended = AtomicBool::new(false);
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let time = info.buffer().and_then(|buffer| stream_time(pad, buffer));
        if time.is_none_or(|time| time < stop) {
            return gst::PadProbeReturn::Ok;
        }
        if !has_ended.swap(true, Ordering::SeqCst)
            && let Some(peer) = pad.peer()
        {
            peer.send_event(gst::event::Eos::new());
        }
        info.flow_res = Err(gst::FlowError::Eos);
        gst::PadProbeReturn::Handled
    });
}

/// Position of a frame in the video, ns.
pub fn stream_time(pad: &gst::Pad, buffer: &gst::BufferRef) -> Option<u64> {
    let event = pad.sticky_event::<gst::event::Segment>(0)?;
    stream::time(event.segment(), buffer.pts())
}

/// Drops everything that the decoder yields before the seek to the part that is played. Calls
/// `on_held` with the first frame: the events before it, which say when the video starts, have
/// passed.
pub fn hold_until_sought(pad: &gst::Pad, on_held: impl Fn() + Send + Sync + 'static) {
    let is_sought = AtomicBool::new(false);
    let is_held = AtomicBool::new(false);
    let kinds = gst::PadProbeType::BUFFER
        | gst::PadProbeType::EVENT_DOWNSTREAM
        | gst::PadProbeType::EVENT_FLUSH;
    pad.add_probe(kinds, move |_, info| {
        let event = info.event().map(|event| event.type_());
        if event == Some(gst::EventType::FlushStop) {
            is_sought.store(true, Ordering::SeqCst);
        }
        let is_end = event == Some(gst::EventType::Eos);
        if is_sought.load(Ordering::SeqCst) || !(is_end || info.buffer().is_some()) {
            return gst::PadProbeReturn::Ok;
        }
        if !is_held.swap(true, Ordering::SeqCst) {
            on_held();
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
