// SPDX-License-Identifier: MPL-2.0
//! Other programs, run to their end.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use crate::pipe;

/// A folder that only root writes.
const SAFE_FOLDER: &str = "/";

/// Maximum size of a file that a program writes whose size is not known before, bytes. Our choice:
/// three times the largest archive.
pub(crate) const MAX_FILE: u64 = 1 << 30;

/// Bytes of the output of a program that are kept. Our choice: the longest, of `gst-inspect-1.0`, has
/// some kB.
const MAX_OUTPUT: usize = 1 << 20;

/// A command that runs outside the user's folder. Python imports modules such as `pip.py` from its
/// working directory, and a relative folder in `PATH` refers to it. Paths in the arguments must be
/// absolute.
pub(crate) fn command(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(SAFE_FOLDER);
    command
}

/// Runs a program and returns its standard output.
///
/// # Errors
/// Returns a line that says that the program is not installed, or the last line of its standard
/// error.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = name(command);
    command.stdout(Stdio::piped());
    let mut child = start(command, MAX_FILE)?;
    let printed = child.stdout.take();
    let printed = printed.map(|from| thread::spawn(move || kept(from, &mut io::sink())));
    let said = child.stderr.take().map(|from| kept(from, &mut io::sink()));
    let status = child.wait().map_err(|error| not_started(&name, &error))?;
    succeeded(&name, status, &said.unwrap_or_default())?;
    let printed = printed.and_then(|reader| reader.join().ok());
    Ok(String::from_utf8_lossy(&printed.unwrap_or_default()).into_owned())
}

/// Starts a program that writes no file of more than `size` bytes.
fn start(command: &mut Command, size: u64) -> Result<Child, String> {
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|error| not_started(&name(command), &error))?;
    #[cfg(target_os = "linux")]
    limit_files(&child, size);
    Ok(child)
}

#[cfg(target_os = "linux")]
fn limit_files(child: &Child, size: u64) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let limit = Rlimit {
        current: Some(size),
        maximum: Some(size),
    };
    // It may have ended.
    let _ = pid.map(|pid| prlimit(Some(pid), Resource::Fsize, limit));
}

/// Runs a program whose progress the user sees as it comes. It all goes to standard error: a closed
/// standard output would make the program fail. It is ended when a file has more than `size` bytes.
///
/// # Errors
/// Returns the errors of [`output`].
pub(crate) fn watch(command: &mut Command, size: u64) -> Result<(), String> {
    let name = name(command);
    let mut child = start(command.stdout(io::stderr()), size)?;
    let said = child.stderr.take();
    let said = said.map(|from| kept(from, &mut io::stderr()));
    let said = said.unwrap_or_default();
    let status = child.wait().map_err(|error| not_started(&name, &error))?;
    succeeded(&name, status, &said)
}

/// Returns true if standard error is a terminal, which shows progress bars.
pub(crate) fn has_audience() -> bool {
    io::stderr().is_terminal()
}

/// Copies `from` to `to` as it arrives, and returns the last [`MAX_OUTPUT`] bytes or more.
fn kept(mut from: impl Read, to: &mut impl Write) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = [0; 1024];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        // Go on if standard error is closed.
        let _ = to.write_all(&chunk[..read]);
        kept.extend_from_slice(&chunk[..read]);
        if kept.len() > 2 * MAX_OUTPUT {
            kept.drain(..MAX_OUTPUT);
        }
    }
    kept
}

fn succeeded(name: &str, status: ExitStatus, said: &[u8]) -> Result<(), String> {
    if status.success() {
        return Ok(());
    }
    if status.signal() == Some(libc::SIGXFSZ) {
        return Err(format!("{name}: the file is larger than expected"));
    }
    match last_line(&String::from_utf8_lossy(said)) {
        Some(line) if line.starts_with(name) => Err(line),
        Some(line) => Err(format!("{name}: {line}")),
        None => Err(format!("{name}: {status}")),
    }
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn not_started(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{name} is not installed"),
        _ => format!("{name}: {error}"),
    }
}

/// Text of pip's warnings about a connection. Its last error then says only that it found no package.
pub(crate) const BROKEN_CONNECTION: &str = "after connection broken by";

/// Returns the last line that is not empty; lines with errors take precedence, and of these the ones
/// about connections.
fn last_line(text: &str) -> Option<String> {
    let lines = || {
        text.split(['\n', '\r'])
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    lines()
        .rfind(|line| line.contains(BROKEN_CONNECTION))
        .or_else(|| lines().rfind(|line| line.to_ascii_lowercase().contains("error")))
        .or_else(|| lines().next_back())
        .map(|line| pipe::shortened(line.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named() {
        let error = output(&mut command("no-such-program-at-all")).unwrap_err();
        assert_eq!(error, "no-such-program-at-all is not installed");
    }

    #[test]
    fn a_failure_is_its_last_error_line() {
        let script = "echo WARNING: retrying >&2; echo ERROR: no network >&2; echo bye >&2; exit 3";
        let error = output(command("sh").args(["-c", script])).unwrap_err();
        assert_eq!(error, "sh: ERROR: no network");
    }

    #[test]
    fn a_silent_failure_is_its_status() {
        let error = output(command("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error, "sh: exit status: 3");
    }

    #[test]
    fn a_line_that_names_the_program_is_not_prefixed() {
        let script = "printf '### 10%%\\r#### 20%%\\r\\nsh: no network\\n' >&2; exit 6";
        let error = watch(command("sh").args(["-c", script]), 0).unwrap_err();
        assert_eq!(error, "sh: no network");
    }

    #[test]
    fn success_is_what_it_printed() {
        let printed = output(command("sh").args(["-c", "echo hello"])).unwrap();
        assert_eq!(printed, "hello\n");
    }

    #[test]
    fn a_file_without_an_end_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let script = format!("exec cat /dev/zero >'{}'", file.display());
        // The limit is set when the program has started: it may have written more by then.
        let error = watch(command("sh").args(["-c", &script]), 2000).unwrap_err();
        assert_eq!(error, "sh: the file is larger than expected");
    }

    #[test]
    fn output_without_an_end_is_not_kept() {
        let script = "head -c 10000000 /dev/zero; head -c 10000000 /dev/zero >&2";
        let printed = output(command("sh").args(["-c", script])).unwrap();
        assert!(printed.len() <= 2 * MAX_OUTPUT, "{}", printed.len());
    }
}
