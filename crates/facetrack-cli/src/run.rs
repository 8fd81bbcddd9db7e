// SPDX-License-Identifier: MPL-2.0
//! `facetrack run`: tracks faces in many videos. Workers play the videos; this program plans,
//! watches them and reports the results.

mod arguments;
mod dispatcher;
mod display;
mod events;
mod failures;
mod fetching;
mod inputs;
mod key;
mod lists;
pub(crate) mod names;
mod plan;
mod process_group;
mod queue;
mod segment_plan;
mod segments;
mod shard;
mod staging;
pub(crate) mod status_file;
mod study_table;
mod summary;
mod tracked;
pub(crate) mod units;
mod video;
mod video_lock;
pub(crate) mod worker;
mod worker_pool;

use std::env;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use facetrack_jobs::SetupError;
use serde_json::{Map, Value};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

pub(crate) use arguments::RunArguments;
use dispatcher::Dispatcher;
use display::Display;
use events::{Event, VideoResult};
use inputs::Inputs;
pub(crate) use inputs::is_several;
use plan::VideoJob;
use queue::{Queue, Stop};
use shard::Shard;
use staging::Staging;
use summary::Summary;
pub(crate) use tracked::{TrackedVideo, recorded};
use video::Video;
use worker_pool::WorkerPool;

use crate::error::{StoreError, is_full};
use crate::{TRY_AGAIN, output};

/// Exit statuses of a run whose videos are complete, and of one with others.
pub(crate) const COMPLETE: u8 = 0;
pub(crate) const INCOMPLETE: u8 = 1;

/// Exit status of wrong usage, as in clap.
const USAGE: u8 = 2;

/// Exit status if the engine cannot run on this machine. `EX_UNAVAILABLE` of sysexits.h.
const UNAVAILABLE: u8 = 69;

/// Exit status of a single video that will never work. Our choice, outside of what shells use.
pub(crate) const HOPELESS: u8 = 42;

/// Interval at which requests to end are checked.
const POLL: Duration = Duration::from_millis(100);

/// Time for a run to end. Our choice: schedulers often give 10 s or more before they kill. What is
/// left then waits for a disk, or for a reader of the output.
const END: Duration = Duration::from_millis(4500);

/// The format of records that can be joined.
const DENSE: &str = "dense";

/// Value of `select` without a selection.
const ALL_FACES: &str = "all";

/// Tracks what the arguments name.
///
/// # Errors
/// Returns an error if nothing can be printed.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Box<dyn Error>> {
    let stop = stop_on_signals()?;
    let code = match Run::prepare(arguments, &stop) {
        Ok(run) => run.execute()?.0,
        Err(refusal) => refusal.complain(&stop),
    };
    Ok(code.into())
}

/// Tracks what the arguments name, as a step of another command, which sets `stop` to end it. Returns the
/// exit status and the results. If the run did not start, there are no results.
///
/// # Errors
/// Returns an error if nothing can be printed.
pub(crate) fn track(
    arguments: &RunArguments,
    stop: &Arc<AtomicBool>,
) -> Result<(u8, Vec<TrackedVideo>), Box<dyn Error>> {
    match Run::prepare(arguments, stop) {
        Ok(run) => {
            let (code, results) = run.execute()?;
            Ok((code, tracked::of_run(&run.videos, results)))
        }
        Err(refusal) => Ok((refusal.complain(stop), Vec::new())),
    }
}

/// The paths of the videos that the arguments name, with their ids.
///
/// # Errors
/// Returns an error if an input does not exist or cannot be read.
pub(crate) fn named(arguments: &RunArguments) -> Result<Vec<(String, PathBuf)>, String> {
    let videos = inputs::collect(arguments)?.videos.into_iter();
    Ok(videos.map(|video| (video.id, video.path)).collect())
}

/// Reason why a run does not start.
struct Refusal {
    /// The reason and the remedy.
    message: String,
    /// The exit status.
    code: u8,
}

impl Refusal {
    /// Prints the reason, and returns the exit status.
    fn complain(&self, stop: &AtomicBool) -> u8 {
        output::complain(format_args!("facetrack run: {}", self.message));
        let is_stopped = stop.load(Ordering::Relaxed);
        if is_stopped { TRY_AGAIN } else { self.code }
    }
}

impl From<SetupError> for Refusal {
    fn from(SetupError { message, is_usage }: SetupError) -> Self {
        let code = if is_usage { USAGE } else { UNAVAILABLE };
        Self { message, code }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        let code = if is_full(&error) {
            TRY_AGAIN
        } else {
            UNAVAILABLE
        };
        Self { message, code }
    }
}

