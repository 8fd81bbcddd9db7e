// SPDX-License-Identifier: MPL-2.0
//! The jsonl format: each line a JSON object of its own, for pipes and live use.

use std::io::{self, Write};

use serde::Serialize;

use super::{End, Export, FrameRecord, Layout, Metadata, Totals};
use crate::wire::{Frame, Head, Header, Trailer};

/// A record of lines.
pub(super) struct Jsonl<W> {
    output: W,
    export: Export,
    line: Vec<u8>,
    has_header: bool,
    /// Counts of the frames written.
    totals: Totals,
}

impl<W: Write> Jsonl<W> {
    pub(super) fn new(output: W, export: Export) -> Self {
        Self {
            output,
            export,
            line: Vec::new(),
            has_header: false,
            totals: Totals::default(),
        }
    }

    fn header(&mut self, metadata: &Metadata) -> io::Result<()> {
        if self.has_header {
            return Ok(());
        }
        self.has_header = true;
        let metadata = Head::new(metadata, None);
        write_line(&mut self.output, &mut self.line, &Header { metadata })
    }
}

impl<W: Write + Send> Layout for Jsonl<W> {
    fn frame(
        &mut self,
        frame: &FrameRecord<'_>,
        metadata: &Metadata,
        totals: Totals,
    ) -> io::Result<()> {
        self.header(metadata)?;
        let size = (metadata.width, metadata.height);
        let frame = Frame::new(frame, totals.frames, &self.export, size);
        write_line(&mut self.output, &mut self.line, &frame)?;
        self.totals = totals;
        Ok(())
    }

    /// A broken record has no trailer: that is how a reader knows.
    fn close(&mut self, end: End, metadata: &Metadata, totals: Totals) -> io::Result<Totals> {
        if end == End::Complete {
            self.header(metadata)?;
            let trailer = Head::new(metadata, Some(totals));
            write_line(&mut self.output, &mut self.line, &Trailer { trailer })?;
        }
        Ok(self.totals)
    }
}

/// One write a line, so that a reader at the other end of a pipe sees whole lines.
fn write_line(
    output: &mut impl Write,
    line: &mut Vec<u8>,
    content: &impl Serialize,
) -> io::Result<()> {
    line.clear();
    serde_json::to_writer(&mut *line, content)?;
    line.push(b'\n');
    output.write_all(line)?;
    output.flush()
}
