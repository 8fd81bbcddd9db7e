// SPDX-License-Identifier: MPL-2.0
//! A record that is being written from buffers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::config::Config;
use super::drops::Listener;
use super::error::OutputError;
use super::following::Following;
use super::output::Output;
use super::partial::RecordFile;
use super::{CAT, TrackJsonSink};
use crate::meta::{FaceTrackMeta, FrameShape, MetaError, MissingMetaCounter};
use crate::options::{self, Format};
use crate::{stream, video};
use facetrack::record::completeness::{Ending, Found, Promise};
use facetrack::record::timeline::{Before, Timeline};
use facetrack::record::{Completeness, End, FrameRecord, Metadata, Record, Totals};
use facetrack::report::{FrameReport, FrameStatus, ReportSource};

/// Generator in a record without analysed frames.
const GENERATOR: &str = concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION"));

/// A record that is being written.
pub(super) struct Recording {
    pub(super) record: Record,
    /// The record's file, for its name; `None` for standard output, pipes and devices.
    file: Option<RecordFile>,
    pub(super) config: Config,
    /// The stream that is recorded.
    pub(super) following: Following,
    timeline: Timeline,
    /// Frames per second by the caps.
    nominal: Option<f64>,
    /// True while the pipeline requests the streaming thread.
    unlocked: Arc<AtomicBool>,
    /// Source of the last frame that had one.
    last_source: Option<Arc<ReportSource>>,
    /// Status of the last analysed frame.
    last_analysis: Option<FrameStatus>,
    pub(super) missing_meta: MissingMetaCounter,
    /// Listens for dropped frames.
    _listener: Option<Listener>,
    /// True if unreadable metadata was already reported.
    warned: bool,
}

impl Recording {
    /// Opens the destination of `sink`.
    ///
    /// # Errors
    /// Returns an error if the file may not be replaced or can't be created.
    pub(super) fn open(
        config: Config,
        unlocked: Arc<AtomicBool>,
        sink: &TrackJsonSink,
    ) -> Result<Self, OutputError> {
        let (destination, settings) = (&config.destination, &config.settings);
        destination.check(settings)?;
        let metadata = Metadata {
            generator: GENERATOR.to_owned(),
            video_path: settings.video_path.clone().unwrap_or_default(),
            options: options::shaping(settings),
            ..Metadata::default()
        };
        let export = config.export.clone();
        let output = destination.open(settings, unlocked.clone())?;
        let (record, file) = match output {
            Output::Pipe(output) => (Ok(Record::jsonl(output, export, metadata)), None),
            Output::File(file) => {
                let storage = file.clone();
                let record = match settings.format {
                    Format::Jsonl => Ok(Record::jsonl(storage, export, metadata)),
                    Format::Dense => Record::dense(storage, export, metadata),
                    Format::Reduced => Record::reduced(storage, metadata),
                };
                (record, Some(file))
            }
        };
        let following = Following::default();
        Ok(Self {
            _listener: following.drops.listen(sink),
            following,
            record: record.map_err(|error| {
                discard(file.as_ref());
                OutputError::Write(destination.partial(), error)
            })?,
            file,
            timeline: Timeline::new(config.filling()),
            config,
            nominal: None,
            unlocked,
            last_source: None,
            last_analysis: None,
            missing_meta: MissingMetaCounter::default(),
            warned: false,
        })
    }

    /// Returns true if the analysis has failed, now or during the recording that is replayed. This
    /// stops the stream, but sources still send an end-of-stream.
    pub(super) fn is_broken(&self) -> bool {
        self.last_analysis == Some(FrameStatus::Error)
    }

    /// Takes rate and size from the stream's caps. `path` names the video, unless the user has done
    /// so; `fingerprint` is the one of its file.
    pub(super) fn set_caps(
        &mut self,
        caps: &gst::CapsRef,
        is_live: bool,
        path: Option<String>,
        fingerprint: Option<String>,
    ) {
        let rate = video::rate(caps);
        self.timeline.set_rate(rate);
        self.following.is_live = is_live;
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
        if let (Some(path), None) = (path, &self.config.settings.video_path) {
            metadata.video_path = path;
        }
        metadata.video_fingerprint = fingerprint;
    }

