// SPDX-License-Identifier: MPL-2.0
//! The description of an engine, and the type that names engines.

use std::str::FromStr;

use thiserror::Error;

use super::{Engine, EngineConfig, EngineError, EngineInfo, EngineKind, Thresholds};
use crate::device::Capabilities;
use crate::words::kebab;

/// Default of [`EngineConfig::nms_threshold`] of most engines: the default of OpenCV's `FaceDetectorYN`.
pub const NMS_THRESHOLD: f32 = 0.3;

/// A group of settings. An engine uses all settings of a group or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// [`EngineConfig::running_mode`].
    RunningMode,
    /// [`Thresholds::detection`].
    Detection,
    /// [`Thresholds::presence`].
    Presence,
    /// [`Thresholds::tracking`].
    Overlap,
    /// [`EngineConfig::nms_threshold`] and [`EngineConfig::detect_max_width`].
    Suppression,
    /// [`EngineConfig::opencv_haar`].
    OpenCvHaar,
    /// [`EngineConfig::openseeface`].
    OpenSeeFace,
    /// [`Completer::calibration`](super::Completer::calibration).
    Calibration,
    /// `EngineConfig::eos`.
    Eos,
    /// `EngineConfig::insightface`.
    InsightFace,
    /// [`EngineConfig::jaw_open_scale`].
    JawOpen,
    /// Smoothing of landmarks, and the interval of blendshapes.
    Landmarks,
    /// [`EngineConfig::threads`], [`EngineConfig::runtime`] and ONNX Runtime.
    Networks,
    /// The folder of models.
    Models,
    /// [`EngineConfig::model`].
    Model,
    /// [`EngineConfig::detector_model`] and [`EngineConfig::landmark_model`].
    ModelParts,
    /// [`EngineConfig::gaze_model`].
    GazeModel,
    /// [`EngineConfig::script`].
    Script,
    /// [`EngineConfig::placement`]: the engine can run on a GPU.
    Gpu,
}

/// Description of an engine. Each engine has one, in its own folder.
pub struct EngineEntry {
    /// Name in properties, metadata and JSON.
    pub name: &'static str,
    /// Other names, hyphenated.
    pub aliases: &'static [&'static str],
    /// Settings that the engine uses, besides those that every engine uses.
    pub settings: &'static [Setting],
    /// Default thresholds.
    pub thresholds: Thresholds,
    /// Default of [`EngineConfig::nms_threshold`].
    pub nms_threshold: f32,
    /// Default of [`EngineConfig::detect_max_width`].
    pub detect_max_width: usize,
    /// True if the engine invents faces instead of looking at pixels.
    pub is_synthetic: bool,
    /// Metres for each unit of the translation of a pose; `None` if the engine does not measure the
    /// distance of a head from the camera.
    pub metres: Option<f32>,
    /// True if the engine's original smooths landmarks with these settings.
    pub smooths_natively: fn(&EngineConfig) -> bool,
    /// Describes what the engine measures, without loading it and without a list of models.
    pub describe: fn(&EngineConfig) -> Result<EngineInfo, EngineError>,
    /// Reads the models and opens the networks.
    pub load: fn(&EngineConfig) -> Result<Engine, EngineError>,
}

impl EngineEntry {
    /// An engine with the values that most engines have.
    pub(super) const fn new(
        name: &'static str,
        describe: fn(&EngineConfig) -> Result<EngineInfo, EngineError>,
        load: fn(&EngineConfig) -> Result<Engine, EngineError>,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            settings: &[],
            thresholds: Thresholds::DEFAULT,
            nms_threshold: NMS_THRESHOLD,
            detect_max_width: 0,
            is_synthetic: false,
            metres: None,
            smooths_natively: |_| false,
            describe,
            load,
        }
    }
}

