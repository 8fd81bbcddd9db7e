// SPDX-License-Identifier: MPL-2.0
//! The reduced format: the output of the pipeline's reducer for a dense record.

use std::io;

use super::array::{ArrayDocument, Storage};
use super::{End, FrameRecord, Layout, Metadata, Totals};
use crate::wire::ReducedFrame;

const OPENING: &[u8] = b"{\"frames_analysis\":[";

/// A reduced record.
pub(super) struct Reduced<S> {
    document: ArrayDocument<S>,
}

impl<S: Storage> Reduced<S> {
    pub(super) fn new(storage: S) -> Self {
        Self {
            document: ArrayDocument::new(storage),
        }
    }
}

impl<S: Storage> Layout for Reduced<S> {
    fn frame(
        &mut self,
        frame: &FrameRecord<'_>,
        metadata: &Metadata,
        totals: Totals,
    ) -> io::Result<()> {
        self.document.open(|| OPENING.to_vec());
        let frame = ReducedFrame::new(frame, totals.frames);
        self.document.line(
            |line| Ok(serde_json::to_writer(line, &frame)?),
            totals,
            &closing(metadata, totals)?,
        )
    }

    fn close(&mut self, end: End, metadata: &Metadata, totals: Totals) -> io::Result<Totals> {
        self.document.open(|| OPENING.to_vec());
        let written = self.document.finish(totals, &closing(metadata, totals)?)?;
        if end == End::Complete {
            self.document.storage().sync()?;
        }
        Ok(written)
    }
}

fn closing(metadata: &Metadata, totals: Totals) -> io::Result<Vec<u8>> {
    let mut bytes = b"\n],\"fps\":".to_vec();
    serde_json::to_writer(&mut bytes, &metadata.fps)?;
    bytes.extend_from_slice(b",\"total_frames\":");
    serde_json::to_writer(&mut bytes, &totals.frames)?;
    bytes.extend_from_slice(b"}\n");
    Ok(bytes)
}
