// SPDX-License-Identifier: MPL-2.0
//! What settings and environment ask the element to do.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use facetrack::analyzer::{Analyzer, Tuning};
use facetrack::device::{
    self, Decision, DeviceChoice, Gate, LibrarySearch, MachineProbe, Placement, Request,
};
use facetrack::engine::opencv::haar::Search;
use facetrack::engine::{self, EngineConfig, EngineError, EngineInfo, EngineKind, Thresholds};
use facetrack::engine::{eos, insightface, openseeface};
use facetrack::locate::SearchPaths;
use facetrack::options::facetrack::{FACETRACK, PostMessages, Smoothing};
use facetrack::options::{EnvWarning, Resolved, Settings, Unused};
use facetrack::report::ReportSource;
use facetrack::schedule::ScheduleSettings;
use facetrack::smoothing::OneEuro;
use facetrack::tracker::TrackerConfig;

/// The environment variables that the options and the choice of a device know, as they were at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct Environment(HashMap<&'static str, String>);

impl Environment {
    /// The process's own, now.
    pub fn of_process() -> Self {
        Self(
            Self::variables()
                .filter_map(|variable| Some((variable, std::env::var(variable).ok()?)))
                .collect(),
        )
    }

    fn variables() -> impl Iterator<Item = &'static str> + Clone {
        let defaults = FACETRACK.iter().flat_map(|option| option.env);
        defaults
            .map(|default| default.variable)
            .chain(Gate::VARIABLES)
            .chain(LibrarySearch::VARIABLES)
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
    /// Options that were set for other engines.
    pub unused: Option<Unused>,
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
    pub schedule: ScheduleSettings,
    pub post_messages: PostMessages,
    /// Frames between two lines in the log; 0 for none.
    pub profile_interval: u64,
}

impl Plan {
    /// Puts explicit settings, the environment and the defaults together.
    ///
    /// # Errors
    /// [`EngineError::Unknown`] when the engine that was set does not exist, [`EngineError::Config`] when a setting has no
    /// meaning.
    pub fn new(
        settings: &Settings,
        env: &Environment,
    ) -> Result<(Self, Vec<EnvWarning>), EngineError> {
        let env = |variable: &str| env.get(variable);
        let (options, _) = settings.resolve(None, &env);
        let kind: EngineKind = options.get::<String>("engine").parse()?;
        let (options, mut warnings) = settings.resolve(Some(kind.name()), &env);
        if kind == EngineKind::InsightFace && settings.explicit::<DeviceChoice>("device").is_none()
        {
            warnings.extend(Gate::warning(&env));
        }
        let request = Request::of(settings, &options, &env);
        let unused = settings.unused(kind.name());
        Ok((Self::of(kind, &options, request, unused)?, warnings))
    }

    fn of(
        kind: EngineKind,
        options: &Resolved,
        request: Request,
        unused: Option<Unused>,
    ) -> Result<Self, EngineError> {
        let config = EngineConfig {
            model: options.get("model"),
            detector_model: options.get("detector-model"),
            landmark_model: options.get("landmark-model"),
            gaze_model: options.get("gaze-model"),
            paths: search_paths(options),
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
            insightface: insightface_settings(options)?,
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
        Ok(Self {
            live: Live::of(kind, &config, options),
            setup: Setup {
                kind,
                request: Request {
                    runtime: config.paths.runtime_candidates(),
                    visible_devices: std::env::var("CUDA_VISIBLE_DEVICES").ok(),
                    ..request
                },
                config,
                tracker,
                calibration_file: options.get("calibration-file"),
            },
            unused,
        })
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
        let mut source = ReportSource {
            engine: engine.info().name.to_owned(),
            load_time: start.elapsed(),
            generator: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_owned(),
            models: engine.info().models.clone(),
            ..ReportSource::default()
        };
        source.place(&decision.placement, decision.reason.as_str());
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
            predict: options.get("predict"),
        };
        Self {
            tuning,
            schedule: ScheduleSettings {
                late_frames: options.get("late-frames"),
                inference_interval: options.get("inference-interval"),
                max_fps: options.get("max-fps"),
            },
            post_messages: options.get("post-messages"),
            profile_interval: options.get::<u32>("profile-interval").into(),
        }
    }
}

fn insightface_settings(options: &Resolved) -> Result<insightface::Settings, EngineError> {
    let allowed = options.get::<Option<String>>("allowed-modules");
    let allowed_modules = insightface::modules(&allowed.unwrap_or_default())
        .map_err(|reason| EngineError::config("allowed_modules", reason))?;
    Ok(insightface::Settings {
        allowed_modules,
        det_size: options.get("det-size"),
        embedding: options.get("embedding"),
    })
}

/// The paths of the properties and of the process environment.
fn search_paths(options: &Resolved) -> SearchPaths {
    let found = SearchPaths::from_vars(std::env::var_os);
    let runtime: Option<PathBuf> = options.get("onnxruntime");
    SearchPaths {
        models_dir: options.get("models-dir"),
        runtime: runtime.or(found.runtime),
        ..found
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
mod tests;
