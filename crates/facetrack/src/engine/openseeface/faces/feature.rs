// SPDX-License-Identifier: MPL-2.0
//! A measure relative to its previous values: `Feature` in `tracker.py`.

use serde::{Deserialize, Serialize};

use super::remedian::Remedian;

/// Share of the last value in the next: `alpha` in `Feature.__init__`, as are the next two.
const INERTIA: f32 = 0.2;

/// Maximum decay of an extreme, relative to its distance from the median: `hard_factor`.
const RETREAT: f32 = 0.15;

/// Share of the remaining decay in each frame: `decay`.
const DECAY: f32 = 0.001;

/// State of learning a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learning {
    /// Every measure changes the range.
    Open,
    /// The range does not change.
    Closed,
}

/// The range of a measure: its median, and the extremes as far as they have been seen.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Feature {
    median: Remedian,
    least: Option<Extreme>,
    greatest: Option<Extreme>,
    /// The last measure relative to the range, −1…1; 0 before the first.
    pub(super) value: f32,
}

/// The end of a range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Extreme {
    at: f32,
    /// Value that it decays to if it is not reached again.
    rest: f32,
}

impl Extreme {
    fn new(at: f32, median: f32) -> Self {
        let rest = at + RETREAT * (median - at);
        Self { at, rest }
    }

    fn is_finite(&self) -> bool {
        self.at.is_finite() && self.rest.is_finite()
    }

    fn decayed(self) -> f32 {
        self.rest * DECAY + self.at * (1.0 - DECAY)
    }
}

impl Feature {
    /// Adds a measure. The range starts with a measure below the median by at least `threshold`
    /// times the median, followed by one above it by as much.
    pub(crate) fn update(&mut self, measure: f32, threshold: f32, learning: Learning) {
        let value = self.relative(measure, threshold, learning);
        // If the range decays past the measure or the median, the value can exceed ±1.
        self.value = self.value * INERTIA + value.clamp(-1.0, 1.0) * (1.0 - INERTIA);
    }

    /// Returns true if all numbers are finite, the value is in −1…1, and all lists have valid
    /// lengths.
    pub(crate) fn is_sound(&self) -> bool {
        self.median.is_sound()
            && (-1.0..=1.0).contains(&self.value)
            && [self.least, self.greatest]
                .iter()
                .flatten()
                .all(Extreme::is_finite)
    }

    fn relative(&mut self, measure: f32, threshold: f32, learning: Learning) -> f32 {
        let learns = learning == Learning::Open;
        if learns {
            self.median.push(measure);
        }
        let median = self.median.median();
        let is_beyond = |end: Option<Extreme>, sign: f32| match (end, sign * (measure - median)) {
            (Some(end), _) => sign * measure > sign * end.at,
            (None, distance) => distance > 0.0 && distance / median > threshold,
        };
        if is_beyond(self.least, -1.0) {
            if learns {
                self.least = Some(Extreme::new(measure, median));
            }
            return -1.0;
        }
        // As in the original, the upper end is not learned before the lower one is known.
        let Some(mut least) = self.least else {
            return 0.0;
        };
        if is_beyond(self.greatest, 1.0) {
            if learns {
                self.greatest = Some(Extreme::new(measure, median));
            }
            return 1.0;
        }
        let Some(mut greatest) = self.greatest else {
            return 0.0;
        };
        if learns && least.at < least.rest {
            least.at = least.decayed();
        }
        if learns && greatest.at > greatest.rest {
            greatest.at = greatest.decayed();
        }
        (self.least, self.greatest) = (Some(least), Some(greatest));
        if measure < median {
            (measure - least.at) / (median - least.at) - 1.0
        } else if measure > median {
            (measure - median) / (greatest.at - median)
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::golden::{Golden, assert_near};
    use super::*;

    #[test]
    fn measures_become_values_as_in_the_original() {
        for case in Golden::read().features {
            let mut feature = Feature::default();
            for (index, (measure, want)) in case.measures.iter().zip(&case.values).enumerate() {
                let learning = if case.limit == 0 || index < case.limit {
                    Learning::Open
                } else {
                    Learning::Closed
                };
                feature.update(*measure, case.threshold, learning);
                let name = format!("{}: {index}", case.name);
                assert_near(&name, [f64::from(feature.value)], [f64::from(*want)], 1e-4);
                assert!(feature.is_sound());
            }
        }
    }

    #[test]
    fn numbers_that_measures_do_not_lead_to_are_not_sound() {
        let end = |at, rest| Some(Extreme { at, rest });
        let sound = Feature::default;
        for feature in [
            Feature {
                value: f32::NAN,
                ..sound()
            },
            Feature {
                value: 1.5,
                ..sound()
            },
            Feature {
                least: end(f32::NEG_INFINITY, 0.0),
                ..sound()
            },
            Feature {
                greatest: end(0.0, f32::NAN),
                ..sound()
            },
        ] {
            assert!(!feature.is_sound(), "{feature:?}");
        }
    }
}
