// SPDX-License-Identifier: MPL-2.0
//! Failures in GStreamer's terms.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::calibration::CalibrationError;
use facetrack::engine::EngineError;
use facetrack::model::ModelError;

/// Runs `work`, and tells of a panic in words.
pub(super) fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let words = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned());
        format!("panicked: {}", words.unwrap_or_default())
    })
}

/// The one place where the domain's errors become GStreamer's.
pub(super) fn error_message(error: &EngineError) -> gst::ErrorMessage {
    match error {
        EngineError::Unknown(_) | EngineError::Config(_) => {
            gst::error_msg!(gst::LibraryError::Settings, ("{error}"))
        }
        EngineError::Frame(_) => gst::error_msg!(gst::StreamError::Format, ("{error}")),
        EngineError::Device(_)
        | EngineError::Model(
            ModelError::Missing { .. } | ModelError::NoPack { .. } | ModelError::Runtime { .. },
        ) => {
            gst::error_msg!(gst::ResourceError::NotFound, ("{error}"))
        }
        EngineError::Model(
            ModelError::Run { .. } | ModelError::Gpu { .. } | ModelError::OutOfMemory { .. },
        ) => {
            gst::error_msg!(gst::LibraryError::Failed, ("{error}"))
        }
        EngineError::Model(_) => gst::error_msg!(gst::ResourceError::Read, ("{error}")),
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
