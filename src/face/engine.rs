// SPDX-License-Identifier: MPL-2.0
//! The seam between the frame loop and the engines that find faces.

pub mod mediapipe;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use super::image::ImageView;
use super::model::{ModelError, ModelFile};
use super::observation::{LandmarkScheme, Observation};
use super::options::kebab;
use crate::choices;

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

    /// Adds to `face` what is derived from its landmarks, as `wanted` asks; the frame was `frame_size` pixels.
    ///
    /// # Errors
    /// [`EngineError::Model`] when a network fails to run.
    fn complete(
        &mut self,
        face: &mut Observation,
        frame_size: (usize, usize),
        wanted: Wanted,
    ) -> Result<(), EngineError>;

    /// Forgets every frame seen: the next one does not continue them.
    fn reset(&mut self);

    /// Takes other thresholds, from the next frame on.
    fn set_thresholds(&mut self, thresholds: Thresholds);
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
    /// No engine has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownEngine),
}

/// The engines of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// Google's MediaPipe face landmarker.
    MediaPipe,
    /// Faces by script, without a network.
    Scripted,
}

impl EngineKind {
    /// Every engine.
    pub const ALL: [Self; 2] = [Self::MediaPipe, Self::Scripted];

    /// The name in properties, metadata and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::MediaPipe => "mediapipe",
            Self::Scripted => "scripted",
        }
    }

    /// Other names that it goes by, hyphenated.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::MediaPipe => &["mediapipe-landmarker"],
            Self::Scripted => &[],
        }
    }
}

impl FromStr for EngineKind {
    type Err = UnknownEngine;

    /// Takes names and aliases in any case, with hyphens or underscores.
    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        let wanted = kebab(name);
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == wanted || kind.aliases().contains(&wanted.as_str()))
            .ok_or_else(|| UnknownEngine(name.to_owned()))
    }
}

/// No engine has that name; the message lists those that there are.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("unknown engine {0:?}, `engine` is one of: {valid}", valid = EngineKind::ALL.map(EngineKind::name).join(", "))]
pub struct UnknownEngine(String);

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
    /// MediaPipe's: `FaceLandmarkerOptions` in `face_landmarker.h`.
    fn default() -> Self {
        Self {
            detection: 0.5,
            presence: 0.5,
            tracking: 0.5,
        }
    }
}

/// What [`load`] needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineConfig {
    /// Model file; `None` to look for the published one.
    pub model: Option<PathBuf>,
    /// Folder to look in first.
    pub models_dir: Option<PathBuf>,
    /// The runtime's library; `None` to look for it.
    pub onnxruntime: Option<PathBuf>,
    /// Whether frames follow one another.
    pub running_mode: RunningMode,
    /// Greatest number of faces; `None` for the engine's own.
    pub max_faces: Option<usize>,
    /// Least scores at the start.
    pub thresholds: Thresholds,
    /// Threads a network runs on.
    pub threads: usize,
    /// What the scripted engine sees.
    pub script: Option<String>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            model: None,
            models_dir: None,
            onnxruntime: None,
            running_mode: RunningMode::default(),
            max_faces: None,
            thresholds: Thresholds::default(),
            threads: 1,
            script: None,
        }
    }
}
