// SPDX-License-Identifier: MPL-2.0
//! Flushes from one thread while another pushes frames.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use facetrack_assets::lock::lock;
use gst::prelude::*;

use crate::rounds;
use crate::stream::{self, Record, Stream};

const FLUSHES: usize = 100;

/// Flushes as sources do: at any time, with a new segment after the streaming thread has stopped.
fn flush(pad: &gst::Pad, streaming: &Mutex<()>, resets_time: bool) {
    pad.push_event(gst::event::FlushStart::new());
    let _guard = lock(streaming);
    pad.push_event(gst::event::FlushStop::new(resets_time));
    let segment = gst::FormattedSegment::<gst::ClockTime>::new();
    pad.push_event(gst::event::Segment::new(&segment));
}

#[test]
fn frames_that_were_taken_come_out() {
    rounds::run(3, |noise| {
        let record = Record::new();
        let mut stream = Stream::new(&format!(
            "facetrack engine=scripted script=\"face dx=0.01; landmarks\" ! facetrackoverlay ! tee name=t \
             ! {} async=false t. ! trackudpsink host=127.0.0.1 sync=false async=false t. ! identity",
            record.sink()
        ));
        let pad = stream.harness.srcpad().expect("a pad");
        let (streaming, is_over) = (Mutex::new(()), AtomicBool::new(false));
        let resets: Vec<_> = (0..FLUSHES).map(|_| rounds::one_in(noise, 2)).collect();
        let (pushed, mut taken) = (AtomicU64::new(0), 0);
        let flush_between_frames = || {
            for resets_time in resets {
                let before = pushed.load(Ordering::SeqCst);
                flush(&pad, &streaming, resets_time);
                while pushed.load(Ordering::SeqCst) == before {
                    thread::yield_now();
                }
            }
            is_over.store(true, Ordering::SeqCst);
        };
        let mut number = 0;
        thread::scope(|scope| {
            scope.spawn(flush_between_frames);
            while !is_over.load(Ordering::SeqCst) {
                let guard = lock(&streaming);
                match stream.harness.push(stream::clean(number)) {
                    Ok(_) => taken += 1,
                    Err(error) => assert_eq!(error, gst::FlowError::Flushing),
                }
                number = pushed.fetch_add(1, Ordering::SeqCst) + 1;
                drop(guard);
                // The other thread waits for the lock.
                thread::yield_now();
            }
        });
        let pushed = pushed.into_inner();
        let passed = u64::from(stream.harness.buffers_received());
        assert!(
            taken > 0 && taken <= passed && passed <= pushed,
            "{taken} {passed} {pushed}"
        );
        assert!(stream.harness.push_event(gst::event::Eos::new()));
        stream.assert_no_error();
        while stream.harness.try_pull().is_some() {}
        let recorded = record.assert_numbered().0;
        assert!(
            passed <= recorded && recorded <= pushed,
            "{passed} {recorded} {pushed}"
        );
        stream.assert_works();
    });
}
