// SPDX-License-Identifier: MPL-2.0
//! What settings and environment ask the element to do.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use crate::face::analyzer::{Analyzer, Tuning};
use crate::face::device::{self, Decision, Gate, LibrarySearch, MachineProbe, Placement, Request};
use crate::face::engine::opencv::haar::Search;
use crate::face::engine::{self, EngineConfig, EngineError, EngineInfo, EngineKind, Thresholds};
use crate::face::engine::{eos, insightface, openseeface};
use crate::face::options::facetrack::{FACETRACK, PostMessages, Smoothing};
use crate::face::options::{EnvWarning, Resolved, Settings};
use crate::face::report::ReportSource;
use crate::face::smoothing::OneEuro;
use crate::face::tracker::TrackerConfig;

/// The environment variables that the options know, as they were at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct Environment(HashMap<&'static str, String>);

impl Environment {
    /// The process's own, now.
    pub fn of_process() -> Self {
        let variables = FACETRACK.iter().flat_map(|option| option.env);
        Self(
            variables
                .filter_map(|default| {
                    Some((default.variable, std::env::var(default.variable).ok()?))
                })
                .collect(),
        )
    }

    fn get(&self, variable: &str) -> Option<String> {
        self.0.get(variable).cloned()
    }
}

/// Everything that the element does, decided.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// What has to be loaded.
    pub setup: Setup,
    /// What may change from frame to frame.
    pub live: Live,
}

/// The part of a plan that a loaded engine and its tracker are made for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setup {
    pub kind: EngineKind,
    pub config: EngineConfig,
    pub tracker: TrackerConfig,
    pub request: Request,
    /// The file that keeps what the engine learns.
    pub calibration_file: Option<PathBuf>,
}

/// The part of a plan that takes effect with the next frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Live {
    pub tuning: Tuning,
    pub post_messages: PostMessages,
    /// Frames between two lines in the log; 0 for none.
    pub profile_interval: u64,
}

impl Plan {
    /// Puts explicit settings, the environment and the defaults together.
    ///
    /// # Errors
    /// [`EngineError::Unknown`] when the engine that was set does not exist.
    pub fn new(
        settings: &Settings,
        env: &Environment,
    ) -> Result<(Self, Vec<EnvWarning>), EngineError> {
        let env = |variable: &str| env.get(variable);
        let (options, _) = settings.resolve(None, &env);
        let kind: EngineKind = options.get::<String>("engine").parse()?;
        let (options, warnings) = settings.resolve(Some(kind.name()), &env);
        Ok((Self::of(kind, &options), warnings))
    }

    fn of(kind: EngineKind, options: &Resolved) -> Self {
        let config = EngineConfig {
            model: options.get("model"),
            detector_model: options.get("detector-model"),
            landmark_model: options.get("landmark-model"),
            gaze_model: options.get("gaze-model"),
            models_dir: options.get("models-dir"),
            onnxruntime: options.get("onnxruntime"),
            running_mode: options.get("running-mode"),
            max_faces: Some(options.get("max-faces")).filter(|&limit: &usize| limit > 0),
            threads: options.get("threads"),
            detect_max_width: Some(options.get("detect-max-width")),
            nms_threshold: options.get("nms-threshold"),
            haar: Search {
                scale_factor: options.get("scale-factor"),
                min_neighbors: options.get("min-neighbors"),
                min_size: options.get("min-size"),
                max_size: Some(options.get("max-size")).filter(|&size: &usize| size > 0),
            },
            jaw_open_scale: options.get("jaw-open-scale"),
            eos: eos::Settings {
                identity: options.get("identity"),
                mesh: options.get("mesh"),
            },
            insightface: insightface::Settings::default(),
            placement: Placement::Cpu,
            openseeface: openseeface::Settings {
                scan_every: options.get("scan-every"),
                discard_after: options.get("discard-after"),
                calibration_time: options.get("calibration-time"),
                pnp_points: options.get("pnp-points"),
                gaze: options.get("gaze"),
            },
            script: options.get("script"),
        };
        let tracker = TrackerConfig {
            kind: options.get("tracker"),
            max_distance: options.get("max-distance"),
            max_age: options.get("max-age"),
        };
        Self {
            live: Live::of(kind, &config, options),
            setup: Setup {
                kind,
                config,
                tracker,
                request: request(options),
                calibration_file: options.get("calibration-file"),
            },
        }
    }

