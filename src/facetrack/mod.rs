// SPDX-License-Identifier: MPL-2.0
//! The element `facetrack`: finds and follows faces in video, and attaches what it knows of them to each frame.

use gst::glib;
use gst::prelude::*;

mod calibration;
mod clock;
mod failure;
mod imp;
mod loading;
mod messages;
mod plan;
mod state;

glib::wrapper! {
    /// The element; its properties are [`facetrack::options::facetrack::FACETRACK`].
    pub struct FaceTrack(ObjectSubclass<imp::FaceTrack>) @extends gst_base::BaseTransform, gst::Element, gst::Object;
}

/// Adds the element to `plugin`.
///
/// # Errors
/// When GStreamer refuses it.
pub fn register(plugin: &gst::Plugin) -> Result<(), glib::BoolError> {
    gst::Element::register(
        Some(plugin),
        "facetrack",
        gst::Rank::NONE,
        FaceTrack::static_type(),
    )
}

/// Values of the property `running-mode`: [`facetrack::engine::RunningMode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstFaceTrackRunningMode")]
pub enum RunningMode {
    /// Frames follow one another.
    #[default]
    #[enum_value(
        name = "frames follow one another: faces go on from where they were, and mediapipe and openseeface search only when one is missing",
        nick = "video"
    )]
    Video,
    /// Every frame stands alone.
    #[enum_value(name = "every frame stands alone", nick = "image")]
    Image,
}

/// Values of the property `pnp-points`: [`facetrack::engine::openseeface::PnpPoints`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstFaceTrackPnpPoints")]
pub enum PnpPoints {
    /// None.
    #[default]
    #[enum_value(name = "none", nick = "none")]
    None,
    /// Those that the pose is solved with.
    #[enum_value(name = "the points that the pose is solved with", nick = "fitted")]
    Fitted,
    /// Those of all landmarks.
    #[enum_value(name = "the points of all landmarks", nick = "all")]
    All,
}

/// Values of the property `identity`: [`facetrack::engine::eos::Identity`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstFaceTrackIdentity")]
pub enum Identity {
    /// All frames of the face so far.
    #[default]
    #[enum_value(
        name = "all frames of the face so far: its shape comes to rest",
        nick = "running"
    )]
    Running,
    /// Each frame by itself.
    #[enum_value(name = "each frame by itself, as eos does", nick = "per-frame")]
    PerFrame,
}

/// Values of the property `smoothing`: [`facetrack::options::facetrack::Smoothing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstFaceTrackSmoothing")]
pub enum Smoothing {
    /// As the engine's original does.
    #[default]
    #[enum_value(
        name = "as the engine's original does: mediapipe smooths in video mode with max-faces=1 alone",
        nick = "native"
    )]
    Native,
    /// Not at all.
    #[enum_value(name = "landmarks as measured", nick = "off")]
    Off,
    /// One-Euro for each face.
    #[enum_value(
        name = "a One-Euro filter per face, for any number of faces",
        nick = "one-euro"
    )]
    OneEuro,
}

/// Values of the property `tracker`: [`facetrack::tracker::TrackerKind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstFaceTrackTracker")]
pub enum Tracker {
    /// By the nearest centre.
    #[default]
    #[enum_value(name = "the nearest centre, one after the other", nick = "centroid")]
    Centroid,
    /// By overlap.
    #[enum_value(
        name = "the best overlap with where faces are expected, all weighed together: no exchange when faces cross",
        nick = "iou"
    )]
    Iou,
}

/// Values of the property `device`: [`facetrack::device::DeviceChoice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstFaceTrackDevice")]
pub enum Device {
    /// What suits the engine.
    #[default]
    #[enum_value(name = "what suits the engine", nick = "auto")]
    Auto,
    /// The processor.
    #[enum_value(name = "the processor", nick = "cpu")]
    Cpu,
    /// An NVIDIA GPU.
    #[enum_value(name = "an NVIDIA GPU, for engines that may use one", nick = "cuda")]
    Cuda,
}

/// Values of the property `cudnn-conv-algo-search`: [`facetrack::device::ConvAlgorithmSearch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstFaceTrackConvAlgorithmSearch")]
pub enum ConvAlgorithmSearch {
    /// By trying all.
    #[default]
    #[enum_value(
        name = "tries all of them at the first run: slow to start, fastest then",
        nick = "exhaustive"
    )]
    Exhaustive,
    /// By guessing.
    #[enum_value(name = "guesses", nick = "heuristic")]
    Heuristic,
    /// Not at all.
    #[enum_value(name = "takes the one that always works", nick = "default")]
    Default,
}

/// Values of the property `late-frames`: [`facetrack::options::facetrack::LateFrames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstFaceTrackLateFrames")]
pub enum LateFrames {
    /// By the pipeline.
    #[default]
    #[enum_value(name = "held in live pipelines, analysed in others", nick = "auto")]
    Auto,
    /// Held.
    #[enum_value(
        name = "faces are held from the last frame that was analysed",
        nick = "hold"
    )]
    Hold,
    /// Analysed.
    #[enum_value(name = "analysed, however late they are", nick = "analyze")]
    Analyze,
}

/// Values of the property `post-messages`: [`facetrack::options::facetrack::PostMessages`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstFaceTrackPostMessages")]
pub enum PostMessages {
    /// None.
    #[default]
    #[enum_value(name = "no messages", nick = "none")]
    None,
    /// Of changes.
    #[enum_value(name = "when a face enters or leaves", nick = "on-change")]
    OnChange,
    /// Of frames and changes.
    #[enum_value(
        name = "each frame, and when a face enters or leaves",
        nick = "every-frame"
    )]
    EveryFrame,
}
