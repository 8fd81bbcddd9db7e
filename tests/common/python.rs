// SPDX-License-Identifier: MPL-2.0
//! Python with GStreamer's own bindings.

use super::tool::Tool;
use super::{file, skip_for_want_of};

/// Debian's own interpreter. Only this one finds Debian's modules.
pub const PYTHON: &str = "/usr/bin/python3";

/// A script, which takes arguments.
pub fn script(text: &str) -> Tool {
    Tool::new(PYTHON).arg("-c").arg(text)
}

/// A program of the repository, which takes arguments.
pub fn program(path: &str) -> Tool {
    Tool::new(PYTHON).arg(&file(path).to_string_lossy())
}

/// Returns true if the bindings of a library are installed; otherwise prints that `package` has
/// them.
#[track_caller]
pub fn has_bindings(library: &str, package: &str) -> bool {
    let import = format!(
        "import gi; gi.require_version('{library}', '1.0'); from gi.repository import {library}"
    );
    let there = script(&import).run().success;
    if !there {
        skip_for_want_of(&format!("{library} for Python"), package);
    }
    there
}
