// SPDX-License-Identifier: MPL-2.0
//! `facetrack doctor`: reports what is installed and what is missing, with the command that installs it.

mod files;
mod finding;
mod gpu;
mod gstreamer;
mod machine;
mod selftest;

use std::process::ExitCode;

use facetrack::engine::EngineKind;
use finding::Section;

use crate::error::StoreError;
use crate::output;

/// Prints every check; success when the default engine can run.
///
/// # Errors
/// When nothing can be printed.
pub fn run() -> Result<ExitCode, StoreError> {
    output::print_line(concat!("facetrack ", env!("CARGO_PKG_VERSION")))?;
    for check in [
        gstreamer::framework,
        gstreamer::plugin,
        files::runtime,
        files::models,
        machine::hardware,
        gpu::checks,
        machine::environment,
    ] {
        output::print(check())?;
    }
    let engines = selftest::engines();
    let runs = engines
        .iter()
        .any(|(kind, finding)| *kind == EngineKind::default() && !finding.is_bad());
    let findings = engines.into_iter().map(|(_, finding)| finding).collect();
    output::print(Section::new("Self-test, one frame", findings))?;
    Ok(if runs {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
