// SPDX-License-Identifier: MPL-2.0
//! Timestamps that are missing, equal, huge or run backwards, at rates that do not fit them.

use crate::common::noise::Noise;
use crate::rounds::{self, one_in};
use crate::stream::{self, PERIOD, Record, Stream};

const FRAMES: u64 = 20;

/// Frame rates, the last one missing.
const RATES: [&str; 8] = [
    ",framerate=0/1",
    ",framerate=1/1",
    ",framerate=25/1",
    ",framerate=240/1",
    ",framerate=30000/1001",
    ",framerate=2147483647/1",
    ",framerate=1/2147483647",
    "",
];

const MS: u64 = 1_000_000;

/// The time of a frame, ns, from its number and noise.
type Pattern = fn(u64, &mut Noise) -> Option<u64>;

const PATTERNS: [Pattern; 10] = [
    |_, _| None,
    |_, _| Some(0),
    |n, _| Some(40 * n * MS),
    |n, _| Some(40 * (FRAMES - n) * MS),
    |n, _| Some(40 * (n / 3) * MS),
    |n, noise| Some((40 * n + noise.below(25) as u64) * MS),
    |n, _| (n % 2 == 0).then_some(40 * n * MS),
    |n, _| Some((40 * n + n / 7 * 1_500) * MS),
    |n, _| Some(u64::MAX - 1 - (FRAMES - n) * 40 * MS),
    |_, noise| Some(noise.below(usize::MAX) as u64),
];

/// Other faults of a stream.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    None,
    /// Flags of discontinuities, gaps and damage.
    Flags,
    /// Segments whose start lies behind the frames, so that their running time is negative.
    Segments,
    /// Gap events, and durations that are missing or huge.
    Gaps,
}

const TROUBLES: [Trouble; 4] = [
    Trouble::None,
    Trouble::Flags,
    Trouble::Segments,
    Trouble::Gaps,
];

fn time(ns: u64) -> Option<gst::ClockTime> {
    // The last number stands for no time.
    (ns < u64::MAX).then(|| gst::ClockTime::from_nseconds(ns))
}

/// The `n`th frame, and the events before it.
fn send(stream: &mut Stream, noise: &mut Noise, n: u64, pts: Option<u64>, trouble: Trouble) {
    let mut buffer = stream::at(gst::Buffer::from_mut_slice(vec![0; 16 * 8]), n);
    let fields = buffer.make_mut();
    fields.set_pts(pts.and_then(time));
    match trouble {
        Trouble::None => (),
        Trouble::Flags => fields.set_flags(flags(noise)),
        Trouble::Segments => {
            if n > 0 && one_in(noise, 4) {
                assert!(stream.harness.push_event(segment(noise)));
            }
        }
        Trouble::Gaps => {
            fields.set_duration(time(noise.below(usize::MAX) as u64 >> noise.below(64)));
            if one_in(noise, 3) {
                assert!(stream.harness.push_event(gap(noise)));
            }
        }
    }
    stream.pass(buffer);
}

fn flags(noise: &mut Noise) -> gst::BufferFlags {
    let all = [
        gst::BufferFlags::DISCONT,
        gst::BufferFlags::GAP,
        gst::BufferFlags::CORRUPTED,
        gst::BufferFlags::DROPPABLE,
        gst::BufferFlags::RESYNC,
        gst::BufferFlags::DELTA_UNIT,
    ];
    let some = all.into_iter().filter(|_| one_in(noise, 3));
    some.fold(gst::BufferFlags::empty(), |sum, flag| sum | flag)
}

fn segment(noise: &mut Noise) -> gst::Event {
    let mut segment = gst::FormattedSegment::<gst::ClockTime>::new();
    segment.set_start(noise.below(20) as u64 * PERIOD);
    segment.set_time(noise.below(20) as u64 * PERIOD);
    segment.set_base(noise.below(20) as u64 * PERIOD);
    // A segment that is played backwards needs an end.
    segment.set_stop(gst::ClockTime::from_nseconds(u64::MAX - 2));
    segment.set_rate([1.0, 2.0, -1.0, 0.25][noise.below(4)]);
    gst::event::Segment::new(&segment)
}

fn gap(noise: &mut Noise) -> gst::Event {
    let gap = gst::event::Gap::builder(noise.below(20) as u64 * PERIOD);
    let gap = match noise.below(3) {
        0 => gap,
        1 => gap.duration(noise.below(20) as u64 * PERIOD),
        _ => gap.duration(gst::ClockTime::from_nseconds(u64::MAX - 2)),
    };
    let missing = [gst::GapFlags::empty(), gst::GapFlags::DATA];
    gap.gap_flags(missing[noise.below(2)]).build()
}

/// Each pattern with each rate and each other trouble: 8 × 40 streams.
#[test]
fn every_frame_has_its_number() {
    rounds::run(1, |noise| {
        for fill_by in ["loss", "timestamps"] {
            for rate in RATES {
                for (index, pattern) in PATTERNS.iter().enumerate() {
                    for trouble in TROUBLES {
                        let what = format!("{fill_by}, {rate}, pattern {index}, {trouble:?}");
                        attack(noise, *pattern, rate, trouble, fill_by, &what);
                    }
                }
            }
        }
    });
}

fn attack(
    noise: &mut Noise,
    pattern: Pattern,
    rate: &str,
    trouble: Trouble,
    fill_by: &str,
    what: &str,
) {
    let record = Record::new();
    let mut stream = Stream::new(&format!(
        "facetrack engine=scripted script=\"face dx=0.01; landmarks\" smoothing=one-euro predict=true \
         ! facetrackoverlay ! tee name=t ! {} async=false fill-by={fill_by} \
         t. ! trackudpsink host=127.0.0.1 sync=false async=false t. ! identity",
        record.sink()
    ));
    stream.set_caps(&stream::caps(&format!(
        "video/x-raw,format=GRAY8,width=16,height=8{rate}"
    )));
    for n in 0..FRAMES {
        let pts = pattern(n, noise);
        send(&mut stream, noise, n, pts, trouble);
    }
    assert!(stream.harness.push_event(gst::event::Eos::new()), "{what}");
    assert_eq!(stream.errors(), [""; 0], "{what}");
    let (received, _) = record.assert_numbered();
    // Sinks drop frames outside of the segment.
    match trouble {
        Trouble::Segments => assert!(received <= FRAMES, "{what}"),
        _ => assert_eq!(received, FRAMES, "{what}"),
    }
}
