// SPDX-License-Identifier: MPL-2.0
//! Frames that are missing in a stream.
//!
//! The number of a frame is the number of decoded frames up to it, as other readers of the same
//! file count it. Times of a container may be uneven without a frame being lost, so empty frames
//! are filled in only where the stream reports an interruption. Filling by timestamps is for
//! streams of a constant rate whose numbers should follow the clock.

use super::rhythm::Rhythm;

/// The longest hole that is filled, ns: a minute. A longer one means another recording, or a change
/// of the clock. Our choice.
const LONGEST_HOLE: f64 = 60e9;

/// The longest hole that is filled in records of the schema `facetrack-1`, ns.
const LONGEST_HOLE_1: f64 = 3_600e9;

/// The fastest rate that is filled at before the rate is measured, frames per second. Containers
/// may claim millions.
const FASTEST: f64 = 240.0;

/// Intervals after which the measured rate decides how many frames a hole has.
const MEASURED: u64 = 3;

/// The measured period replaces the nominal one if it differs by more than this factor. A few
/// intervals with jitter do not.
const WRONG: f64 = 1.5;

/// Weight of a single frame in the expected time: jitter moves it by an eighth, and with a drift of
/// 1 % it lags by a twelfth of a period. Our choice.
const FOLLOW: f64 = 0.125;

/// Maximum deviation of a frame from its expected time, in periods.
const TOLERANCE: f64 = 0.5;

/// Rule for filling holes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Filling {
    /// No hole is filled.
    Never,
    /// Holes where the stream was interrupted are filled.
    #[default]
    Loss,
    /// All holes are filled, at a constant nominal rate.
    Timestamps,
    /// All holes are filled, as in records of the schema `facetrack-1`.
    Timestamps1,
}

/// Knowledge about lost frames before a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuity {
    /// No frames are lost.
    Continuous,
    /// Frames may be lost, if time has passed.
    Uncertain,
    /// The stream was interrupted: frames are lost if time has passed.
    Interrupted,
}

/// Follows the frames of one stream.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    filling: Filling,
    /// Time from frame to frame by the caps, ns; `None` for a variable or unknown rate.
    nominal: Option<f64>,
    /// Actual or expected time of the last frame, ns; `None` if the next frame may have any time.
    last: Option<f64>,
    /// Time of the last frame, ns.
    seen: Option<f64>,
    /// Intervals between the frames that arrived.
    arrived: Rhythm,
    /// Intervals between frames, including those that were filled in.
    recorded: Rhythm,
}

/// Frames missing between two frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hole {
    /// Number of missing frames.
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

/// The missing frames before a frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Before {
    /// The frame before has arrived; nothing is missing.
    Nothing,
    /// Frames that are missing.
    Hole(Hole),
    /// A jump of this many seconds, too long to be filled.
    Jump(f64),
}

impl Timeline {
    /// Creates the timeline of a stream whose holes are filled by this rule.
    pub fn new(filling: Filling) -> Self {
        Self {
            filling,
            ..Self::default()
        }
    }

    /// Sets the nominal rate as a fraction of frames per second; `None` or one that is not positive
    /// is variable. After a change, the next frame may have any time.
    pub fn set_rate(&mut self, rate: Option<(i32, i32)>) {
        let nominal = rate
            .filter(|(numerator, denominator)| *numerator > 0 && *denominator > 0)
            .map(|(numerator, denominator)| 1e9 * f64::from(denominator) / f64::from(numerator));
        if nominal != self.nominal {
            self.nominal = nominal;
            self.reset();
        }
    }

    /// Forgets the expected time: the next frame may have any time.
    pub fn reset(&mut self) {
        self.last = None;
        self.seen = None;
    }

    /// Intervals between the frames of the record.
    pub fn rhythm(&self) -> &Rhythm {
        &self.recorded
    }

    /// Time from frame to frame, ns: measured, or nominal as long as it is not measured.
    pub fn period(&self) -> Option<f64> {
        self.arrived.period(1).or(self.nominal)
    }

