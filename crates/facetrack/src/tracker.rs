// SPDX-License-Identifier: MPL-2.0
//! Assigns identities to faces.

mod centroid;
mod iou;

use smart_default::SmartDefault;

use super::geometry::Point;
use super::observation::Observation;
use crate::words::choices;

choices! {
    /// Method that matches the faces of a frame with tracks.
    pub enum TrackerKind, words tracker_words {
        Centroid = "centroid": "nearest centre, for one face after the other",
        Iou = "iou": "best overlap with the expected positions, for all faces together, so that ids are not swapped when faces cross",
    }
}

/// Settings of a [`Tracker`]. The defaults come from the pipeline that reads the record
/// (track-json: Association).
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
pub struct TrackerConfig {
    /// Matching method.
    pub kind: TrackerKind,
    /// Maximum distance, in pixels, that a centroid may move between two sightings, for
    /// [`TrackerKind::Centroid`].
    #[default(80.0)]
    pub max_distance: f32,
    /// Maximum number of consecutive frames without a sighting; one more ends the track.
    #[default(7)]
    pub max_age: u32,
}

/// Follows faces through a stream.
///
/// ```
/// use facetrack::geometry::Rect;
/// use facetrack::observation::Observation;
/// use facetrack::tracker::{Tracker, TrackerConfig};
///
/// let mut tracker = Tracker::new(TrackerConfig::default());
/// let face = |x| Observation::from_bbox(Rect::new(x, 100.0, 40.0, 40.0));
/// assert_eq!(tracker.assign(&[face(100.0), face(300.0)]), [1, 2]);
/// assert_eq!(tracker.assign(&[face(305.0)]), [2]);
/// ```
#[derive(Debug, Default)]
pub struct Tracker {
    config: TrackerConfig,
    tracks: Vec<Track>,
    ended: Vec<u32>,
    last_id: u32,
}

/// A tracked face.
#[derive(Debug, Clone)]
struct Track {
    id: u32,
    /// Frames since it was seen last.
    age: u32,
    /// [`Observation::centroid`] when it was seen last.
    centroid: Point,
    bbox: iou::MovingBox,
}

impl Track {
    fn new(id: u32, face: &Observation) -> Self {
        Self {
            id,
            age: 0,
            centroid: face.centroid(),
            bbox: iou::MovingBox::new(face.bbox),
        }
    }

    fn update(&mut self, face: &Observation) {
        self.centroid = face.centroid();
        self.bbox.update(face.bbox, self.age);
        self.age = 0;
    }
}

