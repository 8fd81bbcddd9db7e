// SPDX-License-Identifier: MPL-2.0
//! Files that are replaced only when the new ones are complete.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use facetrack::file::{self, sync_folder, target};
use tempfile::NamedTempFile;

use crate::error::StoreError;

/// Permissions of a new file, before the umask.
const MODE: u32 = 0o666;

/// Whether both paths lead to the same file.
pub fn is_same(a: &Path, b: &Path) -> bool {
    target(a) == target(b)
}

/// Only a file that begins with `start`, as an earlier `kind` does, is replaced, or an empty one.
///
/// # Errors
/// Names the file and what to do.
pub fn check_start(path: &Path, start: &[u8], kind: &str) -> Result<(), String> {
    if !fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let mut found = vec![0; start.len()];
    let read = file::open(path).and_then(|mut file| file.read_exact(&mut found));
    if read.is_ok() && found == start {
        return Ok(());
    }
    Err(format!(
        "{}: it exists, and is no {kind}. Name another file",
        path.display()
    ))
}

/// A file that is being written, in the folder of the file that it will replace. It is removed when
/// it is dropped.
#[derive(Debug)]
pub struct Replacement {
    file: NamedTempFile,
    path: PathBuf,
}

impl Replacement {
    /// Begins a file that will be at `path`. A link there is kept, and its target is replaced.
    ///
    /// # Errors
    /// The folder cannot be written, or something else than a regular file is at the path.
    pub fn begin(path: &Path) -> Result<Self, StoreError> {
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let error = io::Error::other("it is not a regular file. Name another one");
            return Err(StoreError::at(path)(error));
        }
        let path = target(path);
        let mut prefix = path.file_name().unwrap_or_default().to_owned();
        prefix.push(".");
        let folder = path.parent().filter(|it| *it != OsStr::new(""));
        let file = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".partial")
            .permissions(Permissions::from_mode(MODE))
            .tempfile_in(folder.unwrap_or(Path::new(".")));
        Ok(Self {
            file: file.map_err(StoreError::at(&path))?,
            path,
        })
    }

    /// The file, for writing.
    ///
    /// # Errors
    /// Those of the system.
    pub fn file(&self) -> Result<File, StoreError> {
        let file = self.file.as_file().try_clone();
        file.map_err(StoreError::at(&self.path))
    }

    /// Gives the file its name. It is on disk then.
    ///
    /// # Errors
    /// Those of the system. An older file at the path is kept then.
    pub fn finish(self) -> Result<(), StoreError> {
        let Self { file, path } = self;
        let synced = file.as_file().sync_all();
        synced.map_err(StoreError::at(&path))?;
        let renamed = file.persist(&path).map_err(|error| error.error);
        renamed.map_err(StoreError::at(&path))?;
        sync_folder(&path).map_err(StoreError::at(&path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_file_changes_only_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        fs::write(&path, "old").unwrap();
        for is_finished in [false, true] {
            let replacement = Replacement::begin(&path).unwrap();
            replacement.file().unwrap().write_all(b"new").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "old");
            if is_finished {
                replacement.finish().unwrap();
            }
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let other = folder.path().join("other");
        fs::write(&other, "").unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&other));
    }

    #[test]
    fn a_link_is_kept_and_its_target_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("deep/table"));
        fs::create_dir(folder.path().join("deep")).unwrap();
        symlink("deep/table", &link).unwrap();
        // The target is missing at first.
        for text in ["one", "two"] {
            let replacement = Replacement::begin(&link).unwrap();
            replacement
                .file()
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
            replacement.finish().unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read_to_string(&target).unwrap(), text);
        }
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("/dev/null", &link).unwrap();
        for path in [Path::new("/dev/null"), &link, folder.path()] {
            let error = Replacement::begin(path).unwrap_err().to_string();
            let reason = "it is not a regular file. Name another one";
            assert_eq!(error, format!("{}: {reason}", path.display()));
        }
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let error = Replacement::begin(Path::new("/no/such/table")).unwrap_err();
        assert!(error.to_string().starts_with("/no/such/table: "), "{error}");
    }
}
