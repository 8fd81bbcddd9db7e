// SPDX-License-Identifier: MPL-2.0
//! The dense format, which has all data of every frame.
//!
//! The metadata come first, but some are known only at the end. They are followed by blanks up to a
//! whole number of pages, so that they can be replaced in place. A killed process completes a write
//! of one page, and most metadata fit into a page.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::array::{ArrayDocument, PAGE, Storage};
use super::export::Export;
use super::metadata::Metadata;
use super::stream::{End, FrameRecord, Layout, Stream, Totals};
use super::wire::{Frame, Head, from_json};

/// Minimum number of blanks after the metadata, for values that are known only at the end: a reason
/// with several parts has about 500 bytes, and the models of another engine take as many.
const MARGIN: usize = 1024;

/// Separator between the metadata and the first line.
const FRAMES: &[u8] = b",\"frames\":[";

pub(super) const CLOSING: &[u8] = b"\n]}\n";

/// A dense record.
pub(super) struct Dense<S> {
    document: ArrayDocument<S>,
    export: Export,
    /// Metadata as in the file.
    metadata: Metadata,
    /// Bytes of the metadata and the blanks after them.
    room: usize,
}

impl<S: Storage> Dense<S> {
    pub(super) fn new(storage: S, export: Export, metadata: Metadata) -> io::Result<Self> {
        let head = padded(&Head::new(&metadata, Some(Totals::default())))?;
        let opening = [&head, FRAMES].concat();
        Ok(Self {
            document: ArrayDocument::new(storage, opening, CLOSING)?,
            export,
            metadata,
            room: head.len(),
        })
    }

    /// Puts `metadata` at the start of the file.
    fn set_metadata(&mut self, metadata: &Metadata, totals: Totals) -> io::Result<()> {
        let head = padded(&Head::new(metadata, Some(totals)))?;
        self.document.replace_start(self.room, &head)?;
        self.room = head.len();
        self.metadata.clone_from(metadata);
        Ok(())
    }
}

impl<S: Storage> Layout for Dense<S> {
    fn frame(&mut self, frame: &FrameRecord<'_>, stream: &Stream) -> io::Result<()> {
        if stream.totals.frames == 1 {
            self.set_metadata(&stream.metadata, Totals::default())?;
        }
        let frame = Frame::new(frame, stream, &self.export);
        self.document.line(&frame, stream.totals, CLOSING)
    }

    /// Closes the file. If the final metadata do not fit, those in the file stay, with the right
    /// counts.
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

/// The object with the metadata on the first line of a dense record; `None` if it is not one. The
/// line has no blanks at its end.
pub(crate) fn header<T: DeserializeOwned>(line: &[u8]) -> Option<serde_json::Result<T>> {
    let object = [line.strip_suffix(FRAMES)?, b"}"].concat();
    Some(from_json(&object))
}

/// Everything before the first frame of a file with these final metadata.
pub(super) fn opening(metadata: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok([&padded(metadata)?, FRAMES].concat())
}

/// The start of an object, with the metadata and the blanks after them. Their number depends on
/// nothing else, so that files with the same metadata have the same bytes.
fn padded(metadata: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut head = b"{\"metadata\":".to_vec();
    serde_json::to_writer(&mut head, metadata)?;
    head.resize((head.len() + MARGIN).next_multiple_of(PAGE), b' ');
    Ok(head)
}
