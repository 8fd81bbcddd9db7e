// SPDX-License-Identifier: MPL-2.0
//! Analyses frames: finds faces, assigns identities, selects faces, smooths landmarks and completes
//! the faces.
//!
//! [`Analyzer::begin_frame`] looks for a hard cut and for a repeated picture, and [`Analyzer::find`] for faces.
//! [`Analyzer::complete`] needs the frames in order, but not their pixels: all that it needs of a
//! frame is in [`Detections`]. So more frames may be searched before a frame is completed:
//! [`Workers`](super::workers::Workers) do so in parallel if [`Finder::is_independent`].
//! [`Analyzer::analyze`] does all steps.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use smart_default::SmartDefault;

use super::blendshape::Blendshapes;
use super::cuts::{Change, CutDetector, OnCut};
use super::device::Placement;
use super::engine::{
    Context, Engine, EngineConfig, EngineError, EngineInfo, EngineKind, Finder, Found, Frame,
    FrameOutline, Notice, Thresholds, Wanted,
};
use super::gain::Gains;
use super::geometry::Point;
use super::motion::{self, Motion, PictureClock};
use super::neutral::{NeutralPose, NeutralSettings};
use super::observation::{Observation, Origin};
use super::profile::{Profile, Stage};
use super::report::{
    FrameReport, FrameStatus, ReportSource, SearchExtent, TrackedFace, options_text,
};
use super::selection::{Select, Selection, Selector};
use super::smoothing::{LandmarkSmoother, OneEuro};
use super::tracker::{IdTracker, TrackerConfig};

/// Settings that may change from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
pub struct Tuning {
    /// Minimum scores.
    #[default(Thresholds::DEFAULT)]
    pub thresholds: Thresholds,
    /// Faces to complete and report.
    pub selection: Selection,
    /// Smoothing of landmarks, per face; `None` for landmarks as measured.
    pub smoothing: Option<OneEuro>,
    /// Blendshapes are measured in every n-th frame of a face, from its first frame; never if 0.
    #[default(1)]
    pub blendshape_interval: u32,
    /// Rest values of new faces.
    pub neutral: NeutralSettings,
    /// Factors for the blendshapes, after rest values were subtracted.
    pub gains: Gains,
    /// Predict the faces of frames that are not analysed from their last motion.
    pub predict: bool,
    /// Handling of hard cuts.
    pub on_cut: OnCut,
}

impl Tuning {
    /// The default settings of an engine: its thresholds, and smoothing if its original smooths.
    pub fn of(kind: EngineKind, config: &EngineConfig) -> Self {
        Self {
            thresholds: kind.thresholds(),
            smoothing: kind.smooths_natively(config).then(OneEuro::default),
            ..Self::default()
        }
    }
}

impl ReportSource {
    /// The source of the reports of an engine, without a device.
    pub fn of(info: &EngineInfo) -> Self {
        Self {
            engine: info.name.to_owned(),
            models: info.models.clone(),
            generator: concat!("facetrack ", env!("CARGO_PKG_VERSION")).to_owned(),
            ..Self::default()
        }
    }
}

/// Analyses the frames of a stream with an engine.
pub struct Analyzer {
    /// Between frames, its completer may be calibrated.
    pub engine: Engine,
    tracker: IdTracker,
    tuning: Tuning,
    source: Arc<ReportSource>,
    profile: Arc<Profile>,
    selector: Selector,
    /// The rest values of blendshapes.
    pub neutral: NeutralPose,
    /// Memory of each selected face that the tracker follows.
    memories: HashMap<u32, Memory>,
    cuts: CutDetector,
    pictures: PictureClock,
    /// The frame that was begun.
    beginning: Beginning,
    /// The shot of the last completed frame.
    shot: u64,
    /// Faces of the last analysed frame; `None` if the next frame does not follow one.
    last_faces: Option<Vec<TrackedFace>>,
    left: Vec<u32>,
    notices: Vec<Notice>,
}

