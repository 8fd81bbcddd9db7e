// SPDX-License-Identifier: MPL-2.0
//! Finds places in a track that deserve a look, from the reports of its frames in their order.
//!
//! A hard cut that the reports state explains new ids, jumps and missing faces, so nothing is
//! compared across it. Frames that were not analysed say nothing about faces.

mod face;
mod near;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::mem::{self, Discriminant};
use std::time::Duration;

use serde::Serialize;

use self::face::{Face, JUMP, SAME_PLACE};
use self::near::Near;
use crate::geometry::Rect;
use crate::motion::PictureClock;
use crate::observation::Observation;
use crate::report::{FrameReport, FrameStatus, TrackedFace};
use crate::schedule::NOMINAL_PERIOD;
use crate::words::display_as_serialized;

/// Maximum time between the end of an id and the beginning of the next one of the same face. Our
/// choice: a person does not take the place of another one as fast.
const RENAMED: Duration = Duration::from_secs(1);

/// Time after which a face that is not seen has ended: longer than the tracker keeps an id.
const ENDED: Duration = Duration::from_secs(5);

/// Maximum time between findings of the same kind and face that are one. Our choice.
const SAME: Duration = Duration::from_millis(500);

/// Kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FindingKind {
    /// A new id begins where the face of another one has just ended.
    IdChange,
    /// Two faces take each other's ids.
    IdSwap,
    /// A box or landmarks move farther than the face moved before.
    Jump,
    /// A face is seen for a very short time.
    Short,
    /// A face is held or predicted for long.
    Held,
    /// A blendshape stays at its limit for long.
    Limit,
    /// A face, or every face, is missing between frames with faces.
    Missing,
    /// No frame of the track has a face.
    NoFace,
    /// Frames could not be analysed.
    Error,
    /// Frames are missing in the stream.
    Gap,
}

display_as_serialized!(FindingKind);

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Number of the frame, from 1.
    pub number: u64,
    /// Time of the frame, computed from its number if it has none.
    pub time: Duration,
}

/// A place in a track that deserves a look.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Kind.
    pub kind: FindingKind,
    /// Id of the face; `None` if the finding is about whole frames.
    pub face: Option<u32>,
    /// First frame.
    pub first: Place,
    /// Last frame.
    pub last: Place,
    /// Description as a sentence.
    pub text: String,
}

/// The faces of a frame by their ids.
type Faces<'a> = BTreeMap<u32, &'a Observation>;

/// Successive frames.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: Place,
    last: Place,
}

/// The findings until now.
#[derive(Debug)]
struct Log {
    found: Vec<Finding>,
    /// Index of the last finding of each kind and face.
    last: HashMap<(Discriminant<FindingKind>, Option<u32>), usize>,
    /// Time from frame to frame.
    period: Duration,
}

/// Collects the findings of a track.
#[derive(Debug)]
pub struct Findings {
    log: Log,
    pictures: PictureClock,
    /// Time of the picture of the last frame.
    picture: Duration,
    /// Faces that are seen, or may still return.
    faces: BTreeMap<u32, Face>,
    /// Successive frames with the status `error` or `gap`.
    lost: Option<(FrameStatus, Run)>,
    /// Analysed frames without a face after frames with faces.
    empty: Option<Run>,
    /// All analysed frames, until one has a face.
    faceless: Option<Run>,
    has_face: bool,
    /// The last analysed frame of the shot.
    analyzed: Option<Place>,
}

impl Findings {
    /// Begins a track with this many frames per second; `None` if the rate is unknown.
    pub fn new(fps: Option<f64>) -> Self {
        let period = fps.and_then(|fps| Duration::try_from_secs_f64(1.0 / fps).ok());
        Self {
            log: Log {
                found: Vec::new(),
                last: HashMap::new(),
                period: period.unwrap_or(NOMINAL_PERIOD),
            },
            pictures: PictureClock::default(),
            picture: Duration::ZERO,
            faces: BTreeMap::new(),
            lost: None,
            empty: None,
            faceless: None,
            has_face: false,
            analyzed: None,
        }
    }

