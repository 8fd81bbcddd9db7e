// SPDX-License-Identifier: MPL-2.0
//! When whole frames are searched, and for how long a lost face is looked for where it was.

use crate::face::engine::openseeface::Settings;

/// The counters of `predict` in `tracker.py`: `wait_count` and `discard`.
#[derive(Debug)]
pub struct Schedule {
    scan_every: usize,
    discard_after: usize,
    max_faces: usize,
    /// Frames since the last search, while there are fewer faces than wanted.
    waited: usize,
    /// Frames without a face since the last one with a face.
    missed: usize,
}

impl Schedule {
    /// Before the first frame.
    pub fn new(settings: &Settings, max_faces: usize) -> Self {
        Self {
            scan_every: settings.scan_every,
            discard_after: settings.discard_after,
            max_faces,
            waited: 0,
            missed: 0,
        }
    }

    /// Counts a frame in which `followed` faces are looked for where they were, and tells whether the whole of it is to be
    /// searched.
    pub fn searches(&mut self, followed: usize) -> bool {
        self.waited += 1;
        let is_due = self.waited >= self.scan_every;
        let (searches, waits) = match followed {
            0 => (true, false),
            _ if followed < self.max_faces => (is_due, !is_due),
            _ => (false, false),
        };
        if !waits {
            self.waited = 0;
        }
        searches
    }

    /// Takes the number of faces that were found in the frame, and tells whether the places of those before are kept, for
    /// lack of any and for a while.
    pub fn keeps(&mut self, found: usize) -> bool {
        if found > 0 {
            self.missed = 0;
            return false;
        }
        self.missed = self.missed.saturating_add(1);
        self.missed <= self.discard_after
    }

    /// As before the first frame.
    pub fn reset(&mut self) {
        self.waited = 0;
        self.missed = 0;
    }
}