/// The beginning of a frame's analysis.
#[derive(Debug, Clone, Copy, Default)]
struct Beginning {
    /// Hard cuts before the frame. Numbers outlive frames that cannot be searched.
    shot: u64,
    /// Time since the first frame with the picture; see [`FrameOutline::picture_time`].
    repeated_for: Duration,
    /// Time that the comparison with the frame before took.
    cost: Duration,
}

impl Beginning {
    /// The outline of `frame`, which was begun.
    fn outline(&self, frame: &Frame<'_>) -> FrameOutline {
        FrameOutline {
            picture_time: frame.time.saturating_sub(self.repeated_for),
            ..frame.outline()
        }
    }
}

/// Memory of a face.
#[derive(Default)]
struct Memory {
    smoother: Option<LandmarkSmoother>,
    blendshapes: Option<Blendshapes>,
    /// Frames since the blendshapes were measured.
    since_blendshapes: u32,
    motion: Option<Motion>,
}

/// The faces that were found in a frame, with all that is needed to complete them.
#[derive(Debug, Clone)]
pub struct Detections {
    frame: FrameOutline,
    found: Found,
    source: Arc<ReportSource>,
    /// Number of the shot in [`Beginning`].
    shot: u64,
    /// Time that the search took.
    cost: Duration,
}

/// The search of a frame, with the settings at that frame.
#[derive(Debug, Clone)]
pub struct DetectJob {
    thresholds: Thresholds,
    source: Arc<ReportSource>,
    profile: Arc<Profile>,
    beginning: Beginning,
}

impl DetectJob {
    /// Finds the faces in a frame with `finder`.
    ///
    /// # Errors
    /// Returns the errors of the finder.
    pub fn run(
        self,
        finder: &mut dyn Finder,
        frame: &Frame<'_>,
    ) -> Result<Detections, EngineError> {
        let start = Instant::now();
        let find = || finder.find(frame, &self.thresholds);
        let found = self.profile.time_search(find)?;
        Ok(Detections {
            frame: self.beginning.outline(frame),
            found,
            source: self.source,
            shot: self.beginning.shot,
            cost: self.beginning.cost + start.elapsed(),
        })
    }
}

impl Analyzer {
    /// An analyzer with `engine` and a tracker. Reports name `source`.
    pub fn new(
        engine: Engine,
        tracker: TrackerConfig,
        tuning: Tuning,
        source: ReportSource,
    ) -> Self {
        let mut analyzer = Self {
            neutral: NeutralPose::new(engine.info.blendshapes.clone()),
            engine,
            tracker: IdTracker::new(tracker),
            tuning,
            source: Arc::new(source),
            profile: Arc::default(),
            selector: Selector::default(),
            memories: HashMap::new(),
            cuts: CutDetector::default(),
            pictures: PictureClock::default(),
            beginning: Beginning::default(),
            shot: 0,
            last_faces: None,
            left: Vec::new(),
            notices: Vec::new(),
        };
        analyzer.collect_notices();
        analyzer
    }

    /// The source of the reports.
    pub fn source(&self) -> &Arc<ReportSource> {
        &self.source
    }

    /// Times of the stages.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Applies settings to the next frames.
    pub fn apply_settings(&mut self, tuning: Tuning) {
        if tuning.smoothing != self.tuning.smoothing {
            self.memories
                .values_mut()
                .for_each(|memory| memory.smoother = None);
        }
        if tuning.selection != self.tuning.selection {
            self.selector = Selector::default();
        }
        if tuning.on_cut != self.tuning.on_cut {
            self.cuts.reset();
        }
        self.tuning = tuning;
    }

    /// Sets the options that reports state.
    pub fn set_options(&mut self, options: &Map<String, Value>) {
        let options = options_text(options);
        if self.source.options != options {
            Arc::make_mut(&mut self.source).options = options;
        }
    }