    /// Adds the next frame with its number, from 1, and its time, ns. `report` is `None` if the
    /// frame was not analysed.
    pub fn add(&mut self, number: u64, pts: Option<u64>, report: Option<&FrameReport>) {
        let time = pts.map_or_else(|| self.log.time_of(number), Duration::from_nanos);
        let at = Place { number, time };
        self.picture = match report {
            Some(report) if report.repeated => self.pictures.repeat(time),
            _ => self.pictures.show(time),
        };
        let status = report.map_or(FrameStatus::Skipped, |report| report.status);
        self.note_status(status, at);
        let Some(report) = report else {
            return;
        };
        if report.cut {
            self.end_shot();
        }
        if matches!(status, FrameStatus::Tracked | FrameStatus::NoFace) {
            self.add_faces(&report.faces, at);
            self.analyzed = Some(at);
        }
    }

    /// Ends the track. Returns all findings in the order of their first frames.
    pub fn finish(mut self) -> Vec<Finding> {
        self.end_lost();
        self.end_shot();
        if let Some(run) = self.faceless {
            let text = "No face is found in any frame.".to_owned();
            self.log.add(FindingKind::NoFace, None, run, text);
        }
        self.log.found.sort_by_key(|finding| finding.first);
        self.log.found
    }

    fn note_status(&mut self, status: FrameStatus, at: Place) {
        match &mut self.lost {
            Some((known, run)) if *known == status => run.last = at,
            _ => {
                self.end_lost();
                let is_lost = matches!(status, FrameStatus::Error | FrameStatus::Gap);
                self.lost = is_lost.then(|| (status, Run::at(at)));
            }
        }
    }

    fn end_lost(&mut self) {
        let (kind, text) = match self.lost {
            Some((FrameStatus::Gap, _)) => (FindingKind::Gap, "are missing in the stream"),
            _ => (FindingKind::Error, "could not be analysed"),
        };
        if let Some((_, run)) = self.lost.take() {
            let text = format!("Frames {} to {} {text}.", run.first.number, run.last.number);
            self.log.add(kind, None, run, text);
        }
    }

    /// Ends all faces, which may go on unseen.
    fn end_shot(&mut self) {
        for (id, face) in mem::take(&mut self.faces) {
            face.end(id, &mut self.log);
        }
        (self.empty, self.analyzed) = (None, None);
    }

    fn add_faces(&mut self, faces: &[TrackedFace], at: Place) {
        let faces = faces.iter().filter(|it| has_position(&it.face.bbox));
        let faces: Faces<'_> = faces.map(|it| (it.id, &it.face)).collect();
        self.note_swaps(&faces, at);
        let (known, new): (Vec<u32>, Vec<u32>) =
            faces.keys().partition(|id| self.faces.contains_key(id));
        let begun = self.begin(&new, &faces, at);
        for id in &known {
            let face = self.faces.entry(*id);
            face.and_modify(|it| it.see(*id, faces[id], (at, self.picture), &mut self.log));
        }
        self.note_empty(&faces, begun || !known.is_empty(), at);
        self.end_missing(&faces, at);
    }

    /// Begins faces. Returns true if one takes the place of another one.
    fn begin(&mut self, new: &[u32], faces: &Faces<'_>, at: Place) -> bool {
        let is_new = self.analyzed.is_some();
        let replaced = self.replaced(new, faces, at);
        for (id, replaced) in std::iter::zip(new, &replaced) {
            if let Some((first, old)) = *replaced {
                let text = format!("Face {old} ends, and face {id} begins at the same place.");
                let run = Run { first, last: at };
                self.log.add(FindingKind::IdChange, Some(*id), run, text);
            }
            self.faces
                .insert(*id, Face::new(faces[id], (at, self.picture), is_new));
        }
        replaced.iter().any(Option::is_some)
    }

    /// For each new face, the face that was seen last of those that have ended at its place: its last
    /// frame and its id.
    fn replaced(&self, new: &[u32], faces: &Faces<'_>, at: Place) -> Vec<Option<(Place, u32)>> {
        let is_recent = |face: &Face| at.time.saturating_sub(face.seen.last.time) <= RENAMED;
        let known = self.faces.iter();
        let ended = known.filter(|(id, face)| !faces.contains_key(id) && is_recent(face));
        let mut ended: Vec<_> = ended.map(|(id, face)| (*id, face)).collect();
        ended.sort_by_key(|(_, face)| face.seen.last);
        let ended = Near::new(ended.into_iter(), SAME_PLACE, self.picture);
        let latest = |id: &u32| {
            let near = ended.at(faces[id].centroid());
            let near = near.filter(|(_, it)| it.is_near(faces[id], self.picture));
            near.map(|(old, it)| (it.seen.last, old)).max()
        };
        new.iter().map(latest).collect()
    }