    /// Begins a segment.
    pub(super) fn begin(&mut self, segment: &gst::Segment) {
        self.timeline.reset();
        self.following.begin(segment);
    }

    /// Notes that the next frame may have any time.
    pub(super) fn flush(&mut self) {
        self.timeline.reset();
        self.following.goes_on = false;
        self.following.drops.take();
        self.following.shown.flush();
    }

    /// Takes what a list of tags says of the frames at `pad`.
    pub(super) fn read_tags(&mut self, tags: &gst::TagListRef, pad: &gst::Pad) {
        self.following.read_tags(tags);
        let [orientation, turned] = self.following.turns(pad);
        let metadata = self.record.metadata_mut();
        (metadata.orientation, metadata.turned) = (orientation, turned);
    }

    /// Records a buffer that counts, and the missing frames before it. `may_drop` is true if this
    /// element may drop late buffers. Returns true if this buffer shows that the stream has no
    /// metadata.
    ///
    /// # Errors
    /// Returns [`OutputError::Interrupted`], [`OutputError::Write`].
    pub(super) fn buffer(
        &mut self,
        buffer: &gst::BufferRef,
        may_drop: bool,
    ) -> Result<bool, OutputError> {
        if !self.following.shown.counts(buffer) && !self.following.is_live {
            gst::debug!(CAT, "{:?} is not counted", buffer.pts());
            return Ok(false);
        }
        let period = self.timeline.period();
        let continuity = self.following.frame(buffer, period, may_drop);
        let timestamp = buffer.pts().map(gst::ClockTime::nseconds);
        let before = self.timeline.frame(timestamp, continuity);
        self.fill(before)?;
        let pts = self.following.times.of_frame(buffer.pts());
        let report = self.report(buffer);
        let is_gap = buffer.flags().contains(gst::BufferFlags::GAP);
        self.frame(&match &report {
            Ok(report) => FrameRecord::of(report, pts),
            Err(_) if is_gap => FrameRecord::empty(FrameStatus::Gap, pts),
            Err(_) => FrameRecord::empty(FrameStatus::Skipped, pts),
        })?;
        // A gap may have no picture, so that nothing was analysed.
        let is_absent = report == Err(MetaError::Absent);
        Ok(!(is_absent && is_gap) && self.missing_meta.count(!is_absent))
    }

    /// Records an announced gap.
    ///
    /// # Errors
    /// Returns [`OutputError::Interrupted`], [`OutputError::Write`].
    pub(super) fn gap(&mut self, gap: &gst::event::Gap) -> Result<(), OutputError> {
        self.following.goes_on = false;
        let (start, duration, continuity) = stream::extent_of_gap(gap);
        let before = self.timeline.gap(start, duration, continuity);
        self.fill(before)
    }

    /// Ends the record, compares it with the promised end of the video, and gives the file its
    /// final name. Returns the metadata of the record, and its numbers of frames and faces.
    ///
    /// # Errors
    /// Returns [`OutputError`]. Everything written is kept.
    pub(super) fn finish(
        mut self,
        promise: &Promise,
        ending: Ending,
    ) -> Result<(Metadata, Totals), OutputError> {
        for time in self.following.dropped_at_the_end() {
            self.frame(&FrameRecord::empty(FrameStatus::Gap, Some(time)))?;
        }
        let rate = self
            .timeline
            .rhythm()
            .rate(self.nominal, self.record.drift());
        let found = Found {
            end: self.following.end,
            ending,
            period: self.timeline.period().unwrap_or(0.0),
            longest: self.timeline.rhythm().longest(),
            frames: self.following.shown.frames(),
            recorded: self.record.totals().frames,
            decode_errors: self.following.decode_errors,
            corrupted: self.following.corrupted,
            dropped: self.following.dropped,
        };
        let metadata = self.record.metadata_mut();
        metadata.fps = rate.fps;
        metadata.variable_rate = rate.is_variable;
        metadata.completeness = Completeness::of(promise, &found);
        let totals = self.close(End::Complete)?;
        if let Some(file) = &self.file {
            let (destination, settings) = (&self.config.destination, &self.config.settings);
            file.finish(&destination.name(), settings.overwrite)?;
        }
        Ok((std::mem::take(self.record.metadata_mut()), totals))
    }

