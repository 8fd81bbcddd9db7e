// SPDX-License-Identifier: MPL-2.0
//! The median of a long sequence in little memory.
//!
//! Rousseeuw, Bassett: "The remedian: a robust averaging method for large data sets", Journal of
//! the American Statistical Association 85 (1990), as `remedian.py` of OpenSeeFace does it.

use serde::{Deserialize, Serialize};

/// Number of values per median: `k` in `remedian.py`.
const FULL: usize = 64;

/// Maximum number of levels. They hold more values than a camera takes pictures in a century.
const MAX_LEVELS: usize = 7;

/// Medians of medians: a full level becomes one number of the next.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Remedian {
    /// Levels, each shorter than [`FULL`]; the last one is not empty.
    levels: Vec<Vec<f32>>,
}

impl Remedian {
    /// Adds a number.
    pub(super) fn push(&mut self, number: f32) {
        let mut number = number;
        for level in &mut self.levels {
            level.push(number);
            if level.len() < FULL {
                return;
            }
            number = median(level);
            level.clear();
        }
        self.levels.push(vec![number]);
    }

    /// The median of the last level; 0 without numbers.
    pub(super) fn median(&self) -> f32 {
        self.levels.last().map_or(0.0, |level| median(level))
    }

    /// Returns true if this is a valid state, and all numbers are finite.
    pub(super) fn is_sound(&self) -> bool {
        let is_open = |level: &Vec<f32>| level.len() < FULL && level.iter().all(|n| n.is_finite());
        self.levels.len() <= MAX_LEVELS
            && self.levels.iter().all(is_open)
            && self.levels.last().is_none_or(|level| !level.is_empty())
    }
}

/// The median; for an even count, the mean of the middle two.
fn median(numbers: &[f32]) -> f32 {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(f32::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (sorted[middle] + sorted[middle - 1]) / 2.0,
        _ => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: impl IntoIterator<Item = f32>) -> Remedian {
        let mut remedian = Remedian::default();
        numbers.into_iter().for_each(|n| remedian.push(n));
        remedian
    }

    #[test]
    fn few_numbers_have_their_median() {
        for (numbers, want) in [
            (&[][..], 0.0),
            (&[3.0], 3.0),
            (&[3.0, 1.0], 2.0),
            (&[9.0, 1.0, 4.0], 4.0),
            (&[4.0, 1.0, 2.0, 9.0], 3.0),
        ] {
            assert_eq!(of(numbers.iter().copied()).median(), want, "{numbers:?}");
        }
    }

    #[test]
    fn a_full_level_counts_as_one_number() {
        let mut remedian = of((0..64).map(|n| n as f32));
        assert_eq!(remedian.median(), 31.5);
        remedian.push(1000.0);
        assert_eq!(remedian.median(), 31.5, "what is not full does not count");
        let deep = of((0..64 * 64 + 1).map(|n| n as f32));
        assert_eq!(deep.levels.len(), 3);
        assert_eq!(deep.median(), 31.5 * 64.0 + 31.5);
    }

    #[test]
    fn only_what_numbers_lead_to_is_sound() {
        for count in [0, 1, 63, 64, 65, 4096, 5000] {
            assert!(of((0..count).map(|n| n as f32)).is_sound(), "{count}");
        }
        for levels in [
            vec![vec![f32::NAN]],
            vec![vec![f32::INFINITY], vec![1.0]],
            vec![vec![0.0; FULL]],
            vec![vec![]],
            vec![vec![1.0], vec![]],
            vec![vec![1.0]; MAX_LEVELS + 1],
        ] {
            assert!(!Remedian { levels }.is_sound());
        }
    }
}
