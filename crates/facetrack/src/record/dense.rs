// SPDX-License-Identifier: MPL-2.0
//! The dense format: all of every frame.
//!
//! The metadata come first, but some are known only at the end. They are followed by blanks up to a
//! whole number of pages, so that they can be replaced in one page-sized write, which a kill does
//! not interrupt.

use std::io;

use serde::Serialize;

use super::array::{ArrayDocument, PAGE, Storage};
use super::{End, Export, FrameRecord, Layout, Metadata, Stream, Totals};
use crate::wire::{Frame, Head};

/// Minimum number of blanks after the metadata, for counts with more digits.
const MARGIN: usize = 64;

/// Separator between the metadata and the first line.
pub(super) const FRAMES: &[u8] = b",\"frames\":[";

pub(super) const CLOSING: &[u8] = b"\n]}\n";

/// A dense record.
pub(super) struct Dense<S> {
    document: ArrayDocument<S>,
    export: Export,
    /// Metadata as in the file.
    metadata: Metadata,
    /// Bytes of the metadata and the blanks after them.
    room: usize,
    has_frames: bool,
}

impl<S: Storage> Dense<S> {
    pub(super) fn new(storage: S, export: Export, metadata: Metadata) -> io::Result<Self> {
        let head = head(&metadata, Totals::default())?;
        let room = room(&head);
        let opening = [&padded(head, room), FRAMES].concat();
        Ok(Self {
            document: ArrayDocument::new(storage, opening, CLOSING)?,
            export,
            metadata,
            room,
            has_frames: false,
        })
    }

    /// Puts `metadata` at the start of the file.
    fn set_metadata(&mut self, metadata: &Metadata, totals: Totals) -> io::Result<()> {
        let head = head(metadata, totals)?;
        let room = room(&head);
        self.document
            .replace_start(self.room, &padded(head, room))?;
        self.room = room;
        self.metadata.clone_from(metadata);
        Ok(())
    }
}

/// Bytes that are kept for the metadata `head`. They depend on nothing else, so that files with the
/// same metadata have the same bytes.
fn room(head: &[u8]) -> usize {
    (head.len() + MARGIN).next_multiple_of(PAGE)
}

fn padded(mut head: Vec<u8>, room: usize) -> Vec<u8> {
    head.resize(room, b' ');
    head
}

impl<S: Storage> Layout for Dense<S> {
    fn frame(&mut self, frame: &FrameRecord<'_>, stream: &Stream) -> io::Result<()> {
        if !self.has_frames {
            self.set_metadata(&stream.metadata, Totals::default())?;
            self.has_frames = true;
        }
        let frame = Frame::new(frame, stream, &self.export);
        self.document.line(&frame, stream.totals, CLOSING)
    }

    /// Where the final metadata find no room, those in the file stay, with the right counts.
    fn close(&mut self, _end: End, stream: &Stream) -> io::Result<Totals> {
        let written = self.document.finish(stream.totals, CLOSING)?;
        if let Err(error) = self.set_metadata(&stream.metadata, written) {
            let known = self.metadata.clone();
            self.set_metadata(&known, written)?;
            return Err(error);
        }
        Ok(written)
    }
}

fn head(metadata: &Metadata, totals: Totals) -> io::Result<Vec<u8>> {
    object_with(&Head::new(metadata, Some(totals)))
}

/// Everything before the first frame of a file with these final metadata.
pub(super) fn opening(metadata: &impl Serialize) -> io::Result<Vec<u8>> {
    let head = object_with(metadata)?;
    let room = room(&head);
    Ok([&padded(head, room), FRAMES].concat())
}

/// An object that begins with the metadata.
fn object_with(metadata: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = b"{\"metadata\":".to_vec();
    serde_json::to_writer(&mut bytes, metadata)?;
    Ok(bytes)
}
