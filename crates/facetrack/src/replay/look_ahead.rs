// SPDX-License-Identifier: MPL-2.0
//! Reports with the faces that are about to appear.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{Read, Seek};
use std::ops::Range;
use std::time::Duration;

use super::{Replay, ReplayError};
use crate::motion::{Motion, has_jumped};
use crate::observation::{Observation, Origin};
use crate::report::{FrameReport, FrameStatus, TrackedFace};

/// The speed of a face is measured for this time after its first frame. Our choice.
const MOTION_TIME: Duration = Duration::from_millis(500);

/// Reads reports together with the reports of the next frames.
#[derive(Debug)]
pub struct LookAhead {
    /// Time to look ahead.
    span: Duration,
    /// Reports by place, from the last frame on.
    read: BTreeMap<usize, Option<FrameReport>>,
    /// Times of all frames by place; empty before the first report.
    times: Vec<Duration>,
    /// Place of the last report.
    last: Option<usize>,
}

impl LookAhead {
    /// Looks this time ahead, and at least to the next frame; 0 for not at all.
    pub fn new(span: Duration) -> Self {
        Self {
            span,
            read: BTreeMap::new(),
            times: Vec::new(),
            last: None,
        }
    }

    /// Notes that the next frame does not follow the last one, even if it has the next place.
    pub fn restart(&mut self) {
        self.last = None;
    }

    /// The report for a frame, as [`Replay::report`] returns it. Each face that is not in it, but
    /// in one of the next frames, is added with the origin [`Origin::Held`], also where its id jumps to
    /// another position. The first report, and a report that does not follow the last one, also get the
    /// faces of the frames before.
    ///
    /// The box of an added face contains all positions that the face can have in this frame, by its
    /// speed in the frames that show it. An added face has no points.
    ///
    /// # Errors
    /// Returns an error if [`Replay::report`] does, for one of these frames.
    pub fn report<S: Read + Seek>(
        &mut self,
        replay: &mut Replay<S>,
        place: usize,
        video: (u32, u32),
    ) -> Result<Option<FrameReport>, ReplayError> {
        if self.span.is_zero() {
            return replay.report(place, video);
        }
        if self.times.is_empty() {
            self.times = replay.frame_times();
        }
        let last = self.last.replace(place);
        let is_next = last.is_some_and(|last| (last..=last + 1).contains(&place));
        let start = if is_next {
            place
        } else {
            self.start(place, self.span)
        };
        let end = self.end(place, self.span + MOTION_TIME);
        self.read.retain(|known, _| (start..end).contains(known));
        for place in start..end {
            if let Entry::Vacant(entry) = self.read.entry(place) {
                entry.insert(replay.report(place, video)?);
            }
        }
        let Some(mut report) = self.read.get(&place).cloned().flatten() else {
            return Ok(None);
        };
        let later = place + 1..self.end(place, self.span);
        let jumped = self.jumped_faces(&report.faces, later.clone(), place);
        let mut known = counts(&report.faces);
        for other in (start..place).rev().chain(later) {
            self.add_new_faces(&mut report.faces, &mut known, other, place);
        }
        report.faces.extend(jumped);
        if report.status == FrameStatus::NoFace && !report.faces.is_empty() {
            report.status = FrameStatus::Tracked;
        }
        Ok(Some(report))
    }

    /// Adds the faces of another report that are not among `faces`, as the frame at `place` may show
    /// them. `known` has the number of faces for each id.
    fn add_new_faces(
        &self,
        faces: &mut Vec<TrackedFace>,
        known: &mut BTreeMap<u32, usize>,
        other: usize,
        place: usize,
    ) {
        let mut seen = BTreeMap::new();
        let report = self.read.get(&other).and_then(Option::as_ref);
        for face in report.into_iter().flat_map(|report| &report.faces) {
            let (seen, known) = (
                seen.entry(face.id).or_insert(0),
                known.entry(face.id).or_default(),
            );
            *seen += 1;
            if *seen > *known {
                *known += 1;
                faces.push(self.added(face, other, place));
            }
        }
    }

