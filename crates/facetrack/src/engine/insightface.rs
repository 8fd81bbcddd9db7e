// SPDX-License-Identifier: MPL-2.0
//! InsightFace: the models of a pack such as `buffalo_l`, as `insightface.app.FaceAnalysis` of
//! insightface 2.1 runs them (deepinsight/insightface, commit 7fadd420).
//!
//! A pack is a folder of ONNX files, each recognised by its tensors. SCRFD finds faces and five key
//! points. The other networks measure each face: 106 landmarks, 68 landmarks in space with the
//! head's pose, age and gender, an embedding. On the CPU, each of them runs once per frame
//! on all faces; on a GPU, once per face.

#[cfg(test)]
mod fake;
mod load;
mod measures;
mod movable;
mod network;
mod networks;
pub mod pack;
mod placed;
mod pose;
mod regions;
pub mod resilient;
pub mod rewrite;
mod scrfd;
mod settings;

use std::sync::Arc;

use crate::blendshape::{BlendshapeSource, Blendshapes};
use crate::device::Placement;
use crate::engine::jaw::Jaw;
use crate::engine::{
    Completer, Context, EngineConfig, EngineEntry, EngineError, EngineInfo, EngineKind, Finder,
    Frame, Setting, Thresholds, Wanted,
};
use crate::observation::{LandmarkScheme, Landmarks, Observation};
use networks::Networks;
use pose::PoseFinder;

pub use load::load;
pub use pack::{Opened, Pack};
pub use scrfd::MULTIPLE as DET_SIZE_STEP;
pub use settings::{DET_SIZE, MAX_DET_SIZE, Module, Settings, modules};

/// Default minimum scores: `det_thresh` of `FaceAnalysis.prepare`.
pub const THRESHOLDS: Thresholds = Thresholds::DEFAULT;

/// Maximum IoU of two detected faces: `nms_thresh` of `SCRFD`.
pub const NMS_THRESHOLD: f32 = 0.4;

/// Default maximum width of the frame that the detector sees, px. Frames are fitted into its input,
/// so this matters only below the input's side.
pub const MAX_WIDTH: usize = 1280;

/// Number of key points of a face: the eyes, the tip of the nose, the corners of the mouth. Of a
/// pair, the one on the left of the image comes first.
pub const KEY_POINTS: usize = 5;

/// Length of the embedding of InsightFace's published networks.
pub const EMBEDDING: usize = 512;

/// The blendshapes that follow from landmarks, in ARKit's spelling.
pub const CHANNELS: [&str; 1] = ["jawOpen"];

/// The half of the engine that looks at pixels.
pub struct InsightFace {
    info: EngineInfo,
    pack: Box<dyn Pack>,
    config: EngineConfig,
    networks: Networks,
    thresholds: Thresholds,
}

/// The half of the engine that derives pose and blendshapes from landmarks.
pub struct Derived {
    pose: PoseFinder,
    channels: Arc<[String]>,
    jaw_open_scale: f32,
}

/// The engine `insightface`.
pub static ENTRY: EngineEntry = EngineEntry {
    settings: &[
        Setting::Detection,
        Setting::Suppression,
        Setting::Pack,
        Setting::JawOpen,
        Setting::Landmarks,
        Setting::Networks,
        Setting::Models,
        Setting::Model,
        Setting::Gpu,
    ],
    thresholds: THRESHOLDS,
    nms_threshold: NMS_THRESHOLD,
    detect_max_width: MAX_WIDTH,
    ..EngineEntry::new("insightface", |config| Ok(describe(config)), load)
};

/// The networks that find landmarks, and their schemes: the landmarks of the face, then the
/// secondary landmarks.
const SCHEMES: [(Module, LandmarkScheme); 2] = [
    (Module::Landmark3d68, LandmarkScheme::Ibug68),
    (Module::Landmark2d106, LandmarkScheme::InsightFace106),
];

