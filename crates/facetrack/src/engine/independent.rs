// SPDX-License-Identifier: MPL-2.0
//! Finders that keep nothing from frame to frame.

use super::{EngineError, EngineInfo, Finder, Frame, Thresholds};
use crate::observation::Observation;

/// A finder whose faces depend only on the frame and on the thresholds.
pub struct Independent<F> {
    info: EngineInfo,
    thresholds: Thresholds,
    find: F,
}

impl<F> Independent<F>
where
    F: FnMut(&Frame<'_>, &Thresholds) -> Result<Vec<Observation>, EngineError> + Send,
{
    /// The finder that `info` describes, with `thresholds` until others are set. `find` returns the
    /// faces of a frame, best first.
    pub fn new(info: EngineInfo, thresholds: Thresholds, find: F) -> Self {
        Self {
            info,
            thresholds,
            find,
        }
    }
}

impl<F> Finder for Independent<F>
where
    F: FnMut(&Frame<'_>, &Thresholds) -> Result<Vec<Observation>, EngineError> + Send,
{
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn find(&mut self, frame: &Frame<'_>) -> Result<Vec<Observation>, EngineError> {
        (self.find)(frame, &self.thresholds)
    }

    fn is_independent(&self) -> bool {
        true
    }

    fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }
}