    /// Ends a record that was interrupted. A file keeps the name of an unfinished file, and is
    /// readable. Returns its path and the number of its frames; `None` without a frame, or without
    /// a file.
    ///
    /// # Errors
    /// Returns [`OutputError::Write`].
    pub(super) fn abandon(mut self) -> Result<Option<(PathBuf, u64)>, OutputError> {
        let written = self.close(End::Broken)?;
        if written.frames == 0 {
            discard(self.file.as_ref());
        }
        let is_kept = written.frames > 0 && self.file.is_some();
        Ok(is_kept.then(|| (self.config.destination.partial(), written.frames)))
    }

    fn frame(&mut self, frame: &FrameRecord<'_>) -> Result<(), OutputError> {
        self.record.metadata_mut().start_time = self.following.times.start();
        let written = self.record.frame(frame);
        written.map_err(|error| self.write_error(error))
    }

    fn close(&mut self, end: End) -> Result<Totals, OutputError> {
        let closed = self.record.close(end);
        closed.map_err(|error| self.write_error(error))
    }

    fn write_error(&self, error: std::io::Error) -> OutputError {
        if self.file.is_none() && self.unlocked.load(Ordering::Relaxed) {
            return OutputError::Interrupted;
        }
        OutputError::Write(self.config.destination.partial(), error)
    }

    fn fill(&mut self, before: Before) -> Result<(), OutputError> {
        match before {
            Before::Nothing => Ok(()),
            Before::Hole(hole) => {
                gst::info!(CAT, "{} frames are missing and filled in", hole.frames);
                hole.times().try_for_each(|timestamp| {
                    if self.unlocked.load(Ordering::Relaxed) {
                        return Err(OutputError::Interrupted);
                    }
                    // The last time may exceed the maximum time of GStreamer.
                    let timestamp = gst::ClockTime::try_from(Duration::from_nanos(timestamp));
                    let pts = self.following.times.of_frame(timestamp.ok());
                    self.frame(&FrameRecord::empty(FrameStatus::Gap, pts))
                })
            }
            Before::Jump(seconds) => {
                gst::warning!(
                    CAT,
                    "timestamps jump by {seconds:.1} s; the gap is too long to fill"
                );
                Ok(())
            }
        }
    }

    /// Returns the report on a buffer, and applies what it states about the stream. Warns once
    /// about unreadable metadata.
    fn report(&mut self, buffer: &gst::BufferRef) -> Result<FrameReport, MetaError> {
        let report = FaceTrackMeta::read(buffer);
        match &report {
            Ok(report) => self.know(report, buffer),
            Err(MetaError::Absent) => (),
            Err(error) if !self.warned => {
                gst::warning!(CAT, "{error}; such frames are recorded as skipped");
                self.warned = true;
            }
            Err(_) => (),
        }
        report
    }

    /// Takes what an analysed frame says of the stream.
    fn know(&mut self, report: &FrameReport, buffer: &gst::BufferRef) {
        self.last_analysis = Some(report.status);
        let is_first = self.record.totals().frames == 0;
        let metadata = self.record.metadata_mut();
        if is_first {
            (metadata.width, metadata.height) = (report.width, report.height);
            let frame = FaceTrackMeta::analysed_frame(buffer);
            metadata.pixel_aspect_ratio = frame.and_then(FrameShape::pixel_stretch);
        }
        // The engine may move to another device, or be changed.
        if self.last_source.as_ref() != Some(&report.source) {
            metadata.take_source(&report.source);
            self.last_source = Some(report.source.clone());
        }
    }
}

/// Removes a file without frames.
fn discard(file: Option<&RecordFile>) {
    if let Some(Err(error)) = file.map(RecordFile::discard) {
        gst::warning!(CAT, "an empty file cannot be removed: {error}");
    }
}
