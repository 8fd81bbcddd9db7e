// SPDX-License-Identifier: MPL-2.0
//! The engines by name.

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::{
    Engine, EngineError, EngineInfo, RunningMode, Thresholds, eos, insightface, mediapipe, opencv,
    openseeface, scripted,
};
use crate::device::Placement;
use crate::locate::SearchPaths;
use crate::options::kebab;

/// The engines of this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// Google's MediaPipe face landmarker.
    MediaPipe,
    /// OpenCV's cascade classifier: boxes.
    OpenCvHaar,
    /// OpenCV's YuNet: boxes and 5 key points.
    OpenCvYunet,
    /// YuNet's faces, measured with MediaPipe's landmark and blendshape networks.
    OpenCvYunetPyfeat,
    /// OpenSeeFace's tracker.
    OpenSeeFace,
    /// YuNet's faces, fitted with eos' 3-D morphable model.
    Eos,
    /// InsightFace's model packs.
    InsightFace,
    /// Faces by script, without a network.
    Scripted,
}

impl EngineKind {
    /// Every engine.
    pub const ALL: [Self; 8] = [
        Self::MediaPipe,
        Self::OpenCvHaar,
        Self::OpenCvYunet,
        Self::OpenCvYunetPyfeat,
        Self::OpenSeeFace,
        Self::Eos,
        Self::InsightFace,
        Self::Scripted,
    ];

    /// The name in properties, metadata and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::MediaPipe => "mediapipe",
            Self::OpenCvHaar => "opencv-haar",
            Self::OpenCvYunet => "opencv-yunet",
            Self::OpenCvYunetPyfeat => "opencv-yunet-pyfeat",
            Self::OpenSeeFace => "openseeface",
            Self::Eos => "eos",
            Self::InsightFace => "insightface",
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
            _ => false,
        }
    }

    /// The least scores of the engine's original.
    pub fn thresholds(self) -> Thresholds {
        match self {
            Self::OpenCvYunet | Self::OpenCvYunetPyfeat | Self::Eos => opencv::yunet::THRESHOLDS,
            Self::OpenSeeFace => openseeface::THRESHOLDS,
            Self::InsightFace => insightface::THRESHOLDS,
            _ => Thresholds::default(),
        }
    }

    /// Other names that it goes by, hyphenated.
    pub fn aliases(self) -> &'static [&'static str] {
        match self {
            Self::MediaPipe => &["mediapipe-landmarker"],
            _ => &[],
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
            .ok_or_else(|| UnknownEngine::new(name, &wanted))
    }
}

/// No engine has that name. The message lists the engines, and suggests one whose name is similar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEngine {
    name: String,
    suggestion: Option<&'static str>,
}

impl UnknownEngine {
    /// Fewer letters are a part of too many names.
    const LEAST_PART: usize = 3;

    /// With more than one wrong letter in so many a name is another one, and no typing error.
    const LETTERS_PER_EDIT: usize = 3;

    /// `wanted` is `name`, hyphenated.
    fn new(name: &str, wanted: &str) -> Self {
        let names = EngineKind::ALL.map(EngineKind::name).into_iter();
        let similar = names
            .map(|engine| (strsim::osa_distance(engine, wanted), engine))
            .filter(|(edits, engine)| {
                let is_part = wanted.len() >= Self::LEAST_PART && engine.contains(wanted);
                is_part || edits * Self::LETTERS_PER_EDIT <= engine.len()
            });
        Self {
            name: name.to_owned(),
            suggestion: similar.min().map(|(_, engine)| engine),
        }
    }
}

impl Error for UnknownEngine {}

impl fmt::Display for UnknownEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown engine {:?}", self.name)?;
        match self.suggestion {
            Some(engine) => write!(f, ": did you mean `{engine}`? `engine`")?,
            None => write!(f, ", `engine`")?,
        }
        let names = EngineKind::ALL.map(EngineKind::name);
        write!(f, " is one of: {}", names.join(", "))
    }
}

