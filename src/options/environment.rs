// SPDX-License-Identifier: MPL-2.0
//! Environment variables of the older pipeline of `docs/run.md`. They give defaults of options.

use std::collections::HashMap;
use std::iter;

use gst::glib;
use gst::glib::prelude::*;
use thiserror::Error;

use super::{Defaults, Row, text};
use facetrack::device::{GpuPolicy, parse_switch};
use facetrack::engine::EngineKind;

/// Interval, in frames, of profiling lines that a variable switches on, as in the older pipeline.
const PROFILE_INTERVAL: u32 = 20;

/// Variables for an element.
struct Group {
    element: &'static str,
    /// The engine that the variables are for; `None` for every engine.
    engine: Option<EngineKind>,
    /// Variables. Of several for one option, the first valid one is used.
    variables: &'static [Variable],
}

/// A variable that gives the default of an option.
struct Variable {
    name: &'static str,
    option: &'static str,
    rule: Rule,
}

/// Method of reading a variable.
enum Rule {
    /// The value of the option. The text describes another effect.
    Value(&'static str),
    /// A switch; if it is on, the option has this value.
    Switch(u32),
    /// An integer in this range, for an option that is a text.
    Integer(i32, i32),
    /// The side of a square that is a multiple of this, or both sides: `640`, `640,640`, `640x640`.
    Square(usize),
    /// If the variable is set to any text, the option has this value.
    Implied(&'static str),
    /// The variable gives no value, but has this effect if the option is not set.
    Effect(&'static str),
    /// The variable has no effect, for this reason.
    Nothing(&'static str),
}

impl Group {
    const fn of(element: &'static str, engine: Option<EngineKind>) -> Self {
        let variables = &[];
        Self {
            element,
            engine,
            variables,
        }
    }

    const fn reads(mut self, variables: &'static [Variable]) -> Self {
        self.variables = variables;
        self
    }
}

const fn of(name: &'static str, option: &'static str) -> Variable {
    let rule = Rule::Value("");
    Variable { name, option, rule }
}

impl Variable {
    const fn rule(mut self, rule: Rule) -> Self {
        self.rule = rule;
        self
    }
}

const FORBIDS_GPU: Rule = Rule::Effect("true or false; true forbids the GPU");
const ALLOWS_GPU: Rule = Rule::Effect(
    "if `STEP5_ENABLE_GPU` or `STEP5_GPU_ENGINES` is set, the GPU is forbidden unless the first is true and the second lists the engine or is `all`",
);
const FOLDERS: Rule = Rule::Effect("folders to search, separated by colons");
const PYTHON: Rule = Rule::Effect(
    "interpreter of a Python environment with the packages onnxruntime-gpu and nvidia-…",
);
const OWN_SIZE: Rule = Rule::Nothing(
    "the networks' inputs are sampled from the whole frame at the size of the networks, whatever the frame's width",
);
const TOOLKIT: Rule = Rule::Effect("folder of a CUDA toolkit to search");

static GROUPS: &[Group] = &[
    Group::of("facetrack", None).reads(&[
        of("STEP5_TRACKING_ENGINE", "engine"),
        of("STEP5_TRACKING_ENGINE", "tracker").rule(Rule::Implied("centroid")),
        of("STEP5_TRACKING_ENGINE", "max-distance").rule(Rule::Implied("80")),
        of("STEP5_BLENDSHAPES_THROTTLE_N", "blendshape-interval").rule(Rule::Integer(1, 1000)),
        of("TRACKING_CPU_WORKERS", "workers"),
        of("STEP5_ONNX_INTRA_OP_THREADS", "threads"),
        of("STEP5_GPU_FALLBACK_AUTO", "gpu-fallback"),
        of("STEP5_GPU_MAX_VRAM_MB", "gpu-max-vram"),
        of("TRACKING_DISABLE_GPU", "device").rule(FORBIDS_GPU),
        of("STEP5_ENABLE_GPU", "device").rule(ALLOWS_GPU),
        of("STEP5_GPU_ENGINES", "device").rule(ALLOWS_GPU),
        of("STEP5_CUDA_LIB_PATH", "cuda-lib-path").rule(FOLDERS),
        of("STEP5_CUDA_HOME", "cuda-lib-path").rule(TOOLKIT),
        of("CUDA_HOME", "cuda-lib-path").rule(TOOLKIT),
        of("STEP5_ENABLE_PROFILING", "profile-interval").rule(Rule::Switch(PROFILE_INTERVAL)),
        of("STEP5_GPU_PROFILING", "profile-interval").rule(Rule::Switch(PROFILE_INTERVAL)),
    ]),
    Group::of("facetrack", Some(EngineKind::MediaPipe)).reads(&[
        of("STEP5_MEDIAPIPE_MAX_FACES", "max-faces"),
        of("STEP5_MEDIAPIPE_MAX_WIDTH", "detect-max-width").rule(OWN_SIZE),
    ]),
    Group::of("facetrack", Some(EngineKind::OpenCvHaar)).reads(&[
        of("STEP5_OPENCV_MAX_FACES", "max-faces"),
        of("STEP5_OPENCV_HAAR_CASCADE_PATH", "model"),
    ]),
    Group::of("facetrack", Some(EngineKind::OpenCvYunet)).reads(&[
        of("STEP5_OPENCV_MAX_FACES", "max-faces"),
        of("STEP5_YUNET_MAX_WIDTH", "detect-max-width"),
        of("STEP5_YUNET_MODEL_PATH", "model"),
    ]),
    Group::of("facetrack", Some(EngineKind::OpenCvYunetPyfeat)).reads(&[
        of("STEP5_OPENCV_MAX_FACES", "max-faces"),
        of("STEP5_YUNET_MAX_WIDTH", "detect-max-width"),
        of("STEP5_YUNET_MODEL_PATH", "detector-model"),
        of("STEP5_FACEMESH_ONNX_PATH", "landmark-model"),
    ]),
    Group::of("facetrack", Some(EngineKind::OpenSeeFace)).reads(&[
        of("STEP5_OPENSEEFACE_MAX_FACES", "max-faces"),
        of("STEP5_OPENSEEFACE_MAX_WIDTH", "detect-max-width").rule(OWN_SIZE),
        of(
            "STEP5_OPENSEEFACE_DETECTION_THRESHOLD",
            "detection-confidence",
        ),
        of("STEP5_OPENSEEFACE_JAWOPEN_SCALE", "jaw-open-scale"),
        of("STEP5_OPENSEEFACE_DETECT_EVERY_N", "inference-interval"),
        of("STEP5_OPENSEEFACE_DETECTION_MODEL_PATH", "detector-model"),
        of("STEP5_OPENSEEFACE_LANDMARK_MODEL_PATH", "landmark-model"),
        of("STEP5_OPENSEEFACE_MODEL_ID", "landmark-model").rule(Rule::Integer(-3, 4)),
        of("STEP5_OPENSEEFACE_MODELS_DIR", "models-dir"),
    ]),
    Group::of("facetrack", Some(EngineKind::Eos)).reads(&[
        of("STEP5_EOS_MAX_FACES", "max-faces"),
        of("STEP5_EOS_MAX_WIDTH", "detect-max-width"),
        of("STEP5_EOS_JAWOPEN_SCALE", "jaw-open-scale"),
        of("STEP5_EOS_FIT_EVERY_N", "inference-interval"),
        of("STEP5_EOS_SFM_MODEL_PATH", "model"),
        of("STEP5_YUNET_MODEL_PATH", "detector-model"),
        of("STEP5_FACEMESH_ONNX_PATH", "landmark-model"),
        of("STEP5_EOS_MODELS_DIR", "models-dir"),
    ]),
    Group::of("facetrack", Some(EngineKind::InsightFace)).reads(&[
        of("STEP5_INSIGHTFACE_MAX_FACES", "max-faces"),
        of("STEP5_INSIGHTFACE_MAX_WIDTH", "detect-max-width"),
        of("STEP5_INSIGHTFACE_DET_SIZE", "det-size").rule(Rule::Square(32)),
        of("STEP5_INSIGHTFACE_ALLOWED_MODULES", "allowed-modules"),
        of("STEP5_INSIGHTFACE_JAWOPEN_SCALE", "jaw-open-scale"),
        of("STEP5_INSIGHTFACE_DETECT_EVERY_N", "inference-interval"),
        of("STEP5_INSIGHTFACE_MODEL_NAME", "model"),
        of("STEP5_INSIGHTFACE_ENV_PYTHON", "onnxruntime").rule(PYTHON),
        of("STEP5_INSIGHTFACE_ENV_PYTHON", "cuda-lib-path").rule(PYTHON),
        of("STEP5_INSIGHTFACE_CTX_ID", "gpu-id")
            .rule(Rule::Value(", except that -1 forbids the GPU")),
    ]),
    Group::of("trackjsonsink", None).reads(&[
        of("STEP5_BLENDSHAPES_PROFILE", "blendshape-profile"),
        of("STEP5_BLENDSHAPES_EXPORT_KEYS", "blendshape-keys"),
        of("STEP5_BLENDSHAPES_INCLUDE_TONGUE", "include-tongue"),
        of("STEP5_EXPORT_VERBOSE_FIELDS", "verbose"),
    ]),
];

fn variables() -> impl Iterator<Item = (&'static Group, &'static Variable)> {
    let of_group = |group: &'static Group| group.variables.iter().map(move |it| (group, it));
    GROUPS.iter().flat_map(of_group)
}

/// An environment variable with an invalid value.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("environment variable {variable}={value:?} ignored: {reason}; `{option}` is {used}")]
pub(crate) struct EnvWarning {
    pub variable: &'static str,
    pub value: String,
    pub reason: String,
    pub option: &'static str,
    /// The value of the option.
    pub used: String,
}

impl EnvWarning {
    /// Returns the warning about an invalid variable that should switch the GPU on or off.
    pub(crate) fn of_gpu_policy(environment: &Environment) -> Option<Self> {
        let (variable, value) = GpuPolicy::invalid_switch(&|name| environment.get(name))?;
        Some(Self {
            variable,
            value,
            reason: "not true or false".to_owned(),
            option: "device",
            used: "auto".to_owned(),
        })
    }
}

/// The variables that have an effect, as they were at one time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment(pub HashMap<&'static str, String>);

impl Environment {
    /// The environment of the process.
    pub(crate) fn of_process() -> Self {
        let names = variables().map(|(_, variable)| variable.name);
        let set = names.filter_map(|name| Some((name, std::env::var(name).ok()?)));
        Self(set.collect())
    }

    /// The environment with these values of the variables, in their order.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn of(values: &[String]) -> Self {
        let names = variables().map(|(_, variable)| variable.name);
        Self(names.zip(values.iter().cloned()).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// Lines for the log about variables that are set and have no effect with `engine`.
    pub(crate) fn without_effect(&self, engine: EngineKind) -> impl Iterator<Item = String> {
        variables().filter_map(move |(group, variable)| {
            let Rule::Nothing(reason) = variable.rule else {
                return None;
            };
            let name = variable.name;
            let value = self.get(name).filter(|text| !text.trim().is_empty())?;
            let is_for_engine = group.engine == Some(engine);
            is_for_engine.then(|| {
                format!(
                    "{name}={value} has no effect with engine={}: {reason}",
                    engine.name()
                )
            })
        })
    }

    /// The value of an option by the first variable that is set and valid. `resolved` has the
    /// default of the option.
    pub(crate) fn value_of<S: Defaults>(
        &self,
        row: &Row<S>,
        engine: Option<EngineKind>,
        resolved: &mut S,
        warnings: &mut Vec<EnvWarning>,
    ) -> Option<glib::Value> {
        let mut variables = variables().filter(|(group, variable)| {
            let is_for_engine = group.engine.is_none() || group.engine == engine;
            group.element == S::ELEMENT && is_for_engine && variable.option == row.name
        });
        variables.find_map(|(_, variable)| {
            let value = self
                .get(variable.name)
                .filter(|text| !text.trim().is_empty())?;
            let parsed = variable.rule.parse(row, &value);
            parsed.unwrap_or_else(|reason| {
                warnings.push(EnvWarning {
                    variable: variable.name,
                    value,
                    reason,
                    option: row.name,
                    used: text::display(&row.value(resolved)),
                });
                None
            })
        })
    }
}

impl Rule {
    fn parse<S: Defaults>(&self, row: &Row<S>, text: &str) -> Result<Option<glib::Value>, String> {
        match *self {
            Self::Value(_) => row.parse(text).map(Some),
            Self::Switch(value) => parse_switch(text)
                .map(|on| on.then(|| value.to_value()))
                .ok_or_else(|| "not true or false".to_owned()),
            Self::Integer(min, max) => match text.trim().parse::<i32>() {
                Ok(number) if (min..=max).contains(&number) => {
                    row.parse(&number.to_string()).map(Some)
                }
                _ => Err(format!("not an integer from {min} to {max}")),
            },
            Self::Square(step) => side(text)
                .filter(|side| side.is_multiple_of(step))
                .and_then(|side| row.parse(&side.to_string()).ok())
                .map(Some)
                .ok_or_else(|| {
                    let range = text::expected(&row.param_spec());
                    format!("not {range} that is a multiple of {step}, or the two sides of a square, as in 640,640")
                }),
            Self::Implied(value) => row.parse(value).map(Some),
            Self::Effect(_) | Self::Nothing(_) => Ok(None),
        }
    }

    fn describe(&self) -> String {
        match *self {
            Self::Value(effect) => format!("the value of the property{effect}"),
            Self::Switch(value) => format!("true or false; true = {value}"),
            Self::Integer(min, max) => format!("an integer from {min} to {max}"),
            Self::Square(step) => format!(
                "a multiple of {step}, or the two sides of a square, as in `640,640` or `640x640`"
            ),
            Self::Implied(value) => format!("{value} if the variable is set, as in that pipeline"),
            Self::Effect(effect) => effect.to_owned(),
            Self::Nothing(reason) => format!("no effect: {reason}"),
        }
    }
}

/// The side of a square from one side or both; 0 from `auto`.
fn side(text: &str) -> Option<usize> {
    if text.trim() == "auto" {
        return Some(0);
    }
    let mut sides = text
        .split([',', 'x', 'X'])
        .map(|side| side.trim().parse().ok());
    let first = sides.next()??;
    let is_square = match (sides.next(), sides.next()) {
        (None, _) => true,
        (Some(second), None) => second == Some(first),
        (Some(_), Some(_)) => false,
    };
    is_square.then_some(first)
}

/// The variables as a table in Markdown.
pub fn table() -> String {
    let header = "| variable | element | property | engine | value |\n|---|---|---|---|---|\n";
    let rows = variables().map(|(group, variable)| {
        format!(
            "| `{}` | `{}` | `{}` | {} | {} |\n",
            variable.name,
            group.element,
            variable.option,
            group.engine.map_or("all", EngineKind::name),
            variable.rule.describe(),
        )
    });
    iter::once(header.to_owned()).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use facetrack::device::LibrarySearch;

    use super::super::{FaceTrackSettings, JsonSinkSettings};
    use super::*;

    fn names_of<S: Defaults>() -> impl Iterator<Item = (&'static str, &'static str)> {
        S::ROWS.iter().map(|row| (S::ELEMENT, row.name))
    }

    #[test]
    fn every_variable_has_an_option() {
        let options: Vec<_> = names_of::<FaceTrackSettings>()
            .chain(names_of::<JsonSinkSettings>())
            .collect();
        for (group, variable) in variables() {
            let option = (group.element, variable.option);
            assert!(options.contains(&option), "{}", variable.name);
        }
    }

    #[test]
    fn the_table_has_every_variable() {
        let is_known = |name: &str| variables().any(|(_, variable)| variable.name == name);
        for name in GpuPolicy::VARIABLES
            .into_iter()
            .chain(LibrarySearch::VARIABLES)
        {
            assert!(is_known(name), "{name}");
        }
        let text = table();
        assert_eq!(text.lines().count(), variables().count() + 2);
        for line in text.lines() {
            assert_eq!(line.matches('|').count(), 6, "{line}");
        }
    }
}
