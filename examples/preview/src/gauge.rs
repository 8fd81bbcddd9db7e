// SPDX-License-Identifier: MPL-2.0
//! How many frames are shown a second, and how old they are then.

use std::time::{Duration, Instant};

/// How often the figures change: so that they can be read.
const INTERVAL: Duration = Duration::from_millis(500);

/// What was shown of late.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    pub fps: f64,
    /// Mean age of the frames when they were shown.
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
    /// A frame of this age is on the screen. Returns figures when they are due.
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

    /// Frames stop coming for a while.
    pub fn pause(&mut self) {
        *self = Self::default();
    }
}
