// SPDX-License-Identifier: MPL-2.0
//! What the streaming thread keeps between frames.

use std::time::Duration;

use super::calibration::{CalibrationError, CalibrationFile};
use super::clock::FrameClock;
use super::loading::{Change, LoadError, Loaded, Successor};
use super::messages::{self, Moment};
use super::pacing::{Arrival, Pace};
use super::plan::{Live, Plan, Setup};
use crate::meta::{FrameShape, Sighting, Sightings};
use crate::options::{Environment, FaceTrackSettings, LateFrames, Options, PostMessages, Unused};
use crate::orientation::{Orientation, Turn};
use crate::video;
use facetrack::analyzer::Analyzer;
use facetrack::engine::{EngineError, Frame, Notice};
use facetrack::report::{FrameReport, FrameStatus};

/// A loaded engine and the stream that it works on.
pub(super) struct State {
    /// The options that `live` was made of.
    options: Options<FaceTrackSettings>,
    env: Environment,
    setup: Setup,
    live: Live,
    analyzer: Analyzer,
    calibration: Option<CalibrationFile>,
    /// The engine that was set since, or why it can't be had.
    change: Option<Result<Change, LoadError>>,
    /// Whether another engine was set since that began to load.
    engine_set: bool,
    clock: FrameClock,
    info: Option<gst_video::VideoInfo>,
    segment: gst::FormattedSegment<gst::ClockTime>,
    /// The frame at hand, or the last one.
    moment: Moment,
    /// The greatest id that was seen; ids rise.
    last_id: u32,
    sightings: Sightings,
    orientation: Orientation,
}

/// What becomes of a buffer.
pub(super) struct Outcome {
    /// To attach to it.
    pub report: FrameReport,
    /// What it is attached to.
    pub frame: FrameShape,
    /// One for each of its faces.
    pub sightings: Vec<Sighting>,
    /// To post.
    pub messages: Vec<gst::Structure>,
    /// To warn of.
    pub notices: Vec<Notice>,
    /// Whether the frame was analysed, not held.
    pub looked: bool,
}

impl State {
    pub fn new(
        options: Options<FaceTrackSettings>,
        env: Environment,
        plan: Plan,
        loaded: Loaded,
    ) -> Self {
        Self {
            options,
            env,
            setup: plan.setup,
            live: plan.live,
            analyzer: loaded.analyzer,
            calibration: loaded.calibration,
            change: None,
            engine_set: false,
            clock: FrameClock::default(),
            info: None,
            segment: gst::FormattedSegment::new(),
            moment: Moment::default(),
            last_id: 0,
            sightings: Sightings::default(),
            orientation: Orientation::default(),
        }
    }

    /// Whether `plan` can be followed with what is loaded.
    pub fn fits(&self, plan: &Plan) -> bool {
        self.setup == plan.setup
    }

    /// A copy of `options` if they changed.
    pub fn news_of(
        &self,
        options: &Options<FaceTrackSettings>,
    ) -> Option<Options<FaceTrackSettings>> {
        (self.options != *options).then(|| options.clone())
    }

    /// Takes over what may change from frame to frame. Returns the options of other engines if there are others than before.
    pub fn follow(&mut self, options: Options<FaceTrackSettings>) -> Option<Unused> {
        let engine =
            |options: &Options<FaceTrackSettings>| options.resolve(None, &self.env).0.engine;
        let other_engine = engine(&options) != engine(&self.options);
        let unused = options.unused(self.setup.kind);
        let unused_before = self.options.unused(self.setup.kind);
        self.options = options;
        self.live = Live::with(&self.setup, &self.options, &self.env);
        self.analyzer.tune(self.live.tuning);
        self.analyzer.set_options(self.options.explicit());
        self.engine_set |= other_engine;
        unused.filter(|unused| !other_engine && Some(unused) != unused_before.as_ref())
    }

    /// Begins to load the engine that is set, unless it is the one at work.
    fn change_engine(&self) -> Result<Option<Change>, LoadError> {
        let (plan, warnings) = Plan::new(&self.options, &self.env)?;
        if plan.setup.kind == self.setup.kind {
            return Ok(None);
        }
        Change::begin(plan, warnings).map(Some)
    }