    /// Takes a frame at `pts` ns and returns the missing frames before it.
    pub fn frame(&mut self, pts: Option<u64>, continuity: Continuity) -> Before {
        let Some(pts) = pts.map(|pts| pts as f64) else {
            self.last = self.last.zip(self.filled_period()).map(|(a, b)| a + b);
            self.seen = None;
            return Before::Nothing;
        };
        let interval = self.seen.replace(pts).map(|seen| pts - seen);
        let continuous = interval.filter(|_| continuity != Continuity::Interrupted);
        if let Some(interval) = continuous {
            self.arrived.add(interval, 1);
        }
        let before = self.missing(pts, continuity);
        match before {
            Before::Hole(hole) => interval.map(|time| (time, hole.frames + 1)),
            _ => continuous.map(|time| (time, 1)),
        }
        .into_iter()
        .for_each(|(time, count)| self.recorded.add(time, count));
        before
    }

    fn missing(&mut self, pts: f64, continuity: Continuity) -> Before {
        let period = self.filled_period().filter(|_| self.may_miss(continuity));
        let (Some(period), Some(last)) = (period, self.last) else {
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
        self.before(expected, pts, period)
    }

    /// Takes an announced gap from `start` on for `duration` ns, and returns the frames that it
    /// stands for. Elements also announce still pictures: frames are lost only if the gap
    /// interrupts the stream, or if time counts.
    pub fn gap(&mut self, start: u64, duration: Option<u64>, continuity: Continuity) -> Before {
        let (Some(period), Some(duration)) = (self.filled_period(), duration) else {
            return Before::Nothing;
        };
        let start = start as f64;
        let has_begun = self.last.is_some() || self.filling != Filling::Loss;
        if !has_begun || !self.may_miss(continuity) {
            return Before::Nothing;
        }
        let expected = self.last.map_or(start, |last| last + period);
        let end = start + duration as f64;
        if end <= expected {
            return Before::Nothing;
        }
        self.last = Some(end - period);
        self.seen = None;
        self.before(expected, end, period)
    }

    /// Returns true if frames may be missing, by the time or by the continuity.
    fn may_miss(&self, continuity: Continuity) -> bool {
        self.filling != Filling::Loss || continuity != Continuity::Continuous
    }

    /// Time from frame to frame that holes are filled with, ns: the nominal one unless frames come
    /// at another rate.
    fn filled_period(&self) -> Option<f64> {
        match (self.filling, self.nominal) {
            (Filling::Never, _) | (Filling::Timestamps, None) => return None,
            (Filling::Timestamps1, nominal) => return nominal,
            (Filling::Loss | Filling::Timestamps, _) => (),
        }
        let nominal = self.nominal.map(|nominal| nominal.max(1e9 / FASTEST));
        match (nominal, self.arrived.period(MEASURED)) {
            (Some(nominal), Some(measured))
                if !(1.0 / WRONG..=WRONG).contains(&(measured / nominal)) =>
            {
                Some(measured)
            }
            (nominal, measured) => nominal.or(measured),
        }
    }

    /// Returns the hole between the expected time and the next frame.
    fn before(&self, expected: f64, next: f64, period: f64) -> Before {
        let longest = match self.filling {
            Filling::Timestamps1 => LONGEST_HOLE_1,
            _ => LONGEST_HOLE,
        };
        if next - expected > longest {
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
}

#[cfg(test)]
mod tests {
    use super::super::drift::Drift;
    use super::Continuity::{Continuous, Interrupted};
    use super::*;

    const MS: u64 = 1_000_000;

    fn at_25(filling: Filling) -> Timeline {
        let mut timeline = Timeline::new(filling);
        timeline.set_rate(Some((25, 1)));
        timeline
    }

    fn by_time() -> Timeline {
        at_25(Filling::Timestamps)
    }

    fn missing(timeline: &mut Timeline, pts_ms: u64) -> u64 {
        count(timeline.frame(Some(pts_ms * MS), Continuous))
    }

    fn lost(timeline: &mut Timeline, pts_ms: u64) -> u64 {
        count(timeline.frame(Some(pts_ms * MS), Interrupted))
    }

    fn count(before: Before) -> u64 {
        match before {
            Before::Hole(hole) => hole.frames,
            Before::Nothing => 0,
            Before::Jump(seconds) => panic!("a jump of {seconds} s"),
        }
    }

    #[test]
    fn uneven_times_are_no_loss() {
        let mut timeline = at_25(Filling::Loss);
        for pts in [0, 80, 520, 30_000, 30_000, 29_000, 29_040] {
            assert_eq!(missing(&mut timeline, pts), 0, "{pts}");
        }
    }

    #[test]
    fn an_interruption_is_as_long_as_the_time_that_passed() {
        let mut timeline = at_25(Filling::Loss);
        let found: Vec<u64> = [(0, Interrupted), (40, Interrupted), (80, Continuous)]
            .into_iter()
            .chain([(100, Interrupted), (260, Interrupted), (300, Continuous)])
            .map(|(pts, continuity)| count(timeline.frame(Some(pts * MS), continuity)))
            .collect();
        assert_eq!(found, [0, 0, 0, 0, 3, 0]);
        let mut never = at_25(Filling::Never);
        assert_eq!(lost(&mut never, 0) + lost(&mut never, 400), 0);
    }

    #[test]
    fn where_frames_may_be_dropped_time_shows_it() {
        let mut timeline = at_25(Filling::Loss);
        let found: Vec<u64> = [0, 40, 80, 200, 240]
            .map(|pts| count(timeline.frame(Some(pts * MS), Continuity::Uncertain)))
            .into();
        assert_eq!(found, [0, 0, 0, 2, 0]);
        assert_eq!(timeline.rhythm().period(6), Some(40e6));
    }

    #[test]
    fn holes_in_time_are_counted_in_frames() {
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
            let mut timeline = by_time();
            let found: Vec<u64> = times
                .iter()
                .map(|pts| missing(&mut timeline, *pts))
                .collect();
            assert_eq!(found, expected, "{times:?}");
        }
    }

    #[test]
    fn missing_frames_have_the_times_they_were_expected_at() {
        let mut timeline = at_25(Filling::Loss);
        timeline.frame(Some(0), Continuous);
        let Before::Hole(hole) = timeline.frame(Some(160 * MS), Interrupted) else {
            panic!("no hole");
        };
        assert_eq!(
            hole.times().collect::<Vec<_>>(),
            [40 * MS, 80 * MS, 120 * MS]
        );
    }

    #[test]
    fn a_hole_has_no_more_frames_than_the_measured_rate() {
        for filling in [Filling::Loss, Filling::Timestamps] {
            let mut timeline = Timeline::new(filling);
            timeline.set_rate(Some((1_000_000, 1)));
            // Until three intervals are known, a frame every 4 ms is believed at most.
            let filled: u64 = (0..4).map(|i| missing(&mut timeline, i * 40)).sum();
            assert!(filled <= 3 * 9, "{filled}");
            assert_eq!(missing(&mut timeline, 160), 0);
            assert_eq!(lost(&mut timeline, 280), 2, "{filling:?}");
        }
        // Without a nominal rate only a loss is filled.
        for (filling, want) in [(Filling::Loss, 2), (Filling::Timestamps, 0)] {
            let mut timeline = Timeline::new(filling);
            (0..5).for_each(|i| assert_eq!(missing(&mut timeline, i * 40), 0));
            assert_eq!(lost(&mut timeline, 280), want);
        }
    }

    #[test]
    fn jitter_and_drift_are_no_holes() {
        let mut timeline = by_time();
        for i in 0..10_000u64 {
            // ±12 ms of jitter on 40 ms, and 0.5 % slower than nominal.
            let pts = i * 40_200_000 + (i * 7919 % 25) * MS;
            let before = timeline.frame(Some(pts), Continuous);
            assert_eq!(before, Before::Nothing, "frame {i}");
        }
    }

    #[test]
    fn containers_that_round_to_milliseconds_have_no_holes() {
        let mut timeline = Timeline::new(Filling::Timestamps);
        timeline.set_rate(Some((30_000, 1001)));
        for i in 0..100_000u64 {
            let pts = (i * 1_001_000 + 15_000) / 30_000 * MS;
            let before = timeline.frame(Some(pts), Continuous);
            assert_eq!(before, Before::Nothing, "frame {i}");
        }
    }

    #[test]
    fn without_a_timestamp_the_rate_goes_on() {
        let mut timeline = by_time();
        timeline.frame(Some(0), Continuous);
        timeline.frame(None, Continuous);
        timeline.frame(None, Continuous);
        assert_eq!(missing(&mut timeline, 120), 0);
        timeline.frame(None, Continuous);
        assert_eq!(missing(&mut timeline, 240), 1);
    }

    #[test]
    fn a_variable_rate_has_no_holes() {
        let mut timeline = Timeline::new(Filling::Timestamps);
        timeline.set_rate(Some((0, 1)));
        assert_eq!(missing(&mut timeline, 0), 0);
        assert_eq!(missing(&mut timeline, 10_000), 0);
        assert_eq!(timeline.gap(0, Some(MS), Interrupted), Before::Nothing);
    }

    #[test]
    fn the_same_rate_again_changes_nothing() {
        let mut timeline = by_time();
        timeline.frame(Some(0), Continuous);
        timeline.set_rate(Some((50, 2)));
        assert_eq!(missing(&mut timeline, 80), 1);
        timeline.set_rate(Some((30, 1)));
        assert_eq!(missing(&mut timeline, 10_000), 0);
    }

    #[test]
    fn nothing_is_expected_after_a_reset() {
        for mut timeline in [by_time(), at_25(Filling::Loss)] {
            timeline.frame(Some(0), Continuous);
            timeline.reset();
            assert_eq!(lost(&mut timeline, 10_000), 0);
            assert_eq!(timeline.rhythm().longest(), 0.0);
        }
    }

    #[test]
    fn a_jump_is_not_filled() {
        for (filling, longest) in [
            (Filling::Loss, 60),
            (Filling::Timestamps, 60),
            (Filling::Timestamps1, 3600),
        ] {
            let mut timeline = at_25(filling);
            timeline.frame(Some(0), Continuous);
            let before = timeline.frame(Some(u64::MAX / 2), Interrupted);
            assert!(matches!(before, Before::Jump(_)), "{before:?}");
            let mut timeline = at_25(filling);
            timeline.frame(Some(0), Continuous);
            assert_eq!(lost(&mut timeline, longest * 1000), longest * 25 - 1);
        }
    }

    #[test]
    fn announced_gaps_count_once() {
        let mut timeline = by_time();
        assert_eq!(missing(&mut timeline, 0), 0);
        assert_eq!(count(timeline.gap(40 * MS, Some(80 * MS), Continuous)), 2);
        assert_eq!(missing(&mut timeline, 120), 0);
        // Without a duration the next frame shows it.
        assert_eq!(count(timeline.gap(160 * MS, None, Continuous)), 0);
        assert_eq!(missing(&mut timeline, 200), 1);
        // A gap that lies behind is none.
        assert_eq!(count(timeline.gap(0, Some(40 * MS), Continuous)), 0);
        // One at the beginning counts from its start.
        let mut timeline = by_time();
        assert_eq!(count(timeline.gap(0, Some(200 * MS), Continuous)), 5);
        assert_eq!(missing(&mut timeline, 200), 0);
    }

    #[test]
    fn only_gaps_of_missing_data_are_losses() {
        let mut timeline = at_25(Filling::Loss);
        assert_eq!(count(timeline.gap(0, Some(200 * MS), Interrupted)), 0);
        assert_eq!(missing(&mut timeline, 200), 0);
        assert_eq!(count(timeline.gap(240 * MS, Some(80 * MS), Continuous)), 0);
        assert_eq!(count(timeline.gap(240 * MS, Some(80 * MS), Interrupted)), 2);
        assert_eq!(missing(&mut timeline, 320), 0);
    }

    #[test]
    fn the_rate_of_the_record_counts_what_was_filled_in() {
        let mut timeline = at_25(Filling::Loss);
        for i in 0..20 {
            missing(&mut timeline, i * 40);
        }
        assert_eq!(lost(&mut timeline, 4_000), 80);
        for i in 0..20 {
            missing(&mut timeline, 4_040 + i * 40);
        }
        let rate = timeline.rhythm().rate(Some(25.0), &Drift::default());
        assert_eq!((rate.fps, rate.is_variable), (25.0, false));
    }
}
