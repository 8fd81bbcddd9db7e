// SPDX-License-Identifier: MPL-2.0
//! Worker processes.

use std::env;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use facetrack_assets::locate::TELEMETRY_VARIABLE;
use facetrack_jobs::{Answer, Ready, Request, SetupError, send};

use super::process_group::ProcessGroup;
use crate::pipe::{self, LastLine};
use crate::{env as exported, output};

/// The program that tracks videos, next to this one.
const PROGRAM: &str = "facetrack-worker";

/// Interval at which limits and signals are checked while a worker starts.
const POLL: Duration = Duration::from_millis(50);

/// Time to read the last answers of a worker that has ended. Our choice: they are in memory.
const REST: Duration = Duration::from_secs(1);

/// Maximum length of an answer, bytes. Our choice: one with the faces of a long warm-up is some MB.
const MAX_ANSWER: usize = 64 << 20;

/// Answers that are kept for a dispatcher. Our choice; it takes them as they come.
const ANSWERS: usize = 16;

/// Lines of a worker that are shown for a video. Our choice.
const MAX_LINES: usize = 100;

/// Settings with which workers start.
pub(crate) struct WorkerSettings {
    /// The request that sets them up.
    pub first: Request,
    /// Maximum time to start; `None` for any.
    pub limit: Option<Duration>,
    /// True if the run ends.
    pub stop: Arc<AtomicBool>,
}

/// A running worker.
pub(crate) struct Worker {
    child: ProcessGroup,
    /// Lines for its standard input.
    requests: Sender<Vec<u8>>,
    answers: Receiver<Answer>,
    last_words: LastLine,
    lines: Arc<LineCount>,
}

/// Counts the lines of a worker that were shown for its video.
#[derive(Default)]
struct LineCount(AtomicUsize);

/// The error if the worker cannot be started.
pub(crate) fn not_started(error: &io::Error) -> String {
    let program = program().display().to_string();
    format!(
        "{program} cannot be started: {error}. It is installed with the plugin: run `make build`, or put it next to facetrack"
    )
}

/// The worker next to this program, else the one on the `PATH`.
pub(crate) fn program() -> PathBuf {
    let own = env::current_exe().ok();
    let next_to = own.map(|own| own.with_file_name(PROGRAM));
    let there = next_to.filter(|program| program.exists());
    there.unwrap_or_else(|| PROGRAM.into())
}

impl Worker {
    /// Starts a worker, and waits until its engine is loaded. If the worker ends before that,
    /// another one is started once, because something may have killed the first.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started, or refuses the settings.
    pub(crate) fn start(settings: &WorkerSettings) -> Result<(Self, Ready), SetupError> {
        let (mut worker, ready) = Self::start_once(settings)?;
        if let Some(ready) = ready {
            return Ok((worker, ready));
        }
        output::complain(format_args!("{}. It is started once more", worker.end()));
        let (mut worker, ready) = Self::start_once(settings)?;
        match ready {
            Some(ready) => Ok((worker, ready)),
            None => Err(SetupError::other(worker.end())),
        }
    }

    fn start_once(settings: &WorkerSettings) -> Result<(Self, Option<Ready>), SetupError> {
        let mut worker = Self::spawn().map_err(|error| SetupError::other(not_started(&error)))?;
        let sent = worker.send(&settings.first);
        sent.map_err(SetupError::other)?;
        let ready = worker.loaded(settings)?;
        Ok((worker, ready))
    }

