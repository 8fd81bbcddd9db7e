// SPDX-License-Identifier: MPL-2.0
//! Frames whose analysis has begun. They leave in the order of their arrival.

use std::time::Instant;

use super::failure::Failure;
use super::messages::FrameTime;
use facetrack::analyzer::Detections;
use facetrack::engine::{EngineError, FrameOutline};
use facetrack::report::FrameStatus;
use facetrack::schedule::Arrival;
use facetrack::workers::PendingDetections;

/// A frame whose analysis has begun.
pub(super) struct InFlightFrame {
    pub buffer: gst::Buffer,
    pub frame_time: FrameTime,
    pub work: Result<Work, Failure>,
}

/// The work on a frame.
pub(super) enum Work {
    /// The frame has no pixels to analyse.
    Unanalyzed(FrameStatus),
    /// The frame repeats the faces of the frame before.
    Hold(FrameOutline),
    /// The faces of the frame are searched.
    Detect {
        faces: Faces,
        arrival: Option<Arrival>,
        start: Instant,
    },
}

/// The faces of a frame, before they are completed.
pub(super) enum Faces {
    Ready(Detections),
    /// A worker searches them.
    Pending(PendingDetections),
}

impl InFlightFrame {
    /// Returns true if the frame can leave without waiting.
    pub(super) fn is_done(&mut self) -> bool {
        match &mut self.work {
            Ok(Work::Detect {
                faces: Faces::Pending(pending),
                ..
            }) => pending.is_done(),
            _ => true,
        }
    }

    /// Returns true if the faces of the frame are searched, so that the next frame can hold them.
    pub(super) fn is_detecting(&self) -> bool {
        matches!(self.work, Ok(Work::Detect { .. }))
    }
}

impl Faces {
    /// Waits for the faces.
    ///
    /// # Errors
    /// Returns the errors of the engine.
    pub(super) fn wait(self) -> Result<Detections, EngineError> {
        match self {
            Self::Ready(found) => Ok(found),
            Self::Pending(pending) => pending.wait(),
        }
    }
}
