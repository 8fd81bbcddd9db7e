// SPDX-License-Identifier: MPL-2.0
//! Worker processes.

use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use facetrack::locate::TELEMETRY_VARIABLE;
use facetrack::lock::lock;
use facetrack_jobs::{Answer, Ready, Refused, Request, Setup, send};

use super::arguments::RunArguments;
use crate::{env as exported, output};

/// The program that tracks videos, next to this one.
const PROGRAM: &str = "facetrack-worker";

/// How workers start, and the engine that they have.
pub struct Crew {
    setup: Setup,
    pub ready: Ready,
}

/// A running worker.
pub struct Worker {
    child: Running,
    stdin: ChildStdin,
    answers: Receiver<Answer>,
    /// The last line on its standard error.
    last_words: Arc<Mutex<String>>,
}

/// A program that is ended when this is dropped.
pub struct Running(pub Child);

impl Crew {
    /// Starts the first worker, whose engine all others have.
    ///
    /// # Errors
    /// The program cannot be started, or refuses the settings.
    pub fn start(arguments: &RunArguments) -> Result<(Self, Worker), Refused> {
        let setup = Setup {
            engine: arguments.engine.clone(),
            properties: arguments.properties(),
            decoder_threads: arguments.decoder_threads(),
        };
        let (worker, ready) = Worker::start(&setup)?;
        Ok((Self { setup, ready }, worker))
    }

    /// Starts another worker.
    ///
    /// # Errors
    /// The reason why it does not start.
    pub fn worker(&self) -> Result<Worker, String> {
        let started = Worker::start(&self.setup);
        started
            .map(|(worker, _)| worker)
            .map_err(|refused| refused.message)
    }
}

fn not_started(error: &io::Error) -> String {
    let program = program().display().to_string();
    format!(
        "{program} cannot be started: {error}. It is installed with the plugin: run `make build`, or put it next to facetrack"
    )
}

/// The worker next to this program, else the one on the `PATH`.
fn program() -> PathBuf {
    let own = env::current_exe().ok();
    let next_to = own.map(|own| own.with_file_name(PROGRAM));
    let there = next_to.filter(|program| program.exists());
    there.unwrap_or_else(|| PROGRAM.into())
}

impl Worker {
    /// Starts a worker, and waits until its engine is loaded.
    fn start(setup: &Setup) -> Result<(Self, Ready), Refused> {
        let mut worker = Self::spawn().map_err(|error| Refused::other(not_started(&error)))?;
        let sent = worker.send(&Request::Setup(setup.clone()));
        match sent.ok().and_then(|()| worker.answers.recv().ok()) {
            Some(Answer::Ready(ready)) => Ok((worker, ready)),
            Some(Answer::Refused(reason)) => Err(reason),
            _ => Err(Refused::other(worker.end())),
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
        let (sender, answers) = channel();
        let last_words = Arc::new(Mutex::new(String::new()));
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let kept = last_words.clone();
        thread::spawn(move || read_answers(stdout, &sender));
        thread::spawn(move || keep_last_line(stderr, &kept));
        Ok(Self {
            child: Running(child),
            stdin,
            answers,
            last_words,
        })
    }

    /// Sends a request.
    ///
    /// # Errors
    /// The worker has ended.
    pub fn send(&mut self, request: &Request) -> io::Result<()> {
        send(&mut self.stdin, request)
    }

    /// The next answer.
    ///
    /// # Errors
    /// There is none yet, or the worker has ended.
    pub fn answer(&self, timeout: Duration) -> Result<Answer, RecvTimeoutError> {
        self.answers.recv_timeout(timeout)
    }

    /// Resident memory in bytes.
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.0.id()));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        kib.unwrap_or(0) << 10
    }

    /// Waits for a worker that has closed its output, and says how it ended.
    pub fn end(&mut self) -> String {
        let status = self.child.0.wait();
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let words = lock(&self.last_words);
        if words.is_empty() {
            return format!("{PROGRAM} ended ({how})");
        }
        format!("{PROGRAM} ended ({how}): {words}")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has nothing to save. One that has ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn read_answers(stdout: impl Read, sender: &Sender<Answer>) {
    for line in BufReader::new(stdout).lines().map_while(Result::ok) {
        // Libraries may print lines of their own.
        let Ok(answer) = serde_json::from_str(&line) else {
            output::complain(format_args!("{PROGRAM}: {line}"));
            continue;
        };
        if sender.send(answer).is_err() {
            return;
        }
    }
}

fn keep_last_line(stderr: impl Read, kept: &Mutex<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        output::complain(format_args!("{PROGRAM}: {line}"));
        *lock(kept) = line;
    }
}
