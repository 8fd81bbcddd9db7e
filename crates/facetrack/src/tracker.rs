// SPDX-License-Identifier: MPL-2.0
//! Assigns identities to faces.

mod centroid;
mod iou;

use std::time::Duration;

use smart_default::SmartDefault;

use super::geometry::{Point, Rect};
use super::motion::Motion;
use super::observation::Observation;
use crate::words::choices;

choices! {
    /// Method that matches the faces of a frame with tracks.
    pub enum TrackerKind, words tracker_words {
        Centroid = "centroid": "nearest centre, for one face after the other",
        Iou = "iou": "best overlap with the expected positions, for all faces together, so that ids are not swapped when faces cross; ids are also kept for a minimum time, and longer while a face is behind another one",
    }
}

/// Settings of a [`Tracker`]. The pipeline that reads the record uses [`TrackerKind::Centroid`] with
/// 80 px (track-json: Association). The other defaults suit all sizes and frame rates.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
pub struct TrackerConfig {
    /// Matching method.
    #[default(TrackerKind::Iou)]
    pub kind: TrackerKind,
    /// Maximum distance, px, of a face from its position in the last frame, or from the expected
    /// one; `None` for the size of the face.
    pub max_distance: Option<f32>,
    /// Maximum number of consecutive frames without a sighting; one more ends the track. As in that
    /// pipeline.
    #[default(7)]
    pub max_age: u32,
}

impl TrackerConfig {
    /// Maximum distance of the centres of two boxes of the same face, px. The size of the face is
    /// their mean side: a face that moves as far between two frames crosses a picture that is ten
    /// faces wide in 0.4 s at 25 frames per second. With 1.5 sizes, neighbours got the ids of faces
    /// that had left.
    fn reach(&self, a: &Rect, b: &Rect) -> f32 {
        let size = (a.width + a.height + b.width + b.height) / 4.0;
        self.max_distance.unwrap_or(size)
    }
}

/// Follows faces through a stream.
///
/// ```
/// use std::time::Duration;
///
/// use facetrack::geometry::Rect;
/// use facetrack::observation::Observation;
/// use facetrack::tracker::{Tracker, TrackerConfig};
///
/// let mut tracker = Tracker::new(TrackerConfig::default());
/// let face = |x| Observation::from_bbox(Rect::new(x, 100.0, 40.0, 40.0));
/// let times = [0, 40].map(Duration::from_millis);
/// assert_eq!(tracker.assign(&[face(100.0), face(300.0)], times[0]), [1, 2]);
/// assert_eq!(tracker.assign(&[face(305.0)], times[1]), [2]);
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
    /// Whether it is not seen, and a seen face is where it is expected.
    is_hidden: bool,
    /// Its box when it was seen last.
    bbox: Rect,
    motion: Motion,
}

impl Track {
    fn new(id: u32, face: &Observation, time: Duration) -> Self {
        Self {
            id,
            age: 0,
            is_hidden: false,
            bbox: face.bbox,
            motion: Motion::measured(None, face, time),
        }
    }

    fn update(&mut self, face: &Observation, time: Duration) {
        self.age = 0;
        self.bbox = face.bbox;
        self.motion = Motion::measured(Some(&self.motion), face, time);
    }

