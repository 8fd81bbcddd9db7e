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
use super::queue::{Claimed, Queue, Stop};

/// How often limits and signals are checked.
const POLL: Duration = Duration::from_millis(50);

/// Time for a worker to stop a video. Our choice: some frames of the slowest engine.
const GRACE: Duration = Duration::from_secs(10);

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
        while let Some((task, claim)) = self.next(events) {
            let index = task.index;
            let lane = self.number;
            tell(events, Event::Started { lane, index });
            let done = self.settle(crew, task, claim, events);
            tell(events, Event::Left { lane });
            if let Err(error) = done {
                self.on_disk_error(index, &error, events);
            }
        }
    }

    /// The next video that no other run tracks.
    fn next(&self, events: &Sender<Event>) -> Option<Claimed> {
        while let Some(task) = self.queue.next() {
            let video = &self.videos[task.index];
            match Claim::new(&video.record) {
                Ok(Some(claim)) => return Some((task, claim)),
                Ok(None) => {
                    let path = video.path.display();
                    tell(
                        events,
                        Event::Noted(format!("{path}: another run is tracking it")),
                    );
                }
                Err(error) => self.on_disk_error(task.index, &error, events),
            }
        }
        self.queue.next_again()
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
        let outcome = match self.attempt(crew, &task, events) {
            Attempt::Ended(outcome) => outcome,
            Attempt::Lost(_) if task.attempts < ATTEMPTS => {
                task.replace = true;
                self.queue.try_again((task, claim));
                return Ok(());
            }
            Attempt::Lost(reason) => Outcome::without_record(Status::Failed, reason),
        };
        if let Some(cause) = outcome.cause {
            self.on_interruption(cause, outcome.message, events);
            return Ok(());
        }
        let video = &self.videos[task.index];
        let marker = Marker {
            seconds: start.elapsed().as_secs_f64(),
            attempts: task.attempts,
            ..Marker::new(&task.key, video, &crew.ready, outcome)
        };
        claim.finish(&marker)?;
        self.queue.settled(marker.outcome.status);
        let report = Report::new(task.index, true, marker);
        tell(events, Event::Finished(Box::new(report)));
        Ok(())
    }

    /// The run ends before the video does. The claim stays, for the next run.
    fn on_interruption(&self, cause: Cause, message: Option<String>, events: &Sender<Event>) {
        if cause == Cause::OutOfSpace {
            self.queue.stop(Stop::OutOfSpace);
            tell(events, Event::Noted(message.unwrap_or_default()));
        }
    }

    /// Lets the worker track a video.
    fn attempt(&mut self, crew: &Crew, task: &Task, events: &Sender<Event>) -> Attempt {
        let video = &self.videos[task.index];
        if let Some(outcome) = plan::refuse(&video.path) {
            return Attempt::Ended(outcome);
        }
        let mut worker = match self.worker(crew) {
            Ok(worker) => worker,
            Err(reason) => return Attempt::Lost(reason),
        };
        if worker.send(&job(video, task)).is_err() {
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

fn job(video: &Video, task: &Task) -> Request {
    Request::Job(Box::new(Job {
        video: video.path.clone(),
        name: video.name.clone(),
        record: video.record.clone(),
        replace: task.replace,
        part: video.part,
    }))
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