    /// Waits until the engine is loaded; `None` if the worker has ended.
    fn loaded(&mut self, settings: &WorkerSettings) -> Result<Option<Ready>, SetupError> {
        let begun = Instant::now();
        loop {
            match self.answer(POLL) {
                Ok(Answer::Ready(ready)) => return Ok(Some(ready)),
                Ok(Answer::Refused(reason)) => return Err(reason),
                Ok(_) | Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
            if settings.stop.load(Ordering::Relaxed) {
                return Err(SetupError::other("stopped while the engine was loaded"));
            }
            if settings.limit.is_some_and(|limit| begun.elapsed() > limit) {
                let reason = format!("{PROGRAM} took longer than --timeout to load the engine");
                return Err(SetupError::other(reason));
            }
        }
    }

    fn spawn() -> io::Result<Self> {
        let mut child = Command::new(program())
            .envs(exported::locations())
            .env(TELEMETRY_VARIABLE, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C in a terminal goes to this program, which stops its workers.
            .process_group(0)
            .spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let child = ProcessGroup(child);
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (requests, lines_to_send) = channel();
        let (sender, answers) = sync_channel(ANSWERS);
        let lines = Arc::new(LineCount::default());
        let (of_stdout, of_stderr) = (lines.clone(), lines.clone());
        thread::spawn(move || write_lines(stdin, &lines_to_send));
        thread::spawn(move || read_answers(stdout, &sender, &of_stdout));
        Ok(Self {
            child,
            requests,
            answers,
            last_words: LastLine::of(stderr, move |line| of_stderr.show(line)),
            lines,
        })
    }

    /// Sends a request. The end of the worker is noticed when its answer is waited for.
    ///
    /// # Errors
    /// Returns an error if a path in it is not UTF-8.
    pub(crate) fn send(&mut self, request: &Request) -> io::Result<()> {
        if let Request::Track(_) | Request::Blur(_) = request {
            self.lines.0.store(0, Ordering::Relaxed);
        }
        let mut line = Vec::new();
        send(&mut line, request)?;
        let _ = self.requests.send(line);
        Ok(())
    }

    /// The next answer.
    ///
    /// # Errors
    /// Returns an error if no answer has come, or the worker has ended.
    pub(crate) fn answer(&self, timeout: Duration) -> Result<Answer, RecvTimeoutError> {
        let answer = self.answers.recv_timeout(timeout);
        if answer == Err(RecvTimeoutError::Timeout) && self.child.has_ended() {
            // Programs that it has started may keep its output open.
            let rest = self.answers.recv_timeout(REST);
            return rest.map_err(|_| RecvTimeoutError::Disconnected);
        }
        answer
    }

    /// Resident memory in bytes.
    pub(super) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.0.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    }

    /// Ends a worker that has closed its output, and says how it ended.
    pub(crate) fn end(&mut self) -> String {
        let status = self.child.end();
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let words = self.last_words.get();
        if words.is_empty() {
            return format!("{PROGRAM} ended ({how})");
        }
        format!("{PROGRAM} ended ({how}): {words}")
    }
}

impl LineCount {
    /// Shows a line, unless there were too many.
    fn show(&self, line: &str) {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        if before < MAX_LINES {
            output::complain(format_args!("{PROGRAM}: {line}"));
        } else if before == MAX_LINES {
            output::complain(format_args!("{PROGRAM}: more lines are not shown"));
        }
    }
}

fn write_lines(mut stdin: impl Write, lines: &Receiver<Vec<u8>>) {
    // A worker that has ended is noticed when its answer is waited for.
    let _ = lines.iter().try_for_each(|line| stdin.write_all(&line));
}

fn read_answers(stdout: impl Read, sender: &SyncSender<Answer>, lines: &LineCount) {
    for line in pipe::lines(stdout, MAX_ANSWER) {
        // Libraries may print lines of their own.
        let Ok(answer) = serde_json::from_str(&line) else {
            lines.show(&pipe::shortened(line));
            continue;
        };
        if sender.send(bounded(answer)).is_err() {
            return;
        }
    }
}

/// An answer whose message is no longer than a line.
fn bounded(mut answer: Answer) -> Answer {
    if let Answer::Done(outcome) = &mut answer {
        outcome.message = outcome.message.take().map(pipe::shortened);
    }
    answer
}
