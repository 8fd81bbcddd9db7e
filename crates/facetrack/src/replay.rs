// SPDX-License-Identifier: MPL-2.0
//! Reads the JSON record of a stream back, frame by frame: the inverse of
//! [`record`](super::record).
//!
//! A dense or jsonl record is recognised by its content, not by its name. It may lack its end, if
//! the stream broke off. Opening a record scans it once and keeps the position of each frame, which
//! takes about 70 bytes of memory per frame. The faces of a frame are parsed when they are needed.
//!
//! Reading a verbose record and writing it again yields the same text. Rounded numbers need some
//! care for this: see `record::wire::rounded`. Values that a record does not contain are absent.

mod document;
mod head;
mod index;
mod lines;
mod look_ahead;
#[doc(hidden)]
pub mod matching;
#[doc(hidden)]
pub mod video;

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

pub use self::head::Times;
use self::index::{End, Entry, Index};
pub use self::look_ahead::LookAhead;
use super::record::wire::Frame;
use super::record::{SCHEMA, SCHEMA_1};
use super::report::{FrameReport, FrameStatus, ReportSource};

/// Maximum length of a line, and of a record with another layout, in MiB. A frame with a hundred
/// meshes has 2 MiB. Our choice.
const LIMIT_MIB: usize = 256;

/// This length in bytes.
const LIMIT: usize = LIMIT_MIB << 20;

/// Frames per second of a record without times and rate. Our choice.
pub const ANY_FPS: f64 = 25.0;

/// Reason why a record can't be read. The message follows the record's name.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The system cannot read the file.
    #[error("it cannot be read: {0}. Set location to a readable copy")]
    Read(#[from] io::Error),
    /// The file is empty.
    #[error("it is empty: record it again")]
    Empty,
    /// The file is not a record, or is damaged.
    #[error(
        "line {line}, column {column}: {reason}. The file was not written by trackjsonsink with format=dense or format=jsonl"
    )]
    NoRecord {
        /// Line, from 1.
        line: u64,
        /// Byte of that line, from 1.
        column: usize,
        /// The reason.
        reason: String,
    },
    /// The file is a reduced record.
    #[error("it is a reduced record, which has no boxes: record with format=dense or format=jsonl")]
    Reduced,
    /// The record has a layout that this reader does not know.
    #[error(
        "it has the schema {0:?}, but this plugin reads {SCHEMA:?} and {SCHEMA_1:?}: update the plugin"
    )]
    Schema(String),
    /// The metadata contradict themselves.
    #[error("its metadata is damaged: {0}. Record it again")]
    Head(String),
    /// Lines are missing, or there are too many.
    #[error(
        "it has {frames} frames, but its metadata says {stated}: lines were removed or damaged. Record it again, or correct total_frames"
    )]
    Count {
        /// `total_frames` in its metadata.
        stated: u64,
        /// Number of frames in it.
        frames: u64,
    },
    /// A frame contradicts itself.
    #[error("line {line}, frame {frame}: {reason}. Record it again, or fix the line")]
    Frame {
        /// Line on which the frame begins, from 1.
        line: u64,
        /// The frame's number.
        frame: u64,
        /// The reason.
        reason: String,
    },
    /// A line is longer than any frame.
    #[error("line {line} is longer than {LIMIT_MIB} MiB: trackjsonsink writes one frame per line")]
    TooLong {
        /// Line, from 1.
        line: u64,
    },
    /// The record does not have one frame per line, and is too large to be read as a whole.
    #[error(
        "it is larger than {LIMIT_MIB} MiB and does not have one frame per line: format it as trackjsonsink does"
    )]
    TooLarge,
}

/// A record that can be read back.
#[derive(Debug)]
pub struct Replay<S> {
    storage: S,
    index: Index,
    /// The frame that was read last, as text.
    text: Vec<u8>,
    /// Channels of the last blendshapes, reused for the next ones if they are the same.
    channels: Arc<[String]>,
    /// Source of the last frame, reused for the next one if it has the same engine.
    source: Arc<ReportSource>,
}

impl<S: Read + Seek> Replay<S> {
    /// Recognises a record and finds its frames.
    ///
    /// # Errors
    /// Returns [`ReplayError`].
    pub fn open(mut storage: S) -> Result<Self, ReplayError> {
        let index = lines::index(&mut storage)?;
        Ok(Self {
            storage,
            source: index.source.clone(),
            index,
            text: Vec::new(),
            channels: Arc::new([]),
        })
    }

