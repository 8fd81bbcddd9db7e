// SPDX-License-Identifier: MPL-2.0
//! The dense format: all of every frame.

use std::io::{self, SeekFrom};

use super::array::{ArrayDocument, Storage};
use super::{Completeness, End, Export, FrameRecord, Layout, Metadata, Stream, Totals};
use crate::wire::{Frame, Head};

/// Bytes that are kept for the metadata are a multiple of this, and [`MARGIN`] longer at least. So
/// files whose metadata are the same have the same bytes, whenever the metadata were known, and are
/// a few hundred bytes longer at most.
const GRAIN: usize = 256;

/// Blanks behind the metadata, at least.
const MARGIN: usize = 32;

/// Counts of a typical record, to estimate the length of the final metadata.
const USUAL: Totals = Totals {
    frames: 10_000,
    padded: 0,
    faces: 0,
};

/// Duration of a typical video, ns.
const USUAL_DURATION: u64 = 100_000_000_000;

const CLOSING: &[u8] = b"\n]}\n";

/// A dense record.
pub(super) struct Dense<S> {
    document: ArrayDocument<S>,
    export: Export,
    /// Metadata as first written.
    first: Metadata,
    /// Bytes kept for them.
    reserved: usize,
}

impl<S: Storage> Dense<S> {
    pub(super) fn new(storage: S, export: Export) -> Self {
        Self {
            document: ArrayDocument::new(storage, b""),
            export,
            first: Metadata::default(),
            reserved: 0,
        }
    }

    fn open(&mut self, metadata: &Metadata) -> io::Result<()> {
        if self.reserved > 0 {
            return Ok(());
        }
        let mut opening = head(metadata, Totals::default())?;
        self.reserved = room(usual_head(metadata)?.len().max(opening.len()));
        self.first = metadata.clone();
        opening.resize(self.reserved, b' ');
        opening.extend_from_slice(b",\"frames\":[");
        self.document.open(opening);
        Ok(())
    }

    /// Puts the final metadata in the place that was kept for them, and moves the frames where that
    /// is too small or too large. When that fails, the metadata known at first stay, with the right
    /// counts.
    fn finish_head(&mut self, metadata: &Metadata, totals: Totals, end: End) -> io::Result<()> {
        let last = head(metadata, totals)?;
        let fits = last.len() <= self.reserved;
        let wanted = match end {
            End::Broken if fits => self.reserved,
            _ => room(last.len()),
        };
        let moved = self.document.move_lines(self.reserved, wanted);
        if moved.is_ok() {
            return self.write_head(last, wanted);
        }
        let kept = if fits {
            last
        } else {
            head(&self.first, totals)?
        };
        self.write_head(kept, self.reserved)?;
        moved
    }

    fn write_head(&mut self, mut head: Vec<u8>, room: usize) -> io::Result<()> {
        head.resize(room, b' ');
        let storage = self.document.storage();
        storage.seek(SeekFrom::Start(0))?;
        storage.write_all(&head)?;
        storage.flush()
    }
}

/// Bytes that are kept for metadata of `length`.
fn room(length: usize) -> usize {
    (length + MARGIN).next_multiple_of(GRAIN)
}

/// The metadata as they will be at the end of most streams.
fn usual_head(metadata: &Metadata) -> io::Result<Vec<u8>> {
    let completeness = Completeness {
        reason: None,
        expected_duration: Some(USUAL_DURATION),
        expected_frames: Some(USUAL.frames),
        ..Completeness::default()
    };
    let usual = Metadata {
        completeness,
        ..metadata.clone()
    };
    head(&usual, USUAL)
}

impl<S: Storage> Layout for Dense<S> {
    fn frame(&mut self, frame: &FrameRecord<'_>, stream: &Stream) -> io::Result<()> {
        self.open(&stream.metadata)?;
        let frame = Frame::new(frame, stream, &self.export);
        self.document.line(&frame, stream.totals, CLOSING)
    }

    fn close(&mut self, end: End, stream: &Stream) -> io::Result<Totals> {
        self.open(&stream.metadata)?;
        let written = self.document.finish(stream.totals, CLOSING)?;
        if self.document.is_empty() {
            return Ok(written);
        }
        self.finish_head(&stream.metadata, written, end)?;
        if end == End::Complete {
            self.document.storage().sync()?;
        }
        Ok(written)
    }
}

fn head(metadata: &Metadata, totals: Totals) -> io::Result<Vec<u8>> {
    let mut bytes = b"{\"metadata\":".to_vec();
    serde_json::to_writer(&mut bytes, &Head::new(metadata, Some(totals)))?;
    Ok(bytes)
}
