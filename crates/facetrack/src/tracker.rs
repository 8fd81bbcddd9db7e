// SPDX-License-Identifier: MPL-2.0
//! Assigns identities to faces.

mod centroid;
mod iou;

use std::iter::zip;
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

/// Settings of the assignment of ids. The older pipeline of `docs/run.md` uses
/// [`TrackerKind::Centroid`] with 80 px. The defaults suit all sizes and frame rates.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
#[non_exhaustive]
pub struct TrackerConfig {
    /// Matching method.
    #[default(TrackerKind::Iou)]
    pub kind: TrackerKind,
    /// Maximum distance, px, of a face from its position in the last frame, or from the expected
    /// one; `None` for the size of the face.
    pub max_distance: Option<f32>,
    /// Maximum number of consecutive frames without a sighting; one more ends the track. The older
    /// pipeline has the same default.
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

/// Assigns identities to the faces of a stream.
#[derive(Debug, Default)]
pub(crate) struct IdTracker {
    config: TrackerConfig,
    tracks: Vec<Track>,
    /// Time of the last picture.
    picture: Option<Duration>,
    /// Boxes of the faces of the last picture that have no identity yet.
    doubtful: Vec<Rect>,
    /// The same of the picture before it.
    doubtful_before: Vec<Rect>,
    ended: Vec<u32>,
    last_id: u32,
}

/// A tracked face.
#[derive(Debug, Clone)]
struct Track {
    id: u32,
    /// Number of frames since the face was seen.
    age: u32,
    /// Time at which another face was last seen where this face may be; `None` while the face is
    /// seen, and after some time.
    covered: Option<Duration>,
    /// Last box of the face.
    bbox: Rect,
    motion: Motion,
    /// Motion of the face over a longer time, measured while its box touched no other one.
    steady: Motion,
}

impl Track {
    fn new(id: u32, face: &Observation, time: Duration) -> Self {
        let motion = Motion::measured(None, face, time);
        Self {
            id,
            age: 0,
            covered: None,
            bbox: face.bbox,
            motion,
            steady: motion,
        }
    }

    fn update(&mut self, face: &Observation, time: Duration) {
        self.age = 0;
        self.covered = None;
        self.bbox = face.bbox;
        self.motion = Motion::measured(Some(&self.motion), face, time);
    }

