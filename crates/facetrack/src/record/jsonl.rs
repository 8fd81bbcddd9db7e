// SPDX-License-Identifier: MPL-2.0
//! The jsonl format for pipes and live use. Each line is a JSON object.

use std::io::{self, Write};

use serde::Serialize;

use super::export::Export;
use super::metadata::Metadata;
use super::stream::{End, FrameRecord, Layout, Stream, Totals};
use super::wire::{Frame, Head, Header, Trailer};

/// A record of lines.
pub(super) struct Jsonl<W> {
    output: W,
    export: Export,
    /// Counts of the frames written.
    totals: Totals,
}

impl<W: Write> Jsonl<W> {
    pub(super) fn new(output: W, export: Export) -> Self {
        Self {
            output,
            export,
            totals: Totals::default(),
        }
    }

    fn header(&mut self, metadata: &Metadata) -> io::Result<()> {
        let metadata = Head::new(metadata, None);
        write_line(&mut self.output, &Header { metadata })
    }
}

impl<W: Write + Send> Layout for Jsonl<W> {
    fn frame(&mut self, frame: &FrameRecord<'_>, stream: &Stream) -> io::Result<()> {
        if stream.totals.frames == 1 {
            self.header(&stream.metadata)?;
        }
        let frame = Frame::new(frame, stream, &self.export);
        write_line(&mut self.output, &frame)?;
        self.totals = stream.totals;
        Ok(())
    }

    /// Closes the record. An incomplete record has no trailer, which shows readers that it is
    /// incomplete.
    fn close(&mut self, end: End, stream: &Stream) -> io::Result<Totals> {
        if end == End::Complete {
            if stream.totals.frames == 0 {
                self.header(&stream.metadata)?;
            }
            let trailer = Head::new(&stream.metadata, Some(stream.totals));
            write_line(&mut self.output, &Trailer { trailer })?;
        }
        Ok(self.totals)
    }
}

/// Writes each line at once, so that the reader of a pipe gets whole lines.
fn write_line(output: &mut impl Write, content: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(content)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}
