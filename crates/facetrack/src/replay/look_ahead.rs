// SPDX-License-Identifier: MPL-2.0
//! Reports with the faces that are about to appear.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Seek};

use super::{Replay, ReplayError};
use crate::observation::Origin;
use crate::report::{FrameReport, FrameStatus};

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
        let report = self.read.get(&place).cloned().flatten();
        let later = self.read.values().flatten();
        Ok(report.map(|report| with_new_faces(report, later)))
    }
}

/// A report with the faces of later ones that are not in it.
fn with_new_faces<'a>(
    mut report: FrameReport,
    later: impl Iterator<Item = &'a FrameReport>,
) -> FrameReport {
    let mut known: HashSet<u32> = report.faces.iter().map(|face| face.id).collect();
    for face in later.flat_map(|later| &later.faces) {
        if known.insert(face.id) {
            let mut face = face.clone();
            face.face.origin = Origin::Held;
            report.faces.push(face);
        }
    }
    if report.status == FrameStatus::NoFace && !report.faces.is_empty() {
        report.status = FrameStatus::Tracked;
    }
    report
}
