// SPDX-License-Identifier: MPL-2.0
//! A dispatcher takes one job after another, fetches the video if it has to, and lets a worker play
//! it. It replaces a worker that dies, takes too long or needs too much memory.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use facetrack_assets::file::is_full;
use facetrack_jobs::{Answer, Cause, Outcome, Request, Status, TrackRequest};

use super::Run;
use super::events::{Event, VideoResult};
use super::names;
use super::plan::{self, VideoJob};
use super::queue::{Job, Queue, Stop, Target};
use super::segments::{SegmentJob, SegmentedVideo};
use super::status_file::StatusFile;
use super::video::Video;
use super::video_lock::{Existing, VideoLock};
use super::worker::Worker;
use super::worker_pool::WorkerSlot;

/// Interval at which limits and signals are checked.
const POLL: Duration = Duration::from_millis(50);

/// Time for a worker to stop a video. Our choice: some frames of the slowest engine.
const GRACE: Duration = Duration::from_secs(3);

/// Time to find out how long a video is.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(60);

/// Attempts at a job whose worker dies.
const ATTEMPTS: u32 = 2;

/// Reason of an attempt that ends with the run. It is not shown.
const STOPPED: &str = "the run ends";

/// Takes one job after another.
pub(super) struct Dispatcher<'a> {
    pub number: usize,
    pub run: &'a Run<'a>,
    pub queue: &'a Queue,
    pub events: Sender<Event>,
}

/// Result of a job.
enum JobResult {
    Ended(Box<StatusFile>),
    /// The run ended before the job.
    Interrupted,
    /// The job is tried again after all other jobs.
    Again,
}

