// SPDX-License-Identifier: MPL-2.0
//! One frame's way: the engine's look at its pixels, identities, smoothing, and what follows from the landmarks.
//!
//! Identities and smoothing need frames in order; [`Engine::process`] does not where [`EngineInfo::temporal`] says so.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::blendshape::Blendshapes;
use super::budget::Budget;
use super::device::Placement;
use super::engine::{Context, Engine, EngineError, EngineInfo, Frame, Notice, Thresholds, Wanted};
use super::geometry::Point;
use super::motion::{self, Motion};
use super::observation::{Observation, Origin};
use super::profile::{Profile, Stage};
use super::report::{FrameReport, FrameStatus, ReportSource, TrackedFace};
use super::smoothing::{LandmarkSmoother, OneEuro};
use super::tracker::{Tracker, TrackerConfig};

/// What may change from frame to frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// The engine's least scores.
    pub thresholds: Thresholds,
    /// Smoothing of landmarks, per face; `None` for landmarks as measured.
    pub smoothing: Option<OneEuro>,
    /// Blendshapes are measured in every n-th frame of a face, from its first on.
    pub blendshape_interval: u32,
    /// Frames 1, n+1, 2n+1 … are analysed.
    pub inference_interval: u32,
    /// Most frames a second of the stream's time that are analysed; 0 for no limit.
    pub max_fps: f64,
    /// Faces of frames that are not analysed move on as they did.
    pub predict: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            thresholds: Thresholds::default(),
            smoothing: None,
            blendshape_interval: 1,
            inference_interval: 1,
            max_fps: 0.0,
            predict: false,
        }
    }
}

/// An engine with what makes its faces a story.
pub struct Analyzer {
    engine: Box<dyn Engine>,
    tracker: Tracker,
    tuning: Tuning,
    source: Arc<ReportSource>,
    profile: Arc<Profile>,
    /// What is remembered of each face that the tracker follows.
    memories: HashMap<u32, Memory>,
    /// Those of the last frame that was analysed.
    last_faces: Vec<TrackedFace>,
    /// Frames since the last one that was analysed; `None` when the next one must be.
    since_inference: Option<u32>,
    budget: Budget,
    left: Vec<u32>,
    notices: Vec<Notice>,
}

/// What is remembered of a face.
#[derive(Default)]
struct Memory {
    smoother: Option<LandmarkSmoother>,
    blendshapes: Option<Blendshapes>,
    /// Frames since the blendshapes were measured.
    since_blendshapes: u32,
    /// `None` until it was measured.
    motion: Option<Motion>,
}

impl Analyzer {
    /// `engine`, with identities by `tracker`; reports name `source`.
    pub fn new(
        mut engine: Box<dyn Engine>,
        tracker: TrackerConfig,
        tuning: Tuning,
        source: ReportSource,
    ) -> Self {
        engine.set_thresholds(tuning.thresholds);
        let mut analyzer = Self {
            engine,
            tracker: Tracker::new(tracker),
            tuning,
            source: Arc::new(source),
            profile: Arc::default(),
            memories: HashMap::new(),
            last_faces: Vec::new(),
            since_inference: None,
            budget: Budget::default(),
            left: Vec::new(),
            notices: Vec::new(),
        };
        analyzer.heed_notices();
        analyzer
    }

    /// What the engine is and measures.
    pub fn info(&self) -> &EngineInfo {
        self.engine.info()
    }

    /// What makes the reports.
    pub fn source(&self) -> &Arc<ReportSource> {
        &self.source
    }

    /// Times of the stages.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Takes other settings, from the next frame on.
    pub fn tune(&mut self, tuning: Tuning) {
        if tuning == self.tuning {
            return;
        }
        if tuning.smoothing != self.tuning.smoothing {
            self.memories
                .values_mut()
                .for_each(|memory| memory.smoother = None);
        }
        if tuning.max_fps != self.tuning.max_fps {
            self.budget.reset();
        }
        self.engine.set_thresholds(tuning.thresholds);
        self.tuning = tuning;
    }

