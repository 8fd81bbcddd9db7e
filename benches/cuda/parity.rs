// SPDX-License-Identifier: MPL-2.0
//! Compares the results of two runs.

use std::fmt;

use facetrack::observation::{Landmarks, Observation};

/// Maximum distance of a landmark, px.
const MAX_DISTANCE: f32 = 0.1;

/// Minimum cosine of the angle between embeddings.
const MIN_COSINE: f32 = 0.9999;

/// The bar in words.
pub const BAR: &str = "landmarks within 0.1 px, embeddings with a cosine of at least 0.9999, every face found by both";

/// The largest differences of all frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parity {
    /// Largest distance of a landmark, px.
    distance: f32,
    /// Minimum cosine of the angle between embeddings.
    cosine: f32,
    /// Faces, landmarks and embeddings that only one run has, or that are not numbers.
    unmatched: usize,
}

impl Default for Parity {
    /// No frames, no differences.
    fn default() -> Self {
        Self {
            distance: 0.0,
            cosine: 1.0,
            unmatched: 0,
        }
    }
}

impl Parity {
    /// Compares the faces of the same frames.
    pub fn of(expected: &[Vec<Observation>], found: &[Vec<Observation>]) -> Self {
        let mut parity = Self {
            unmatched: expected.len().abs_diff(found.len()),
            ..Self::default()
        };
        for (expected, found) in expected.iter().zip(found) {
            parity.add_frame(expected, found);
        }
        parity
    }

    fn add_frame(&mut self, expected: &[Observation], found: &[Observation]) {
        let mut found: Vec<&Observation> = found.iter().collect();
        for own in expected {
            let overlap = |other: &&Observation| own.bbox.iou(&other.bbox);
            let best = (0..found.len())
                .max_by(|a, b| overlap(&found[*a]).total_cmp(&overlap(&found[*b])))
                .filter(|index| overlap(&found[*index]) > 0.5);
            match best {
                Some(index) => self.add_face(own, found.swap_remove(index)),
                None => self.unmatched += 1,
            }
        }
        self.unmatched += found.len();
    }

    fn add_face(&mut self, expected: &Observation, found: &Observation) {
        for (expected, found) in [
            (&expected.landmarks, &found.landmarks),
            (&expected.secondary_landmarks, &found.secondary_landmarks),
        ] {
            match (expected, found) {
                (Some(expected), Some(found)) => self.add_landmarks(expected, found),
                (None, None) => {}
                _ => self.unmatched += 1,
            }
        }
        match (&expected.embedding, &found.embedding) {
            (Some(expected), Some(found)) => {
                let cosine = cosine(expected, found);
                self.cosine = self.cosine.min(cosine);
                self.unmatched += usize::from(!cosine.is_finite());
            }
            (None, None) => {}
            _ => self.unmatched += 1,
        }
    }

    fn add_landmarks(&mut self, expected: &Landmarks, found: &Landmarks) {
        self.unmatched += expected.points.len().abs_diff(found.points.len());
        for (expected, found) in expected.points.iter().zip(&found.points) {
            let distance = (expected.x - found.x).hypot(expected.y - found.y);
            self.distance = self.distance.max(distance);
            self.unmatched += usize::from(!distance.is_finite());
        }
    }

    /// Returns true if the bar is met.
    pub fn is_met(&self) -> bool {
        self.unmatched == 0 && self.distance <= MAX_DISTANCE && self.cosine >= MIN_COSINE
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        let pairs = a.iter().zip(b);
        pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    (dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()) as f32
}

impl fmt::Display for Parity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4} | {:.6}", self.distance, self.cosine)?;
        match self.unmatched {
            0 => Ok(()),
            count => write!(f, ", {count} without a counterpart"),
        }
    }
}
