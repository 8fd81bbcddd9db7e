// SPDX-License-Identifier: MPL-2.0
//! A lane tracks one video after another with a worker, and replaces a worker that dies, takes too
//! long or needs too much memory.

use std::io;
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
use super::segments::{self, Grid, Group, PartTask};

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
    worker: Option<Worker>,
}

/// How an attempt ended.
enum Attempt {
    Ended(Outcome),
    /// The worker is gone, or another process writes the record. Another attempt may succeed.
    Lost(String),
}

/// Consequence of an attempt.
enum Tried {
    Ended(Outcome),
    /// The run ends first.
    Interrupted,
    /// Another attempt, after all other work.
    Again,
}

impl<'a> Lane<'a> {
    pub fn new(
        number: usize,
        arguments: &'a RunArguments,
        queue: &'a Queue,
        videos: &'a [Video],
    ) -> Self {
        Self {
            number,
            arguments,
            queue,
            videos,
            worker: None,
        }
    }

    /// Tracks videos until none is left.
    pub fn run(&mut self, crew: &Crew, worker: Option<Worker>, events: &Sender<Event>) {
        self.worker = worker;
        while let Some(work) = self.next(crew, events) {
            let (index, part) = match &work {
                Work::Video(task, _) => (task.index, None),
                Work::Part(part) => (part.group.task.index, Some((part.number, part.count()))),
            };
            let lane = self.number;
            tell(events, Event::Started { lane, index, part });
            let done = match work {
                Work::Video(task, claim) => self.settle(crew, task, claim, events),
                Work::Part(part) => self.settle_part(crew, part, events),
            };
            tell(events, Event::Left { lane });
            if let Err(error) = done {
                self.on_disk_error(index, &error, events);
            }
        }
    }

    /// The next part, or the next video that no other run tracks.
    fn next(&mut self, crew: &Crew, events: &Sender<Event>) -> Option<Work> {
        let queue = self.queue;
        while let Some(next) = queue.next() {
            let (task, planning) = match next {
                Next::Part(part) => return Some(Work::Part(part)),
                Next::Video(task, planning) => (task, planning),
            };
            let (index, video) = (task.index, &self.videos[task.index]);
            match Claim::new(&video.record) {
                Ok(Some(claim)) => {
                    if let Some(work) = self.divided(crew, task, claim, events) {
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
        &mut self,
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
    fn measure(&mut self, crew: &Crew, video: &Video) -> Option<f64> {
        if plan::refuse(&video.path).is_some() {
            return None;
        }
        let mut worker = self.worker(crew).ok()?;
        worker.send(&Request::Measure(video.path.clone())).ok()?;
        let Answer::Measured(seconds) = worker.answer(MEASURE_TIMEOUT).ok()? else {
            return None;
        };
        self.worker = Some(worker);
        seconds
    }

    /// Tracks a video, and writes its marker.
    fn settle(
        &mut self,
        crew: &Crew,
        mut task: Task,
        claim: Claim,
        events: &Sender<Event>,
    ) -> io::Result<()> {
        let start = Instant::now();
        claim.outdate()?;
        task.attempts += 1;
        let video = &self.videos[task.index];
        let job = job(video, task.replace, None);
        let outcome = match self.outcome(crew, job, task.attempts, events) {
            Tried::Ended(outcome) => outcome,
            Tried::Interrupted => return Ok(()),
            Tried::Again => {
                task.replace = true;
                self.queue.try_again(Work::Video(task, claim));
                return Ok(());
            }
        };
        let marker = Marker {
            seconds: start.elapsed().as_secs_f64(),
            attempts: task.attempts,
            ..Marker::new(&task.key, video, &crew.ready, outcome)
        };
        claim.finish(&marker)?;
        self.settled(task.index, marker, events);
        Ok(())
    }

    /// Tracks a part of a video, and joins the parts after the last one.
    fn settle_part(
        &mut self,
        crew: &Crew,
        mut part: PartTask,
        events: &Sender<Event>,
    ) -> io::Result<()> {
        let start = Instant::now();
        part.attempts += 1;
        let marker = if let Some(known) = part.known() {
            known
        } else {
            part.create_folder()?;
            let job = job(part.video(), true, self.arguments.grid());
            let outcome = match self.outcome(crew, job, part.attempts, events) {
                Tried::Ended(outcome) => outcome,
                Tried::Interrupted => return Ok(()),
                Tried::Again => {
                    self.queue.try_again(Work::Part(part));
                    return Ok(());
                }
            };
            let marker = Marker {
                seconds: start.elapsed().as_secs_f64(),
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
    fn outcome(&mut self, crew: &Crew, job: Job, attempts: u32, events: &Sender<Event>) -> Tried {
        let outcome = match self.attempt(crew, job, events) {
            Attempt::Ended(outcome) => outcome,
            Attempt::Lost(_) if attempts < ATTEMPTS => return Tried::Again,
            Attempt::Lost(reason) => Outcome::without_record(Status::Failed, reason),
        };
        let Some(cause) = outcome.cause else {
            return Tried::Ended(outcome);
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

    /// Lets the worker track a video or part.
    fn attempt(&mut self, crew: &Crew, job: Job, events: &Sender<Event>) -> Attempt {
        if let Some(outcome) = plan::refuse(&job.video) {
            return Attempt::Ended(outcome);
        }
        let mut worker = match self.worker(crew) {
            Ok(worker) => worker,
            Err(reason) => return Attempt::Lost(reason),
        };
        if worker.send(&Request::Job(Box::new(job))).is_err() {
            return Attempt::Lost(worker.end());
        }
        let attempt = self.follow(&mut worker, events);
        let Attempt::Ended(outcome) = attempt else {
            return attempt;
        };
        self.worker = Some(worker);
        if outcome.cause == Some(Cause::Busy) {
            return Attempt::Lost(outcome.message.unwrap_or_default());
        }
        Attempt::Ended(outcome)
    }

    /// The worker of this lane, or a new one.
    fn worker(&mut self, crew: &Crew) -> Result<Worker, String> {
        if let Some(worker) = self.worker.take() {
            return Ok(worker);
        }
        let started = crew.start.worker();
        started
            .map(|(worker, _)| worker)
            .map_err(|refused| refused.message)
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
                return Attempt::Ended(stopped());
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
        if error.kind() == io::ErrorKind::StorageFull {
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

fn stopped() -> Outcome {
    Outcome {
        cause: Some(Cause::Stopped),
        ..Outcome::default()
    }
}

/// Sends an event. Its receiver ends only when nothing can be printed any more.
fn tell(events: &Sender<Event>, event: Event) {
    let _ = events.send(event);
}
