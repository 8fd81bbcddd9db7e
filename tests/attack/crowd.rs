// SPDX-License-Identifier: MPL-2.0
//! Many elements in many threads. Each reports what a single one reports.

use std::thread;

use facetrack::geometry::Rect;
use gst::prelude::*;

use crate::common::noise::Noise;
use crate::rounds;
use crate::stream::{self, Pipeline, Record, Stream};
use crate::switches::installed;

const THREADS: usize = 6;

const FRAMES: u64 = 8;

/// Boxes in each frame of a clean stream with noise in it.
fn boxes(engine: &str, seed: u64) -> Vec<Vec<Rect>> {
    let mut stream = Stream::new(&format!("facetrack engine={engine} threads=1"));
    let mut noise = Noise::new(seed);
    let boxes = (0..FRAMES).map(|number| {
        let mut pixels = stream::picture(160, 120);
        let at = noise.below(pixels.len() - 480);
        pixels[at..at + 480].fill(noise.below(256) as u8);
        let buffer = gst::Buffer::from_mut_slice(pixels);
        let (_, report) = stream.pass(stream::at(buffer, number));
        report.faces.iter().map(|face| face.face.bbox).collect()
    });
    let boxes = boxes.collect();
    stream.assert_no_error();
    boxes
}

#[test]
fn elements_do_not_disturb_each_other() {
    rounds::run(1, |noise| {
        let seed = noise.below(1 << 30) as u64;
        for engine in installed() {
            let alone = boxes(engine, seed);
            thread::scope(|scope| {
                let threads = [(); THREADS].map(|()| scope.spawn(|| boxes(engine, seed)));
                for thread in threads {
                    assert_eq!(thread.join().expect("no panic"), alone, "{engine}");
                }
            });
        }
    });
}

#[test]
fn branches_of_a_tee_write_the_same() {
    rounds::run(2, |_| {
        let records = [(); 8].map(|()| Record::new());
        let branches = records.iter().map(|record| {
            let sink = record.sink().replace("name=write ", "");
            format!(
                " t. ! queue ! facetrack engine=scripted script=\"face dx=0.02; landmarks\" \
                 ! facetrackoverlay ! {sink}"
            )
        });
        let branches: String = branches.collect();
        let pipeline = Pipeline::new(&format!(
            "videotestsrc num-buffers=100 ! video/x-raw,width=64,height=48,framerate=25/1 ! tee name=t{branches}"
        ));
        pipeline.play().expect("it plays");
        let records = records.map(|record| {
            assert_eq!(record.assert_numbered().0, 100);
            record.read()["frames"].take()
        });
        assert!(records.windows(2).all(|pair| pair[0] == pair[1]));
        assert!(pipeline.pipeline.current_state() == gst::State::Null);
    });
}
