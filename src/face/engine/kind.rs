// SPDX-License-Identifier: MPL-2.0
//! The engines by name.

use std::path::PathBuf;
use std::str::FromStr;

use thiserror::Error;

use super::{Engine, EngineError, EngineInfo, RunningMode, mediapipe, scripted};
use crate::face::options::kebab;

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

    /// Whether the engine's original smooths landmarks in this configuration.
    ///
    /// MediaPipe does for one face in video mode: `num_faces` of 1 with a stream in `face_landmarker_graph.cc`.
    pub fn smooths_natively(self, config: &EngineConfig) -> bool {
        match self {
            Self::MediaPipe => {
                config.running_mode == RunningMode::Video && config.max_faces == Some(1)
            }
            Self::Scripted => false,
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
            threads: 1,
            script: None,
        }
    }
}

/// Makes an engine ready to run: reads its models and opens its networks. Nothing is downloaded.
///
/// # Errors
/// [`EngineError::Model`] when the runtime or a model is missing, damaged or another one than the engine needs;
/// [`EngineError::Config`] when a setting can't be used.
pub fn load(kind: EngineKind, config: &EngineConfig) -> Result<Box<dyn Engine>, EngineError> {
    match kind {
        EngineKind::MediaPipe => load_mediapipe(config),
        EngineKind::Scripted => Ok(Box::new(scripted::Scripted::new(config)?)),
    }
}

/// What an engine would measure with `config`, without loading it: no models are listed.
///
/// # Errors
/// [`EngineError::Config`] when a setting can't be used.
pub fn describe(kind: EngineKind, config: &EngineConfig) -> Result<EngineInfo, EngineError> {
    match kind {
        EngineKind::MediaPipe => Ok(mediapipe::describe(config)),
        EngineKind::Scripted => Ok(scripted::Script::of(config)?.info(config.running_mode)),
    }
}

#[cfg(feature = "onnx")]
fn load_mediapipe(config: &EngineConfig) -> Result<Box<dyn Engine>, EngineError> {
    Ok(Box::new(mediapipe::load(config)?))
}

#[cfg(not(feature = "onnx"))]
fn load_mediapipe(_: &EngineConfig) -> Result<Box<dyn Engine>, EngineError> {
    let reason = "this build can't run networks: build it with the feature `onnx`";
    Err(EngineError::Config(reason.to_owned()))
}
