// SPDX-License-Identifier: MPL-2.0
//! Times of the stages of an analysis, in constant memory.

use std::cell::Cell;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use smart_default::SmartDefault;
use strum::{IntoStaticStr, VariantArray};

use facetrack_assets::lock::lock;

/// A stage of the work on a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum Stage {
    /// Finding faces with a detector.
    Detection,
    /// Measuring landmarks and everything else that needs pixels.
    Landmarks,
    /// Assigning identities.
    Track,
    /// Smoothing landmarks.
    Smooth,
    /// Deriving measurements from landmarks, such as pose and blendshapes.
    Complete,
    /// The whole frame.
    Total,
}

impl Stage {
    /// The name in logs and statistics.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

thread_local! {
    /// Time of the detectors since the search of this thread began.
    static DETECTION: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Runs a detector. Its time counts as [`Stage::Detection`].
pub(crate) fn time_detection<T>(detect: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = detect();
    DETECTION.set(DETECTION.get() + start.elapsed());
    result
}

/// Times of all stages. Other threads may read them while frames are analysed.
#[derive(Debug, Default)]
pub struct Profile {
    stages: Mutex<[Histogram; Stage::VARIANTS.len()]>,
}

/// Statistics of a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageSummary {
    /// The stage.
    pub stage: Stage,
    /// Number of runs.
    pub count: u64,
    /// Mean time, ms.
    pub mean: f64,
    /// Median time, ms, with the precision of [`STEP`].
    pub p50: f64,
    /// 95th percentile of the times, ms, with the precision of [`STEP`].
    pub p95: f64,
}

impl Profile {
    /// Runs `work` and adds its time to `stage`.
    pub fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.add(stage, start.elapsed());
        result
    }

    /// Runs a search for faces. The time that its detectors take counts as [`Stage::Detection`], the
    /// rest as [`Stage::Landmarks`].
    pub fn time_search<T>(&self, search: impl FnOnce() -> T) -> T {
        DETECTION.set(Duration::ZERO);
        let start = Instant::now();
        let result = search();
        let (all, detection) = (start.elapsed(), DETECTION.get());
        self.add(Stage::Detection, detection);
        self.add(Stage::Landmarks, all.saturating_sub(detection));
        result
    }

    /// Adds a time of `stage`.
    pub fn add(&self, stage: Stage, time: Duration) {
        lock(&self.stages)[stage as usize].add(time);
    }

    /// Statistics of all stages, in the order of the work.
    pub fn summary(&self) -> [StageSummary; Stage::VARIANTS.len()] {
        let stages = lock(&self.stages);
        std::array::from_fn(|index| stages[index].summary(Stage::VARIANTS[index]))
    }

    /// Time of the last run of `stage`; 0 before the first one.
    pub fn last(&self, stage: Stage) -> Duration {
        lock(&self.stages)[stage as usize].last
    }

    /// Number of frames.
    pub fn frames(&self) -> u64 {
        lock(&self.stages)[Stage::Total as usize].count
    }

    /// A line for the log: mean times over all frames, including those without faces, and GPU
    /// memory, MiB, if a GPU is used. The older pipeline of `docs/run.md` wrote it in this form.
    pub fn line(&self, vram: Option<u64>) -> String {
        let frames = self.frames();
        let stages: Vec<_> = self
            .summary()
            .iter()
            .map(|stage| {
                let per_frame = stage.mean * stage.count as f64 / frames.max(1) as f64;
                format!("{}={per_frame:.1}ms", stage.stage.name())
            })
            .collect();
        let vram = vram.map_or_else(String::new, |mebibytes| format!(", VRAM={mebibytes}MB"));
        format!("[PROFILING] Frame {frames}: {}{vram}", stages.join(", "))
    }
}

/// Ratio of the bounds of a bucket: the precision of percentiles.
pub const STEP: f64 = 1.05;

/// Lower bound of the first bucket, s.
const SHORTEST: f64 = 1e-6;

/// Enough buckets of [`STEP`] for times from 1 µs to 100 s: ln(10⁸) / ln(1.05) = 378.
const BUCKETS: usize = 378;

/// Times in logarithmic buckets.
#[derive(Debug, SmartDefault)]
struct Histogram {
    count: u64,
    seconds: f64,
    last: Duration,
    #[default([0; BUCKETS])]
    buckets: [u64; BUCKETS],
}

impl Histogram {
    fn add(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        let bucket = libm::log(seconds.max(SHORTEST) / SHORTEST) / libm::log(STEP);
        self.buckets[(bucket as usize).min(BUCKETS - 1)] += 1;
        self.count += 1;
        self.seconds += seconds;
        self.last = time;
    }

    fn summary(&self, stage: Stage) -> StageSummary {
        StageSummary {
            stage,
            count: self.count,
            mean: self.seconds * 1e3 / self.count.max(1) as f64,
            p50: self.percentile(0.50),
            p95: self.percentile(0.95),
        }
    }

    /// The middle of the bucket of a percentile, ms; 0 without times. `part` is 0…1.
    fn percentile(&self, part: f64) -> f64 {
        let rank = (part * self.count as f64).ceil() as u64;
        let mut below = 0;
        let bucket = self.buckets.iter().position(|count| {
            below += count;
            below >= rank && below > 0
        });
        bucket.map_or(0.0, |bucket| {
            SHORTEST * libm::pow(STEP, bucket as f64 + 0.5) * 1e3
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_step() {
        let mut histogram = Histogram::default();
        for ms in 1..=100 {
            histogram.add(Duration::from_millis(ms));
        }
        let summary = histogram.summary(Stage::Total);
        assert_eq!(summary.count, 100);
        assert!((summary.mean - 50.5).abs() < 1e-6);
        assert_eq!(histogram.last, Duration::from_millis(100));
        for (value, want) in [(summary.p50, 50.0), (summary.p95, 95.0)] {
            assert!(value / want < STEP && want / value < STEP, "{value} {want}");
        }
    }

    #[test]
    fn extremes_have_a_place() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(0.5), 0.0);
        histogram.add(Duration::ZERO);
        assert!(histogram.percentile(0.5) < 0.0011);
        histogram.add(Duration::from_secs(1_000_000));
        assert!(histogram.percentile(0.95) > 90_000.0);
    }

    #[test]
    fn the_line_counts_frames_and_every_stage() {
        let profile = Profile::default();
        for milliseconds in [10.0, 20.0] {
            for (stage, part) in [
                (Stage::Detection, 0.5),
                (Stage::Landmarks, 0.25),
                (Stage::Total, 1.0),
            ] {
                profile.add(stage, Duration::from_secs_f64(milliseconds * part / 1e3));
            }
        }
        let line = "[PROFILING] Frame 2: detection=7.5ms, landmarks=3.8ms, track=0.0ms, smooth=0.0ms, complete=0.0ms, total=15.0ms";
        assert_eq!(profile.line(None), line);
        assert_eq!(profile.line(Some(812)), format!("{line}, VRAM=812MB"));
    }

    #[test]
    fn detectors_are_timed_within_a_search() {
        let profile = Profile::default();
        let last = Duration::from_millis(3);
        profile.time_search(|| {
            let start = Instant::now();
            time_detection(|| while start.elapsed() < last {});
        });
        profile.time_search(|| ());
        let [detection, landmarks, ..] = profile.summary();
        assert_eq!((detection.count, landmarks.count), (2, 2));
        assert!(detection.mean * 2.0 >= 3.0 && landmarks.mean < detection.mean);
    }
}
