// SPDX-License-Identifier: MPL-2.0
//! The workers of a run: one for each video that is tracked at the same time.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use facetrack_assets::lock::lock;
use facetrack_jobs::{Ready, Request, Setup, SetupError};

use super::arguments::RunArguments;
use super::worker::{Worker, WorkerSettings};

/// Time beyond `--timeout` for a worker to start. Our choice: short limits are meant for videos.
const START: Duration = Duration::from_secs(3);

/// All workers, which have the same engine.
pub(super) struct WorkerPool {
    settings: WorkerSettings,
    /// The engine that the workers have loaded.
    pub ready: Ready,
    /// The workers of the free slots; `None` where one has to be started.
    free: Mutex<Vec<Option<Worker>>>,
    freed: Condvar,
}

/// The right to run a worker. It is given back when it is dropped.
pub(super) struct WorkerSlot<'a> {
    pool: &'a WorkerPool,
    worker: Option<Worker>,
}

impl WorkerPool {
    /// Starts the first worker.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started, or refuses the settings.
    pub(super) fn start(
        arguments: &RunArguments,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, SetupError> {
        let settings = WorkerSettings {
            first: Request::Setup(Setup {
                engine: arguments.engine.clone(),
                properties: arguments.properties(),
                decoder_threads: arguments.decoder_threads(),
            }),
            limit: arguments.timeout.map(|limit| limit + START),
            stop: stop.clone(),
        };
        let (worker, ready) = Worker::start(&settings)?;
        let mut free: Vec<_> = (1..arguments.jobs()).map(|_| None).collect();
        free.push(Some(worker));
        Ok(Self {
            settings,
            ready,
            free: Mutex::new(free),
            freed: Condvar::new(),
        })
    }

    /// Waits for a free slot. The one that was given back last is taken first: it has a worker.
    pub(super) fn take(&self) -> WorkerSlot<'_> {
        let free = lock(&self.free);
        let free = self.freed.wait_while(free, |free| free.is_empty());
        let worker = free.unwrap_or_else(PoisonError::into_inner).pop().flatten();
        WorkerSlot { pool: self, worker }
    }

    /// Ends the workers of all free slots.
    pub(super) fn end_workers(&self) {
        lock(&self.free).fill_with(|| None);
    }
}

impl WorkerSlot<'_> {
    /// Takes the worker out of the slot, or starts one. One that can go on is
    /// [put back](Self::put_back).
    ///
    /// # Errors
    /// Returns the reason why a worker does not start.
    pub(super) fn take_worker(&mut self) -> Result<Worker, String> {
        if let Some(worker) = self.worker.take() {
            return Ok(worker);
        }
        let started = Worker::start(&self.pool.settings);
        started.map(|(it, _)| it).map_err(|error| error.message)
    }

    /// Keeps a worker for the next job.
    pub(super) fn put_back(&mut self, worker: Worker) {
        self.worker = Some(worker);
    }
}

impl Drop for WorkerSlot<'_> {
    fn drop(&mut self) {
        lock(&self.pool.free).push(self.worker.take());
        self.pool.freed.notify_one();
    }
}
