// SPDX-License-Identifier: MPL-2.0
//! The seam between the frame loop and the engines that find faces.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use super::blendshape::BlendshapeSource;
use super::device::Refusal;
use super::image::ImageView;
use super::model::{ModelError, ModelFile};
use super::observation::{LandmarkScheme, Observation};
use crate::words::choices;

mod config;
mod entry;
pub mod eos;
pub mod insightface;
pub mod mediapipe;
pub mod opencv;
pub mod openseeface;
pub mod scripted;

pub use config::EngineConfig;
pub use entry::{EngineEntry, Setting, UnknownEngine, describe, load};
pub use eos::Identity;
pub use openseeface::PnpPoints;

entry::engines! {
    MediaPipe = mediapipe;
    OpenCvHaar = opencv::haar;
    OpenCvYunet = opencv::yunet;
    OpenCvYunetPyfeat = opencv::yunet_pyfeat;
    OpenSeeFace = openseeface;
    Eos = eos;
    InsightFace = insightface;
    Scripted = scripted;
}

/// Finds faces in frames. It assigns no identities and never smooths.
///
/// An engine sees the picture as it is displayed, and its coordinates count those square pixels;
/// [`Frame::to_stored`] brings a finished face to the pixels of the frame in memory.
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

    /// Adds to `face`, which the last processed frame showed, what is derived from its landmarks. Nothing follows from a
    /// box, so an engine that reports no more has nothing to do.
    ///
    /// # Errors
    /// [`EngineError::Model`] when a network fails to run.
    fn complete(&mut self, _face: &mut Observation, _context: &Context) -> Result<(), EngineError> {
        Ok(())
    }

    /// The identity `id` ended: no face will have it again.
    fn forget(&mut self, _id: u32) {}

    /// Forgets every frame seen: the next one does not continue them. An engine whose frames do not depend on one
    /// another has nothing to forget.
    fn reset(&mut self) {}

    /// Takes other thresholds, from the next frame on, where the engine has any.
    fn set_thresholds(&mut self, _thresholds: Thresholds) {}

    /// What happened since the last call that a user has to know, such as that the engine now runs elsewhere.
    fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }

    /// What the engine learned of the faces that it saw, as JSON for [`Engine::set_calibration`]; `None` for an engine
    /// that does not learn.
    fn calibration(&self) -> Option<String> {
        None
    }

    /// Goes on from what [`Engine::calibration`] returned earlier.
    ///
    /// # Errors
    /// [`EngineError::Config`] for something else, or by an engine that does not learn.
    fn set_calibration(&mut self, _calibration: &str) -> Result<(), EngineError> {
        Err(EngineError::learns_nothing(self.info().name))
    }

    /// Begins to learn anew, where the engine does.
    fn reset_calibration(&mut self) {}
}

/// What is in a frame that stands for itself: [`Engine::process`], and [`Engine::complete`] for each of its faces, of
/// which the first gets the identity 1.
///
/// # Errors
/// Those of the engine.
pub fn look(engine: &mut dyn Engine, frame: &Frame<'_>) -> Result<Vec<Observation>, EngineError> {
    let mut faces = engine.process(frame)?;
    for (id, face) in (1..).zip(&mut faces) {
        engine.complete(face, &Context::of(frame, id))?;
        frame.to_stored(face);
    }
    Ok(faces)
}

/// What [`Engine::complete`] has to know of a face.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Context {
    /// The face's identity.
    pub id: u32,
    /// Width and height of the frame, px.
    pub frame_size: (usize, usize),
    /// The frame's time since the stream's start.
    pub time: Duration,
    /// What is asked for.
    pub wanted: Wanted,
}

impl Context {
    /// The face `id` of `frame`, of which everything is wanted.
    pub fn of(frame: &Frame<'_>, id: u32) -> Self {
        Self {
            id,
            frame_size: (frame.image.width(), frame.image.height()),
            time: frame.time,
            wanted: Wanted::Everything,
        }
    }
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

impl Frame<'_> {
    /// Brings a face from the displayed picture, which engines see, to stored pixels.
    pub fn to_stored(&self, face: &mut Observation) {
        let scale = self.image.column_scale();
        if scale != 1.0 {
            face.scale_columns(scale as f32);
        }
    }
}

