// SPDX-License-Identifier: MPL-2.0
//! Optimal association by overlap with predicted boxes, so that faces may cross.

use std::time::Duration;

use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

use super::{Track, TrackerConfig};
use crate::geometry::Rect;
use crate::observation::Observation;

/// Weight of the closeness of centres, relative to the overlap. Overlap decides; closeness
/// separates boxes of equal overlap and keeps fast faces whose boxes no longer overlap. Our choice.
const CLOSENESS_WEIGHT: f32 = 0.5;

/// Steps per unit of the integer scores that are assigned.
const SCORE_STEPS: f32 = 1e6;

/// Minimum time for which an id is kept without its face, however many frames that is: the time of
/// the default number of frames at 25 frames per second. At 120, hands and turned heads hide faces
/// for more frames.
pub(super) const MIN_WAIT: Duration = Duration::from_millis(280);

/// Maximum time for which an id is kept while its face is behind another one. People who pass each
/// other at half a face size per second hide each other for more than 2 s.
const MAX_HIDDEN: Duration = Duration::from_secs(3);

/// Factor for the maximum distance of a face that is behind another one: it comes back at the other
/// side. While it was covered, its box shrank and moved along with the other face. 1.5 was enough in
/// clips of two people who pass each other.
const BEHIND: f32 = 2.0;

/// Factor for the score of a track whose face was not in the last frame: a face that passes before
/// the place where another one disappeared keeps its id. Our choice.
const UNSEEN_WEIGHT: f32 = 0.5;

/// Factor for the score of the position in the last frame: a face stops, or it was measured next to
/// its place for a frame. Factors from 0.3 to 1 give nearly the same ids.
const STAYING_WEIGHT: f32 = 0.5;

impl Track {
    /// The expected box at `time`.
    fn expected(&self, time: Duration) -> Rect {
        let by = self.motion.displacement(time).unwrap_or_default();
        Rect {
            x: self.bbox.x + by.x,
            y: self.bbox.y + by.y,
            ..self.bbox
        }
    }

    /// Whether one of the `faces` at `time` covers a part of the expected box.
    pub(super) fn is_behind(&self, faces: &[Observation], time: Duration) -> bool {
        let expected = self.expected(time);
        faces.iter().any(|face| expected.iou(&face.bbox) > 0.0)
    }

    /// Whether its face may still return: it was seen recently, or is behind another one.
    pub(super) fn is_awaited(&self, time: Duration) -> bool {
        let unseen = self.motion.elapsed(time);
        unseen <= MIN_WAIT || self.is_hidden && unseen <= MAX_HIDDEN
    }

    /// Factor for its scores.
    fn weight(&self) -> f32 {
        if self.age > 1 { UNSEEN_WEIGHT } else { 1.0 }
    }

    /// Maximum distance of a seen box from the expected one, px.
    fn reach(&self, seen: &Rect, config: &TrackerConfig) -> f32 {
        let reach = config.reach(&self.bbox, seen);
        if self.is_hidden {
            return BEHIND * reach;
        }
        reach
    }
}

/// The index of the track of each face, with the maximum sum of scores.
pub(super) fn matches(
    tracks: &[Track],
    faces: &[Observation],
    time: Duration,
    config: &TrackerConfig,
) -> Vec<Option<usize>> {
    if tracks.is_empty() || faces.is_empty() {
        return vec![None; faces.len()];
    }
    let expected: Vec<_> = tracks
        .iter()
        .map(|track| (track, track.expected(time)))
        .collect();
    // The algorithm needs at least as many columns as rows: one column of score 0 per face, for no
    // track.
    let columns = tracks.len() + faces.len();
    let scores = Matrix::from_fn(faces.len(), columns, |(face, track)| {
        let seen = &faces[face].bbox;
        let score = |(track, bbox): &(&Track, Rect)| {
            let reach = track.reach(seen, config);
            let stayed = STAYING_WEIGHT * score(&track.bbox, seen, reach);
            track.weight() * score(bbox, seen, reach).max(stayed)
        };
        expected.get(track).map_or(0, |track| steps(score(track)))
    });
    let (_, assignment) = kuhn_munkres(&scores);
    assignment
        .into_iter()
        .enumerate()
        .map(|(face, track)| (scores[(face, track)] > 0).then_some(track))
        .collect()
}

/// Whether a `new` face overlaps one of the `known` ones, and none of the doubtful ones `before`.
/// While people pass each other, `mediapipe` finds faces for a frame that overlap both of them.
pub(super) fn is_doubtful(new: &Rect, known: &[Rect], before: &[Rect]) -> bool {
    let overlaps = |boxes: &[Rect]| boxes.iter().any(|other| new.iou(other) > 0.0);
    overlaps(known) && !overlaps(before)
}

/// Score of a box for a track with an expected box: the overlap, 0…1, plus the weighted closeness,
/// which falls from 1 at the same centre to 0 at the maximum distance. 0 beyond it, and for a box
/// without a position.
fn score(expected: &Rect, seen: &Rect, reach: f32) -> f32 {
    let distance = expected.center().distance(seen.center());
    let is_near = distance.is_finite() && distance <= reach;
    if !is_near {
        return 0.0;
    }
    let closeness = 1.0 - distance / reach.max(f32::MIN_POSITIVE);
    expected.iou(seen) + CLOSENESS_WEIGHT * closeness
}

fn steps(score: f32) -> i64 {
    (score * SCORE_STEPS) as i64
}
