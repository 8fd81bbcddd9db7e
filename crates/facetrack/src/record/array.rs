// SPDX-License-Identifier: MPL-2.0
//! A JSON document that ends in an array of lines, and is whole after every write.
//!
//! Lines are gathered and written together with what closes the document; the next write begins
//! where the closing was. A process that is killed during a write leaves the document without its
//! closing, and perhaps with a part of a line.

use std::io::{self, Seek, SeekFrom, Write};

use serde::Serialize;

use super::stream::Totals;

/// Number of bytes that are collected before a write. Writes of this size cost little compared to
/// formatting the lines, and a crash loses only a second or two of video. Our choice.
const WRITE_SIZE: usize = 64 * 1024;

/// Bytes that reach a file together even if the process is killed: Linux copies a write to the page
/// cache in pages.
pub(super) const PAGE: usize = 4096;

/// A file that can be changed and cut afterwards.
pub trait Storage: Write + Seek + Send {
    /// Truncates the file to `len` bytes.
    ///
    /// # Errors
    /// Returns the error of the system.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Replaces the first `old` bytes by `new`, which may be longer or shorter. The change is made
    /// as a whole: after an error or a crash, the content is unchanged.
    ///
    /// # Errors
    /// Returns the error of the system.
    fn replace_start(&mut self, old: u64, new: &[u8]) -> io::Result<()>;
}

/// A document that is being written.
pub(super) struct ArrayDocument<S> {
    storage: S,
    /// Lines that are not written yet.
    pending: Vec<u8>,
    /// Bytes written, without the closing.
    written: u64,
    /// The closing at the end of the storage.
    closing: Vec<u8>,
    /// Counts of the lines written.
    totals: Totals,
    /// True if a write failed.
    has_failed: bool,
}

impl<S: Storage> ArrayDocument<S> {
    /// A document with this text before and after its lines.
    ///
    /// # Errors
    /// Returns an error if the storage fails.
    pub(super) fn new(storage: S, opening: Vec<u8>, closing: &[u8]) -> io::Result<Self> {
        let mut document = Self {
            storage,
            pending: opening,
            written: 0,
            closing: Vec::new(),
            totals: Totals::default(),
            has_failed: false,
        };
        document.write(Totals::default(), closing)?;
        Ok(document)
    }

    /// Replaces the first `old` bytes of the text before the lines.
    ///
    /// # Errors
    /// Returns an error if the storage fails.
    pub(super) fn replace_start(&mut self, old: usize, new: &[u8]) -> io::Result<()> {
        if old == new.len() {
            self.storage.seek(SeekFrom::Start(0))?;
            self.storage.write_all(new)?;
            return self.storage.flush();
        }
        self.storage.replace_start(old as u64, new)?;
        self.written = self.written - old as u64 + new.len() as u64;
        Ok(())
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
        // The first line is written at once, so that a reader sees that the stream has begun.
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
            // If this fails too, the first error is reported.
            let _ = self.take_back();
            return Err(error);
        }
        self.written += lines as u64;
        closing.clone_into(&mut self.closing);
        self.totals = totals;
        Ok(())
    }

    /// Writes the last valid closing over an incomplete write. This needs no new space on a full
    /// disk, because the closing was there before.
    fn take_back(&mut self) -> io::Result<()> {
        self.storage.seek(SeekFrom::Start(self.written))?;
        self.storage.write_all(&self.closing)?;
        self.storage
            .truncate(self.written + self.closing.len() as u64)
    }
}
