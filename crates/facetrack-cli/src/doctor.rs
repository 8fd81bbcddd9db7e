// SPDX-License-Identifier: MPL-2.0
//! `facetrack doctor`: reports what is installed and what is missing, with the command that
//! installs it.

mod files;
mod finding;
mod gpu;
mod gstreamer;
mod machine;
mod selftest;

use std::process::ExitCode;

use facetrack::engine::EngineKind;
use finding::{Finding, section};

use crate::error::StoreError;
use crate::output;

type Check = fn() -> Vec<Finding>;

/// The checks before the self-test, each with its heading.
const CHECKS: [(&str, Check); 7] = [
    ("GStreamer", gstreamer::framework),
    ("Plugin", gstreamer::plugin),
    ("ONNX Runtime", files::runtime),
    ("Models", files::models),
    ("Machine", machine::hardware),
    ("GPU, for insightface only", gpu::checks),
    ("Environment", machine::environment),
];

/// Prints every check; success when the default engine can run.
///
/// # Errors
/// Returns an error if nothing can be printed.
pub(crate) fn run() -> Result<ExitCode, StoreError> {
    output::print_line(concat!("facetrack ", env!("CARGO_PKG_VERSION")))?;
    for (title, check) in CHECKS {
        output::print(section(title, &check()))?;
    }
    let engines = selftest::engines();
    let runs = engines
        .iter()
        .any(|(kind, finding)| *kind == EngineKind::default() && !finding.is_bad());
    let findings: Vec<_> = engines.into_iter().map(|(_, finding)| finding).collect();
    output::print(section("Self-test, one frame", &findings))?;
    Ok(if runs {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
