// SPDX-License-Identifier: MPL-2.0
//! Decides if a whole frame is searched, and for how many frames a lost face is searched at its
//! last position.

use crate::engine::openseeface::Settings;

/// The counters of `predict` in `tracker.py`: `wait_count` and `discard`.
#[derive(Debug)]
pub(super) struct Schedule {
    settings: Settings,
    max_faces: usize,
    /// Frames since the last search, while there are fewer faces than the maximum.
    waited: usize,
    /// Frames without a face since the last one with a face.
    missed: usize,
}

impl Schedule {
    /// Creates the initial state.
    pub(super) fn new(settings: &Settings, max_faces: usize) -> Self {
        Self {
            settings: *settings,
            max_faces,
            waited: 0,
            missed: 0,
        }
    }

    /// Counts a frame with `followed` tracked faces; returns true if the whole frame has to be
    /// searched.
    pub(super) fn searches(&mut self, followed: usize) -> bool {
        self.waited += 1;
        let is_full = followed > 0 && followed >= self.max_faces;
        let is_due = followed == 0 || self.waited >= self.settings.scan_every;
        if is_full || is_due {
            self.waited = 0;
        }
        is_due && !is_full
    }

    /// Counts the faces found in the frame. Returns true if the positions of the previous faces are
    /// kept, as they are for some frames without a face.
    pub(super) fn keeps(&mut self, found: usize) -> bool {
        if found > 0 {
            self.missed = 0;
            return false;
        }
        self.missed = self.missed.saturating_add(1);
        self.missed <= self.settings.discard_after
    }

    /// Restores the initial state.
    pub(super) fn reset(&mut self) {
        self.waited = 0;
        self.missed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(scan_every: usize, discard_after: usize, max_faces: usize) -> Schedule {
        let settings = Settings {
            scan_every,
            discard_after,
            ..Settings::default()
        };
        Schedule::new(&settings, max_faces)
    }

    #[test]
    fn frames_are_searched_for_faces_that_are_missing() {
        for (scan_every, max_faces, followed, want) in [
            (3, 1, &[0, 0, 0, 0][..], &[true, true, true, true][..]),
            (
                3,
                1,
                &[0, 1, 1, 1, 1, 0],
                &[true, false, false, false, false, true],
            ),
            (
                3,
                2,
                &[0, 1, 1, 1, 1, 1, 1, 1],
                &[true, false, false, true, false, false, true, false],
            ),
            // Neither a frame without faces nor one with all of them counts.
            (
                3,
                2,
                &[1, 1, 0, 1, 1, 1],
                &[false, false, true, false, false, true],
            ),
            (
                3,
                2,
                &[1, 1, 2, 1, 1, 1],
                &[false, false, false, false, false, true],
            ),
            (1, 2, &[1, 1, 2, 3], &[true, true, false, false]),
        ] {
            let mut schedule = schedule(scan_every, 10, max_faces);
            let got: Vec<bool> = followed.iter().map(|n| schedule.searches(*n)).collect();
            assert_eq!(got, want, "{scan_every} {max_faces} {followed:?}");
        }
    }

    #[test]
    fn lost_faces_are_looked_for_for_a_while() {
        for (discard_after, found, want) in [
            (
                2,
                &[1, 0, 0, 0, 0][..],
                &[false, true, true, false, false][..],
            ),
            (
                2,
                &[1, 0, 0, 1, 0, 0, 0],
                &[false, true, true, false, true, true, false],
            ),
            (0, &[1, 0, 1, 0], &[false, false, false, false]),
        ] {
            let mut schedule = schedule(3, discard_after, 1);
            let got: Vec<bool> = found.iter().map(|n| schedule.keeps(*n)).collect();
            assert_eq!(got, want, "{discard_after} {found:?}");
        }
    }

    #[test]
    fn a_reset_forgets_what_was_counted() {
        let mut schedule = schedule(2, 1, 2);
        let first = (schedule.searches(1), schedule.keeps(0));
        schedule.reset();
        assert_eq!((schedule.searches(1), schedule.keeps(0)), first);
    }
}
