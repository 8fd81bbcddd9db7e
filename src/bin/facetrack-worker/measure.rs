// SPDX-License-Identifier: MPL-2.0
//! How long a video is, without decoding it.

use std::path::Path;

use gst::prelude::*;

/// Demuxers that can start at any frame, to the nanosecond: their files have an index. Others count
/// time from where they start, or guess.
const EXACT: [&str; 2] = ["qtdemux", "matroskademux"];

/// Maximum time to open a file. Our choice: a slow network disk.
const TIMEOUT: gst::ClockTime = gst::ClockTime::from_seconds(30);

/// Duration of the video in a file that can be played from any frame, s.
pub fn seconds(video: &Path) -> Option<f64> {
    let pipeline = gst::Pipeline::new();
    let file = gst::ElementFactory::make("filesrc");
    let file = file.property("location", video).build().ok()?;
    let parser = gst::ElementFactory::make("parsebin").build().ok()?;
    pipeline.add_many([&file, &parser]).ok()?;
    file.link(&parser).ok()?;
    let bin = pipeline.downgrade();
    parser.connect_pad_added(move |_, pad| {
        if let Some(pipeline) = bin.upgrade() {
            // The pipeline then ends with an error.
            let _ = consume(&pipeline, pad);
        }
    });
    let measured = opened(&pipeline).and_then(|()| measured(&pipeline));
    let _ = pipeline.set_state(gst::State::Null);
    measured
}

/// Links a stream to a sink.
fn consume(pipeline: &gst::Pipeline, pad: &gst::Pad) -> Option<()> {
    let sink = gst::ElementFactory::make("fakesink").build().ok()?;
    pipeline.add(&sink).ok()?;
    pad.link(&sink.static_pad("sink")?).ok()?;
    sink.sync_state_with_parent().ok()
}

/// Waits until every stream has a first packet.
fn opened(pipeline: &gst::Pipeline) -> Option<()> {
    let _ = pipeline.set_state(gst::State::Paused);
    let kinds = [gst::MessageType::AsyncDone, gst::MessageType::Error];
    let message = pipeline.bus()?.timed_pop_filtered(TIMEOUT, &kinds)?;
    (message.type_() == gst::MessageType::AsyncDone).then_some(())
}

fn measured(pipeline: &gst::Pipeline) -> Option<f64> {
    let elements = pipeline.iterate_recurse().into_iter().flatten();
    let elements: Vec<_> = elements.collect();
    let is_exact = elements.iter().any(|element| {
        let factory = element.factory();
        factory.is_some_and(|factory| EXACT.contains(&factory.name().as_str()))
    });
    let is_video = |pad: &gst::Pad| {
        let caps = pad.current_caps();
        let structure = caps.as_ref().and_then(|caps| caps.structure(0));
        structure.is_some_and(|it| it.name().starts_with("video/"))
    };
    let sinks = elements.iter().filter(|it| it.num_src_pads() == 0);
    let pad = sinks
        .filter_map(|sink| sink.static_pad("sink"))
        .find(is_video)?;
    let mut seeking = gst::query::Seeking::new(gst::Format::Time);
    let is_seekable = pad.peer_query(&mut seeking) && seeking.result().0;
    let duration = pad.peer_query_duration::<gst::ClockTime>()?;
    (is_exact && is_seekable).then(|| duration.seconds_f64())
}
