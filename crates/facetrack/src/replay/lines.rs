// SPDX-License-Identifier: MPL-2.0
//! Finds the frames of a record with one frame per line, as `trackjsonsink` writes it.

use std::io::{BufRead, BufReader, Read, Seek};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::index::{End, Entry, Index};
use super::{LIMIT, ReplayError, document, no_record};
use crate::record::dense;
use crate::record::wire::{Head, Header, Trailer, from_json};

/// The last line of a dense record.
const DENSE_CLOSING: &[u8] = b"]}";

/// A line that is a whole object.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct FirstLine {
    metadata: Option<Head>,
    frames: Option<IgnoredAny>,
}

/// The index of the record in `storage`.
///
/// # Errors
/// Returns [`ReplayError`].
pub(super) fn index<S: Read + Seek>(storage: &mut S) -> Result<Index, ReplayError> {
    let mut lines = Lines::new(BufReader::with_capacity(1 << 16, &mut *storage));
    while lines.text().is_empty() {
        if !lines.next()? {
            return Err(ReplayError::Empty);
        }
    }
    if let Some(header) = dense::header(lines.text()) {
        let Header { metadata } = header.map_err(|error| no_record(&error, 1))?;
        return dense(metadata, lines);
    }
    match from_json(lines.text()) {
        Ok(FirstLine {
            metadata: Some(head),
            frames: None,
        }) => jsonl(head, lines),
        _ => {
            drop(lines);
            document::index(storage)
        }
    }
}

fn dense(head: Head, mut lines: Lines<impl BufRead>) -> Result<Index, ReplayError> {
    let mut is_closed = false;
    let (entries, cut_line) = lines.entries(|text| {
        is_closed = text == DENSE_CLOSING;
        Ok((!is_closed).then(|| text.strip_suffix(b",").unwrap_or(text)))
    })?;
    Index::new(entries, head, None, end(is_closed, cut_line))
}

fn jsonl(head: Head, mut lines: Lines<impl BufRead>) -> Result<Index, ReplayError> {
    let mut last = None;
    let (entries, cut_line) = lines.entries(|text| {
        if !text.starts_with(b"{\"trailer\"") {
            return Ok(Some(text));
        }
        let Trailer { trailer } = from_json(text)?;
        last = Some(trailer);
        Ok(None)
    })?;
    let end = end(last.is_some(), cut_line);
    Index::new(entries, head, last, end)
}

fn end(is_closed: bool, cut_line: Option<u64>) -> End {
    match cut_line {
        Some(line) => End::CutAt(line),
        None if is_closed => End::Finished,
        None => End::Unfinished,
    }
}

/// Lines with their places.
struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    /// Offset of the line in the text.
    offset: u64,
    /// Number of the line, from 1.
    number: u64,
}

impl<R: BufRead> Lines<R> {
    fn new(reader: R) -> Self {
        Self {
            reader,
            line: Vec::new(),
            offset: 0,
            number: 0,
        }
    }

    /// Goes to the next line. Returns false at the end.
    fn next(&mut self) -> Result<bool, ReplayError> {
        self.offset += self.line.len() as u64;
        self.number += 1;
        self.line.clear();
        let limit = LIMIT as u64 + 1;
        let mut limited = self.reader.by_ref().take(limit);
        let length = limited.read_until(b'\n', &mut self.line)?;
        if length > LIMIT {
            return Err(ReplayError::TooLong { line: self.number });
        }
        Ok(length > 0)
    }

    /// The line without blanks at its ends.
    fn text(&self) -> &[u8] {
        self.line.trim_ascii()
    }

    /// The frames on the lines that are left. `frame` returns the frame that a line contains, if it
    /// contains one. If the last line is cut off, its number is returned.
    fn entries(
        &mut self,
        mut frame: impl FnMut(&[u8]) -> serde_json::Result<Option<&[u8]>>,
    ) -> Result<(Vec<Entry>, Option<u64>), ReplayError> {
        let mut entries = Vec::new();
        while self.next()? {
            if self.text().is_empty() {
                continue;
            }
            let blanks = self.line.len() - self.line.trim_ascii_start().len();
            let offset = self.offset + blanks as u64;
            let entry = |frame| Entry::new(frame, offset, self.number);
            match frame(self.text()).and_then(|frame| frame.map(entry).transpose()) {
                Ok(entry) => entries.extend(entry),
                Err(_) if self.reader.fill_buf()?.is_empty() => {
                    return Ok((entries, Some(self.number)));
                }
                Err(error) => return Err(no_record(&error, self.number)),
            }
        }
        Ok((entries, None))
    }
}