    /// Those of `faces` that are at other positions in later frames than their motion explains: the id
    /// passes to another person, or the box was of a part of the face.
    fn jumped_faces(
        &self,
        faces: &[TrackedFace],
        later: Range<usize>,
        place: usize,
    ) -> Vec<TrackedFace> {
        let mut last: BTreeMap<_, _> = numbered(faces)
            .map(|(key, it)| (key, it.face.bbox))
            .collect();
        let mut jumped = Vec::new();
        for other in later {
            let report = self.read.get(&other).and_then(Option::as_ref);
            let faces = report.map_or(&[][..], |report| &report.faces);
            for (key, face) in numbered(faces) {
                let Some(last) = last.get_mut(&key) else {
                    continue;
                };
                if has_jumped(&face.face.bbox, last) {
                    jumped.push(self.added(face, other, place));
                }
                *last = face.face.bbox;
            }
        }
        jumped
    }

    /// A face of another frame, as the frame at `place` may show it.
    fn added(&self, face: &TrackedFace, other: usize, place: usize) -> TrackedFace {
        let speed = self.largest_speed(face.id, other, place);
        let time = self.times[other].abs_diff(self.times[place]);
        TrackedFace {
            id: face.id,
            face: grown(&face.face, speed * time.as_secs_f32()),
        }
    }

    /// The largest speed of a face, px/s, in the frames from `at` on, or up to `at` if it is before
    /// `place`.
    fn largest_speed(&self, id: u32, at: usize, place: usize) -> f32 {
        let frames = if at > place {
            at..self.end(at, MOTION_TIME)
        } else {
            self.start(at, MOTION_TIME)..at + 1
        };
        let mut motion = None;
        for (at, report) in self.read.range(frames) {
            let faces = report.iter().flat_map(|report| &report.faces);
            for face in faces.filter(|face| face.id == id) {
                motion = Some(Motion::measured(
                    motion.as_ref(),
                    &face.face,
                    self.times[*at],
                ));
            }
        }
        motion.map_or(0.0, |motion: Motion| motion.largest_speed())
    }

    /// The place after the frames that follow the one at `place` within a time. The next frame always
    /// does.
    fn end(&self, place: usize, time: Duration) -> usize {
        let later = self.times.iter().skip(place + 1);
        let near = later.take_while(|it| it.abs_diff(self.times[place]) <= time);
        let count = self.times.len();
        (place + 1 + near.count().max(1)).min(count).max(place + 1)
    }

    /// The place of the first of the frames that precede the one at `place` within a time. The previous
    /// frame always does.
    fn start(&self, place: usize, time: Duration) -> usize {
        let earlier = self.times[..place].iter().rev();
        let near = earlier.take_while(|it| it.abs_diff(self.times[place]) <= time);
        place.saturating_sub(near.count().max(1))
    }
}

/// The faces by their ids and their numbers among the faces with the same id.
fn numbered(faces: &[TrackedFace]) -> impl Iterator<Item = ((u32, usize), &TrackedFace)> {
    let mut counts = BTreeMap::new();
    faces.iter().map(move |face| {
        let count: &mut usize = counts.entry(face.id).or_default();
        *count += 1;
        ((face.id, *count), face)
    })
}

/// Number of faces with each id. In a damaged record, several faces of a frame may have the same one.
fn counts(faces: &[TrackedFace]) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for face in faces {
        *counts.entry(face.id).or_default() += 1;
    }
    counts
}

/// A held face whose box is larger by `distance` px on each side, without points.
fn grown(face: &Observation, distance: f32) -> Observation {
    let mut face = face.clone();
    face.origin = Origin::Held;
    (face.bbox.x, face.bbox.y) = (face.bbox.x - distance, face.bbox.y - distance);
    face.bbox.width += 2.0 * distance;
    face.bbox.height += 2.0 * distance;
    (face.landmarks, face.secondary_landmarks) = (None, None);
    face.key_points.clear();
    face
}