/// What [`load`] needs to know.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineConfig {
    /// Model file; `None` to look for the published one.
    pub model: Option<PathBuf>,
    /// Model file of the detector, for engines with several models; `None` as with `model`.
    pub detector_model: Option<PathBuf>,
    /// Model file of the landmarks, for engines with several models; `None` as with `model`.
    pub landmark_model: Option<PathBuf>,
    /// Model file of the gaze, for engines with several models; `None` as with `model`.
    pub gaze_model: Option<PathBuf>,
    /// Where models and ONNX Runtime are looked for.
    pub paths: SearchPaths,
    /// Whether frames follow one another.
    pub running_mode: RunningMode,
    /// Greatest number of faces; `None` for the engine's own.
    pub max_faces: Option<usize>,
    /// Threads a network runs on.
    pub threads: usize,
    /// Widest frame that the detector sees, px; 0 for any, `None` for the engine's own.
    pub detect_max_width: Option<usize>,
    /// Greatest IoU of two detected faces.
    pub nms_threshold: f32,
    /// How a cascade looks for faces.
    pub haar: opencv::haar::Search,
    /// What a `jawOpen` that is derived from landmarks is multiplied by.
    pub jaw_open_scale: f32,
    /// What OpenSeeFace's tracker alone can be told.
    pub openseeface: openseeface::Settings,
    /// What the fit of a morphable model alone can be told.
    pub eos: eos::Settings,
    /// What InsightFace alone can be told.
    pub insightface: insightface::Settings,
    /// Where InsightFace's networks run; every other engine runs on the processor.
    pub placement: Placement,
    /// What the scripted engine sees.
    pub script: Option<String>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            model: None,
            detector_model: None,
            landmark_model: None,
            gaze_model: None,
            paths: SearchPaths::default(),
            running_mode: RunningMode::default(),
            max_faces: None,
            threads: 1,
            detect_max_width: None,
            nms_threshold: opencv::yunet::NMS_THRESHOLD,
            haar: opencv::haar::Search::default(),
            jaw_open_scale: 1.0,
            openseeface: openseeface::Settings::default(),
            eos: eos::Settings::default(),
            insightface: insightface::Settings::default(),
            placement: Placement::Cpu,
            script: None,
        }
    }
}

/// Makes an engine ready to run: reads its models and opens its networks. Nothing is downloaded.
///
/// # Errors
/// [`EngineError::Model`] when the runtime or a model is missing, damaged or another one than the engine needs;
/// [`EngineError::Config`] when a setting can't be used.
pub fn load(kind: EngineKind, config: &EngineConfig) -> Result<Engine, EngineError> {
    match kind {
        EngineKind::MediaPipe => mediapipe::load(config),
        EngineKind::OpenCvHaar => opencv::haar::load(config),
        EngineKind::OpenCvYunet => opencv::yunet::load(config),
        EngineKind::OpenCvYunetPyfeat => opencv::yunet_pyfeat::load(config),
        EngineKind::OpenSeeFace => openseeface::load(config),
        EngineKind::Eos => eos::load(config),
        EngineKind::InsightFace => insightface::load(config),
        EngineKind::Scripted => scripted::load(config),
    }
}

/// What an engine would measure with `config`, without loading it: no models are listed.
///
/// # Errors
/// [`EngineError::Config`] when a setting can't be used.
pub fn describe(kind: EngineKind, config: &EngineConfig) -> Result<EngineInfo, EngineError> {
    match kind {
        EngineKind::MediaPipe => Ok(mediapipe::describe(config)),
        EngineKind::OpenCvHaar => Ok(opencv::haar::describe()),
        EngineKind::OpenCvYunet => Ok(opencv::yunet::describe()),
        EngineKind::OpenCvYunetPyfeat => Ok(opencv::yunet_pyfeat::describe()),
        EngineKind::OpenSeeFace => Ok(openseeface::describe(config)),
        EngineKind::Eos => Ok(eos::describe(config)),
        EngineKind::InsightFace => Ok(insightface::describe(config)),
        EngineKind::Scripted => Ok(scripted::Script::of(config)?.info(config.running_mode)),
    }
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
