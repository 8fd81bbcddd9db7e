// SPDX-License-Identifier: MPL-2.0
//! The command, and the files that it leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value as Json;

use crate::common::engine::installed_paths;
use crate::common::tool::{built, without_variables};

/// Prefixes of the schedulers' variables that the command reads.
const SCHEDULERS: [&str; 3] = ["SLURM_", "JOB_", "HQ_"];

/// The engine of tests that need no model.
pub const SCRIPTED: &str = "--engine scripted";

/// `facetrack run` with arguments that blanks separate, in a folder.
pub fn run(folder: &Path, line: &str) -> Run {
    command(folder, "run", line)
}

/// A command of `facetrack` with arguments that blanks separate, in a folder.
pub fn command(folder: &Path, name: &str, line: &str) -> Run {
    run_program(&built("facetrack"), folder, name, line)
}

/// `facetrack run` with a worker that is a shell script. In it, `$WORKER` is the real one.
pub fn run_with_worker(script: &str, folder: &Path, line: &str) -> Run {
    command_with_worker(script, folder, "run", line)
}

/// A command with a worker that is a shell script.
pub fn command_with_worker(script: &str, folder: &Path, name: &str, line: &str) -> Run {
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let (program, worker) = (bin.join("facetrack"), bin.join("facetrack-worker"));
    fs::copy(built("facetrack"), &program).expect("room");
    fs::write(&worker, format!("#!/bin/sh\n{script}\n")).expect("room");
    fs::set_permissions(&worker, fs::Permissions::from_mode(0o755)).expect("our own");
    let real = built("facetrack-worker").display().to_string();
    run_program(&program, folder, name, line).env("WORKER", &real)
}

fn run_program(program: &Path, folder: &Path, name: &str, line: &str) -> Run {
    let mut command = without_variables(program, &SCHEDULERS);
    // The folder that the tests themselves find models in.
    let paths = installed_paths();
    let models = [("FACETRACK_MODELS_DIR", paths.collection)];
    for (name, path) in models {
        command.envs(path.map(|path| (name, path)));
    }
    // Built, so that a failure is not a missing program.
    built("facetrack-worker");
    // A worker ends if it misuses GStreamer.
    command.env("G_DEBUG", "fatal-criticals");
    command.current_dir(folder).arg(name);
    command.args(line.split_whitespace());
    Run(command)
}

/// A command to run.
pub struct Run(Command);

impl Run {
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    /// One argument.
    pub fn arg(mut self, argument: &str) -> Self {
        self.0.arg(argument);
        self
    }

    /// Runs it to its end.
    pub fn finish(mut self) -> Ended {
        self.0.stdin(Stdio::null());
        self.0.output().expect("it starts").into()
    }

    /// Runs it with strace, which kills it before the call number `count` of these on one of the
    /// paths. Returns its exit status.
    pub fn killed_at(self, calls: &str, count: u32, paths: &[PathBuf]) -> Option<i32> {
        let mut traced = Command::new("strace");
        traced.args(["-f", "--quiet=all", "-o", "/dev/null"]);
        for path in paths {
            traced.arg("-P").arg(path);
        }
        traced.arg(format!("--trace={calls}"));
        traced.arg(format!("--inject={calls}:signal=KILL:when={count}"));
        traced.arg(self.0.get_program()).args(self.0.get_args());
        for (name, value) in self.0.get_envs() {
            match value {
                Some(value) => traced.env(name, value),
                None => traced.env_remove(name),
            };
        }
        let folder = self.0.get_current_dir().expect("a folder");
        let output = traced.current_dir(folder).stdin(Stdio::null()).output();
        output.expect("strace runs").status.code()
    }

    pub fn start(self) -> Child {
        self.start_with(Stdio::piped())
    }

    /// Starts it with this standard output.
    pub fn start_with(mut self, output: Stdio) -> Child {
        let quiet = self.0.stdin(Stdio::null()).stderr(Stdio::null());
        quiet.stdout(output).spawn().expect("it starts")
    }

    /// Runs it, and checks its exit status.
    #[track_caller]
    pub fn exits(self, code: i32) -> String {
        let Ended { code: found, text } = self.finish();
        assert_eq!(found, Some(code), "{text}");
        text
    }
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    /// Standard output, then standard error.
    pub text: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let texts = [output.stdout, output.stderr];
        Self {
            code: output.status.code(),
            text: texts
                .map(|text| String::from_utf8_lossy(&text).into_owned())
                .concat(),
        }
    }
}

/// The status file of a record.
#[track_caller]
pub fn marker(record: &Path) -> Json {
    let path = format!("{}.done", record.display());
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_slice(&text).expect("JSON")
}

/// The status in the status file of a record.
#[track_caller]
pub fn status(record: &Path) -> String {
    let marker = marker(record);
    marker["status"].as_str().expect("a word").to_owned()
}

/// A finished record.
#[track_caller]
pub fn record(path: &Path) -> Json {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).expect("JSON")
}

/// All files below a folder, by their path in it.
pub fn files(folder: &Path) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("below it");
                files.push(name.display().to_string());
            }
        }
    }
    files.sort();
    files
}

/// Processes that a process has started.
pub fn children(process: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten();
    let paths = tasks.flatten().map(|task| task.path().join("children"));
    let texts = paths.filter_map(|path: PathBuf| fs::read_to_string(path).ok());
    let numbers = texts.collect::<Vec<_>>().join(" ");
    numbers
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// Sends a signal.
pub fn signal(name: &str, process: u32) {
    // The process may have ended.
    let _ = Command::new("kill")
        .args([&format!("-{name}"), &process.to_string()])
        .stderr(Stdio::null())
        .status();
}