    /// Analyses the next frame.
    ///
    /// # Errors
    /// Returns the errors of the engine. The tracked faces are kept.
    pub fn analyze(&mut self, frame: &Frame<'_>) -> Result<FrameReport, EngineError> {
        self.begin_frame(frame);
        let found = self.find(frame)?;
        self.complete(found)
    }

    /// Begins the next frame. Returns true if it is the first frame of a shot after a hard cut.
    /// Such a frame is analysed, because there are no faces to hold. Frames are begun in their
    /// order, before they are searched or held.
    pub fn begin_frame(&mut self, frame: &Frame<'_>) -> bool {
        let start = Instant::now();
        let change = self.cuts.change(&frame.image, self.tuning.on_cut);
        let cut = change == Change::Cut;
        if cut {
            self.engine.finder.reset();
        }
        self.beginning.shot += u64::from(cut);
        let picture = match change {
            Change::Repeat => self.pictures.repeat(frame.time),
            Change::Picture | Change::Cut => self.pictures.show(frame.time),
        };
        self.beginning.repeated_for = frame.time - picture;
        self.beginning.cost = start.elapsed();
        cut
    }

    /// The outline of `frame`, which was begun last, for [`Analyzer::hold`].
    pub fn outline(&self, frame: &Frame<'_>) -> FrameOutline {
        self.beginning.outline(frame)
    }

    /// Finds the faces in a frame.
    ///
    /// # Errors
    /// Returns the errors of the engine's finder.
    pub fn find(&mut self, frame: &Frame<'_>) -> Result<Detections, EngineError> {
        // A failed frame has no faces to hold.
        self.last_faces = None;
        let found = self.detect_job().run(&mut *self.engine.finder, frame);
        self.collect_notices();
        Ok(Detections {
            source: self.source.clone(),
            ..found?
        })
    }

    /// The search of the next frame, for another finder of the same engine.
    pub fn detect_job(&self) -> DetectJob {
        DetectJob {
            thresholds: self.tuning.thresholds,
            source: self.source.clone(),
            profile: self.profile.clone(),
            beginning: self.beginning,
        }
    }

    /// Completes the faces of the next frame: identities, selection, smoothing, and the measurements
    /// that derive from landmarks.
    ///
    /// # Errors
    /// Returns the errors of the engine's completer.
    pub fn complete(&mut self, detections: Detections) -> Result<FrameReport, EngineError> {
        let start = Instant::now();
        let cut = detections.shot != self.shot;
        if cut {
            self.engine.completer.reset();
            self.end_faces();
            self.neutral.forget_faces();
        }
        let frame = &detections.frame;
        self.last_faces = None;
        let profile = self.profile.clone();
        let Found { faces, mut search } = detections.found;
        let found = faces.len();
        let (ids, faces) = profile.time(Stage::Track, || {
            let ids = self.tracker.assign(&faces, frame.picture_time);
            self.forget_ended();
            let known = std::iter::zip(ids, faces).filter_map(|(id, face)| Some((id?, face)));
            let (ids, faces) = known.unzip();
            self.select(ids, faces, frame)
        });
        if faces.len() < found {
            search = search.max(SearchExtent::Partial);
        }
        self.engine.completer.begin_frame(&faces);
        let mut faces: Vec<_> = std::iter::zip(ids, faces)
            .map(|(id, face)| TrackedFace { id, face })
            .collect();
        profile.time(Stage::Smooth, || self.smooth(&mut faces, frame.time));
        profile.time(Stage::Complete, || self.complete_faces(&mut faces, frame))?;
        self.update_motion(&faces, frame.picture_time);
        self.last_faces = Some(faces.clone());
        self.shot = detections.shot;
        profile.add(Stage::Total, detections.cost + start.elapsed());
        let source = detections.source;
        Ok(FrameReport {
            cut,
            search,
            ..report(frame, faces, FrameStatus::NoFace, source)
        })
    }

