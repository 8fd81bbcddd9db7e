// SPDX-License-Identifier: MPL-2.0
//! Failures in GStreamer's terms.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::calibration::CalibrationError;
use facetrack::engine::EngineError;
use facetrack::model::ModelError;

/// Runs `work`, and turns a panic into an error text.
pub(super) fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let words = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        format!("panicked: {}", words.unwrap_or_default())
    })
}

/// Translates the domain's errors to GStreamer's, and adds what the user can do.
pub(super) fn error_message(error: &EngineError) -> gst::ErrorMessage {
    let message = facetrack_remedies::message(error);
    match error {
        EngineError::Unknown(_) | EngineError::Config { .. } => {
            gst::error_msg!(gst::LibraryError::Settings, ("{message}"))
        }
        EngineError::Frame(_) => gst::error_msg!(gst::StreamError::Format, ("{message}")),
        EngineError::Device(_) => gst::error_msg!(gst::ResourceError::NotFound, ("{message}")),
        EngineError::Model(source) | EngineError::Part { source, .. } => match source {
            ModelError::Missing { .. } | ModelError::NoPack { .. } | ModelError::Runtime { .. } => {
                gst::error_msg!(gst::ResourceError::NotFound, ("{message}"))
            }
            ModelError::Run { .. }
            | ModelError::InputSize { .. }
            | ModelError::Gpu { .. }
            | ModelError::OutOfMemory { .. } => {
                gst::error_msg!(gst::LibraryError::Failed, ("{message}"))
            }
            ModelError::Read { .. }
            | ModelError::Hash { .. }
            | ModelError::Format { .. }
            | ModelError::Tensors { .. }
            | ModelError::Pack { .. } => gst::error_msg!(gst::ResourceError::Read, ("{message}")),
        },
    }
}

pub(super) fn calibration_message(error: &CalibrationError) -> gst::ErrorMessage {
    match error {
        CalibrationError::Useless(_) | CalibrationError::NoFile(_) => {
            gst::error_msg!(gst::LibraryError::Settings, ("{error}"))
        }
        CalibrationError::Read { .. } | CalibrationError::Damaged { .. } => {
            gst::error_msg!(gst::ResourceError::Read, ("{error}"))
        }
        CalibrationError::Write { .. } => gst::error_msg!(gst::ResourceError::Write, ("{error}")),
    }
}

pub(super) fn panic_message(panic: &str) -> gst::ErrorMessage {
    gst::error_msg!(gst::LibraryError::Failed, ("the engine {panic}"))
}
