// SPDX-License-Identifier: MPL-2.0
//! Optimal association by overlap with predicted boxes, so that faces may cross.

use std::time::Duration;

use pathfinding::kuhn_munkres::kuhn_munkres;
use pathfinding::matrix::Matrix;

use super::{Track, TrackerConfig};
use crate::geometry::{Point, Rect};
use crate::motion::Motion;
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
/// other at half a face size per second hide each other for up to 3.4 s.
const MAX_HIDDEN: Duration = Duration::from_secs(4);

/// Minimum time between the two measurements of a steady motion. Between two frames, landmarks jump
/// by more than a slow face moves. Times from 0.1 to 0.4 s give nearly the same ids.
const STEADY: Duration = Duration::from_millis(200);

/// Factor for the maximum distance of a face that is behind another one: it comes back at the other
/// side. While it was covered, its box shrank and moved along with the other face. 1.5 was enough in
/// clips of two people who pass each other.
const BEHIND: f32 = 2.0;

/// Factor for the score of a track whose face was not in the last frame and is not behind another
/// one: a face that passes before the place where another one disappeared keeps its id. Our choice.
const UNSEEN_WEIGHT: f32 = 0.5;

/// Factor for the score of the position in the last frame: a face may stop, or may have been
/// measured at a wrong position in one frame. Factors from 0.3 to 1 give nearly the same ids.
const STAYING_WEIGHT: f32 = 0.5;

impl Track {
    /// Possible boxes of the face at `time`, with a factor for the score of each. A face that is
    /// behind another one may stop there, or come out at the other side.
    fn places(&self, time: Duration) -> impl Iterator<Item = (Rect, f32)> {
        let expected = self.motion.displacement(time).unwrap_or_default();
        let unseen = self.motion.elapsed(time);
        let passed = self.covered.and_then(|_| self.steady.going_on(unseen));
        let displacements = [(expected, 1.0), (Point::default(), STAYING_WEIGHT)];
        let bbox = self.bbox;
        displacements
            .into_iter()
            .chain(passed.map(|by| (by, 1.0)))
            .map(move |(by, factor)| {
                let (x, y) = (bbox.x + by.x, bbox.y + by.y);
                (Rect { x, y, ..bbox }, factor)
            })
    }

    /// Measures the steady motion with its `face`, whose box touches no other one. A box that touches
    /// another one may move with the other face.
    pub(super) fn measure_steadily(&mut self, face: &Observation, time: Duration) {
        if self.steady.elapsed(time) >= STEADY {
            self.steady = Motion::measured(Some(&self.steady), face, time);
        }
    }

    /// Notes whether one of the `faces` at `time` covers a part of a place where this face may be.
    /// Engines may miss the face in front for a few frames, and find the other one some frames
    /// late.
    pub(super) fn cover(&mut self, faces: &[Observation], time: Duration) {
        let is_covered = self
            .places(time)
            .any(|(place, _)| faces.iter().any(|face| place.iou(&face.bbox) > 0.0));
        self.covered = if is_covered {
            Some(time)
        } else {
            self.covered
                .filter(|covered| time.saturating_sub(*covered) <= MIN_WAIT)
        };
    }

    /// Returns true if the face may still return: it was seen recently, or is behind another one.
    pub(super) fn is_awaited(&self, time: Duration) -> bool {
        let unseen = self.motion.elapsed(time);
        unseen <= MIN_WAIT || self.covered.is_some() && unseen <= MAX_HIDDEN
    }

    /// Score of a box.
    fn score(&self, seen: &Rect, time: Duration, config: &TrackerConfig) -> f32 {
        let reach = self.reach(seen, config);
        let scores = self
            .places(time)
            .map(|(place, factor)| factor * score(&place, seen, reach));
        self.weight() * scores.fold(0.0, f32::max)
    }

    /// Factor for the scores of the track.
    fn weight(&self) -> f32 {
        if self.age > 1 && self.covered.is_none() {
            return UNSEEN_WEIGHT;
        }
        1.0
    }

    /// Maximum distance of a seen box from the expected one, px.
    fn reach(&self, seen: &Rect, config: &TrackerConfig) -> f32 {
        let reach = config.reach(&self.bbox, seen);
        if self.covered.is_some() {
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
    // The algorithm needs at least as many columns as rows: one column of score 0 per face stands
    // for no track.
    let columns = tracks.len() + faces.len();
    let scores = Matrix::from_fn(faces.len(), columns, |(face, track)| {
        let score = |track: &Track| track.score(&faces[face].bbox, time, config);
        tracks.get(track).map_or(0, |track| steps(score(track)))
    });
    let (_, assignment) = kuhn_munkres(&scores);
    assignment
        .into_iter()
        .enumerate()
        .map(|(face, track)| (scores[(face, track)] > 0).then_some(track))
        .collect()
}

/// Returns true if a `new` face overlaps one of the `known` ones, and none of the doubtful ones
/// `before`. While people pass each other, `mediapipe` finds faces for a frame that overlap both of
/// them.
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
