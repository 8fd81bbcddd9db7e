// SPDX-License-Identifier: MPL-2.0
//! The jobs that are left, shared by all dispatchers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use facetrack_assets::lock::lock;
use facetrack_jobs::Status;

use super::plan::VideoJob;
use super::segments::SegmentJob;
use super::video_lock::VideoLock;

/// Interval at which a dispatcher that waits for segments checks if the run ends.
const POLL: Duration = Duration::from_millis(50);

/// Reason why a run ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// A signal has ended the run.
    Terminated,
    /// The disk is full.
    OutOfSpace,
    /// A video failed, with `--fail-fast`.
    Failed,
}

/// A video or segment to track.
#[derive(Debug)]
pub(super) struct Job {
    /// Index of the video.
    pub index: usize,
    /// Key of the record.
    pub key: String,
    /// Number of attempts during which the worker died.
    pub attempts: u32,
    pub target: Target,
}

/// The video or segment of a job. No other run tracks it.
#[derive(Debug)]
pub(super) enum Target {
    Video(Box<VideoJob>, VideoLock),
    Segment(SegmentJob),
}

/// The jobs that are left.
pub(super) struct Queue {
    jobs: Mutex<Jobs>,
    /// Wakes dispatchers that wait for segments.
    opened: Condvar,
    /// True if a signal asks the run to end.
    terminated: Arc<AtomicBool>,
    stop: Mutex<Option<Stop>>,
    fail_fast: bool,
}

struct Jobs {
    videos: VecDeque<VideoJob>,
    segments: VecDeque<Job>,
    /// Number of videos that may still be divided.
    opening: usize,
    /// Jobs whose worker died.
    again: VecDeque<Job>,
    /// True if the jobs in `again` are next, because all others are done.
    is_second: bool,
}

/// Dispatchers wait for the segments of a video until this is dropped.
struct Opening<'a>(&'a Queue);

impl Job {
    /// A job for a whole video.
    pub(super) fn whole(video: VideoJob, lock: VideoLock) -> Self {
        Self {
            index: video.index,
            key: video.key.clone(),
            attempts: 0,
            target: Target::Video(Box::new(video), lock),
        }
    }

    /// A job for a segment of a video with this index and key.
    pub(super) fn of_segment(index: usize, key: &str, segment: SegmentJob) -> Self {
        Self {
            index,
            key: format!("{key} {}", segment.number),
            attempts: 0,
            target: Target::Segment(segment),
        }
    }
}

impl Queue {
    pub(super) fn new(videos: Vec<VideoJob>, terminated: Arc<AtomicBool>, fail_fast: bool) -> Self {
        Self {
            jobs: Mutex::new(Jobs {
                videos: videos.into(),
                segments: VecDeque::new(),
                opening: 0,
                again: VecDeque::new(),
                is_second: false,
            }),
            opened: Condvar::new(),
            terminated,
            stop: Mutex::default(),
            fail_fast,
        }
    }

    /// Returns the next job. `open` makes a job from a video, unless the video is divided or not
    /// tracked. Waits while another dispatcher opens a video.
    pub(super) fn next(&self, open: impl Fn(VideoJob) -> Option<Job>) -> Option<Job> {
        let mut jobs = lock(&self.jobs);
        while self.stopped().is_none() {
            if let Some(segment) = jobs.segments.pop_front() {
                return Some(segment);
            }
            if let Some(video) = jobs.videos.pop_front() {
                jobs.opening += 1;
                drop(jobs);
                let opening = Opening(self);
                let job = open(video);
                drop(opening);
                if job.is_some() {
                    return job;
                }
                jobs = lock(&self.jobs);
            } else if jobs.opening > 0 {
                let waited = self.opened.wait_timeout(jobs, POLL);
                (jobs, _) = waited.unwrap_or_else(PoisonError::into_inner);
            } else if jobs.is_second {
                return jobs.again.pop_front();
            } else {
                return None;
            }
        }
        None
    }

    /// Adds the segments of a video.
    pub(super) fn add(&self, segments: impl Iterator<Item = Job>) {
        lock(&self.jobs).segments.extend(segments);
    }

    /// Tries a job again after all others.
    pub(super) fn try_again(&self, job: Job) {
        lock(&self.jobs).again.push_back(job);
    }

    pub(super) fn begin_second_attempts(&self) {
        lock(&self.jobs).is_second = true;
    }

    /// Returns the reason why the run ends early, if it does.
    pub(super) fn stopped(&self) -> Option<Stop> {
        let stop = *lock(&self.stop);
        let is_terminated = self.terminated.load(Ordering::Relaxed);
        stop.or(is_terminated.then_some(Stop::Terminated))
    }

    /// Ends the run early.
    pub(super) fn stop(&self, reason: Stop) {
        lock(&self.stop).get_or_insert(reason);
    }

    /// Takes note of a settled video.
    pub(super) fn settled(&self, status: Status) {
        if self.fail_fast && !status.has_record() {
            self.stop(Stop::Failed);
        }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        lock(&self.0.jobs).opening -= 1;
        self.0.opened.notify_all();
    }
}