    /// Notes faces that take each other's places. They do not jump.
    fn note_swaps(&mut self, faces: &Faces<'_>, at: Place) {
        for (a, b) in self.swaps(faces) {
            let text = format!("Faces {a} and {b} take each other's places.");
            self.log
                .add(FindingKind::IdSwap, Some(a), Run::at(at), text);
            for id in [a, b] {
                let known = self.faces.entry(id);
                known.and_modify(|it| it.restart(faces[&id], self.picture));
            }
        }
    }

    /// Pairs of faces that are where the other one is expected. A face is in one pair only.
    fn swaps(&self, faces: &Faces<'_>) -> Vec<(u32, u32)> {
        let known = faces
            .keys()
            .filter_map(|id| Some((*id, self.faces.get(id)?)));
        let moved = known.filter(|(id, known)| known.jumps_to(faces[id], self.picture));
        let mut moved: BTreeMap<u32, &Face> = moved.collect();
        let near = Near::new(
            moved.iter().map(|(id, face)| (*id, *face)),
            JUMP,
            self.picture,
        );
        let mut pairs = Vec::new();
        while let Some((a, known)) = moved.pop_first() {
            let others = near.at(faces[&a].centroid());
            let others = others.filter(|(b, other)| {
                let is_mutual = || {
                    let there = other.jumps_to(faces[&a], self.picture);
                    !there && !known.jumps_to(faces[b], self.picture)
                };
                moved.contains_key(b) && is_mutual()
            });
            if let Some(b) = others.map(|(b, _)| b).min() {
                moved.remove(&b);
                pairs.push((a, b));
            }
        }
        pairs
    }

    /// Notes whether a frame has any face. `continues` is true if a face was seen before.
    fn note_empty(&mut self, faces: &Faces<'_>, continues: bool, at: Place) {
        self.has_face |= !faces.is_empty();
        let first = self.faceless.map_or(at, |run| run.first);
        self.faceless = (!self.has_face).then_some(Run { first, last: at });
        if !faces.is_empty() {
            let empty = self.empty.take().filter(|_| !continues);
            if let Some(run) = empty {
                let text = "No face is found between frames with faces.".to_owned();
                self.log.add(FindingKind::Missing, None, run, text);
            }
        } else if let Some(run) = &mut self.empty {
            run.last = at;
        } else if !self.faces.is_empty() {
            self.empty = Some(Run::at(at));
        }
    }

    fn end_missing(&mut self, faces: &Faces<'_>, at: Place) {
        let missing = self
            .faces
            .iter_mut()
            .filter(|(id, _)| !faces.contains_key(id));
        missing.for_each(|(_, face)| face.miss(at));
        let is_over =
            |_: &u32, face: &mut Face| at.time.saturating_sub(face.seen.last.time) > ENDED;
        for (id, face) in self.faces.extract_if(.., is_over) {
            face.end(id, &mut self.log);
        }
    }
}

impl Run {
    fn at(place: Place) -> Self {
        Self {
            first: place,
            last: place,
        }
    }
}

impl Log {
    /// Adds a finding. One that follows another one of its kind and face at once is part of it.
    fn add(&mut self, kind: FindingKind, face: Option<u32>, run: Run, text: String) {
        let Run { first, last } = run;
        let key = (mem::discriminant(&kind), face);
        let known = self.last.get(&key).filter(|_| kind.is_repeated());
        let known = known.and_then(|index| self.found.get_mut(*index));
        if let Some(before) = known
            && before.last.time.saturating_add(SAME) >= first.time
        {
            before.last = last;
            return;
        }
        self.last.insert(key, self.found.len());
        self.found.push(Finding {
            kind,
            face,
            first,
            last,
            text,
        });
    }

    /// The time that these frames are shown.
    fn duration(&self, run: Run) -> Duration {
        let passed = run.last.time.saturating_sub(run.first.time);
        passed.saturating_add(self.period)
    }

    /// The time of a frame at a constant rate.
    fn time_of(&self, number: u64) -> Duration {
        let seconds = self.period.as_secs_f64() * number.saturating_sub(1) as f64;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

impl FindingKind {
    /// True for events of a moment.
    fn is_repeated(self) -> bool {
        matches!(self, Self::Jump | Self::Missing)
    }
}

fn has_position(bbox: &Rect) -> bool {
    let sides = [bbox.x, bbox.y, bbox.width, bbox.height];
    sides.iter().all(|side| side.is_finite())
}
