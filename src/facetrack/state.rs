// SPDX-License-Identifier: MPL-2.0
//! State of the streaming thread.

use std::collections::VecDeque;
use std::mem;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::failure::{Failure, contained};
use super::in_flight::{Faces, InFlightFrame, Work};
use super::loading::{self, Change, Loaded};
use super::messages::{self, FrameTime};
use super::plan::{Live, Plan};
use crate::clock::{self, FrameClock};
use crate::meta::{FrameShape, TrackHistory, TrackTimes};
use crate::options::{Environment, FaceTrackSettings, Options, PostMessages};
use crate::orientation::Orientation;
use crate::video::{self, VideoError};
use facetrack::engine::{EngineError, Frame, Notice};
use facetrack::neutral::NeutralEvent;
use facetrack::profile::Stage;
use facetrack::report::{FrameReport, FrameStatus, SearchExtent};
use facetrack::schedule::{Arrival, Candidate, Decision, NOMINAL_PERIOD, Schedule};
use facetrack::workers::Workers;
use facetrack_assets::lock::lock;

/// Frames under way beyond two for each worker.
const SPARE_FRAMES: usize = 4;

/// A frame that is mapped for reading.
type Readable = gst_video::VideoFrame<gst_video::video_frame::Readable>;

/// A loaded engine and its stream.
pub(super) struct State {
    /// The options that `live` derives from.
    pub options: Options<FaceTrackSettings>,
    env: Environment,
    pub engine: Loaded,
    /// Frames whose analysis has begun, the oldest first.
    in_flight: VecDeque<InFlightFrame>,
    /// The engine that is loading, or the error that it failed with.
    change: Option<Result<Change, Failure>>,
    /// True if another engine was set since then.
    is_engine_changed: bool,
    clock: FrameClock,
    info: Option<gst_video::VideoInfo>,
    /// Frame period; `None` if the frame rate is variable.
    period: Option<Duration>,
    segment: gst::FormattedSegment<gst::ClockTime>,
    /// True if the next frame may not continue the others.
    is_interrupted: bool,
    /// Time of the current frame.
    frame_time: FrameTime,
    /// Faces that have entered and not left.
    history: TrackHistory,
    pub orientation: Orientation,
}

/// The outcome of a frame.
pub(super) struct Outcome {
    /// The report to attach.
    pub report: FrameReport,
    /// Time that the analysis took; `None` if the frame was not analysed.
    pub analysis_time: Option<Duration>,
    /// Shape of the frame.
    pub frame: FrameShape,
    /// Times of each face.
    pub track_times: Vec<TrackTimes>,
    /// Element messages to post.
    pub messages: Vec<gst::Structure>,
    /// Notices to post as warnings.
    pub notices: Vec<Notice>,
}

impl State {
    pub(super) fn new(
        options: Options<FaceTrackSettings>,
        env: Environment,
        engine: Loaded,
    ) -> Self {
        Self {
            options,
            env,
            engine,
            in_flight: VecDeque::new(),
            change: None,
            is_engine_changed: false,
            clock: FrameClock::default(),
            info: None,
            period: None,
            segment: gst::FormattedSegment::new(),
            is_interrupted: false,
            frame_time: FrameTime::default(),
            history: TrackHistory::default(),
            orientation: Orientation::default(),
        }
    }

    /// Applies the options that may change from frame to frame. Returns warnings of changed
    /// options of other engines, and of those that are not used before an engine is loaded.
    pub(super) fn apply_options(&mut self, options: Options<FaceTrackSettings>) -> Vec<String> {
        let other_engine = options.explicit_engine() != self.options.explicit_engine();
        let unused = options.unused(self.engine.plan.setup.kind);
        let unused_before = self.options.unused(self.engine.plan.setup.kind);
        let unused = unused.filter(|unused| Some(unused) != unused_before.as_ref());
        let late = options.late_changes(&self.options);
        self.options = options;
        self.update_live();
        self.is_engine_changed |= other_engine;
        if other_engine {
            return Vec::new();
        }
        unused.into_iter().chain(late).collect()
    }

