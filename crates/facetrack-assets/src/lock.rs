// SPDX-License-Identifier: MPL-2.0
//! Files that a process locks while it works with them. The lock ends with the file.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::file::{is_at, open_itself};

/// How often a file is opened again because another process has removed or renamed it meanwhile.
const ATTEMPTS: usize = 10;

/// Opens the regular file at `path`, or creates it, and locks it. Follows no link at `path`.
///
/// # Errors
/// [`ErrorKind::WouldBlock`] if another process has locked it, [`ErrorKind::InvalidInput`] for
/// anything but a regular file, and errors of the system.
pub fn try_lock(path: &Path) -> io::Result<File> {
    locked(path, |file| match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
        // File systems without locks return another error. Then other processes are not noticed.
        _ => Ok(()),
    })
}

/// As [`try_lock`], but waits until no other process has locked the file.
///
/// # Errors
/// Those of [`try_lock`], and those of file systems without locks.
pub fn lock(path: &Path) -> io::Result<File> {
    locked(path, File::lock)
}

fn locked(path: &Path, lock: impl Fn(&File) -> io::Result<()>) -> io::Result<File> {
    for _ in 0..ATTEMPTS {
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = open_itself(options, path)?;
        lock(&file)?;
        // The process that had locked it may have removed or renamed it.
        if is_at(&file, path)? {
            return Ok(file);
        }
    }
    Err(ErrorKind::WouldBlock.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_file_is_busy_until_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::fs::write(&path, "kept").unwrap();
        let locked = try_lock(&path).unwrap();
        let busy = try_lock(&path).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::WouldBlock);
        drop(locked);
        lock(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn a_lock_that_is_removed_while_another_process_waits_is_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = try_lock(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = try_lock(&path).unwrap();
        assert!(!is_at(&first, &path).unwrap());
        assert!(is_at(&second, &path).unwrap());
    }
}
