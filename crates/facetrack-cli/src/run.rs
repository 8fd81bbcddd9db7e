// SPDX-License-Identifier: MPL-2.0
//! `facetrack run`: tracks faces in many videos. Workers play the videos; this program plans,
//! watches them and reports the results.

mod arguments;
mod child;
mod claim;
mod display;
mod events;
mod failures;
mod inputs;
mod key;
mod lane;
mod lists;
mod marker;
mod plan;
mod queue;
mod seats;
mod segments;
mod shard;
mod staging;
mod summary;
mod units;

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Map, Value};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

pub use arguments::RunArguments;
use child::{Crew, Start, Worker};
use display::Display;
use events::Event;
use inputs::Video;
use lane::Lane;
use plan::{Policy, Task};
use queue::{Queue, Stop};
use seats::Seats;
use shard::Shard;
use staging::Staging;
use summary::Summary;

use crate::output;

/// Exit status of wrong usage, as clap has it.
const USAGE: u8 = 2;

/// Exit status of a run that did not end: another try is worth it. `EX_TEMPFAIL` of sysexits.h.
const TRY_AGAIN: u8 = 75;

/// Exit status of a single video that will never work. Our choice, outside of what shells use.
const HOPELESS: u8 = 42;

/// The format of records that can be joined.
const DENSE: &str = "dense";

/// Value of `select` without a selection.
const ALL_FACES: &str = "all";

/// Why nothing was started.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("{0}")]
    Usage(String),
    #[error("{0}")]
    Setup(String),
}

/// Tracks what the arguments name.
///
/// # Errors
/// When nothing can be printed.
pub fn run(arguments: &RunArguments) -> Result<ExitCode, Box<dyn Error>> {
    match Run::prepare(arguments) {
        Ok(run) => run.execute(),
        Err(refusal) => {
            output::complain(format_args!("facetrack run: {refusal}"));
            Ok(match refusal {
                Refusal::Usage(_) => USAGE.into(),
                Refusal::Setup(_) => ExitCode::FAILURE,
            })
        }
    }
}

/// Checks that parts of a video can be tracked with these options and joined.
///
/// # Errors
/// The option that prevents it.
fn check_parts(options: &Map<String, Value>) -> Result<(), String> {
    let format = options.get("format").and_then(Value::as_str);
    if let Some(format) = format.filter(|format| *format != DENSE) {
        return Err(format!(
            "--segment joins dense records only: leave out format={format}"
        ));
    }
    let select = options.get("select").and_then(Value::as_str);
    if let Some(select) = select.filter(|select| *select != ALL_FACES) {
        return Err(format!(
            "select={select} cannot be used with --segment, because each part would select a face \
             of its own: leave out one of them, or select the face afterwards with `facetrack \
             export --faces largest`"
        ));
    }
    let rest = options.get("neutral-time").and_then(Value::as_f64);
    if rest.is_some_and(|seconds| seconds > 0.0) {
        return Err(
            "neutral-time cannot be used with --segment, because the beginning of each part would \
             count as the rest of a face: leave out one of them"
                .to_owned(),
        );
    }
    Ok(())
}

/// Everything that is known before the first video starts.
struct Run<'a> {
    arguments: &'a RunArguments,
    shard: Shard,
    videos: Vec<Video>,
    crew: Crew,
    first: Option<Worker>,
    staging: Option<Staging>,
    stop: Arc<AtomicBool>,
}

impl<'a> Run<'a> {
    fn prepare(arguments: &'a RunArguments) -> Result<Self, Refusal> {
        let videos = inputs::collect(arguments).map_err(Refusal::Usage)?;
        let shard = shard::of(arguments.shard, |name| std::env::var(name).ok());
        let shard = shard.map_err(Refusal::Usage)?;
        let videos = shard::select(videos, shard);
        let stop = Arc::new(AtomicBool::new(false));
        watch_signals(&stop).map_err(|error| Refusal::Setup(error.to_string()))?;
        let staging = staging(arguments).map_err(|error| Refusal::Setup(error.to_string()))?;
        let start = Start::new(arguments);
        let (first, ready) = start.worker().map_err(|refused| {
            if refused.is_usage {
                Refusal::Usage(refused.message)
            } else {
                Refusal::Setup(refused.message)
            }
        })?;
        if arguments.segment.is_some() {
            check_parts(&ready.options).map_err(Refusal::Usage)?;
        }
        Ok(Self {
            arguments,
            shard,
            videos,
            crew: Crew { start, ready },
            first: Some(first),
            staging,
            stop,
        })
    }

