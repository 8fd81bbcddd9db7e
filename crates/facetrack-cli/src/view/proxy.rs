// SPDX-License-Identifier: MPL-2.0
//! Small copies of videos for browsers, which the worker writes.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use facetrack_assets::file::is_same;
use facetrack_assets::replacement::Replacement;
use facetrack_jobs::PROXY;

use crate::error::{StoreError, check_room};
use crate::run::worker;
use crate::{output, program, table};

/// End of the names of copies, which follows the name of the page.
const SUFFIX: &str = "-proxy.webm";

/// Beginning of WebM files (EBML, RFC 8794).
const START: [u8; 4] = [0x1a, 0x45, 0xdf, 0xa3];

/// Bytes that a disk with less room for a copy lacks. Our choice: the worker writes less at once.
const ROOM: u64 = 1 << 20;

/// Writes a copy of `video` next to `page`, and returns its path.
///
/// # Errors
/// Returns an error if the video cannot be played, or the copy would replace another file.
pub(crate) fn write(video: &Path, page: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let mut name = page.file_stem().unwrap_or_default().to_owned();
    name.push(SUFFIX);
    let copy = page.with_file_name(name);
    let at = |reason: String| format!("{}: {reason}", video.display());
    if is_same(video, &copy) {
        return Err(at("it is the copy itself. Name the video".to_owned()).into());
    }
    table::check_start(&copy, &START, "WebM video")?;
    let source = fs::canonicalize(video).map_err(|error| at(error.to_string()))?;
    output::print_line(format_args!("Writing {} …", copy.display()))?;
    let replacement = Replacement::begin(&copy).map_err(StoreError::at(&copy))?;
    let mut command = program::command(worker::program());
    let file = replacement.file().map_err(StoreError::at(&copy))?;
    command.arg(PROXY).arg(source).stdout(file);
    let ended = command
        .output()
        .map_err(|error| worker::not_started(&error))?;
    if !ended.status.success() {
        let folder = copy.parent().filter(|it| !it.as_os_str().is_empty());
        check_room(folder.unwrap_or(Path::new(".")), ROOM)?;
        let said = String::from_utf8_lossy(&ended.stderr);
        let reason = said.lines().last().unwrap_or("the worker died");
        return Err(at(format!("it cannot be copied: {reason}")).into());
    }
    replacement.finish().map_err(StoreError::at(&copy))?;
    Ok(copy)
}
