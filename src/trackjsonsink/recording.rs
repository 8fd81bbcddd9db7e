// SPDX-License-Identifier: MPL-2.0
//! A record under way, fed with buffers.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use super::config::{Config, Gaps};
use super::imp::CAT;
use super::output::{Destination, Existing, OutputError};
use crate::face::options::trackjsonsink::Format;
use crate::face::record::timeline::{Before, Timeline};
use crate::face::record::{End, FrameRecord, Metadata, Record, Totals};
use crate::face::report::{FrameReport, FrameStatus};
use crate::meta::{FaceTrackMeta, MetaError};
use crate::video;

/// What the record says of its maker where no analysed frame says it.
const GENERATOR: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));

/// A record under way.
pub(super) struct Recording {
    record: Record,
    /// The record's file, for its name; `None` for standard output.
    file: Option<File>,
    destination: Destination,
    existing: Existing,
    gaps: Gaps,
    timeline: Timeline,
    /// What became of the last analysed frame.
    last_analysis: Option<FrameStatus>,
    /// Whether a record that can't be read has been told of.
    warned: bool,
}

/// How a record broke off.
pub(super) enum Abandoned {
    /// With these frames in this file.
    Kept(PathBuf, u64),
    /// Without a frame, or on standard output.
    Nothing,
}

impl Recording {
    /// Opens the destination.
    ///
    /// # Errors
    /// When it may not be replaced or can't be created.
    pub(super) fn open(config: Config) -> Result<Self, OutputError> {
        let Config {
            destination,
            existing,
            format,
            export,
            gaps,
            options,
        } = config;
        destination.check(existing)?;
        let file = destination.open()?;
        let metadata = Metadata {
            generator: GENERATOR.to_owned(),
            options,
            ..Metadata::default()
        };
        let handle = match &file {
            None => None,
            Some(file) => Some(file.try_clone().map_err(|source| OutputError::Create {
                path: destination.partial(),
                source,
            })?),
        };
        let record = match (handle, format) {
            (None, _) => Record::jsonl(io::stdout(), export, metadata),
            (Some(handle), Format::Jsonl) => Record::jsonl(handle, export, metadata),
            (Some(handle), Format::Dense) => Record::dense(handle, export, metadata),
            (Some(handle), Format::Reduced) => Record::reduced(handle, metadata),
        };
        Ok(Self {
            record,
            file,
            destination,
            existing,
            gaps,
            timeline: Timeline::default(),
            last_analysis: None,
            warned: false,
        })
    }

    /// What was recorded.
    pub(super) fn totals(&self) -> Totals {
        self.record.totals()
    }

    /// Whether the analysis has failed, now or when what is replayed was recorded. That stops a stream, and then sources send
    /// an end-of-stream all the same.
    pub(super) fn is_broken(&self) -> bool {
        self.last_analysis == Some(FrameStatus::Error)
    }

    /// Takes rate and size from the stream's caps.
    pub(super) fn set_caps(&mut self, caps: &gst::CapsRef) {
        let rate = video::rate(caps);
        self.timeline
            .set_rate(rate.filter(|_| self.gaps == Gaps::Fill));
        let metadata = self.record.metadata_mut();
        if let Some((frames, seconds)) = rate.filter(|(frames, _)| *frames > 0)
            && metadata.fps == 0.0
        {
            metadata.fps = f64::from(frames) / f64::from(seconds);
        }
        if metadata.width == 0 {
            (metadata.width, metadata.height) = video::size(caps);
        }
    }

    /// Names the video.
    pub(super) fn set_video_path(&mut self, path: String) {
        self.record.metadata_mut().video_path = path;
    }

    /// Expects nothing of the next frame's time.
    pub(super) fn reset_time(&mut self) {
        self.timeline.reset();
    }

    /// Records a buffer, and what is missing before it.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub(super) fn buffer(&mut self, buffer: &gst::BufferRef) -> Result<(), OutputError> {
        let pts = buffer.pts().map(gst::ClockTime::nseconds);
        let before = self.timeline.frame(pts);
        self.fill(before)?;
        match self.report(buffer) {
            Some(report) => {
                self.know(&report);
                self.frame(&FrameRecord {
                    pts,
                    status: report.status,
                    faces: &report.faces,
                    size: Some((report.width, report.height)),
                })
            }
            None if buffer.flags().contains(gst::BufferFlags::GAP) => {
                self.frame(&FrameRecord::empty(FrameStatus::Gap, pts))
            }
            None => self.frame(&FrameRecord::empty(FrameStatus::Skipped, pts)),
        }
    }

    /// Records an announced gap.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub(super) fn gap(
        &mut self,
        start: gst::ClockTime,
        duration: Option<gst::ClockTime>,
    ) -> Result<(), OutputError> {
        let duration = duration.map(gst::ClockTime::nseconds);
        let before = self.timeline.gap(start.nseconds(), duration);
        self.fill(before)
    }

    /// Ends the record well; the file has its name afterwards.
    ///
    /// # Errors
    /// [`OutputError`]. What was written is kept.
    pub(super) fn finish(mut self) -> Result<(), OutputError> {
        self.record
            .close(End::Complete)
            .map_err(|source| self.write_error(source))?;
        self.destination.finish(self.file.as_mut(), self.existing)
    }

    /// Ends a record that broke off. A file keeps its name for files under way, and is readable.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub(super) fn abandon(mut self) -> Result<Abandoned, OutputError> {
        let written = self
            .record
            .close(End::Broken)
            .map_err(|source| self.write_error(source))?;
        if written.frames == 0 {
            self.destination.discard();
            return Ok(Abandoned::Nothing);
        }
        Ok(match self.destination {
            Destination::Stdout => Abandoned::Nothing,
            destination => Abandoned::Kept(destination.partial(), written.frames),
        })
    }

    fn frame(&mut self, frame: &FrameRecord<'_>) -> Result<(), OutputError> {
        self.record
            .frame(frame)
            .map_err(|source| self.write_error(source))
    }

    fn fill(&mut self, before: Before) -> Result<(), OutputError> {
        match before {
            Before::Nothing => Ok(()),
            Before::Hole(hole) => {
                gst::info!(CAT, "{} frames are missing and filled in", hole.frames);
                hole.times().try_for_each(|time| {
                    self.frame(&FrameRecord::empty(FrameStatus::Gap, Some(time)))
                })
            }
            Before::Jump(seconds) => {
                gst::warning!(
                    CAT,
                    "timestamps jump by {seconds:.1} s, which is not filled"
                );
                Ok(())
            }
        }
    }

    fn report(&mut self, buffer: &gst::BufferRef) -> Option<FrameReport> {
        match FaceTrackMeta::read(buffer) {
            Ok(report) => Some(report),
            Err(MetaError::Absent) => None,
            Err(error) => {
                if !self.warned {
                    gst::warning!(CAT, "{error}; such frames are recorded as skipped");
                }
                self.warned = true;
                None
            }
        }
    }

    /// Takes what an analysed frame says of the stream.
    fn know(&mut self, report: &FrameReport) {
        self.last_analysis = Some(report.status);
        let is_first = self.record.totals().frames == 0;
        let metadata = self.record.metadata_mut();
        if is_first {
            (metadata.width, metadata.height) = (report.width, report.height);
        }
        // An engine may come to run elsewhere.
        if metadata.source.as_ref() != Some(&report.source) {
            metadata.source = Some(report.source.clone());
        }
    }

    fn write_error(&self, source: io::Error) -> OutputError {
        OutputError::Write {
            path: self.destination.partial(),
            source,
        }
    }
}
