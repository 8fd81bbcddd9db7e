// SPDX-License-Identifier: MPL-2.0
//! A JSON document that ends in an array of lines, and is whole after every write.
//!
//! Lines are gathered and written together with what closes the document; the next write begins
//! where the closing was.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use serde::Serialize;

use super::Totals;

/// Number of bytes that are collected before a write. Writes of this size cost little compared to
/// formatting the lines, and a crash loses only a second or two of video. Our choice.
const WRITE_SIZE: usize = 64 * 1024;

/// Something to write to that can be read, changed and cut afterwards.
pub trait Storage: Read + Write + Seek + Send {
    /// Cuts it to `len` bytes.
    ///
    /// # Errors
    /// As the system says.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Returns when everything is where a power failure does not reach it.
    ///
    /// # Errors
    /// As the system says.
    fn sync(&mut self) -> io::Result<()>;
}

impl Storage for File {
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// The document under way.
pub(super) struct ArrayDocument<S> {
    storage: S,
    /// Not written yet.
    pending: Vec<u8>,
    /// Bytes written, without the closing.
    written: u64,
    /// The closing that the storage ends in.
    closing: Vec<u8>,
    /// Counts of the lines written.
    totals: Totals,
    /// Whether a write failed.
    has_failed: bool,
}

impl<S: Storage> ArrayDocument<S> {
    /// A document with this text before its lines; nothing is written yet.
    pub(super) fn new(storage: S, opening: &[u8]) -> Self {
        Self {
            storage,
            pending: opening.to_vec(),
            written: 0,
            closing: Vec::new(),
            totals: Totals::default(),
            has_failed: false,
        }
    }

    /// Replaces the text before the first line. Call this before any line is added.
    pub(super) fn open(&mut self, opening: Vec<u8>) {
        self.pending = opening;
    }

    /// Adds a line. `totals` counts it in, `closing` is what would end the document after it.
    pub(super) fn line(
        &mut self,
        line: &impl Serialize,
        totals: Totals,
        closing: &[u8],
    ) -> io::Result<()> {
        let separator: &[u8] = if totals.frames > 1 { b",\n" } else { b"\n" };
        self.pending.extend_from_slice(separator);
        serde_json::to_writer(&mut self.pending, line)?;
        // The first line goes out at once: from then on the storage holds a readable document.
        if totals.frames > 1 && self.pending.len() < WRITE_SIZE {
            return Ok(());
        }
        self.write(totals, closing)
    }

    /// Writes the lines that are left; after a failure there are none. Returns the counts of all
    /// lines written.
    pub(super) fn finish(&mut self, totals: Totals, closing: &[u8]) -> io::Result<Totals> {
        if !self.has_failed {
            self.write(totals, closing)?;
        }
        Ok(self.totals)
    }

    /// Whether nothing reached the storage.
    pub(super) fn is_empty(&self) -> bool {
        self.written == 0
    }

    /// The storage, for changes in place after the end.
    pub(super) fn storage(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Moves everything from the byte `from` on so that it begins at `to`. Room for that is taken
    /// first: when there is none, nothing has changed.
    ///
    /// # Errors
    /// When the storage fails.
    pub(super) fn move_lines(&mut self, from: usize, to: usize) -> io::Result<()> {
        if from == to {
            return Ok(());
        }
        let (from, to) = (from as u64, to as u64);
        let end = self.storage.seek(SeekFrom::End(0))?;
        let moved_end = end - from + to;
        if to > from
            && let Err(error) = io::copy(&mut io::repeat(b' ').take(to - from), &mut self.storage)
        {
            self.storage.truncate(end)?;
            return Err(error);
        }
        let mut starts: Vec<u64> = (from..end).step_by(WRITE_SIZE).collect();
        if to > from {
            // Bytes that would be overwritten are moved first.
            starts.reverse();
        }
        let mut chunk = vec![0; WRITE_SIZE];
        for start in starts {
            let length = (end - start).min(WRITE_SIZE as u64);
            let chunk = &mut chunk[..length as usize];
            self.storage.seek(SeekFrom::Start(start))?;
            self.storage.read_exact(chunk)?;
            self.storage.seek(SeekFrom::Start(start - from + to))?;
            self.storage.write_all(chunk)?;
        }
        if to < from {
            self.storage.truncate(moved_end)?;
        }
        self.storage.flush()
    }

    fn write(&mut self, totals: Totals, closing: &[u8]) -> io::Result<()> {
        let lines = self.pending.len();
        self.pending.extend_from_slice(closing);
        let result = self
            .storage
            .seek(SeekFrom::Start(self.written))
            .and_then(|_| self.storage.write_all(&self.pending))
            .and_then(|()| self.storage.flush());
        self.pending.clear();
        if let Err(error) = result {
            self.has_failed = true;
            // If this fails too, the first error is the one to report.
            let _ = self.take_back();
            return Err(error);
        }
        self.written += lines as u64;
        self.closing.clear();
        self.closing.extend_from_slice(closing);
        self.totals = totals;
        Ok(())
    }

    /// Puts the last good closing over a torn write. On a full disk this needs no new space: the
    /// closing was there.
    fn take_back(&mut self) -> io::Result<()> {
        self.storage.seek(SeekFrom::Start(self.written))?;
        self.storage.write_all(&self.closing)?;
        self.storage
            .truncate(self.written + self.closing.len() as u64)
    }
}
