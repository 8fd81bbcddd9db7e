// SPDX-License-Identifier: MPL-2.0
//! The rate of a stream, measured from the times of its frames.

use std::collections::BTreeMap;

use super::drift::Drift;

/// Buckets per doubling of an interval: each is 9 % wide, which is less than the jitter of one
/// rate.
const BUCKETS_PER_OCTAVE: f64 = 8.0;

/// Maximum factor between an interval and the usual one, if both belong to the same rate. Jitter
/// does not reach it, and a missing frame has a factor of 2.
const REGULAR: f64 = 1.75;

/// Maximum deviation of a frame from its time at a constant rate, in periods. With a larger one,
/// the time that follows from its number is nearer to another frame.
const MAX_ERROR: f64 = 0.5;

/// Intervals between frames, counted by their length. Its size does not depend on the number of
/// frames.
#[derive(Debug, Clone, Default)]
pub struct Rhythm {
    buckets: BTreeMap<i32, Bucket>,
    /// Intervals that were 0 or negative.
    backward: u64,
    longest: f64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    count: u64,
    sum: f64,
}

impl Bucket {
    fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
    }

    fn of_all<'a>(buckets: impl Iterator<Item = &'a Self>) -> Self {
        let mut all = Self::default();
        buckets.for_each(|bucket| all.add(bucket));
        all
    }
}

/// A rate in frames per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Frames per second; 0 if nothing is known.
    pub fps: f64,
    /// True if the time of a frame does not follow from its number.
    pub is_variable: bool,
}

impl Rhythm {
    /// Adds `count` equal intervals that take `time` ns together.
    pub fn add(&mut self, time: f64, count: u64) {
        let interval = time / count as f64;
        if interval <= 0.0 {
            self.backward += count;
            return;
        }
        let index = (libm::log2(interval) * BUCKETS_PER_OCTAVE).floor() as i32;
        self.buckets
            .entry(index)
            .or_default()
            .add(&Bucket { count, sum: time });
        self.longest = self.longest.max(interval);
    }

    /// Longest interval, ns; 0 without any.
    pub fn longest(&self) -> f64 {
        self.longest
    }

    /// Usual interval, ns, once `intervals` of them are known: the mean of those near the median.
    pub fn period(&self, intervals: u64) -> Option<f64> {
        let regular = self.regular()?;
        (self.all().count >= intervals).then(|| regular.mean())
    }

    /// The rate of the stream, whose caps say `nominal` frames per second, and whose frames have the
    /// times of `drift`.
    pub fn rate(&self, nominal: Option<f64>, drift: &Drift) -> Rate {
        let constant = |fps| Rate {
            fps,
            is_variable: false,
        };
        let Some(regular) = self.regular() else {
            return constant(nominal.unwrap_or(0.0));
        };
        let all = self.all();
        let mean = all.sum / (all.count + self.backward) as f64;
        let mut rates = nominal.into_iter().chain([1e9 / regular.mean()]);
        let fits = |fps: &f64| drift.max_deviation(1e9 / fps) * fps <= MAX_ERROR * 1e9;
        rates.find(fits).map_or(
            Rate {
                fps: 1e9 / mean,
                is_variable: true,
            },
            constant,
        )
    }

    fn all(&self) -> Bucket {
        Bucket::of_all(self.buckets.values())
    }

