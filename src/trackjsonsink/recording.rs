// SPDX-License-Identifier: MPL-2.0
//! A record under way, fed with buffers.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::CAT;
use super::config::Config;
use super::following::Following;
use super::output::{Destination, Existing, OutputError};
use crate::meta::{FaceTrackMeta, FrameShape, MetaError};
use crate::options::Format;
use crate::video;
use facetrack::record::completeness::{Found, Promise};
use facetrack::record::timeline::{Before, Continuity, Timeline};
use facetrack::record::{Completeness, End, FrameRecord, Metadata, Record, Totals};
use facetrack::report::{FrameReport, FrameStatus};

/// What the record says of its maker where no analysed frame says it.
const GENERATOR: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));

/// Frames without metadata after which the sink says so. Our choice: a second or two of video.
const BARE_FRAMES: u64 = 50;

/// A record under way.
pub(super) struct Recording {
    record: Record,
    /// The record's file, for its name; `None` for standard output.
    file: Option<File>,
    destination: Destination,
    existing: Existing,
    following: Following,
    timeline: Timeline,
    /// Frames per second that the caps say.
    nominal: Option<f64>,
    /// Whether the user states the video's path.
    has_own_path: bool,
    /// Set while the pipeline wants the streaming thread back.
    unlocked: Arc<AtomicBool>,
    /// What became of the last analysed frame.
    last_analysis: Option<FrameStatus>,
    metadata: Carried,
    /// Whether a record that can't be read has been told of.
    warned: bool,
}

/// Whether frames carry metadata.
enum Carried {
    /// None of so many frames has.
    Nothing(u64),
    /// One has, or its lack is known.
    Settled,
}

/// Why a frame was not recorded.
pub(super) enum Stop {
    /// The pipeline wants the streaming thread back.
    Unlocked,
    /// The record can't be written.
    Failed(OutputError),
}

impl From<OutputError> for Stop {
    fn from(error: OutputError) -> Self {
        Self::Failed(error)
    }
}