    /// Returns true if `options` differ from those in use, or another engine is set or ready.
    pub(super) fn is_outdated(&self, options: &Options<FaceTrackSettings>) -> bool {
        self.is_engine_changed || self.is_change_done() || *options != self.options
    }

    fn is_change_done(&self) -> bool {
        let change = self.change.as_ref();
        change.is_some_and(|change| change.as_ref().map_or(true, Change::is_finished))
    }

    /// Begins to load the engine that is set, unless it is the current one.
    fn change_engine(&self) -> Result<Option<Change>, Failure> {
        let plan = Plan::new(&self.options, &self.env)?;
        if plan.setup.kind == self.engine.plan.setup.kind {
            return Ok(None);
        }
        loading::begin(plan).map(Some)
    }

    /// The engine that is ready to take over, or the error that it failed with. Engines are loaded
    /// one after another; of those that were set meanwhile, only the last is loaded.
    pub(super) fn take_successor(&mut self) -> Option<Result<Loaded, Failure>> {
        let is_done = self.is_change_done();
        let done = self.change.take_if(|_| is_done);
        let done = done.map(|change| change.and_then(loading::finish));
        if self.change.is_none() && std::mem::take(&mut self.is_engine_changed) {
            // An engine that is ready is not needed any more. Its thread ended.
            self.change = self.change_engine().transpose();
            return None;
        }
        done
    }

    /// The engine that is loading, if any.
    pub(super) fn take_change(&mut self) -> Option<Change> {
        self.change.take()?.ok()
    }

    /// Continues the stream with another engine.
    pub(super) fn take_over(&mut self, mut engine: Loaded) {
        engine.analyzer.take_over_from(&mut self.engine.analyzer);
        self.engine = engine;
        // The settings may have changed since it began to load.
        self.update_live();
    }

    fn update_live(&mut self) {
        let Loaded { plan, analyzer, .. } = &mut self.engine;
        plan.live = Live::with(&plan.setup, &self.options, &self.env);
        analyzer.apply_settings(plan.live.tuning);
        analyzer.set_options(&self.options.explicit_with(plan.setup.kind));
    }

    /// Begins another stream: ids start at 1.
    pub(super) fn restart(&mut self) {
        self.in_flight.clear();
        self.engine.analyzer.restart();
        self.clock.reset();
        self.info = None;
        self.history = TrackHistory::default();
    }

    /// Discards the frames whose analysis has begun, and forgets the others: the next one does not
    /// continue them.
    pub(super) fn reset(&mut self) {
        self.in_flight.clear();
        self.engine.analyzer.reset();
        self.clock.reset();
    }

    /// Continues with a frame at `pts` after an interruption, when no frame is under way. Faces age
    /// by the frames that are lost in between. If their number is not known, the next frame does
    /// not continue the others.
    pub(super) fn resume(&mut self, pts: Option<gst::ClockTime>) {
        let times = pts.zip(self.frame_time.pts);
        let interval = times.and_then(|(pts, last)| pts.checked_sub(last));
        let interval = interval.map(Duration::from);
        match interval.and_then(|interval| Some((lost(interval, self.period)?, interval))) {
            Some((frames, time)) => self.engine.analyzer.skip(frames, time),
            None => self.reset(),
        }
    }

    /// Writes what was learned into the files for it.
    pub(super) fn save_learned(&mut self) -> Result<(), Failure> {
        let files = self.engine.files.iter_mut();
        // A file that cannot be written does not prevent the other one.
        let saved: Vec<_> = files.map(|file| file.save(&self.engine.analyzer)).collect();
        saved.into_iter().collect()
    }

    pub(super) fn set_info(&mut self, info: gst_video::VideoInfo) {
        if self.info.as_ref().is_some_and(|old| *old != info) {
            self.reset();
        }
        self.period = clock::period(info.fps());
        self.info = Some(info);
    }

