// SPDX-License-Identifier: MPL-2.0
//! Deviation of the times of frames from a constant rate.

/// Maximum number of corners of a hull that are kept. Times at a constant rate have some dozens,
/// however they are rounded. Our choice.
const MAX_CORNERS: usize = 1024;

/// Number and time of a frame, ns.
type Frame = (f64, f64);

/// The times of frames by number, reduced to their convex hull: for any constant rate, the frames
/// farthest from it are on the hull.
#[derive(Debug, Clone, Default)]
pub struct Drift {
    first: Option<Frame>,
    upper: Vec<Frame>,
    lower: Vec<Frame>,
}

impl Drift {
    /// Adds the frame with this number, which is higher than the last one, at `time` ns.
    pub fn add(&mut self, number: u64, time: u64) {
        let frame = (number as f64, time as f64);
        self.first.get_or_insert(frame);
        extend(&mut self.upper, frame, 1.0);
        extend(&mut self.lower, frame, -1.0);
    }

    /// Returns the maximum deviation of a frame from its time at a constant rate, counted from the
    /// first frame. `period` is the time from frame to frame. All in ns.
    pub fn max_deviation(&self, period: f64) -> f64 {
        let Some((first, start)) = self.first else {
            return 0.0;
        };
        let corners = self.upper.iter().chain(&self.lower);
        let errors = corners.map(|(number, time)| time - start - (number - first) * period);
        errors.map(f64::abs).fold(0.0, f64::max)
    }
}

/// Adds a corner on one side of the hull, and removes those that it makes superfluous.
fn extend(corners: &mut Vec<Frame>, frame: Frame, side: f64) {
    while let [.., before, last] = corners[..]
        && side * turn(before, last, frame) >= 0.0
    {
        corners.pop();
    }
    corners.push(frame);
    if corners.len() > MAX_CORNERS {
        let mut is_kept = false;
        corners.retain(|_| {
            is_kept = !is_kept;
            is_kept
        });
    }
}

/// Returns a positive number for a turn to later times.
fn turn(a: Frame, b: Frame, c: Frame) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(times: &[u64]) -> Drift {
        let mut drift = Drift::default();
        std::iter::zip(1.., times).for_each(|(number, time)| drift.add(number, *time));
        drift
    }

    #[test]
    fn the_furthest_frame_counts() {
        for (times, period, want) in [
            (&[][..], 40.0, 0.0),
            (&[500], 40.0, 0.0),
            (&[500, 540, 580], 40.0, 0.0),
            (&[0, 40, 95, 120], 40.0, 15.0),
            (&[0, 40, 65, 120], 40.0, 15.0),
            (&[0, 50, 100], 40.0, 20.0),
            // A time that comes again.
            (&[0, 40, 0, 40], 40.0, 80.0),
        ] {
            assert_eq!(of(times).max_deviation(period), want, "{times:?}");
        }
    }

    #[test]
    fn the_hull_is_as_good_as_all_frames() {
        // Jitter that looks random, then another rate.
        let jitter = |n: u64| n.wrapping_mul(2_654_435_761) % 17;
        let times: Vec<u64> = (0..3000_u64)
            .map(|n| 40 * n.min(2000) + 50 * n.saturating_sub(2000) + jitter(n))
            .collect();
        let drift = of(&times);
        for period in [39.0, 40.0, 43.3, 50.0] {
            let errors = times.iter().enumerate();
            let errors = errors.map(|(n, time)| *time as f64 - times[0] as f64 - n as f64 * period);
            let want = errors.map(f64::abs).fold(0.0, f64::max);
            assert!(
                (drift.max_deviation(period) - want).abs() < 1e-6,
                "{period}"
            );
        }
        let curve: Vec<u64> = (0..100_000_u64).map(|n| n * n).collect();
        assert!(of(&curve).lower.len() <= MAX_CORNERS + 1);
    }
}
