// SPDX-License-Identifier: MPL-2.0
//! The names of everything that belongs to a video, all derived from the path of its record. No
//! other module derives one.
//!
//! `<record>.done` is its status file. Everything unfinished is in the folder `<record>.parts`: the
//! lock of the run that tracks it, the next record with its status file, and the segments of a long
//! video. A folder of that name without a lock belongs to another program, unless it is empty.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use facetrack_assets::file::with_suffix;

/// Suffix of a status file. `*.json` does not match it.
const DONE: &str = ".done";

/// Suffix of a folder for unfinished files.
const PARTS: &str = ".parts";

/// The end of the name of such a folder.
pub(crate) const FOLDER: &str = ".json.parts";

const CLAIM: &str = "claim";

const NEXT: &str = "record.json";

/// Suffixes that `trackjsonsink` and status files add to the name of a record under way.
const SUFFIXES: [&str; 6] = [
    "",
    ".partial",
    ".partial.old",
    ".partial.new",
    ".done",
    ".done.partial",
];

/// Maximum length of a name, as on all file systems of Linux.
const MAX_NAME: usize = 255;

/// The status file of a record.
pub(crate) fn status_file(record: &Path) -> PathBuf {
    with_suffix(record, DONE)
}

/// The folder for everything unfinished.
pub(crate) fn folder(record: &Path) -> PathBuf {
    with_suffix(record, PARTS)
}

/// The file that a run locks while it tracks the video.
pub(crate) fn lock_file(record: &Path) -> PathBuf {
    folder(record).join(CLAIM)
}

/// Path to which the next record is written. It has a status file, too.
pub(crate) fn next(record: &Path) -> PathBuf {
    folder(record).join(NEXT)
}

/// The record of a segment, from 0.
pub(crate) fn segment(record: &Path, number: usize) -> PathBuf {
    folder(record).join(format!("{:05}.json", number + 1))
}

/// The record and the names derived from it.
pub(crate) fn all(record: &Path) -> [PathBuf; 3] {
    [record.to_owned(), status_file(record), folder(record)]
}

/// Checks that a record can have this name.
pub(crate) fn check_length(record: &Path) -> Result<(), String> {
    let longest = folder(record);
    let length = longest.file_name().map_or(0, |name| name.len());
    if length <= MAX_NAME {
        return Ok(());
    }
    let excess = length - MAX_NAME;
    Err(format!(
        "its name is too long for a record by {excess} bytes. List it with a shorter id"
    ))
}

/// Finds a file of another program at one of the names, which must not be replaced.
pub(crate) fn obstacle(record: &Path) -> Option<String> {
    let mut files = [record.to_owned(), status_file(record)].into_iter();
    if let Some(other) = files.find(|path| is_other(path)) {
        return Some(in_the_way(&other, "is not a regular file"));
    }
    let folder = folder(record);
    let found = is_own(record).and_then(|is_own| match is_own {
        true => Ok(intruder(&folder)?.map(|path| in_the_way(&path, "is not a regular file"))),
        false => Ok(Some(in_the_way(&folder, "is not from `facetrack run`"))),
    });
    found.unwrap_or_else(|error| Some(format!("{}: {error}", folder.display())))
}

/// Finds an entry of the folder that has the name of a file of this command but is from another
/// program.
fn intruder(folder: &Path) -> io::Result<Option<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if is_absent(&error) => return Ok(None),
        entries => entries?,
    };
    let paths: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.path())).collect();
    let has_own_name = |path: &Path| path.file_name()?.to_str().map(is_named);
    let is_intruder = |path: &PathBuf| has_own_name(path) == Some(true) && is_other(path);
    Ok(paths?.into_iter().find(is_intruder))
}

/// Returns a message about an entry that has the name of a file of this command.
pub(crate) fn in_the_way(path: &Path, reason: impl std::fmt::Display) -> String {
    format!("{} {reason}. Move it away", path.display())
}

