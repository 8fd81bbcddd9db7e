// SPDX-License-Identifier: MPL-2.0
//! Keeps the times since which faces have been seen. A report describes one frame, so the element
//! has to remember them.

use std::collections::HashMap;

use facetrack::observation::Origin;
use facetrack::report::{FrameReport, TrackedFace};

/// Running times at which a face was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrackTimes {
    /// Time of the face's first frame.
    pub first: gst::ClockTime,
    /// Time of the face's last measurement; a face that is held or predicted was measured earlier.
    pub last: gst::ClockTime,
}

impl TrackTimes {
    /// Creates the times of a face with an unknown past.
    pub fn at(now: gst::ClockTime) -> Self {
        Self {
            first: now,
            last: now,
        }
    }
}

/// Times since which the faces of a stream have been seen.
#[derive(Debug, Default)]
pub struct TrackHistory {
    tracks: HashMap<u32, TrackTimes>,
    /// Time of the frame before.
    latest: gst::ClockTime,
}

impl TrackHistory {
    /// Notes the faces of a frame, and returns the times of each, in their order. A frame without a
    /// running time counts as one at the time of the frame before.
    pub fn observe(
        &mut self,
        report: &FrameReport,
        now: Option<gst::ClockTime>,
    ) -> Vec<TrackTimes> {
        self.latest = now.unwrap_or(self.latest);
        report.faces.iter().map(|face| self.track(face)).collect()
    }

    /// Returns true if the face `id` has been seen before and has not left.
    pub fn contains(&self, id: u32) -> bool {
        self.tracks.contains_key(&id)
    }

    /// Handles the end of the face `id`.
    pub fn forget(&mut self, id: u32) {
        self.tracks.remove(&id);
    }

    fn track(&mut self, face: &TrackedFace) -> TrackTimes {
        let now = self.latest;
        let times = self.tracks.entry(face.id).or_insert(TrackTimes::at(now));
        if let Origin::Detected | Origin::Tracked = face.face.origin {
            times.last = now;
        }
        *times
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use facetrack::geometry::Rect;
    use facetrack::observation::Observation;
    use facetrack::report::{FrameStatus, ReportSource, SearchExtent};

    fn report(faces: &[(u32, Origin)]) -> FrameReport {
        let tracked = |&(id, origin): &(u32, Origin)| TrackedFace {
            id,
            face: Observation {
                origin,
                ..Observation::from_bbox(Rect::new(1.0, 2.0, 3.0, 4.0))
            },
        };
        FrameReport {
            width: 64,
            height: 48,
            status: FrameStatus::Tracked,
            cut: false,
            search: SearchExtent::Whole,
            repeated: false,
            faces: faces.iter().map(tracked).collect(),
            source: Arc::new(ReportSource::default()),
        }
    }

    /// First and last, ms.
    fn see(history: &mut TrackHistory, faces: &[(u32, Origin)], now: Option<u64>) -> Vec<[u64; 2]> {
        let now = now.map(gst::ClockTime::from_mseconds);
        let seen = history.observe(&report(faces), now);
        seen.iter()
            .map(|it| [it.first, it.last].map(gst::ClockTime::mseconds))
            .collect()
    }

    #[test]
    fn a_face_is_remembered_as_long_as_its_track_lasts() {
        use Origin::{Detected, Held, Predicted, Tracked};
        let mut history = TrackHistory::default();
        let mut see = |faces: &[_], now| see(&mut history, faces, now);
        assert_eq!(see(&[(1, Detected)], Some(40)), [[40, 40]]);
        assert_eq!(
            see(&[(2, Detected), (1, Tracked)], Some(80)),
            [[80, 80], [40, 80]]
        );
        // Not measured, out of sight, and without a time.
        assert_eq!(see(&[(1, Held)], Some(120)), [[40, 80]]);
        assert_eq!(see(&[(1, Predicted)], Some(140)), [[40, 80]]);
        assert_eq!(see(&[], Some(160)), [[0u64; 2]; 0]);
        assert_eq!(see(&[(2, Detected)], None), [[80, 160]]);
        assert_eq!(see(&[(1, Tracked)], Some(200)), [[40, 200]]);
        history.forget(1);
        let again = super::tests::see(&mut history, &[(1, Held), (2, Tracked)], Some(240));
        assert_eq!(again, [[240, 240], [80, 240]]);
    }
}
