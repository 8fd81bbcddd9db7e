// SPDX-License-Identifier: MPL-2.0
//! Failures in GStreamer's terms.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use gst::{LibraryError, ResourceError, StreamError, error_msg};
use thiserror::Error;

use facetrack::engine::EngineError;
use facetrack::model::ModelError;

/// Reason why an engine, or a file with its learned state, cannot be used. The text has the remedy.
#[derive(Debug, Error)]
pub(super) enum Failure {
    /// Error of the engine.
    #[error("{}", facetrack_remedies::message(.0))]
    Engine(#[from] EngineError),
    /// The engine panicked.
    #[error("the engine panicked: {0}")]
    Panic(String),
    /// No thread can be created.
    #[error("the thread that loads the engine cannot be started: {0}. Set the engine in READY")]
    Thread(#[from] io::Error),
    /// Too few threads can be created.
    #[error("the threads that analyse frames cannot be started: {0}. Set fewer `workers`")]
    Workers(#[source] io::Error),
    /// The engine has no calibration.
    #[error("the engine {0} has no calibration. Unset `calibration-file`, or set another engine")]
    NoCalibration(&'static str),
    /// The engine has no blendshapes.
    #[error(
        "the engine {0} measures no blendshapes with these settings. Unset `neutral-file`, or set another engine"
    )]
    NoBlendshapes(&'static str),
    /// The path that the property has does not name a file.
    #[error("`{0}` {1:?} is not the path of a file. Set the path of a file, or unset it")]
    NoFile(&'static str, PathBuf),
    /// The file of the property cannot be read.
    #[error("`{property}` {path} cannot be read: {source}. Make it readable, or set another file", property = .0, path = .1.display(), source = .2)]
    Read(&'static str, PathBuf, io::Error),
    /// The content of the file of the property is invalid.
    #[error("`{property}` {path} is damaged: {reason}. Delete it to learn again, or set another file", property = .0, path = .1.display(), reason = .2)]
    Damaged(&'static str, PathBuf, String),
    /// The file of the property cannot be written.
    #[error("`{property}` {path} cannot be written: {source}. Make it and its folder writable and free disk space, or set another file", property = .0, path = .1.display(), source = .2)]
    Write(&'static str, PathBuf, io::Error),
}

impl Failure {
    /// The failure of an engine that panicked with `payload`.
    pub(super) fn of_panic(payload: Box<dyn Any + Send>) -> Self {
        let text = payload
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned());
        let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
        Self::Panic(text.unwrap_or_default())
    }

    /// The error message to post.
    pub(super) fn message(&self) -> gst::ErrorMessage {
        match self {
            Self::Engine(EngineError::Model(source) | EngineError::Part { source, .. }) => {
                self.message_of_model(source)
            }
            Self::Engine(EngineError::Frame(_)) => error_msg!(StreamError::Format, ("{self}")),
            Self::Engine(EngineError::Device(_)) => error_msg!(ResourceError::NotFound, ("{self}")),
            Self::Engine(_)
            | Self::NoCalibration(_)
            | Self::NoBlendshapes(_)
            | Self::NoFile(..) => error_msg!(LibraryError::Settings, ("{self}")),
            Self::Panic(_) => error_msg!(LibraryError::Failed, ("{self}")),
            Self::Thread(_) | Self::Workers(_) => error_msg!(ResourceError::Failed, ("{self}")),
            Self::Read(..) | Self::Damaged(..) => error_msg!(ResourceError::Read, ("{self}")),
            Self::Write(..) => error_msg!(ResourceError::Write, ("{self}")),
        }
    }

    fn message_of_model(&self, error: &ModelError) -> gst::ErrorMessage {
        match error {
            ModelError::Missing(_) | ModelError::Runtime { .. } => {
                error_msg!(ResourceError::NotFound, ("{self}"))
            }
            ModelError::Replaceable(_) | ModelError::Telemetry { .. } => {
                error_msg!(ResourceError::NotAuthorized, ("{self}"))
            }
            ModelError::Memory(_) => error_msg!(ResourceError::NoSpaceLeft, ("{self}")),
            ModelError::Unsupported { .. }
            | ModelError::Run { .. }
            | ModelError::InputSize { .. }
            | ModelError::Gpu { .. }
            | ModelError::OutOfMemory { .. } => error_msg!(LibraryError::Failed, ("{self}")),
            // The file is damaged, or not the expected one.
            _ => error_msg!(ResourceError::Read, ("{self}")),
        }
    }
}

/// Runs `work`, and turns a panic into a failure.
///
/// # Errors
/// Returns the errors of `work`, and [`Failure::Panic`].
pub(super) fn contained<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<T, Failure>
where
    Failure: From<E>,
{
    Ok(catch_unwind(AssertUnwindSafe(work)).map_err(Failure::of_panic)??)
}
