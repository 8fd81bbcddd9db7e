// SPDX-License-Identifier: MPL-2.0
//! Positions of the frames of a record.

use std::sync::Arc;

use serde::Deserialize;

use super::ReplayError;
use crate::record::wire::{self, Head};
use crate::report::{FrameStatus, ReportSource};

/// A frame's place in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// Number of the frame in the stream.
    pub(super) number: u64,
    /// Time, ns.
    pub(super) pts: Option<u64>,
    /// First byte.
    pub(super) offset: u64,
    /// Bytes.
    pub(super) length: usize,
    /// Line of the first byte, from 1.
    pub(super) line: u64,
    /// True if an engine has analysed the frame.
    is_analysed: bool,
}

/// End of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The record is whole.
    Finished,
    /// The writer has not finished the record.
    Unfinished,
    /// The record was cut off within this line, counted from 1.
    CutAt(u64),
}

/// A record without its faces.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) entries: Vec<Entry>,
    /// The engine that analysed the frames.
    pub(super) source: Arc<ReportSource>,
    /// The first frame whose source is known.
    source_from: Option<usize>,
    /// The last metadata of the record.
    pub(super) head: Head,
    pub(super) end: End,
}

/// The fields of a frame that identify it. Serde skips its faces.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
struct OutlineJson {
    frame: u64,
    pts: Option<u64>,
    status: Option<String>,
}

impl Entry {
    /// Reads the frame in `text`, which is at `offset` and on `line`.
    ///
    /// # Errors
    /// Returns the reason why the text is not a frame.
    pub(super) fn new(text: &[u8], offset: u64, line: u64) -> serde_json::Result<Self> {
        let frame: OutlineJson = wire::from_json(text)?;
        let status = frame.status.as_deref().and_then(wire::from_name);
        Ok(Self {
            number: frame.frame,
            pts: frame.pts,
            offset,
            length: text.len(),
            line,
            is_analysed: !matches!(status, Some(FrameStatus::Skipped | FrameStatus::Gap)),
        })
    }
}

impl Index {
    /// Creates the index of a record with this head at its beginning and, if it has one, this one
    /// at its end.
    ///
    /// # Errors
    /// Returns [`ReplayError::Schema`], [`ReplayError::Head`], [`ReplayError::Frame`] if numbers do
    /// not rise, or [`ReplayError::Count`].
    pub(super) fn new(
        entries: Vec<Entry>,
        first: Head,
        last: Option<Head>,
        end: End,
    ) -> Result<Self, ReplayError> {
        first.check()?;
        last.as_ref().map_or(Ok(()), Head::check)?;
        check_numbers(&entries)?;
        let named_at_first = first.knows_engine().then_some(0);
        let head = last.unwrap_or(first);
        let end = checked_end(&head, entries.len() as u64, end)?;
        let analysed = entries.iter().position(|entry| entry.is_analysed);
        let named_at_last = analysed.filter(|_| head.knows_engine());
        Ok(Self {
            entries,
            source: head.source(),
            source_from: named_at_first.or(named_at_last),
            head,
            end,
        })
    }

    /// Returns true if an engine had analysed this frame or one before it.
    pub(super) fn has_source(&self, place: usize) -> bool {
        self.source_from.is_some_and(|from| place >= from)
    }
}

/// Returns the end of a record with so many frames, if `end` follows from its last line. A dense
/// record has no count before it is finished, and records of other programs may count something
/// else.
fn checked_end(head: &Head, frames: u64, end: End) -> Result<End, ReplayError> {
    let stated = head.total_frames.filter(|_| head.schema.is_some());
    match stated.filter(|stated| *stated != frames) {
        Some(stated) if end == End::Finished && stated > 0 => {
            Err(ReplayError::Count { stated, frames })
        }
        Some(_) if end == End::Finished => Ok(End::Unfinished),
        _ => Ok(end),
    }
}

fn check_numbers(entries: &[Entry]) -> Result<(), ReplayError> {
    let mut pairs = std::iter::zip(entries, entries.iter().skip(1));
    let late = pairs.find(|(before, after)| after.number <= before.number);
    late.map_or(Ok(()), |(before, after)| {
        Err(ReplayError::Frame {
            line: after.line,
            frame: after.number,
            reason: format!("it comes after frame {}", before.number),
        })
    })
}