    /// Number and time of every frame, in the record's order.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (u64, Option<u64>)> {
        let entries = self.index.entries.iter();
        entries.map(|entry| (entry.number, entry.pts))
    }

    /// Time of the frame at a place in this order, ns; `None` if it has none.
    pub fn time(&self, place: usize) -> Option<u64> {
        self.index.entries.get(place)?.pts
    }

    /// Time of every frame. Without one in the record, it follows from the number of the frame and the
    /// rate, or [`ANY_FPS`].
    pub fn frame_times(&self) -> Vec<Duration> {
        let fps = self.fps().unwrap_or(ANY_FPS);
        let by_rate = |number: u64| number.saturating_sub(1) as f64 / fps;
        let by_rate = |number| Duration::try_from_secs_f64(by_rate(number)).unwrap_or_default();
        let frames = self.frames();
        let times =
            frames.map(|(number, pts)| pts.map_or_else(|| by_rate(number), Duration::from_nanos));
        times.collect()
    }

    /// The line that a broken end has cut off, from 1; the frames before it are whole.
    pub fn cut_line(&self) -> Option<u64> {
        match self.index.end {
            End::CutAt(line) => Some(line),
            End::Finished | End::Unfinished => None,
        }
    }

    /// Returns true if the record was finished and has all of its lines.
    pub fn is_finished(&self) -> bool {
        self.index.end == End::Finished
    }

    /// The report for a frame, by its index in [`Replay::frames`]; `None` if the frame was not
    /// analysed. `video` is the size of the frames, in px, if the record does not contain it.
    ///
    /// # Errors
    /// Returns [`ReplayError::Read`], [`ReplayError::Frame`].
    ///
    /// # Panics
    /// Panics if the frame does not exist.
    pub fn report(
        &mut self,
        place: usize,
        video: (u32, u32),
    ) -> Result<Option<FrameReport>, ReplayError> {
        let entry = self.index.entries[place];
        self.read(entry)?;
        let damaged = |reason| ReplayError::Frame {
            line: entry.line,
            frame: entry.number,
            reason,
        };
        let frame: Frame =
            serde_json::from_slice(&self.text).map_err(|error| damaged(reason_in_frame(&error)))?;
        let is_skipped = matches!(frame.status(), FrameStatus::Skipped | FrameStatus::Gap);
        if is_skipped && !self.index.has_source(place) {
            return Ok(None);
        }
        let engine = frame.engine().unwrap_or(&self.index.source.engine);
        if self.source.engine != engine {
            self.source = with_engine(&self.index.source, engine);
        }
        let size = self.index.head.size().unwrap_or(video);
        let report = frame.report(self.source.clone(), size, &mut self.channels);
        report.map(Some).map_err(damaged)
    }

    /// The text of a frame: a JSON object. `place` is its index in [`Replay::frames`].
    ///
    /// # Errors
    /// Returns [`ReplayError::Read`].
    ///
    /// # Panics
    /// Panics if the frame does not exist.
    pub fn text(&mut self, place: usize) -> Result<&[u8], ReplayError> {
        self.read(self.index.entries[place])?;
        Ok(&self.text)
    }

    fn read(&mut self, entry: Entry) -> io::Result<()> {
        self.storage.seek(SeekFrom::Start(entry.offset))?;
        let missing = entry.length.saturating_sub(self.text.len());
        self.text.try_reserve_exact(missing)?;
        self.text.resize(entry.length, 0);
        self.storage.read_exact(&mut self.text)
    }
}

/// The source of a frame for which the engine was changed.
fn with_engine(source: &ReportSource, engine: &str) -> Arc<ReportSource> {
    Arc::new(ReportSource {
        engine: engine.to_owned(),
        ..source.clone()
    })
}

/// The error of a text that begins on `line`.
fn no_record(error: &serde_json::Error, line: u64) -> ReplayError {
    ReplayError::NoRecord {
        line: line + (error.line() as u64).saturating_sub(1),
        column: error.column(),
        reason: reason(error),
    }
}

/// The error in a frame and its position in the text of the frame.
fn reason_in_frame(error: &serde_json::Error) -> String {
    let (reason, column) = (reason(error), error.column());
    match error.line() {
        0 | 1 => format!("{reason} at column {column} of the frame"),
        line => format!("{reason} at line {line}, column {column} of the frame"),
    }
}

/// The error without its position.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = text.rfind(" at line ").unwrap_or(text.len());
    text[..place].to_owned()
}
