// SPDX-License-Identifier: MPL-2.0
//! Loads engines, before a stream or while it runs.

use std::thread::{self, JoinHandle};

use super::failure::{Failure, contained};
use super::plan::{Plan, Setup};
use super::state_file::{CALIBRATION, NEUTRAL, StateFile};
use facetrack::analyzer::Analyzer;
use facetrack::device::Decision;
use facetrack::workers::Workers;

/// A loaded engine.
pub(super) struct Loaded {
    pub plan: Plan,
    pub analyzer: Analyzer,
    /// Workers; `None` to analyse one frame at a time.
    pub workers: Option<Workers>,
    pub decision: Decision,
    /// Files with the learned state of faces.
    pub files: Vec<StateFile>,
}

/// Loads the engine of `plan`, and what it learned if there are files for it.
///
/// # Errors
/// Returns [`Failure`].
pub(super) fn load(plan: Plan) -> Result<Loaded, Failure> {
    contained(|| {
        let (mut analyzer, workers, decision) = plan.load()?;
        let files = [
            (CALIBRATION, &plan.setup.calibration_file),
            (NEUTRAL, &plan.setup.neutral_file),
        ];
        let files = files.into_iter().filter_map(|(learned, path)| {
            Some(StateFile::open(learned, path.as_deref()?, &mut analyzer))
        });
        Ok::<_, Failure>(Loaded {
            files: files.collect::<Result<_, _>>()?,
            plan,
            analyzer,
            workers,
            decision,
        })
    })
}

impl Loaded {
    /// A warning of settings that have no effect.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let Setup { kind, workers, .. } = self.plan.setup;
        let is_serial = workers > 1 && self.workers.is_none();
        let serial = is_serial.then(|| {
            let name = kind.name();
            format!(
                "`workers` has no effect: {name} analyses one frame after the other with these settings. Set `workers=1`. mediapipe and openseeface can use workers with `running-mode=image`"
            )
        });
        self.plan.unused.clone().into_iter().chain(serial)
    }
}

/// A thread that loads an engine while another one is in use.
pub(super) type Change = JoinHandle<Result<Loaded, Failure>>;

/// Begins to load the engine of `plan`.
///
/// # Errors
/// Returns [`Failure::Thread`].
pub(super) fn begin(plan: Plan) -> Result<Change, Failure> {
    let thread = thread::Builder::new().name("facetrack-load".to_owned());
    Ok(thread.spawn(move || load(plan))?)
}

/// Waits until the engine is loaded.
///
/// # Errors
/// Returns [`Failure`].
pub(super) fn finish(change: Change) -> Result<Loaded, Failure> {
    change.join().map_err(Failure::of_panic)?
}
