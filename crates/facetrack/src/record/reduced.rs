// SPDX-License-Identifier: MPL-2.0
//! The reduced format: the output of the pipeline's reducer for a dense record.

use std::io;

use super::array::{ArrayDocument, Storage};
use super::{End, FrameRecord, Layout, Stream, Totals};
use crate::wire::ReducedFrame;

const OPENING: &[u8] = b"{\"frames_analysis\":[";

/// A reduced record.
pub(super) struct Reduced<S> {
    document: ArrayDocument<S>,
}

impl<S: Storage> Reduced<S> {
    pub(super) fn new(storage: S) -> Self {
        Self {
            document: ArrayDocument::new(storage, OPENING),
        }
    }
}

impl<S: Storage> Layout for Reduced<S> {
    fn frame(&mut self, frame: &FrameRecord<'_>, stream: &Stream) -> io::Result<()> {
        let frame = ReducedFrame::new(frame, stream);
        self.document.line(&frame, stream.totals, &closing(stream)?)
    }

    fn close(&mut self, end: End, stream: &Stream) -> io::Result<Totals> {
        let written = self.document.finish(stream.totals, &closing(stream)?)?;
        if end == End::Complete {
            self.document.storage().sync()?;
        }
        Ok(written)
    }
}

fn closing(stream: &Stream) -> io::Result<Vec<u8>> {
    let fps = serde_json::to_string(&stream.metadata.fps)?;
    let frames = stream.totals.frames;
    Ok(format!("\n],\"fps\":{fps},\"total_frames\":{frames}}}\n").into_bytes())
}
