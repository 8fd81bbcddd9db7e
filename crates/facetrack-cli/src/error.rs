// SPDX-License-Identifier: MPL-2.0
//! Errors of files and streams.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use facetrack_assets::file;
use rustix::fs::statvfs;
use thiserror::Error;

/// An error of the operating system.
#[derive(Debug, Error)]
#[error("{path}: {source}", path = path.display())]
pub(crate) struct StoreError {
    path: PathBuf,
    source: io::Error,
}

impl StoreError {
    /// Returns true if a disk is full.
    fn is_full(&self) -> bool {
        file::is_full(&self.source)
    }

    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self {
            path,
            source: of_system(source),
        }
    }
}

/// Returns true if the error is a full disk.
pub(crate) fn is_full(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref().is_some_and(StoreError::is_full)
}

/// The error of the operating system that a library for files has wrapped; otherwise `error`.
fn of_system(error: io::Error) -> io::Error {
    let mut cause = error.get_ref().map(|cause| cause as &(dyn Error + 'static));
    while let Some(inner) = cause {
        let code = inner.downcast_ref().and_then(io::Error::raw_os_error);
        if let Some(code) = code {
            return io::Error::from_raw_os_error(code);
        }
        cause = inner.source();
    }
    error
}

/// Checks that a folder has room for `size` bytes, after another program has failed to write there.
///
/// # Errors
/// Returns the error of a full disk.
pub(crate) fn check_room(folder: &Path, size: u64) -> Result<(), StoreError> {
    let Ok(found) = statvfs(folder) else {
        return Ok(());
    };
    if found.f_bavail.saturating_mul(found.f_frsize) >= size {
        return Ok(());
    }
    let full = io::Error::from_raw_os_error(libc::ENOSPC);
    Err(StoreError::at(folder)(full))
}