    /// [`Observation::centroid`] when it was seen last.
    fn centroid(&self) -> Point {
        self.motion.centroid()
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

    /// The identities of the `faces` of the next frame, at `time`, in their order.
    pub fn assign(&mut self, faces: &[Observation], time: Duration) -> Vec<u32> {
        for track in &mut self.tracks {
            track.age += 1;
        }
        let matches = match self.config.kind {
            TrackerKind::Centroid => centroid::matches(&self.tracks, faces, &self.config),
            TrackerKind::Iou => iou::matches(&self.tracks, faces, time, &self.config),
        };
        let ids = faces
            .iter()
            .zip(matches)
            .map(|(face, track)| self.update(face, track, time))
            .collect();
        self.end_unseen(faces, time);
        ids
    }

    /// Whether a face may still return after `frames` frames that were lost in `time`.
    pub fn outlasts(&self, frames: u32, time: Duration) -> bool {
        let TrackerConfig { kind, max_age, .. } = self.config;
        frames <= max_age || kind == TrackerKind::Iou && time <= iou::MIN_WAIT
    }

    /// Continues after `frames` frames that were lost: as if no face had been seen in them.
    pub fn skip(&mut self, frames: u32) {
        for track in &mut self.tracks {
            track.age = track.age.saturating_add(frames);
        }
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

    fn update(&mut self, face: &Observation, track: Option<usize>, time: Duration) -> u32 {
        if let Some(index) = track {
            self.tracks[index].update(face, time);
            return self.tracks[index].id;
        }
        self.last_id += 1;
        self.tracks.push(Track::new(self.last_id, face, time));
        self.last_id
    }

    fn end_unseen(&mut self, faces: &[Observation], time: Duration) {
        let TrackerConfig { kind, max_age, .. } = self.config;
        for track in &mut self.tracks {
            track.is_hidden = track.age > 0 && track.is_behind(faces, time);
        }
        let has_ended = |track: &mut Track| {
            track.age > max_age && (kind == TrackerKind::Centroid || !track.is_awaited(time))
        };
        self.ended = self
            .tracks
            .extract_if(.., has_ended)
            .map(|track| track.id)
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Rect;

    const SIDE: f32 = 40.0;

    /// Frame rates, Hz.
    const RATES: [f64; 5] = [12.0, 24.0, 30.0, 60.0, 120.0];

    /// Positions of the faces of a frame.
    type Centers<'a> = &'a [f32];

    /// The rule of the pipeline that reads the record.
    const PIPELINE: TrackerConfig = TrackerConfig {
        kind: TrackerKind::Centroid,
        max_distance: Some(80.0),
        max_age: 7,
    };

    /// Faces of one size on the line y = 100, by their centroid's x.
    fn row(centers: &[f32]) -> Vec<Observation> {
        let side = |x: &f32| Rect::around(Point::new(*x, 100.0), SIDE, SIDE);
        let faces = centers.iter().map(side);
        faces.map(Observation::from_bbox).collect()
    }

    /// Ids at a frame rate.
    fn ids_at(fps: f64, config: TrackerConfig, frames: &[Centers]) -> Vec<Vec<u32>> {
        let mut tracker = Tracker::new(config);
        let frames = (0u32..).zip(frames);
        let ids = frames.map(|(frame, centers)| {
            let time = Duration::from_secs_f64(f64::from(frame) / fps);
            tracker.assign(&row(centers), time)
        });
        ids.collect()
    }

    fn ids(kind: TrackerKind, frames: &[Centers]) -> Vec<Vec<u32>> {
        let config = TrackerConfig {
            kind,
            ..TrackerConfig::default()
        };
        ids_at(25.0, config, frames)
    }

    /// The vectors of the record's specification (track-json: Association).
    #[test]
    fn centroid_matches_the_specified_vectors() {
        let none: &[f32] = &[];
        let missed = |count: usize| -> Vec<Centers> {
            let frames = std::iter::repeat_n(none, count);
            let ends = [&[100.0f32][..]; 2];
            ends[..1]
                .iter()
                .copied()
                .chain(frames)
                .chain([ends[1]])
                .collect()
        };
        let unseen = |count: usize, last: u32| -> Vec<Vec<u32>> {
            let frames = std::iter::repeat_n(vec![], count);
            [vec![1]]
                .into_iter()
                .chain(frames)
                .chain([vec![last]])
                .collect()
        };
        let cases: [(Vec<Centers>, Vec<Vec<u32>>); 5] = [
            // obj_2 at 38 px is not tried: its detection's nearest track is taken.
            (
                vec![&[100.0, 150.0], &[110.0, 112.0]],
                vec![vec![1, 2], vec![1, 3]],
            ),
            // 80 px are accepted, 81 are not.
            (
                vec![&[100.0], &[180.0], &[261.0]],
                vec![vec![1], vec![1], vec![2]],
            ),
            // Seven missed frames survive …
            (missed(7), unseen(7, 1)),
            // … and an eighth deletes.
            (missed(8), unseen(8, 2)),
            (vec![&[300.0, 100.0]], vec![vec![1, 2]]),
        ];
        for (frames, expected) in cases {
            for fps in RATES {
                assert_eq!(
                    ids_at(fps, PIPELINE, &frames),
                    expected,
                    "{fps}: {frames:?}"
                );
            }
        }
    }

    #[test]
    fn the_size_of_a_face_is_its_maximum_distance() {
        for kind in [TrackerKind::Centroid, TrackerKind::Iou] {
            let frames: [Centers; 3] = [&[100.0], &[138.0], &[217.0]];
            // The expected position of the third one is 176.
            let moved = [vec![1], vec![1], vec![2]];
            assert_eq!(ids(kind, &frames), moved, "{kind:?}");
            for scale in [0.5, 2.0, 4.0] {
                let mut tracker = Tracker::new(TrackerConfig {
                    kind,
                    ..TrackerConfig::default()
                });
                for (frame, want) in std::iter::zip(frames, &moved) {
                    let mut faces = row(frame);
                    let bbox = &mut faces[0].bbox;
                    for value in [&mut bbox.x, &mut bbox.y, &mut bbox.width, &mut bbox.height] {
                        *value *= scale;
                    }
                    assert_eq!(&tracker.assign(&faces, Duration::ZERO), want, "{scale}");
                }
            }
        }
    }

    #[test]
    fn a_distance_in_pixels_limits_both_methods() {
        for kind in [TrackerKind::Centroid, TrackerKind::Iou] {
            let config = TrackerConfig {
                kind,
                max_distance: Some(10.0),
                ..TrackerConfig::default()
            };
            let frames: [Centers; 3] = [&[100.0], &[109.0], &[130.0]];
            let want = [[1], [1], [2]];
            assert_eq!(ids_at(25.0, config, &frames), want, "{kind:?}");
        }
    }

    /// A hand hides a face for a fifth of a second.
    #[test]
    fn iou_waits_for_a_face_at_any_frame_rate() {
        for fps in RATES {
            let missed = (fps / 5.0) as usize;
            let mut frames = vec![&[][..]; missed];
            frames.insert(0, &[100.0]);
            frames.push(&[110.0]);
            let ids = ids_at(fps, TrackerConfig::default(), &frames);
            assert_eq!(ids.last(), Some(&vec![1]), "{fps}");
        }
    }

    #[test]
    fn iou_waits_for_a_face_behind_another_one() {
        for (fps, side) in [(12.0, 0.0), (25.0, 0.0), (60.0, 0.0), (120.0, 100.0)] {
            // Two people pass each other in 4 s. The second one is seen unless the first one covers
            // half of it, or for a time if the first one stands at the side.
            let frame = |frame: usize| {
                let way = 80.0 * (frame as f32 / (fps as f32 * 4.0) - 0.5);
                let hidden = way.abs() < SIDE / 4.0;
                let first = 200.0 - way + side;
                if hidden {
                    vec![first]
                } else {
                    vec![first, 200.0 + way]
                }
            };
            let frames: Vec<_> = (0..(fps * 4.0) as usize).map(frame).collect();
            let frames: Vec<_> = frames.iter().map(Vec::as_slice).collect();
            let ids = ids_at(fps, TrackerConfig::default(), &frames);
            let last = if side > 0.0 { 3 } else { 2 };
            assert_eq!(ids.last(), Some(&vec![1, last]), "{fps}");
        }
    }

    /// Boxes that YuNet finds at 24 Hz while a person passes before another one: of the first one, and
    /// of the other one if it is found. Before it disappears, its visible part moves with the first.
    #[rustfmt::skip]
    const PASSING: [([f32; 4], Option<[f32; 4]>); 15] = [
        ([182.0, 104.0, 57.0, 75.0], Some([245.0, 127.0, 54.0, 65.0])),
        ([186.0, 103.0, 56.0, 77.0], Some([240.0, 125.0, 54.0, 68.0])),
        ([191.0, 106.0, 55.0, 73.0], Some([244.0, 126.0, 47.0, 65.0])),
        ([192.0, 105.0, 58.0, 76.0], Some([250.0, 129.0, 36.0, 56.0])),
        ([199.0, 103.0, 57.0, 76.0], None),
        ([202.0, 103.0, 57.0, 76.0], None),
        ([206.0, 105.0, 57.0, 76.0], None),
        ([209.0, 103.0, 56.0, 77.0], None),
        ([214.0, 105.0, 56.0, 75.0], None),
        ([217.0, 103.0, 58.0, 77.0], None),
        ([221.0, 104.0, 56.0, 75.0], None),
        ([224.0, 103.0, 57.0, 76.0], None),
        ([231.0, 105.0, 54.0, 75.0], Some([188.0, 123.0, 42.0, 66.0])),
        ([234.0, 103.0, 56.0, 76.0], Some([188.0, 123.0, 50.0, 67.0])),
        ([239.0, 105.0, 55.0, 73.0], Some([185.0, 124.0, 52.0, 66.0])),
    ];

    #[test]
    fn iou_knows_a_face_at_the_other_side_of_the_one_before_it() {
        let mut tracker = Tracker::new(TrackerConfig::default());
        for (frame, (first, other)) in (0u32..).zip(PASSING) {
            let boxes = [Some(first), other].into_iter().flatten();
            let faces: Vec<_> = boxes
                .map(|[x, y, width, height]| Observation::from_bbox(Rect::new(x, y, width, height)))
                .collect();
            let ids = tracker.assign(&faces, Duration::from_secs(frame.into()) / 24);
            assert_eq!(ids, [1, 2][..faces.len()], "{frame}");
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
        let mut seconds = 0..;
        let mut assign = |tracker: &mut Tracker, centers: &[f32]| {
            let time = seconds.next().map(Duration::from_secs);
            tracker.assign(&row(centers), time.unwrap())
        };
        assign(&mut tracker, &[100.0, 300.0]);
        assign(&mut tracker, &[300.0]);
        assert_eq!(tracker.ended_ids(), [1]);
        assign(&mut tracker, &[300.0]);
        assert!(tracker.ended_ids().is_empty());
        tracker.reset();
        assert_eq!(tracker.ended_ids(), [2]);
        assert_eq!(assign(&mut tracker, &[300.0]), [3]);
        tracker.restart();
        assert_eq!(assign(&mut tracker, &[300.0]), [1]);
    }

    #[test]
    fn faces_return_after_lost_frames() {
        use TrackerKind::{Centroid, Iou};
        for (kind, lost, ms, want) in [
            (Centroid, 7, 320, true),
            (Centroid, 8, 72, false),
            (Iou, 7, 320, true),
            (Iou, 8, 72, true),
            (Iou, 8, 360, false),
        ] {
            let mut tracker = Tracker::new(TrackerConfig {
                kind,
                ..TrackerConfig::default()
            });
            let time = Duration::from_millis(ms);
            assert_eq!(tracker.outlasts(lost, time), want, "{kind:?} {lost}");
            tracker.assign(&row(&[100.0]), Duration::ZERO);
            tracker.skip(lost);
            let ids = tracker.assign(&row(&[100.0]), time);
            assert_eq!(ids, [1], "{kind:?} {lost}");
            assert!(tracker.ended_ids().is_empty());
        }
    }

    #[test]
    fn coordinates_that_are_not_numbers_open_tracks_of_their_own() {
        for kind in [TrackerKind::Centroid, TrackerKind::Iou] {
            let frames: [&[f32]; 2] = [&[f32::NAN, 100.0], &[f32::NAN, 100.0]];
            assert_eq!(ids(kind, &frames), [[1, 2], [3, 2]], "{kind:?}");
        }
    }
}
