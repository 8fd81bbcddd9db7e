// SPDX-License-Identifier: MPL-2.0
//! OpenSeeFace: 66 landmarks, gaze, head pose and features, as `tracker.py` of
//! emilianavt/OpenSeeFace at commit dee5bb76 computes them with `facetracker.py`'s settings.
//!
//! The [`Finder`](super::Finder) is in `finder.rs`. The [`Completer`](super::Completer), which
//! fits a 3-D face to the landmarks and learns each face's range of expression, is in `faces.rs`.

pub(crate) mod faces;
mod finder;
mod load;
mod networks;
mod peaks;
pub mod rewrite;

use smart_default::SmartDefault;

use crate::blendshape::BlendshapeSource;
use crate::engine::{
    Engine, EngineConfig, EngineEntry, EngineInfo, RunningMode, Setting, Thresholds,
};
use crate::model::ModelFile;
use crate::observation::{Fields, LandmarkScheme};
use crate::words::choices;
use finder::FaceFinder;

pub(super) use faces::FACE_POINTS;
pub use faces::Faces;
pub use load::load;
pub use networks::{LandmarkContract, Networks, Opened};
pub use peaks::{Peak, Peaks};

/// Default minimum scores: `--detection-threshold` and `--threshold` of `facetracker.py`, the
/// second for the landmark models 0…4.
pub const THRESHOLDS: Thresholds = Thresholds {
    detection: 0.6,
    presence: 0.6,
    tracking: 0.5,
};

/// Default maximum number of faces: `--faces` of `facetracker.py`.
pub const MAX_FACES: usize = 1;

/// The blendshapes that follow from landmarks and features, in ARKit's spelling.
pub const CHANNELS: [&str; 8] = [
    "browDownLeft",
    "browDownRight",
    "browInnerUp",
    "browOuterUpLeft",
    "browOuterUpRight",
    "eyeBlinkLeft",
    "eyeBlinkRight",
    "jawOpen",
];

choices! {
    /// Points of the 3-D model that are reported as the camera sees them.
    pub enum PnpPoints, words pnp_points_words {
        None = "none": "no points",
        Fitted = "fitted": "the points that the pose is solved with",
        All = "all": "the points of all landmarks",
    }
}

/// Settings of this engine. The defaults come from `facetracker.py`.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
pub struct Settings {
    /// Interval, in frames, at which whole frames are searched while there are fewer faces than the
    /// maximum: `--scan-every`.
    #[default(3)]
    pub scan_every: usize,
    /// Number of frames that a lost face is searched for at its last position: `--discard-after`.
    #[default(10)]
    pub discard_after: usize,
    /// Time for which a face's range of expression is learned, s; 0 = without limit:
    /// `--max-feature-updates`.
    #[default(900.0)]
    pub calibration_time: f32,
    /// Points of the 3-D model to report.
    #[default(PnpPoints::None)]
    pub pnp_points: PnpPoints,
    /// True to measure the gaze: `--gaze-tracking`.
    #[default(true)]
    pub gaze: bool,
}

/// The engine `openseeface`.
pub static ENTRY: EngineEntry = EngineEntry {
    settings: &[
        Setting::RunningMode,
        Setting::Detection,
        Setting::Presence,
        Setting::OpenSeeFace,
        Setting::Calibration,
        Setting::JawOpen,
        Setting::Landmarks,
        Setting::Networks,
        Setting::Models,
        Setting::ModelParts,
        Setting::GazeModel,
    ],
    thresholds: THRESHOLDS,
    ..EngineEntry::new("openseeface", |config| Ok(describe(config)), load)
};

/// Describes the engine before it is loaded, without models.
pub fn describe(config: &EngineConfig) -> EngineInfo {
    let is_video = config.running_mode == RunningMode::Video;
    // All except the last are derived from features, which are learned over several frames.
    let channels: &[_] = if is_video { &CHANNELS } else { &CHANNELS[7..] };
    EngineInfo {
        landmarks: Some(LandmarkScheme::OpenSeeFace66),
        blendshapes: channels.iter().map(|name| (*name).to_owned()).collect(),
        blendshape_source: BlendshapeSource::Derived,
        measures: Fields::of([
            (Fields::POSE | Fields::FIT, true),
            (Fields::GAZE, config.openseeface.gaze),
            (Fields::FEATURES, is_video),
        ]),
        temporal: is_video,
        ..EngineInfo::named(ENTRY.name)
    }
}

/// Creates the engine that runs `networks`, which were read from `files`.
pub fn assemble(networks: Networks, files: Vec<ModelFile>, config: &EngineConfig) -> Engine {
    let faces = Faces::new(config, &networks.peaks.contract);
    let info = EngineInfo {
        models: files,
        ..describe(config)
    };
    Engine::new(info, FaceFinder::new(networks, config), faces)
}
