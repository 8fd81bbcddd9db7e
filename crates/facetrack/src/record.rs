// SPDX-License-Identifier: MPL-2.0
//! The JSON record of a stream: numbers its frames, exports them and writes them in one of three
//! formats.
//!
//! | format | file |
//! |---|---|
//! | dense | `{"metadata":{…},"frames":[`, one frame a line, `]}` |
//! | reduced | `{"frames_analysis":[`, one frame a line, `],"fps":…,"total_frames":…}` |
//! | jsonl | a line with the metadata, one line a frame, a trailer line with the final metadata |
//!
//! Dense and reduced files are whole JSON from the start and after every write, so that an
//! interrupted stream leaves a readable record. If the process is killed during a write, the last
//! line may be cut off and the closing missing; every line before it is whole. The JSON Schema of
//! all three is `schema/facetrack-2.schema.json`.

mod array;
#[doc(hidden)]
pub mod completeness;
#[doc(hidden)]
pub mod container;
pub(crate) mod dense;
mod drift;
mod export;
#[doc(hidden)]
pub mod joining;
mod jsonl;
mod metadata;
mod profile;
mod reduced;
pub(crate) mod rhythm;
mod stream;
#[doc(hidden)]
pub mod timeline;
pub(crate) mod wire;

use std::io::{self, Write};

pub use super::observation::Fields;
pub use array::Storage;
pub use completeness::Completeness;
pub use export::Export;
pub use metadata::Metadata;
pub use profile::{BlendshapeProfile, ProfileError};
pub use stream::{End, FrameRecord, Totals};
pub use wire::{SCHEMA, SCHEMA_1, from_name};

use self::drift::Drift;
use self::stream::{Layout, Stream};
use super::blendshape::Blendshapes;
use super::report::{FrameStatus, TrackedFace};

/// The JSON Schema of records, `schema/facetrack-2.schema.json`.
pub const JSON_SCHEMA: &str = include_str!("../schema/facetrack-2.schema.json");

/// A record that is being written. It keeps only a few lines in memory, however long the stream is.
pub struct Record {
    layout: Box<dyn Layout>,
    stream: Stream,
    drift: Drift,
}

impl Record {
    /// Begins a dense record, with the known `metadata`.
    ///
    /// # Errors
    /// Returns an error if the storage fails.
    pub fn dense(
        storage: impl Storage + 'static,
        export: Export,
        metadata: Metadata,
    ) -> io::Result<Self> {
        let layout = dense::Dense::new(storage, export, metadata.clone())?;
        Ok(Self::new(layout, metadata))
    }

    /// Begins a reduced record, see [`Record::dense`].
    ///
    /// # Errors
    /// Returns an error if the storage fails.
    pub fn reduced(storage: impl Storage + 'static, metadata: Metadata) -> io::Result<Self> {
        let layout = reduced::Reduced::new(storage, &metadata)?;
        Ok(Self::new(layout, metadata))
    }

    /// Begins a record of lines, each flushed when it is whole. The first line is written with the
    /// first frame.
    pub fn jsonl(output: impl Write + Send + 'static, export: Export, metadata: Metadata) -> Self {
        Self::new(jsonl::Jsonl::new(output, export), metadata)
    }

    fn new(layout: impl Layout + 'static, metadata: Metadata) -> Self {
        Self {
            layout: Box::new(layout),
            stream: Stream {
                metadata,
                totals: Totals::default(),
            },
            drift: Drift::default(),
        }
    }

    /// Properties of the stream. They may change until the record is closed, except the size, once
    /// there is a frame: frames of this size do not repeat it, and readers of an interrupted record
    /// use the header that was written first.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.stream.metadata
    }

    /// The numbers of recorded frames and faces.
    pub fn totals(&self) -> Totals {
        self.stream.totals
    }

    /// Deviation of the frames' times from a constant rate.
    pub fn drift(&self) -> &Drift {
        &self.drift
    }

    /// Records the next frame. Its number is one more than the last one's, from 1.
    ///
    /// # Errors
    /// Returns an error if the storage fails. Everything written before stays readable; the record
    /// takes no more frames, only [`Record::close`].
    pub fn frame(&mut self, frame: &FrameRecord<'_>) -> io::Result<()> {
        let totals = &mut self.stream.totals;
        totals.frames += 1;
        totals.faces += frame.faces.len() as u64;
        totals.padded += u64::from(frame.status == FrameStatus::Gap);
        if totals.corrected_from.is_none() && frame.faces.iter().any(is_corrected) {
            totals.corrected_from = Some(totals.frames);
        }
        if let Some(time) = frame.pts {
            self.drift.add(totals.frames, time);
        }
        self.layout.frame(frame, &self.stream)
    }

    /// Ends the record and returns what is in it: after an error, the frames that had reached the
    /// storage.
    ///
    /// # Errors
    /// Returns an error if the storage fails.
    pub fn close(&mut self, end: End) -> io::Result<Totals> {
        self.layout.close(end, &self.stream)
    }
}

fn is_corrected(face: &TrackedFace) -> bool {
    let blendshapes = face.face.blendshapes.as_ref();
    blendshapes.is_some_and(Blendshapes::is_corrected)
}
