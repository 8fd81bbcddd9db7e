// SPDX-License-Identifier: MPL-2.0
//! Memory whose size depends on frames, settings or files. Without it there is an error, and the
//! process continues.

use std::fmt::Display;

use facetrack_net::memory::{self, FromZeros};
use thiserror::Error;

/// The system has too little memory for this process.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{purpose} needs {} MiB of memory, which are not available", bytes.div_ceil(1 << 20))]
pub struct OutOfMemory {
    /// Purpose of the memory.
    pub purpose: String,
    /// Bytes.
    pub bytes: usize,
}

impl OutOfMemory {
    pub(crate) fn of(purpose: impl Display, error: memory::OutOfMemory) -> Self {
        Self {
            purpose: purpose.to_string(),
            bytes: error.bytes,
        }
    }
}

/// This many zeros.
pub(crate) fn zeros<T: FromZeros>(
    length: usize,
    purpose: impl Display,
) -> Result<Vec<T>, OutOfMemory> {
    memory::zeros(length).map_err(|error| OutOfMemory::of(purpose, error))
}

/// Makes room for `additional` values.
pub(crate) fn reserve<T>(
    values: &mut Vec<T>,
    additional: usize,
    purpose: impl Display,
) -> Result<(), OutOfMemory> {
    memory::reserve(values, additional).map_err(|error| OutOfMemory::of(purpose, error))
}

/// Checks that this many bytes are available for many small pieces.
pub(crate) fn check(bytes: usize, purpose: impl Display) -> Result<(), OutOfMemory> {
    memory::check(bytes).map_err(|error| OutOfMemory::of(purpose, error))
}
