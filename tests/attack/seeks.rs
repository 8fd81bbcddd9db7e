// SPDX-License-Identifier: MPL-2.0
//! Seeks at any rate and with any flags, one after another. `trackjsonload` attaches the faces of
//! each frame.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use facetrack_assets::lock::lock;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

use crate::common::noise::Noise;
use crate::rounds::{self, one_in, pick};
use crate::stream::{self, PERIOD, Pipeline, Record};

const SEEKS: usize = 60;

/// Frames of the video.
const LENGTH: u64 = 50;

const RATES: [f64; 8] = [-2.0, -1.0, -0.5, -0.1, 0.1, 0.5, 1.0, 2.0];

const TEST: &str = "videotestsrc name=source pattern=black ! video/x-raw,format=GRAY8,width=32,height=24,framerate=25/1";

/// Position of the face at each time of the video, ns.
type Positions = BTreeMap<u64, f32>;

/// Plays a source to an end, and writes a record of a face that moves.
fn first_pass(source: &str, record: &Record) -> Positions {
    let pipeline = Pipeline::new(&format!(
        "{source} ! facetrack name=track engine=scripted script=\"face dx=0.007\" ! {} verbose=true",
        record.sink()
    ));
    let positions = Arc::new(Mutex::new(Positions::new()));
    let seen = positions.clone();
    watch(&pipeline.pad("write", "sink"), move |pts, x| {
        lock(&seen).insert(pts, x);
    });
    preroll(&pipeline);
    seek(&pipeline, 1.0, gst::SeekFlags::FLUSH, 0, Some(LENGTH));
    pipeline.play().expect("it plays");
    let positions = std::mem::take(&mut *lock(&positions));
    assert!(positions.len() as u64 >= LENGTH - 1, "{positions:?}");
    positions
}

/// Calls `work` with the time and the position of the face of each buffer that has both.
fn watch(pad: &gst::Pad, work: impl Fn(u64, f32) + Send + Sync + 'static) {
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let buffer = info.buffer().expect("a buffer");
        if let Ok(report) = FaceTrackMeta::read(buffer)
            && let (Some(pts), [face]) = (buffer.pts(), report.faces.as_slice())
        {
            work(pts.nseconds(), face.face.bbox.x);
        }
        gst::PadProbeReturn::Ok
    });
}

/// Counts the buffers that a sink does not drop because they are outside of the segment, as the
/// first one of `videotestsrc` is when it plays backwards.
fn count_shown(pad: &gst::Pad) -> Arc<AtomicU64> {
    let counter = Arc::new(AtomicU64::new(0));
    let counted = counter.clone();
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let event = pad.sticky_event::<gst::event::Segment>(0);
        let segment = event.as_ref().expect("a segment").segment();
        let segment = segment.downcast_ref::<gst::ClockTime>().expect("times");
        let buffer = info.buffer().expect("a buffer");
        let end = buffer.pts().zip(buffer.duration()).map(|(a, b)| a + b);
        let is_shown = segment.clip(buffer.pts(), end).is_some();
        counted.fetch_add(u64::from(is_shown), Ordering::SeqCst);
        gst::PadProbeReturn::Ok
    });
    counter
}

/// Seeks between two frames, by number. Seeks may fail, as those after an error of the pipeline.
fn seek(pipeline: &Pipeline, rate: f64, flags: gst::SeekFlags, start: u64, stop: Option<u64>) {
    let (set, none) = (gst::SeekType::Set, gst::SeekType::None);
    let stop_type = if stop.is_some() { set } else { none };
    let stop = stop.map(|stop| stop * PERIOD);
    let sought = pipeline
        .pipeline
        .seek(rate, flags, set, start * PERIOD, stop_type, stop);
    sought.unwrap_or_else(|error| panic!("rate {rate}, {flags:?}: {error}"));
}

/// Time that frames have to begin to flow.
const TO_PLAY: gst::ClockTime = gst::ClockTime::from_mseconds(100);

/// Sets a state, and returns whether frames flow. Elsewhere a seek without a flush would wait for
/// the sink, which waits for the application.
fn begins_to_play(pipeline: &Pipeline, noise: &mut Noise) -> bool {
    let states = [gst::State::Playing, gst::State::Playing, gst::State::Paused];
    let state = *pick(noise, &states);
    pipeline.pipeline.set_state(state).expect("it goes on");
    let (_, current, _) = pipeline.pipeline.state(TO_PLAY);
    current == gst::State::Playing
}

