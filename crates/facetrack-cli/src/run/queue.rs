// SPDX-License-Identifier: MPL-2.0
//! The videos that are left, shared by all lanes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use facetrack::lock::lock;
use facetrack_jobs::Status;

use super::claim::Claim;
use super::plan::Task;

/// Why a run ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A signal.
    Terminated,
    /// The disk is full.
    OutOfSpace,
    /// A video failed, with `--fail-fast`.
    Failed,
}

/// A video that no other run tracks.
pub type Claimed = (Task, Claim);

/// The videos that are left.
pub struct Queue {
    tasks: Mutex<VecDeque<Task>>,
    /// Videos whose worker died. They are tried again when nothing else runs.
    again: Mutex<VecDeque<Claimed>>,
    /// Whether a signal asks the run to end.
    terminated: Arc<AtomicBool>,
    stop: Mutex<Option<Stop>>,
    /// Whether the first attempts have ended.
    is_second: AtomicBool,
    fail_fast: bool,
}

impl Queue {
    pub fn new(tasks: Vec<Task>, terminated: Arc<AtomicBool>, fail_fast: bool) -> Self {
        Self {
            tasks: Mutex::new(tasks.into()),
            again: Mutex::default(),
            terminated,
            stop: Mutex::default(),
            is_second: AtomicBool::new(false),
            fail_fast,
        }
    }

    /// The next video of the first attempts.
    pub fn next(&self) -> Option<Task> {
        self.stopped()
            .is_none()
            .then(|| lock(&self.tasks).pop_front())?
    }

    /// The next video of the second attempts.
    pub fn next_again(&self) -> Option<Claimed> {
        let is_due = self.is_second.load(Ordering::SeqCst) && self.stopped().is_none();
        is_due.then(|| lock(&self.again).pop_front())?
    }

    /// Tries a video again after all others.
    pub fn try_again(&self, claimed: Claimed) {
        lock(&self.again).push_back(claimed);
    }

    pub fn begin_second_attempts(&self) {
        self.is_second.store(true, Ordering::SeqCst);
    }

    /// Why the run ends early, if it does.
    pub fn stopped(&self) -> Option<Stop> {
        let stop = *lock(&self.stop);
        let is_terminated = self.terminated.load(Ordering::Relaxed);
        stop.or(is_terminated.then_some(Stop::Terminated))
    }

    /// Ends the run early.
    pub fn stop(&self, reason: Stop) {
        lock(&self.stop).get_or_insert(reason);
    }

    /// Takes note of a settled video.
    pub fn settled(&self, status: Status) {
        if self.fail_fast && !status.has_record() {
            self.stop(Stop::Failed);
        }
    }
}
