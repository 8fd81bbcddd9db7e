// SPDX-License-Identifier: MPL-2.0
//! The rate and the age of displayed frames.

use std::time::{Duration, Instant};

/// Period between changes of the displayed numbers, long enough to read them.
const INTERVAL: Duration = Duration::from_millis(500);

/// Rate and age over the last period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    pub fps: f64,
    /// Mean age of the frames when displayed.
    pub age: Duration,
}

/// Counts frames.
#[derive(Debug, Default)]
pub struct Gauge {
    since: Option<Instant>,
    frames: u32,
    ages: Duration,
}

impl Gauge {
    /// Counts a displayed frame of this age. Returns numbers at the end of a period.
    pub fn count(&mut self, now: Instant, age: Duration) -> Option<Figures> {
        let Some(since) = self.since else {
            self.since = Some(now);
            return None;
        };
        self.frames += 1;
        self.ages += age;
        let time = now.duration_since(since);
        if time < INTERVAL {
            return None;
        }
        let figures = Figures {
            fps: f64::from(self.frames) / time.as_secs_f64(),
            age: self.ages / self.frames,
        };
        *self = Self {
            since: Some(now),
            ..Self::default()
        };
        Some(figures)
    }

    /// Resets the period before a pause.
    pub fn pause(&mut self) {
        *self = Self::default();
    }
}
