// SPDX-License-Identifier: MPL-2.0
//! Periods of frames, and frame times that increase even if the timestamps do not.

use std::num::NonZeroU64;
use std::time::Duration;

use gst::prelude::MulDiv;

use facetrack::schedule::NOMINAL_PERIOD;

/// Converts timestamps to frame times.
#[derive(Debug, Default)]
pub(crate) struct FrameClock {
    last: Option<Duration>,
}

impl FrameClock {
    /// The time of the next frame: its timestamp, or one period after the last frame if that is
    /// missing or not later. `period` is `None` if it is not known.
    pub(crate) fn next(
        &mut self,
        timestamp: Option<Duration>,
        period: Option<Duration>,
    ) -> Duration {
        let period = period.filter(|period| !period.is_zero());
        let time = match (timestamp, self.last) {
            (Some(time), None) => time,
            (Some(time), Some(last)) if time > last => time,
            (_, Some(last)) => last + period.unwrap_or(NOMINAL_PERIOD),
            (None, None) => Duration::ZERO,
        };
        self.last = Some(time);
        time
    }

    /// Notes that the next frame does not follow the last one.
    pub(crate) fn reset(&mut self) {
        self.last = None;
    }
}

/// Frame period at a frame rate; `None` if it is variable.
pub(crate) fn period(fps: gst::Fraction) -> Option<Duration> {
    let (frames, seconds) = (fps.numer().try_into().ok()?, fps.denom().try_into().ok()?);
    let period = gst::ClockTime::SECOND.mul_div_floor(seconds, NonZeroU64::new(frames)?.get())?;
    Some(period.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_increase_whatever_the_timestamps() {
        let ms = Duration::from_millis;
        for (timestamps, want) in [
            ([Some(0), Some(20), Some(40)], [0, 20, 40]),
            ([None, None, None], [0, 10, 20]),
            ([Some(100), None, Some(105)], [100, 110, 120]),
            ([Some(100), Some(50), Some(200)], [100, 110, 200]),
            ([Some(100), Some(100), Some(100)], [100, 110, 120]),
        ] {
            let mut clock = FrameClock::default();
            let times = timestamps.map(|time| clock.next(time.map(ms), Some(ms(10))));
            assert_eq!(times, want.map(ms), "{timestamps:?}");
        }
    }

    #[test]
    fn frames_without_a_rate_are_a_nominal_period_apart() {
        for period in [None, Some(Duration::ZERO)] {
            let mut clock = FrameClock::default();
            clock.next(None, period);
            assert_eq!(clock.next(None, period), NOMINAL_PERIOD);
            clock.reset();
            assert_eq!(clock.next(Some(Duration::ZERO), period), Duration::ZERO);
        }
    }

    #[test]
    fn periods_of_frame_rates() {
        for (frames, seconds, want) in [
            (25, 1, Some(40_000_000)),
            (30_000, 1001, Some(33_366_666)),
            (0, 1, None),
            (-1, 1, None),
        ] {
            let want = want.map(Duration::from_nanos);
            assert_eq!(period(gst::Fraction::new(frames, seconds)), want);
        }
    }
}
