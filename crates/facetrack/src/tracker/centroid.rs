// SPDX-License-Identifier: MPL-2.0
//! Greedy association by nearest centroid, as in the older pipeline of `docs/run.md`.

use super::{Track, TrackerConfig};
use crate::geometry::Point;
use crate::observation::Observation;

/// A face and the track nearest to it.
struct Candidate {
    distance: f32,
    track: usize,
    face: usize,
}

/// The index of the track of each face.
///
/// A face is a candidate only for its nearest track. Candidates are matched in order of distance;
/// if the track of one is already taken, it has no track.
pub(super) fn matches(
    tracks: &[Track],
    faces: &[Observation],
    config: &TrackerConfig,
) -> Vec<Option<usize>> {
    let mut candidates: Vec<Candidate> = faces
        .iter()
        .enumerate()
        .filter_map(|(face, seen)| nearest(tracks, face, seen.centroid()))
        .filter(|candidate| {
            let (track, face) = (&tracks[candidate.track], &faces[candidate.face]);
            candidate.distance.is_finite()
                && candidate.distance <= config.reach(&track.bbox, &face.bbox)
        })
        .collect();
    // The sort is stable: of equal candidates, the face that comes first is matched.
    candidates.sort_by(|a, b| {
        let by_distance = a.distance.total_cmp(&b.distance);
        by_distance.then(a.track.cmp(&b.track))
    });

    let mut taken = vec![false; tracks.len()];
    let mut matches = vec![None; faces.len()];
    for candidate in candidates {
        if !taken[candidate.track] {
            taken[candidate.track] = true;
            matches[candidate.face] = Some(candidate.track);
        }
    }
    matches
}

/// The track nearest to `centroid`; the older one of two at the same distance.
fn nearest(tracks: &[Track], face: usize, centroid: Point) -> Option<Candidate> {
    tracks
        .iter()
        .enumerate()
        .map(|(track, known)| Candidate {
            // `min` replaces NaN by infinity: a face without a position matches no track.
            distance: known.centroid().distance(centroid).min(f32::INFINITY),
            track,
            face,
        })
        .min_by(|a, b| a.distance.total_cmp(&b.distance))
}
