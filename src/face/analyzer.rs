// SPDX-License-Identifier: MPL-2.0
//! One frame's way: the engine's look at its pixels, identities, smoothing, and what follows from the landmarks.
//!
//! Identities and smoothing need frames in order; [`Engine::process`] does not where [`EngineInfo::temporal`] says so.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::blendshape::Blendshapes;
use super::device::Placement;
use super::engine::{Context, Engine, EngineError, EngineInfo, Frame, Notice, Thresholds, Wanted};
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
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            thresholds: Thresholds::default(),
            smoothing: None,
            blendshape_interval: 1,
            inference_interval: 1,
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
    last_faces: Vec<TrackedFace>,
    /// Frames since the last one that was analysed; `None` when the next one must be.
    since_inference: Option<u32>,
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
        self.engine.set_thresholds(tuning.thresholds);
        self.tuning = tuning;
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
            if !self.is_due() {
                self.hold();
                return Ok(self.report(frame, FrameStatus::Skipped));
            }
            // After a failure there is nothing to hold: the next frame is analysed.
            let since_inference = self.since_inference.take();
            self.last_faces = self.infer(frame)?;
            self.since_inference = since_inference;
            Ok(self.report(frame, FrameStatus::NoFace))
        })
    }

    /// Forgets every frame seen: the next one does not continue them. Identities are not used again.
    pub fn reset(&mut self) {
        self.engine.reset();
        self.tracker.reset();
        self.forget_ended();
        self.last_faces.clear();
        self.since_inference = None;
    }

    /// Begins another stream: as after a reset, and identities start at 1 again.
    pub fn restart(&mut self) {
        self.reset();
        self.tracker.restart();
        self.left.clear();
    }

    /// Faces that left since the last call: unseen for longer than the tracker waits, or cut off by a reset.
    pub fn take_left(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.left)
    }

    /// What the engine had to tell since the last call: [`Engine::take_notices`].
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Reports say where the engine runs from then on, and with which files: a pack may have others for a GPU.
    fn heed_notices(&mut self) {
        for notice in self.engine.take_notices() {
            if let Notice::FellBackToCpu { .. } = notice {
                let source = Arc::make_mut(&mut self.source);
                source.place(&Placement::Cpu, notice.to_string());
                source.models.clone_from(&self.engine.info().models);
            }
            self.notices.push(notice);
        }
    }

    /// Counts the frame, and tells whether it is to be analysed.
    fn is_due(&mut self) -> bool {
        let since = self.since_inference.map_or(0, |since| since + 1);
        let due = self.since_inference.is_none() || since >= self.tuning.inference_interval;
        self.since_inference = Some(if due { 0 } else { since });
        due
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

    /// Repeats the faces of the last frame.
    fn hold(&mut self) {
        for TrackedFace { face, .. } in &mut self.last_faces {
            face.origin = Origin::Held;
        }
    }

    fn forget_ended(&mut self) {
        for id in self.tracker.ended_ids() {
            self.memories.remove(id);
            self.engine.forget(*id);
            self.left.push(*id);
        }
    }

    fn report(&self, frame: &Frame<'_>, without_faces: FrameStatus) -> FrameReport {
        FrameReport {
            width: frame.image.width() as u32,
            height: frame.image.height() as u32,
            status: match self.last_faces.is_empty() {
                true => without_faces,
                false => FrameStatus::Tracked,
            },
            faces: self.last_faces.clone(),
            source: self.source.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
