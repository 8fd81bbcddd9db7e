// SPDX-License-Identifier: MPL-2.0
//! Loading what a plan asks for, before a stream or beside it.

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

/// What a plan yields.
pub(super) struct Loaded {
    pub analyzer: Analyzer,
    pub decision: Decision,
    pub calibration: Option<CalibrationFile>,
}

/// Why it yields nothing.
#[derive(Debug, Error)]
pub(super) enum LoadError {
    /// The engine can't be had.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What it learned can't be kept.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The engine panicked.
    #[error("the engine {0}")]
    Panic(String),
    /// The system gives no thread to load it in.
    #[error("no thread to load the engine in: {0}. Set it in READY")]
    Thread(#[from] io::Error),
}

impl LoadError {
    /// In GStreamer's terms.
    pub fn message(&self) -> gst::ErrorMessage {
        match self {
            Self::Engine(error) => error_message(error),
            Self::Calibration(error) => calibration_message(error),
            Self::Panic(panic) => panic_message(panic),
            Self::Thread(_) => gst::error_msg!(gst::ResourceError::Failed, ("{self}")),
        }
    }
}

/// The engine of `plan`, with what it learned in earlier streams where a file keeps that.
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

/// An engine that is loaded while another one works.
pub(super) struct Change {
    plan: Plan,
    warnings: Vec<EnvWarning>,
    thread: JoinHandle<Result<Loaded, LoadError>>,
}

/// An engine that can take over.
pub(super) struct Successor {
    pub plan: Plan,
    pub warnings: Vec<EnvWarning>,
    pub loaded: Loaded,
}

impl Change {
    /// Begins to load what `plan` asks for.
    ///
    /// # Errors
    /// [`LoadError::Thread`].
    pub fn begin(plan: Plan, warnings: Vec<EnvWarning>) -> Result<Self, LoadError> {
        let thread = thread::Builder::new().name("facetrack-load".to_owned());
        let asked = plan.clone();
        let thread = thread.spawn(move || load(&asked))?;
        Ok(Self {
            plan,
            warnings,
            thread,
        })
    }

    /// Whether [`Change::finish`] need not wait.
    pub fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the engine.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn finish(self) -> Result<Successor, LoadError> {
        let ended = self.thread.join();
        let ended = ended.map_err(|_| LoadError::Panic("panicked".to_owned()))?;
        Ok(Successor {
            plan: self.plan,
            warnings: self.warnings,
            loaded: ended?,
        })
    }
}