    /// Holds or predicts the faces of the last analysed frame in the next one.
    pub fn hold(&mut self, frame: &FrameOutline) -> FrameReport {
        let profile = self.profile.clone();
        profile.time(Stage::Total, || {
            let mut faces = self.last_faces.clone().unwrap_or_default();
            for TrackedFace { id, face } in &mut faces {
                face.origin = Origin::Held;
                if let Some(by) = self.predicted_displacement(*id, frame.picture_time) {
                    motion::displace(face, by);
                    face.origin = Origin::Predicted;
                }
            }
            let source = self.source.clone();
            report(frame, faces, FrameStatus::Skipped, source)
        })
    }

    /// Returns true if the frame that was begun follows an analysed one of its shot, so that there
    /// are faces to hold.
    pub fn can_hold(&self) -> bool {
        self.last_faces.is_some() && self.beginning.shot == self.shot
    }

    /// Continues after `frames` frames that were lost in `time`: faces age by them. If this is
    /// longer than the tracker waits for a face, all frames are forgotten.
    pub fn skip(&mut self, frames: u32, time: Duration) {
        if self.tracker.outlasts(frames, time) {
            self.tracker.skip(frames);
        } else {
            self.reset();
        }
    }

    /// Forgets all frames: the next one does not continue them. Identities are not assigned again.
    pub fn reset(&mut self) {
        self.engine.reset();
        self.cuts.reset();
        self.shot = self.beginning.shot;
        self.end_faces();
    }

    /// Ends all identities.
    fn end_faces(&mut self) {
        self.tracker.reset();
        self.forget_ended();
        self.last_faces = None;
    }

    /// Begins another stream: resets, and assigns identities from 1.
    pub fn restart(&mut self) {
        self.reset();
        self.engine.finder.restart();
        self.tracker.restart();
        self.neutral.restart();
        self.left.clear();
    }

    /// Continues the stream of `before`. The faces of `before` leave, and their identities are not
    /// assigned again.
    pub fn take_over_from(&mut self, before: &mut Self) {
        self.cuts = std::mem::take(&mut before.cuts);
        self.pictures = before.pictures;
        before.reset();
        self.left = before.take_left();
        self.tracker.continue_after(&before.tracker);
    }

