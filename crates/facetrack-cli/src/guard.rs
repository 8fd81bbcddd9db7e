// SPDX-License-Identifier: MPL-2.0
//! `facetrack guard`, which `facetrack run` calls: runs a command of the user, and leaves none of
//! its programs running. When the command ends, or when the calling process ends and so closes
//! standard input, all programs that the command has started are ended, also those in other
//! sessions.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::process::{self, Command, ExitCode, ExitStatus, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, setsid, wait};

use crate::output;

/// The argument that makes this program a guard.
pub(crate) const NAME: &str = "guard";

/// Exit status for a command that cannot be started, as in shells.
const NOT_STARTED: u8 = 127;

/// Added to the number of a signal for an exit status, as in shells.
const SIGNALLED: i32 = 128;

/// Runs a command to its end.
pub(crate) fn run(command: &[OsString]) -> ExitCode {
    // Without a terminal, programs fail instead of waiting for an answer. Ctrl-C goes to
    // `facetrack run`, which ends this program. The call fails if a user starts this program, which
    // then leads a group.
    let _ = setsid();
    #[cfg(target_os = "linux")]
    // Orphans become children of this process. Without it, only its own children are ended.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    match run_to_end(command) {
        Ok(status) => status,
        Err(error) => {
            output::complain(error);
            NOT_STARTED.into()
        }
    }
}

fn run_to_end(command: &[OsString]) -> io::Result<ExitCode> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .spawn()?;
    thread::spawn(|| {
        end_with_input(io::stdin());
        end_children();
        process::exit(NOT_STARTED.into());
    });
    let status = child.wait();
    end_children();
    Ok(code(status?))
}

/// Returns when `input` ends.
fn end_with_input(mut input: impl Read) {
    while input.read(&mut [0]).is_ok_and(|count| count > 0) {}
}

fn code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let signalled = || status.signal().unwrap_or_default() + SIGNALLED;
    let code = status.code().unwrap_or_else(signalled);
    code.try_into().unwrap_or(u8::MAX).into()
}

/// Ends all children, and the children that they leave.
fn end_children() {
    loop {
        let children = children();
        if children.is_empty() {
            return;
        }
        for child in children {
            // It may have ended.
            let _ = kill_process(child, Signal::KILL);
        }
        // Another thread may have seen its end.
        let _ = wait(WaitOptions::empty());
    }
}

fn children() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = threads.flatten().map(|it| it.path().join("children"));
    let lists = lists.filter_map(|list| fs::read_to_string(list).ok());
    let lists: String = lists.collect();
    let numbers = lists.split_whitespace();
    numbers
        .filter_map(|number| Pid::from_raw(number.parse().ok()?))
        .collect()
}