    /// Begins a segment. The next frame may continue the others: matroskademux corrects the segment
    /// after the first frame, if the sound begins before it.
    pub(super) fn set_segment(&mut self, segment: &gst::Segment) {
        let segment = segment.downcast_ref().cloned().unwrap_or_default();
        if self.segment.rate() != segment.rate() {
            self.reset();
        }
        self.is_interrupted |= self.segment != segment;
        self.segment = segment;
    }

    /// Returns true once after each new segment.
    pub(super) fn take_interruption(&mut self) -> bool {
        mem::take(&mut self.is_interrupted)
    }

    /// Ends the stream: all faces leave.
    pub(super) fn end(&mut self) -> Vec<gst::Structure> {
        self.engine.analyzer.reset();
        self.departures()
    }

    /// A line for the log, if one is due. `vram` returns the memory of the GPU, MiB.
    pub(super) fn profile_line(&self, vram: impl FnOnce() -> Option<u64>) -> Option<String> {
        let interval = self.engine.plan.live.profile_interval;
        let profile = self.engine.analyzer.profile();
        let frames = profile.frames();
        let due = interval > 0 && frames > 0 && frames.is_multiple_of(interval);
        due.then(|| profile.line(vram()))
    }

    /// Begins the analysis of a buffer that arrives at the running time `now`, or holds the last
    /// faces, as `schedule` decides. Empty buffers are not analysed; gaps are, because `videorate`
    /// sets their flag on the frames that it repeats.
    pub(super) fn admit(
        &mut self,
        buffer: gst::Buffer,
        now: Option<gst::ClockTime>,
        schedule: &Mutex<Schedule>,
    ) {
        let frame_time = FrameTime {
            pts: buffer.pts(),
            running_time: self.segment.to_running_time(buffer.pts()),
        };
        let arrival = self.arrival(now, frame_time);
        let work = contained(|| self.begin(&buffer, arrival, schedule));
        self.in_flight.push_back(InFlightFrame {
            buffer,
            frame_time,
            work,
        });
    }

    fn begin(
        &mut self,
        buffer: &gst::Buffer,
        arrival: Option<Arrival>,
        schedule: &Mutex<Schedule>,
    ) -> Result<Work, EngineError> {
        if buffer.size() == 0 {
            let is_gap = buffer.flags().contains(gst::BufferFlags::GAP);
            return Ok(Work::Unanalyzed(if is_gap {
                FrameStatus::Gap
            } else {
                FrameStatus::Skipped
            }));
        }
        let start = Instant::now();
        let frame = self.map(buffer)?;
        let timestamp = self.segment.to_stream_time(buffer.pts()).or(buffer.pts());
        let time = self.clock.next(timestamp.map(Duration::from), self.period);
        let cut = with_frame(&frame, time, |frame| {
            Ok(self.engine.analyzer.begin_frame(frame))
        })?;
        let candidate = Candidate {
            time,
            cut,
            arrival,
            // True if the frame follows an analysed one.
            can_hold: self.in_flight.iter().any(InFlightFrame::is_detecting)
                || self.engine.analyzer.can_hold(),
        };
        let decision = lock(schedule).decide(&self.engine.plan.live.schedule, &candidate);
        if decision == Decision::Hold {
            let outline = with_frame(&frame, time, |frame| {
                Ok(self.engine.analyzer.outline(frame))
            });
            return outline.map(Work::Hold);
        }
        Ok(Work::Detect {
            faces: self.detect(frame, time)?,
            arrival,
            start,
        })
    }

    fn map(&self, buffer: &gst::Buffer) -> Result<Readable, EngineError> {
        let no_caps = || EngineError::Frame("no caps before the first frame".to_owned());
        let info = self.info.as_ref().ok_or_else(no_caps)?;
        video::check_meta(buffer, info).map_err(unreadable)?;
        // This is a reference to the buffer, not a copy.
        gst_video::VideoFrame::from_buffer_readable(buffer.clone(), info)
            .map_err(|_| unmappable(buffer, info))
    }

