// SPDX-License-Identifier: MPL-2.0
//! InsightFace: the models of a pack such as `buffalo_l`, as `insightface.app.FaceAnalysis` of
//! insightface 2.1 runs them (deepinsight/insightface, commit 7fadd420).
//!
//! A pack is a folder of ONNX files, each recognised by its tensors. SCRFD finds faces and five key
//! points. The other networks measure each face: 106 landmarks, 68 landmarks in space with the
//! head's pose, age and gender, an embedding. On the CPU, each of them runs once per frame
//! on all faces; on a GPU, once per four faces.

#[cfg(test)]
mod fake;
pub mod gpu_fallback;
mod load;
mod measures;
mod network;
mod networks;
mod opened;
pub mod pack;
mod package;
mod pose;
mod provider;
mod regions;
pub mod rewrite;
mod scrfd;
mod settings;

use crate::blendshape::BlendshapeSource;
use crate::engine::jaw::{CHANNELS, JawOpen};
use crate::engine::{
    Completer, Context, EngineConfig, EngineEntry, EngineError, EngineInfo, Setting, Wanted,
};
use crate::observation::{Fields, LandmarkScheme, Observation};
use pose::PoseFinder;

pub use load::load;
pub use settings::{DET_SIZE, MAX_DET_SIZE, Module, Settings, modules};

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

/// The half of the engine that derives pose and blendshapes from landmarks.
struct Derived {
    pose: PoseFinder,
    jaw_open: JawOpen,
}

/// The engine `insightface`.
pub static ENTRY: EngineEntry = EngineEntry {
    settings: &[
        Setting::Detection,
        Setting::Suppression,
        Setting::InsightFace,
        Setting::JawOpen,
        Setting::Landmarks,
        Setting::Networks,
        Setting::Models,
        Setting::Model,
        Setting::Gpu,
    ],
    nms_threshold: NMS_THRESHOLD,
    detect_max_width: MAX_WIDTH,
    ..EngineEntry::new("insightface", |config| Ok(describe(config)), load)
};

/// Describes the engine with a complete pack. The loaded engine describes its own pack.
pub fn describe(config: &EngineConfig) -> EngineInfo {
    let wanted = config.insightface.wanted();
    info(|module| wanted.contains(&module).then_some(EMBEDDING))
}

/// Describes an engine. `values` returns the number of values that a network measures for a face;
/// `None` if the pack has no such network.
fn info(values: impl Fn(Module) -> Option<usize>) -> EngineInfo {
    let has = |module| values(module).is_some();
    let of_68 = has(Module::Landmark3d68).then_some(LandmarkScheme::Ibug68);
    let of_106 = has(Module::Landmark2d106).then_some(LandmarkScheme::InsightFace106);
    let landmarks = of_68.or(of_106);
    let channels = CHANNELS.iter().filter(|_| landmarks.is_some());
    EngineInfo {
        landmarks,
        secondary_landmarks: of_68.and(of_106),
        key_points: KEY_POINTS,
        blendshapes: channels.map(|name| (*name).to_owned()).collect(),
        blendshape_source: BlendshapeSource::Derived,
        measures: Fields::of([
            (Fields::POSE, has(Module::Landmark3d68)),
            (Fields::ATTRIBUTES, has(Module::GenderAge)),
        ]),
        embedding: values(Module::Recognition).unwrap_or_default(),
        ..EngineInfo::named(ENTRY.name)
    }
}

impl Completer for Derived {
    fn complete(&mut self, face: &mut Observation, context: &Context) -> Result<(), EngineError> {
        let Some(landmarks) = &face.landmarks else {
            return Ok(());
        };
        face.pose = self.pose.find(landmarks, context.frame_size);
        if context.wanted == Wanted::Everything {
            face.blendshapes = self.jaw_open.measure(landmarks);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
