// SPDX-License-Identifier: MPL-2.0
//! Decides for each frame if it is analysed. The faces of the other frames are held or predicted.
//!
//! Times are arguments: running times and the stream time of frames, and the time that an analysis
//! took. An application requests a [`Decision`] for each frame, in order, and reports the time of
//! each analysis.
//!
//! | follows | late | `inference-interval` reached | `max-fps` allows | decision |
//! |---|---|---|---|---|
//! | nothing, a reset, or a hard cut | any | any | any | analyse |
//! | a failed analysis | any | any | no | hold |
//! | a failed analysis | any | any | yes | analyse |
//! | an analysed frame | yes | any | any | hold |
//! | an analysed frame | no | no | any | hold |
//! | an analysed frame | no | yes | no | hold |
//! | an analysed frame | no | yes | yes | analyse |
//!
//! Frames that are held count for `inference-interval` but not for `max-fps`. `lateness` defines
//! when a frame is late.

mod latency;
mod lateness;

use std::time::Duration;

use smart_default::SmartDefault;

use crate::words::choices;
use latency::Latency;
use lateness::Lateness;

/// Frame period if neither caps nor buffers specify one: 25 frames per second.
pub const NOMINAL_PERIOD: Duration = Duration::from_millis(40);

/// A frame may come early by this fraction of an interval, because timestamps are rounded and
/// cameras jitter. Our choice.
const JITTER: u32 = 8;

choices! {
    /// Handling of frames that come late.
    pub enum LateFrames, words late_frames_words {
        Auto = "auto": "hold in live pipelines; in others only if a sink reports with QoS events that it is late, as when a file is played on a busy machine",
        Hold = "hold": "hold the faces of the last analysed frame",
        Analyze = "analyze": "analyse every frame, however late",
    }
}

/// Settings of a [`Schedule`]. They may change from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
pub struct ScheduleSettings {
    /// Handling of late frames.
    pub late_frames: LateFrames,
    /// Frames 1, n+1, 2n+1 … are analysed.
    #[default(1)]
    pub inference_interval: u32,
    /// Maximum number of frames that are analysed per second of stream time; 0 for no limit.
    pub max_fps: f64,
}

/// Latency of the elements upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Upstream {
    /// True if the source is live.
    pub live: bool,
    /// Minimum latency.
    pub latency: Duration,
}

/// The arrival of a frame, in running time.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The time at which it arrives.
    pub now: Duration,
    /// The frame's own time.
    pub time: Duration,
    /// Period of the frames; `None` if unknown.
    pub period: Option<Duration>,
}

impl Arrival {
    fn delay(self) -> Duration {
        self.now.saturating_sub(self.time)
    }

    fn duration(self) -> Duration {
        self.period.unwrap_or(NOMINAL_PERIOD)
    }
}

/// A frame to decide on.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// Time of the frame since the start of the stream, which increases from frame to frame.
    pub time: Duration,
    /// Arrival; `None` for a frame without a timestamp, which is never late.
    pub arrival: Option<Arrival>,
    /// True if the frame follows an analysed one, so that there are faces to hold.
    pub can_hold: bool,
    /// True if the frame follows a hard cut.
    pub cut: bool,
}

/// The decision on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Analyse the frame.
    Analyze,
    /// Hold or predict the faces of the last analysed frame.
    Hold,
}

/// The schedule of a stream.
#[derive(Debug, Default)]
pub struct Schedule {
    /// Latency upstream; `None` until it was queried.
    upstream: Option<Upstream>,
    /// True if upstream has to be queried again.
    is_invalid: bool,
    lateness: Lateness,
    latency: Latency,
    /// Frames since the last analysed one.
    since_analysis: u32,
    /// True if the last analysis was not reported yet. An analysis that is never reported has
    /// failed.
    is_unreported: bool,
    rate: RateLimit,
}

impl Schedule {
    /// Returns true if the latency upstream has to be queried now. The last answer is valid until
    /// the next one.
    pub fn take_invalid(&mut self) -> bool {
        std::mem::take(&mut self.is_invalid) || self.upstream.is_none()
    }

    /// Sets the answer to a latency query.
    pub fn set_upstream(&mut self, upstream: Upstream) {
        self.upstream = Some(upstream);
    }

    /// Notes that the latency upstream may have changed.
    pub fn invalidate_latency(&mut self) {
        self.is_invalid = true;
    }