impl Tracker {
    /// A tracker without tracks.
    pub fn new(config: TrackerConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// The identities of the `faces` of the next frame, in their order.
    pub fn assign(&mut self, faces: &[Observation]) -> Vec<u32> {
        for track in &mut self.tracks {
            track.age += 1;
        }
        let matches = match self.config.kind {
            TrackerKind::Centroid => {
                centroid::matches(&self.tracks, faces, self.config.max_distance)
            }
            TrackerKind::Iou => iou::matches(&self.tracks, faces),
        };
        let ids = faces
            .iter()
            .zip(matches)
            .map(|(face, track)| self.update(face, track))
            .collect();
        self.end_unseen();
        ids
    }

    /// Identities that the last call of [`Tracker::assign`] or [`Tracker::reset`] ended.
    pub fn ended_ids(&self) -> &[u32] {
        &self.ended
    }

    /// Ends all tracks. Identities continue from the last one.
    pub fn reset(&mut self) {
        self.ended = self.tracks.drain(..).map(|track| track.id).collect();
    }

    /// Begins another stream: identities start at 1.
    pub fn restart(&mut self) {
        *self = Self::new(self.config);
    }

    /// Continues identities from the last one of `before`.
    pub fn continue_after(&mut self, before: &Self) {
        self.last_id = self.last_id.max(before.last_id);
    }

    fn update(&mut self, face: &Observation, track: Option<usize>) -> u32 {
        if let Some(index) = track {
            self.tracks[index].update(face);
            return self.tracks[index].id;
        }
        self.last_id += 1;
        self.tracks.push(Track::new(self.last_id, face));
        self.last_id
    }

    fn end_unseen(&mut self) {
        let max_age = self.config.max_age;
        let ended = self.tracks.extract_if(.., |track| track.age > max_age);
        self.ended = ended.map(|track| track.id).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;

    const SIDE: f32 = 40.0;

    /// Positions of the faces of a frame.
    type Centers<'a> = &'a [f32];

    /// Faces of one size on the line y = 100, by their centroid's x.
    fn row(centers: &[f32]) -> Vec<Observation> {
        centers
            .iter()
            .map(|x| {
                Observation::from_bbox(Rect::new(x - SIDE / 2.0, 100.0 - SIDE / 2.0, SIDE, SIDE))
            })
            .collect()
    }

    fn ids(kind: TrackerKind, frames: &[&[f32]]) -> Vec<Vec<u32>> {
        let mut tracker = Tracker::new(TrackerConfig {
            kind,
            ..TrackerConfig::default()
        });
        frames
            .iter()
            .map(|centers| tracker.assign(&row(centers)))
            .collect()
    }

    /// The vectors of the record's specification (track-json: Association).
    #[test]
    fn centroid_matches_the_specified_vectors() {
        let none: &[f32] = &[];
        let cases: [(&[Centers], &[&[u32]]); 5] = [
            // obj_2 at 38 px is not tried: its detection's nearest track is taken.
            (&[&[100.0, 150.0], &[110.0, 112.0]], &[&[1, 2], &[1, 3]]),
            // 80 px are accepted, 81 are not.
            (&[&[100.0], &[180.0], &[261.0]], &[&[1], &[1], &[2]]),
            // Seven missed frames survive …
            (
                &[&[100.0], none, none, none, none, none, none, none, &[100.0]],
                &[&[1], &[], &[], &[], &[], &[], &[], &[], &[1]],
            ),
            // … and an eighth deletes.
            (
                &[
                    &[100.0],
                    none,
                    none,
                    none,
                    none,
                    none,
                    none,
                    none,
                    none,
                    &[100.0],
                ],
                &[&[1], &[], &[], &[], &[], &[], &[], &[], &[], &[2]],
            ),
            (&[&[300.0, 100.0]], &[&[1, 2]]),
        ];
        for (frames, expected) in cases {
            assert_eq!(ids(TrackerKind::Centroid, frames), expected, "{frames:?}");
        }
    }

    #[test]
    fn iou_keeps_identities_where_centroid_swaps_them() {
        let crossing: [&[f32]; 6] = [
            &[100.0, 200.0],
            &[120.0, 180.0],
            &[140.0, 160.0],
            &[160.0, 140.0],
            &[180.0, 120.0],
            &[200.0, 100.0],
        ];
        let centroid = ids(TrackerKind::Centroid, &crossing);
        assert_eq!(centroid[5], [2, 1], "the case no longer distinguishes them");
        assert_eq!(ids(TrackerKind::Iou, &crossing), vec![vec![1, 2]; 6]);
    }

    #[test]
    fn iou_follows_through_a_short_occlusion() {
        let frames: [&[f32]; 7] = [&[100.0], &[115.0], &[130.0], &[], &[], &[175.0], &[190.0]];
        let seen = ids(TrackerKind::Iou, &frames);
        assert_eq!(seen[5], [1]);
        assert_eq!(seen[6], [1]);
    }

    #[test]
    fn iou_does_not_take_a_far_face_for_a_track() {
        assert_eq!(ids(TrackerKind::Iou, &[&[100.0], &[400.0]]), [[1], [2]]);
    }

    #[test]
    fn iou_takes_more_faces_than_tracks_and_fewer() {
        let frames: [&[f32]; 3] = [&[100.0], &[300.0, 101.0, 500.0], &[501.0]];
        assert_eq!(
            ids(TrackerKind::Iou, &frames),
            [vec![1], vec![2, 1, 3], vec![3]]
        );
    }

    #[test]
    fn ended_tracks_are_listed_once_and_never_come_back() {
        let mut tracker = Tracker::new(TrackerConfig {
            max_age: 0,
            ..TrackerConfig::default()
        });
        tracker.assign(&row(&[100.0, 300.0]));
        tracker.assign(&row(&[300.0]));
        assert_eq!(tracker.ended_ids(), [1]);
        tracker.assign(&row(&[300.0]));
        assert!(tracker.ended_ids().is_empty());
        tracker.reset();
        assert_eq!(tracker.ended_ids(), [2]);
        assert_eq!(tracker.assign(&row(&[300.0])), [3]);
        tracker.restart();
        assert_eq!(tracker.assign(&row(&[300.0])), [1]);
    }

    #[test]
    fn coordinates_that_are_not_numbers_open_tracks_of_their_own() {
        for kind in [TrackerKind::Centroid, TrackerKind::Iou] {
            let frames: [&[f32]; 2] = [&[f32::NAN, 100.0], &[f32::NAN, 100.0]];
            assert_eq!(ids(kind, &frames), [[1, 2], [3, 2]], "{kind:?}");
        }
    }
}
