// SPDX-License-Identifier: MPL-2.0
//! A lane takes one video after another, fetches it if it has to, and lets a worker track it. It
//! replaces a worker that dies, takes too long or needs too much memory.

use std::io;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use facetrack_jobs::{Answer, Cause, Job, Outcome, Request, Status};

use super::arguments::RunArguments;
use super::child::{Crew, Worker};
use super::claim::Claim;
use super::events::{Event, Report};
use super::inputs::Video;
use super::marker::Marker;
use super::plan::{self, Task};
use super::queue::{Next, Queue, Stop, Work};
use super::seats::{Seat, Seats};
use super::segments::{self, Grid, Group, PartTask};
use super::staging::{Staged, Staging, Unfetched};

/// How often limits and signals are checked.
const POLL: Duration = Duration::from_millis(50);

/// Time for a worker to stop a video. Our choice: some frames of the slowest engine.
const GRACE: Duration = Duration::from_secs(10);

/// Time to find out how long a video is.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(60);

/// Attempts at a video whose worker dies.
const ATTEMPTS: u32 = 2;

/// A lane of videos.
pub struct Lane<'a> {
    number: usize,
    arguments: &'a RunArguments,
    queue: &'a Queue,
    videos: &'a [Video],
    seats: &'a Seats,
    staging: Option<&'a Staging>,
}

/// The task of an attempt.
struct Order {
    index: usize,
    /// The number of a part, from 0, and their count.
    part: Option<(usize, usize)>,
    job: Job,
    /// Attempts, with this one.
    attempts: u32,
}

/// How an attempt ended.
enum Attempt {
    Ended(Outcome),
    /// The worker is gone. Another attempt may succeed.
    Lost(String),
    /// Another process writes the record. Another attempt may succeed.
    Busy(String),
}

/// Consequence of an attempt.
enum Tried {
    /// After these seconds.
    Ended(Outcome, f64),
    /// The run ends first.
    Interrupted,
    /// Another attempt, after all other work. Until then, there may be a record of this run.
    Again { has_record: bool },
}

impl<'a> Lane<'a> {
    pub fn new(
        number: usize,
        arguments: &'a RunArguments,
        queue: &'a Queue,
        videos: &'a [Video],
        seats: &'a Seats,
        staging: Option<&'a Staging>,
    ) -> Self {
        Self {
            number,
            arguments,
            queue,
            videos,
            seats,
            staging,
        }
    }

    /// Tracks videos until none is left.
    pub fn run(&self, crew: &Crew, events: &Sender<Event>) {
        while let Some(work) = self.next(crew, events) {
            let index = match &work {
                Work::Video(task, _) => task.index,
                Work::Part(part) => part.group.task.index,
            };
            let done = match work {
                Work::Video(task, claim) => self.settle(crew, task, claim, events),
                Work::Part(part) => self.settle_part(crew, part, events),
            };
            tell(events, Event::Left { lane: self.number });
            if let Err(error) = done {
                self.on_disk_error(index, &error, events);
            }
        }
    }

    /// The next part, or the next video that no other run tracks.
    fn next(&self, crew: &Crew, events: &Sender<Event>) -> Option<Work> {
        let queue = self.queue;
        while let Some(next) = queue.next() {
            let (mut task, planning) = match next {
                Next::Part(part) => return Some(Work::Part(part)),
                Next::Video(task, planning) => (task, planning),
            };
            let (index, video) = (task.index, &self.videos[task.index]);
            match Claim::new(&video.record) {
                Ok(Some(claim)) => {
                    if let Some(marker) = task.settled_meanwhile(video) {
                        let report = Report::new(index, false, marker);
                        tell(events, Event::Finished(Box::new(report)));
                        if let Err(error) = claim.release() {
                            self.on_disk_error(index, &error, events);
                        }
                    } else if let Some(work) = self.divided(crew, task, claim, events) {
                        return Some(work);
                    }
                }
                Ok(None) => {
                    let path = video.path.display();
                    tell(
                        events,
                        Event::Noted(format!("{path}: another run is tracking it")),
                    );
                }
                Err(error) => self.on_disk_error(index, &error, events),
            }
            drop(planning);
        }
        self.queue.next_again()
    }

