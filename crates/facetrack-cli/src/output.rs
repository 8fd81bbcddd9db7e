// SPDX-License-Identifier: MPL-2.0
//! Standard output and standard error, which may be closed at any time:
//! `facetrack doctor | head -n 1`.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use facetrack::printable::{Line, Lines};

use crate::error::StoreError;

const STANDARD_OUTPUT: &str = "standard output";

/// Prints lines to standard output, without other control characters. A closed pipe is not an error.
///
/// # Errors
/// Returns an error if the text can't be written, as to a full disk.
pub(crate) fn print(text: impl Display) -> Result<(), StoreError> {
    print_exactly(Lines(text))
}

/// Prints a text for another program to standard output. A closed pipe is not an error.
///
/// # Errors
/// Returns the errors of [`print()`].
pub(crate) fn print_exactly(text: impl Display) -> Result<(), StoreError> {
    match write(&text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(StoreError::at(Path::new(STANDARD_OUTPUT))),
    }
}

/// Prints a line to standard output for another program.
///
/// # Errors
/// Returns an error like [`print()`], or if that program has ended.
pub(crate) fn send_line(text: impl Display) -> Result<(), StoreError> {
    write(&format_args!("{text}\n")).map_err(StoreError::at(Path::new(STANDARD_OUTPUT)))
}

fn write(text: &impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "{text}")?;
    out.flush()
}

/// Prints a single line to standard output, as [`print()`] does.
///
/// # Errors
/// Returns the errors of [`print()`].
pub(crate) fn print_line(text: impl Display) -> Result<(), StoreError> {
    print_exactly(format_args!("{}\n", Line(text)))
}

/// Prints a single line to standard error, the last place for a message.
pub(crate) fn complain(text: impl Display) {
    let _ = writeln!(io::stderr(), "{}", Line(text));
}

/// Prints what a command left out. Returns its exit code.
pub(crate) fn left_out(command: &str, complaints: &[String]) -> ExitCode {
    for complaint in complaints {
        complain(format_args!("facetrack {command}: left out: {complaint}"));
    }
    if complaints.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// A number of things in words.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}