    /// Begins a discontinuous part of the stream. The cost of an analysis is kept.
    pub fn reset(&mut self) {
        self.lateness = Lateness::default();
        self.is_unreported = false;
    }

    /// Forgets the cost of an analysis, because another engine takes over. The latency is kept
    /// until its first frame.
    pub fn forget_cost(&mut self) {
        // The next analysis determines it.
        self.latency.cost = Duration::ZERO;
    }

    /// Handles the report of a sink that the frame of this running time came `lateness` ns after
    /// its deadline, or before it if negative.
    pub fn on_qos(&mut self, time: Duration, lateness: i64) {
        self.lateness.on_qos(time, lateness);
    }

    /// Decides on the next frame.
    pub fn decide(&mut self, settings: &ScheduleSettings, frame: &Candidate) -> Decision {
        let is_late = frame
            .arrival
            .is_some_and(|arrival| self.is_late(settings.late_frames, arrival));
        self.since_analysis = self.since_analysis.saturating_add(1);
        let can_hold = frame.can_hold && !frame.cut;
        if can_hold && (is_late || self.since_analysis < settings.inference_interval) {
            return Decision::Hold;
        }
        if frame.cut || (!can_hold && !self.is_unreported) {
            self.rate = RateLimit::default();
        }
        if !self.rate.allows(settings.max_fps, frame.time) {
            return Decision::Hold;
        }
        self.since_analysis = 0;
        self.is_unreported = true;
        Decision::Analyze
    }

    /// Notes that the frame of `arrival` was analysed, which took `cost`. An analysis that is not
    /// reported until the next decision has failed.
    pub fn on_analyzed(&mut self, arrival: Option<Arrival>, cost: Duration) {
        self.is_unreported = false;
        self.lateness
            .on_analyzed(arrival.map(|arrival| arrival.time));
        let period = arrival.and_then(|arrival| arrival.period);
        self.latency.update(cost, period);
    }

    /// Returns true if the latency has changed since the last call. The latency of a pipeline that
    /// is not live never changes.
    pub fn take_latency_change(&mut self) -> bool {
        self.is_live() && std::mem::take(&mut self.latency.has_changed)
    }

    /// Latency that the analysis adds.
    pub fn latency(&self) -> Duration {
        self.latency.reported
    }

    fn is_late(&mut self, late_frames: LateFrames, arrival: Arrival) -> bool {
        let cost = self.latency.cost;
        let upstream = self.upstream.map_or(Duration::ZERO, |up| up.latency);
        self.lateness.observe(arrival, cost);
        match late_frames {
            LateFrames::Analyze => false,
            // Perhaps no sink waits for the frames of a file, so only reports of a sink count.
            LateFrames::Auto if !self.is_live() => self.lateness.is_reported_late(arrival, cost),
            LateFrames::Auto | LateFrames::Hold => self.lateness.is_late(arrival, upstream, cost),
        }
    }

    fn is_live(&self) -> bool {
        self.upstream.is_some_and(|upstream| upstream.live)
    }
}

/// Limits the number of analyses per second of stream time.
#[derive(Debug, Default)]
struct RateLimit {
    max_fps: f64,
    /// Time of the next analysis.
    next: Option<Duration>,
}

impl RateLimit {
    /// Returns true if a frame at `time` may be analysed at `max_fps` analyses per second, 0 for no
    /// limit. If so, it is counted.
    ///
    /// A rate that does not divide the frame rate is kept on average: 10 per second of 25 frames
    /// are every second and third frame in turn. Unused analyses are not saved for later.
    fn allows(&mut self, max_fps: f64, time: Duration) -> bool {
        if self.max_fps != max_fps {
            (self.max_fps, self.next) = (max_fps, None);
        }
        let Some(interval) = interval(max_fps) else {
            return true;
        };
        let due = self.next.unwrap_or(time);
        if time.saturating_add(interval / JITTER) < due {
            return false;
        }
        let is_in_time = time < due.saturating_add(interval);
        let from = if is_in_time { due } else { time };
        self.next = Some(from.saturating_add(interval));
        true
    }
}

/// Interval between analyses; `None` without a limit.
fn interval(max_fps: f64) -> Option<Duration> {
    let is_limited = max_fps.is_finite() && max_fps > 0.0;
    is_limited.then(|| Duration::try_from_secs_f64(max_fps.recip()).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests;
