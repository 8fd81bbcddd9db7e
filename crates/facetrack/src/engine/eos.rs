// SPDX-License-Identifier: MPL-2.0
//! Fits a 3-D morphable model to YuNet's faces, as eos 1.5.0 does.
//!
//! The [`Finder`](crate::engine::Finder) finds faces with YuNet and measures 68 landmarks with MediaPipe's mesh. The
//! [`Completer`] fits the model to them, because all frames of an identity share one shape.

mod ibug;
mod load;
mod report;

use std::collections::HashMap;
use std::sync::Arc;

use crate::blendshape::BlendshapeSource;
use crate::engine::jaw::{CHANNELS, JawOpen};
use crate::engine::mediapipe::LandmarkDetector;
use crate::engine::opencv::yunet::{self, Detector};
use crate::engine::opencv::yunet_mesh::YunetMesh;
use crate::engine::{
    Completer, Context, Engine, EngineConfig, EngineEntry, EngineError, EngineInfo, Frame,
    RunningMode, Setting, Thresholds, Wanted,
};
use crate::geometry::Point;
use crate::model::ModelFile;
use crate::morphable::{FaceModel, Fit, FitSettings, Fitter, Past};
use crate::observation::{Fields, FitFailure, LandmarkScheme, Landmarks, Observation};
use crate::words::choices;
use report::Reporter;

pub use load::load;

/// Default maximum width of the frame that the detector sees, px. A face too small to be found at
/// this width has too few pixels for a fit.
pub const MAX_WIDTH: usize = 1280;

choices! {
    /// Frames that a face's shape is fitted to.
    pub enum Identity, words identity_words {
        Running = "running": "all frames of the face so far, so that its shape converges",
        PerFrame = "per-frame": "each frame separately, as eos does",
    }
}

/// Settings of this engine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Settings {
    /// Frames that a face's shape is fitted to.
    pub identity: Identity,
    /// True to report every vertex.
    pub mesh: bool,
}

/// The half of the engine that fits the model to landmarks.
struct Fitting {
    fitter: Fitter,
    reporter: Reporter,
    identity: Identity,
    /// State of each face, by identity.
    pasts: HashMap<u32, Past>,
    jaw_open: JawOpen,
}

/// The engine `eos`.
pub static ENTRY: EngineEntry = EngineEntry {
    settings: &[
        Setting::RunningMode,
        Setting::Detection,
        Setting::Presence,
        Setting::Suppression,
        Setting::Eos,
        Setting::JawOpen,
        Setting::Landmarks,
        Setting::Networks,
        Setting::Models,
        Setting::Model,
        Setting::ModelParts,
    ],
    thresholds: yunet::THRESHOLDS,
    detect_max_width: MAX_WIDTH,
    ..EngineEntry::new("eos", |config| Ok(describe(config)), load)
};

/// Describes the engine before it is loaded, without models.
pub fn describe(config: &EngineConfig) -> EngineInfo {
    EngineInfo {
        landmarks: Some(LandmarkScheme::Ibug68),
        key_points: yunet::KEY_POINTS,
        // The model's own expressions (anger, disgust, fear, happiness, sadness, surprise) are not
        // ARKit blendshapes.
        blendshapes: CHANNELS.map(str::to_owned).into(),
        blendshape_source: BlendshapeSource::Derived,
        measures: Fields::POSE | Fields::MORPHABLE,
        temporal: identity(config) == Identity::Running,
        ..EngineInfo::named(ENTRY.name)
    }
}

/// Frames that shapes are fitted to with `config`. Single images share no shape.
fn identity(config: &EngineConfig) -> Identity {
    match config.running_mode {
        RunningMode::Video => config.eos.identity,
        RunningMode::Image => Identity::PerFrame,
    }
}

/// Creates the engine from a detector, a network that measures its faces, and the model that is
/// fitted to them. `files` are listed in the record.
pub fn assemble(
    detector: Detector,
    landmarks: LandmarkDetector,
    model: FaceModel,
    files: Vec<ModelFile>,
    config: &EngineConfig,
) -> Engine {
    let info = EngineInfo {
        models: files,
        ..describe(config)
    };
    let model = Arc::new(model);
    let fitting = Fitting {
        fitter: Fitter::new(model.clone(), FitSettings::default()),
        reporter: Reporter::new(model, config.eos.mesh),
        identity: identity(config),
        pasts: HashMap::new(),
        jaw_open: JawOpen::new(config.jaw_open_scale),
    };
    let mut faces = YunetMesh {
        detector,
        landmarks: vec![landmarks; config.threads.max(1)],
    };
    // Faces have the measured landmarks until the fit replaces them.
    let finder = move |frame: &Frame<'_>, thresholds: &Thresholds| {
        let mut found = faces.find(&frame.image, thresholds)?;
        for face in &mut found.faces {
            face.landmarks = face.landmarks.as_ref().and_then(ibug::from_mesh);
        }
        Ok(found)
    };
    Engine::new(info, finder, fitting)
}

impl Fitting {
    fn fit(&mut self, landmarks: &Landmarks, context: &Context) -> Result<Fit, FitFailure> {
        let points = landmarks.points.iter().map(|p| Point::new(p.x, p.y));
        let points: Vec<_> = points.collect();
        if is_out_of_frame(&points, context.frame_size) {
            return Err(FitFailure::OutOfFrame);
        }
        match self.identity {
            Identity::Running => {
                let past = self.pasts.entry(context.id).or_default();
                self.fitter.follow(&points, past)
            }
            Identity::PerFrame => self.fitter.fit(&points),
        }
    }
}

impl Completer for Fitting {
    /// A face whose fit fails keeps the measured landmarks if they are finite, and has no pose.
    fn complete(&mut self, face: &mut Observation, context: &Context) -> Result<(), EngineError> {
        let Some(measured) = face.landmarks.take() else {
            face.morphable = Some(Err(FitFailure::NoLandmarks));
            return Ok(());
        };
        if context.wanted == Wanted::Everything {
            face.blendshapes = self.jaw_open.measure(&measured);
        }
        let fit = self.fit(&measured, context);
        let report = |fit| self.reporter.report(face, fit, context.frame_size);
        if let Err(failure) = fit.and_then(report) {
            let is_finite = measured.points.iter().all(report::is_finite);
            face.landmarks = Some(measured).filter(|_| is_finite);
            face.morphable = Some(Err(failure));
        }
        Ok(())
    }

    fn forget(&mut self, id: u32) {
        self.pasts.remove(&id);
    }

    fn reset(&mut self) {
        self.pasts.clear();
    }
}

/// Returns true if most of the points are finite and outside a frame of this size.
fn is_out_of_frame(points: &[Point], (width, height): (usize, usize)) -> bool {
    let is_outside = |p: &Point| {
        let inside = |value: f32, size: usize| value >= 0.0 && value <= size as f32;
        (p.x + p.y).is_finite() && !(inside(p.x, width) && inside(p.y, height))
    };
    points.iter().filter(|p| is_outside(p)).count() * 2 > points.len()
}

#[cfg(test)]
mod tests;
