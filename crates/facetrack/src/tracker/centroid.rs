// SPDX-License-Identifier: MPL-2.0
//! Greedy association by nearest centroid, as the pipeline that reads the record does it (track-json: Association).

use super::Track;
use crate::geometry::Point;
use crate::observation::Observation;

/// A face and the track nearest to it.
struct Candidate {
    distance: f32,
    track: usize,
    face: usize,
}

/// For each face the index of its track.
///
/// A face is a candidate for its nearest track alone. Candidates are taken from the nearest on; one whose track is
/// already taken stays without.
pub(super) fn matches(
    tracks: &[Track],
    faces: &[Observation],
    max_distance: f32,
) -> Vec<Option<usize>> {
    let mut candidates: Vec<Candidate> = faces
        .iter()
        .enumerate()
        .filter_map(|(face, seen)| nearest(tracks, face, seen.centroid()))
        .filter(|candidate| candidate.distance <= max_distance)
        .collect();
    candidates.sort_by(|a, b| {
        a.distance
            .total_cmp(&b.distance)
            .then(a.track.cmp(&b.track))
            .then(a.face.cmp(&b.face))
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

/// The track nearest to `centroid`; of equals the older.
fn nearest(tracks: &[Track], face: usize, centroid: Point) -> Option<Candidate> {
    tracks
        .iter()
        .enumerate()
        .map(|(track, known)| Candidate {
            // `min` takes the other operand for NaN: what has no position is near to nothing.
            distance: known.centroid.distance(centroid).min(f32::INFINITY),
            track,
            face,
        })
        .min_by(|a, b| a.distance.total_cmp(&b.distance))
}
