// SPDX-License-Identifier: MPL-2.0
//! The engines that find and measure faces, and their interface.

use std::sync::Arc;
use std::time::Duration;

use strum::Display;
use thiserror::Error;

use super::blendshape::BlendshapeSource;
use super::device::Refusal;
use super::image::ImageView;
use super::model::{ModelError, ModelFile, Opener, Runtimes};
use super::observation::{Fields, LandmarkScheme, Observation};
use super::report::SearchExtent;
use crate::words::choices;
pub use crate::words::kebab;

mod config;
mod entry;
#[cfg(feature = "eos")]
#[doc(hidden)]
pub mod eos;
#[cfg(feature = "insightface")]
#[doc(hidden)]
pub mod insightface;
#[doc(hidden)]
pub mod jaw;
mod last_search;
#[cfg(feature = "mediapipe")]
#[doc(hidden)]
pub mod mediapipe;
mod network;
#[doc(hidden)]
pub mod opencv;
#[cfg(feature = "openseeface")]
#[doc(hidden)]
pub mod openseeface;
#[cfg(feature = "scripted")]
#[doc(hidden)]
pub mod scripted;

pub use config::EngineConfig;
pub use entry::{EngineEntry, Setting, UnknownEngine, describe, load};
#[cfg(feature = "eos")]
pub use eos::{Identity, Settings as EosSettings};
#[cfg(feature = "insightface")]
pub use insightface::{MAX_DET_SIZE, Settings as InsightFaceSettings, modules};
#[cfg(feature = "opencv-haar")]
pub use opencv::haar::Search as HaarSettings;
#[cfg(feature = "openseeface")]
pub use openseeface::{PnpPoints, Settings as OpenSeeFaceSettings};

entry::engines! {
    "mediapipe" MediaPipe = mediapipe;
    "opencv-haar" OpenCvHaar = opencv::haar;
    "opencv-yunet" OpenCvYunet = opencv::yunet;
    "opencv-yunet-pyfeat" OpenCvYunetPyfeat = opencv::yunet_pyfeat;
    "openseeface" OpenSeeFace = openseeface;
    "eos" Eos = eos;
    "insightface" InsightFace = insightface;
    "scripted" Scripted = scripted;
}

/// Result of an engine.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// A loaded engine, in two halves. It assigns no identities and never smooths.
///
/// The [`Finder`] looks at pixels. The [`Completer`] adds, in the order of the frames, what follows
/// from landmarks: blendshapes and pose. Identities are assigned and landmarks are smoothed in
/// between. The halves share nothing: all that the completer needs of a frame is in the faces that
/// were found in it, so the next frames may be searched before it is completed.
///
/// An engine sees the picture as it is displayed, and its coordinates count those square pixels;
/// [`FrameOutline::to_stored`] converts a finished face to pixels of the frame in memory.
pub struct Engine {
    /// The engine's name and measurements. Another device may run other models, which a [`Notice`]
    /// names.
    pub info: EngineInfo,
    /// The half that looks at pixels.
    pub finder: Box<dyn Finder>,
    /// The half that works in the order of the frames.
    pub completer: Box<dyn Completer>,
}

impl Engine {
    /// The engine with these halves, which `info` describes.
    pub fn new(
        info: EngineInfo,
        finder: impl Finder + 'static,
        completer: impl Completer + 'static,
    ) -> Self {
        Self {
            info,
            finder: Box::new(finder),
            completer: Box::new(completer),
        }
    }

    /// The engine, whose networks `opener` has opened.
    pub(crate) fn opened_by(mut self, opener: Opener<'_>) -> Self {
        self.info.runtimes = opener.into_runtimes();
        self
    }

    /// Finds and completes the faces of an independent frame. The first face gets the identity 1.
    ///
    /// # Errors
    /// Returns the errors of the finder and of the completer.
    pub fn look(&mut self, frame: &Frame<'_>, thresholds: &Thresholds) -> Result<Vec<Observation>> {
        let mut faces = self.finder.find(frame, thresholds)?.faces;
        self.completer.begin_frame(&faces);
        let frame = frame.outline();
        for (id, face) in (1..).zip(&mut faces) {
            self.completer.complete(face, &Context::of(&frame, id))?;
            frame.to_stored(face);
        }
        Ok(faces)
    }

    /// Forgets all frames: the next one does not continue them. Calibration is kept.
    pub fn reset(&mut self) {
        self.finder.reset();
        self.completer.reset();
    }
}

/// The faces that were found in a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Found<T = Observation> {
    /// The faces, best first; empty if there are none.
    pub faces: Vec<T>,
    /// Extent of the search.
    pub search: SearchExtent,
}

impl<T> Found<T> {
    /// All faces of a frame.
    pub fn all(faces: Vec<T>) -> Self {
        Self {
            faces,
            search: SearchExtent::Whole,
        }
    }

