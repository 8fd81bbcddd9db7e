// SPDX-License-Identifier: MPL-2.0
//! Damaged and truncated files. Each frame that a decoder makes of them is recorded.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use gst::prelude::*;

use crate::common::noise::Noise;
use crate::rounds::{self, one_in};
use crate::stream::{self, Pipeline, Record};

/// Encoders and muxers.
const ENCODINGS: [&str; 6] = [
    "x264enc key-int-max=5 ! mp4mux",
    "jpegenc ! avimux",
    "vp8enc deadline=1 ! webmmux",
    "theoraenc ! oggmux",
    "x264enc key-int-max=5 bframes=2 ! mpegtsmux",
    "jpegenc ! matroskamux",
];

const FRAMES: u64 = 20;

/// Damages per encoding in a round.
const DAMAGES: usize = 6;

/// Time without a frame after which a pipeline is given up. `decodebin` drops the errors of a
/// demuxer that fails while it is being connected, and waits for ever.
const SILENCE: gst::ClockTime = gst::ClockTime::from_seconds(2);

fn encode(encoding: &str, path: &Path) -> Vec<u8> {
    let line = format!(
        "videotestsrc num-buffers={FRAMES} ! video/x-raw,format=I420,width=96,height=64,framerate=25/1 \
         ! {encoding} ! filesink location={}",
        path.display()
    );
    Pipeline::new(&line).play().expect("it is encoded");
    fs::read(path).expect("a file")
}

/// Damages a file in one way.
fn damage(noise: &mut Noise, bytes: &mut Vec<u8>) {
    let at = noise.below(bytes.len());
    let end = (at + 1 + noise.below(400)).min(bytes.len());
    match noise.below(5) {
        0 => bytes.truncate(at),
        1 => bytes[at] = noise.below(256) as u8,
        2 => bytes[at..end].fill(0),
        3 => drop(bytes.drain(at..end)),
        _ => {
            let part = bytes[at..end].to_vec();
            bytes.splice(at..at, part);
        }
    }
}

/// Plays a file, whatever it is. Returns how many frames were recorded.
fn play(path: &Path) -> u64 {
    let record = Record::new();
    let pipeline = Pipeline::new(&format!(
        "filesrc location={} ! decodebin ! videoconvert ! facetrack name=track engine=scripted \
         ! facetrackoverlay ! {}",
        path.display(),
        record.sink()
    ));
    let taken = stream::count(&pipeline.pad("track", "sink"));
    // A failed state change posts an error.
    let _ = pipeline.pipeline.set_state(gst::State::Playing);
    let is_dead = || taken.load(Ordering::SeqCst) == 0;
    let Some(end) = pipeline.end_unless(SILENCE, is_dead) else {
        return 0;
    };
    pipeline.stop();
    let taken = taken.load(Ordering::SeqCst);
    let path = match (end.is_ok(), taken) {
        (false, 0) => return 0,
        (true, _) if record.path().exists() => record.path(),
        _ => record.partial(),
    };
    let recorded = stream::numbered(&stream::json(&path)).0;
    assert_eq!(recorded, taken, "{end:?}");
    recorded
}

#[test]
fn what_can_be_decoded_is_recorded() {
    rounds::run(1, |noise| {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("video");
        for encoding in ENCODINGS {
            let whole = encode(encoding, &path);
            for _ in 0..DAMAGES {
                let mut bytes = whole.clone();
                damage(noise, &mut bytes);
                while !one_in(noise, 3) && !bytes.is_empty() {
                    damage(noise, &mut bytes);
                }
                fs::write(&path, &bytes).expect("it is written");
                play(&path);
            }
            fs::write(&path, &whole).expect("it is written");
            assert_eq!(play(&path), FRAMES, "{encoding}");
        }
    });
}
