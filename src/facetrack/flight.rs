// SPDX-License-Identifier: MPL-2.0
//! Frames whose analysis has begun. They leave in the order of their arrival.

use std::time::Instant;

use super::failure::Failure;
use super::messages::Moment;
use facetrack::analyzer::Found;
use facetrack::engine::{EngineError, FrameOutline};
use facetrack::report::FrameStatus;
use facetrack::schedule::Arrival;
use facetrack::workers::Pending;

/// A frame whose analysis has begun.
pub(super) struct Flight {
    pub buffer: gst::Buffer,
    pub moment: Moment,
    pub work: Result<Work, Failure>,
}

/// The work on a frame.
pub(super) enum Work {
    /// It has no pixels to analyse.
    Unanalyzed(FrameStatus),
    /// It repeats the faces of the frame before.
    Hold(FrameOutline),
    /// Its faces are searched.
    Search {
        faces: Faces,
        arrival: Option<Arrival>,
        start: Instant,
    },
}

/// The faces of a frame, before they are completed.
pub(super) enum Faces {
    Found(Found),
    /// A worker searches them.
    Pending(Pending),
}

impl Flight {
    /// Whether it can leave without waiting.
    pub fn is_done(&mut self) -> bool {
        match &mut self.work {
            Ok(Work::Search {
                faces: Faces::Pending(pending),
                ..
            }) => pending.is_done(),
            _ => true,
        }
    }

    /// Whether its faces are searched, so that the next frame can hold them.
    pub fn is_search(&self) -> bool {
        matches!(self.work, Ok(Work::Search { .. }))
    }
}

impl Faces {
    /// Waits for the faces.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn wait(self) -> Result<Found, EngineError> {
        match self {
            Self::Found(found) => Ok(found),
            Self::Pending(pending) => pending.wait(),
        }
    }
}
