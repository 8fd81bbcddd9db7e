// SPDX-License-Identifier: MPL-2.0
//! The frame rate of a stream and its mean analysis time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Period over which frames are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// Maximum number of frames that are remembered. No display has a higher rate.
const MAX_FRAMES: usize = 1024;

/// Counts frames.
#[derive(Debug, Default)]
pub(super) struct Counter {
    frames: VecDeque<Instant>,
}

impl Counter {
    /// Counts a frame. Returns the present rate, frames per second, from the second frame on.
    pub(super) fn count(&mut self, now: Instant) -> Option<f32> {
        let is_old = |frame: &Instant| now.saturating_duration_since(*frame) > WINDOW;
        self.frames.push_back(now);
        // Two frames are kept, since a slow stream would have no rate otherwise.
        while self.frames.len() > MAX_FRAMES
            || self.frames.len() > 2 && self.frames.front().is_some_and(is_old)
        {
            self.frames.pop_front();
        }
        let since = now.saturating_duration_since(*self.frames.front()?);
        let frames = (self.frames.len() - 1) as f32;
        (!since.is_zero()).then(|| frames / since.as_secs_f32())
    }
}

/// Number of analyses in the mean. The older pipeline of `docs/run.md` shows the mean of ten, too.
const ANALYSES: usize = 10;

/// The times of the last analyses.
#[derive(Debug, Default)]
pub(super) struct AnalysisTimes(VecDeque<Duration>);

impl AnalysisTimes {
    /// Adds the time of an analysis, if the frame had one. Returns the mean of the last
    /// [`ANALYSES`].
    pub(super) fn mean_with(&mut self, time: Option<Duration>) -> Option<Duration> {
        self.0.extend(time);
        let surplus = self.0.len().saturating_sub(ANALYSES);
        self.0.drain(..surplus);
        let count = u32::try_from(self.0.len())
            .ok()
            .filter(|count| *count > 0)?;
        Some(self.0.iter().sum::<Duration>() / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_at_any_rate() {
        for (millis, want) in [(40, 25.0), (5000, 0.2), (1, 1000.0)] {
            let (mut counter, start) = (Counter::default(), Instant::now());
            let mut fps = None;
            for frame in 0..2000 {
                fps = counter.count(start + Duration::from_millis(millis * frame));
                assert_eq!(fps.is_some(), frame > 0);
            }
            let fps = fps.expect("frames");
            assert!((fps - want).abs() < 0.01 * want, "{fps} at {millis} ms");
            assert!(counter.frames.len() <= MAX_FRAMES);
        }
    }

    #[test]
    fn a_rate_that_changes_is_reported_within_a_second() {
        let (mut counter, start) = (Counter::default(), Instant::now());
        for frame in 0..100 {
            counter.count(start + Duration::from_millis(10 * frame));
        }
        let mut fps = None;
        for frame in 1..=12 {
            fps = counter.count(start + Duration::from_millis(990 + 100 * frame));
        }
        assert!((fps.expect("frames") - 10.0).abs() < 0.5, "{fps:?}");
    }

    #[test]
    fn a_pause_is_forgotten_with_the_second_frame_after_it() {
        let (mut counter, start) = (Counter::default(), Instant::now());
        for frame in 0..100 {
            counter.count(start + Duration::from_millis(40 * frame));
        }
        let after = start + Duration::from_secs(64);
        let rates = [0, 40, 80].map(|ms| counter.count(after + Duration::from_millis(ms)));
        let [first, second, third] = rates.map(|fps| fps.expect("frames"));
        assert!(first < 0.1, "{first}");
        for fps in [second, third] {
            assert!((fps - 25.0).abs() < 0.1, "{fps}");
        }
    }

    #[test]
    fn the_mean_is_of_the_last_ten_analyses() {
        let mut times = AnalysisTimes::default();
        assert_eq!(times.mean_with(None), None);
        for millis in 1..=20 {
            times.mean_with(Some(Duration::from_millis(millis)));
        }
        let mean = Some(Duration::from_micros(15_500));
        assert_eq!([times.mean_with(None), times.mean_with(None)], [mean; 2]);
    }

    #[test]
    fn frames_at_one_moment_have_no_rate() {
        let (mut counter, now) = (Counter::default(), Instant::now());
        assert_eq!([counter.count(now), counter.count(now)], [None, None]);
    }
}
