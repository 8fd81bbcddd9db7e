// SPDX-License-Identifier: MPL-2.0
//! Other programs, run to their end.

use std::ffi::OsStr;
use std::io::{self, IsTerminal, Read, Write};
use std::process::{Command, ExitStatus, Stdio};

/// A folder that only root writes.
const SAFE_FOLDER: &str = "/";

/// A command that runs outside the user's folder. Python imports modules such as `pip.py` from its
/// working directory, and a relative folder in `PATH` refers to it. Paths in the arguments must be
/// absolute.
pub fn command(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    command.current_dir(SAFE_FOLDER);
    command
}

/// Runs a program and returns its standard output.
///
/// # Errors
/// One line: the program is not installed, or the last line of its standard error.
pub fn output(command: &mut Command) -> Result<String, String> {
    let name = name(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| not_started(&name, &error))?;
    succeeded(&name, output.status, &output.stderr)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a program whose progress the user sees as it comes. It all goes to standard error: a closed
/// standard output would make the program fail.
///
/// # Errors
/// As [`output`].
pub fn watch(command: &mut Command) -> Result<(), String> {
    let name = name(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| not_started(&name, &error))?;
    let said = child.stderr.take().map(pass_on).unwrap_or_default();
    let status = child.wait().map_err(|error| not_started(&name, &error))?;
    succeeded(&name, status, &said)
}

/// Whether standard error is a terminal, which shows progress bars.
pub fn has_audience() -> bool {
    io::stderr().is_terminal()
}

/// Copies `from` to standard error as it arrives, and returns it.
fn pass_on(mut from: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = [0; 1024];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        // Go on if standard error is closed.
        let _ = io::stderr().write_all(&chunk[..read]);
        kept.extend_from_slice(&chunk[..read]);
    }
    kept
}

fn succeeded(name: &str, status: ExitStatus, said: &[u8]) -> Result<(), String> {
    if status.success() {
        return Ok(());
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

/// The last line that says something, errors before anything else.
fn last_line(text: &str) -> Option<String> {
    let lines = || {
        text.split(['\n', '\r'])
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    lines()
        .rfind(|line| line.to_ascii_lowercase().contains("error"))
        .or_else(|| lines().next_back())
        .map(str::to_owned)
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
        let error = watch(command("sh").args(["-c", script])).unwrap_err();
        assert_eq!(error, "sh: no network");
    }

    #[test]
    fn success_is_what_it_printed() {
        let printed = output(command("sh").args(["-c", "echo hello"])).unwrap();
        assert_eq!(printed, "hello\n");
    }
}