    /// Sets the options that reports state.
    pub fn set_options(&mut self, options: Map<String, Value>) {
        if self.source.options != options {
            Arc::make_mut(&mut self.source).options = options;
        }
    }

    /// What the engine learned of the faces that it saw: [`Engine::calibration`].
    pub fn calibration(&self) -> Option<String> {
        self.engine.calibration()
    }

    /// Goes on from what [`Analyzer::calibration`] returned earlier: [`Engine::set_calibration`].
    ///
    /// # Errors
    /// Those of the engine.
    pub fn set_calibration(&mut self, calibration: &str) -> Result<(), EngineError> {
        self.engine.set_calibration(calibration)
    }

    /// Begins to learn anew: [`Engine::reset_calibration`].
    pub fn reset_calibration(&mut self) {
        self.engine.reset_calibration();
    }

    /// Analyses the next frame.
    ///
    /// # Errors
    /// Those of the engine; the faces followed so far are kept.
    pub fn analyze(&mut self, frame: &Frame<'_>) -> Result<FrameReport, EngineError> {
        let profile = self.profile.clone();
        profile.time(Stage::Total, || {
            if !self.is_due(frame.time) {
                return Ok(self.report_unseen(frame));
            }
            // After a failure there is nothing to hold: the next frame is analysed.
            let since_inference = self.since_inference.take();
            self.last_faces = self.infer(frame)?;
            self.since_inference = since_inference;
            let faces = self.last_faces.clone();
            Ok(self.report(frame, faces, FrameStatus::NoFace))
        })
    }

    /// Lets the next frame pass without a look at its pixels: the faces of the last one are held or predicted.
    pub fn pass(&mut self, frame: &Frame<'_>) -> FrameReport {
        let profile = self.profile.clone();
        profile.time(Stage::Total, || {
            self.since_inference = self.frames_since_inference();
            self.report_unseen(frame)
        })
    }

    /// Whether the next frame follows one that was analysed, so that it has something to hold.
    pub fn can_hold(&self) -> bool {
        self.since_inference.is_some()
    }

    /// Whether the last frame was analysed, not held.
    pub fn has_looked(&self) -> bool {
        self.since_inference == Some(0)
    }

    /// Forgets every frame seen: the next one does not continue them. Identities are not used again.
    pub fn reset(&mut self) {
        self.engine.reset();
        self.tracker.reset();
        self.forget_ended();
        self.last_faces.clear();
        self.since_inference = None;
        self.budget.reset();
    }

    /// Begins another stream: as after a reset, and identities start at 1 again.
    pub fn restart(&mut self) {
        self.reset();
        self.tracker.restart();
        self.left.clear();
    }

    /// Goes on in the stream of `before`, whose faces leave: their identities are not used again.
    pub fn succeed(&mut self, before: &mut Self) {
        before.reset();
        self.left = before.take_left();
        self.tracker.continue_after(&before.tracker);
    }