    /// Puts the parts of a long video into the queue. Returns any other video.
    fn divided(
        &self,
        crew: &Crew,
        task: Task,
        claim: Claim,
        events: &Sender<Event>,
    ) -> Option<Work> {
        let video = &self.videos[task.index];
        let grid = self.arguments.grid().filter(|_| video.part.is_whole());
        let Some((grid, seconds)) = grid.and_then(|grid| Some((grid, self.measure(crew, video)?)))
        else {
            return Some(Work::Video(task, claim));
        };
        let index = task.index;
        if let Err(error) = self.begin_parts(&claim, video) {
            self.on_disk_error(index, &error, events);
            return None;
        }
        match Group::divide(task, claim, video, grid, seconds) {
            Ok(parts) => {
                self.queue.add(parts);
                None
            }
            Err((task, claim)) => Some(Work::Video(task, claim)),
        }
    }

    /// Removes the marker of an earlier run and, if everything is tracked again, its parts.
    fn begin_parts(&self, claim: &Claim, video: &Video) -> io::Result<()> {
        claim.outdate()?;
        if self.arguments.force {
            segments::remove(&video.record)?;
        }
        Ok(())
    }

    /// Duration of a video that can be tracked in parts, s.
    fn measure(&self, crew: &Crew, video: &Video) -> Option<f64> {
        if plan::refuse(&video.path).is_some() {
            return None;
        }
        let mut seat = self.seats.take();
        let mut worker = worker(&mut seat, crew).ok()?;
        worker.send(&Request::Measure(video.path.clone())).ok()?;
        let Answer::Measured(seconds) = worker.answer(MEASURE_TIMEOUT).ok()? else {
            return None;
        };
        seat.worker = Some(worker);
        seconds
    }

    /// Tracks a video, and writes its marker.
    fn settle(
        &self,
        crew: &Crew,
        mut task: Task,
        claim: Claim,
        events: &Sender<Event>,
    ) -> io::Result<()> {
        claim.outdate()?;
        task.attempts += 1;
        let video = &self.videos[task.index];
        let order = Order {
            index: task.index,
            part: None,
            job: job(video, task.replace, None),
            attempts: task.attempts,
        };
        let (outcome, seconds) = match self.attempt(crew, order, events) {
            Tried::Ended(outcome, seconds) => (outcome, seconds),
            Tried::Interrupted => return Ok(()),
            Tried::Again { has_record } => {
                task.replace |= has_record;
                self.queue.try_again(Work::Video(task, claim));
                return Ok(());
            }
        };
        let marker = Marker {
            seconds,
            attempts: task.attempts,
            ..Marker::new(&task.key, video, &crew.ready, outcome)
        };
        claim.finish(&marker)?;
        self.settled(task.index, marker, events);
        Ok(())
    }

    /// Tracks a part of a video, and joins the parts after the last one.
    fn settle_part(
        &self,
        crew: &Crew,
        mut part: PartTask,
        events: &Sender<Event>,
    ) -> io::Result<()> {
        part.attempts += 1;
        let marker = if let Some(known) = part.known() {
            known
        } else {
            part.create_folder()?;
            let order = Order {
                index: part.group.task.index,
                part: Some((part.number, part.count())),
                job: job(part.video(), true, self.arguments.grid()),
                attempts: part.attempts,
            };
            let (outcome, seconds) = match self.attempt(crew, order, events) {
                Tried::Ended(outcome, seconds) => (outcome, seconds),
                Tried::Interrupted => return Ok(()),
                Tried::Again { .. } => {
                    self.queue.try_again(Work::Part(part));
                    return Ok(());
                }
            };
            let marker = Marker {
                seconds,
                attempts: part.attempts,
                ..Marker::new(&part.key(), part.video(), &crew.ready, outcome)
            };
            part.keep(&marker)?;
            marker
        };
        let group = &part.group;
        let Some(parts) = group.finish_part(part.number, marker) else {
            return Ok(());
        };
        let (index, key) = (group.task.index, &group.task.key);
        let marker = Marker::new(key, &self.videos[index], &crew.ready, Outcome::default());
        if let Some(marker) = group.finish(marker, &parts)? {
            self.settled(index, marker, events);
        }
        Ok(())
    }

