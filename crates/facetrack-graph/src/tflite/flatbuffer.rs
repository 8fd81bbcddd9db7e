// SPDX-License-Identifier: MPL-2.0
//! Reads FlatBuffers tables with every access checked: a damaged file is an error, never a panic.
//!
//! Layout: <https://flatbuffers.dev/internals/>. Offsets are `u32` and count from their own
//! position. A table starts with an `i32` that leads back to its vtable, which has a `u16` per
//! field: 0 for a field that is left out.

use crate::{Reason, Result};

/// Bytes that a vtable has before its first field: its own length and the table's.
const VTABLE_HEADER: usize = 4;

/// Maximum length of a list of integers. They are shapes and the inputs and outputs of operators:
/// dozens of elements. The limits keep the memory for a forged file, whose lists may overlap, in
/// proportion to its size.
const MAX_INTEGERS: usize = 256;

/// Maximum length of a list of tables. They are tensors and operators: MediaPipe's networks have at
/// most 750. Lowering takes time that grows with the square of their number.
const MAX_TABLES: usize = 2048;

/// Maximum length of a string, in bytes. They are names: the longest in MediaPipe's networks has
/// 267 bytes.
const MAX_STRING: usize = 4096;

/// A table in a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    data: &'a [u8],
    position: usize,
    vtable: &'a [u8],
}

impl<'a> Table<'a> {
    /// The root table of `data`, which must carry the file `identifier`.
    pub(super) fn root(data: &'a [u8], identifier: &[u8; 4]) -> Result<Self> {
        if data.get(4..8) != Some(identifier.as_slice()) {
            return Err(format!(
                "it does not carry the identifier {}",
                identifier.escape_ascii()
            ));
        }
        Self::at(data, follow(data, 0)?)
    }

    fn at(data: &'a [u8], position: usize) -> Result<Self> {
        let back = i64::from(i32::from_le_bytes(bytes(data, position)?));
        let start = usize::try_from(position as i64 - back).map_err(|_| outside(position))?;
        let length = usize::from(u16::from_le_bytes(bytes(data, start)?));
        let vtable = data.get(start..start + length);
        Ok(Self {
            data,
            position,
            vtable: vtable.ok_or_else(|| outside(start))?,
        })
    }

    /// Returns the position of field `index`; `None` if it is left out.
    fn field(&self, index: usize) -> Option<usize> {
        let entries = self.vtable.get(VTABLE_HEADER + 2 * index..)?;
        let offset = usize::from(u16::from_le_bytes(*entries.first_chunk()?));
        (offset != 0).then_some(self.position + offset)
    }

    fn scalar<const N: usize>(&self, index: usize) -> Result<Option<[u8; N]>> {
        let position = self.field(index);
        position.map(|own| bytes(self.data, own)).transpose()
    }

    /// A byte, 0 when left out. Booleans and small enumerations are bytes.
    pub(super) fn u8(&self, index: usize) -> Result<u8> {
        Ok(self.scalar(index)?.map_or(0, u8::from_le_bytes))
    }

    /// An integer, `default` when left out.
    pub(super) fn i32(&self, index: usize, default: i32) -> Result<i32> {
        Ok(self.scalar(index)?.map_or(default, i32::from_le_bytes))
    }

    /// An unsigned integer, 0 when left out, as an index.
    pub(super) fn index(&self, index: usize) -> Result<usize> {
        Ok(self.scalar(index)?.map_or(0, u32::from_le_bytes) as usize)
    }

    /// A table; `None` when left out.
    pub(super) fn table(&self, index: usize) -> Result<Option<Table<'a>>> {
        let table = |position| Table::at(self.data, follow(self.data, position)?);
        self.field(index).map(table).transpose()
    }

    /// The bytes of a vector of elements of `size` bytes each; empty when left out.
    fn vector(&self, index: usize, size: usize) -> Result<(usize, &'a [u8])> {
        let Some(position) = self.field(index) else {
            return Ok((0, &[]));
        };
        let start = follow(self.data, position)?;
        let length = u32::from_le_bytes(bytes(self.data, start)?) as usize;
        let first = start + 4;
        let length = length.checked_mul(size);
        let content = length.and_then(|length| self.data[first..].get(..length));
        Ok((first, content.ok_or_else(|| outside(start))?))
    }

    /// A vector of bytes.
    pub(super) fn byte_vector(&self, index: usize) -> Result<&'a [u8]> {
        Ok(self.vector(index, 1)?.1)
    }

    /// A vector of at most [`MAX_INTEGERS`] integers.
    pub(super) fn i32_vector(&self, index: usize) -> Result<Vec<i32>> {
        let (_, content) = self.vector(index, 4)?;
        if content.len() > 4 * MAX_INTEGERS {
            return Err(format!("a list has {} elements", content.len() / 4));
        }
        let (integers, _) = content.as_chunks();
        Ok(integers.iter().map(|n| i32::from_le_bytes(*n)).collect())
    }

    /// A vector of at most [`MAX_TABLES`] tables.
    pub(super) fn tables(&self, index: usize) -> Result<Vec<Table<'a>>> {
        let (first, content) = self.vector(index, 4)?;
        if content.len() > 4 * MAX_TABLES {
            return Err(format!("a list has {} tables", content.len() / 4));
        }
        (0..content.len() / 4)
            .map(|i| Table::at(self.data, follow(self.data, first + 4 * i)?))
            .collect()
    }

    /// The tables of a vector, each read by `read`.
    pub(super) fn each<T>(
        &self,
        index: usize,
        read: impl FnMut(&Table<'a>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.tables(index)?.iter().map(read).collect()
    }

    /// A string of at most [`MAX_STRING`] bytes; those that are not UTF-8 are replaced.
    pub(super) fn string(&self, index: usize) -> Result<String> {
        let content = self.byte_vector(index)?;
        if content.len() > MAX_STRING {
            return Err(format!("a name has {} bytes", content.len()));
        }
        Ok(String::from_utf8_lossy(content).into_owned())
    }
}

/// Returns the position to which the offset at `position` points.
fn follow(data: &[u8], position: usize) -> Result<usize> {
    let offset = u32::from_le_bytes(bytes(data, position)?) as usize;
    position
        .checked_add(offset)
        .filter(|target| *target < data.len())
        .ok_or_else(|| outside(position))
}

fn bytes<const N: usize>(data: &[u8], position: usize) -> Result<[u8; N]> {
    let rest = data.get(position..).and_then(<[u8]>::first_chunk);
    rest.copied().ok_or_else(|| outside(position))
}

fn outside(position: usize) -> Reason {
    format!("the offset at byte {position} leads outside of the file")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose root table has a string of `length` bytes.
    fn with_string(length: u32) -> Vec<u8> {
        let mut data = b"\x10\0\0\0TFL3\x06\0\x08\0\x04\0\0\0\x08\0\0\0\x04\0\0\0".to_vec();
        data.extend(length.to_le_bytes());
        data.resize(data.len() + length as usize, b'n');
        data
    }

    #[test]
    fn a_long_name_is_refused() {
        let name = |length| Table::root(&with_string(length), b"TFL3")?.string(0);
        assert_eq!(name(267).unwrap().len(), 267);
        assert_eq!(name(4097).unwrap_err(), "a name has 4097 bytes");
    }
}