/// Describes the engine with a complete pack. The loaded engine describes its own pack.
pub fn describe(config: &EngineConfig) -> EngineInfo {
    let wanted = config.pack.wanted();
    info(|module| wanted.contains(&module).then_some(EMBEDDING))
}

/// Describes an engine. `values` returns the number of values that a network measures for a face;
/// `None` if the pack has no such network.
fn info(values: impl Fn(Module) -> Option<usize>) -> EngineInfo {
    let has = |module| values(module).is_some();
    let schemes = SCHEMES.into_iter().filter(|(module, _)| has(*module));
    let mut schemes = schemes.map(|(_, scheme)| scheme);
    let landmarks = schemes.next();
    let channels = CHANNELS.iter().filter(|_| landmarks.is_some());
    EngineInfo {
        landmarks,
        secondary_landmarks: schemes.next(),
        key_points: KEY_POINTS,
        blendshapes: channels.map(|name| (*name).to_owned()).collect(),
        blendshape_source: BlendshapeSource::Derived,
        pose: has(Module::Landmark3d68),
        attributes: has(Module::GenderAge),
        embedding: values(Module::Recognition).unwrap_or_default(),
        ..EngineInfo::of_boxes(EngineKind::InsightFace)
    }
}

impl InsightFace {
    /// Creates the engine that runs the networks of `pack` on the device that `config` names.
    ///
    /// # Errors
    /// [`EngineError::Config`] for settings that can't be used, [`EngineError::Model`] for a pack
    /// that can't.
    pub fn new(pack: Box<dyn Pack>, config: &EngineConfig) -> Result<Self, EngineError> {
        Self::with_det_size(pack, config, config.pack.det_size)
    }

    /// Creates the engine as [`InsightFace::new`] does, with a detector's input of `det_size` px
    /// until it moves to another device.
    fn with_det_size(
        pack: Box<dyn Pack>,
        config: &EngineConfig,
        det_size: usize,
    ) -> Result<Self, EngineError> {
        config.pack.check()?;
        if let Placement::Cuda(cuda) = &config.placement
            && cuda.tuning.is_contradictory()
        {
            return Err(EngineError::config(
                "deterministic",
                "TensorRT chooses its operators by measuring them, so it is not deterministic",
            ));
        }
        let networks = Networks::open(&*pack, config, &config.placement, det_size)?;
        Ok(Self {
            info: networks.info(),
            pack,
            config: config.clone(),
            networks,
            thresholds: THRESHOLDS,
        })
    }

    /// The other half of the engine.
    pub fn derived(&self) -> Derived {
        Derived {
            pose: PoseFinder::new(),
            channels: self.info.blendshapes.clone(),
            jaw_open_scale: self.config.jaw_open_scale,
        }
    }
}

impl Derived {
    fn jaw_open(&self, landmarks: &Landmarks) -> Option<Blendshapes> {
        let jaw = match landmarks.scheme {
            LandmarkScheme::Ibug68 => Jaw::IBUG_68,
            _ => Jaw::INSIGHTFACE_106,
        };
        let open = jaw.open(&landmarks.points, self.jaw_open_scale)?;
        let channels = Blendshapes::new(self.channels.clone(), vec![open]);
        Some(channels.from_source(BlendshapeSource::Derived))
    }
}

impl Finder for InsightFace {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn find(&mut self, frame: &Frame<'_>) -> Result<Vec<Observation>, EngineError> {
        let min_score = self.thresholds.detection;
        let found = self.networks.detector.detect(&frame.image, min_score)?;
        let mut faces: Vec<Observation> = found.into_iter().map(Observation::from).collect();
        self.networks.measures.measure(&frame.image, &mut faces)?;
        Ok(faces)
    }

    fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }
}

impl Completer for Derived {
    fn complete(&mut self, face: &mut Observation, context: &Context) -> Result<(), EngineError> {
        let Some(landmarks) = &face.landmarks else {
            return Ok(());
        };
        face.pose = self.pose.find(landmarks, context.frame_size);
        if context.wanted == Wanted::Everything {
            face.blendshapes = self.jaw_open(landmarks);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