    /// What the engine would measure.
    ///
    /// # Errors
    /// Those of [`engine::describe`].
    pub fn describe(&self) -> Result<EngineInfo, EngineError> {
        engine::describe(self.setup.kind, &self.setup.config)
    }

    /// Loads the engine where it may run.
    ///
    /// # Errors
    /// Those of [`device::negotiate`] and of [`engine::load`].
    pub fn load(&self) -> Result<(Analyzer, Decision), EngineError> {
        let start = Instant::now();
        let setup = &self.setup;
        let decision = device::negotiate(setup.kind, &setup.request, &mut MachineProbe::default())?;
        let config = EngineConfig {
            placement: decision.placement.clone(),
            ..setup.config.clone()
        };
        let engine = engine::load(setup.kind, &config)?;
        let source = ReportSource {
            engine: engine.info().name.to_owned(),
            device: decision.placement.device(),
            execution_provider: decision.placement.execution_provider().to_owned(),
            device_reason: decision.reason.clone(),
            load_time: start.elapsed(),
            generator: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_owned(),
            models: engine.info().models.clone(),
        };
        let analyzer = Analyzer::new(engine, setup.tracker, self.live.tuning, source);
        Ok((analyzer, decision))
    }
}

impl Live {
    /// What other settings mean to the engine that is loaded: that they name another one, or load it in another way,
    /// shows when it is loaded next.
    pub fn with(setup: &Setup, settings: &Settings, env: &Environment) -> Self {
        let env = |variable: &str| env.get(variable);
        let (options, _) = settings.resolve(Some(setup.kind.name()), &env);
        Self::of(setup.kind, &setup.config, &options)
    }

    fn of(kind: EngineKind, config: &EngineConfig, options: &Resolved) -> Self {
        let tuning = Tuning {
            thresholds: Thresholds {
                detection: options.get("detection-confidence"),
                presence: options.get("presence-confidence"),
                tracking: options.get("tracking-confidence"),
            },
            smoothing: smoothing(kind, config, options),
            blendshape_interval: options.get("blendshape-interval"),
            inference_interval: options.get("inference-interval"),
        };
        Self {
            tuning,
            post_messages: options.get("post-messages"),
            profile_interval: options.get::<u32>("profile-interval").into(),
        }
    }
}

fn request(options: &Resolved) -> Request {
    const MEBIBYTE: u64 = 1 << 20;
    Request {
        device: Some(options.get("device")),
        gate: Gate::Open,
        fallback: options.get("gpu-fallback"),
        gpu_id: u32::try_from(options.get::<i32>("gpu-id")).ok(),
        max_vram: u64::from(options.get::<u32>("gpu-max-vram")) * MEBIBYTE,
        min_free_vram: u64::from(options.get::<u32>("gpu-min-free-vram")) * MEBIBYTE,
        libraries: LibrarySearch::default(),
        onnxruntime: options.get("onnxruntime"),
        tuning: device::CudaTuning::default(),
    }
}