    /// Faces that left since the last call: unseen for longer than the tracker waits, or cut off by a reset.
    pub fn take_left(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.left)
    }

    /// What the engine had to tell since the last call: [`Engine::take_notices`].
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Reports say where the engine runs from then on.
    fn heed_notices(&mut self) {
        for notice in self.engine.take_notices() {
            if let Notice::FellBackToCpu { .. } = notice {
                let source = Arc::make_mut(&mut self.source);
                source.place(&Placement::Cpu, notice.to_string());
                // Of two networks for one task, the processor may run the other one.
                source.models.clone_from(&self.engine.info().models);
            }
            self.notices.push(notice);
        }
    }

    /// Counts the frame, and tells whether it is to be analysed.
    fn is_due(&mut self, time: Duration) -> bool {
        let since = self.frames_since_inference();
        let due = since.is_none_or(|since| since >= self.tuning.inference_interval)
            && self.budget.spend(self.tuning.max_fps, time);
        self.since_inference = if due { Some(0) } else { since };
        due
    }

    /// The frame at hand included.
    fn frames_since_inference(&self) -> Option<u32> {
        self.since_inference.map(|since| since.saturating_add(1))
    }

    fn infer(&mut self, frame: &Frame<'_>) -> Result<Vec<TrackedFace>, EngineError> {
        let profile = self.profile.clone();
        let faces = profile.time(Stage::Process, || self.engine.process(frame));
        self.heed_notices();
        let faces = faces?;
        let ids = profile.time(Stage::Track, || self.tracker.assign(&faces));
        self.forget_ended();
        let mut faces: Vec<_> = std::iter::zip(ids, faces)
            .map(|(id, face)| TrackedFace { id, face })
            .collect();
        profile.time(Stage::Smooth, || self.smooth(&mut faces, frame.time));
        profile.time(Stage::Complete, || {
            faces.iter_mut().try_for_each(|TrackedFace { id, face }| {
                self.complete(face, Context::of(frame, *id))
            })
        })?;
        self.follow(&faces, frame.time);
        Ok(faces)
    }

    /// A face that was away, even for a frame, starts over, as with MediaPipe (`landmarks_smoothing_calculator.cc`).
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

    fn complete(&mut self, face: &mut Observation, context: Context) -> Result<(), EngineError> {
        let memory = self.memories.entry(context.id).or_default();
        memory.since_blendshapes += 1;
        let fresh = memory.since_blendshapes < self.tuning.blendshape_interval;
        if let Some(blendshapes) = memory.blendshapes.as_ref().filter(|_| fresh) {
            let wanted = Wanted::AllButBlendshapes;
            self.engine.complete(face, &Context { wanted, ..context })?;
            face.blendshapes = Some(blendshapes.clone());
            return Ok(());
        }
        self.engine.complete(face, &context)?;
        memory.blendshapes.clone_from(&face.blendshapes);
        memory.since_blendshapes = 0;
        Ok(())
    }

    /// Remembers where faces were measured, for the frames in which they are not.
    fn follow(&mut self, faces: &[TrackedFace], time: Duration) {
        for TrackedFace { id, face } in faces {
            let memory = self.memories.entry(*id).or_default();
            match &mut memory.motion {
                Some(motion) => motion.see(face, time),
                None => memory.motion = Some(Motion::new(face, time)),
            }
        }
    }

    /// Of a frame that is not analysed: the faces of the last one that was, where they were or where they went.
    fn report_unseen(&self, frame: &Frame<'_>) -> FrameReport {
        let mut faces = self.last_faces.clone();
        for TrackedFace { id, face } in &mut faces {
            face.origin = Origin::Held;
            if let Some(by) = self.predicted_displacement(*id, frame.time) {
                motion::displace(face, by);
                face.origin = Origin::Predicted;
            }
        }
        self.report(frame, faces, FrameStatus::Skipped)
    }

    fn predicted_displacement(&self, id: u32, time: Duration) -> Option<Point> {
        let memory = self.memories.get(&id).filter(|_| self.tuning.predict)?;
        memory.motion?.displacement(time)
    }

    fn forget_ended(&mut self) {
        for id in self.tracker.ended_ids() {
            self.memories.remove(id);
            self.engine.forget(*id);
            self.left.push(*id);
        }
    }

    fn report(
        &self,
        frame: &Frame<'_>,
        mut faces: Vec<TrackedFace>,
        without_faces: FrameStatus,
    ) -> FrameReport {
        let [width, height] = frame.image.stored_size();
        for TrackedFace { face, .. } in &mut faces {
            frame.to_stored(face);
        }
        FrameReport {
            width: width as u32,
            height: height as u32,
            status: match faces.is_empty() {
                true => without_faces,
                false => FrameStatus::Tracked,
            },
            faces,
            source: self.source.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
