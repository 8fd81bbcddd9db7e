// SPDX-License-Identifier: MPL-2.0
//! Matches the frames of a stream with the frames of a record.

use crate::record::timeline::{Before, Continuity, Filling, Timeline};

/// The frames of a record by number and by time.
#[derive(Debug)]
pub struct Frames {
    /// Numbers in ascending order.
    numbers: Vec<u64>,
    /// Times with places, sorted.
    times: Vec<(u64, usize)>,
    /// The place that was last found by its time.
    last: Option<usize>,
}

impl Frames {
    /// Creates the frames with these numbers, which rise, and times in ns.
    pub fn new(frames: impl Iterator<Item = (u64, Option<u64>)>) -> Self {
        let (numbers, times): (Vec<u64>, Vec<Option<u64>>) = frames.unzip();
        let mut times: Vec<_> = times
            .into_iter()
            .enumerate()
            .filter_map(|(place, time)| Some((time?, place)))
            .collect();
        times.sort_unstable();
        Self {
            numbers,
            times,
            last: None,
        }
    }

    /// Returns true if any frame has a time.
    pub fn have_times(&self) -> bool {
        !self.times.is_empty()
    }

    /// Returns true if a frame is at most `tolerance` from `time`, ns.
    pub fn has(&self, time: u64, tolerance: u64) -> bool {
        let near = self
            .times
            .partition_point(|(known, _)| known + tolerance < time);
        let next = self.times.get(near);
        next.is_some_and(|(known, _)| known.abs_diff(time) <= tolerance)
    }

    /// The place of the frame before the one at `end` ns, which is at most `tolerance` from there.
    pub fn shown_until(&self, end: u64, tolerance: u64) -> Option<usize> {
        let next = self
            .times
            .partition_point(|(time, _)| time + tolerance < end);
        let (time, _) = self.times.get(next)?;
        let (_, place) = self.times.get(next.checked_sub(1)?)?;
        (time.abs_diff(end) <= tolerance).then_some(*place)
    }

    /// The place of the frame with this number.
    pub fn numbered(&self, number: u64) -> Option<usize> {
        self.numbers.binary_search(&number).ok()
    }

    /// The place of the frame that is nearest to `time` and at most `tolerance` from it, ns. Of
    /// several frames with the same time, as in a record of a video that was played twice, the next
    /// one is returned.
    pub fn at(&mut self, time: u64, tolerance: u64) -> Option<usize> {
        let after = self.times.partition_point(|(known, _)| *known < time);
        let neighbours = after.saturating_sub(1)..(after + 1).min(self.times.len());
        let (nearest, _) = self.times[neighbours]
            .iter()
            .min_by_key(|(known, _)| known.abs_diff(time))?;
        if nearest.abs_diff(time) > tolerance {
            return None;
        }
        let nearest = *nearest;
        let first = self.times.partition_point(|(known, _)| *known < nearest);
        let same = self.times[first..]
            .iter()
            .take_while(|(known, _)| *known == nearest)
            .map(|(_, place)| *place);
        let next = same.clone().find(|place| Some(*place) > self.last);
        self.last = next.or_else(|| same.clone().next());
        self.last
    }
}

/// Maximum time between the start of a segment and a later first frame, in periods: times are
/// rounded.
const EARLY: f64 = 0.1;

/// Counts the frames of a stream as a record does: from 1, wherever in the video the stream begins.
#[derive(Debug, Default)]
pub struct Counter {
    timeline: Timeline,
    /// Time of the video at which the stream began, ns.
    origin: Option<u64>,
    /// Frames before the next one.
    passed: u64,
}

impl Counter {
    /// Counts frames of a record whose holes are filled like this.
    pub fn new(filling: Filling) -> Self {
        Self {
            timeline: Timeline::new(filling),
            ..Self::default()
        }
    }

    /// Sets the nominal rate, a fraction of frames per second.
    pub fn set_rate(&mut self, rate: Option<(i32, i32)>) {
        self.timeline.set_rate(rate);
    }

    /// Handles a segment that begins at `start` ns of the video: the first one, or one that
    /// continues the one before, with any time.
    pub fn go_on(&mut self, start: u64) {
        self.timeline.reset();
        self.origin.get_or_insert(start);
    }

    /// Handles a seek to `start` ns of a video with this number of frames per second. Without a
    /// rate, frame 1 is expected there.
    ///
    /// This time may be within a frame. Decoders then yield this frame, and shorten it
    /// (`gst_video_decoder_clip_and_push_buf`).
    pub fn seek(&mut self, start: u64, fps: Option<f64>) {
        self.timeline.reset();
        let origin = *self.origin.get_or_insert(0);
        let passed = start.saturating_sub(origin) as f64 * 1e-9 * fps.unwrap_or(0.0);
        self.passed = (passed + EARLY) as u64;
    }

    /// Returns the number of the arriving frame, at `time` ns.
    pub fn frame(&mut self, time: Option<u64>, continuity: Continuity) -> u64 {
        let before = self.timeline.frame(time, continuity);
        self.pass(before);
        self.passed = self.passed.saturating_add(1);
        self.passed
    }

    /// Passes an announced gap from `start` on for `duration`, ns.
    pub fn gap(&mut self, start: u64, duration: Option<u64>, continuity: Continuity) {
        let before = self.timeline.gap(start, duration, continuity);
        self.pass(before);
    }

