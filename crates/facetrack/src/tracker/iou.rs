// SPDX-License-Identifier: MPL-2.0
//! Optimal association by overlap with predicted boxes, so that faces may cross.

use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

use super::Track;
use crate::geometry::{Point, Rect};
use crate::observation::Observation;

/// What closeness of centres counts beside an overlap of 1. Overlap decides; closeness separates boxes of equal overlap
/// and keeps fast faces whose boxes no longer meet. Our choice.
const CLOSENESS_WEIGHT: f32 = 0.5;

/// The share of the newest displacement in the velocity: one wrong box turns it by half at most. Our choice.
const VELOCITY_GAIN: f32 = 0.5;

/// Steps of the integer scores that the assignment works on, per unit.
const SCORE_STEPS: f32 = 1e6;

/// A box that moves at constant velocity.
#[derive(Debug, Clone)]
pub(super) struct Motion {
    bbox: Rect,
    /// Displacement a frame, px; `None` before the second sight.
    velocity: Option<Point>,
}

impl Motion {
    /// A box that has been seen once.
    pub(super) fn at(bbox: Rect) -> Self {
        Self {
            bbox,
            velocity: None,
        }
    }

    /// Moves on to where the box is seen `frames` later.
    pub(super) fn see(&mut self, bbox: Rect, frames: u32) {
        let (from, to) = (self.bbox.center(), bbox.center());
        let frames = frames.max(1) as f32;
        let measured = Point::new((to.x - from.x) / frames, (to.y - from.y) / frames);
        self.velocity = Some(match self.velocity {
            None => measured,
            Some(old) => Point::new(
                old.x + VELOCITY_GAIN * (measured.x - old.x),
                old.y + VELOCITY_GAIN * (measured.y - old.y),
            ),
        });
        self.bbox = bbox;
    }

    /// Where the box is expected `frames` after its last sight.
    fn after(&self, frames: u32) -> Rect {
        let velocity = self.velocity.unwrap_or_default();
        Rect {
            x: self.bbox.x + velocity.x * frames as f32,
            y: self.bbox.y + velocity.y * frames as f32,
            ..self.bbox
        }
    }
}

/// For each face the index of its track, such that the scores sum to the most.
pub(super) fn matches(tracks: &[Track], faces: &[Observation]) -> Vec<Option<usize>> {
    if tracks.is_empty() || faces.is_empty() {
        return vec![None; faces.len()];
    }
    let expected: Vec<Rect> = tracks
        .iter()
        .map(|track| track.motion.after(track.age))
        .collect();
    // The algorithm wants at least as many columns as rows: a column of score 0 for each face to stay alone.
    let columns = tracks.len() + faces.len();
    let scores = Matrix::from_fn(faces.len(), columns, |(face, track)| {
        expected
            .get(track)
            .map_or(0, |expected| steps(score(expected, &faces[face].bbox)))
    });
    let (_, assignment) = kuhn_munkres(&scores);
    assignment
        .into_iter()
        .enumerate()
        .map(|(face, track)| (scores[(face, track)] > 0).then_some(track))
        .collect()
}

/// How well a box fits where a track is expected: overlap 0…1, and closeness 1 at the same centre falling to 0 at a
/// distance of the boxes' mean side. 0 for a box without a position.
fn score(expected: &Rect, seen: &Rect) -> f32 {
    let side = (expected.width + expected.height + seen.width + seen.height) / 4.0;
    let distance = expected.center().distance(seen.center());
    if !distance.is_finite() {
        return 0.0;
    }
    let closeness = (1.0 - distance / side.max(f32::MIN_POSITIVE)).max(0.0);
    expected.iou(seen) + CLOSENESS_WEIGHT * closeness
}

fn steps(score: f32) -> i64 {
    (score * SCORE_STEPS) as i64
}
