// SPDX-License-Identifier: MPL-2.0
//! Threads that search several frames at once.
//!
//! Each worker has a finder of its own. Frames are searched in any order, so the finders have to be
//! independent: see [`Finder::is_independent`]. The caller completes the frames in their order.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use super::analyzer::Detections;
use super::engine::{EngineError, Finder};
use facetrack_assets::lock::lock;

/// Threads, each with a finder. Dropping them waits for the searches that have begun.
pub struct Workers {
    /// Jobs for the threads; `None` when the threads have to end.
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

type Job = Box<dyn FnOnce(&mut dyn Finder) + Send>;

/// The result of a search, or the payload of its panic.
type Outcome = Result<Result<Detections, EngineError>, Box<dyn Any + Send>>;

impl Workers {
    /// Starts a thread for each of `finders`.
    ///
    /// # Errors
    /// Returns an error if the system refuses a thread.
    pub fn start(finders: Vec<Box<dyn Finder>>) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut workers = Self {
            jobs: Some(jobs),
            threads: Vec::with_capacity(finders.len()),
        };
        for finder in finders {
            let queue = queue.clone();
            let thread = thread::Builder::new().name("facetrack-find".to_owned());
            let thread = thread.spawn(move || work(&queue, finder))?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Number of frames that are searched at once.
    pub fn count(&self) -> usize {
        self.threads.len()
    }

    /// Searches a frame with `search` as soon as a worker is free.
    pub fn detect<S>(&self, search: S) -> PendingDetections
    where
        S: FnOnce(&mut dyn Finder) -> Result<Detections, EngineError> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel();
        let interest = Arc::new(());
        let is_wanted = Arc::downgrade(&interest);
        let job = move |finder: &mut dyn Finder| {
            if is_wanted.strong_count() == 0 {
                return;
            }
            let outcome = catch_unwind(AssertUnwindSafe(|| search(finder)));
            // Sending fails if the frame has been discarded meanwhile.
            let _ = sender.send(outcome);
        };
        if let Some(jobs) = &self.jobs {
            // If no worker is left, the search ends as if it had panicked.
            let _ = jobs.send(Box::new(job));
        }
        PendingDetections {
            receiver,
            outcome: None,
            _interest: interest,
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // Panics of a search were caught.
            let _ = thread.join();
        }
    }
}

fn work(queue: &Mutex<Receiver<Job>>, mut finder: Box<dyn Finder>) {
    loop {
        // The next worker waits for the lock while this one waits for a job.
        let job = lock(queue).recv();
        let Ok(job) = job else { return };
        job(&mut *finder);
    }
}

/// The search of a frame by a worker. A search that has not begun is cancelled when this is dropped.
pub struct PendingDetections {
    receiver: Receiver<Outcome>,
    /// The outcome, if it was received.
    outcome: Option<Outcome>,
    _interest: Arc<()>,
}

impl PendingDetections {
    /// Returns true if the search has ended.
    pub fn is_done(&mut self) -> bool {
        if self.outcome.is_none() {
            self.outcome = self.receiver.try_recv().ok();
        }
        self.outcome.is_some()
    }

    /// Waits for the search to end.
    ///
    /// # Errors
    /// Returns the errors of the finder.
    ///
    /// # Panics
    /// Panics with the payload of the search if that panicked.
    pub fn wait(self) -> Result<Detections, EngineError> {
        let received = self.outcome.map_or_else(|| self.receiver.recv(), Ok);
        let outcome = received.unwrap_or_else(|error| Err(Box::new(error.to_string())));
        outcome.unwrap_or_else(|payload| resume_unwind(payload))
    }
}

#[cfg(test)]
mod tests;
