// SPDX-License-Identifier: MPL-2.0
//! The configuration of the element that results from settings and environment.

use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use super::failure::Failure;

use crate::options::{
    self, EnvWarning, Environment, FaceTrackSettings, Options, PostMessages, Smoothing,
};
use facetrack::analyzer::{Analyzer, Tuning};
use facetrack::device::{
    self, Decision, GpuPolicy, LibrarySearch, MachineProbe, Placement, Request,
};
use facetrack::engine::{self, EngineConfig, EngineError, EngineKind, Finder, Setting};
use facetrack::report::{ReportSource, options_text};
use facetrack::schedule::ScheduleSettings;
use facetrack::tracker::TrackerConfig;
use facetrack::workers::Workers;
use facetrack_assets::locate::SearchPaths;
use serde_json::{Map, Value};

/// The complete configuration of the element.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// The part that needs loading.
    pub setup: Setup,
    /// The part that may change from frame to frame.
    pub live: Live,
    /// Variables that are ignored.
    pub warnings: Vec<EnvWarning>,
    /// A warning of options that were set for other engines.
    pub unused: Option<String>,
    /// Options that were set.
    options: Map<String, Value>,
}

/// The part of a plan that is applied when an engine and its tracker are created.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setup {
    pub kind: EngineKind,
    pub config: EngineConfig,
    pub tracker: TrackerConfig,
    pub request: Request,
    /// The file that stores the calibration of the engine.
    pub calibration_file: Option<PathBuf>,
    /// The file that stores the rest values of blendshapes.
    pub neutral_file: Option<PathBuf>,
    /// Number of frames to analyse at once, if the engine can.
    pub workers: usize,
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
    /// Combines explicit settings, the environment and the defaults.
    ///
    /// # Errors
    /// Returns [`EngineError::Unknown`] if no engine has the name that was set,
    /// [`EngineError::Config`] if a setting is invalid.
    pub(super) fn new(
        options: &Options<FaceTrackSettings>,
        env: &Environment,
    ) -> Result<Self, EngineError> {
        let (chosen, _) = options.resolve(None, env);
        let kind = chosen.engine.parse()?;
        let (settings, mut warnings) = options.resolve(Some(kind), env);
        if kind.uses(Setting::Gpu) && settings.device.is_none() {
            warnings.extend(EnvWarning::of_gpu_policy(env));
        }
        let config = config(&settings)?;
        let gains = settings.gains();
        gains.map_err(|reason| EngineError::config("blendshape_gain", reason))?;
        Ok(Self {
            live: Live::of(kind, &config, &settings),
            setup: Setup {
                kind,
                request: request(&settings, &options.settings, env)?,
                config,
                tracker: settings.tracker,
                calibration_file: settings.calibration_file,
                neutral_file: settings.neutral_file,
                workers: workers(settings.workers),
            },
            warnings,
            unused: options.unused(kind),
            options: options.explicit_with(kind),
        })
    }

    /// Loads the engine where it may run, and starts workers if there should be several and the
    /// engine can analyse several frames at once. Models and libraries are also searched in the
    /// folders that the process environment names.
    ///
    /// # Errors
    /// Returns the errors of [`device::negotiate`] and of [`engine::load`], and
    /// [`Failure::Workers`].
    pub(super) fn load(&self) -> Result<(Analyzer, Option<Workers>, Decision), Failure> {
        let start = Instant::now();
        let setup = &self.setup;
        let found = SearchPaths::from_vars(std::env::var_os);
        let paths = search_paths(setup.config.paths.clone(), found);
        let request = Request {
            paths: paths.clone(),
            visible_devices: std::env::var("CUDA_VISIBLE_DEVICES").ok(),
            ..setup.request.clone()
        };
        let (capabilities, probe) = (setup.kind.capabilities(), &mut MachineProbe::default());
        let decision = device::negotiate(capabilities, &request, probe);
        let decision = decision.map_err(EngineError::from)?;
        let config = EngineConfig {
            paths,
            placement: decision.placement.clone(),
            ..setup.config.clone()
        };
        let engine = engine::load(setup.kind, &config)?;
        let has_workers = setup.workers > 1 && engine.finder.is_independent();
        let workers = has_workers.then(|| setup.start_workers(config));
        let workers = workers.transpose()?;
        let mut source = ReportSource {
            load_time: start.elapsed(),
            generator: concat!(env!("CARGO_PKG_NAME"), " ", env!("CARGO_PKG_VERSION")).to_owned(),
            options: options_text(&self.options),
            ..ReportSource::of(&engine.info)
        };
        let reason = decision.reason.as_str();
        source.place(&decision.placement, &engine.info.runtimes, reason);
        let analyzer = Analyzer::new(engine, setup.tracker, self.live.tuning, source);
        Ok((analyzer, workers, decision))
    }
}

