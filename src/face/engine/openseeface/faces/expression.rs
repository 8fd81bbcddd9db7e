// SPDX-License-Identifier: MPL-2.0
//! A face's range of expression, learned while it is watched: `FeatureExtractor` in `tracker.py`.

use std::time::Duration;

use super::feature::{Feature, Learning};
use super::fit::Points;
use super::measure::measure;
use crate::face::observation::Features;

/// What a feature needs to know beside its measure.
struct Trait {
    /// Least share of the median by which an extreme differs from it.
    threshold: f32,
    detail: Detail,
}

/// How many landmarks there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// 30, several of which stand for two or three of the 66: the original's `feature_level` 1.
    Coarse,
    /// 66: `feature_level` 2.
    Fine,
}

/// The features in the order of [`Features::NAMES`]: thresholds of `FeatureExtractor.__init__`, and in which `detail` a
/// feature can be seen.
const TRAITS: [Trait; 14] = {
    const fn of(threshold: f32, detail: Detail) -> Trait {
        Trait { threshold, detail }
    }
    use Detail::{Coarse, Fine};
    [
        of(0.15, Coarse),
        of(0.15, Coarse),
        of(0.05, Fine),
        of(0.15, Coarse),
        of(0.05, Fine),
        of(0.05, Fine),
        of(0.15, Coarse),
        of(0.05, Fine),
        of(0.15, Coarse),
        of(0.02, Fine),
        of(0.15, Coarse),
        of(0.02, Fine),
        of(0.15, Coarse),
        of(0.02, Coarse),
    ]
};

/// The features of a face.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Expression {
    /// In the order of [`Features::NAMES`].
    pub(super) features: [Feature; 14],
    /// Time since the face was first seen, s.
    pub(super) learned: f64,
    /// When it was last counted.
    counted: Option<Duration>,
}

/// How the original is told to learn.
#[derive(Debug, Clone, Copy)]
pub struct Lesson {
    /// Time from the first sight of a face on in which its range is learned, s; 0 for ever.
    pub time: f32,
    /// Features that there are landmarks for.
    pub detail: Detail,
}

impl Expression {
    /// The features in a frame at `time` that shows these normalised points; `None` where they can't be measured. Features
    /// that there are not enough landmarks for stay 0, as in the original.
    pub fn update(&mut self, points: &Points, time: Duration, lesson: &Lesson) -> Option<Features> {
        let measures = measure(points)?;
        let learning = self.learning(time, lesson);
        for ((feature, of), measure) in self.features.iter_mut().zip(&TRAITS).zip(measures) {
            if of.detail <= lesson.detail {
                feature.update(measure, of.threshold, learning);
            }
        }
        Some(Features(self.features.each_ref().map(Feature::value)))
    }

    /// What was learned earlier, in `learned` seconds.
    pub fn resumed(features: [Feature; 14], learned: f64) -> Self {
        Self {
            features,
            learned,
            counted: None,
        }
    }

    /// Time does not go on from where it was.
    pub fn stop_the_clock(&mut self) {
        self.counted = None;
    }

    /// Counts the time since the last call, the face being there or not, and tells whether any is left.
    fn learning(&mut self, time: Duration, lesson: &Lesson) -> Learning {
        let passed = self
            .counted
            .map_or(Duration::ZERO, |last| time.saturating_sub(last));
        self.learned += passed.as_secs_f64();
        self.counted = Some(time);
        match lesson.time == 0.0 || self.learned < f64::from(lesson.time) {
            true => Learning::Open,
            false => Learning::Closed,
        }
    }
}
