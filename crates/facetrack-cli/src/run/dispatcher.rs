// SPDX-License-Identifier: MPL-2.0
//! A lane takes one video after another, fetches it if it has to, and lets a worker track it. It
//! replaces a worker that dies, takes too long or needs too much memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use facetrack_jobs::{Answer, Cause, Outcome, Request, Status, TrackRequest};

use super::Run;
use super::child::Worker;
use super::events::{Event, VideoResult};
use super::inputs::Video;
use super::names;
use super::plan::{self, VideoJob};
use super::queue::{Job, Next, Queue, Stop};
use super::seats::{Seat, Seats};
use super::segment_plan::SegmentPlan;
use super::segments::{SegmentJob, SegmentedVideo};
use super::staging::Unfetched;
use super::status_file::StatusFile;
use super::video_lock::{Existing, VideoLock};

/// How often limits and signals are checked.
const POLL: Duration = Duration::from_millis(50);

/// Time for a worker to stop a video. Our choice: some frames of the slowest engine.
const GRACE: Duration = Duration::from_secs(3);

/// Time to find out how long a video is.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(60);

/// Attempts at a video whose worker dies.
const ATTEMPTS: u32 = 2;

/// A lane of videos.
pub struct Dispatcher<'a> {
    pub number: usize,
    pub run: &'a Run<'a>,
    pub queue: &'a Queue,
    pub seats: &'a Seats,
    pub events: Sender<Event>,
}

/// The task of an attempt.
struct Order {
    index: usize,
    /// The number of a part, from 0, and their count.
    part: Option<(usize, usize)>,
    job: TrackRequest,
    /// Attempts, with this one.
    attempts: u32,
}

/// How an attempt ended, or the reason why the worker is gone. Then another attempt may succeed, as
/// after [`Cause::Busy`].
type Attempt = Result<Outcome, String>;

/// Consequence of an attempt.
enum JobResult {
    Ended(Box<StatusFile>),
    /// The run ends first.
    Interrupted,
    /// Another attempt, after all other work.
    Again,
}

