// SPDX-License-Identifier: MPL-2.0
//! Detects late frames.
//!
//! A frame is late if the next one should already have arrived, or if a sink reported that it
//! cannot show the frame in time. So a stream that is analysed too slowly lags by no more than its
//! usual latency, one frame and one analysis. If all frames are late, one frame in four is
//! analysed, or as many as take a quarter of the time.
//!
//! Cameras and decoders may take longer than they report. If frames stay late for a *window* (5
//! seconds, or longer for a slow engine), the detector compares their delays while frames are held:
//! a backlog shrinks, but the delay of a slow source does not.
//!
//! | state | event | next state |
//! |---|---|---|
//! | in time | a frame is overdue by more than a frame period | late |
//! | late | no frame is overdue for a window | in time |
//! | late for a window | the delay is as low as before | in time |
//! | late for a window | the minimum delay is stable for a second | in time, and this is the usual delay now |
//! | any | a sink reports that a frame came too late | in time, but frames are late up to the reported time |
//! | any | a sink reports that a frame came in time | the same, and the reported time is cleared |

use std::time::Duration;

use super::Arrival;

/// If a stream is always late, one of this number of frames is analysed, and the analysis takes at
/// most this fraction of the time, so that the stream can catch up. Our choice.
const SHARE: u32 = 4;

/// Time after which the delays of late frames are compared. Our choice.
const WINDOW: Duration = Duration::from_secs(5);

/// Time for which the minimum delay has to be stable. Our choice.
const SETTLING: Duration = Duration::from_secs(1);

/// The state of the detector.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// Minimum delay of the frames.
    usual_delay: Option<Duration>,
    /// Current period of late frames; `None` if frames are in time.
    period: Option<LatePeriod>,
    /// Frames up to this time are late, as reported by a sink.
    missed_until: Option<Duration>,
    /// Time of the last analysed frame.
    analyzed: Option<Duration>,
}

/// A period of late frames.
#[derive(Debug, Clone, Copy)]
struct LatePeriod {
    /// Arrival of the first late frame and the last one.
    first: Duration,
    last: Duration,
    /// Minimum delay since the last analysis, and the arrival of that frame.
    lowest: Option<(Duration, Duration)>,
}

impl Lateness {
    /// See [`Schedule::on_qos`](super::Schedule::on_qos).
    pub(super) fn on_qos(&mut self, time: Duration, lateness: i64) {
        let late = u64::try_from(lateness).ok().filter(|late| *late > 0);
        self.missed_until = late.map(|late| time.saturating_add(Duration::from_nanos(late)));
        if late.is_some() {
            self.period = None;
        }
    }

    /// Notes that a frame was analysed; `time` is `None` if it has no timestamp.
    pub(super) fn on_analyzed(&mut self, time: Option<Duration>) {
        self.analyzed = time.or(self.analyzed);
        if let Some(period) = &mut self.period {
            period.lowest = None;
        }
    }

    /// Observes a frame, whether late frames are held or not. An analysis takes `cost`.
    pub(super) fn observe(&mut self, arrival: Arrival, cost: Duration) {
        let delay = arrival.delay();
        self.usual_delay = Some(self.usual_delay.map_or(delay, |usual| usual.min(delay)));
        let is_recent =
            |period: &LatePeriod| arrival.now < period.last.saturating_add(window(cost));
        self.period = self.period.filter(is_recent);
    }

    /// Returns true if the frame that was observed last is late. Upstream reports the latency
    /// `upstream`.
    pub(super) fn is_late(&mut self, arrival: Arrival, upstream: Duration, cost: Duration) -> bool {
        !self.is_starved(arrival, cost)
            && (self.is_overdue(arrival, upstream, cost) || self.is_missed(arrival))
    }

    /// Returns true if a sink has reported that the frame that was observed last would be late.
    pub(super) fn is_reported_late(&mut self, arrival: Arrival, cost: Duration) -> bool {
        !self.is_starved(arrival, cost) && self.is_missed(arrival)
    }

    /// Returns true if the last analysed frame is too long ago.
    fn is_starved(&mut self, arrival: Arrival, cost: Duration) -> bool {
        let usual = cost.max(arrival.duration()).saturating_mul(SHARE);
        // Each analysis adds to the delays that are compared.
        let longest = if self.long_period(arrival.now, cost).is_some() {
            usual.saturating_mul(SHARE).max(2 * SETTLING)
        } else {
            usual
        };
        self.analyzed
            .is_none_or(|analyzed| arrival.time >= analyzed.saturating_add(longest))
    }

    /// Returns true if the next frame should already have arrived.
    fn is_overdue(&mut self, arrival: Arrival, upstream: Duration, cost: Duration) -> bool {
        let (now, delay) = (arrival.now, arrival.delay());
        let mut usual = self.usual_delay.unwrap_or(delay);
        if let Some(period) = self.long_period(now, cost) {
            let Some(delay) = period.usual_delay(arrival, usual) else {
                return true;
            };
            usual = delay;
            self.usual_delay = Some(usual);
            self.period = None;
        }
        let is_overdue = delay > usual.max(upstream).saturating_add(arrival.duration());
        if is_overdue {
            self.period.get_or_insert(LatePeriod::new(now)).last = now;
        }
        is_overdue
    }

    /// The period of late frames if it has lasted for a window.
    fn long_period(&mut self, now: Duration, cost: Duration) -> Option<&mut LatePeriod> {
        let period = self.period.as_mut();
        period.filter(|period| now >= period.first.saturating_add(window(cost)))
    }

    fn is_missed(&self, arrival: Arrival) -> bool {
        self.missed_until.is_some_and(|until| arrival.time <= until)
    }
}

impl LatePeriod {
    fn new(now: Duration) -> Self {
        Self {
            first: now,
            last: now,
            lowest: None,
        }
    }

    /// The usual delay after the period, by the delay of a frame; `None` as long as the reason why
    /// frames are late is unknown. The reason was a backlog behind analyses, which has been cleared,
    /// if the delay is as low as the usual one `before` the period. The reason is the source if the
    /// minimum delay is stable.
    fn usual_delay(&mut self, arrival: Arrival, before: Duration) -> Option<Duration> {
        let (now, delay) = (arrival.now, arrival.delay());
        self.last = now;
        let Some((lowest, since)) = self.lowest.filter(|(lowest, _)| delay >= *lowest) else {
            self.lowest = Some((delay, now));
            return None;
        };
        if delay <= before.saturating_add(arrival.duration() / 2) {
            return Some(before);
        }
        (now >= since.saturating_add(SETTLING)).then_some(lowest)
    }
}

fn window(cost: Duration) -> Duration {
    WINDOW.max(cost.saturating_mul(SHARE))
}
