// SPDX-License-Identifier: MPL-2.0
//! The program `facetrack-preview`.

use std::process::ExitCode;

fn main() -> ExitCode {
    facetrack_preview::run()
}
