// SPDX-License-Identifier: MPL-2.0
//! State changes from several threads while frames flow.

use std::thread;

use gst::prelude::*;

use crate::common::noise::Noise;
use crate::rounds::{self, pick};
use crate::stream::{self, Pipeline, Record};

const CHANGES: usize = 40;

const THREADS: usize = 3;

const STATES: [gst::State; 5] = [
    gst::State::Null,
    gst::State::Ready,
    gst::State::Paused,
    gst::State::Playing,
    gst::State::Playing,
];

/// Changes the state again and again. A change may fail, where another thread undoes it.
fn shake(noise: &mut Noise, pipeline: &gst::Pipeline) {
    for _ in 0..CHANGES {
        let _ = pipeline.set_state(*pick(noise, &STATES));
        let time = gst::ClockTime::from_useconds(noise.below(4_000) as u64);
        let _ = pipeline.state(time);
    }
}

#[test]
fn any_thread_may_change_the_state_at_any_time() {
    rounds::run(4, |noise| {
        let record = Record::new();
        let pipeline = Pipeline::new(&format!(
            "videotestsrc num-buffers=200 ! video/x-raw,format=I420,width=64,height=48,framerate=25/1 \
             ! facetrack engine=scripted script=\"face dx=0.01; landmarks\" ! facetrackoverlay \
             ! tee name=t ! queue ! {} t. ! queue ! trackudpsink host=127.0.0.1 sync=false",
            record.sink()
        ));
        let seeds: Vec<_> = (0..THREADS).map(|_| noise.below(1 << 30) as u64).collect();
        thread::scope(|scope| {
            for seed in seeds {
                let pipeline = &pipeline.pipeline;
                scope.spawn(move || shake(&mut Noise::new(seed), pipeline));
            }
        });
        pipeline.stop();
        // The record of the last stream can be read.
        for path in [record.path(), record.partial()] {
            if path.exists() {
                stream::numbered(&stream::json(&path));
            }
        }
        // It asserts that nothing has panicked. The states of a pipeline break off streams.
        stream::errors(&pipeline.bus);
        record.remove();
        pipeline.play().expect("it plays");
        assert_eq!(record.assert_numbered().0, 200);
    });
}
