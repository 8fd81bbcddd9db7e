// SPDX-License-Identifier: MPL-2.0
//! A record that is being replayed.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gst::glib;
use gst::prelude::*;
use thiserror::Error;

use crate::meta::{FaceTrackMeta, FrameShape, TrackHistory};
use crate::options::{LoadSettings, MatchBy, OnMismatch};
use crate::orientation::Orientation;
use crate::shown::{self, Shown};
use crate::stream::{self, VideoTimes};
use crate::video;
use facetrack::replay::matching::{Counter, Frames};
use facetrack::replay::video::{Difference, Video};
use facetrack::replay::{LookAhead, Replay, ReplayError, Times};
use facetrack::report::{FrameReport, SearchExtent};
use facetrack_assets::file;

/// Reason why a record can't be replayed. The message names the file.
#[derive(Debug, Error)]
pub(super) enum ReplayingError {
    /// The location is not set.
    #[error("location is not set. Set it to a file written by trackjsonsink")]
    NoLocation,
    /// The system cannot open the file.
    #[error("{path} cannot be opened: {1}. Set location to a file written by trackjsonsink", path = .0.display())]
    Open(PathBuf, #[source] std::io::Error),
    /// The path is a folder, pipe or device.
    #[error("{path} is not a regular file, so it cannot be read in the order of the buffers. Set location to a file written by trackjsonsink", path = .0.display())]
    NotRegular(PathBuf),
    /// The content of the file is invalid.
    #[error("{path}: {1}", path = .0.display())]
    Content(PathBuf, #[source] ReplayError),
    /// GStreamer refuses the metadata.
    #[error("{0}")]
    Attach(#[from] glib::BoolError),
}

/// Maximum difference of the times of a frame between containers, ns: some round them to
/// milliseconds.
const ROUNDING: u64 = 1_000_000;

/// Maximum difference of the times of a frame and of the record of the same frame, ns: the default
/// tolerance.
const SAME_FRAME: u64 = 2 * ROUNDING;

/// Maximum duration that may be lost at the beginning of a video, ns. If more seems to be lost, the
/// stream only has other times than the recorded one. Our choice: some damaged frames.
const MAX_LOST: u64 = 250_000_000;

/// Properties of the played video that are known to the elements upstream.
#[derive(Debug)]
pub(super) struct Source {
    /// The rotation that frames still need for display, and the one that was applied to them.
    turns: [Option<String>; 2],
    fingerprint: Option<String>,
    duration: Option<Duration>,
}

impl Source {
    /// Asks the elements before `pad`. The caller must hold no lock.
    pub(super) fn before(pad: &gst::Pad, orientation: &Orientation) -> Self {
        Self {
            turns: orientation.turns_at(pad),
            fingerprint: shown::fingerprint_at(pad),
            duration: pad
                .peer_query_duration::<gst::ClockTime>()
                .map(Duration::from),
        }
    }
}

/// A record that is being replayed.
pub(super) struct Replaying {
    path: PathBuf,
    replay: Replay<File>,
    look_ahead: LookAhead,
    frames: Frames,
    pub(super) counter: Counter,
    /// Frames of the stream that the sink has counted.
    pub(super) shown: Shown,
    /// True if the next segment comes from a seek.
    pub(super) is_sought: bool,
    /// True if the next frame is the first one after a seek.
    is_first: bool,
    times: VideoTimes,
    /// True if `times` has the scale of the record.
    is_aligned: bool,
    match_by: MatchBy,
    on_mismatch: OnMismatch,
    /// True if the video that is played differs from the one of the record.
    is_other_video: bool,
    /// A difference that was found in a frame, until it is reported.
    found: Option<Difference>,
    /// True if it comes from the same file.
    is_same_file: bool,
    /// True if frames come in their order and all of them.
    is_in_order: bool,
    /// True if the video has to be compared with the one of the record.
    is_unchecked: bool,
    orientation: Orientation,
    /// Tolerance, ns.
    tolerance: u64,
    /// Shape of the stream's frames.
    video: FrameShape,
    /// Frames per second by the caps.
    fps: Option<f64>,
    /// Times since which the faces have been seen in this pass through the file.
    history: TrackHistory,
}

impl Replaying {
    /// Opens the file of the settings.
    ///
    /// # Errors
    /// Returns [`ReplayingError`].
    pub(super) fn open(settings: LoadSettings) -> Result<Self, ReplayingError> {
        let path = settings.location.ok_or(ReplayingError::NoLocation)?;
        let replay = Replay::open(open_file(&path)?)
            .map_err(|error| ReplayingError::Content(path.clone(), error))?;
        Ok(Self {
            look_ahead: LookAhead::new(Duration::from_secs_f32(settings.look_ahead)),
            frames: Frames::new(replay.frames()),
            path,
            counter: Counter::new(replay.filling()),
            replay,
            shown: Shown::default(),
            is_sought: false,
            is_first: false,
            is_aligned: false,
            times: VideoTimes::default(),
            match_by: settings.match_by,
            on_mismatch: settings.on_mismatch,
            is_other_video: false,
            found: None,
            is_same_file: false,
            is_in_order: true,
            is_unchecked: true,
            orientation: Orientation::default(),
            tolerance: u64::from(settings.tolerance) * 1_000_000,
            video: FrameShape::square(0, 0),
            fps: None,
            history: TrackHistory::default(),
        })
    }

    /// Returns the number of frames.
    pub(super) fn len(&self) -> usize {
        self.replay.frames().len()
    }

    /// A description of the missing part of the file.
    pub(super) fn defect(&self) -> Option<String> {
        let line = self.replay.cut_line()?;
        let path = self.path.display();
        Some(format!(
            "{path} ends in the middle of line {line}: the {} frames before it are used",
            self.len()
        ))
    }

    /// Takes rate and shape of the stream.
    pub(super) fn set_caps(&mut self, caps: &gst::CapsRef) {
        let (width, height) = video::size(caps);
        self.video = FrameShape::square(width, height);
        let stream = caps.structure(0);
        if let Some(ratio) = stream.and_then(|stream| stream.get("pixel-aspect-ratio").ok()) {
            self.video.pixel_aspect_ratio = ratio;
        }
        let rate = video::rate(caps);
        self.counter.set_rate(rate);
        self.fps = rate.map(|(frames, seconds)| f64::from(frames) / f64::from(seconds));
        self.is_unchecked = true;
    }

    /// Begins a stream, which may be another video.
    pub(super) fn begin_stream(&mut self) {
        self.orientation = Orientation::default();
        self.is_unchecked = true;
    }

    /// Takes the orientation from a list of tags.
    pub(super) fn read_tags(&mut self, tags: &gst::TagListRef) {
        self.is_unchecked |= self.orientation.update(tags).is_some();
    }

    /// The orientation of the stream, once after each change of the video.
    pub(super) fn take_unchecked(&mut self) -> Option<Orientation> {
        std::mem::take(&mut self.is_unchecked).then(|| self.orientation.clone())
    }

    /// Compares the video that is played with the video of the record. Returns a warning that names
    /// the difference.
    pub(super) fn check(&mut self, source: Source) -> Option<String> {
        let FrameShape { width, height, .. } = self.video;
        let [orientation, turned] = source.turns;
        let played = Video {
            size: (width > 0 && height > 0).then_some((width, height)),
            pixel_aspect_ratio: Some(self.video.pixel_stretch().unwrap_or(1.0)),
            orientation,
            turned,
            fingerprint: source.fingerprint,
            fps: self.fps.filter(|fps| *fps > 0.0),
            duration: source.duration,
        };
        let recorded = self.replay.video();
        self.is_same_file = recorded.is_same_file(&played);
        let mut difference = recorded.difference(&played);
        if self.match_by == MatchBy::Frame {
            difference = difference.or_else(|| recorded.rate_difference(&played));
        }
        self.is_other_video = difference.is_some();
        difference.map(|it| self.warning(&it))
    }

    /// A warning about the difference that was found in the last frame, if one was found.
    pub(super) fn take_warning(&mut self) -> Option<String> {
        let difference = self.found.take()?;
        Some(self.warning(&difference))
    }

    fn warning(&self, difference: &Difference) -> String {
        let (path, remedy) = (self.path.display(), remedy(difference));
        format!("{path} may be a record of another video: {difference}. {remedy}")
    }

    /// Begins a segment. Only the segment of a seek changes the position in the record; other
    /// segments continue it, as the sink has counted them.
    pub(super) fn begin(&mut self, segment: &gst::Segment) {
        self.shown.begin(segment);
        if self.is_sought {
            self.times.begin_within();
            self.look_ahead.restart();
        }
        self.times.begin(segment);
        let skips = segment
            .flags()
            .contains(gst::SegmentFlags::TRICKMODE_KEY_UNITS);
        self.is_in_order = segment.rate() > 0.0 && !skips;
        self.is_unchecked = true;
        let segment = segment.downcast_ref::<gst::ClockTime>();
        let start = segment.and_then(|segment| segment.time());
        let start = start.map_or(0, gst::ClockTime::nseconds);
        self.history = TrackHistory::default();
        self.is_first = self.is_sought;
        if std::mem::take(&mut self.is_sought) {
            self.counter.seek(start, self.replay.fps());
        } else {
            self.counter.go_on(start);
        }
    }

    /// Attaches the report for a buffer of a segment to it. Returns true if the file has one.
    ///
    /// # Errors
    /// Returns [`ReplayingError::Content`], [`ReplayingError::Attach`].
    pub(super) fn attach(
        &mut self,
        buffer: &mut gst::BufferRef,
        segment: &gst::Segment,
    ) -> Result<bool, ReplayingError> {
        let Some(report) = self.report(buffer, segment)? else {
            // Another record may be of more frames, and know less about this one.
            FaceTrackMeta::detach(buffer);
            return Ok(false);
        };
        let segment = segment.clone().downcast::<gst::ClockTime>();
        let now = segment.unwrap_or_default().to_running_time(buffer.pts());
        let times = self.history.observe(&report, now);
        FaceTrackMeta::attach_seen(buffer, &report, self.video, &times)?;
        Ok(true)
    }

    /// The report for a buffer of a segment; `None` if the file has none.
    fn report(
        &mut self,
        buffer: &gst::BufferRef,
        segment: &gst::Segment,
    ) -> Result<Option<FrameReport>, ReplayingError> {
        if !self.shown.counts(buffer) {
            return Ok(None);
        }
        let timestamp = buffer.pts().map(gst::ClockTime::nseconds);
        let number = self.counter.frame(timestamp, stream::continuity_of(buffer));
        let time = match self.replay.times() {
            Times::Timestamps => timestamp,
            Times::Stream(start) => self.time(buffer, start),
        };
        let is_cut = std::mem::take(&mut self.is_first) && is_at_start(buffer, segment);
        let same = self.place(number, time);
        let Some(place) = same.or_else(|| self.shown(time.filter(|_| is_cut)?, buffer)) else {
            return Ok(None);
        };
        let times = time.zip(self.replay.time(place)).filter(|_| same.is_some());
        let is_of_another_frame = times.is_some_and(|times| self.check_times(times));
        let size = (self.video.width, self.video.height);
        let report = self.look_ahead.report(&mut self.replay, place, size);
        let mut report =
            report.map_err(|error| ReplayingError::Content(self.path.clone(), error))?;
        if let Some(report) = &mut report {
            let extent = if self.is_other_video && self.on_mismatch == OnMismatch::Warn {
                SearchExtent::OtherVideo
            } else if is_of_another_frame && self.on_mismatch == OnMismatch::Warn {
                SearchExtent::None
            } else {
                SearchExtent::Whole
            };
            report.search = report.search.max(extent);
        }
        Ok(report)
    }

    /// Compares the times of a frame and of its recorded frame, ns. Returns true if they differ by more
    /// than containers round them, so that another frame was analysed.
    ///
    /// In the recorded file, frames that are matched by number have the recorded times. Otherwise
    /// frames are missing, and the numbers are those of other frames.
    fn check_times(&mut self, (played, recorded): (u64, u64)) -> bool {
        let distance = played.abs_diff(recorded);
        if self.match_by == MatchBy::Frame {
            if self.is_same_file && !self.is_other_video && distance > self.tolerance.max(ROUNDING)
            {
                self.is_other_video = true;
                self.found = Some(Difference::Number {
                    recorded: Duration::from_nanos(recorded),
                    played: Duration::from_nanos(played),
                });
            }
            return false;
        }
        distance > SAME_FRAME
    }

    /// Time of a frame in a record whose times count from the stream time `start`, ns.
    fn time(&mut self, buffer: &gst::BufferRef, start: u64) -> Option<u64> {
        if !std::mem::replace(&mut self.is_aligned, true) && self.times.start() == 0 {
            self.align(buffer, start);
        }
        self.times.of_frame(buffer.pts())
    }

    /// Finds the position in the stream at which the record begins, from its first frame: as in the
    /// recorded file, or with this frame. If the stream does not begin with its video, it is as in
    /// the recorded file or at the stream time 0.
    fn align(&mut self, buffer: &gst::BufferRef, start: u64) {
        let now = self.times.at(buffer.pts());
        // In the same file the times have the same scale, also if the first frames are missing.
        if self.is_same_file && now.is_some_and(|now| now >= start) {
            self.times.start_at(start);
            return;
        }
        let other = (!self.times.is_open()).then_some(start);
        let mut likely = std::iter::once(start).chain(other.map(|_| 0));
        let likely = likely.find(|start| self.begins_at(buffer, *start));
        // The start of a stream that begins with its video may still change if it is with this frame.
        let is_known = |start: &u64| other.is_some() || Some(*start) != now;
        if let Some(start) = likely.or(other).filter(is_known) {
            self.times.start_at(start);
        }
    }

    /// Returns true if the record has a frame for a buffer, provided that its times count from the
    /// stream time `start`, ns.
    fn begins_at(&self, buffer: &gst::BufferRef, start: u64) -> bool {
        let time = self.times.at(buffer.pts());
        let time = time.and_then(|time| time.checked_sub(start));
        let is_possible = start > 0 || !self.times.has_clock();
        is_possible && time.is_some_and(|time| time <= MAX_LOST && self.frames.has(time, ROUNDING))
    }

    /// The frame that is shown at a time, ns, for a buffer that begins in the middle of it: decoders
    /// shorten the frame at the target of a seek.
    fn shown(&self, time: u64, buffer: &gst::BufferRef) -> Option<usize> {
        if self.match_by == MatchBy::Frame {
            return None;
        }
        let end = time + buffer.duration()?.nseconds();
        self.frames.shown_until(end, self.tolerance)
    }

    fn place(&mut self, number: u64, pts: Option<u64>) -> Option<usize> {
        match (self.match_by, pts) {
            (MatchBy::Auto, Some(pts)) if self.frames.have_times() => {
                self.frames.at(pts, self.tolerance)
            }
            (MatchBy::Pts, pts) => self.frames.at(pts?, self.tolerance),
            (MatchBy::Auto | MatchBy::Frame, _) if self.is_in_order => self.frames.numbered(number),
            (MatchBy::Auto | MatchBy::Frame, _) => None,
        }
    }
}

/// The remedy for a difference of the videos.
fn remedy(difference: &Difference) -> &'static str {
    match difference {
        Difference::Turned { .. } => {
            "Put videoflip video-direction=auto before trackjsonload, or remove it, as in the pipeline that recorded the file"
        }
        Difference::Size { .. } | Difference::Pixels { .. } => {
            "Remove elements that scale, crop or turn the frames, or record the file again"
        }
        Difference::Number { .. } => {
            "Set match=pts, or play the video as in the pipeline that recorded the file"
        }
        _ => "Set location to the record of this video, or record it again",
    }
}

/// Returns true if a buffer begins with its segment.
fn is_at_start(buffer: &gst::BufferRef, segment: &gst::Segment) -> bool {
    let segment = segment.downcast_ref::<gst::ClockTime>();
    buffer.pts().is_some() && segment.is_some_and(|segment| segment.start() == buffer.pts())
}

fn open_file(path: &Path) -> Result<File, ReplayingError> {
    file::open(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => ReplayingError::NotRegular(path.to_owned()),
        _ => ReplayingError::Open(path.to_owned(), error),
    })
}
