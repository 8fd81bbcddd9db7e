// SPDX-License-Identifier: MPL-2.0
//! Downloads files of Debian packages with `apt-get download`, as an ordinary user. Nothing is
//! installed, and no script of a package runs.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use facetrack_assets::manifest::DebianName;

use crate::{places, program};

const APT: &str = "apt-get";

/// Seconds without an answer before the network counts as absent.
const TIMEOUT: &str = "-oAcquire::http::Timeout=20";

/// An update that did not reach the archive is a failure, not a warning.
const STRICT: &str = "-oAPT::Update::Error-Mode=any";

/// Remedy for missing package lists.
const REMEDY: &str = "sudo apt-get update";

/// Unpacks a Debian `package` under `scratch`; yields the folder that stands for the root.
///
/// # Errors
/// Returns a line with the reason and the remedy.
pub(crate) fn unpack(package: &DebianName, scratch: &Path) -> Result<PathBuf, String> {
    program::output(program::command(APT).arg("--version"))
        .map_err(|error| format!("{error}: this source needs Debian or a derivative"))?;
    let tree = scratch.join("tree");
    let archive = download(package, scratch)?;
    program::output(
        program::command("dpkg-deb")
            .arg("--extract")
            .arg(&archive)
            .arg(&tree),
    )?;
    Ok(tree)
}

/// Downloads the archive of `package`: with the machine's package lists, and where these are
/// missing or out of date with lists of its own.
fn download(package: &DebianName, scratch: &Path) -> Result<PathBuf, String> {
    let into = folder(scratch, "archives")?;
    if get(&[], package, &into).is_err() {
        let own = own_lists(scratch)?;
        let updated = program::output(apt(&own).args([STRICT, "update"]));
        get(&own, package, &into)
            .map_err(|later| format!("{} ({REMEDY})", updated.err().unwrap_or(later)))?;
    }
    places::only_file(&into).ok_or_else(|| format!("{APT} downloaded no archive of {package}"))
}

fn get(options: &[OsString], package: &DebianName, into: &Path) -> Result<String, String> {
    program::output(
        apt(options)
            .args(["download", &**package])
            .current_dir(into),
    )
}

fn apt(options: &[OsString]) -> Command {
    let mut command = program::command(APT);
    command.args(["--quiet", TIMEOUT]).args(options);
    command
}

/// Options for package lists under `scratch`, which any user may write.
fn own_lists(scratch: &Path) -> Result<Vec<OsString>, String> {
    // It makes the folders of its cache, not this one.
    folder(scratch, "lists/partial")?;
    Ok(vec![
        option("Dir::State::Lists", &scratch.join("lists")),
        option("Dir::Cache", &folder(scratch, "cache")?),
    ])
}

fn option(name: &str, folder: &Path) -> OsString {
    let mut option = OsString::from(format!("-o{name}="));
    option.push(folder);
    option
}

fn folder(parent: &Path, name: &str) -> Result<PathBuf, String> {
    let path = parent.join(name);
    fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}
