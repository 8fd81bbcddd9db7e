// SPDX-License-Identifier: MPL-2.0
//! Where in a stream frames are missing.
//!
//! Timestamps jitter, are rounded by containers and drift from the nominal rate, so the expected time follows what is
//! seen, and only a frame that is more than half a period late (1½ periods after the one before) tells of a hole.

/// The longest hole that is filled, ns: an hour. A longer one is a clock that was set, not an hour of lost frames. Our
/// choice; filling an hour at 60 frames a second writes 13 MB.
const LONGEST_HOLE: f64 = 3_600e9;

/// How far the expected time follows a single frame: jitter of a frame moves it by an eighth, and a drift of 1 % lags by
/// a twelfth of a period. Our choice.
const FOLLOW: f64 = 0.125;

/// How many periods a frame may be off its expected time.
const TOLERANCE: f64 = 0.5;

/// Follows the frames of one stream of constant rate.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Time from frame to frame, ns; `None` for a variable or unknown rate.
    period: Option<f64>,
    /// Smoothed time of the last frame, ns; `None` when nothing is expected of the next.
    last: Option<f64>,
}

/// Frames missing between two frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hole {
    /// How many.
    pub frames: u64,
    start: f64,
    period: f64,
}

impl Hole {
    /// Expected times of the missing frames, ns.
    pub fn times(self) -> impl Iterator<Item = u64> {
        (0..self.frames).map(move |i| (self.start + i as f64 * self.period).round() as u64)
    }
}

/// What comes before a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Before {
    /// The frame before.
    Nothing,
    /// Frames that are missing.
    Hole(Hole),
    /// A jump of that many seconds, too long to be filled.
    Jump(f64),
}

impl Timeline {
    /// Sets the rate as a fraction of frames a second; `None` or one that is not positive is variable. At another rate than
    /// before nothing is expected of the next frame.
    pub fn set_rate(&mut self, rate: Option<(i32, i32)>) {
        let period = rate
            .filter(|(numerator, denominator)| *numerator > 0 && *denominator > 0)
            .map(|(numerator, denominator)| 1e9 * f64::from(denominator) / f64::from(numerator));
        if period != self.period {
            self.period = period;
            self.last = None;
        }
    }

    /// Expects nothing of the next frame: it may have any time.
    pub fn reset(&mut self) {
        self.last = None;
    }

    /// Takes a frame at `pts` ns and tells what is missing before it.
    pub fn frame(&mut self, pts: Option<u64>) -> Before {
        let Some(period) = self.period else {
            return Before::Nothing;
        };
        let Some(pts) = pts.map(|pts| pts as f64) else {
            self.last = self.last.map(|last| last + period);
            return Before::Nothing;
        };
        let Some(last) = self.last else {
            self.last = Some(pts);
            return Before::Nothing;
        };
        let expected = last + period;
        let late = (pts - expected) / period;
        if late <= TOLERANCE {
            let reach = TOLERANCE * period;
            let followed = expected + FOLLOW * (pts - expected);
            self.last = Some(followed.clamp(pts - reach, pts + reach));
            return Before::Nothing;
        }
        self.last = Some(pts);
        before(expected, pts, period)
    }

    /// Takes an announced gap from `start` on for `duration` ns, and tells which frames it stands for. Without a
    /// duration the next frame will tell.
    pub fn gap(&mut self, start: u64, duration: Option<u64>) -> Before {
        let (Some(period), Some(duration)) = (self.period, duration) else {
            return Before::Nothing;
        };
        let start = start as f64;
        let expected = self.last.map_or(start, |last| last + period);
        let end = start + duration as f64;
        if end <= expected {
            return Before::Nothing;
        }
        self.last = Some(end - period);
        before(expected, end, period)
    }
}