    /// [`Observation::centroid`] when it was seen last.
    fn centroid(&self) -> Point {
        self.motion.centroid()
    }
}

impl IdTracker {
    /// A tracker without tracks.
    pub(crate) fn new(config: TrackerConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// The identities of the `faces` of the next frame, in their order. `time` is the time of its
    /// picture: the last time again if the frame repeats the picture. `None` for a new face that
    /// overlaps a known one, until it is seen in another picture, because it may be an error of the
    /// engine.
    pub(crate) fn assign(&mut self, faces: &[Observation], time: Duration) -> Vec<Option<u32>> {
        // The older pipeline counts repeated frames.
        let counts = self.config.kind == TrackerKind::Centroid;
        if self.picture.replace(time) != Some(time) || counts {
            self.doubtful_before = std::mem::take(&mut self.doubtful);
            self.skip(1);
        }
        let matches = match self.config.kind {
            TrackerKind::Centroid => centroid::matches(&self.tracks, faces, &self.config),
            TrackerKind::Iou => iou::matches(&self.tracks, faces, time, &self.config),
        };
        let doubts = self.doubts(faces, &matches);
        self.doubtful = zip(faces, &doubts)
            .filter_map(|(face, is_doubtful)| is_doubtful.then_some(face.bbox))
            .collect();
        let ids = zip(zip(faces, matches), doubts)
            .map(|((face, track), is_doubtful)| {
                (!is_doubtful).then(|| self.update(face, track, time))
            })
            .collect();
        self.end_unseen(faces, time);
        ids
    }

    /// Returns true if a face may still return after `frames` frames that were lost in `time`.
    pub(crate) fn outlasts(&self, frames: u32, time: Duration) -> bool {
        let TrackerConfig { kind, max_age, .. } = self.config;
        frames <= max_age || kind == TrackerKind::Iou && time <= iou::MIN_WAIT
    }

    /// Continues after `frames` lost frames, as if they had shown no faces.
    pub(crate) fn skip(&mut self, frames: u32) {
        for track in &mut self.tracks {
            track.age = track.age.saturating_add(frames);
        }
    }

    /// Identities that the last call of [`IdTracker::assign`] or [`IdTracker::reset`] ended.
    pub(crate) fn ended_ids(&self) -> &[u32] {
        &self.ended
    }

    /// Ends all tracks. Identities continue from the last one.
    pub(crate) fn reset(&mut self) {
        self.doubtful.clear();
        self.doubtful_before.clear();
        self.ended = self.tracks.drain(..).map(|track| track.id).collect();
    }

    /// Begins another stream: identities start at 1.
    pub(crate) fn restart(&mut self) {
        *self = Self::new(self.config);
    }

    /// Continues identities from the last one of `before`.
    pub(crate) fn continue_after(&mut self, before: &Self) {
        self.last_id = self.last_id.max(before.last_id);
    }

    /// Returns true for each face that is doubtful.
    fn doubts(&self, faces: &[Observation], matches: &[Option<usize>]) -> Vec<bool> {
        let known: Vec<_> = zip(faces, matches)
            .filter_map(|(face, track)| track.map(|_| face.bbox))
            .collect();
        let is_doubtful = |(face, track): (&Observation, &Option<usize>)| {
            self.config.kind == TrackerKind::Iou
                && track.is_none()
                && iou::is_doubtful(&face.bbox, &known, &self.doubtful_before)
        };
        zip(faces, matches).map(is_doubtful).collect()
    }

    fn update(&mut self, face: &Observation, track: Option<usize>, time: Duration) -> u32 {
        if let Some(index) = track {
            let mut others = self.tracks[..index].iter().chain(&self.tracks[index + 1..]);
            let touches = others.any(|other| other.bbox.iou(&face.bbox) > 0.0);
            let track = &mut self.tracks[index];
            track.update(face, time);
            if !touches {
                track.measure_steadily(face, time);
            }
            return track.id;
        }
        self.last_id += 1;
        self.tracks.push(Track::new(self.last_id, face, time));
        self.last_id
    }

    fn end_unseen(&mut self, faces: &[Observation], time: Duration) {
        let TrackerConfig { kind, max_age, .. } = self.config;
        for track in &mut self.tracks {
            if track.age > 0 {
                track.cover(faces, time);
            }
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

    /// The ids of the faces that have one.
    fn reported(ids: Vec<Option<u32>>) -> Vec<u32> {
        ids.into_iter().flatten().collect()
    }

    /// Ids at a frame rate.
    fn ids_at(fps: f64, config: TrackerConfig, frames: &[Centers]) -> Vec<Vec<u32>> {
        let mut tracker = IdTracker::new(config);
        let frames = (0u32..).zip(frames);
        let ids = frames.map(|(frame, centers)| {
            let time = Duration::from_secs_f64(f64::from(frame) / fps);
            reported(tracker.assign(&row(centers), time))
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

    /// Examples from the specification of the older pipeline.
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
                let mut tracker = IdTracker::new(TrackerConfig {
                    kind,
                    ..TrackerConfig::default()
                });
                for (frame, want) in std::iter::zip(frames, &moved) {
                    let mut faces = row(frame);
                    let bbox = &mut faces[0].bbox;
                    for value in [&mut bbox.x, &mut bbox.y, &mut bbox.width, &mut bbox.height] {
                        *value *= scale;
                    }
                    let ids = reported(tracker.assign(&faces, Duration::ZERO));
                    assert_eq!(&ids, want, "{scale}");
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
        let mut tracker = IdTracker::new(TrackerConfig::default());
        for (frame, (first, other)) in (0u32..).zip(PASSING) {
            let boxes = [Some(first), other].into_iter().flatten();
            let faces: Vec<_> = boxes
                .map(|[x, y, width, height]| Observation::from_bbox(Rect::new(x, y, width, height)))
                .collect();
            let time = Duration::from_secs(frame.into()) / 24;
            let ids = reported(tracker.assign(&faces, time));
            assert_eq!(ids, [1, 2][..faces.len()], "{frame}");
        }
    }

    /// Boxes that `mediapipe` finds while two people pass each other, at a frame rate, and the number
    /// of the person in each of them, 0 for a mistake.
    #[test]
    fn iou_knows_two_people_who_pass_each_other() {
        type Frame<'a> = &'a [([f32; 4], u32)];
        #[rustfmt::skip]
        let cases: [(u32, &[(u32, Frame)]); 4] = [
            // A person comes out behind one who stands, and is seen first.
            (12, &[
                (0, &[([91.0, 141.0, 70.0, 85.0], 1), ([273.0, 136.0, 91.0, 103.0], 2)]),
                (1, &[([122.0, 141.0, 70.0, 86.0], 1), ([273.0, 137.0, 91.0, 103.0], 2)]),
                (2, &[([150.0, 138.0, 74.0, 91.0], 1), ([273.0, 136.0, 91.0, 103.0], 2)]),
                (3, &[([178.0, 138.0, 75.0, 91.0], 1), ([274.0, 137.0, 89.0, 102.0], 2)]),
                (4, &[([274.0, 137.0, 89.0, 103.0], 2)]),
                (6, &[([273.0, 137.0, 90.0, 103.0], 2)]),
                (8, &[([275.0, 138.0, 89.0, 102.0], 2)]),
                (9, &[([356.0, 137.0, 78.0, 94.0], 1)]),
                (10, &[([273.0, 137.0, 90.0, 103.0], 2), ([394.0, 140.0, 72.0, 88.0], 1)]),
            ]),
            // The region of the person behind slips onto the one in front, and that one is missed.
            (60, &[
                (0, &[([202.0, 235.0, 163.0, 186.0], 1), ([450.0, 218.0, 134.0, 160.0], 2)]),
                (12, &[([254.0, 244.0, 153.0, 174.0], 1), ([394.0, 218.0, 135.0, 163.0], 2)]),
                (14, &[([265.0, 237.0, 158.0, 184.0], 1), ([385.0, 217.0, 136.0, 162.0], 2)]),
                (15, &[([263.0, 241.0, 183.0, 175.0], 1), ([382.0, 217.0, 133.0, 165.0], 2)]),
                (16, &[([282.0, 220.0, 216.0, 192.0], 1)]),
                (17, &[([363.0, 215.0, 140.0, 173.0], 2)]),
                (20, &[([357.0, 217.0, 135.0, 163.0], 2)]),
                (24, &[([339.0, 217.0, 135.0, 164.0], 2)]),
                (28, &[([322.0, 217.0, 136.0, 163.0], 2)]),
                (30, &[([314.0, 214.0, 153.0, 176.0], 2)]),
                (31, &[([309.0, 212.0, 184.0, 190.0], 2)]),
                (32, &[([306.0, 214.0, 193.0, 190.0], 2)]),
                (33, &[([307.0, 213.0, 200.0, 195.0], 2)]),
                (34, &[]),
                (35, &[([290.0, 218.0, 136.0, 170.0], 2), ([349.0, 222.0, 187.0, 200.0], 1)]),
                (36, &[([285.0, 217.0, 137.0, 162.0], 2), ([352.0, 223.0, 186.0, 197.0], 1)]),
            ]),
            // A third face between the person in front and the one who comes out behind.
            (24, &[
                (0, &[([348.0, 229.0, 111.0, 130.0], 1), ([499.0, 252.0, 111.0, 136.0], 2)]),
                (1, &[([355.0, 225.0, 115.0, 139.0], 1), ([498.0, 259.0, 105.0, 129.0], 2)]),
                (5, &[([388.0, 227.0, 116.0, 138.0], 1)]),
                (9, &[([420.0, 224.0, 114.0, 138.0], 1)]),
                (12, &[([443.0, 228.0, 112.0, 136.0], 1)]),
                (15, &[([468.0, 228.0, 112.0, 135.0], 1)]),
                (16, &[([476.0, 226.0, 113.0, 142.0], 1)]),
                (17, &[
                    ([484.0, 228.0, 112.0, 134.0], 1),
                    ([364.0, 254.0, 96.0, 132.0], 0),
                    ([424.0, 256.0, 126.0, 116.0], 2),
                ]),
                (18, &[([492.0, 228.0, 110.0, 132.0], 1), ([365.0, 257.0, 114.0, 134.0], 2)]),
                (19, &[([500.0, 228.0, 111.0, 133.0], 1), ([353.0, 258.0, 105.0, 126.0], 2)]),
            ]),
            // The landmarks of the person in front slip aside for a frame.
            (60, &[
                (0, &[([353.0, 226.0, 113.0, 133.0], 1), ([496.0, 261.0, 104.0, 124.0], 2)]),
                (1, &[([358.0, 226.0, 115.0, 134.0], 1), ([491.0, 261.0, 106.0, 124.0], 2)]),
                (2, &[([411.0, 238.0, 137.0, 138.0], 1), ([491.0, 247.0, 109.0, 138.0], 2)]),
                (3, &[([364.0, 227.0, 114.0, 133.0], 1), ([485.0, 255.0, 110.0, 129.0], 2)]),
            ]),
        ];
        for (fps, frames) in cases {
            let mut tracker = IdTracker::new(TrackerConfig::default());
            for (frame, faces) in frames {
                let seen: Vec<_> = faces
                    .iter()
                    .map(|([x, y, width, height], _)| Rect::new(*x, *y, *width, *height))
                    .map(Observation::from_bbox)
                    .collect();
                let ids = tracker.assign(&seen, Duration::from_secs((*frame).into()) / fps);
                let want: Vec<_> = faces
                    .iter()
                    .map(|(_, id)| Some(*id).filter(|id| *id > 0))
                    .collect();
                assert_eq!(ids, want, "{fps} Hz, {frame}");
            }
        }
    }

    #[test]
    fn iou_reports_a_new_face_at_a_known_one_when_it_is_seen_again() {
        let pair: Centers = &[100.0, 120.0];
        let frames = [&[100.0][..], pair, pair, &[100.0], pair];
        let want = [vec![1], vec![1], vec![1, 2], vec![1], vec![1, 2]];
        assert_eq!(ids(TrackerKind::Iou, &frames), want);
        assert_eq!(ids(TrackerKind::Iou, &[pair]), [[1, 2]]);
        assert_eq!(ids(TrackerKind::Centroid, &frames)[1], [1, 2]);
        let mistakes = [&[100.0][..], pair, &[100.0], pair];
        assert_eq!(ids(TrackerKind::Iou, &mistakes)[3], [1]);
    }

    /// A person who walks by nearly a face per picture, is lost for seven pictures and passes another
    /// one, and a mistake in one picture.
    #[test]
    fn iou_gives_the_same_ids_if_pictures_are_repeated() {
        let picture = |picture: usize| match picture {
            8..15 => vec![300.0],
            20 => vec![100.0 + 35.0 * 20.0, 300.0, 320.0],
            walk => vec![100.0 + 35.0 * walk as f32, 300.0],
        };
        let pictures: Vec<_> = (0..30).map(picture).collect();
        let once: Vec<_> = pictures.iter().map(Vec::as_slice).collect();
        let want = ids_at(12.0, TrackerConfig::default(), &once);
        for repeats in 2..=5 {
            let mut tracker = IdTracker::new(TrackerConfig::default());
            for (number, (centers, want)) in (0u32..).zip(zip(&once, &want)) {
                let time = Duration::from_secs_f64(f64::from(number) / 12.0);
                for _ in 0..repeats {
                    let ids = reported(tracker.assign(&row(centers), time));
                    assert_eq!(&ids, want, "{repeats} times, {number}");
                }
            }
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
        let mut tracker = IdTracker::new(TrackerConfig {
            max_age: 0,
            ..TrackerConfig::default()
        });
        let mut seconds = 0..;
        let mut assign = |tracker: &mut IdTracker, centers: &[f32]| {
            let time = seconds.next().map(Duration::from_secs);
            reported(tracker.assign(&row(centers), time.unwrap()))
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
            let mut tracker = IdTracker::new(TrackerConfig {
                kind,
                ..TrackerConfig::default()
            });
            let time = Duration::from_millis(ms);
            assert_eq!(tracker.outlasts(lost, time), want, "{kind:?} {lost}");
            tracker.assign(&row(&[100.0]), Duration::ZERO);
            tracker.skip(lost);
            let ids = tracker.assign(&row(&[100.0]), time);
            assert_eq!(ids, [Some(1)], "{kind:?} {lost}");
            assert!(tracker.ended_ids().is_empty());
        }
    }

    #[test]
    fn coordinates_that_are_not_numbers_continue_no_track() {
        let frames: [&[f32]; 2] = [&[f32::NAN, 100.0], &[f32::NAN, 100.0]];
        assert_eq!(ids(TrackerKind::Centroid, &frames), [[1, 2], [3, 2]]);
        assert_eq!(ids(TrackerKind::Iou, &frames), [vec![1, 2], vec![2]]);
    }
}