    fn detect(&mut self, frame: Readable, time: Duration) -> Result<Faces, EngineError> {
        let Some(workers) = &self.engine.workers else {
            let found = with_frame(&frame, time, |frame| self.engine.analyzer.find(frame));
            return found.map(Faces::Ready);
        };
        let job = self.engine.analyzer.detect_job();
        let pending = workers.detect(move |finder| {
            // The frame is unmapped before it leaves, and its buffer can be written to.
            let frame = frame;
            with_frame(&frame, time, |frame| job.run(finder, frame))
        });
        Ok(Faces::Pending(pending))
    }

    /// Completes the oldest frame if its analysis has ended. Waits for it if too many frames are
    /// under way, or if `drains`.
    pub(super) fn complete_next(
        &mut self,
        drains: bool,
        schedule: &Mutex<Schedule>,
    ) -> Option<(gst::Buffer, Result<Outcome, Failure>)> {
        let is_full = self.in_flight.len() > self.max_in_flight();
        if !(is_full || drains || self.in_flight.front_mut()?.is_done()) {
            return None;
        }
        let frame = self.in_flight.pop_front()?;
        self.frame_time = frame.frame_time;
        let complete = |work| contained(|| self.complete(work, schedule));
        Some((frame.buffer, frame.work.and_then(complete)))
    }

    /// Maximum number of frames under way. It exceeds the number of workers, so that no worker
    /// waits while this thread decodes or completes a frame, or while another worker takes longer
    /// than usual.
    pub(super) fn max_in_flight(&self) -> usize {
        let workers = self.engine.workers.as_ref().map(Workers::count);
        workers.map_or(0, |count| 2 * count + SPARE_FRAMES)
    }

    fn complete(&mut self, work: Work, schedule: &Mutex<Schedule>) -> Result<Outcome, EngineError> {
        let (report, analysis_time) = match work {
            Work::Unanalyzed(status) => return Ok(self.without_analysis(status)),
            Work::Hold(frame) => (self.engine.analyzer.hold(&frame), None),
            Work::Detect {
                faces,
                arrival,
                start,
            } => {
                let report = self.engine.analyzer.complete(faces.wait()?)?;
                lock(schedule).on_analyzed(arrival, start.elapsed());
                let time = self.engine.analyzer.profile().last(Stage::Total);
                (report, Some(time))
            }
        };
        Ok(Outcome {
            analysis_time,
            ..self.outcome(report)
        })
    }

    /// The arrival of a frame at the running time `now`; `None` if it has no timestamp.
    fn arrival(&self, now: Option<gst::ClockTime>, frame_time: FrameTime) -> Option<Arrival> {
        Some(Arrival {
            now: now?.into(),
            time: frame_time.running_time?.into(),
            period: self.period,
        })
    }

    /// The outcome of a frame without faces.
    pub(super) fn without_analysis(&mut self, status: FrameStatus) -> Outcome {
        let size = self.info.as_ref().map(|info| (info.width(), info.height()));
        let (width, height) = size.unwrap_or_default();
        let report = FrameReport {
            width,
            height,
            status,
            cut: false,
            search: SearchExtent::None,
            repeated: false,
            faces: Vec::new(),
            source: self.engine.analyzer.source().clone(),
        };
        self.outcome(report)
    }

    fn outcome(&mut self, report: FrameReport) -> Outcome {
        let frame = self.info.as_ref().map(FrameShape::from);
        Outcome {
            messages: self.messages(&report),
            track_times: self.history.observe(&report, self.frame_time.running_time),
            analysis_time: None,
            frame: frame.unwrap_or(FrameShape::square(report.width, report.height)),
            notices: self.engine.analyzer.take_notices(),
            report,
        }
    }