    /// The engine that can take over now, or why it can't be had. One at a time is loaded: the one that was set last, when
    /// that before it is there.
    pub fn take_successor(&mut self) -> Option<Result<Successor, LoadError>> {
        let done = self
            .change
            .take_if(|change| change.as_ref().map_or(true, Change::is_done));
        if self.change.is_none() && std::mem::take(&mut self.engine_set) {
            // What is there is not wanted any more; its thread ends before another begins.
            let _ = done.map(|change| change.and_then(Change::finish));
            self.change = self.change_engine().transpose();
            return None;
        }
        Some(done?.and_then(Change::finish))
    }

    /// The engine that is not needed any more.
    pub fn take_change(&mut self) -> Option<Change> {
        self.change.take()?.ok()
    }

    /// Goes on with another engine. It has seen nothing of the stream.
    pub fn succeed(&mut self, plan: Plan, mut loaded: Loaded) {
        loaded.analyzer.succeed(&mut self.analyzer);
        self.setup = plan.setup;
        self.analyzer = loaded.analyzer;
        self.calibration = loaded.calibration;
        // They may have changed since it began to load.
        self.live = Live::with(&self.setup, &self.options, &self.env);
        self.analyzer.tune(self.live.tuning);
    }

    /// Follows the tags of the stream. Returns its orientation if that is another one than before.
    pub fn follow_tags(&mut self, tags: &gst::TagListRef) -> Option<Turn> {
        self.orientation.follow(tags)
    }

    /// Another stream begins, with tags of its own.
    pub fn forget_tags(&mut self) {
        self.orientation = Orientation::default();
    }

    /// Another stream: ids start again.
    pub fn restart(&mut self) {
        self.analyzer.restart();
        self.clock.reset();
        self.info = None;
        self.last_id = 0;
        self.sightings = Sightings::default();
    }

    /// What comes does not continue what was.
    pub fn reset(&mut self) {
        self.analyzer.reset();
        self.clock.reset();
    }

    /// What the engine learned is forgotten.
    pub fn reset_calibration(&mut self) {
        self.analyzer.reset_calibration();
    }

    /// Keeps what the engine learned, where there is a file for that.
    pub fn save_calibration(&mut self) -> Result<(), CalibrationError> {
        let Some(file) = &mut self.calibration else {
            return Ok(());
        };
        let learned = self.analyzer.calibration();
        learned.map_or(Ok(()), |calibration| file.save(calibration))
    }

    pub fn set_info(&mut self, info: gst_video::VideoInfo) {
        if self.info.as_ref().is_some_and(|old| *old != info) {
            self.reset();
        }
        self.clock.set_period(period(info.fps()));
        self.info = Some(info);
    }

    pub fn set_segment(&mut self, segment: &gst::Segment) {
        let segment = segment.downcast_ref::<gst::ClockTime>().cloned();
        let segment = segment.unwrap_or_default();
        if self.segment != segment {
            self.reset();
        }
        self.segment = segment;
    }

    /// The stream's end: every face leaves.
    pub fn end(&mut self) -> Vec<gst::Structure> {
        self.analyzer.reset();
        self.departures()
    }

    /// A line for the log, where one is due; `vram` tells the memory of the GPU, MiB.
    pub fn profile_line(&self, vram: impl FnOnce() -> Option<u64>) -> Option<String> {
        let interval = self.live.profile_interval;
        let profile = self.analyzer.profile();
        let frames = profile.frames();
        let due = interval > 0 && frames > 0 && frames.is_multiple_of(interval);
        due.then(|| profile.line(self.analyzer.info().name, vram()))
    }

    /// What is wanted of frames that come late.
    pub fn late_frames(&self) -> LateFrames {
        self.live.late_frames
    }

    /// A buffer that comes at the running time `now`; `None` where it has no time.
    pub fn arrival(&self, buffer: &gst::BufferRef, now: Option<gst::ClockTime>) -> Option<Arrival> {
        let time = self.segment.to_running_time(buffer.pts())?;
        Some(Arrival {
            now: now?.into(),
            time: time.into(),
            period: self.info.as_ref().and_then(|info| period(info.fps())),
        })
    }

