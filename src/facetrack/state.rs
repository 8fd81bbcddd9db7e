// SPDX-License-Identifier: MPL-2.0
//! State of the streaming thread.

use std::num::NonZeroU64;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use gst::prelude::MulDiv;

use super::calibration::CalibrationFile;
use super::clock::FrameClock;
use super::failure::Failure;
use super::loading::{self, Change, Loaded, Successor};
use super::messages::{self, Moment};
use super::plan::{Live, Plan, Setup};
use crate::meta::{FrameShape, Sighting, Sightings};
use crate::options::{Environment, FaceTrackSettings, Options, PostMessages};
use crate::orientation::Orientation;
use crate::video::{self, VideoError};
use facetrack::analyzer::Analyzer;
use facetrack::engine::{EngineError, Frame, Notice};
use facetrack::lock::lock;
use facetrack::report::{FrameReport, FrameStatus};
use facetrack::schedule::{Arrival, Candidate, Decision, Schedule};

/// A loaded engine and its stream.
pub(super) struct State {
    /// The options that `live` derives from.
    pub options: Options<FaceTrackSettings>,
    env: Environment,
    pub setup: Setup,
    live: Live,
    pub analyzer: Analyzer,
    calibration: Option<CalibrationFile>,
    /// The engine that is loading, or the error that it failed with.
    change: Option<Result<Change, Failure>>,
    /// Whether another engine was set since then.
    is_engine_changed: bool,
    clock: FrameClock,
    info: Option<gst_video::VideoInfo>,
    /// Frame period; `None` if the frame rate is variable.
    period: Option<Duration>,
    segment: gst::FormattedSegment<gst::ClockTime>,
    /// Time of the current frame.
    moment: Moment,
    /// Maximum id so far. Ids increase.
    last_id: u32,
    sightings: Sightings,
    pub orientation: Orientation,
}

/// The outcome of a frame.
pub(super) struct Outcome {
    /// The report to attach.
    pub report: FrameReport,
    /// Shape of the frame.
    pub frame: FrameShape,
    /// One for each face.
    pub sightings: Vec<Sighting>,
    /// Element messages to post.
    pub messages: Vec<gst::Structure>,
    /// Notices to post as warnings.
    pub notices: Vec<Notice>,
}

impl State {
    pub fn new(options: Options<FaceTrackSettings>, env: Environment, loaded: Loaded) -> Self {
        Self {
            options,
            env,
            setup: loaded.plan.setup,
            live: loaded.plan.live,
            analyzer: loaded.analyzer,
            calibration: loaded.calibration,
            change: None,
            is_engine_changed: false,
            clock: FrameClock::default(),
            info: None,
            period: None,
            segment: gst::FormattedSegment::new(),
            moment: Moment::default(),
            last_id: 0,
            sightings: Sightings::default(),
            orientation: Orientation::default(),
        }
    }

    /// Applies the options that may change from frame to frame. Returns a warning of the
    /// options of other engines if they have changed.
    pub fn apply_options(&mut self, options: Options<FaceTrackSettings>) -> Option<String> {
        let other_engine = options.explicit_engine() != self.options.explicit_engine();
        let unused = options.unused(self.setup.kind);
        let unused_before = self.options.unused(self.setup.kind);
        self.options = options;
        self.update_live();
        self.is_engine_changed |= other_engine;
        unused.filter(|unused| !other_engine && Some(unused) != unused_before.as_ref())
    }

    /// Begins to load the engine that is set, unless it is the current one.
    fn change_engine(&self) -> Result<Option<Change>, Failure> {
        let (plan, warnings) = Plan::new(&self.options, &self.env)?;
        if plan.setup.kind == self.setup.kind {
            return Ok(None);
        }
        loading::begin(plan, warnings).map(Some)
    }

    /// The engine that is ready to take over, or the error that it failed with. One engine at a
    /// time is loaded: the one that was set last, after the one before.
    pub fn take_successor(&mut self) -> Option<Result<Successor, Failure>> {
        let done = self
            .change
            .take_if(|change| change.as_ref().map_or(true, Change::is_finished));
        let done = done.map(|change| change.and_then(loading::finish));
        if self.change.is_none() && std::mem::take(&mut self.is_engine_changed) {
            // An engine that is ready is not needed any more. Its thread ended.
            self.change = self.change_engine().transpose();
            return None;
        }
        done
    }

    /// The engine that is loading, if any.
    pub fn take_change(&mut self) -> Option<Change> {
        self.change.take()?.ok()
    }

    /// Continues the stream with another engine.
    pub fn take_over(&mut self, mut loaded: Loaded) {
        loaded.analyzer.take_over_from(&mut self.analyzer);
        self.setup = loaded.plan.setup;
        self.analyzer = loaded.analyzer;
        self.calibration = loaded.calibration;
        // The settings may have changed since it began to load.
        self.update_live();
    }

    fn update_live(&mut self) {
        self.live = Live::with(&self.setup, &self.options, &self.env);
        self.analyzer.apply_settings(self.live.tuning);
        self.analyzer.set_options(&self.options.explicit());
    }

    /// Begins another stream: ids start at 1.
    pub fn restart(&mut self) {
        self.analyzer.restart();
        self.clock.reset();
        self.info = None;
        self.last_id = 0;
        self.sightings = Sightings::default();
    }

