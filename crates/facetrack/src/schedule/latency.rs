// SPDX-License-Identifier: MPL-2.0
//! Latency that the analysis adds.

use std::time::Duration;

/// A fast analysis lowers the cost by the difference divided by this: the latency has to cover slow
/// frames. Our choice.
const DECAY: u32 = 512;

/// Tolerance of the latency: half a nominal frame. A latency that is too high by less is not
/// reported again, because every sink would have to adjust. Our choice.
const TOLERANCE: Duration = Duration::from_millis(20);

/// The latency that was measured and the one that was reported.
#[derive(Debug, Default)]
pub(super) struct Latency {
    /// Cost of a slow analysis.
    pub cost: Duration,
    /// The latency to report.
    pub reported: Duration,
    /// True if that has changed.
    pub has_changed: bool,
}

impl Latency {
    /// Notes that an analysis took `cost`, in a stream with this frame period.
    pub(super) fn update(&mut self, cost: Duration, period: Option<Duration>) {
        self.cost = match self.cost.checked_sub(cost) {
            None => cost,
            Some(difference) => self.cost - difference / DECAY,
        };
        if let Some(latency) = replacement(self.reported, added_latency(self.cost, period)) {
            self.reported = latency;
            self.has_changed = true;
        }
    }
}

/// Latency that an analysis of `cost` adds. If it takes longer than a frame period, it may begin
/// when the frame is one period old.
fn added_latency(cost: Duration, period: Option<Duration>) -> Duration {
    let wait = period.filter(|period| cost > *period).unwrap_or_default();
    cost.saturating_add(wait)
}

/// The latency to report if `reported` is too low or far too high: `needed` and a quarter, in whole
/// milliseconds.
fn replacement(reported: Duration, needed: Duration) -> Option<Duration> {
    let is_sufficient = reported >= needed && reported - needed <= needed.max(TOLERANCE);
    let spare = needed.saturating_add(needed / 4);
    let whole = u64::try_from(spare.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let latency = Duration::from_millis(whole);
    (!is_sufficient && latency != reported).then_some(latency)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sufficient_latency_is_not_reported_again() {
        for (reported, needed, want) in [
            (0, 0, None),
            (0, 1, Some(2)),
            (10, 10, None),
            (10, 5, None),
            (10, 0, None),
            (10, 11, Some(14)),
            (50, 25, None),
            (50, 24, Some(30)),
            (21, 0, Some(0)),
        ] {
            let ms = Duration::from_millis;
            let latency = replacement(ms(reported), ms(needed));
            assert_eq!(latency, want.map(ms), "{reported} {needed}");
        }
    }
}