/// What an engine is and measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// Its name, as the `engine` property spells it.
    pub name: &'static str,
    /// Dense landmarks it reports.
    pub landmarks: Option<LandmarkScheme>,
    /// Landmarks that it reports as well: [`Observation::contour`].
    pub contour: Option<LandmarkScheme>,
    /// Number of sparse key points it reports.
    pub key_points: usize,
    /// Blendshape channels it reports; empty for none.
    pub blendshapes: Arc<[String]>,
    /// How it comes by them.
    pub blendshape_source: BlendshapeSource,
    /// Whether it reports a head pose.
    pub pose: bool,
    /// Whether it reports where the eyes look.
    pub gaze: bool,
    /// Whether it reports [`Features`](super::observation::Features).
    pub features: bool,
    /// Whether it reports OpenSeeFace's 3-D model: [`Observation::fit`].
    pub fit: bool,
    /// Whether it reports a morphable model: [`Observation::morphable`].
    pub morphable: bool,
    /// Whether it reports [`Attributes`](super::observation::Attributes).
    pub attributes: bool,
    /// Length of the embedding that it reports; 0 for none.
    pub embedding: usize,
    /// Whether a frame's result depends on the frames before it.
    pub temporal: bool,
    /// Models it read.
    pub models: Vec<ModelFile>,
}

impl EngineInfo {
    /// An engine that reports boxes alone, each frame's for itself.
    pub fn of_boxes(kind: EngineKind) -> Self {
        Self {
            name: kind.name(),
            landmarks: None,
            contour: None,
            key_points: 0,
            blendshapes: Vec::new().into(),
            blendshape_source: BlendshapeSource::Measured,
            pose: false,
            gaze: false,
            features: false,
            fit: false,
            morphable: false,
            attributes: false,
            embedding: 0,
            temporal: false,
            models: Vec::new(),
        }
    }
}

/// Something that happened while an engine ran, and that a user has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The GPU's memory was full: faces are looked for in frames reduced to `det_size` px.
    DetectionSizeReduced {
        /// Side of the detector's input now, px.
        det_size: usize,
        /// What the runtime said.
        reason: String,
    },
    /// The GPU could not be used any more: the engine goes on with the processor.
    FellBackToCpu {
        /// What the runtime said.
        reason: String,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DetectionSizeReduced { det_size, reason } => write!(
                f,
                "too little GPU memory: faces are looked for in frames reduced to {det_size} px: {reason}"
            ),
            Self::FellBackToCpu { reason } => {
                write!(f, "the GPU failed, the processor goes on: {reason}")
            }
        }
    }
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
    /// It may not run on what there is.
    #[error(transparent)]
    Device(#[from] Refusal),
    /// No engine has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownEngine),
}

impl EngineError {
    /// A calibration for an engine that has none.
    fn learns_nothing(engine: &str) -> Self {
        let reason = format!("the engine {engine} has no calibration, unset `calibration-file`");
        Self::Config(reason)
    }
}

choices! {
    /// Relation of the frames to one another.
    pub enum RunningMode, words running_mode_words {
        Video = "video": "frames follow one another: an engine may follow faces instead of searching every frame",
        Image = "image": "every frame is analysed independently",
    }
}

/// Minimum scores, each 0…1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// For a detection to be a face.
    pub detection: f32,
    /// For the landmark network to see a face.
    pub presence: f32,
    /// Overlap for a detection to be a face that is already followed.
    pub tracking: f32,
}

impl Thresholds {
    /// MediaPipe's: `FaceLandmarkerOptions` in `face_landmarker.h`. Those of other engines are in
    /// [`EngineEntry::thresholds`].
    pub const DEFAULT: Self = Self {
        detection: 0.5,
        presence: 0.5,
        tracking: 0.5,
    };
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::DEFAULT
    }
}