    /// Tries a job. A run that ends before the video does keeps the claim, for the next run.
    fn attempt(&self, crew: &Crew, order: Order, events: &Sender<Event>) -> Tried {
        let is_last = order.attempts >= ATTEMPTS;
        let (attempt, seconds) = self.fetch_and_track(crew, order, events);
        let outcome = match attempt {
            Attempt::Ended(outcome) => outcome,
            // The signal that ends a run may reach its workers, too.
            _ if self.queue.stopped().is_some() => return Tried::Interrupted,
            Attempt::Lost(_) if !is_last => return Tried::Again { has_record: true },
            Attempt::Busy(_) if !is_last => return Tried::Again { has_record: false },
            Attempt::Lost(reason) | Attempt::Busy(reason) => {
                Outcome::without_record(Status::Failed, reason)
            }
        };
        let Some(cause) = outcome.cause else {
            return Tried::Ended(outcome, seconds);
        };
        if cause == Cause::OutOfSpace {
            self.queue.stop(Stop::OutOfSpace);
            tell(events, Event::Noted(outcome.message.unwrap_or_default()));
        }
        Tried::Interrupted
    }

    fn settled(&self, index: usize, marker: Marker, events: &Sender<Event>) {
        self.queue.settled(marker.outcome.status);
        let report = Report::new(index, true, marker);
        tell(events, Event::Finished(Box::new(report)));
    }

    /// Fetches the video, waits for a seat, and tracks the video or part. Returns also the seconds
    /// that tracking took.
    fn fetch_and_track(
        &self,
        crew: &Crew,
        mut order: Order,
        events: &Sender<Event>,
    ) -> (Attempt, f64) {
        let staged = match self.fetch(order.index) {
            Ok(staged) => staged,
            Err(Unfetched::Stopped) => return (stopped(), 0.0),
            Err(Unfetched::Failed(reason)) => return (Attempt::Lost(reason), 0.0),
        };
        if let Some(staged) = &staged {
            order.job.video = staged.path().to_owned();
        }
        let mut seat = self.seats.take();
        if self.queue.stopped().is_some() {
            return (stopped(), 0.0);
        }
        let (lane, index, part) = (self.number, order.index, order.part);
        tell(events, Event::Started { lane, index, part });
        let start = Instant::now();
        let attempt = self.track(crew, &mut seat, order.job, events);
        let seconds = start.elapsed().as_secs_f64();
        let attempt = match staged {
            Some(staged) => attempt.renamed(staged.path(), &self.videos[index].path),
            None => attempt,
        };
        (attempt, seconds)
    }

    /// The local file of a video that has to be fetched.
    fn fetch(&self, index: usize) -> Result<Option<Staged>, Unfetched> {
        let Some(staging) = self.staging else {
            return Ok(None);
        };
        let is_stopped = || self.queue.stopped().is_some();
        let staged = staging.fetch(index, &self.videos[index].path, is_stopped);
        staged.map(Some)
    }

    /// Lets the worker of a seat track a video or part.
    fn track(&self, crew: &Crew, seat: &mut Seat, job: Job, events: &Sender<Event>) -> Attempt {
        if let Some(outcome) = plan::refuse(&job.video) {
            return Attempt::Ended(outcome);
        }
        let mut worker = match worker(seat, crew) {
            Ok(worker) => worker,
            Err(reason) => return Attempt::Lost(reason),
        };
        if let Err(error) = worker.send(&Request::Job(Box::new(job))) {
            return Attempt::Lost(match error.kind() {
                io::ErrorKind::BrokenPipe => worker.end(),
                _ => error.to_string(),
            });
        }
        let attempt = self.follow(&mut worker, events);
        let Attempt::Ended(outcome) = attempt else {
            return attempt;
        };
        seat.worker = Some(worker);
        if outcome.cause == Some(Cause::Busy) {
            return Attempt::Busy(outcome.message.unwrap_or_default());
        }
        Attempt::Ended(outcome)
    }