impl Dispatcher<'_> {
    /// Tracks videos until none is left.
    pub fn run(&self) {
        while let Some(work) = self.next() {
            let (index, done) = match work {
                Job::Video(task, claim) => (task.index, self.settle(task, claim)),
                Job::Segment(part) => (part.group.index, self.settle_part(part)),
            };
            self.tell(Event::Left { lane: self.number });
            if let Err(error) = done {
                self.on_disk_error(index, &error);
            }
        }
    }

    /// The next part, or the next video that no other run tracks.
    fn next(&self) -> Option<Job> {
        while let Some(next) = self.queue.next() {
            let (task, _planning) = match next {
                Next::Segment(part) => return Some(Job::Segment(part)),
                Next::Video(task, planning) => (task, planning),
            };
            let index = task.index;
            match self.claimed(task) {
                Ok(Some(work)) => return Some(work),
                Ok(None) => (),
                Err(error) => self.on_disk_error(index, &error),
            }
        }
        self.queue.next_again()
    }

    /// A video to track as a whole, unless another run tracks it or has settled it.
    fn claimed(&self, mut task: VideoJob) -> io::Result<Option<Job>> {
        let (index, video) = (task.index, &self.run.videos[task.index]);
        // Nothing is written to the place of a disk that is away.
        if self.run.arguments.out.is_none()
            && let Some(outcome) = plan::unreadable(video, self.run.arguments)
        {
            let marker = StatusFile::new("", video, &self.run.crew.ready, outcome);
            self.settled(index, Box::new(marker));
            return Ok(None);
        }
        if let Some(folder) = video
            .record
            .parent()
            .filter(|_| self.run.arguments.out.is_some())
        {
            fs::create_dir_all(folder)?;
        }
        let Some(claim) = VideoLock::new(&video.record)? else {
            let path = video.path.display();
            self.tell(Event::Noted(format!("{path}: another run is tracking it")));
            return Ok(None);
        };
        if let Some(marker) = task.settled_meanwhile(video) {
            let is_new = false;
            self.tell(Event::Finished(VideoResult {
                index,
                is_new,
                marker,
            }));
            claim.release()?;
            return Ok(None);
        }
        self.divided(task, claim)
    }

    /// Puts the parts of a long video into the queue. Returns any other video.
    fn divided(&self, mut task: VideoJob, claim: VideoLock) -> io::Result<Option<Job>> {
        let video = &self.run.videos[task.index];
        let grid = self
            .run
            .arguments
            .grid()
            .filter(|_| video.segment.is_whole());
        let measured = grid.and_then(|grid| Some((grid, self.measure(video)?)));
        let Some((grid, measured)) = measured else {
            return Ok(Some(Job::Video(task, claim)));
        };
        // Everything is tracked again, so no later run may use earlier parts.
        if self.run.arguments.force {
            claim.clear()?;
        }
        let parts = measured.map(|seconds| grid.parts(seconds));
        let parts = parts.map_err(|reason| task.whole = Some(reason));
        let Some(parts) = parts.ok().filter(|parts| parts.len() > 1) else {
            return Ok(Some(Job::Video(task, claim)));
        };
        self.queue
            .add(SegmentedVideo::divide(task, claim, video, &parts));
        Ok(None)
    }

    /// Duration of a video that can be tracked in parts, s, or why it cannot be.
    fn measure(&self, video: &Video) -> Option<Result<f64, String>> {
        if plan::refuse(&video.path).is_some() {
            return None;
        }
        let mut seat = self.seats.take();
        let mut worker = self.worker(&mut seat).ok()?;
        worker.send(&Request::Measure(video.path.clone())).ok()?;
        let measured = self.measured(&mut worker)?;
        seat.worker = Some(worker);
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

    /// The worker of a seat, or a new one.
    fn worker(&self, seat: &mut Seat) -> Result<Worker, String> {
        let worker = seat.worker.take();
        worker.map_or_else(|| self.run.crew.worker(), Ok)
    }

    /// Tracks a video, and writes its marker.
    fn settle(&self, mut task: VideoJob, claim: VideoLock) -> io::Result<()> {
        task.attempts += 1;
        let video = &self.run.videos[task.index];
        let order = Order {
            index: task.index,
            part: None,
            job: job(video, names::next(&video.record), None),
            attempts: task.attempts,
        };
        match self.attempt(order, &task.key) {
            JobResult::Ended(marker) => {
                let marker = self.conclude(&task, &claim, *marker)?;
                self.settled(task.index, marker);
            }
            JobResult::Interrupted => (),
            JobResult::Again => self.queue.try_again(Job::Video(task, claim)),
        }
        Ok(())
    }

    /// Replaces the record and the marker of a video, unless the earlier ones are better. Returns
    /// the account of this run.
    fn conclude(
        &self,
        task: &VideoJob,
        claim: &VideoLock,
        mut marker: StatusFile,
    ) -> io::Result<Box<StatusFile>> {
        let video = &self.run.videos[task.index];
        let is_unreadable = marker.outcome.cause.take() == Some(Cause::Unreadable);
        if is_unreadable {
            // It is tracked when it can be read.
            marker.key.clear();
        }
        let has_record = marker.outcome.status.has_record();
        marker.whole = task.whole.clone().filter(|_| has_record);
        if is_unreadable && task.known.is_some() {
            marker.outcome = plan::kept(marker.outcome, video);
            claim.release()?;
            return Ok(Box::new(marker));
        }
        let Some(better) = task.better(video, &marker.outcome) else {
            return self.replace(task, claim, marker);
        };
        marker.outcome = plan::kept(marker.outcome, video);
        let marker = Box::new(marker);
        let better = StatusFile {
            later: Some(marker.clone()),
            ..better.clone()
        };
        claim.finish(&better, Existing::Replaced)?;
        Ok(marker)
    }

    fn replace(
        &self,
        task: &VideoJob,
        claim: &VideoLock,
        mut marker: StatusFile,
    ) -> io::Result<Box<StatusFile>> {
        let mut whole = marker.clone();
        // An empty key has no basis.
        if !marker.key.is_empty() {
            whole.basis = task.basis.clone();
        }
        match claim.finish(&whole, task.existing) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let reason = plan::foreign(&self.run.videos[task.index].record);
                marker.outcome = Outcome::without_record(Status::Skipped, reason);
                claim.release()?;
            }
            finished => finished?,
        }
        Ok(Box::new(marker))
    }

    /// Tracks a part of a video, and joins the parts after the last one.
    fn settle_part(&self, mut part: SegmentJob) -> io::Result<()> {
        part.attempts += 1;
        let group = part.group.clone();
        let tried = match part.known() {
            _ if group.has_misfit() => Ok(JobResult::Ended(Box::default())),
            Some(known) => Ok(JobResult::Ended(known)),
            None => self.track_part(&part),
        };
        let marker = match tried {
            Ok(JobResult::Ended(marker)) => marker,
            Ok(JobResult::Interrupted) => return Ok(()),
            Ok(JobResult::Again) => {
                self.queue.try_again(Job::Segment(part));
                return Ok(());
            }
            Err(error) if is_full(&error) => return Err(error),
            Err(error) => self.unwritten(group.index, &error),
        };
        let (video, ready) = (&self.run.videos[group.index], &self.run.crew.ready);
        let finished = group.finish_part(part.number, *marker, video, ready)?;
        let Some(finished) = finished else {
            return Ok(());
        };
        let (task, claim) = (finished.task, finished.claim);
        let Some(marker) = finished.marker else {
            return self.settle(task, claim);
        };
        let marker = self.conclude(&task, &claim, marker)?;
        self.settled(group.index, marker);
        Ok(())
    }

    /// Tracks a part of a video, and writes its marker.
    fn track_part(&self, part: &SegmentJob) -> io::Result<JobResult> {
        let video = part.video();
        let order = Order {
            index: part.group.index,
            part: Some((part.number, part.count())),
            job: job(video, video.record.clone(), self.run.arguments.grid()),
            attempts: part.attempts,
        };
        let tried = self.attempt(order, &part.key());
        if let JobResult::Ended(marker) = &tried {
            part.keep(marker)?;
        }
        Ok(tried)
    }

    /// Tries a job. A run that ends before the video does keeps the claim, for the next run.
    fn attempt(&self, order: Order, key: &str) -> JobResult {
        let (index, attempts) = (order.index, order.attempts);
        let (attempt, seconds) = self.fetch_and_track(order);
        let outcome = match attempt {
            Ok(outcome) if outcome.cause != Some(Cause::Busy) => outcome,
            // The signal that ends a run may reach its workers, too.
            _ if self.queue.stopped().is_some() => return JobResult::Interrupted,
            _ if attempts < ATTEMPTS => return JobResult::Again,
            Ok(busy) => Outcome::without_record(Status::Failed, busy.message.unwrap_or_default()),
            Err(reason) => Outcome::without_record(Status::Failed, reason),
        };
        let video = &self.run.videos[index];
        // Its file may have gone away meanwhile.
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
            ..StatusFile::new(key, video, &self.run.crew.ready, outcome)
        }))
    }

    fn settled(&self, index: usize, marker: Box<StatusFile>) {
        self.queue.settled(marker.outcome.status);
        let is_new = true;
        self.tell(Event::Finished(VideoResult {
            index,
            is_new,
            marker,
        }));
    }

    /// Fetches the video, waits for a seat, and tracks the video or part. Returns also the seconds
    /// that tracking took.
    fn fetch_and_track(&self, mut order: Order) -> (Attempt, f64) {
        let (index, part) = (order.index, order.part);
        let video = &self.run.videos[index].path;
        let is_stopped = || self.queue.stopped().is_some();
        let staging = self.run.staging.as_ref();
        let staged = staging.map(|it| it.fetch(video, is_stopped));
        let staged = match staged.transpose() {
            Ok(staged) => staged,
            Err(Unfetched::Stopped) => return (Ok(stopped()), 0.0),
            Err(Unfetched::Failed(reason)) => return (Err(reason), 0.0),
        };
        if let Some(staged) = &staged {
            order.job.video = staged.to_path_buf();
        }
        let mut seat = self.seats.take();
        if is_stopped() {
            return (Ok(stopped()), 0.0);
        }
        let lane = self.number;
        self.tell(Event::Started { lane, index, part });
        let start = Instant::now();
        let attempt = self.track(&mut seat, order);
        let seconds = start.elapsed().as_secs_f64();
        let attempt = match staged {
            Some(staged) => renamed(attempt, &staged, video),
            None => attempt,
        };
        (attempt, seconds)
    }

    /// Lets the worker of a seat track a video or part.
    fn track(&self, seat: &mut Seat, order: Order) -> Attempt {
        if let Some(outcome) = plan::refuse(&order.job.video) {
            return Ok(outcome);
        }
        let mut worker = self.worker(seat)?;
        let sent = worker.send(&Request::Track(Box::new(order.job)));
        sent.map_err(|error| error.to_string())?;
        let mut outcome = self.follow(&mut worker, order.index)?;
        let stalled = outcome.cause.take_if(|cause| *cause == Cause::Stalled);
        if stalled.is_none() {
            seat.worker = Some(worker);
        }
        Ok(outcome)
    }

    /// Waits until the video ends, or the worker has to.
    fn follow(&self, worker: &mut Worker, index: usize) -> Attempt {
        let (lane, start) = (self.number, Instant::now());
        let mut stopping: Option<Instant> = None;
        loop {
            match worker.answer(POLL) {
                Ok(Answer::Done(outcome)) => return Ok(*outcome),
                Ok(Answer::Progress(progress)) => self.tell(Event::Progressed {
                    lane,
                    index,
                    progress,
                }),
                Ok(_) | Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return Err(worker.end()),
            }
            if let Some(reason) = self.exceeded(worker, start) {
                return Err(reason);
            }
            if self.queue.stopped().is_some() && stopping.is_none() {
                stopping = Some(Instant::now());
                let _ = worker.send(&Request::Stop);
            }
            if stopping.is_some_and(|since| since.elapsed() > GRACE) {
                return Ok(stopped());
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
        let marker = self.unwritten(index, error);
        if !is_full(error) {
            return self.settled(index, marker);
        }
        self.queue.stop(Stop::OutOfSpace);
        let message = marker.outcome.message;
        self.tell(Event::Noted(message.unwrap_or_default()));
    }

    /// The account of a video that has no marker.
    fn unwritten(&self, index: usize, error: &io::Error) -> Box<StatusFile> {
        let video = &self.run.videos[index];
        let record = video.record.display();
        let message = format!("{record} or its marker cannot be written: {error}");
        let outcome = Outcome::without_record(Status::Failed, message);
        Box::new(StatusFile::new("", video, &self.run.crew.ready, outcome))
    }

    /// Sends an event. Its receiver ends only when nothing can be printed any more.
    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

fn job(video: &Video, record: PathBuf, grid: Option<SegmentPlan>) -> TrackRequest {
    TrackRequest {
        video: video.path.clone(),
        name: video.name.clone(),
        record,
        segment: video.segment,
        warm_up: grid.map(|grid| grid.warm_up.as_secs_f64()),
    }
}

/// The outcome of an attempt that ends with the run.
fn stopped() -> Outcome {
    Outcome {
        cause: Some(Cause::Stopped),
        ..Outcome::default()
    }
}

/// An attempt with the name of the video in place of its local file.
fn renamed(attempt: Attempt, local: &Path, video: &Path) -> Attempt {
    let (local, video) = (local.to_string_lossy(), video.to_string_lossy());
    let rename = |text: String| text.replace(&*local, &video);
    let mut outcome = attempt.map_err(rename)?;
    outcome.message = outcome.message.map(rename);
    Ok(outcome)
}
