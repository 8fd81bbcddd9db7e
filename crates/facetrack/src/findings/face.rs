// SPDX-License-Identifier: MPL-2.0
//! A face over time.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::{FindingKind, Log, Place, Run};
use crate::geometry::{Point, Rect};
use crate::motion::Motion;
use crate::observation::{Observation, Origin};
use crate::schedule::NOMINAL_PERIOD;

/// A face that is seen for less time is reported. Our choice.
const SHORT: Duration = Duration::from_millis(300);

/// A face that is held or predicted for longer is reported. Our choice: the tracker waits for less
/// time, and common intervals of analysis are shorter.
const LONG_HOLD: Duration = Duration::from_millis(500);

/// A blendshape with this value is at its limit, which is 1. Our choice.
const LIMIT: f32 = 0.99;

/// A blendshape that is at its limit for longer is reported. Our choice: extreme expressions are
/// shorter.
const LONG_LIMIT: Duration = Duration::from_secs(2);

/// A face jumps if its position and size deviate more from those expected, in sizes of the face per
/// nominal period. Our choice: twice the largest deviation in five clips with four engines.
pub(super) const JUMP: f32 = 0.2;

/// Landmarks jump if they change more, relative to their mean, in the same unit. Our choice: twice
/// the largest change in the same clips.
const CHANGE: f32 = 0.1;

/// A jump is this many times larger than the usual deviation of the face. Our choice.
const UNUSUAL: f32 = 5.0;

/// Weight of the latest value in a usual one: half of it is from the last 7 frames. Our choice.
const LATEST: f32 = 0.1;

/// Maximum time between measurements that are compared. Our choice: a head may move anywhere in a
/// longer time.
const COMPARABLE: Duration = Duration::from_millis(300);

/// Maximum deviation of a face that takes over the place of another one, in sizes of the face: the
/// reach of the tracker.
pub(super) const SAME_PLACE: f32 = 1.0;

/// A face over time.
#[derive(Debug)]
pub(super) struct Face {
    /// Frames from the first to the last one that has the face.
    pub seen: Run,
    /// True if the frame before the first one was analysed, and does not have the face.
    is_new: bool,
    /// Analysed frames without the face since it was seen last.
    missing: Option<Run>,
    /// The face when it was measured last.
    measured: Measured,
    /// Latest frames, if the face is held or predicted in them.
    held: Option<Run>,
    /// Blendshapes that are at their limit.
    limits: BTreeMap<String, Run>,
}

/// A measured face.
#[derive(Debug)]
struct Measured {
    motion: Motion,
    size: f32,
    /// Landmarks relative to their mean, in sizes of the face.
    shape: Vec<Point>,
    /// Usual deviation from the expected position.
    deviation: f32,
    /// Usual change of the shape.
    change: f32,
}

impl Face {
    /// A face that is seen in a frame whose picture has this time.
    pub(super) fn new(face: &Observation, (at, picture): (Place, Duration), is_new: bool) -> Self {
        let mut new = Self {
            seen: Run::at(at),
            is_new,
            missing: None,
            measured: Measured::first(face, picture),
            held: None,
            limits: BTreeMap::new(),
        };
        new.note_limits(face, at);
        new
    }

    /// Returns true if `other` is at the place where this face is expected.
    pub(super) fn is_near(&self, other: &Observation, time: Duration) -> bool {
        self.measured.deviation_of(other, time) <= SAME_PLACE
    }

    /// The places where this face is expected, and the distance from them that is this deviation.
    pub(super) fn reach(&self, deviation: f32, time: Duration) -> ([Point; 2], f32) {
        let measured = &self.measured;
        (measured.expected(time), deviation * measured.size)
    }

    /// Returns true if this face jumps if it is the `other` one.
    pub(super) fn jumps_to(&self, other: &Observation, time: Duration) -> bool {
        self.measured.deviation_of(other, time) > JUMP
    }

    /// Forgets the movement.
    pub(super) fn restart(&mut self, face: &Observation, time: Duration) {
        self.measured = Measured::first(face, time);
    }

    /// Notes the face in the next frame that has it, whose picture has this time.
    pub(super) fn see(
        &mut self,
        id: u32,
        face: &Observation,
        (at, picture): (Place, Duration),
        log: &mut Log,
    ) {
        if let Some(run) = self.missing.take() {
            let text = format!("Face {id} is missing between frames that have it.");
            log.add(FindingKind::Missing, Some(id), run, text);
        }
        self.seen.last = at;
        if matches!(face.origin, Origin::Held | Origin::Predicted) {
            self.held.get_or_insert(Run::at(at)).last = at;
            return;
        }
        self.end_hold(id, log);
        if let Some(subject) = self.measured.jump(face, picture) {
            let text = format!("{subject} of face {id} jumps from frame to frame.");
            log.add(FindingKind::Jump, Some(id), Run::at(at), text);
        }
        self.end_limits(id, Some(face), log);
        self.note_limits(face, at);
    }

    /// Notes an analysed frame without the face.
    pub(super) fn miss(&mut self, at: Place) {
        self.missing.get_or_insert(Run::at(at)).last = at;
    }

