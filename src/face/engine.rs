// SPDX-License-Identifier: MPL-2.0
//! The seam between the frame loop and the engines that find faces.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use super::image::ImageView;
use super::model::{ModelError, ModelFile};
use super::observation::{LandmarkScheme, Observation};
use crate::face::options::choices;

mod kind;
pub mod mediapipe;
pub mod opencv;
pub mod scripted;

pub use kind::{EngineConfig, EngineKind, UnknownEngine, describe, load};

/// Finds faces in frames. It assigns no identities and never smooths.
///
/// A frame takes two steps, so that identity and smoothing come between them: [`Engine::process`] looks at pixels and
/// yields boxes and landmarks; [`Engine::complete`] adds what follows from a face's (identified, smoothed) landmarks:
/// blendshapes and pose.
pub trait Engine: Send {
    /// What this engine is and measures. Constant over its life.
    fn info(&self) -> &EngineInfo;

    /// Faces in `frame`, best first; an empty list when there are none.
    ///
    /// # Errors
    /// [`EngineError::Model`] when a network fails to run.
    fn process(&mut self, frame: &Frame<'_>) -> Result<Vec<Observation>, EngineError>;

    /// Adds to `face` what is derived from its landmarks, as `wanted` asks; the frame was `frame_size` pixels. Nothing
    /// follows from a box, so an engine that reports no more has nothing to do.
    ///
    /// # Errors
    /// [`EngineError::Model`] when a network fails to run.
    fn complete(
        &mut self,
        _face: &mut Observation,
        _frame_size: (usize, usize),
        _wanted: Wanted,
    ) -> Result<(), EngineError> {
        Ok(())
    }

    /// Forgets every frame seen: the next one does not continue them. An engine whose frames do not depend on one
    /// another has nothing to forget.
    fn reset(&mut self) {}

    /// Takes other thresholds, from the next frame on, where the engine has any.
    fn set_thresholds(&mut self, _thresholds: Thresholds) {}
}

/// What [`Engine::complete`] is asked to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Everything that the engine derives.
    Everything,
    /// All but the blendshapes, which the caller carries over from an earlier frame of this face.
    AllButBlendshapes,
}

/// One frame.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    /// Its pixels.
    pub image: ImageView<'a>,
    /// Its time since the stream's start; increases from frame to frame.
    pub time: Duration,
}

/// What an engine is and measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// Its name, as the `engine` property spells it.
    pub name: &'static str,
    /// Dense landmarks it reports.
    pub landmarks: Option<LandmarkScheme>,
    /// Number of sparse key points it reports.
    pub key_points: usize,
    /// Blendshape channels it measures; empty for none.
    pub blendshapes: Arc<[String]>,
    /// Whether it reports a head pose.
    pub pose: bool,
    /// Whether a frame's result depends on the frames before it.
    pub temporal: bool,
    /// Models it read.
    pub models: Vec<ModelFile>,
}

/// Why an engine can't go on.
#[derive(Debug, Error)]
pub enum EngineError {
    /// A model is missing, broken or failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A setting has a value that the engine can't use.
    #[error("{0}")]
    Config(String),
    /// A frame that can't be read.
    #[error("unreadable frame: {0}")]
    Frame(String),
    /// No engine has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownEngine),
}

choices! {
    /// Whether frames follow one another.
    pub enum RunningMode {
        Video = "video": "frames follow one another: faces are followed, and searched for only when one is missing",
        Image = "image": "every frame stands alone",
    }
}

/// Least scores, each 0…1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// For a detection to be a face.
    pub detection: f32,
    /// For the landmark network to see a face.
    pub presence: f32,
    /// Overlap for a detection to be a face that is already followed.
    pub tracking: f32,
}

impl Default for Thresholds {
    /// MediaPipe's: `FaceLandmarkerOptions` in `face_landmarker.h`. Other engines' are [`EngineKind::thresholds`].
    fn default() -> Self {
        Self {
            detection: 0.5,
            presence: 0.5,
            tracking: 0.5,
        }
    }
}