/// A random seek. It does not end the stream, which would end the record.
fn random_seek(noise: &mut Noise, pipeline: &Pipeline, flushes: &AtomicU64) {
    let rate = *pick(noise, &RATES);
    let mut flags = gst::SeekFlags::SEGMENT;
    for flag in [
        gst::SeekFlags::KEY_UNIT,
        gst::SeekFlags::ACCURATE,
        gst::SeekFlags::TRICKMODE,
    ] {
        flags.set(flag, one_in(noise, 2));
    }
    let is_playing = begins_to_play(pipeline, noise);
    if !is_playing || one_in(noise, 2) {
        flags |= gst::SeekFlags::FLUSH;
        flushes.fetch_add(1, Ordering::SeqCst);
    }
    let start = noise.below(LENGTH as usize) as u64;
    let stop = start + 1 + noise.below(LENGTH as usize) as u64;
    seek(pipeline, rate, flags, start, Some(stop.min(LENGTH)));
}

fn attack(noise: &mut Noise, source: &str) {
    let (record, replayed) = (Record::new(), Record::new());
    let positions = first_pass(source, &record);
    let pipeline = Pipeline::new(&format!(
        "{source} ! facetrack name=track engine=scripted script=\"face x=0.9 size=0.1\" \
         ! trackjsonload location={} match=pts ! {}",
        record.path().display(),
        replayed.sink()
    ));
    let wrong = Arc::new(AtomicU64::new(0));
    let counted = wrong.clone();
    watch(&pipeline.pad("write", "sink"), move |pts, x| {
        let is_wrong = positions
            .get(&pts)
            .is_some_and(|known| (known - x).abs() > 0.01);
        counted.fetch_add(u64::from(is_wrong), Ordering::SeqCst);
    });
    let taken = stream::count(&pipeline.pad("track", "sink"));
    let arrived = stream::count(&pipeline.pad("write", "sink"));
    let shown = count_shown(&pipeline.pad("write", "sink"));
    let flushes = Arc::new(AtomicU64::new(0));
    preroll(&pipeline);
    for _ in 0..SEEKS {
        random_seek(noise, &pipeline, &flushes);
        // As long as some frames take, or not at all.
        let time = gst::ClockTime::from_useconds(noise.below(8_000) as u64);
        let ends = [gst::MessageType::SegmentDone];
        pipeline.bus.timed_pop_filtered(time, &ends);
    }
    flushes.fetch_add(1, Ordering::SeqCst);
    seek(&pipeline, 1.0, gst::SeekFlags::FLUSH, 0, Some(LENGTH));
    pipeline
        .pipeline
        .set_state(gst::State::Playing)
        .expect("it plays");
    pipeline
        .end()
        .unwrap_or_else(|error| panic!("{source}: {error}"));
    pipeline.stop();
    assert_eq!(
        wrong.load(Ordering::SeqCst),
        0,
        "{source}: faces of other frames"
    );
    let [taken, arrived, shown, flushed] =
        [taken, arrived, shown, flushes].map(|count| count.load(Ordering::SeqCst));
    let recorded = replayed.assert_numbered().0;
    // A flush may take the frame that is under way.
    let is_whole = |before: u64, behind| behind <= before && before - behind <= flushed;
    assert!(is_whole(taken, arrived), "{taken} {arrived} {flushed}");
    assert!(is_whole(shown, recorded), "{shown} {recorded} {flushed}");
}

/// Waits for the first frame, in PAUSED.
fn preroll(pipeline: &Pipeline) {
    let pipeline = &pipeline.pipeline;
    pipeline.set_state(gst::State::Paused).expect("it pauses");
    pipeline.state(stream::PATIENCE).0.expect("it has a frame");
}

#[test]
fn a_generated_video_is_sought_in() {
    rounds::run(3, |noise| attack(noise, TEST));
}

#[test]
fn a_decoded_video_is_sought_in() {
    rounds::run(1, |noise| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("video.mkv");
        let encode = format!(
            "videotestsrc num-buffers={LENGTH} ! video/x-raw,width=64,height=48,framerate=25/1 \
             ! jpegenc ! matroskamux ! filesink location={}",
            path.display()
        );
        Pipeline::new(&encode).play().expect("it is encoded");
        let source = format!(
            "filesrc location={} ! decodebin ! videoconvert",
            path.display()
        );
        attack(noise, &source);
    });
}
