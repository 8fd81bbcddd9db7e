// SPDX-License-Identifier: MPL-2.0
//! Reports with the faces that are about to appear.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{Read, Seek};

use super::{Replay, ReplayError};
use crate::observation::Origin;
use crate::report::{FrameReport, FrameStatus, TrackedFace};

/// Reads reports together with the reports of the next frames.
#[derive(Debug)]
pub struct LookAhead {
    /// Number of following frames.
    frames: usize,
    /// Reports by place, from the last frame on.
    read: BTreeMap<usize, Option<FrameReport>>,
}

impl LookAhead {
    /// Looks this number of recorded frames ahead; 0 for none.
    pub fn new(frames: usize) -> Self {
        Self {
            frames,
            read: BTreeMap::new(),
        }
    }

    /// The report for a frame, as [`Replay::report`] returns it. Each face that is not in it, but
    /// in one of the next frames, is added where it is found first, with the origin
    /// [`Origin::Held`].
    ///
    /// # Errors
    /// Returns an error if [`Replay::report`] does, for one of these frames.
    pub fn report<S: Read + Seek>(
        &mut self,
        replay: &mut Replay<S>,
        place: usize,
        video: (u32, u32),
    ) -> Result<Option<FrameReport>, ReplayError> {
        if self.frames == 0 {
            return replay.report(place, video);
        }
        let end = replay.frames().len().min(place + self.frames + 1);
        self.read.retain(|known, _| (place..end).contains(known));
        for place in place..end {
            if let Entry::Vacant(entry) = self.read.entry(place) {
                entry.insert(replay.report(place, video)?);
            }
        }
        let Some(mut report) = self.read.get(&place).cloned().flatten() else {
            return Ok(None);
        };
        let mut known = counts(&report.faces);
        for later in self.read.values().flatten() {
            add_new_faces(&mut report.faces, &mut known, later);
        }
        if report.status == FrameStatus::NoFace && !report.faces.is_empty() {
            report.status = FrameStatus::Tracked;
        }
        Ok(Some(report))
    }
}

/// Number of faces with each id. In a damaged record, several faces of a frame may have the same one.
fn counts(faces: &[TrackedFace]) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    for face in faces {
        *counts.entry(face.id).or_default() += 1;
    }
    counts
}

/// Adds the faces of a later report that are not among `faces`. `known` has the number of faces for
/// each id.
fn add_new_faces(
    faces: &mut Vec<TrackedFace>,
    known: &mut BTreeMap<u32, usize>,
    later: &FrameReport,
) {
    let mut seen = BTreeMap::new();
    for face in &later.faces {
        let (seen, known) = (
            seen.entry(face.id).or_insert(0),
            known.entry(face.id).or_default(),
        );
        *seen += 1;
        if *seen > *known {
            *known += 1;
            let mut face = face.clone();
            face.face.origin = Origin::Held;
            faces.push(face);
        }
    }
}
