// SPDX-License-Identifier: MPL-2.0
//! Errors of files and streams.

use std::io;
use std::path::{Path, PathBuf};

use facetrack_assets::file;
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
    pub(crate) fn is_full(&self) -> bool {
        file::is_full(&self.source)
    }

    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self { path, source }
    }
}
