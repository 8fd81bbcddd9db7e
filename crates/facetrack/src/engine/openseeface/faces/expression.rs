// SPDX-License-Identifier: MPL-2.0
//! A face's range of expression, learned while the face is tracked: `FeatureExtractor` in
//! `tracker.py`.

use std::time::Duration;

use super::feature::{Feature, Learning};
use super::fit::Points;
use super::measure::measure;
use crate::observation::Features;

/// For each of [`Features::NAMES`] the threshold of `FeatureExtractor.__init__`, that is the
/// minimum difference of an extreme from the median, in parts of the median.
const THRESHOLDS: [f32; 14] = [
    0.15, 0.15, 0.05, 0.15, 0.05, 0.05, 0.15, 0.05, 0.15, 0.02, 0.15, 0.02, 0.15, 0.02,
];

/// Indices of the features that need fine landmarks: steepness and quirk of the brows, and how
/// far the corners of the mouth are apart.
const FINE: [usize; 6] = [2, 4, 5, 7, 9, 11];

/// The features of a face.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Expression {
    /// Features in the order of [`Features::NAMES`].
    pub(super) features: [Feature; 14],
    /// Time since the face was first seen, s.
    pub(super) learned: f64,
    /// Time of the last update.
    counted: Option<Duration>,
}

/// Settings of learning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lesson {
    /// Time, from the first frame of a face on, during which its range is learned, s; 0 = without
    /// limit.
    pub time: f32,
    /// True if there are 66 landmarks, as at level 2 of the original's `feature_level`. Level 1 has
    /// only 30; some stand for several of the 66.
    pub is_fine: bool,
}

impl Expression {
    /// Returns the features of a frame at `time` with these normalised points; `None` if they
    /// cannot be measured. Features that need fine landmarks stay 0, as in the original.
    pub(crate) fn update(
        &mut self,
        points: &Points,
        time: Duration,
        lesson: &Lesson,
    ) -> Option<Features> {
        let measures = measure(points)?;
        let learning = self.learning(time, lesson);
        for (index, feature) in self.features.iter_mut().enumerate() {
            if lesson.is_fine || !FINE.contains(&index) {
                feature.update(measures[index], THRESHOLDS[index], learning);
            }
        }
        Some(Features(self.features.each_ref().map(|f| f.value)))
    }

    /// Restores features that were learned for `learned` seconds.
    pub(crate) fn resumed(features: [Feature; 14], learned: f64) -> Self {
        Self {
            features,
            learned,
            counted: None,
        }
    }

    /// Excludes the time until the next update from learning.
    pub(crate) fn stop_the_clock(&mut self) {
        self.counted = None;
    }

    /// Adds the time since the last call, including time without the face. Returns
    /// [`Learning::Open`] while the range is learned.
    fn learning(&mut self, time: Duration, lesson: &Lesson) -> Learning {
        let last = self.counted.replace(time).unwrap_or(time);
        self.learned += time.saturating_sub(last).as_secs_f64();
        if lesson.time == 0.0 || self.learned < f64::from(lesson.time) {
            Learning::Open
        } else {
            Learning::Closed
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden::Golden;
    use super::*;

    const FOR_EVER: Lesson = Lesson {
        time: 0.0,
        is_fine: true,
    };

    fn points() -> Points {
        Golden::read().sequences[0].frames[0].normalized().unwrap()
    }

    /// The eyes nearly closed.
    fn asleep() -> Points {
        let mut points = points();
        for (upper, lower) in [(37, 41), (38, 40), (43, 47), (44, 46)] {
            points[upper].y = points[lower].y + 0.01;
        }
        points
    }

    fn seconds(time: f64) -> Duration {
        Duration::from_secs_f64(time)
    }

    #[test]
    fn eyes_that_close_are_distinguished_from_open_ones() {
        let mut expression = Expression::default();
        for _ in 0..10 {
            let features = expression.update(&points(), seconds(0.0), &FOR_EVER);
            assert_eq!(features, Some(Features([0.0; 14])));
        }
        let features = expression
            .update(&asleep(), seconds(0.1), &FOR_EVER)
            .unwrap();
        assert_eq!(features.get("eye_l"), Some(-0.8), "the rest is inertia");
        assert_eq!(features.eye_openness(), [1.0 - 0.8; 2]);
        assert_eq!(features.get("mouth_open"), Some(0.0));
    }

    #[test]
    fn what_thirty_points_do_not_show_stays_at_rest() {
        let coarse = Lesson {
            is_fine: false,
            ..FOR_EVER
        };
        let mut expression = Expression::default();
        let frames = &Golden::read().sequences[0].frames;
        for frame in frames.iter().cycle().take(40) {
            expression.update(&frame.normalized().unwrap(), seconds(0.0), &coarse);
        }
        let untouched = Feature::default();
        let names = Features::NAMES.iter().enumerate();
        for ((index, name), feature) in names.zip(&expression.features) {
            assert_eq!(*feature == untouched, FINE.contains(&index), "{name}");
        }
    }

    #[test]
    fn learning_ends_after_its_time() {
        let minute = Lesson {
            time: 60.0,
            ..FOR_EVER
        };
        for (lesson, time, want) in [
            (minute, 59.0, Learning::Open),
            (minute, 60.0, Learning::Closed),
            (FOR_EVER, 1e9, Learning::Open),
        ] {
            let mut expression = Expression::default();
            assert_eq!(expression.learning(seconds(5.0), &lesson), Learning::Open);
            assert_eq!(expression.learning(seconds(5.0 + time), &lesson), want);
        }
    }

    #[test]
    fn jumps_in_time_are_not_counted() {
        let minute = Lesson {
            time: 60.0,
            ..FOR_EVER
        };
        let mut expression = Expression::default();
        expression.learning(seconds(0.0), &minute);
        expression.learning(seconds(50.0), &minute);
        expression.stop_the_clock();
        assert_eq!(
            expression.learning(seconds(9000.0), &minute),
            Learning::Open
        );
        assert_eq!(expression.learning(seconds(100.0), &minute), Learning::Open);
        assert_eq!(
            expression.learning(seconds(110.0), &minute),
            Learning::Closed
        );
    }

    #[test]
    fn points_without_a_nose_have_no_features_and_teach_nothing() {
        let mut flat = points();
        flat[27].y = flat[30].y;
        let mut expression = Expression::default();
        assert_eq!(expression.update(&flat, seconds(0.0), &FOR_EVER), None);
        assert_eq!(expression, Expression::default());
    }
}
