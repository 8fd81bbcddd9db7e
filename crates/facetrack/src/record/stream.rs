// SPDX-License-Identifier: MPL-2.0
//! The frames of a stream as a record takes them, and the interface to its formats.

use std::io;

use super::metadata::Metadata;
use crate::report::{FrameReport, FrameStatus, SearchExtent, TrackedFace};

/// One frame of a stream.
#[derive(Debug, Clone, Copy)]
pub struct FrameRecord<'a> {
    /// Time in the video, ns.
    pub pts: Option<u64>,
    /// Status of the frame.
    pub status: FrameStatus,
    /// See [`FrameReport::cut`](crate::report::FrameReport::cut).
    pub cut: bool,
    /// See [`FrameReport::search`](crate::report::FrameReport::search).
    pub search: SearchExtent,
    /// See [`FrameReport::repeated`](crate::report::FrameReport::repeated).
    pub repeated: bool,
    /// Faces in any order; those without a position are left out.
    pub faces: &'a [TrackedFace],
    /// Width and height of the frame that the faces' positions belong to, px; `None` for the size
    /// in the metadata.
    pub size: Option<(u32, u32)>,
    /// The engine of the frame; `None` for the one in the metadata.
    pub engine: Option<&'a str>,
}

impl<'a> FrameRecord<'a> {
    /// The frame of a report.
    pub fn of(report: &'a FrameReport, pts: Option<u64>) -> Self {
        Self {
            pts,
            status: report.status,
            cut: report.cut,
            search: report.search,
            repeated: report.repeated,
            faces: &report.faces,
            size: Some((report.width, report.height)),
            engine: Some(&report.source.engine),
        }
    }

    /// A frame without faces.
    pub fn empty(status: FrameStatus, pts: Option<u64>) -> Self {
        Self {
            pts,
            status,
            cut: false,
            search: SearchExtent::of(status, &[]),
            repeated: false,
            faces: &[],
            size: None,
            engine: None,
        }
    }
}

/// End of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The record has all of the stream.
    Complete,
    /// The stream was interrupted.
    Broken,
}

/// Counts of recorded frames and faces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Frames, padded ones included.
    pub frames: u64,
    /// Frames with the status `gap`.
    pub padded: u64,
    /// Faces, summed over the frames.
    pub faces: u64,
    /// Number of the first frame with corrected blendshapes; `None` if there is none.
    pub corrected_from: Option<u64>,
}

/// The stream up to now.
pub(crate) struct Stream {
    pub(crate) metadata: Metadata,
    pub(crate) totals: Totals,
}

/// One of the formats.
pub(super) trait Layout: Send {
    /// Writes the last frame of `stream`.
    fn frame(&mut self, frame: &FrameRecord<'_>, stream: &Stream) -> io::Result<()>;

    /// Writes the end of the record. Returns the counts of written frames and faces.
    fn close(&mut self, end: End, stream: &Stream) -> io::Result<Totals>;
}