/// What lies between the expected time and that of the next frame.
fn before(expected: f64, next: f64, period: f64) -> Before {
    if next - expected > LONGEST_HOLE {
        return Before::Jump((next - expected) / 1e9);
    }
    match ((next - expected) / period).round() as u64 {
        0 => Before::Nothing,
        frames => Before::Hole(Hole {
            frames,
            start: expected,
            period,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at_25() -> Timeline {
        let mut timeline = Timeline::default();
        timeline.set_rate(Some((25, 1)));
        timeline
    }

    fn missing(timeline: &mut Timeline, pts_ms: u64) -> u64 {
        count(timeline.frame(Some(pts_ms * MS)))
    }

    fn count(before: Before) -> u64 {
        match before {
            Before::Hole(hole) => hole.frames,
            Before::Nothing => 0,
            Before::Jump(seconds) => panic!("a jump of {seconds} s"),
        }
    }

    #[test]
    fn holes_are_counted_in_frames() {
        let cases: [(&[u64], &[u64]); 7] = [
            (&[0, 40, 80], &[0, 0, 0]),
            // One frame, then ten are missing.
            (&[0, 80, 520], &[0, 1, 10]),
            // 1½ periods after the last frame nothing is missing, a little more and it is.
            (&[0, 60], &[0, 0]),
            (&[0, 61], &[0, 1]),
            // A stream that begins late misses nothing.
            (&[5000, 5040], &[0, 0]),
            // Backwards and repeated timestamps count on.
            (&[1000, 1040, 200, 240, 320], &[0, 0, 0, 0, 1]),
            (&[1000, 1000, 1000, 1040], &[0, 0, 0, 0]),
        ];
        for (times, expected) in cases {
            let mut timeline = at_25();
            let found: Vec<u64> = times
                .iter()
                .map(|pts| missing(&mut timeline, *pts))
                .collect();
            assert_eq!(found, expected, "{times:?}");
        }
    }

    #[test]
    fn missing_frames_have_the_times_they_were_expected_at() {
        let mut timeline = at_25();
        timeline.frame(Some(0));
        let Before::Hole(hole) = timeline.frame(Some(160 * MS)) else {
            panic!("no hole");
        };
        assert_eq!(
            hole.times().collect::<Vec<_>>(),
            [40 * MS, 80 * MS, 120 * MS]
        );
    }

    #[test]
    fn jitter_and_drift_are_no_holes() {
        let mut timeline = at_25();
        for i in 0..10_000u64 {
            // ±12 ms of jitter on 40 ms, and 0.5 % slower than nominal.
            let pts = i * 40_200_000 + (i * 7919 % 25) * MS;
            assert_eq!(timeline.frame(Some(pts)), Before::Nothing, "frame {i}");
        }
    }

    #[test]
    fn containers_that_round_to_milliseconds_have_no_holes() {
        let mut timeline = Timeline::default();
        timeline.set_rate(Some((30_000, 1001)));
        for i in 0..100_000u64 {
            let pts = (i * 1_001_000 + 15_000) / 30_000 * MS;
            assert_eq!(timeline.frame(Some(pts)), Before::Nothing, "frame {i}");
        }
    }

    #[test]
    fn without_a_timestamp_the_rate_goes_on() {
        let mut timeline = at_25();
        timeline.frame(Some(0));
        timeline.frame(None);
        timeline.frame(None);
        assert_eq!(missing(&mut timeline, 120), 0);
        timeline.frame(None);
        assert_eq!(missing(&mut timeline, 240), 1);
    }

    #[test]
    fn a_variable_rate_has_no_holes() {
        let mut timeline = Timeline::default();
        timeline.set_rate(Some((0, 1)));
        assert_eq!(missing(&mut timeline, 0), 0);
        assert_eq!(missing(&mut timeline, 10_000), 0);
        assert_eq!(timeline.gap(0, Some(MS)), Before::Nothing);
    }

    #[test]
    fn the_same_rate_again_changes_nothing() {
        let mut timeline = at_25();
        timeline.frame(Some(0));
        timeline.set_rate(Some((50, 2)));
        assert_eq!(missing(&mut timeline, 80), 1);
        timeline.set_rate(Some((30, 1)));
        assert_eq!(missing(&mut timeline, 10_000), 0);
    }

    #[test]
    fn nothing_is_expected_after_a_reset() {
        let mut timeline = at_25();
        timeline.frame(Some(0));
        timeline.reset();
        assert_eq!(missing(&mut timeline, 10_000), 0);
    }

    #[test]
    fn a_jump_is_not_filled() {
        let mut timeline = at_25();
        timeline.frame(Some(0));
        let before = timeline.frame(Some(u64::MAX / 2));
        assert!(matches!(before, Before::Jump(_)), "{before:?}");
        let mut timeline = at_25();
        timeline.frame(Some(0));
        assert_eq!(missing(&mut timeline, 3_600_000), 3600 * 25 - 1);
    }

    #[test]
    fn announced_gaps_count_once() {
        let mut timeline = at_25();
        assert_eq!(missing(&mut timeline, 0), 0);
        assert_eq!(count(timeline.gap(40 * MS, Some(80 * MS))), 2);
        assert_eq!(missing(&mut timeline, 120), 0);
        // Without a duration the next frame tells.
        assert_eq!(count(timeline.gap(160 * MS, None)), 0);
        assert_eq!(missing(&mut timeline, 200), 1);
        // A gap that lies behind is none.
        assert_eq!(count(timeline.gap(0, Some(40 * MS))), 0);
        // One at the beginning counts from its start.
        let mut timeline = at_25();
        assert_eq!(count(timeline.gap(0, Some(200 * MS))), 5);
        assert_eq!(missing(&mut timeline, 200), 0);
    }
}