    /// Waits until the video ends, or the worker has to.
    fn follow(&self, worker: &mut Worker, events: &Sender<Event>) -> Attempt {
        let start = Instant::now();
        let mut stopping: Option<Instant> = None;
        loop {
            match worker.answer(POLL) {
                Ok(Answer::Done(outcome)) => return Attempt::Ended(*outcome),
                Ok(Answer::Progress(progress)) => {
                    let lane = self.number;
                    tell(events, Event::Progressed { lane, progress });
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return Attempt::Lost(worker.end()),
            }
            if let Some(reason) = self.exceeded(worker, start) {
                return Attempt::Lost(reason);
            }
            if self.queue.stopped().is_some() && stopping.is_none() {
                stopping = Some(Instant::now());
                // A worker that has ended is noticed next.
                let _ = worker.send(&Request::Stop);
            }
            if stopping.is_some_and(|since| since.elapsed() > GRACE) {
                return stopped();
            }
        }
    }

    /// The limit that a worker exceeds.
    fn exceeded(&self, worker: &Worker, start: Instant) -> Option<String> {
        if let Some(limit) = self
            .arguments
            .timeout
            .filter(|limit| start.elapsed() > *limit)
        {
            let limit = limit.as_secs_f64();
            return Some(format!("it took longer than --timeout, {limit} s"));
        }
        let limit = self.arguments.max_memory?;
        let memory = worker.memory();
        (memory > limit)
            .then(|| format!("it needed more memory than --max-memory: {memory} of {limit} bytes"))
    }

    /// Nothing can be recorded for this video. A full disk ends the run.
    fn on_disk_error(&self, index: usize, error: &io::Error, events: &Sender<Event>) {
        let record = self.videos[index].record.display();
        let note = format!("{record} or its marker cannot be written: {error}");
        if let io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded = error.kind() {
            self.queue.stop(Stop::OutOfSpace);
        }
        tell(events, Event::Noted(note));
    }
}

fn job(video: &Video, replace: bool, grid: Option<Grid>) -> Job {
    Job {
        video: video.path.clone(),
        name: video.name.clone(),
        record: video.record.clone(),
        replace,
        part: video.part,
        warm_up: grid.map(|grid| grid.warm_up.as_secs_f64()),
    }
}

/// The worker of a seat, or a new one.
fn worker(seat: &mut Seat, crew: &Crew) -> Result<Worker, String> {
    if let Some(worker) = seat.worker.take() {
        return Ok(worker);
    }
    let started = crew.start.worker();
    started
        .map(|(worker, _)| worker)
        .map_err(|refused| refused.message)
}

/// An attempt that ends with the run.
fn stopped() -> Attempt {
    let outcome = Outcome {
        cause: Some(Cause::Stopped),
        ..Outcome::default()
    };
    Attempt::Ended(outcome)
}

impl Attempt {
    /// The same, with the name of the video in place of its local file.
    fn renamed(self, local: &Path, video: &Path) -> Self {
        let (local, video) = (local.to_string_lossy(), video.to_string_lossy());
        match self {
            Self::Ended(mut outcome) => {
                outcome.message = outcome.message.map(|it| it.replace(&*local, &video));
                Self::Ended(outcome)
            }
            Self::Lost(reason) => Self::Lost(reason.replace(&*local, &video)),
            Self::Busy(reason) => Self::Busy(reason.replace(&*local, &video)),
        }
    }
}

/// Sends an event. Its receiver ends only when nothing can be printed any more.
fn tell(events: &Sender<Event>, event: Event) {
    let _ = events.send(event);
}
