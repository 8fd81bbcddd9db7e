// SPDX-License-Identifier: MPL-2.0
//! Measures the duration of a video, and checks that it can be played from any frame.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use facetrack::record::container::{self, Extent};
use facetrack_assets::file;
use gst::prelude::*;
use gstfacetrack::shown;

use crate::{branch, streams};

/// Demuxers that can start at any frame, to the nanosecond: their files have an index. Others count
/// time from their starting point, or guess it.
const EXACT: [&str; 2] = ["qtdemux", "matroskademux"];

/// Maximum time until a frame comes. decodebin may wait forever for a damaged file. Our choice: a
/// slow network disk.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A frame or event behind the decoder.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Passed {
    /// A frame with its stream time, ns.
    Frame(Option<u64>),
    /// The end of a flush.
    Flush,
}

/// Reasons why a video is not played from within.
const NO_INDEX: &str = "files of this kind cannot be played from an exact frame";
const CUT_OFF: &str = "the file is cut off";
const SEVERAL_EDITS: &str = "its edit list has several parts";
const NO_FRAMES: &str = "its first frames do not come";
const OTHER_TIMES: &str = "its first frame does not come back after a seek";

/// Returns the duration, s, of the video in a file that can be played from any frame, or the reason
/// why it cannot be.
pub(crate) fn seconds(video: &Path) -> Result<f64, String> {
    let reason = obstacle(video);
    reason
        .map_or_else(|| played(video), Err)
        .map_err(str::to_owned)
}

/// Returns the reason why parts of this file would differ from the whole, as far as the container
/// shows it.
fn obstacle(video: &Path) -> Option<&'static str> {
    let extent = || container::extent(&mut file::open(video)?);
    if let Ok(Extent::Cut { .. }) = extent() {
        return Some(CUT_OFF);
    }
    (shown::movie(video).edits.len() > 1).then_some(SEVERAL_EDITS)
}

fn played(video: &Path) -> Result<f64, &'static str> {
    let (sender, receiver) = channel();
    let (pipeline, decoder) = open(video, sender).ok_or(NO_FRAMES)?;
    let _ = pipeline.set_state(gst::State::Paused);
    let measured = measured(&decoder, &receiver);
    let _ = pipeline.set_state(gst::State::Null);
    measured
}

/// Opens a pipeline whose decoder reports the frames and events that pass it.
fn open(video: &Path, sender: Sender<Passed>) -> Option<(gst::Pipeline, gst::Element)> {
    let pipeline = gst::Pipeline::new();
    let file = gst::ElementFactory::make("filesrc");
    let file = file.property("location", video).build().ok()?;
    let decoder = gst::ElementFactory::make("decodebin").build().ok()?;
    branch::restrict(&decoder, 1);
    pipeline.add_many([&file, &decoder]).ok()?;
    file.link(&decoder).ok()?;
    decoder.connect_no_more_pads(move |decoder| {
        if let Some(pad) = streams::video(decoder) {
            report(&pad, sender.clone());
        }
    });
    Some((pipeline, decoder))
}

/// Reports and drops the frames and events that pass `pad`.
fn report(pad: &gst::Pad, passed: Sender<Passed>) {
    let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_FLUSH;
    pad.add_probe(kinds, move |pad, info| {
        let is_flushed = info.event().map(|event| event.type_()) == Some(gst::EventType::FlushStop);
        let what = match info.buffer() {
            Some(buffer) => Passed::Frame(branch::stream_time(pad, buffer)),
            None if is_flushed => Passed::Flush,
            None => return gst::PadProbeReturn::Ok,
        };
        // The receiver may have ended.
        let _ = passed.send(what);
        gst::PadProbeReturn::Handled
    });
}

/// Returns true if the decoder plays a file from any frame.
pub(crate) fn is_exact(decoder: &gst::Element) -> bool {
    let bin = decoder.downcast_ref::<gst::Bin>();
    let elements = bin.into_iter().flat_map(|bin| bin.iterate_recurse());
    let mut factories = elements.flatten().filter_map(|element| element.factory());
    factories.any(|factory| EXACT.contains(&factory.name().as_str()))
}

fn measured(decoder: &gst::Element, passed: &Receiver<Passed>) -> Result<f64, &'static str> {
    let next = || next_time(passed).ok_or(NO_FRAMES);
    let (first, second) = (next()?, next()?);
    let pad = streams::video(decoder).ok_or(NO_FRAMES)?;
    let duration = pad.query_duration::<gst::ClockTime>();
    let duration = duration.filter(|_| is_exact(decoder)).ok_or(NO_INDEX)?;
    let comes_back = comes_back(&pad, first, second, passed);
    comes_back
        .then(|| duration.seconds_f64())
        .ok_or(OTHER_TIMES)
}

/// Returns true if the first frame comes again with the same time after a seek to it. In fragmented
/// MP4 files, times change after a seek. The beginning of the frame may be cut off.
fn comes_back(pad: &gst::Pad, first: u64, second: u64, passed: &Receiver<Passed>) -> bool {
    let seek = gst::event::Seek::new(
        1.0,
        gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE,
        gst::SeekType::Set,
        gst::ClockTime::from_nseconds(first),
        gst::SeekType::None,
        gst::ClockTime::NONE,
    );
    if !pad.send_event(seek) {
        return false;
    }
    let is_before = |what| what != Passed::Flush;
    while passed.recv_timeout(TIMEOUT).is_ok_and(is_before) {}
    next_time(passed).is_some_and(|time| (first..second).contains(&time))
}

/// Stream time of the next frame, ns; `None` if there is none.
fn next_time(passed: &Receiver<Passed>) -> Option<u64> {
    match passed.recv_timeout(TIMEOUT).ok()? {
        Passed::Frame(time) => time,
        Passed::Flush => None,
    }
}