/// Defines [`EngineKind`] from one line for each engine: its feature, its variant and the module
/// with its `ENTRY`. The first engine is the default.
macro_rules! engines {
    ($($feature:literal $kind:ident = $($module:ident)::+;)*) => {
        /// An engine of this build.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EngineKind {
            $(
                #[doc = concat!("`", $feature, "`, with the feature of this name.")]
                #[cfg(feature = $feature)]
                $kind,
            )*
        }

        impl EngineKind {
            /// Every engine.
            pub const ALL: [Self; [$(#[cfg(feature = $feature)] Self::$kind),*].len()] =
                [$(#[cfg(feature = $feature)] Self::$kind),*];

            /// The description of the engine.
            pub fn entry(self) -> &'static EngineEntry {
                match self {
                    $(#[cfg(feature = $feature)] Self::$kind => &$($module)::+::ENTRY,)*
                }
            }
        }
    };
}

pub(super) use engines;

impl Default for EngineKind {
    fn default() -> Self {
        Self::ALL[0]
    }
}

impl EngineKind {
    /// The name in properties, metadata and JSON.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The default thresholds.
    pub fn thresholds(self) -> Thresholds {
        self.entry().thresholds
    }

    /// Returns true if the engine's original smooths landmarks with these settings.
    pub fn smooths_natively(self, config: &EngineConfig) -> bool {
        (self.entry().smooths_natively)(config)
    }

    /// Returns the properties of the engine that decide on its device.
    pub fn capabilities(self) -> Capabilities {
        Capabilities {
            engine: self.name(),
            gpu: self.uses(Setting::Gpu),
        }
    }

    /// The names of the engines that can run on a GPU, with their aliases.
    pub fn gpu_names() -> Vec<&'static str> {
        let kinds = Self::ALL.into_iter().filter(|kind| kind.uses(Setting::Gpu));
        let names = kinds.flat_map(|kind| [&[kind.name()], kind.entry().aliases].concat());
        names.collect()
    }

    /// Returns true if the engine uses the settings of a group.
    pub fn uses(self, setting: Setting) -> bool {
        self.entry().settings.contains(&setting)
    }
}

impl FromStr for EngineKind {
    type Err = UnknownEngine;

    /// Takes names and aliases in any case, with hyphens or underscores.
    fn from_str(name: &str) -> Result<Self, UnknownEngine> {
        let wanted = kebab(name);
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == wanted || kind.entry().aliases.contains(&wanted.as_str()))
            .ok_or_else(|| UnknownEngine::new(name, &wanted))
    }
}

/// Error for a name that no engine has. The message lists the engines, and suggests one with a
/// similar name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown engine {name:?}{}`engine` is one of: {}", .suggestion.map_or(", ".to_owned(), |engine| format!(": did you mean `{engine}`? ")), EngineKind::ALL.map(EngineKind::name).join(", "))]
pub struct UnknownEngine {
    name: String,
    suggestion: Option<&'static str>,
}

impl UnknownEngine {
    /// Minimum length of a part of a name that suggests the name.
    const MIN_PART: usize = 3;

    /// Minimum number of letters per wrong letter: with more wrong letters, a name is not a typing
    /// error.
    const LETTERS_PER_EDIT: usize = 3;

    /// `wanted` is `name`, hyphenated.
    fn new(name: &str, wanted: &str) -> Self {
        let names = EngineKind::ALL.map(EngineKind::name).into_iter();
        let similar = names
            .map(|engine| (strsim::osa_distance(engine, wanted), engine))
            .filter(|(edits, engine)| {
                let is_part = wanted.len() >= Self::MIN_PART && engine.contains(wanted);
                is_part || edits * Self::LETTERS_PER_EDIT <= engine.len()
            });
        Self {
            name: name.to_owned(),
            suggestion: similar.min().map(|(_, engine)| engine),
        }
    }
}

/// Loads an engine: reads its models and opens its networks. Nothing is downloaded.
///
/// # Errors
/// Returns [`EngineError::Model`] if the runtime or a model is missing, damaged or not the expected
/// one; [`EngineError::Config`] if a setting cannot be used.
pub fn load(kind: EngineKind, config: &EngineConfig) -> Result<Engine, EngineError> {
    (kind.entry().load)(config)
}

/// Describes what an engine measures with `config`, without loading it and without a list of
/// models.
///
/// # Errors
/// Returns [`EngineError::Config`] if a setting cannot be used.
pub fn describe(kind: EngineKind, config: &EngineConfig) -> Result<EngineInfo, EngineError> {
    (kind.entry().describe)(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_an_engines_is_answered_with_it() {
        for (name, meant) in [
            ("yunet", Some("opencv-yunet")),
            ("haar", Some("opencv-haar")),
            ("PyFeat", Some("opencv-yunet-pyfeat")),
            ("opencv_yunet_py_feat", Some("opencv-yunet-pyfeat")),
            ("media-pipe", Some("mediapipe")),
            ("medaipipe", Some("mediapipe")),
            ("openface", Some("openseeface")),
            ("insight", Some("insightface")),
            ("", None),
            ("e", None),
            ("dlib", None),
            ("none", None),
        ] {
            let error = name.parse::<EngineKind>().expect_err(name).to_string();
            let start = format!("unknown engine {name:?}");
            let start = match meant {
                Some(engine) => format!("{start}: did you mean `{engine}`? `engine` is one of: "),
                None => format!("{start}, `engine` is one of: "),
            };
            assert!(error.starts_with(&start), "{error}");
        }
    }
}