    /// Forgets all frames: the next one does not continue them.
    pub fn reset(&mut self) {
        self.analyzer.reset();
        self.clock.reset();
    }

    /// Writes the calibration, if there is a file for it.
    pub fn save_calibration(&mut self) -> Result<(), Failure> {
        let Some(file) = &mut self.calibration else {
            return Ok(());
        };
        let calibration = self.analyzer.calibration();
        calibration.map_or(Ok(()), |calibration| file.save(calibration))
    }

    pub fn set_info(&mut self, info: gst_video::VideoInfo) {
        if self.info.as_ref().is_some_and(|old| *old != info) {
            self.reset();
        }
        self.period = period(info.fps());
        self.clock.set_period(self.period);
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

    /// Ends the stream: all faces leave.
    pub fn end(&mut self) -> Vec<gst::Structure> {
        self.analyzer.reset();
        self.departures()
    }

    /// A line for the log, if one is due. `vram` returns the memory of the GPU, MiB.
    pub fn profile_line(&self, vram: impl FnOnce() -> Option<u64>) -> Option<String> {
        let interval = self.live.profile_interval;
        let profile = self.analyzer.profile();
        let frames = profile.frames();
        let due = interval > 0 && frames > 0 && frames.is_multiple_of(interval);
        due.then(|| profile.line(self.analyzer.info().name, vram()))
    }

    /// Processes a buffer that arrives at the running time `now`: analyses it, or holds the last
    /// faces, as `schedule` decides. Gaps and empty buffers are not analysed.
    pub fn process(
        &mut self,
        buffer: &gst::BufferRef,
        now: Option<gst::ClockTime>,
        schedule: &Mutex<Schedule>,
    ) -> Result<Outcome, EngineError> {
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
        let report = self.report(buffer, now, schedule)?;
        Ok(self.outcome(report))
    }

    fn report(
        &mut self,
        buffer: &gst::BufferRef,
        now: Option<gst::ClockTime>,
        schedule: &Mutex<Schedule>,
    ) -> Result<FrameReport, EngineError> {
        let start = Instant::now();
        let info = self
            .info
            .as_ref()
            .ok_or_else(|| EngineError::Frame("no caps before the first frame".to_owned()))?;
        let unreadable = |error: VideoError| EngineError::Frame(error.to_string());
        video::check_meta(buffer, info).map_err(unreadable)?;
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info)
            .map_err(|_| unmappable(buffer, info))?;
        let image = video::image(&frame).map_err(unreadable)?;
        let timestamp = self.segment.to_stream_time(buffer.pts()).or(buffer.pts());
        let time = self.clock.next(timestamp.map(Duration::from));
        let arrival = self.arrival(now);
        let candidate = Candidate {
            time,
            arrival,
            can_hold: self.analyzer.can_hold(),
        };
        let frame = Frame { image, time };
        let decision = lock(schedule).decide(&self.live.schedule, &candidate);
        if decision == Decision::Hold {
            return Ok(self.analyzer.hold(&frame));
        }
        let report = self.analyzer.analyze(&frame)?;
        lock(schedule).on_analyzed(arrival, start.elapsed());
        Ok(report)
    }

    /// The arrival of the current frame at the running time `now`; `None` if it has no timestamp.
    fn arrival(&self, now: Option<gst::ClockTime>) -> Option<Arrival> {
        Some(Arrival {
            now: now?.into(),
            time: self.moment.running_time?.into(),
            period: self.period,
        })
    }

    /// The outcome of a frame without faces.
    pub fn without_analysis(&mut self, status: FrameStatus) -> Outcome {
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
        self.face_messages("face-left", left)
    }

    fn arrivals(&mut self, report: &FrameReport) -> Vec<gst::Structure> {
        let mut ids: Vec<_> = report.faces.iter().map(|face| face.id).collect();
        ids.retain(|id| *id > self.last_id);
        ids.sort_unstable();
        self.last_id = ids.last().copied().unwrap_or(self.last_id);
        self.face_messages("face-entered", ids)
    }

    fn face_messages(&self, event: &str, ids: Vec<u32>) -> Vec<gst::Structure> {
        if self.live.post_messages == PostMessages::None {
            return Vec::new();
        }
        ids.into_iter()
            .map(|id| messages::face(event, id, self.moment))
            .collect()
    }
}

fn unmappable(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> EngineError {
    EngineError::Frame(format!(
        "a buffer of {} bytes is too small for {}×{} {}, which needs {} bytes",
        buffer.size(),
        info.width(),
        info.height(),
        info.format(),
        info.size()
    ))
}

/// Frame period at a frame rate; `None` if it is variable.
fn period(fps: gst::Fraction) -> Option<Duration> {
    let (frames, seconds) = (fps.numer().try_into().ok()?, fps.denom().try_into().ok()?);
    let period = gst::ClockTime::SECOND.mul_div_floor(seconds, NonZeroU64::new(frames)?.get())?;
    Some(period.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_of_frame_rates() {
        for (frames, seconds, want) in [
            (25, 1, Some(40_000_000)),
            (30_000, 1001, Some(33_366_666)),
            (0, 1, None),
            (-1, 1, None),
        ] {
            let want = want.map(Duration::from_nanos);
            assert_eq!(period(gst::Fraction::new(frames, seconds)), want);
        }
    }
}