    /// The first `max` of all faces of a frame.
    pub fn first(mut faces: Vec<T>, max: usize) -> Self {
        let search = if faces.len() > max {
            SearchExtent::Limited
        } else {
            SearchExtent::Whole
        };
        faces.truncate(max);
        Self { faces, search }
    }
}

/// Finds faces in frames.
pub trait Finder: Send {
    /// The faces in `frame`. Finders without thresholds ignore those.
    ///
    /// # Errors
    /// Returns [`EngineError::Model`] when a network fails to run.
    fn find(&mut self, frame: &Frame<'_>, thresholds: &Thresholds) -> Result<Found>;

    /// Returns true if the finder keeps nothing from frame to frame, so that frames may be searched
    /// in any order, and in parallel by several finders of the engine.
    fn is_independent(&self) -> bool {
        false
    }

    /// Forgets all frames: the next one does not continue them.
    fn reset(&mut self) {}

    /// Begins another stream: as after loading. Called after [`Finder::reset`].
    fn restart(&mut self) {}

    /// Notices since the last call, such as that the engine runs on another device now.
    fn take_notices(&mut self) -> Vec<Notice> {
        Vec::new()
    }
}

/// Makes a closure a finder that keeps nothing from frame to frame.
impl<F> Finder for F
where
    F: FnMut(&Frame<'_>, &Thresholds) -> Result<Found> + Send,
{
    fn find(&mut self, frame: &Frame<'_>, thresholds: &Thresholds) -> Result<Found> {
        self(frame, thresholds)
    }

    fn is_independent(&self) -> bool {
        true
    }
}

/// Completes faces in the order of the frames, by identity.
pub trait Completer: Send {
    /// Begins the next frame. `faces` are those that will be completed, before smoothing.
    fn begin_frame(&mut self, _faces: &[Observation]) {}

    /// Adds to `face`, one of the frame that was begun, the measurements that derive from its
    /// landmarks.
    ///
    /// # Errors
    /// Returns [`EngineError::Model`] when a network fails to run.
    fn complete(&mut self, _face: &mut Observation, _context: &Context) -> Result<()> {
        Ok(())
    }

    /// Completes several faces of the frame that was begun, each like [`Completer::complete`].
    ///
    /// # Errors
    /// Returns the errors of [`Completer::complete`].
    fn complete_all(&mut self, faces: &mut [(&mut Observation, Context)]) -> Result<()> {
        let mut faces = faces.iter_mut();
        faces.try_for_each(|(face, context)| self.complete(face, context))
    }

    /// Forgets the identity `id`, which has ended and is not assigned again.
    fn forget(&mut self, _id: u32) {}

    /// Forgets all frames: the next one does not continue them. Calibration is kept.
    fn reset(&mut self) {}

    /// The calibration, as JSON for [`Completer::set_calibration`]; `None` if the engine has none.
    fn calibration(&self) -> Option<String> {
        None
    }

    /// Restores a calibration that [`Completer::calibration`] returned.
    ///
    /// # Errors
    /// Returns [`EngineError::Config`] if it is damaged, or if the engine has none.
    fn set_calibration(&mut self, _calibration: &str) -> Result<()> {
        Err(EngineError::config("calibration", "the engine has none"))
    }

    /// Discards the calibration.
    fn reset_calibration(&mut self) {}
}

/// Completes nothing: for engines that report boxes only.
impl Completer for () {}

/// Context of a face, for [`Completer::complete`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Context {
    /// The face's identity.
    pub id: u32,
    /// Width and height of the frame, px.
    pub frame_size: (usize, usize),
    /// The frame's time since the stream's start.
    pub time: Duration,
    /// The measurements to add.
    pub wanted: Wanted,
}

impl Context {
    /// The face `id` of `frame`, with everything wanted.
    pub fn of(frame: &FrameOutline, id: u32) -> Self {
        Self {
            id,
            frame_size: frame.size,
            time: frame.time,
            wanted: Wanted::Everything,
        }
    }
}

/// The measurements that [`Completer::complete`] adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Everything that the engine derives.
    Everything,
    /// All except the blendshapes, which the caller copies from an earlier frame or does not want.
    AllButBlendshapes,
}

/// One frame.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    /// Pixels of the frame.
    pub image: ImageView<'a>,
    /// Time of the frame since the stream's start, which increases from frame to frame.
    pub time: Duration,
}

impl Frame<'_> {
    /// The frame without its pixels.
    pub fn outline(&self) -> FrameOutline {
        FrameOutline {
            size: (self.image.width(), self.image.height()),
            stored_size: self.image.stored_size(),
            column_scale: self.image.column_scale(),
            time: self.time,
            picture_time: self.time,
        }
    }
}

