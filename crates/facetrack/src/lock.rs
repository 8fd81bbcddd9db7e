// SPDX-License-Identifier: MPL-2.0
//! Locks that outlive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic elsewhere is no reason to panic here: what these locks guard is whole between
/// statements.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