    /// Reported faces that have left since the last call: unseen for longer than the tracker waits,
    /// ended by a reset, or not selected any more.
    pub fn take_left(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.left)
    }

    /// Notices of the engine since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Collects the engine's notices, and updates the source of the reports if the engine runs on
    /// the CPU now.
    fn collect_notices(&mut self) {
        for notice in self.engine.finder.take_notices() {
            if let Notice::FellBackToCpu {
                models, runtimes, ..
            } = &notice
            {
                let source = Arc::make_mut(&mut self.source);
                source.place(&Placement::Cpu, runtimes, notice.to_string());
                source.models.clone_from(models);
                self.engine.info.models.clone_from(models);
                self.engine.info.runtimes.clone_from(runtimes);
            }
            self.notices.push(notice);
        }
    }

    /// Leaves out the faces that are not selected. A reported face that is not selected any more
    /// leaves.
    fn select(
        &mut self,
        ids: Vec<u32>,
        faces: Vec<Observation>,
        frame: &FrameOutline,
    ) -> (Vec<u32>, Vec<Observation>) {
        let selection = self.tuning.selection;
        if selection.select == Select::All {
            return (ids, faces);
        }
        let selected = self.selector.select(selection, &ids, &faces, frame);
        let others = self.memories.extract_if(|id, _| Some(*id) != selected);
        let mut left: Vec<_> = others.map(|(id, _)| id).collect();
        left.sort_unstable();
        self.left.extend(left);
        std::iter::zip(ids, faces)
            .filter(|(id, _)| Some(*id) == selected)
            .unzip()
    }

    /// A face that was not seen for a frame starts over, as in MediaPipe
    /// (`landmarks_smoothing_calculator.cc`).
    fn smooth(&mut self, faces: &mut [TrackedFace], time: Duration) {
        let Some(constants) = self.tuning.smoothing else {
            return;
        };
        for (id, memory) in &mut self.memories {
            if !faces.iter().any(|face| face.id == *id) {
                memory.smoother = None;
            }
        }
        for TrackedFace { id, face } in faces {
            let Some(landmarks) = &mut face.landmarks else {
                continue;
            };
            self.memories
                .entry(*id)
                .or_default()
                .smoother
                .get_or_insert_with(|| LandmarkSmoother::new(constants))
                .smooth(landmarks, time);
        }
    }

    /// Adds the measurements that derive from landmarks. Blendshapes may come from an
    /// earlier frame.
    fn complete_faces(
        &mut self,
        faces: &mut [TrackedFace],
        frame: &FrameOutline,
    ) -> Result<(), EngineError> {
        let interval = self.tuning.blendshape_interval;
        self.neutral.begin_frame(faces, self.tuning.neutral);
        let mut with_contexts = Vec::with_capacity(faces.len());
        for TrackedFace { id, face } in faces.iter_mut() {
            let memory = self.memories.entry(*id).or_default();
            memory.since_blendshapes = memory.since_blendshapes.saturating_add(1);
            let is_fresh = memory.blendshapes.is_some() && memory.since_blendshapes < interval;
            let mut context = Context::of(frame, *id);
            if interval == 0 || is_fresh {
                context.wanted = Wanted::AllButBlendshapes;
            }
            with_contexts.push((face, context));
        }
        self.engine.completer.complete_all(&mut with_contexts)?;
        for (face, context) in with_contexts {
            let memory = self.memories.entry(context.id).or_default();
            if context.wanted == Wanted::Everything {
                let measured = face.blendshapes.take();
                let correct = |measured| self.neutral.correct(context.id, measured, frame.time);
                let corrected = measured.map(correct);
                face.blendshapes = corrected.map(|values| self.tuning.gains.apply(values));
                memory.blendshapes.clone_from(&face.blendshapes);
                memory.since_blendshapes = 0;
            } else {
                face.blendshapes = memory.blendshapes.clone().filter(|_| interval > 0);
            }
        }
        Ok(())
    }

    fn update_motion(&mut self, faces: &[TrackedFace], time: Duration) {
        for TrackedFace { id, face } in faces {
            let motion = &mut self.memories.entry(*id).or_default().motion;
            *motion = Some(Motion::measured(motion.as_ref(), face, time));
        }
    }

    fn predicted_displacement(&self, id: u32, time: Duration) -> Option<Point> {
        let memory = self.memories.get(&id).filter(|_| self.tuning.predict)?;
        memory.motion?.displacement(time)
    }

    fn forget_ended(&mut self) {
        for id in self.tracker.ended_ids() {
            self.selector.forget(*id);
            self.neutral.on_ended(*id);
            self.engine.completer.forget(*id);
            // A face that was never selected has no memory, and does not leave.
            if self.memories.remove(id).is_some() {
                self.left.push(*id);
            }
        }
    }
}

fn report(
    frame: &FrameOutline,
    mut faces: Vec<TrackedFace>,
    without_faces: FrameStatus,
    source: Arc<ReportSource>,
) -> FrameReport {
    let [width, height] = frame.stored_size;
    for TrackedFace { face, .. } in &mut faces {
        frame.to_stored(face);
    }
    FrameReport {
        width: width as u32,
        height: height as u32,
        status: if faces.is_empty() {
            without_faces
        } else {
            FrameStatus::Tracked
        },
        cut: false,
        search: SearchExtent::None,
        repeated: frame.picture_time < frame.time,
        faces,
        source,
    }
}

#[cfg(test)]
mod tests;
