// SPDX-License-Identifier: MPL-2.0
//! Finds places in a track that deserve a look, from the reports of its frames in their order.
//!
//! A hard cut that the reports state explains new ids, jumps and missing faces, so nothing is
//! compared across it. Frames that were not analysed say nothing about faces.

mod face;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use self::face::Face;
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
                period: period.unwrap_or(NOMINAL_PERIOD),
            },
            pictures: PictureClock::default(),
            picture: Duration::ZERO,
            faces: BTreeMap::new(),
            lost: None,
            empty: None,
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
        for (id, face) in std::mem::take(&mut self.faces) {
            face.end(id, &mut self.log);
        }
        (self.empty, self.analyzed) = (None, None);
    }

    fn add_faces(&mut self, faces: &[TrackedFace], at: Place) {
        let faces = faces.iter().filter(|it| has_position(&it.face.bbox));
        let faces: Faces<'_> = faces.map(|it| (it.id, &it.face)).collect();
        self.note_swaps(&faces, at);
        let mut continues = false;
        for (id, face) in &faces {
            if let Some(known) = self.faces.get_mut(id) {
                known.see(*id, face, (at, self.picture), &mut self.log);
                continues = true;
            } else {
                continues |= self.begin(*id, &faces, at);
            }
        }
        self.note_empty(&faces, continues, at);
        self.end_missing(&faces, at);
    }

    /// Begins a face. Returns true if it takes the place of another one.
    fn begin(&mut self, id: u32, faces: &Faces<'_>, at: Place) -> bool {
        let face = faces[&id];
        let ended = self.faces.iter().filter(|(known, it)| {
            let is_recent = at.time.saturating_sub(it.seen.last.time) <= RENAMED;
            !faces.contains_key(known) && is_recent && it.is_near(face, self.picture)
        });
        let latest = ended.max_by_key(|(_, it)| it.seen.last);
        let first = latest.map(|(old, it)| (*old, it.seen.last));
        if let Some((old, first)) = first {
            let text = format!("obj_{old} ends, and obj_{id} begins at the same place.");
            let run = Run { first, last: at };
            self.log.add(FindingKind::IdChange, Some(id), run, text);
        }
        let is_new = self.analyzed.is_some();
        self.faces
            .insert(id, Face::new(face, (at, self.picture), is_new));
        first.is_some()
    }

    /// Notes faces that take each other's places. They do not jump.
    fn note_swaps(&mut self, faces: &Faces<'_>, at: Place) {
        let jumps = |id, to| {
            let known = self.faces.get(&id);
            known.is_some_and(|known| known.jumps_to(faces[&to], self.picture))
        };
        let moved: Vec<u32> = faces.keys().copied().filter(|id| jumps(*id, *id)).collect();
        let pairs = moved
            .iter()
            .flat_map(|a| moved.iter().map(move |b| (*a, *b)));
        let pairs = pairs.filter(|(a, b)| a < b && !jumps(*a, *b) && !jumps(*b, *a));
        for (a, b) in pairs.collect::<Vec<_>>() {
            let text = format!("obj_{a} and obj_{b} take each other's places.");
            self.log
                .add(FindingKind::IdSwap, Some(a), Run::at(at), text);
            for id in [a, b] {
                let known = self.faces.entry(id);
                known.and_modify(|it| it.restart(faces[&id], self.picture));
            }
        }
    }

    /// Notes whether a frame has any face. `continues` is true if a face was seen before.
    fn note_empty(&mut self, faces: &Faces<'_>, continues: bool, at: Place) {
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
        let is_same = |it: &&mut Finding| kind.is_repeated() && (it.kind, it.face) == (kind, face);
        let before = self.found.iter_mut().rev().find(is_same);
        match before.filter(|it| it.last.time.saturating_add(SAME) >= first.time) {
            Some(before) => before.last = last,
            None => self.found.push(Finding {
                kind,
                face,
                first,
                last,
                text,
            }),
        }
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
