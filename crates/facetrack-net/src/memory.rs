// SPDX-License-Identifier: MPL-2.0
//! Large pieces of memory, whose absence is an error. Elsewhere it ends the process.

pub use zerocopy::FromZeros;

/// Minimum size of a large piece: from this size on, the C library asks the system for each piece.
const LARGE: usize = 128 << 10;

/// Memory that has to be available after a large piece, for small ones, bytes.
const HEADROOM: usize = 8 << 20;

/// The system has no more memory for this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes that were wanted.
    pub bytes: usize,
}

/// Returns `length` zeros. Like the pages of `vec!`, their pages take no memory before they are used.
///
/// # Errors
/// Returns an error if the memory is not available.
pub fn zeros<T: FromZeros>(length: usize) -> Result<Vec<T>, OutOfMemory> {
    let bytes = bytes::<T>(length);
    let zeros = T::new_vec_zeroed(length).map_err(|_| OutOfMemory { bytes })?;
    check_headroom(bytes)?;
    Ok(zeros)
}

/// Makes room for `additional` values.
///
/// # Errors
/// Returns an error if the memory is not available.
pub fn reserve<T>(values: &mut Vec<T>, additional: usize) -> Result<(), OutOfMemory> {
    if values.capacity() - values.len() >= additional {
        return Ok(());
    }
    let bytes = bytes::<T>(additional);
    let reserved = values.try_reserve_exact(additional);
    reserved.map_err(|_| OutOfMemory { bytes })?;
    check_headroom(bytes)
}

/// Checks that this many bytes are available for many small pieces.
///
/// # Errors
/// Returns an error if the memory is not available.
pub fn check(bytes: usize) -> Result<(), OutOfMemory> {
    let reserved = Vec::<u8>::new().try_reserve_exact(bytes.saturating_add(HEADROOM));
    reserved.map_err(|_| OutOfMemory { bytes })
}

fn check_headroom(bytes: usize) -> Result<(), OutOfMemory> {
    if bytes < LARGE {
        return Ok(());
    }
    check(0).map_err(|_| OutOfMemory { bytes })
}

fn bytes<T>(length: usize) -> usize {
    length.saturating_mul(size_of::<T>())
}
