// SPDX-License-Identifier: MPL-2.0
//! `facetrack-setup doctor`: what is installed, what is missing, and the command that mends it.

mod files;
mod finding;
mod gstreamer;
mod machine;

use std::process::ExitCode;

/// Prints every check; success when the engine `mediapipe` can run.
pub fn run() -> ExitCode {
    println!("facetrack {}", env!("CARGO_PKG_VERSION"));
    for check in [
        gstreamer::framework,
        gstreamer::plugin,
        files::runtime,
        files::models,
        machine::hardware,
        machine::environment,
    ] {
        print!("{}", check());
    }
    ExitCode::SUCCESS
}
