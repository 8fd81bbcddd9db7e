// SPDX-License-Identifier: MPL-2.0
//! Small copies of videos for browsers, which the worker writes.

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use facetrack_assets::file::{self, is_same};
use facetrack_assets::replacement::Replacement;
use facetrack_jobs::{PROXY, PROXY_MARK};

use crate::error::{StoreError, check_room};
use crate::run::worker;
use crate::{output, program, table};

/// End of the names of copies, which follows the name of the page.
const SUFFIX: &str = "-proxy.webm";

/// Beginning of WebM files (EBML, RFC 8794).
const START: &[u8] = &[0x1a, 0x45, 0xdf, 0xa3];

/// The id of the writing application (WritingApp, RFC 9559). A byte with the length of the text
/// follows, which may include zeros at the end.
const WRITING_APP: [u8; 2] = [0x57, 0x41];
const LENGTH: usize = 1;

/// Bytes at the beginning of a copy that have the writing application. Our choice: it is in the first
/// 300.
const HEAD: u64 = 4096;

/// Reason why a copy is neither tracked nor copied.
pub(crate) const COPY: &str = "it is a copy that `facetrack view --proxy` wrote. Name the video";

/// Returns true if a file is such a copy.
pub(crate) fn is_copy(path: &Path) -> bool {
    file::open(path).is_ok_and(has_mark)
}

fn has_mark(file: File) -> bool {
    let mut head = Vec::new();
    if file.take(HEAD).read_to_end(&mut head).is_err() {
        return false;
    }
    let mark = PROXY_MARK.as_bytes();
    let mut parts = head.windows(WRITING_APP.len() + LENGTH + mark.len());
    let is_marked = |part: &[u8]| part.starts_with(&WRITING_APP) && part.ends_with(mark);
    head.starts_with(START) && parts.any(is_marked)
}

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
    if is_copy(video) {
        return Err(at(COPY.to_owned()).into());
    }
    if is_same(video, &copy) || !table::may_replace(&copy, has_mark) {
        return Err(format!(
            "{}: it exists, and is no copy of facetrack view. Name another page with --out",
            copy.display()
        )
        .into());
    }
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

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The beginning of a WebM file of this writing application.
    pub(crate) fn webm(application: &str) -> Vec<u8> {
        // The muxer of GStreamer ends texts with a zero.
        let length = [0x80 | (application.len() as u8 + 1)];
        [
            START,
            &[0; 200],
            &WRITING_APP,
            &length,
            application.as_bytes(),
            &[0; 9],
        ]
        .concat()
    }

    #[test]
    fn only_copies_are_replaced_and_none_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let [video, page, copy] =
            ["clip.webm", "clip.html", "clip-proxy.webm"].map(|name| folder.path().join(name));
        fs::write(&video, webm("Lavf")).unwrap();
        let other = "clip-proxy.webm: it exists, and is no copy of facetrack view. Name another page with --out";
        for content in [
            webm("Lavf"),
            webm("facetrack view"),
            START.into(),
            b"my notes".into(),
        ] {
            fs::write(&copy, &content).unwrap();
            let error = write(&video, &page).unwrap_err().to_string();
            assert!(error.ends_with(other), "{error}");
            assert_eq!(fs::read(&copy).unwrap(), content);
        }
        let error = write(&copy, &page).unwrap_err().to_string();
        assert!(error.ends_with(other), "{error}");
        fs::write(&video, webm(PROXY_MARK)).unwrap();
        let error = write(&video, &page).unwrap_err().to_string();
        assert!(error.ends_with(COPY), "{error}");
    }
}
