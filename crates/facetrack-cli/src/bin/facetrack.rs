// SPDX-License-Identifier: MPL-2.0
//! The program `facetrack`.

use std::process::ExitCode;

fn main() -> ExitCode {
    facetrack_cli::main()
}