    fn execute(mut self) -> Result<ExitCode, Box<dyn Error>> {
        let policy = Policy::new(self.arguments);
        let ready = &self.crew.ready;
        let (tasks, settled) = plan::plan(&self.videos, ready, &policy);
        if self.arguments.dry_run {
            output::print(plan::described(&self.videos, &tasks, &settled))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut summary = Summary::new(self.videos.len());
        let mut display = Display::new(self.arguments.json, tasks.len());
        for report in settled {
            display.on_event(&Event::Finished(Box::new(report.clone())), &self.videos)?;
            summary.add(report);
        }
        let stop = self.track(tasks, &mut display, &mut summary)?;
        display.end();
        let failures = failures::write(self.arguments, self.shard, &self.videos, &summary);
        if let Err(error) = &failures {
            output::complain(format_args!("facetrack run: the list of failures: {error}"));
        }
        let listed = failures.as_ref().ok().and_then(Option::as_deref);
        display.summarise(&summary, listed)?;
        Ok(exit_code(&summary, stop, failures.is_ok()))
    }

    /// Tracks the videos that are left, and returns why that stopped early.
    fn track(
        &mut self,
        tasks: Vec<Task>,
        display: &mut Display,
        summary: &mut Summary,
    ) -> Result<Option<Stop>, Box<dyn Error>> {
        let jobs = self.arguments.jobs();
        let jobs = match self.arguments.segment {
            Some(_) => jobs,
            None => jobs.min(tasks.len()),
        };
        let queue = Queue::new(tasks, self.stop.clone(), self.arguments.fail_fast);
        let seats = Seats::new(jobs, self.first.take());
        let staging = self.staging.as_ref();
        let lane = |number| {
            let (arguments, videos) = (self.arguments, &self.videos);
            Lane::new(number, arguments, &queue, videos, &seats, staging)
        };
        let lanes = jobs + staging.map_or(0, |_| self.arguments.fetch_ahead);
        let (sender, receiver) = channel();
        let crew = &self.crew;
        thread::scope(|scope| {
            let start = |number| {
                let (sender, lane) = (sender.clone(), lane(number));
                scope.spawn(move || lane.run(crew, &sender))
            };
            let lanes: Vec<_> = (0..lanes).map(start).collect();
            let (queue, seats, alone) = (&queue, &seats, lane(0));
            scope.spawn(move || {
                // A panic was printed when it happened.
                lanes.into_iter().for_each(|lane| drop(lane.join()));
                seats.dismiss();
                queue.begin_second_attempts();
                alone.run(crew, &sender);
            });
            let followed = follow(&receiver, &self.videos, display, summary);
            // Nobody is left who would see the results.
            followed.inspect_err(|_| queue.stop(Stop::Terminated))
        })?;
        Ok(queue.stopped())
    }
}

fn staging(arguments: &RunArguments) -> io::Result<Option<Staging>> {
    let command = arguments.fetch.clone();
    let staging = command.map(|command| Staging::new(command, arguments.timeout));
    staging.transpose()
}

/// Shows events until all lanes have ended.
fn follow(
    events: &Receiver<Event>,
    videos: &[Video],
    display: &mut Display,
    summary: &mut Summary,
) -> Result<(), Box<dyn Error>> {
    for event in events {
        display.on_event(&event, videos)?;
        if let Event::Finished(report) = event {
            summary.add(*report);
        }
    }
    Ok(())
}

fn exit_code(summary: &Summary, stop: Option<Stop>, is_listed: bool) -> ExitCode {
    match (stop, summary.only_status()) {
        (Some(Stop::Terminated | Stop::OutOfSpace), _) => TRY_AGAIN.into(),
        (_, Some(status)) if summary::is_hopeless(status) => HOPELESS.into(),
        _ if summary.is_complete() && is_listed => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Sets `stop` when the run is asked to end. A second request ends it at once.
fn watch_signals(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGTERM, SIGINT] {
        flag::register_conditional_shutdown(signal, TRY_AGAIN.into(), stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(())
}