    fn messages(&mut self, report: &FrameReport) -> Vec<gst::Structure> {
        let mut structures = self.departures();
        structures.extend(self.arrivals(report));
        structures.extend(self.neutral_messages());
        if self.engine.plan.live.post_messages == PostMessages::EveryFrame {
            structures.push(messages::frame(report, self.frame_time));
        }
        structures
    }

    fn departures(&mut self) -> Vec<gst::Structure> {
        let left = self.engine.analyzer.take_left();
        left.iter().for_each(|id| self.history.forget(*id));
        self.face_messages("face-left", left)
    }

    fn arrivals(&self, report: &FrameReport) -> Vec<gst::Structure> {
        let mut ids: Vec<_> = report.faces.iter().map(|face| face.id).collect();
        ids.retain(|id| !self.history.contains(*id));
        ids.sort_unstable();
        self.face_messages("face-entered", ids)
    }

    fn neutral_messages(&mut self) -> Vec<gst::Structure> {
        let events = self.engine.analyzer.neutral.take_events();
        if self.engine.plan.live.post_messages == PostMessages::None {
            return Vec::new();
        }
        let message = |(event, id)| {
            let event = match event {
                NeutralEvent::Learned => "neutral-learned",
                NeutralEvent::Kept => "neutral-kept",
            };
            let rest = self.engine.analyzer.neutral.rest(id);
            messages::neutral(event, id, rest, self.frame_time)
        };
        events.into_iter().map(message).collect()
    }

    fn face_messages(&self, event: &str, ids: Vec<u32>) -> Vec<gst::Structure> {
        if self.engine.plan.live.post_messages == PostMessages::None {
            return Vec::new();
        }
        let message = |id| messages::face(event, id, self.frame_time);
        ids.into_iter().map(message).collect()
    }
}

/// Calls `look` with a mapped frame as the domain sees it.
///
/// # Errors
/// Returns [`EngineError::Frame`] if the frame cannot be read, and the errors of `look`.
fn with_frame<T>(
    frame: &Readable,
    time: Duration,
    look: impl FnOnce(&Frame<'_>) -> Result<T, EngineError>,
) -> Result<T, EngineError> {
    let frame = frame.as_video_frame_ref();
    let image = video::image(&frame).map_err(unreadable)?;
    look(&Frame { image, time })
}

fn unreadable(error: VideoError) -> EngineError {
    EngineError::Frame(error.to_string())
}

fn unmappable(buffer: &gst::BufferRef, info: &gst_video::VideoInfo) -> EngineError {
    let (size, needed) = (buffer.size(), info.size());
    let frame = format!("{}×{} {}", info.width(), info.height(), info.format());
    EngineError::Frame(if size < needed {
        format!("a buffer of {size} bytes is too small for {frame}, which needs {needed} bytes")
    } else {
        format!("a buffer of {size} bytes with a frame of {frame} cannot be mapped for reading")
    })
}

/// Number of frames that are lost between two frames that are this far apart; `None` if there are
/// too many to count.
fn lost(interval: Duration, period: Option<Duration>) -> Option<u32> {
    let period = period.filter(|period| !period.is_zero());
    let periods = interval.as_secs_f64() / period.unwrap_or(NOMINAL_PERIOD).as_secs_f64();
    let lost = (periods.round() - 1.0).max(0.0);
    (lost <= f64::from(u32::MAX)).then_some(lost as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_lost_in_whole_periods() {
        let ms = Duration::from_millis;
        for (interval, period, want) in [
            (0, Some(40), Some(0)),
            (40, Some(40), Some(0)),
            (59, Some(40), Some(0)),
            (61, Some(40), Some(1)),
            (320, Some(40), Some(7)),
            (320, None, Some(7)),
            (320, Some(0), Some(7)),
            (u64::MAX / 1000, Some(1), None),
        ] {
            assert_eq!(lost(ms(interval), period.map(ms)), want, "{interval}");
        }
    }
}