fn smoothing(kind: EngineKind, config: &EngineConfig, options: &Resolved) -> Option<OneEuro> {
    let wanted = match options.get("smoothing") {
        Smoothing::Native => kind.smooths_natively(config),
        Smoothing::Off => false,
        Smoothing::OneEuro => true,
    };
    wanted.then(|| OneEuro {
        min_cutoff: options.get("smoothing-min-cutoff"),
        beta: options.get("smoothing-beta"),
        derivative_cutoff: options.get("smoothing-derivate-cutoff"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::engine::RunningMode;
    use crate::face::engine::opencv::yunet::{
        MAX_WIDTH as YUNET_MAX_WIDTH, NMS_THRESHOLD as YUNET_NMS_THRESHOLD,
    };
    use crate::face::options::Value;

    fn plan(set: &[(&str, Value)], env: &[(&'static str, &str)]) -> Plan {
        let mut settings = Settings::new(FACETRACK);
        for (name, value) in set {
            settings.set(name, Some(value.clone()));
        }
        let env = env.iter().map(|(name, value)| (*name, (*value).to_owned()));
        let (plan, warnings) =
            Plan::new(&settings, &Environment(env.collect())).expect("a known engine");
        assert_eq!(warnings, []);
        plan
    }

    fn text(word: &str) -> Value {
        Value::Text(word.to_owned())
    }

    /// A `value` that `variable` can't have is told, and changes nothing.
    fn assert_warns(engine: &str, variable: &'static str, value: &str, option: &str) {
        let chosen = ("STEP5_TRACKING_ENGINE", engine.to_owned());
        let env = HashMap::from([chosen, (variable, value.to_owned())]);
        let settings = Settings::new(FACETRACK);
        let (given, warnings) = Plan::new(&settings, &Environment(env)).expect("an engine");
        let [warning] = warnings.as_slice() else {
            panic!("{variable}: {warnings:?}");
        };
        assert_eq!((warning.variable, warning.option), (variable, option));
        let usual = plan(&[("engine", text(engine))], &[]);
        assert_eq!(given.setup, usual.setup, "{variable}");
        assert_eq!(given.live, usual.live, "{variable}");
    }

    #[test]
    fn defaults_are_those_of_the_domain() {
        let plan = plan(&[], &[]);
        assert_eq!(plan.setup.kind, EngineKind::MediaPipe);
        let config = EngineConfig {
            detect_max_width: Some(0),
            ..EngineConfig::default()
        };
        assert_eq!(plan.setup.config, config);
        assert_eq!(plan.setup.tracker, TrackerConfig::default());
        assert_eq!(plan.live.tuning, Tuning::default());
        assert_eq!(plan.live.post_messages, PostMessages::None);
        assert_eq!(plan.live.profile_interval, 0);
    }

    #[test]
    fn the_environment_reaches_its_options() {
        let plan = plan(
            &[],
            &[
                ("STEP5_TRACKING_ENGINE", "MediaPipe_Landmarker"),
                ("STEP5_MEDIAPIPE_MAX_FACES", "1"),
                ("STEP5_BLENDSHAPES_THROTTLE_N", "4"),
                ("STEP5_ONNX_INTRA_OP_THREADS", "2"),
                ("STEP5_ENABLE_PROFILING", "true"),
            ],
        );
        assert_eq!(plan.setup.kind, EngineKind::MediaPipe);
        assert_eq!(plan.setup.config.max_faces, Some(1));
        assert_eq!(plan.setup.config.threads, 2);
        assert_eq!(plan.live.tuning.blendshape_interval, 4);
        assert_eq!(plan.live.profile_interval, 20);
    }

    #[test]
    fn the_environment_reaches_openseeface() {
        let engine = ("STEP5_TRACKING_ENGINE", "openseeface");
        let plan_of = |env: &[_]| plan(&[], &[&[engine], env].concat());
        let plan = plan_of(&[
            ("STEP5_OPENSEEFACE_MAX_FACES", "3"),
            ("STEP5_OPENSEEFACE_DETECTION_THRESHOLD", "0.4"),
            ("STEP5_OPENSEEFACE_JAWOPEN_SCALE", "2.5"),
            ("STEP5_OPENSEEFACE_DETECT_EVERY_N", "2"),
            ("STEP5_OPENSEEFACE_MODELS_DIR", "/models"),
            ("STEP5_OPENSEEFACE_DETECTION_MODEL_PATH", "/detector.onnx"),
            ("STEP5_OPENSEEFACE_MODEL_ID", " -3"),
        ]);
        let config = &plan.setup.config;
        assert_eq!(plan.setup.kind, EngineKind::OpenSeeFace);
        assert_eq!(config.max_faces, Some(3));
        assert_eq!(config.jaw_open_scale, 2.5);
        assert_eq!(config.models_dir, Some("/models".into()));
        assert_eq!(config.detector_model, Some("/detector.onnx".into()));
        assert_eq!(config.landmark_model, Some("-3".into()));
        assert_eq!(plan.live.tuning.thresholds.detection, 0.4);
        assert_eq!(plan.live.tuning.inference_interval, 2);

        let id = ("STEP5_OPENSEEFACE_MODEL_ID", "1");
        let path = ("STEP5_OPENSEEFACE_LANDMARK_MODEL_PATH", "/lm.onnx");
        let landmark_model = |env: &[_]| plan_of(env).setup.config.landmark_model;
        assert_eq!(landmark_model(&[id]), Some("1".into()));
        assert_eq!(landmark_model(&[id, path]), Some("/lm.onnx".into()));
        assert_eq!(landmark_model(&[]), None);
    }

    #[test]
    fn what_openseeface_can_not_understand_warns() {
        for (variable, value, option) in [
            ("STEP5_OPENSEEFACE_MAX_FACES", "many", "max-faces"),
            (
                "STEP5_OPENSEEFACE_DETECTION_THRESHOLD",
                "1.5",
                "detection-confidence",
            ),
            ("STEP5_OPENSEEFACE_JAWOPEN_SCALE", "-1", "jaw-open-scale"),
            (
                "STEP5_OPENSEEFACE_DETECT_EVERY_N",
                "0",
                "inference-interval",
            ),
            ("STEP5_OPENSEEFACE_MODEL_ID", "5", "landmark-model"),
            ("STEP5_OPENSEEFACE_MODEL_ID", "best", "landmark-model"),
        ] {
            assert_warns("openseeface", variable, value, option);
        }
    }

    #[test]
    fn defaults_of_openseeface_are_those_of_the_domain() {
        let plan = plan(&[("engine", text("openseeface"))], &[]);
        let config = EngineConfig {
            detect_max_width: Some(0),
            ..EngineConfig::default()
        };
        assert_eq!(plan.setup.config, config);
        assert_eq!(plan.setup.calibration_file, None);
    }

    #[test]
    fn the_environment_reaches_eos() {
        let plan = plan(
            &[],
            &[
                ("STEP5_TRACKING_ENGINE", "EOS"),
                ("STEP5_EOS_MAX_FACES", "2"),
                ("STEP5_EOS_MAX_WIDTH", "800"),
                ("STEP5_EOS_FIT_EVERY_N", "3"),
                ("STEP5_EOS_JAWOPEN_SCALE", "1.5"),
                ("STEP5_EOS_MODELS_DIR", "/models"),
                ("STEP5_EOS_SFM_MODEL_PATH", "/shapes.bin"),
                ("STEP5_YUNET_MODEL_PATH", "/yunet.onnx"),
                ("STEP5_FACEMESH_ONNX_PATH", "/face.task"),
                // Of other engines.
                ("STEP5_YUNET_MAX_WIDTH", "320"),
                ("STEP5_OPENSEEFACE_DETECT_EVERY_N", "7"),
                ("STEP5_OPENSEEFACE_MODEL_ID", "1"),
            ],
        );
        let config = &plan.setup.config;
        assert_eq!(plan.setup.kind, EngineKind::Eos);
        assert_eq!(config.max_faces, Some(2));
        assert_eq!(config.detect_max_width, Some(800));
        assert_eq!(config.jaw_open_scale, 1.5);
        assert_eq!(config.models_dir, Some("/models".into()));
        assert_eq!(config.model, Some("/shapes.bin".into()));
        assert_eq!(config.detector_model, Some("/yunet.onnx".into()));
        assert_eq!(config.landmark_model, Some("/face.task".into()));
        assert_eq!(plan.live.tuning.inference_interval, 3);
    }

    #[test]
    fn what_eos_can_not_understand_warns() {
        for (variable, value, option) in [
            ("STEP5_EOS_MAX_FACES", "-1", "max-faces"),
            ("STEP5_EOS_MAX_WIDTH", "wide", "detect-max-width"),
            ("STEP5_EOS_FIT_EVERY_N", "0", "inference-interval"),
            ("STEP5_EOS_JAWOPEN_SCALE", "nan", "jaw-open-scale"),
        ] {
            assert_warns("eos", variable, value, option);
        }
    }

    #[test]
    fn defaults_of_eos_are_those_of_the_domain() {
        let plan = plan(&[("engine", text("eos"))], &[]);
        let config = EngineConfig {
            detect_max_width: Some(eos::MAX_WIDTH),
            ..EngineConfig::default()
        };
        assert_eq!(plan.setup.config, config);
        assert_eq!(plan.live.tuning.smoothing, None);
    }

    #[test]
    fn what_eos_alone_can_be_told_reaches_it() {
        let set = [
            ("engine", text("eos")),
            ("identity", text("per-frame")),
            ("mesh", Value::Bool(true)),
        ];
        let told = eos::Settings {
            identity: eos::Identity::PerFrame,
            mesh: true,
        };
        assert_eq!(plan(&set, &[]).setup.config.eos, told);
    }

    #[test]
    fn each_engine_has_its_own_defaults() {
        for kind in EngineKind::ALL {
            let plan = plan(&[("engine", text(kind.name()))], &[]);
            assert_eq!(plan.live.tuning.thresholds, kind.thresholds());
            assert_eq!(plan.setup.config.haar, Search::default());
            assert_eq!(plan.setup.config.nms_threshold, YUNET_NMS_THRESHOLD);
        }
        for (engine, width) in [
            ("mediapipe", 0),
            ("opencv-yunet", YUNET_MAX_WIDTH),
            ("opencv-yunet-pyfeat", YUNET_MAX_WIDTH),
            ("eos", eos::MAX_WIDTH),
        ] {
            let plan = plan(&[("engine", text(engine))], &[]);
            assert_eq!(plan.setup.config.detect_max_width, Some(width), "{engine}");
        }
    }

    #[test]
    fn other_settings_do_not_make_another_engine_of_the_one_that_is_loaded() {
        let loaded = plan(&[("max-faces", Value::Int(2))], &[]);
        let mut settings = Settings::new(FACETRACK);
        for (name, value) in [
            ("engine", text("opencv-yunet")),
            ("max-faces", Value::Int(1)),
            ("presence-confidence", Value::Float(0.25)),
        ] {
            settings.set(name, Some(value));
        }
        let live = Live::with(&loaded.setup, &settings, &Environment::default());
        let mut want = loaded.live;
        want.tuning.thresholds.presence = 0.25;
        assert_eq!(live, want);
    }

    #[test]
    fn an_unknown_engine_lists_the_known_ones() {
        let mut settings = Settings::new(FACETRACK);
        settings.set("engine", Some(text("dlib")));
        let error = Plan::new(&settings, &Environment::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown engine \"dlib\", `engine` is one of: mediapipe, opencv-haar, opencv-yunet, opencv-yunet-pyfeat, openseeface, eos, scripted"
        );
    }

    #[test]
    fn native_smoothing_is_the_originals() {
        let one = ("max-faces", Value::Int(1));
        for (set, smooths) in [
            (vec![], false),
            (vec![one.clone()], true),
            (vec![one.clone(), ("running-mode", text("image"))], false),
            (vec![one.clone(), ("smoothing", text("off"))], false),
            (vec![one, ("engine", text("scripted"))], false),
            (vec![("smoothing", text("one-euro"))], true),
        ] {
            let tuning = plan(&set, &[]).live.tuning;
            let want = smooths.then_some(OneEuro::MEDIAPIPE);
            assert_eq!(tuning.smoothing, want, "{set:?}");
        }
    }

    #[test]
    fn every_choice_has_a_meaning() {
        for (option, word) in [
            ("running-mode", "image"),
            ("pnp-points", "all"),
            ("identity", "per-frame"),
            ("tracker", "iou"),
            ("device", "cuda"),
        ] {
            plan(&[(option, text(word))], &[]);
        }
        let plan = plan(&[("running-mode", text("image"))], &[]);
        assert_eq!(plan.setup.config.running_mode, RunningMode::Image);
    }
}