/// Checks that parts of a video can be tracked with these options and joined.
///
/// # Errors
/// Returns the option that does not permit segments.
fn check_parts(options: &Map<String, Value>) -> Result<(), String> {
    let text = |name| options.get(name).and_then(Value::as_str);
    if let Some(format) = text("format").filter(|format| *format != DENSE) {
        return Err(format!(
            "--segment joins dense records only: leave out format={format}"
        ));
    }
    if let Some(select) = text("select").filter(|select| *select != ALL_FACES) {
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

/// State of a run before the first video starts.
struct Run<'a> {
    arguments: &'a RunArguments,
    shard: Shard,
    videos: Vec<Video>,
    /// Messages about the inputs.
    notes: Vec<String>,
    pool: WorkerPool,
    staging: Option<Staging>,
    stop: Arc<AtomicBool>,
}

impl<'a> Run<'a> {
    /// Checks the arguments, and starts the first worker.
    fn prepare(arguments: &'a RunArguments, stop: &Arc<AtomicBool>) -> Result<Self, Refusal> {
        let inputs = inputs::collect(arguments).map_err(SetupError::usage)?;
        let shard = shard::of(arguments.shard, |name| env::var(name).ok());
        let shard = shard.map_err(SetupError::usage)?;
        failures::check(arguments, shard, &inputs.videos).map_err(SetupError::usage)?;
        let Inputs { mut videos, notes } = inputs;
        videos.retain(|video| shard.has(&video.id));
        let command = arguments.fetch.clone();
        let staging = command.map(|command| Staging::new(command, arguments.timeout));
        let staging = staging
            .transpose()
            .map_err(StoreError::at(&env::temp_dir()))?;
        let pool = WorkerPool::start(arguments, stop)?;
        if arguments.segment.is_some() {
            check_parts(&pool.ready.options).map_err(SetupError::usage)?;
        }
        study_table::check(arguments, shard, &pool.ready).map_err(SetupError::usage)?;
        Ok(Self {
            arguments,
            shard,
            videos,
            notes,
            pool,
            staging,
            stop: stop.clone(),
        })
    }

    /// Tracks the videos. Returns the exit status and the settled videos.
    fn execute(&self) -> Result<(u8, Vec<VideoResult>), Box<dyn Error>> {
        let (jobs, settled) = plan::plan(&self.videos, self.arguments, &self.pool.ready);
        if self.arguments.dry_run {
            self.notes.iter().for_each(output::complain);
            output::print(plan::described(&self.videos, &jobs, &settled))?;
        }
        if let Some(reason) = plan::conflict(&self.videos, &jobs, self.arguments) {
            output::complain(format_args!("facetrack run: {reason}"));
            return Ok((USAGE, Vec::new()));
        }
        if self.arguments.dry_run {
            return Ok((COMPLETE, Vec::new()));
        }
        let mut display = Display::new(self.arguments.json, &self.videos, &jobs);
        for note in &self.notes {
            display.on_event(Event::Noted(note.clone()))?;
        }
        for report in settled {
            display.on_event(Event::Finished(report))?;
        }
        let stop = self.track(jobs, &mut display)?;
        display.end();
        let failures = failures::write(self, &display.summary);
        if let Err(error) = &failures {
            output::complain(format_args!("facetrack run: the list of failures: {error}"));
        }
        let table = study_table::write(self, &display.summary, stop);
        if let Err(error) = &table {
            output::complain(format_args!("facetrack run: the table: {error}"));
        }
        let is_written = failures.is_ok() && table.is_ok();
        let listed = failures.as_ref().ok().and_then(Option::as_deref);
        if !self.arguments.is_step {
            display.summarise(listed, table.as_ref().ok().copied().flatten())?;
        }
        let is_full = failures.is_err_and(|error| is_full(&error))
            || table.is_err_and(|error| is_full(&*error));
        let code = if is_full {
            TRY_AGAIN
        } else {
            exit_code(&display.summary, stop, is_written)
        };
        Ok((code, display.summary.results))
    }

    /// Tracks the videos that are left, and returns why that stopped early.
    fn track(
        &self,
        jobs: Vec<VideoJob>,
        display: &mut Display,
    ) -> Result<Option<Stop>, StoreError> {
        let slots = self.arguments.jobs();
        let slots = match self.arguments.segment {
            Some(_) => slots,
            None => slots.min(jobs.len()),
        };
        let ahead = self.staging.iter().map(|_| self.arguments.fetch_ahead);
        let count = slots + ahead.sum::<usize>();
        let queue = &Queue::new(jobs, self.stop.clone(), self.arguments.fail_fast);
        let dispatcher = |number, events| Dispatcher {
            number,
            run: self,
            queue,
            events,
        };
        let (sender, events) = channel();
        thread::scope(|scope| {
            let all = (0..count).map(|number| dispatcher(number, sender.clone()));
            let all: Vec<_> = all.map(|it| scope.spawn(move || it.run())).collect();
            let alone = dispatcher(0, sender);
            scope.spawn(move || {
                // A panic was printed when it happened.
                all.into_iter().for_each(|it| drop(it.join()));
                self.pool.end_workers();
                queue.begin_second_attempts();
                alone.run();
                self.pool.end_workers();
            });
            let mut events = events.into_iter();
            let followed = events.try_for_each(|event| display.on_event(event));
            // The results would not be shown.
            followed.inspect_err(|_| queue.stop(Stop::Terminated))
        })?;
        Ok(queue.stopped())
    }
}

fn exit_code(summary: &Summary, stop: Option<Stop>, is_written: bool) -> u8 {
    match (stop, summary.only_status()) {
        (Some(Stop::Terminated | Stop::OutOfSpace), _) => TRY_AGAIN,
        (_, Some(status)) if summary::is_hopeless(status) => HOPELESS,
        _ if summary.is_complete() && is_written => COMPLETE,
        _ => INCOMPLETE,
    }
}

/// A flag that is set when the program is asked to end. It is ended if it does not end in time, and by a
/// second request at once.
///
/// # Errors
/// Returns an error if the signals cannot be handled.
pub(crate) fn stop_on_signals() -> io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        flag::register_conditional_shutdown(signal, TRY_AGAIN.into(), stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    let watched = stop.clone();
    thread::spawn(move || {
        while !watched.load(Ordering::Relaxed) {
            thread::sleep(POLL);
        }
        thread::sleep(END);
        process::exit(TRY_AGAIN.into());
    });
    Ok(stop)
}
