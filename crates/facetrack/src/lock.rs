// SPDX-License-Identifier: MPL-2.0
//! Locks that survive a panic.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, also after a thread has panicked with the lock held. Use it only for data that is
/// valid between any two statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