impl Dispatcher<'_> {
    /// Takes jobs until none is left.
    pub(super) fn run(&self) {
        while let Some(job) = self.queue.next(|video| self.open(video)) {
            let index = job.index;
            let done = self.process(job);
            let dispatcher = self.number;
            self.tell(Event::Left { dispatcher });
            if let Err(error) = done {
                self.on_disk_error(index, &error);
            }
        }
    }

    /// A video to track as a whole, unless another run tracks it or has settled it.
    fn open(&self, job: VideoJob) -> Option<Job> {
        let index = job.index;
        let opened = self.lock(job).and_then(|locked| match locked {
            Some((job, lock)) => self.divide(job, lock),
            None => Ok(None),
        });
        opened.unwrap_or_else(|error| {
            self.on_disk_error(index, &error);
            None
        })
    }

    fn lock(&self, mut job: VideoJob) -> io::Result<Option<(VideoJob, VideoLock)>> {
        let (index, video) = (job.index, &self.run.videos[job.index]);
        if self.run.arguments.out.is_some() {
            video.record.parent().map_or(Ok(()), fs::create_dir_all)?;
        } else if let Some(outcome) = plan::unreadable(video, self.run.arguments) {
            // Nothing is written to the mount point of a disk that is not mounted.
            self.settled(index, Box::new(self.status("", video, outcome)));
            return Ok(None);
        }
        let Some(lock) = VideoLock::new(&video.record)? else {
            let path = video.path.display();
            self.tell(Event::Noted(format!("{path}: another run is tracking it")));
            return Ok(None);
        };
        if let Some(status) = job.settled_meanwhile(video) {
            self.tell(Event::Finished(VideoResult {
                index,
                is_new: false,
                status,
            }));
            lock.release()?;
            return Ok(None);
        }
        Ok(Some((job, lock)))
    }

    /// Puts the segments of a long video into the queue. Returns any other video.
    fn divide(&self, mut job: VideoJob, lock: VideoLock) -> io::Result<Option<Job>> {
        let video = &self.run.videos[job.index];
        let plan = self.run.arguments.segment_plan();
        let plan = plan.filter(|_| video.segment.is_whole());
        let measured = plan.and_then(|plan| Some((plan, self.measure(video)?)));
        let Some((plan, measured)) = measured else {
            return Ok(Some(Job::whole(job, lock)));
        };
        // Everything is tracked again, so no later run may use earlier segments.
        if self.run.arguments.force {
            lock.clear()?;
        }
        let segments = measured.map(|seconds| plan.segments(seconds));
        let segments = segments.map_err(|reason| job.whole = Some(reason));
        let Some(segments) = segments.ok().filter(|segments| segments.len() > 1) else {
            return Ok(Some(Job::whole(job, lock)));
        };
        let (index, key) = (job.index, job.key.clone());
        let segments = SegmentedVideo::divide(job, lock, video, &segments);
        let segments = segments.map(|segment| Job::of_segment(index, &key, segment));
        self.queue.add(segments);
        Ok(None)
    }

    /// Duration, in seconds, of a video that can be tracked in segments, or the reason why it
    /// cannot be.
    fn measure(&self, video: &Video) -> Option<Result<f64, String>> {
        if plan::refuse(&video.path).is_some() {
            return None;
        }
        let mut slot = self.run.pool.take();
        let mut worker = slot.take_worker().ok()?;
        worker.send(&Request::Measure(video.path.clone())).ok()?;
        let measured = self.measured(&mut worker)?;
        slot.put_back(worker);
        Some(measured)
    }

    /// Waits for the duration of a video; `None` if the worker has to end.
    fn measured(&self, worker: &mut Worker) -> Option<Result<f64, String>> {
        let start = Instant::now();
        while self.queue.stopped().is_none() && start.elapsed() < MEASURE_TIMEOUT {
            match worker.answer(POLL) {
                Ok(Answer::Measured(measured)) => return Some(measured),
                Ok(_) | Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
        None
    }

    /// Tracks a video or segment, and stores its result.
    fn process(&self, mut job: Job) -> io::Result<()> {
        let known = match &job.target {
            Target::Segment(segment) => segment.known(&job.key),
            Target::Video(..) => None,
        };
        let result = match known {
            Some(status) => JobResult::Ended(status),
            None => self.track(&mut job)?,
        };
        match (result, job.target) {
            (JobResult::Interrupted, _) => Ok(()),
            (JobResult::Again, target) => {
                self.queue.try_again(Job { target, ..job });
                Ok(())
            }
            (JobResult::Ended(status), Target::Video(job, lock)) => {
                self.finish(&job, &lock, *status)
            }
            (JobResult::Ended(status), Target::Segment(segment)) => {
                self.finish_segment(job.index, &segment, *status)
            }
        }
    }

    /// Tracks a video or segment. The status of a segment is kept for later runs.
    fn track(&self, job: &mut Job) -> io::Result<JobResult> {
        let result = self.attempt(job);
        let (JobResult::Ended(status), Target::Segment(segment)) = (&result, &job.target) else {
            return Ok(result);
        };
        match segment.keep(status) {
            Err(error) if is_full(&error) => Err(error),
            Err(error) => Ok(JobResult::Ended(self.unwritten(job.index, &error))),
            Ok(()) => Ok(result),
        }
    }

    /// Stores the status of a segment, and joins the segments after the last one.
    fn finish_segment(
        &self,
        index: usize,
        segment: &SegmentJob,
        status: StatusFile,
    ) -> io::Result<()> {
        let (video, ready) = (&self.run.videos[index], &self.run.pool.ready);
        match segment.finish(status, video, ready)? {
            Some((job, lock, Some(status))) => self.finish(&job, &lock, status),
            Some((job, lock, None)) => self.process(Job::whole(job, lock)),
            None => Ok(()),
        }
    }

    /// Stores the status of a video, and reports it.
    fn finish(&self, job: &VideoJob, lock: &VideoLock, status: StatusFile) -> io::Result<()> {
        let status = self.store(job, lock, status)?;
        self.settled(job.index, Box::new(status));
        Ok(())
    }

    /// Replaces the record and the status file of a video, unless the earlier ones are better.
    /// Returns the status of this run.
    fn store(
        &self,
        job: &VideoJob,
        lock: &VideoLock,
        mut status: StatusFile,
    ) -> io::Result<StatusFile> {
        let video = &self.run.videos[job.index];
        let is_unreadable = status.outcome.cause.take() == Some(Cause::Unreadable);
        if is_unreadable {
            // It is tracked when it can be read.
            status.key.clear();
        }
        let has_record = status.outcome.status.has_record();
        status.whole = job.whole.clone().filter(|_| has_record);
        if is_unreadable && job.known.is_some() {
            status.outcome = plan::kept(status.outcome, video);
            lock.release()?;
            return Ok(status);
        }
        let Some(better) = job.better(video, &status.outcome, self.run.arguments) else {
            return self.replace(job, lock, status);
        };
        status.outcome = plan::kept(status.outcome, video);
        let better = StatusFile {
            later: Some(Box::new(status.clone())),
            ..better.clone()
        };
        lock.finish(&better, Existing::Replaced)?;
        Ok(status)
    }

    fn replace(
        &self,
        job: &VideoJob,
        lock: &VideoLock,
        mut status: StatusFile,
    ) -> io::Result<StatusFile> {
        let mut whole = status.clone();
        // An empty key has no basis.
        if !status.key.is_empty() {
            whole.basis = job.basis.clone();
        }
        match lock.finish(&whole, job.existing) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let reason = plan::foreign(&self.run.videos[job.index].record);
                status.outcome = Outcome::without_record(Status::Skipped, reason);
                lock.release()?;
            }
            finished => finished?,
        }
        Ok(status)
    }

    /// Tries a job. A run that ends before the video does keeps the lock, for the next run.
    fn attempt(&self, job: &mut Job) -> JobResult {
        job.attempts += 1;
        let attempts = job.attempts;
        let (outcome, seconds) = self.fetch_and_play(job);
        let outcome = match outcome {
            Ok(outcome) if outcome.cause != Some(Cause::Busy) => outcome,
            // The signal that ends a run may reach its workers, too.
            _ if self.is_stopped() => return JobResult::Interrupted,
            _ if attempts < ATTEMPTS => return JobResult::Again,
            Ok(busy) => Outcome::without_record(Status::Failed, busy.message.unwrap_or_default()),
            Err(reason) => Outcome::without_record(Status::Failed, reason),
        };
        let video = &self.run.videos[job.index];
        // Its file may have been removed meanwhile.
        let is_whole = outcome.status == Status::Complete || outcome.cause.is_some();
        let gone = (!is_whole).then(|| plan::unreadable(video, self.run.arguments));
        let outcome = gone.flatten().unwrap_or(outcome);
        match outcome.cause {
            Some(Cause::Stopped) => return JobResult::Interrupted,
            Some(Cause::OutOfSpace) => {
                self.queue.stop(Stop::OutOfSpace);
                self.tell(Event::Noted(outcome.message.unwrap_or_default()));
                return JobResult::Interrupted;
            }
            _ => (),
        }
        JobResult::Ended(Box::new(StatusFile {
            seconds,
            attempts,
            ..self.status(&job.key, video, outcome)
        }))
    }

    fn settled(&self, index: usize, status: Box<StatusFile>) {
        self.queue.settled(status.outcome.status);
        self.tell(Event::Finished(VideoResult {
            index,
            is_new: true,
            status,
        }));
    }

    /// Fetches the video, waits for a worker, and lets it play the video or segment. Returns also
    /// the seconds that playing took. An error is the reason why the worker is gone: another attempt may
    /// succeed, as after [`Cause::Busy`].
    fn fetch_and_play(&self, job: &Job) -> (Result<Outcome, String>, f64) {
        let (index, dispatcher) = (job.index, self.number);
        let video = &self.run.videos[index].path;
        let staging = self.run.staging.as_ref();
        let staged = staging.map(|it| it.fetch(video, || self.is_stopped()));
        let staged = match staged.transpose() {
            Ok(staged) => staged,
            Err(reason) => return (Err(reason), 0.0),
        };
        let mut slot = self.run.pool.take();
        if self.is_stopped() {
            return (Err(STOPPED.to_owned()), 0.0);
        }
        let (mut request, segment) = self.request(job);
        self.tell(Event::Started {
            dispatcher,
            index,
            segment,
        });
        let start = Instant::now();
        let outcome = match staged {
            Some(staged) => {
                request.video = staged.local.clone();
                renamed(self.play(&mut slot, request, index), &staged.local, video)
            }
            None => self.play(&mut slot, request, index),
        };
        (outcome, start.elapsed().as_secs_f64())
    }

    /// The request for a worker; for a segment, also its number and the count of segments.
    fn request(&self, job: &Job) -> (TrackRequest, Option<(usize, usize)>) {
        let video = &self.run.videos[job.index];
        let mut request = TrackRequest {
            video: video.path.clone(),
            name: video.name.clone(),
            record: names::next(&video.record),
            segment: video.segment,
            warm_up: None,
        };
        let Target::Segment(job) = &job.target else {
            return (request, None);
        };
        request.record = job.segment().record.clone();
        request.segment = job.segment().segment;
        request.warm_up = Some(self.run.arguments.warm_up.as_secs_f64());
        (request, Some(job.position()))
    }

    /// Lets the worker of a slot play a video or segment.
    fn play(
        &self,
        slot: &mut WorkerSlot<'_>,
        request: TrackRequest,
        index: usize,
    ) -> Result<Outcome, String> {
        if let Some(outcome) = plan::refuse(&request.video) {
            return Ok(outcome);
        }
        let mut worker = slot.take_worker()?;
        let sent = worker.send(&Request::Track(Box::new(request)));
        sent.map_err(|error| error.to_string())?;
        let mut outcome = self.follow(&mut worker, index)?;
        let stalled = outcome.cause.take_if(|cause| *cause == Cause::Stalled);
        if stalled.is_none() {
            slot.put_back(worker);
        }
        Ok(outcome)
    }

    /// Waits until the video ends, or the worker has to.
    fn follow(&self, worker: &mut Worker, index: usize) -> Result<Outcome, String> {
        let (dispatcher, start) = (self.number, Instant::now());
        let mut stopping: Option<Instant> = None;
        loop {
            match worker.answer(POLL) {
                Ok(Answer::Done(outcome)) => return Ok(*outcome),
                Ok(Answer::Progress(progress)) => self.tell(Event::Progressed {
                    dispatcher,
                    index,
                    progress,
                }),
                Ok(_) | Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return Err(worker.end()),
            }
            if let Some(reason) = self.exceeded(worker, start) {
                return Err(reason);
            }
            if stopping.is_none() && self.is_stopped() {
                stopping = Some(Instant::now());
                let _ = worker.send(&Request::Stop);
            }
            if stopping.is_some_and(|since| since.elapsed() > GRACE) {
                return Err(STOPPED.to_owned());
            }
        }
    }

    /// The limit that a worker exceeds.
    fn exceeded(&self, worker: &Worker, start: Instant) -> Option<String> {
        let arguments = self.run.arguments;
        let timeout = arguments.timeout;
        if let Some(limit) = timeout.filter(|limit| start.elapsed() > *limit) {
            let limit = limit.as_secs_f64();
            return Some(format!("it took longer than --timeout, {limit} s"));
        }
        let limit = arguments.max_memory?;
        let memory = worker.memory();
        (memory > limit)
            .then(|| format!("it needed more memory than --max-memory: {memory} of {limit} bytes"))
    }

    /// Nothing can be recorded for this video. A full disk ends the run.
    fn on_disk_error(&self, index: usize, error: &io::Error) {
        let status = self.unwritten(index, error);
        if !is_full(error) {
            return self.settled(index, status);
        }
        self.queue.stop(Stop::OutOfSpace);
        let message = status.outcome.message;
        self.tell(Event::Noted(message.unwrap_or_default()));
    }

    /// The status of a video that has no status file.
    fn unwritten(&self, index: usize, error: &io::Error) -> Box<StatusFile> {
        let video = &self.run.videos[index];
        let record = video.record.display();
        let message = format!("{record} or its status file cannot be written: {error}");
        let outcome = Outcome::without_record(Status::Failed, message);
        Box::new(self.status("", video, outcome))
    }

    fn status(&self, key: &str, video: &Video, outcome: Outcome) -> StatusFile {
        StatusFile::new(key, video, &self.run.pool.ready, outcome)
    }

    fn is_stopped(&self) -> bool {
        self.queue.stopped().is_some()
    }

    /// Sends an event. Its receiver ends only when nothing can be printed any more.
    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// An outcome with the name of the video in place of its local file.
fn renamed(
    outcome: Result<Outcome, String>,
    local: &Path,
    video: &Path,
) -> Result<Outcome, String> {
    let (local, video) = (local.to_string_lossy(), video.to_string_lossy());
    let rename = |text: String| text.replace(&*local, &video);
    let mut outcome = outcome.map_err(rename)?;
    outcome.message = outcome.message.map(rename);
    Ok(outcome)
}