/// A record that is finished.
pub(super) struct Finished {
    /// Where it is.
    pub(super) location: PathBuf,
    /// The video as the record names it.
    pub(super) video: String,
    pub(super) totals: Totals,
    pub(super) completeness: Completeness,
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
    pub(super) fn open(config: Config, unlocked: Arc<AtomicBool>) -> Result<Self, OutputError> {
        let Config {
            destination,
            existing,
            format,
            export,
            filling,
            video_path,
            options,
        } = config;
        destination.check(existing)?;
        let file = destination.open()?;
        let metadata = Metadata {
            generator: GENERATOR.to_owned(),
            video_path: video_path.clone().unwrap_or_default(),
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
            following: Following::new(),
            timeline: Timeline::new(filling),
            nominal: None,
            has_own_path: video_path.is_some(),
            unlocked,
            last_analysis: None,
            metadata: Carried::Nothing(0),
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
    pub(super) fn set_caps(&mut self, caps: &gst::CapsRef, is_live: bool) {
        let rate = video::rate(caps);
        self.timeline.set_rate(rate);
        self.following.set_live(is_live);
        let metadata = self.record.metadata_mut();
        if let Some((frames, seconds)) = rate.filter(|(frames, _)| *frames > 0)
            && self.nominal.is_none()
        {
            let fps = f64::from(frames) / f64::from(seconds);
            self.nominal = Some(fps);
            metadata.fps = fps;
        }
        if metadata.width == 0 {
            (metadata.width, metadata.height) = video::size(caps);
        }
    }

    /// Names the video, unless the user has done so.
    pub(super) fn set_video_path(&mut self, path: String) {
        if !self.has_own_path {
            self.record.metadata_mut().video_path = path;
        }
    }

    /// The stream that is recorded.
    pub(super) fn following(&self) -> &Following {
        &self.following
    }

    /// Begins a segment.
    pub(super) fn begin(&mut self, segment: &gst::Segment) {
        self.timeline.reset();
        self.following.begin(segment);
        self.record.metadata_mut().start_time = self.following.start();
    }

    /// Expects nothing of the next frame's time.
    pub(super) fn flush(&mut self) {
        self.timeline.reset();
        self.following.flush();
    }

    /// Takes what a list of tags says of the frames at `pad`.
    pub(super) fn read_tags(&mut self, tags: &gst::TagListRef, pad: &gst::Pad) {
        self.following.read_tags(tags);
        self.record.metadata_mut().orientation = self.following.orientation(pad);
    }

    /// Records a buffer, and what is missing before it. `may_drop` says whether late buffers are dropped on their way.
    ///
    /// # Errors
    /// [`Stop`].
    pub(super) fn buffer(&mut self, buffer: &gst::BufferRef, may_drop: bool) -> Result<(), Stop> {
        let continuity = match self.following.frame(buffer, self.timeline.period()) {
            Continuity::Continuous if may_drop => Continuity::Uncertain,
            continuity => continuity,
        };
        let timestamp = buffer.pts().map(gst::ClockTime::nseconds);
        let before = self.timeline.frame(timestamp, continuity);
        self.fill(before)?;
        let pts = self.following.time(buffer.pts());
        Ok(match self.report(buffer) {
            Some(report) => {
                self.know(&report, FaceTrackMeta::analysed_frame(buffer));
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
        }?)
    }

    /// Records an announced gap.
    ///
    /// # Errors
    /// [`Stop`].
    pub(super) fn gap(&mut self, gap: &gst::event::Gap) -> Result<(), Stop> {
        let continuity = self.following.gap(gap);
        let (start, duration) = gap.get();
        let duration = duration.map(gst::ClockTime::nseconds);
        let before = self.timeline.gap(start.nseconds(), duration, continuity);
        self.fill(before)
    }

    /// Whether frames have come and none of them carried metadata, for the first time that this is certain: after a while, or
    /// when the stream `has_ended`.
    pub(super) fn lacks_metadata(&mut self, has_ended: bool) -> bool {
        let Carried::Nothing(frames) = self.metadata else {
            return false;
        };
        let lacks = frames >= BARE_FRAMES || has_ended && frames > 0;
        if lacks {
            self.metadata = Carried::Settled;
        }
        lacks
    }

    /// Ends the record well, compared with what was promised of the video; the file has its name afterwards.
    ///
    /// # Errors
    /// [`OutputError`]. What was written is kept.
    pub(super) fn finish(mut self, promise: &Promise) -> Result<Finished, OutputError> {
        let rate = self.timeline.rhythm().rate(self.nominal);
        let found = Found {
            end: self.following.end(),
            period: self.timeline.period().unwrap_or(0.0),
            longest: self.timeline.rhythm().longest(),
            fps: Some(rate.fps).filter(|fps| !rate.is_variable && *fps > 0.0),
            decode_errors: self.following.decode_errors(),
            corrupted: self.following.corrupted(),
        };
        let completeness = Completeness::of(promise, &found);
        let metadata = self.record.metadata_mut();
        metadata.fps = rate.fps;
        metadata.variable_rate = rate.is_variable;
        metadata.completeness = completeness.clone();
        let video = metadata.video_path.clone();
        let totals = self
            .record
            .close(End::Complete)
            .map_err(|source| self.write_error(source))?;
        self.destination.finish(self.file.as_mut(), self.existing)?;
        Ok(Finished {
            location: self.destination.name(),
            video,
            totals,
            completeness,
        })
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

    fn fill(&mut self, before: Before) -> Result<(), Stop> {
        match before {
            Before::Nothing => Ok(()),
            Before::Hole(hole) => {
                gst::info!(CAT, "{} frames are missing and filled in", hole.frames);
                hole.times().try_for_each(|timestamp| {
                    if self.unlocked.load(Ordering::Relaxed) {
                        return Err(Stop::Unlocked);
                    }
                    let timestamp = gst::ClockTime::from_nseconds(timestamp);
                    let pts = self.following.time(Some(timestamp));
                    Ok(self.frame(&FrameRecord::empty(FrameStatus::Gap, pts))?)
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
        let read = FaceTrackMeta::read(buffer);
        match (&mut self.metadata, &read) {
            (Carried::Nothing(frames), Err(MetaError::Absent)) => {
                // Nobody analyses what is no picture.
                *frames += u64::from(!buffer.flags().contains(gst::BufferFlags::GAP));
            }
            (metadata, _) => *metadata = Carried::Settled,
        }
        match read {
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
    fn know(&mut self, report: &FrameReport, frame: Option<FrameShape>) {
        self.last_analysis = Some(report.status);
        let is_first = self.record.totals().frames == 0;
        let metadata = self.record.metadata_mut();
        if is_first {
            (metadata.width, metadata.height) = (report.width, report.height);
            metadata.pixel_aspect_ratio = frame.and_then(FrameShape::pixel_stretch);
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
