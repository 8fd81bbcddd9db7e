// SPDX-License-Identifier: MPL-2.0
//! The dense format: all of every frame.

use std::io::{self, SeekFrom};

use serde::Serialize;

use super::array::{ArrayDocument, Storage};
use super::metadata::MetadataJson;
use super::object::{DenseObject, placed};
use super::{End, Export, FrameRecord, Layout, Metadata, Totals};

/// Blanks kept behind the metadata, at least, for the counts and the models that are known only later. Our choice: several
/// times what five models with their hashes and the reason for a device need. What is kept is a multiple of it, so that
/// streams whose metadata are the same at the end have the same file, whenever they were known.
const SLACK: usize = 4096;

const CLOSING: &[u8] = b"\n]}\n";

/// A dense record.
pub(super) struct Dense<S> {
    document: ArrayDocument<S>,
    export: Export,
    /// Metadata as first written, and the bytes kept for it.
    first: Metadata,
    reserved: usize,
}

impl<S: Storage> Dense<S> {
    pub(super) fn new(storage: S, export: Export) -> Self {
        Self {
            document: ArrayDocument::new(storage),
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
        self.reserved = (opening.len() + SLACK).next_multiple_of(SLACK);
        self.first = metadata.clone();
        opening.resize(self.reserved, b' ');
        opening.extend_from_slice(b",\"frames\":[");
        self.document.open(|| opening);
        Ok(())
    }

    /// The head with final counts in the bytes that were kept for it. Where foreign metadata outgrows them, those known
    /// at the beginning stay.
    fn final_head(&self, metadata: &Metadata, totals: Totals) -> io::Result<Vec<u8>> {
        let mut head_bytes = head(metadata, totals)?;
        if head_bytes.len() > self.reserved {
            head_bytes = head(&self.first, totals)?;
        }
        head_bytes.resize(self.reserved, b' ');
        Ok(head_bytes)
    }
}

impl<S: Storage> Layout for Dense<S> {
    fn frame(
        &mut self,
        frame: &FrameRecord<'_>,
        metadata: &Metadata,
        totals: Totals,
    ) -> io::Result<()> {
        self.open(metadata)?;
        let frame = DenseFrame::new(frame, totals.frames, &self.export, metadata);
        self.document.line(
            |line| Ok(serde_json::to_writer(line, &frame)?),
            totals,
            CLOSING,
        )
    }

    fn close(&mut self, end: End, metadata: &Metadata, totals: Totals) -> io::Result<Totals> {
        self.open(metadata)?;
        let written = self.document.finish(totals, CLOSING)?;
        if self.document.is_empty() {
            return Ok(written);
        }
        let head = self.final_head(metadata, written)?;
        let storage = self.document.storage();
        storage.seek(SeekFrom::Start(0))?;
        storage.write_all(&head)?;
        storage.flush()?;
        if end == End::Complete {
            storage.sync()?;
        }
        Ok(written)
    }
}

fn head(metadata: &Metadata, totals: Totals) -> io::Result<Vec<u8>> {
    let mut bytes = b"{\"metadata\":".to_vec();
    let totals = Some(totals);
    serde_json::to_writer(&mut bytes, &MetadataJson { metadata, totals })?;
    Ok(bytes)
}

/// A line of the dense and of the jsonl format.
#[derive(Serialize)]
pub(super) struct DenseFrame<'a> {
    frame: u64,
    tracked_objects: Vec<DenseObject<'a>>,
    pts: Option<u64>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
}

impl<'a> DenseFrame<'a> {
    pub(super) fn new(
        frame: &FrameRecord<'a>,
        number: u64,
        export: &'a Export,
        metadata: &Metadata,
    ) -> Self {
        let own_size = frame
            .size
            .filter(|size| *size != (metadata.width, metadata.height));
        Self {
            frame: number,
            tracked_objects: placed(frame.faces)
                .iter()
                .map(|face| DenseObject::new(face, export))
                .collect(),
            pts: frame.pts,
            status: frame.status.name(),
            width: own_size.map(|(width, _)| width),
            height: own_size.map(|(_, height)| height),
        }
    }
}
