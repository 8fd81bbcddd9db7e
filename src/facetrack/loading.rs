// SPDX-License-Identifier: MPL-2.0
//! Loads engines, before a stream or while it runs.

use std::io;
use std::thread::{self, JoinHandle};

use thiserror::Error;

use super::calibration::{CalibrationError, CalibrationFile};
use super::failure::{calibration_message, contained, error_message, panic_message};
use super::plan::Plan;
use crate::options::EnvWarning;
use facetrack::analyzer::Analyzer;
use facetrack::device::Decision;
use facetrack::engine::EngineError;

/// A loaded engine.
pub(super) struct Loaded {
    pub analyzer: Analyzer,
    pub decision: Decision,
    pub calibration: Option<CalibrationFile>,
}

/// Error of loading an engine.
#[derive(Debug, Error)]
pub(super) enum LoadError {
    /// The engine cannot be loaded.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The calibration file cannot be used.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The engine panicked.
    #[error("the engine {0}")]
    Panic(String),
    /// No thread can be created.
    #[error("the thread that loads the engine cannot be started: {0}. Set the engine in READY")]
    Thread(#[from] io::Error),
}

impl LoadError {
    /// The error message to post.
    pub fn message(&self) -> gst::ErrorMessage {
        match self {
            Self::Engine(error) => error_message(error),
            Self::Calibration(error) => calibration_message(error),
            Self::Panic(panic) => panic_message(panic),
            Self::Thread(_) => gst::error_msg!(gst::ResourceError::Failed, ("{self}")),
        }
    }

    /// The error and what the user can do, for a warning.
    pub fn text(&self) -> String {
        match self {
            Self::Engine(error) => facetrack_remedies::message(error),
            other => other.to_string(),
        }
    }
}

/// Loads the engine of `plan`, and its calibration if there is a file for it.
///
/// # Errors
/// [`LoadError`].
pub(super) fn load(plan: &Plan) -> Result<Loaded, LoadError> {
    contained(|| open(plan)).map_err(LoadError::Panic)?
}

fn open(plan: &Plan) -> Result<Loaded, LoadError> {
    let (mut analyzer, decision) = plan.load()?;
    let path = plan.setup.calibration_file.as_deref();
    let calibration = path.map(|path| CalibrationFile::open(path, &mut analyzer));
    Ok(Loaded {
        calibration: calibration.transpose()?,
        analyzer,
        decision,
    })
}

/// An engine that is ready to take over.
pub(super) struct Successor {
    pub plan: Plan,
    pub warnings: Vec<EnvWarning>,
    pub loaded: Loaded,
}

/// An engine that is loading while another one is in use.
pub(super) struct Change(JoinHandle<Result<Successor, LoadError>>);

impl Change {
    /// Begins to load the engine of `plan`.
    ///
    /// # Errors
    /// [`LoadError::Thread`].
    pub fn begin(plan: Plan, warnings: Vec<EnvWarning>) -> Result<Self, LoadError> {
        let thread = thread::Builder::new().name("facetrack-load".to_owned());
        let thread = thread.spawn(move || {
            Ok(Successor {
                loaded: load(&plan)?,
                plan,
                warnings,
            })
        })?;
        Ok(Self(thread))
    }

    /// Whether [`Change::finish`] returns without waiting.
    pub fn is_done(&self) -> bool {
        self.0.is_finished()
    }

    /// Waits until the engine is loaded.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn finish(self) -> Result<Successor, LoadError> {
        let panicked = |_| LoadError::Panic("panicked".to_owned());
        self.0.join().map_err(panicked)?
    }
}
