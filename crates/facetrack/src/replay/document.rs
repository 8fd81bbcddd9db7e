// SPDX-License-Identifier: MPL-2.0
//! Finds the frames of a dense record that another program has reformatted.

use std::io::{ErrorKind, Read, Seek};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::index::{End, Entry, Index};
use super::{LIMIT, ReplayError, no_record};
use crate::record::wire::{Head, from_json};
use facetrack_assets::file;

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Document<'a> {
    metadata: Option<Head>,
    #[serde(borrow)]
    frames: Option<Vec<&'a RawValue>>,
    frames_analysis: Option<IgnoredAny>,
}

/// The index of the record in `storage`. The whole record is in memory during the call.
///
/// # Errors
/// Returns [`ReplayError`].
pub(super) fn index(storage: &mut (impl Read + Seek)) -> Result<Index, ReplayError> {
    let text = read(storage)?;
    let document: Document = from_json(&text).map_err(|error| no_record(&error, 1))?;
    if document.frames_analysis.is_some() {
        return Err(ReplayError::Reduced);
    }
    let (Some(head), Some(frames)) = (document.metadata, document.frames) else {
        return Err(ReplayError::NoRecord {
            line: 1,
            column: 1,
            reason: "`metadata` and `frames` are missing".to_owned(),
        });
    };
    let mut entries = Vec::new();
    let (mut line, mut seen) = (1, 0);
    for frame in frames {
        let frame = frame.get().as_bytes();
        // Both point into the same allocation.
        let offset = frame.as_ptr().addr() - text.as_ptr().addr();
        line += text[seen..offset].iter().filter(|b| **b == b'\n').count() as u64;
        seen = offset;
        let entry = Entry::new(frame, offset as u64, line);
        entries.push(entry.map_err(|error| no_record(&error, line))?);
    }
    Index::new(entries, head, None, End::Finished)
}

fn read(storage: &mut (impl Read + Seek)) -> Result<Vec<u8>, ReplayError> {
    storage.rewind()?;
    match file::read_from(storage, LIMIT as u64) {
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Err(ReplayError::TooLarge),
        text => Ok(text?),
    }
}