/// Returns true if the folder is from this command, is empty or does not exist.
fn is_own(record: &Path) -> io::Result<bool> {
    let folder = folder(record);
    match fs::symlink_metadata(&folder) {
        Err(error) if is_absent(&error) => return Ok(true),
        Err(error) => return Err(error),
        Ok(found) if !found.is_dir() => return Ok(false),
        Ok(_) => (),
    }
    let is_empty = fs::read_dir(&folder)?.next().is_none();
    Ok(is_empty || is_file(&lock_file(record)))
}

/// Returns true if a run has begun to track the video of `record`.
pub(crate) fn is_begun(record: &Path) -> bool {
    is_file(&lock_file(record)) && fs::symlink_metadata(folder(record)).is_ok_and(|it| it.is_dir())
}

/// Returns true if the error says that nothing exists at the path.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    use ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

/// Returns true if something other than a file is at the path.
fn is_other(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| !found.is_file())
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// Removes the files in the folder that are named here, but the lock.
///
/// # Errors
/// Returns the error of the system.
pub(crate) fn clear(record: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder(record))? {
        let entry = entry?;
        let is_named = entry.file_name().to_str().is_some_and(is_named);
        if is_named && !entry.file_type()?.is_dir() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes the folder if nothing but the lock is in it.
///
/// # Errors
/// Returns the error of the system.
pub(crate) fn remove_empty(record: &Path) -> io::Result<()> {
    let folder = folder(record);
    for entry in fs::read_dir(&folder)? {
        if entry?.file_name() != CLAIM {
            return Ok(());
        }
    }
    facetrack_assets::file::remove_if_there(&lock_file(record))?;
    match fs::remove_dir(&folder) {
        // Another run has locked the video.
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(()),
        removed => removed,
    }
}

/// Returns true if a file in the folder can be from this command.
fn is_named(name: &str) -> bool {
    let is_number = |base: &str| base.len() >= 5 && base.bytes().all(|it| it.is_ascii_digit());
    let mut bases = SUFFIXES.iter().filter_map(|it| name.strip_suffix(it));
    bases.any(|base| base == NEXT || base.strip_suffix(".json").is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_files_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let record = root.path().join("a.json");
        assert_eq!(obstacle(&record), None);
        fs::create_dir(folder(&record)).unwrap();
        assert_eq!(obstacle(&record), None);
        fs::write(folder(&record).join("00001.json"), "").unwrap();
        assert!(obstacle(&record).unwrap().contains("Move it away"));
        fs::write(lock_file(&record), "").unwrap();
        assert_eq!(obstacle(&record), None);
        for name in ["record.json", "record.json.done", "00002.json.partial"] {
            let path = folder(&record).join(name);
            fs::create_dir(&path).unwrap();
            let reason = format!("{} is not a regular file", path.display());
            assert!(obstacle(&record).unwrap().contains(&reason));
            fs::remove_dir(path).unwrap();
        }
        for name in ["x.mp4", "record.json.partial.old", "00012.json.done"] {
            fs::write(folder(&record).join(name), "").unwrap();
        }
        clear(&record).unwrap();
        remove_empty(&record).unwrap();
        let left = fs::read_dir(folder(&record)).unwrap();
        let mut left: Vec<_> = left.map(|it| it.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["claim", "x.mp4"]);
        fs::remove_file(folder(&record).join("x.mp4")).unwrap();
        remove_empty(&record).unwrap();
        assert!(!folder(&record).exists());
        for path in all(&record) {
            std::os::unix::fs::symlink("nowhere", &path).unwrap();
            assert!(obstacle(&record).unwrap().contains("Move it away"));
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn names_have_a_limit() {
        let record = |length| PathBuf::from("x".repeat(length) + ".json");
        assert_eq!(check_length(&record(244)), Ok(()));
        assert!(check_length(&record(245)).unwrap_err().contains("1 bytes"));
    }
}
