// SPDX-License-Identifier: MPL-2.0
//! YuNet's faces with a 3-D morphable model fitted to them, as eos 1.5.0 does it.
//!
//! [`Engine::process`] finds faces with YuNet and measures 68 landmarks with MediaPipe's mesh; [`Engine::complete`] fits the
//! model to them, since a face's shape is shared over the frames of its identity.

use crate::face::blendshape::BlendshapeSource;
#[cfg(feature = "onnx")]
use crate::face::engine::EngineError;
use crate::face::engine::opencv::yunet;
use crate::face::engine::{EngineConfig, EngineInfo, EngineKind};
use crate::face::observation::LandmarkScheme;
use crate::face::options::choices;

/// The blendshapes that follow from landmarks, in ARKit's spelling. The model's own expressions (anger, disgust, fear,
/// happiness, sadness, surprise) are none of ARKit's.
pub const CHANNELS: [&str; 1] = ["jawOpen"];

choices! {
    /// What a face's shape is fitted to.
    pub enum Identity {
        Running = "running": "all frames of the face so far: its shape comes to rest",
        PerFrame = "per-frame": "each frame by itself, as eos does",
    }
}

/// What this engine alone can be told.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// What a face's shape is fitted to.
    pub identity: Identity,
    /// Whether to report every vertex.
    pub mesh: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            identity: Identity::Running,
            mesh: false,
        }
    }
}

/// What the engine measures; no models are listed.
pub fn describe(config: &EngineConfig) -> EngineInfo {
    EngineInfo {
        landmarks: Some(LandmarkScheme::Ibug68),
        key_points: yunet::KEY_POINTS,
        blendshapes: CHANNELS.map(str::to_owned).into(),
        blendshape_source: BlendshapeSource::Derived,
        pose: true,
        temporal: config.eos.identity == Identity::Running,
        ..EngineInfo::of_boxes(EngineKind::Eos)
    }
}

/// Loads YuNet's file, MediaPipe's bundle and eos' files, those that `config` names or the published ones.
///
/// # Errors
/// When the runtime or a model is missing, damaged or another one; the message names the property of that model.
#[cfg(feature = "onnx")]
pub fn load(_config: &EngineConfig) -> Result<super::scripted::Scripted, EngineError> {
    Err(EngineError::Config("not loaded yet".to_owned()))
}