    /// Analyses a buffer, or holds the faces before it where it follows any frame, unless there is nothing in it.
    pub fn analyze(&mut self, buffer: &gst::BufferRef, pace: Pace) -> Result<Outcome, EngineError> {
        if buffer.flags().contains(gst::BufferFlags::DISCONT) {
            self.reset();
        }
        self.moment = Moment {
            pts: buffer.pts(),
            running_time: self.segment.to_running_time(buffer.pts()),
        };
        if buffer.flags().contains(gst::BufferFlags::GAP) {
            return Ok(self.without_analysis(FrameStatus::Gap));
        }
        if buffer.size() == 0 {
            return Ok(self.without_analysis(FrameStatus::Skipped));
        }
        let report = self.report(buffer, pace)?;
        Ok(Outcome {
            looked: self.analyzer.has_looked(),
            ..self.outcome(report)
        })
    }

    /// For a frame whose analysis failed.
    pub fn failed(&mut self) -> Outcome {
        self.without_analysis(FrameStatus::Error)
    }

    fn report(&mut self, buffer: &gst::BufferRef, pace: Pace) -> Result<FrameReport, EngineError> {
        let info = self
            .info
            .as_ref()
            .ok_or_else(|| EngineError::Frame("no caps before the first frame".to_owned()))?;
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info)
            .map_err(|_| unmappable(buffer, info))?;
        let image = video::image(&frame).map_err(|error| EngineError::Frame(error.to_string()))?;
        let timestamp = self.segment.to_stream_time(buffer.pts()).or(buffer.pts());
        let time = self.clock.next(timestamp.map(Duration::from));
        let frame = Frame { image, time };
        match pace {
            Pace::Hold if self.analyzer.can_hold() => Ok(self.analyzer.pass(&frame)),
            Pace::Hold | Pace::Analyze => self.analyzer.analyze(&frame),
        }
    }

    fn without_analysis(&mut self, status: FrameStatus) -> Outcome {
        let (width, height) = self
            .info
            .as_ref()
            .map_or((0, 0), |info| (info.width(), info.height()));
        let report = FrameReport {
            width,
            height,
            status,
            faces: Vec::new(),
            source: self.analyzer.source().clone(),
        };
        self.outcome(report)
    }

    fn outcome(&mut self, report: FrameReport) -> Outcome {
        Outcome {
            messages: self.messages(&report),
            sightings: self.sightings.see(&report, self.moment.running_time),
            frame: self
                .info
                .as_ref()
                .map_or(FrameShape::square(report.width, report.height), Into::into),
            notices: self.analyzer.take_notices(),
            looked: false,
            report,
        }
    }

    fn messages(&mut self, report: &FrameReport) -> Vec<gst::Structure> {
        let mut structures = self.departures();
        structures.extend(self.arrivals(report));
        if self.live.post_messages == PostMessages::EveryFrame {
            structures.push(messages::frame(report, self.moment));
        }
        structures
    }

    fn departures(&mut self) -> Vec<gst::Structure> {
        let left = self.analyzer.take_left();
        left.iter().for_each(|id| self.sightings.forget(*id));
        match self.live.post_messages {
            PostMessages::None => Vec::new(),
            _ => left
                .into_iter()
                .map(|id| messages::face("face-left", id, self.moment))
                .collect(),
        }
    }

    fn arrivals(&mut self, report: &FrameReport) -> Vec<gst::Structure> {
        let mut ids: Vec<_> = report.faces.iter().map(|face| face.id).collect();
        ids.retain(|id| *id > self.last_id);
        ids.sort_unstable();
        self.last_id = ids.last().copied().unwrap_or(self.last_id);
        match self.live.post_messages {
            PostMessages::None => Vec::new(),
            _ => ids
                .into_iter()
                .map(|id| messages::face("face-entered", id, self.moment))
                .collect(),
        }
    }
}

fn unmappable(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> EngineError {
    EngineError::Frame(format!(
        "a buffer of {} bytes can't be read as {}×{} {}, which takes {}",
        buffer.size(),
        info.width(),
        info.height(),
        info.format(),
        info.size()
    ))
}

/// The distance of frames at a frame rate; `None` for a variable one.
fn period(fps: gst::Fraction) -> Option<Duration> {
    let (frames, seconds) = (
        u64::try_from(fps.numer()).ok()?,
        u64::try_from(fps.denom()).ok()?,
    );
    (seconds * 1_000_000_000)
        .checked_div(frames)
        .map(Duration::from_nanos)
}