/// A frame without its pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FrameOutline {
    /// Width and height of the displayed picture, px.
    pub size: (usize, usize),
    /// Width and height of the frame in memory, px.
    pub stored_size: [usize; 2],
    /// Stored columns per displayed column.
    pub column_scale: f64,
    /// See [`Frame::time`].
    pub time: Duration,
    /// Time of the frame's picture: earlier than `time` if the frame repeats the picture of the frame
    /// before. A picture that is repeated for more than half a second counts as a scene at rest.
    pub picture_time: Duration,
}

impl FrameOutline {
    /// Converts a face from the displayed picture, which engines see, to stored pixels.
    pub fn to_stored(&self, face: &mut Observation) {
        if self.column_scale != 1.0 {
            face.scale_columns(self.column_scale as f32);
        }
    }
}

/// Name and measurements of an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineInfo {
    /// Name of the engine, as in the property `engine`.
    pub name: &'static str,
    /// Dense landmarks it reports.
    pub landmarks: Option<LandmarkScheme>,
    /// Further landmarks that it reports: [`Observation::secondary_landmarks`].
    pub secondary_landmarks: Option<LandmarkScheme>,
    /// Number of sparse key points it reports.
    pub key_points: usize,
    /// Blendshape channels it reports; empty for none.
    pub blendshapes: Arc<[String]>,
    /// Source of the blendshapes.
    pub blendshape_source: BlendshapeSource,
    /// Channels that stay near 0 in every expression.
    pub near_zero_blendshapes: &'static [&'static str],
    /// Other measurements that it reports, from [`Fields::MEASURED`].
    pub measures: Fields,
    /// Length of the embedding that it reports; 0 for none.
    pub embedding: usize,
    /// True if a frame's result depends on earlier frames.
    pub temporal: bool,
    /// Models it read.
    pub models: Vec<ModelFile>,
    /// Runtimes of its networks on the CPU.
    pub runtimes: Runtimes,
}

impl EngineInfo {
    /// An engine that reports only boxes, and keeps nothing from frame to frame.
    pub fn named(name: &'static str) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }
}

/// An event of a running engine that users should know about.
#[derive(Debug, Clone, PartialEq, Eq, Display)]
pub enum Notice {
    /// GPU memory was exhausted: frames are scaled to `det_size` px for detection.
    #[strum(to_string = "too little GPU memory, det-size reduced to {det_size} px: {reason}")]
    DetectionSizeReduced {
        /// Side of the detector's input now, px.
        det_size: usize,
        /// Error of the runtime.
        reason: String,
    },
    /// The GPU failed: the engine runs on the CPU now.
    #[strum(to_string = "the GPU failed, continuing on the CPU: {reason}")]
    FellBackToCpu {
        /// Error of the runtime.
        reason: String,
        /// Models that it runs there, which may be others for the same task.
        models: Vec<ModelFile>,
        /// The runtimes of its networks there.
        runtimes: Runtimes,
    },
}

/// Error of an engine.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A model is missing, broken or failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// One of the models of an engine with several is missing, broken or failed.
    #[error("{source}")]
    Part {
        /// Role of the model.
        role: ModelRole,
        /// The reason.
        source: ModelError,
    },
    /// A setting has a value that the engine can't use.
    #[error("{setting}: {reason}")]
    Config {
        /// Name of the setting in the engine's configuration.
        setting: &'static str,
        /// The reason.
        reason: String,
    },
    /// A frame that can't be read.
    #[error("unreadable frame: {0}")]
    Frame(String),
    /// The engine may not run on any available device.
    #[error(transparent)]
    Device(#[from] Refusal),
    /// No engine has that name.
    #[error(transparent)]
    Unknown(#[from] UnknownEngine),
}

/// Role of a model in an engine with several models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelRole {
    /// The model that finds faces.
    Detector,
    /// The model that finds landmarks.
    Landmarks,
    /// The model that measures the gaze.
    Gaze,
}

impl ModelError {
    /// The error of an engine's model that has this role.
    pub(crate) fn of(self, role: ModelRole) -> EngineError {
        EngineError::Part { role, source: self }
    }
}

impl EngineError {
    /// The value of `setting` can't be used.
    pub fn config(setting: &'static str, reason: impl Into<String>) -> Self {
        Self::Config {
            setting,
            reason: reason.into(),
        }
    }
}

choices! {
    /// Relation of frames: they follow one another or are independent.
    pub enum RunningMode, words running_mode_words {
        Video = "video": "successive frames of a video: an engine may track faces instead of searching every frame",
        Image = "image": "every frame is analysed independently",
    }
}

/// Minimum scores, 0…1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Score of a detection.
    pub detection: f32,
    /// Score of the landmark network.
    pub presence: f32,
    /// Overlap at which a detection is a face that is already tracked.
    pub tracking: f32,
}

impl Thresholds {
    /// MediaPipe's thresholds: `FaceLandmarkerOptions` in `face_landmarker.h`.
    /// [`EngineEntry::thresholds`] has the thresholds of other engines.
    pub const DEFAULT: Self = Self {
        detection: 0.5,
        presence: 0.5,
        tracking: 0.5,
    };
}
