// SPDX-License-Identifier: MPL-2.0
//! `facetrack-setup doctor`: what is installed, what is missing, and the command that mends it.

mod files;
mod finding;
mod gpu;
mod gstreamer;
mod machine;
mod selftest;

use std::process::ExitCode;

use finding::Section;
use gstfacetrack::face::engine::EngineKind;

/// Prints every check; success when the engine `mediapipe` can run.
pub fn run() -> ExitCode {
    println!("facetrack {}", env!("CARGO_PKG_VERSION"));
    for check in [
        gstreamer::framework,
        gstreamer::plugin,
        files::runtime,
        files::models,
        machine::hardware,
        gpu::checks,
        machine::environment,
    ] {
        print!("{}", check());
    }
    let engines = selftest::engines();
    let runs = engines
        .iter()
        .any(|(kind, finding)| *kind == EngineKind::MediaPipe && !finding.is_bad());
    let findings = engines.into_iter().map(|(_, finding)| finding).collect();
    print!("{}", Section::new("Self-test, one frame", findings));
    if runs {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
