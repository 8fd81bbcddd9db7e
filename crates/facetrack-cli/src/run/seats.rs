// SPDX-License-Identifier: MPL-2.0
//! Seats: the videos that are tracked at once, each by a worker. Lanes without a seat fetch videos.

use std::sync::{Condvar, Mutex, PoisonError};

use facetrack_assets::lock::lock;

use super::child::Worker;

/// All seats.
pub struct Seats {
    /// The workers of the free seats; `None` where one has to be started.
    free: Mutex<Vec<Option<Worker>>>,
    freed: Condvar,
}

/// The right to track a video. It is given back when it is dropped.
pub struct Seat<'a> {
    seats: &'a Seats,
    pub worker: Option<Worker>,
}

impl Seats {
    /// `count` seats, the first with a worker.
    pub fn new(count: usize, worker: Worker) -> Self {
        let mut free: Vec<_> = (1..count).map(|_| None).collect();
        free.push(Some(worker));
        Self {
            free: Mutex::new(free),
            freed: Condvar::new(),
        }
    }

    /// Waits for a free seat. The seat that was given back last is taken first: it has a worker.
    pub fn take(&self) -> Seat<'_> {
        let free = lock(&self.free);
        let free = self.freed.wait_while(free, |free| free.is_empty());
        let worker = free.unwrap_or_else(PoisonError::into_inner).pop().flatten();
        let seats = self;
        Seat { seats, worker }
    }

    /// Ends the workers of all free seats.
    pub fn dismiss(&self) {
        lock(&self.free).fill_with(|| None);
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        lock(&self.seats.free).push(self.worker.take());
        self.seats.freed.notify_one();
    }
}