    /// Intervals near the median.
    fn regular(&self) -> Option<Bucket> {
        let middle = self.all().count / 2;
        let mut seen = 0;
        let median = self.buckets.values().find(|bucket| {
            seen += bucket.count;
            seen > middle
        })?;
        let near = median.mean() / REGULAR..=median.mean() * REGULAR;
        let regular = self.buckets.values();
        Some(Bucket::of_all(
            regular.filter(|bucket| near.contains(&bucket.mean())),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(intervals_ms: impl IntoIterator<Item = f64>) -> (Rhythm, Drift) {
        let (mut rhythm, mut drift) = (Rhythm::default(), Drift::default());
        let mut time = 0.0;
        drift.add(1, 0);
        for (number, interval) in std::iter::zip(2.., intervals_ms) {
            rhythm.add(interval * 1e6, 1);
            time += interval * 1e6;
            drift.add(number, time as u64);
        }
        (rhythm, drift)
    }

    fn constant(n: usize, ms: f64) -> impl Iterator<Item = f64> {
        std::iter::repeat_n(ms, n)
    }

    /// Intervals at a rate whose times are rounded to milliseconds, as Matroska has them.
    fn rounded(fps: f64, n: i32) -> impl Iterator<Item = f64> {
        let at = move |frame: i32| (f64::from(frame) * 1e3 / fps).round();
        (0..n).map(move |frame| at(frame + 1) - at(frame))
    }

    #[test]
    fn the_nominal_rate_stands_where_it_is_right() {
        let ntsc = 24_000.0 / 1001.0;
        let jitter = (0..1000).map(|i| 40.0 + [12.0, -12.0, 6.0, -6.0][i % 4]);
        for ((rhythm, drift), nominal) in [
            (of(constant(100, 40.0)), 25.0),
            (of(rounded(ntsc, 5000)), ntsc),
            (of(jitter), 25.0),
            (of([]), 25.0),
        ] {
            let rate = rhythm.rate(Some(nominal), &drift);
            assert_eq!((rate.fps, rate.is_variable), (nominal, false), "{rhythm:?}");
        }
    }

    #[test]
    fn a_rate_that_is_missing_or_wrong_is_measured() {
        for ((rhythm, drift), nominal, fps) in [
            (of([40.0]), None, 25.0),
            (of(constant(9, 40.0)), Some(500.0), 25.0),
            (of(constant(9, 40.0)), Some(90_000.0), 25.0),
            (of(constant(9, 100.0)), Some(25.0), 10.0),
            // 20 s, in which a rate of 30 is wrong by 0.6 frames.
            (of(rounded(29.97, 600)), Some(30.0), 29.97),
        ] {
            let rate = rhythm.rate(nominal, &drift);
            assert!(
                (rate.fps - fps).abs() < 1e-3 && !rate.is_variable,
                "{rate:?}"
            );
        }
        let (rhythm, drift) = of([]);
        assert_eq!(rhythm.rate(None, &drift).fps, 0.0);
    }

    #[test]
    fn a_variable_rate_is_frames_over_duration() {
        for ((rhythm, drift), fps) in [
            (
                of(constant(30, 40.0).chain(constant(24, 120.0))),
                54e3 / (30.0 * 40.0 + 24.0 * 120.0),
            ),
            // 30 frames per second, then 24.
            (
                of(constant(150, 1e3 / 30.0).chain(constant(120, 1e3 / 24.0))),
                27.0,
            ),
            // A still picture of 20 s.
            (of(constant(99, 40.0).chain([20_040.0])), 100e3 / 24_000.0),
            // Every fourth timestamp is repeated.
            (of((0..40).map(|i| [40.0, 40.0, 0.0, 80.0][i % 4])), 25.0),
            // A single uneven step.
            (
                of(constant(60, 40.0).chain([80.0]).chain(constant(60, 40.0))),
                121e3 / 4880.0,
            ),
        ] {
            for nominal in [Some(25.0), None] {
                let rate = rhythm.rate(nominal, &drift);
                assert!(
                    (rate.fps - fps).abs() < 1e-6 && rate.is_variable,
                    "{rate:?} {fps}"
                );
            }
        }
    }

    #[test]
    fn the_usual_interval_is_known_after_a_few() {
        let (rhythm, _) = of([40.0, 41.0, 39.0, 800.0]);
        assert_eq!(rhythm.period(5), None);
        let period = rhythm.period(4).expect("four");
        assert!((period - 40e6).abs() < 1e3, "{period}");
        assert_eq!(rhythm.longest(), 800e6);
        assert_eq!(Rhythm::default().period(0), None);
    }
}
