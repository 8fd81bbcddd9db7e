// SPDX-License-Identifier: MPL-2.0
//! The reduced format: the output of the pipeline's reducer for a dense record.

use std::io;

use super::array::{ArrayDocument, Storage};
use super::metadata::Metadata;
use super::stream::{End, FrameRecord, Layout, Stream, Totals};
use super::wire::ReducedFrame;

const OPENING: &[u8] = b"{\"frames_analysis\":[";

/// A reduced record.
pub(super) struct Reduced<S> {
    document: ArrayDocument<S>,
}

impl<S: Storage> Reduced<S> {
    pub(super) fn new(storage: S, metadata: &Metadata) -> io::Result<Self> {
        let closing = closing(metadata, Totals::default())?;
        let document = ArrayDocument::new(storage, OPENING.to_vec(), &closing)?;
        Ok(Self { document })
    }
}

impl<S: Storage> Layout for Reduced<S> {
    fn frame(&mut self, frame: &FrameRecord<'_>, stream: &Stream) -> io::Result<()> {
        let frame = ReducedFrame::new(frame, stream);
        let closing = closing(&stream.metadata, stream.totals)?;
        self.document.line(&frame, stream.totals, &closing)
    }

    fn close(&mut self, _end: End, stream: &Stream) -> io::Result<Totals> {
        let closing = closing(&stream.metadata, stream.totals)?;
        self.document.finish(stream.totals, &closing)
    }
}

fn closing(metadata: &Metadata, totals: Totals) -> io::Result<Vec<u8>> {
    let fps = serde_json::to_string(&metadata.fps)?;
    let frames = totals.frames;
    Ok(format!("\n],\"fps\":{fps},\"total_frames\":{frames}}}\n").into_bytes())
}
