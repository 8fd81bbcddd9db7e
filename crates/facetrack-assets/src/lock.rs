// SPDX-License-Identifier: MPL-2.0
//! Locks of files, which end with the open file, and of data, which survive a panic.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::file::{is_at, open_itself};

/// Maximum number of times that a file is reopened because another process has removed or renamed
/// it meanwhile.
const ATTEMPTS: usize = 10;

/// Locks `mutex`, also after a thread has panicked with the lock held. Use it only for data that is
/// valid between any two statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the regular file at `path`, or creates it, and locks it. Follows no link at `path`.
///
/// # Errors
/// Returns [`ErrorKind::WouldBlock`] if another process has locked the file,
/// [`ErrorKind::InvalidInput`] for anything but a regular file, or the error of the system.
pub fn try_lock_file(path: &Path) -> io::Result<File> {
    locked(path, |file| match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
        // File systems without locks return another error. Then other processes are not noticed.
        _ => Ok(()),
    })
}

/// Locks the file like [`try_lock_file`], but waits until no other process has locked it.
///
/// # Errors
/// Returns the errors of [`try_lock_file`] except `WouldBlock`, and an error if the file system has
/// no locks.
pub fn lock_file(path: &Path) -> io::Result<File> {
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
        let locked = try_lock_file(&path).unwrap();
        let busy = try_lock_file(&path).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::WouldBlock);
        drop(locked);
        lock_file(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    }

    #[test]
    fn a_lock_that_is_removed_while_another_process_waits_is_created_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = try_lock_file(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let second = try_lock_file(&path).unwrap();
        assert!(!is_at(&first, &path).unwrap());
        assert!(is_at(&second, &path).unwrap());
    }
}
