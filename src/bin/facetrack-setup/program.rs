// SPDX-License-Identifier: MPL-2.0
//! Other programs, run to their end.

use std::io;
use std::process::{Command, Stdio};

/// What a program printed to its standard output.
///
/// # Errors
/// One line: that it is not there, or what it last said on its standard error.
pub fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| not_started(&name, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = last_line(&String::from_utf8_lossy(&output.stderr))
        .unwrap_or_else(|| output.status.to_string());
    Err(format!("{name}: {said}"))
}

fn not_started(name: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{name} is not installed"),
        _ => format!("{name}: {error}"),
    }
}

/// The last line that says something, errors before anything else.
fn last_line(text: &str) -> Option<String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
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
        let error = output(&mut Command::new("no-such-program-at-all")).unwrap_err();
        assert_eq!(error, "no-such-program-at-all is not installed");
    }

    #[test]
    fn a_failure_is_its_last_error_line() {
        let script = "echo WARNING: retrying >&2; echo ERROR: no network >&2; echo bye >&2; exit 3";
        let error = output(Command::new("sh").args(["-c", script])).unwrap_err();
        assert_eq!(error, "sh: ERROR: no network");
    }

    #[test]
    fn a_silent_failure_is_its_status() {
        let error = output(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error, "sh: exit status: 3");
    }

    #[test]
    fn success_is_what_it_printed() {
        let printed = output(Command::new("sh").args(["-c", "echo hello"])).unwrap();
        assert_eq!(printed, "hello\n");
    }
}