impl Setup {
    /// Starts the workers, whose finders are loaded with `config` on the CPU.
    fn start_workers(&self, mut config: EngineConfig) -> Result<Workers, Failure> {
        config.placement = Placement::Cpu;
        let load = || engine::load(self.kind, &config).map(|engine| engine.finder);
        let finders: Result<Vec<Box<dyn Finder>>, Failure> = thread::scope(|scope| {
            let begin = |_| thread::Builder::new().spawn_scoped(scope, load);
            let loading: Vec<_> = (0..self.workers).map(begin).collect();
            let loaded = loading.into_iter().map(|thread| {
                let finder = thread.map_err(Failure::Workers)?.join();
                Ok::<_, Failure>(finder.map_err(Failure::of_panic)??)
            });
            loaded.collect()
        });
        Workers::start(finders?).map_err(Failure::Workers)
    }
}

impl Live {
    /// Applies other settings to the loaded engine. Settings that select or load an engine take
    /// effect when an engine is loaded next.
    pub(super) fn with(
        setup: &Setup,
        options: &Options<FaceTrackSettings>,
        env: &Environment,
    ) -> Self {
        let (settings, _) = options.resolve(Some(setup.kind), env);
        Self::of(setup.kind, &setup.config, &settings)
    }

    fn of(kind: EngineKind, config: &EngineConfig, settings: &FaceTrackSettings) -> Self {
        let smooths = match settings.smoothing {
            Smoothing::Native => kind.smooths_natively(config),
            Smoothing::Off => false,
            Smoothing::OneEuro => true,
        };
        Self {
            tuning: Tuning {
                smoothing: smooths.then_some(settings.one_euro),
                // An invalid list was refused when it was set.
                gains: settings.gains().unwrap_or_default(),
                ..settings.tuning
            },
            schedule: settings.schedule,
            post_messages: settings.post_messages,
            profile_interval: settings.profile_interval.into(),
        }
    }
}

/// The number of workers for the setting `workers`.
fn workers(setting: u32) -> usize {
    if setting > 0 {
        return setting as usize;
    }
    thread::available_parallelism().map_or(1, usize::from)
}

fn config(settings: &FaceTrackSettings) -> Result<EngineConfig, EngineError> {
    let mut config = settings.config.clone();
    config.detect_max_width = Some(settings.detect_max_width as usize);
    config.nms_threshold = Some(settings.nms_threshold);
    let modules = settings.allowed_modules.as_deref().unwrap_or_default();
    config.insightface.allowed_modules = engine::modules(modules)
        .map_err(|reason| EngineError::config("allowed_modules", reason))?;
    Ok(config)
}

/// The paths that properties set, and those that the process environment names. Properties take
/// precedence.
fn search_paths(set: SearchPaths, found: SearchPaths) -> SearchPaths {
    SearchPaths {
        models_dir: set.models_dir,
        runtime: set.runtime.or(found.runtime),
        ..found
    }
}

/// `explicit` has the settings without the environment.
///
/// # Errors
/// Returns [`EngineError::Config`] if the device has another name.
fn request(
    settings: &FaceTrackSettings,
    explicit: &FaceTrackSettings,
    env: &Environment,
) -> Result<Request, EngineError> {
    const MEBIBYTE: u64 = 1 << 20;
    let named = settings.device.as_deref().map(options::device).transpose();
    let named = named.map_err(|reason| EngineError::config("device", reason))?;
    let number = named.and_then(|(_, number)| number);
    let set_number = settings.gpu_id.and_then(|id| u32::try_from(id).ok());
    let lookup = |variable: &str| env.get(variable);
    // The environment cannot forbid a GPU by its number if the property gives the number.
    let policy_lookup = |variable: &str| {
        lookup(variable).filter(|_| variable != GpuPolicy::GPU_NUMBER || explicit.gpu_id.is_none())
    };
    Ok(Request {
        device: named.map(|(choice, _)| choice),
        gpu_policy: GpuPolicy::of(&EngineKind::gpu_names(), &policy_lookup),
        gpu_id: number.or(set_number),
        max_vram: u64::from(settings.gpu_max_vram) * MEBIBYTE,
        min_free_vram: u64::from(settings.gpu_min_free_vram) * MEBIBYTE,
        libraries: LibrarySearch::of(explicit.cuda_lib_path.clone(), &lookup),
        ..settings.request.clone()
    })
}

#[cfg(test)]
mod tests;
