// SPDX-License-Identifier: MPL-2.0
//! The videos and parts that are left, shared by all lanes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use facetrack_assets::lock::lock;
use facetrack_jobs::Status;

use super::plan::VideoJob;
use super::segments::SegmentJob;
use super::video_lock::VideoLock;

/// How often a lane that waits for parts looks whether the run ends.
const POLL: Duration = Duration::from_millis(50);

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

/// Something to track.
#[derive(Debug)]
pub enum Job {
    /// A video that no other run tracks.
    Video(VideoJob, VideoLock),
    Segment(SegmentJob),
}

/// The next thing of the first attempts.
pub enum Next<'a> {
    Video(VideoJob, Planning<'a>),
    Segment(SegmentJob),
}

/// A video that may yet be divided into parts. Other lanes wait until it is dropped.
pub struct Planning<'a>(&'a Queue);

/// The videos and parts that are left.
pub struct Queue {
    first: Mutex<First>,
    /// Wakes lanes that wait for parts.
    planned: Condvar,
    /// Jobs whose worker died. They are tried again when nothing else runs.
    again: Mutex<VecDeque<Job>>,
    /// Whether a signal asks the run to end.
    terminated: Arc<AtomicBool>,
    stop: Mutex<Option<Stop>>,
    /// Whether the first attempts have ended.
    is_second: AtomicBool,
    fail_fast: bool,
}

/// Jobs without an attempt.
struct First {
    tasks: VecDeque<VideoJob>,
    parts: VecDeque<SegmentJob>,
    /// Videos that may yet be divided.
    planning: usize,
}

impl Queue {
    pub fn new(tasks: Vec<VideoJob>, terminated: Arc<AtomicBool>, fail_fast: bool) -> Self {
        Self {
            first: Mutex::new(First {
                tasks: tasks.into(),
                parts: VecDeque::new(),
                planning: 0,
            }),
            planned: Condvar::new(),
            again: Mutex::default(),
            terminated,
            stop: Mutex::default(),
            is_second: AtomicBool::new(false),
            fail_fast,
        }
    }

    /// The next video or part of the first attempts. Waits while another lane divides a video.
    pub fn next(&self) -> Option<Next<'_>> {
        let mut first = lock(&self.first);
        while self.stopped().is_none() {
            if let Some(part) = first.parts.pop_front() {
                return Some(Next::Segment(part));
            }
            if let Some(task) = first.tasks.pop_front() {
                first.planning += 1;
                return Some(Next::Video(task, Planning(self)));
            }
            if first.planning == 0 {
                return None;
            }
            let waited = self.planned.wait_timeout(first, POLL);
            (first, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Adds the parts of a video.
    pub fn add(&self, parts: Vec<SegmentJob>) {
        lock(&self.first).parts.extend(parts);
    }

    /// The next work of the second attempts.
    pub fn next_again(&self) -> Option<Job> {
        let is_due = self.is_second.load(Ordering::SeqCst) && self.stopped().is_none();
        is_due.then(|| lock(&self.again).pop_front())?
    }

    /// Tries work again after all other.
    pub fn try_again(&self, work: Job) {
        lock(&self.again).push_back(work);
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

impl Drop for Planning<'_> {
    fn drop(&mut self) {
        lock(&self.0.first).planning -= 1;
        self.0.planned.notify_all();
    }
}
