// SPDX-License-Identifier: MPL-2.0
//! How long a video is, without playing it.

use std::path::Path;

use gst::prelude::*;

use crate::branch;

/// Demuxers that can start at any frame, to the nanosecond: their files have an index. Others count
/// time from where they start, or guess.
const EXACT: [&str; 2] = ["qtdemux", "matroskademux"];

/// Maximum time to open a file. decodebin may wait forever for a damaged one. Our choice: a slow
/// network disk.
const TIMEOUT: gst::ClockTime = gst::ClockTime::from_seconds(10);

/// Message of the pipeline: all streams are known.
const STREAMS_KNOWN: &str = "facetrack-worker-measured";

/// Duration of the video in a file that can be played from any frame, s.
pub fn seconds(video: &Path) -> Option<f64> {
    let pipeline = gst::Pipeline::new();
    let file = gst::ElementFactory::make("filesrc");
    let file = file.property("location", video).build().ok()?;
    let decoder = gst::ElementFactory::make("decodebin").build().ok()?;
    branch::restrict(&decoder, 1);
    pipeline.add_many([&file, &decoder]).ok()?;
    file.link(&decoder).ok()?;
    let bin = pipeline.downgrade();
    decoder.connect_no_more_pads(move |_| {
        if let Some(pipeline) = bin.upgrade() {
            let known = gst::Structure::new_empty(STREAMS_KNOWN);
            let message = gst::message::Application::builder(known).src(&pipeline);
            // The bus is flushed when the pipeline stops.
            let _ = pipeline.post_message(message.build());
        }
    });
    let measured = open(&pipeline).and_then(|()| measured(&pipeline, &decoder));
    let _ = pipeline.set_state(gst::State::Null);
    measured
}

/// Waits until all streams are known. They are not linked, so nothing is played.
fn open(pipeline: &gst::Pipeline) -> Option<()> {
    let _ = pipeline.set_state(gst::State::Paused);
    let kinds = [gst::MessageType::Application, gst::MessageType::Error];
    let message = pipeline.bus()?.timed_pop_filtered(TIMEOUT, &kinds)?;
    (message.type_() == gst::MessageType::Application).then_some(())
}

fn measured(pipeline: &gst::Pipeline, decoder: &gst::Element) -> Option<f64> {
    let elements = pipeline.iterate_recurse().into_iter().flatten();
    let mut factories = elements.filter_map(|element| element.factory());
    let is_exact = factories.any(|factory| EXACT.contains(&factory.name().as_str()));
    let pad = decoder.src_pads().into_iter().find(branch::has_video)?;
    let mut seeking = gst::query::Seeking::new(gst::Format::Time);
    let is_seekable = pad.query(&mut seeking) && seeking.result().0;
    let duration = pad.query_duration::<gst::ClockTime>()?;
    (is_exact && is_seekable).then(|| duration.seconds_f64())
}
