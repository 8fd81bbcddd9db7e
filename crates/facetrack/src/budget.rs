// SPDX-License-Identifier: MPL-2.0
//! At most so many inferences a second of a stream.

use std::time::Duration;

/// A frame may come this part of an interval before it is due: timestamps are rounded, and cameras are no clocks. Our choice.
const JITTER: u32 = 8;

/// Spends inferences along a stream's time.
#[derive(Debug, Default)]
pub struct Budget {
    /// When the next inference may be.
    next: Option<Duration>,
}

impl Budget {
    /// Whether a frame at `time` may be analysed at `max_fps` inferences a second, 0 for no limit. If so, it is counted.
    /// Times rise from call to call.
    ///
    /// A rate that does not divide the stream's is kept on average: 10 a second of 25 frames are every second and third
    /// frame in turn. What is not spent in time is not saved up.
    pub fn spend(&mut self, max_fps: f64, time: Duration) -> bool {
        let Some(interval) = interval(max_fps) else {
            self.next = None;
            return true;
        };
        let due = self.next.unwrap_or(time);
        if time.saturating_add(interval / JITTER) < due {
            return false;
        }
        let in_time = time < due.saturating_add(interval);
        let from = if in_time { due } else { time };
        self.next = Some(from.saturating_add(interval));
        true
    }

    /// The next frame may be analysed, whatever was before.
    pub fn reset(&mut self) {
        self.next = None;
    }
}

/// The distance of inferences; `None` without a limit.
fn interval(max_fps: f64) -> Option<Duration> {
    let limited = max_fps.is_finite() && max_fps > 0.0;
    limited.then(|| Duration::try_from_secs_f64(max_fps.recip()).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the frames that are analysed out of 10 at 25 a second.
    fn spent(max_fps: f64) -> Vec<u64> {
        let mut budget = Budget::default();
        (0..10)
            .filter(|frame| budget.spend(max_fps, Duration::from_millis(40 * frame)))
            .collect()
    }

    #[test]
    fn the_rate_is_kept_on_average() {
        let all: Vec<_> = (0..10).collect();
        for (max_fps, want) in [
            (0.0, all.clone()),
            (25.0, all.clone()),
            (1000.0, all.clone()),
            (f64::NAN, all.clone()),
            (-1.0, all),
            (12.5, vec![0, 2, 4, 6, 8]),
            (10.0, vec![0, 3, 5, 8]),
            (5.0, vec![0, 5]),
            (f64::MIN_POSITIVE, vec![0]),
        ] {
            assert_eq!(spent(max_fps), want, "{max_fps}");
        }
    }

    #[test]
    fn a_rate_that_is_that_of_the_stream_is_no_limit() {
        for (fps, times) in [
            (24.0, [0, 41_666_666, 83_333_333, 125_000_000]),
            (60.0, [0, 16_666_666, 33_333_333, 50_000_000]),
            (30.0, [0, 31_000_000, 68_000_000, 99_000_000]),
        ] {
            let mut budget = Budget::default();
            let spent = times.map(|time| budget.spend(fps, Duration::from_nanos(time)));
            assert_eq!(spent, [true; 4], "{fps}");
        }
    }

    #[test]
    fn nothing_is_saved_up() {
        let mut budget = Budget::default();
        let spent: Vec<_> = [0, 1000, 1010, 1100, 1110, 1200]
            .map(|ms| budget.spend(10.0, Duration::from_millis(ms)))
            .into();
        assert_eq!(spent, [true, true, false, true, false, true]);
        budget.reset();
        assert!(budget.spend(10.0, Duration::from_millis(1210)));
    }
}