    /// Ends the face. One that is seen until then may go on unseen.
    pub(super) fn end(mut self, id: u32, log: &mut Log) {
        self.end_hold(id, log);
        self.end_limits(id, None, log);
        let duration = log.duration(self.seen);
        if self.is_new && self.missing.is_some() && duration < SHORT {
            let text = format!(
                "Face {id} is seen for only {:.2} s.",
                duration.as_secs_f32()
            );
            log.add(FindingKind::Short, Some(id), self.seen, text);
        }
    }

    fn end_hold(&mut self, id: u32, log: &mut Log) {
        let Some(run) = self.held.take() else {
            return;
        };
        let duration = log.duration(run);
        if duration >= LONG_HOLD {
            let seconds = duration.as_secs_f32();
            let text =
                format!("Face {id} is not measured for {seconds:.1} s, but held or predicted.");
            log.add(FindingKind::Held, Some(id), run, text);
        }
    }

    fn note_limits(&mut self, face: &Observation, at: Place) {
        for name in at_limit(face) {
            let run = self.limits.entry(name.to_owned());
            run.or_insert(Run::at(at)).last = at;
        }
    }

    /// Ends the blendshapes that are not at their limit in `face`.
    fn end_limits(&mut self, id: u32, face: Option<&Observation>, log: &mut Log) {
        let limits: HashSet<&str> = face.into_iter().flat_map(at_limit).collect();
        let ended = self
            .limits
            .extract_if(.., |name, _| !limits.contains(&**name));
        for (name, run) in ended {
            let duration = log.duration(run);
            if duration >= LONG_LIMIT {
                let text = format!(
                    "{name} of face {id} is at its limit for {:.1} s.",
                    duration.as_secs_f32()
                );
                log.add(FindingKind::Limit, Some(id), run, text);
            }
        }
    }
}

impl Measured {
    fn first(face: &Observation, time: Duration) -> Self {
        Self {
            motion: Motion::measured(None, face, time),
            size: size(face),
            shape: shape(face),
            deviation: 0.0,
            change: 0.0,
        }
    }

    /// The positions where the face is expected: it continues to move, or stops.
    fn expected(&self, time: Duration) -> [Point; 2] {
        let by = self.motion.displacement(time).unwrap_or_default();
        let from = self.motion.centroid();
        [Point::new(from.x + by.x, from.y + by.y), from]
    }

    /// Distance and difference in size from the face that is expected, in sizes of the face.
    fn deviation_of(&self, face: &Observation, time: Duration) -> f32 {
        let distances = self.expected(time).map(|it| face.centroid().distance(it));
        let distance = distances[0].min(distances[1]);
        distance.max((size(face) - self.size).abs()) / self.size
    }

    /// Root mean square of the changes of the landmarks, in sizes of the face.
    fn change_of(&self, shape: &[Point]) -> f32 {
        if shape.len() != self.shape.len() {
            return 0.0;
        }
        let distances = std::iter::zip(shape, &self.shape).map(|(a, b)| a.distance(*b));
        let squares: f32 = distances.map(|it| it * it).sum();
        (squares / shape.len().max(1) as f32).sqrt()
    }

    /// Measures the face in the picture at `time`, unless that is a repeated one. Returns the subject
    /// of a sentence about a jump.
    fn jump(&mut self, face: &Observation, time: Duration) -> Option<&'static str> {
        if self.motion.elapsed(time).is_zero() {
            return None;
        }
        let shape = shape(face);
        let (deviation, change) = (self.deviation_of(face, time), self.change_of(&shape));
        let elapsed = self.motion.elapsed(time);
        let frames = (elapsed.as_secs_f32() / NOMINAL_PERIOD.as_secs_f32()).max(1.0);
        let is_jump = |value: f32, least: f32, usual: f32| {
            elapsed <= COMPARABLE && value > frames * least && value > UNUSUAL * usual
        };
        let subject = if is_jump(deviation, JUMP, self.deviation) {
            Some("The box")
        } else if is_jump(change, CHANGE, self.change) {
            Some("The shape")
        } else {
            None
        };
        *self = Self {
            motion: Motion::measured(Some(&self.motion), face, time),
            size: size(face),
            shape,
            deviation: self.deviation + LATEST * (deviation - self.deviation),
            change: self.change + LATEST * (change - self.change),
        };
        subject
    }
}

/// Mean side of the box, at least a pixel.
fn size(face: &Observation) -> f32 {
    let Rect { width, height, .. } = face.bbox;
    ((width + height) / 2.0).max(1.0)
}

fn shape(face: &Observation) -> Vec<Point> {
    let Some(landmarks) = &face.landmarks else {
        return Vec::new();
    };
    let (mean, size) = (landmarks.mean(), size(face));
    let points = landmarks.points.iter();
    points
        .map(|it| Point::new((it.x - mean.x) / size, (it.y - mean.y) / size))
        .collect()
}

fn at_limit(face: &Observation) -> impl Iterator<Item = &str> {
    let channels = face.blendshapes.iter().flat_map(|it| it.iter());
    channels
        .filter(|(_, value)| *value >= LIMIT)
        .map(|(name, _)| name)
}