    fn pass(&mut self, before: Before) {
        if let Before::Hole(hole) = before {
            self.passed = self.passed.saturating_add(hole.frames);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn frames(times: &[u64]) -> Frames {
        let times = times.iter().map(|time| Some(time * MS));
        Frames::new(std::iter::zip(1.., times))
    }

    fn found(frames: &mut Frames, times: &[u64], tolerance: u64) -> Vec<Option<usize>> {
        times
            .iter()
            .map(|time| frames.at(time * MS, tolerance * MS))
            .collect()
    }

    #[test]
    fn the_nearest_frame_within_the_tolerance_is_found() {
        let mut at_25 = frames(&[0, 40, 80]);
        for (times, tolerance, want) in [
            (&[0, 40, 80][..], 0, vec![Some(0), Some(1), Some(2)]),
            (&[1, 39, 82, 83], 2, vec![Some(0), Some(1), Some(2), None]),
            // Twice as many frames, with the nearest record each: the earlier one of two.
            (
                &[0, 20, 40, 61],
                20,
                vec![Some(0), Some(0), Some(1), Some(2)],
            ),
            // Back and forth, as seeking does.
            (&[80, 0, 200, 40], 2, vec![Some(2), Some(0), None, Some(1)]),
        ] {
            assert_eq!(found(&mut at_25, times, tolerance), want, "{times:?}");
        }
        assert_eq!(frames(&[]).at(0, u64::MAX), None);
        assert_eq!(at_25.at(u64::MAX, u64::MAX), Some(2));
    }

    #[test]
    fn a_frame_is_shown_until_the_next_one() {
        let frames = frames(&[10, 50, 130]);
        for (end, want) in [
            (10, None),
            (50, Some(0)),
            (49, Some(0)),
            (130, Some(1)),
            (132, Some(1)),
            (90, None),
            (170, None),
        ] {
            assert_eq!(frames.shown_until(end * MS, 2 * MS), want, "{end}");
        }
        for (time, is) in [
            (10, true),
            (12, true),
            (13, false),
            (129, true),
            (140, false),
        ] {
            assert_eq!(frames.has(time * MS, 2 * MS), is, "{time}");
        }
    }

    #[test]
    fn times_that_come_twice_are_found_in_turn() {
        let mut twice = frames(&[0, 40, 0, 40]);
        let want = [0, 1, 2, 3, 0, 1].map(Some);
        assert_eq!(found(&mut twice, &[0, 40, 0, 40, 0, 40], 2), want);
    }

    #[test]
    fn numbers_may_have_holes() {
        let numbers = [(2, None), (3, Some(5)), (7, None)];
        let frames = Frames::new(numbers.into_iter());
        let places: Vec<_> = (1..9).map(|number| frames.numbered(number)).collect();
        let want = [None, Some(0), Some(1), None, None, None, Some(2), None];
        assert_eq!(places, want);
        assert!(frames.have_times());
    }

    const ON: Continuity = Continuity::Continuous;

    #[test]
    fn frames_are_counted_as_the_sink_does() {
        for (filling, lost) in [
            (Filling::Timestamps, ON),
            (Filling::Timestamps1, ON),
            (Filling::Loss, Continuity::Interrupted),
        ] {
            let mut counter = Counter::new(filling);
            counter.set_rate(Some((25, 1)));
            let numbers: Vec<_> = [(0, ON), (40, ON), (120, lost), (160, ON)]
                .map(|(ms, continuity)| counter.frame(Some(ms * MS), continuity))
                .into();
            assert_eq!(numbers, [1, 2, 4, 5], "{filling:?}");
            counter.gap(200 * MS, Some(80 * MS), lost);
            assert_eq!(counter.frame(Some(280 * MS), ON), 8);
            assert_eq!(counter.frame(None, ON), 9);
        }
        let mut counter = Counter::default();
        counter.set_rate(Some((25, 1)));
        assert_eq!(counter.frame(Some(0), ON), 1);
        assert_eq!(counter.frame(Some(120 * MS), ON), 2);
    }

    #[test]
    fn a_segment_that_goes_on_misses_nothing() {
        let mut counter = Counter::new(Filling::Timestamps);
        counter.set_rate(Some((25, 1)));
        assert_eq!(counter.frame(Some(0), ON), 1);
        counter.go_on(0);
        assert_eq!(counter.frame(Some(4_000 * MS), ON), 2);
        assert_eq!(counter.frame(Some(4_080 * MS), ON), 4);
    }

    #[test]
    fn a_seek_goes_where_its_time_says() {
        for (origin, start, fps, want) in [
            (0, 0, Some(25.0), 1),
            (0, 2_000, Some(25.0), 51),
            (0, 2_000, None, 1),
            (0, 33, Some(30.0), 2),
            // Shown from 1000 ms to 1040.
            (0, 1_030, Some(25.0), 26),
            (10_000, 12_000, Some(25.0), 51),
            (10_000, 2_000, Some(25.0), 1),
        ] {
            let mut counter = Counter::default();
            counter.go_on(origin * MS);
            assert_eq!(counter.frame(Some(origin * MS), ON), 1, "{origin}");
            counter.seek(start * MS, fps);
            let number = counter.frame(Some(start * MS), ON);
            assert_eq!(number, want, "{origin} {start} {fps:?}");
        }
        let mut counter = Counter::default();
        counter.seek(u64::MAX, Some(f64::MAX));
        assert_eq!(counter.frame(None, ON), u64::MAX);
        assert_eq!(counter.frame(None, ON), u64::MAX);
    }
}
