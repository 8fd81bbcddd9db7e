// SPDX-License-Identifier: MPL-2.0
//! Optimal association by overlap with predicted boxes, so that faces may cross.

use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

use super::Track;
use crate::geometry::{Point, Rect};
use crate::motion::Velocity;
use crate::observation::Observation;

/// Weight of the closeness of centres, relative to the overlap. Overlap decides; closeness
/// separates boxes of equal overlap and keeps fast faces whose boxes no longer overlap. Our choice.
const CLOSENESS_WEIGHT: f32 = 0.5;

/// Weight of the newest displacement in the velocity: one wrong box changes it by half at most. Our
/// choice.
const VELOCITY_GAIN: f32 = 0.5;

/// Steps per unit of the integer scores that are assigned.
const SCORE_STEPS: f32 = 1e6;

/// A box that moves at constant velocity.
#[derive(Debug, Clone)]
pub(super) struct MovingBox {
    bbox: Rect,
    /// Per frame; `None` if it was seen once.
    velocity: Option<Velocity>,
}

impl MovingBox {
    /// A box that was seen once.
    pub(super) fn new(bbox: Rect) -> Self {
        Self {
            bbox,
            velocity: None,
        }
    }

    /// Updates the velocity with the box that was seen `frames` later.
    pub(super) fn update(&mut self, bbox: Rect, frames: u32) {
        let (from, to) = (self.bbox.center(), bbox.center());
        let frames = frames.max(1) as f32;
        let measured = Point::new((to.x - from.x) / frames, (to.y - from.y) / frames);
        let displacement = self.velocity.map_or(measured, |velocity| {
            let old = velocity.displacement;
            Point::new(
                old.x + VELOCITY_GAIN * (measured.x - old.x),
                old.y + VELOCITY_GAIN * (measured.y - old.y),
            )
        });
        self.velocity = Some(Velocity {
            displacement,
            duration: 1.0,
        });
        self.bbox = bbox;
    }

    /// The predicted box, `frames` after the last one that was seen.
    fn after(&self, frames: u32) -> Rect {
        let displacement = self.velocity.map(|velocity| velocity.over(frames as f32));
        let by = displacement.unwrap_or_default();
        Rect {
            x: self.bbox.x + by.x,
            y: self.bbox.y + by.y,
            ..self.bbox
        }
    }
}

/// The index of the track of each face, with the maximum sum of scores.
pub(super) fn matches(tracks: &[Track], faces: &[Observation]) -> Vec<Option<usize>> {
    if tracks.is_empty() || faces.is_empty() {
        return vec![None; faces.len()];
    }
    let expected: Vec<Rect> = tracks
        .iter()
        .map(|track| track.bbox.after(track.age))
        .collect();
    // The algorithm needs at least as many columns as rows: one column of score 0 per face, for no
    // track.
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

/// Score of a box for a track with an expected box: the overlap, 0…1, plus the weighted closeness,
/// which falls from 1 at the same centre to 0 at a distance of the mean side of the boxes. 0 for a
/// box without a position.
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
