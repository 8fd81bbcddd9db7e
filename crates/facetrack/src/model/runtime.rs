// SPDX-License-Identifier: MPL-2.0
//! Runs networks with ONNX Runtime. Only this file and its folder name `ort`.

mod bound;
mod mapped;
mod pool;
mod silent;
mod tensor;

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::thread;

use facetrack_graph::outline::OnnxOutline;
use ndarray::{ArrayD, ArrayViewD};
use once_cell::sync::OnceCell;
use ort::environment::Environment;
use ort::ep::{ArbitrarilyConfigurableExecutionProvider, CUDA, ExecutionProvider, TensorRT};
use ort::logging::LogLevel;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{NoSelectedOutputs, RunOptions, Session, SessionInputValue};
use ort::value::Outlet;
use sha2::{Digest, Sha256};

use super::cuda::{self, Coverage, CudaProvider, KeysAndValues};
use super::{
    Memory, Model, ModelError, Provider, SessionOptions, TensorSpec, Transfer, format_error,
    read_outline,
};
use bound::Steady;
use facetrack_assets::file::listed;
use facetrack_assets::locate::{SearchPaths, Telemetry};
use facetrack_assets::lock::lock;
use facetrack_assets::{file, trust};
use pool::{Pool, User};
use tensor::{floats, input, spec};

/// The runtime of this process. ONNX Runtime can't be unloaded, nor loaded twice.
static LOADED: OnceCell<OnnxRuntime> = OnceCell::new();

/// The sessions of this process, by the hash of the network and the options they were opened with.
static POOLS: LazyLock<Mutex<HashMap<PoolKey, Weak<Pool<Opened>>>>> = LazyLock::new(Mutex::default);

type PoolKey = ([u8; 32], usize, Memory, Transfer);

/// ONNX Runtime's library, loaded.
#[derive(Debug, Clone)]
pub struct OnnxRuntime {
    environment: Environment,
    path: PathBuf,
}

impl OnnxRuntime {
    /// Loads the first candidate of `paths` that can be loaded and sends no telemetry. A process has
    /// one runtime: if one was loaded before, it is returned, whatever the candidates; see
    /// [`OnnxRuntime::path`].
    ///
    /// # Errors
    /// Returns [`ModelError::Telemetry`] if a candidate could be loaded except for its telemetry,
    /// otherwise [`ModelError::Runtime`] with the loader's message for each candidate;
    /// [`ModelError::Replaceable`] for the first candidate that every user can replace.
    pub fn load(paths: &SearchPaths) -> Result<Self, ModelError> {
        LOADED.get_or_try_init(|| first_of(paths)).cloned()
    }

    /// The library that was loaded. Differs from the candidates when another one was loaded before.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the library, where it looks for the libraries of its providers; `None` if it
    /// is unknown.
    pub fn folder(&self) -> Option<PathBuf> {
        let folder = self.path.parent().filter(|folder| folder.has_root());
        folder
            .map(Path::to_path_buf)
            .or_else(|| Some(mapped::file(&self.path)?.parent()?.to_path_buf()))
    }

    /// Returns true if the library was built with the CUDA provider.
    pub fn has_cuda(&self) -> bool {
        CUDA::is_available().unwrap_or(false)
    }

    /// Returns true if the library was built with the TensorRT provider.
    pub fn has_tensorrt(&self) -> bool {
        TensorRT::is_available().unwrap_or(false)
    }

    /// Prepares the ONNX file `bytes`; `path` is for messages. On the CPU, all networks of the
    /// process with the same content and options share their sessions.
    ///
    /// # Errors
    /// Returns [`ModelError::Format`] when the runtime refuses the file, or when it has tensors
    /// other than of floats; [`ModelError::OutOfMemory`] and [`ModelError::Gpu`] when it can't be
    /// opened on the GPU.
    pub fn open(
        &self,
        path: &Path,
        bytes: &[u8],
        options: SessionOptions,
    ) -> Result<Box<dyn Model>, ModelError> {
        Ok(Box::new(OnnxModel::from_bytes(self, path, bytes, options)?))
    }
}

/// Loads a library into this process, where ONNX Runtime finds it by its name. It stays loaded.
///
/// # Errors
/// Returns the message of the dynamic loader.
pub(crate) fn preload(library: &Path) -> Result<(), String> {
    check_regular(library)?;
    // The cause of ort's error is the message of the dynamic loader.
    ort::util::preload_dylib(library).map_err(|error| {
        let cause = error.source().map(ToString::to_string);
        cause.unwrap_or_else(|| error.to_string())
    })
}

/// The first library that can be loaded and sends no telemetry.
fn first_of(paths: &SearchPaths) -> Result<OnnxRuntime, ModelError> {
    let candidates = paths.runtime_candidates();
    let (mut reasons, mut refused) = (Vec::new(), None);
    for path in &candidates {
        trust::check(path).map_err(ModelError::Replaceable)?;
        let silent = match paths.telemetry {
            Telemetry::Off => Ok(path.clone()),
            Telemetry::Possible => silent::without(path),
        };
        match silent.and_then(|library| load_library(&library)) {
            Ok(environment) => {
                let path = path.clone();
                return Ok(OnnxRuntime { environment, path });
            }
            Err(Unusable::Telemetry(library)) => refused = refused.or(Some(library)),
            Err(Unusable::Broken(reason)) => reasons.push(reason),
        }
    }
    Err(match refused {
        Some(library) => ModelError::Telemetry { library },
        None => ModelError::Runtime {
            tried: format!("tried {}", listed(&candidates)),
            reason: reasons.join("; "),
        },
    })
}

/// Reason why a library is not used.
enum Unusable {
    /// The library has telemetry.
    Telemetry(PathBuf),
    /// The library cannot be loaded, for this reason.
    Broken(String),
}

impl From<String> for Unusable {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

/// Checks that the library is a regular file: for a pipe, the dynamic loader would wait for a
/// writer.
fn check_regular(library: &Path) -> Result<(), String> {
    if trust::is_bare(library) {
        return Ok(());
    }
    let opened = file::open(library).map(drop);
    opened.map_err(|error| format!("{}: {error}", library.display()))
}

/// Loads a library. The error has the cause of the dynamic loader's error, which only `{:?}` shows.
fn load_library(path: &Path) -> Result<Environment, Unusable> {
    check_regular(path)?;
    let builder = ort::init_from(path).map_err(|error| match error {
        ort::LoadDynamicError::Dlopen { error, .. } => format!("{error:?}"),
        other => other.to_string(),
    })?;
    let environment = builder
        .with_telemetry(false)
        .build()
        .map_err(|error| error.to_string())?;
    // Otherwise the runtime writes its messages to standard error, which belongs to the
    // application.
    environment.set_log_level(LogLevel::Fatal);
    Ok(environment)
}

/// A network in ONNX Runtime.
struct OnnxModel {
    name: String,
    provider: Provider,
    user: User<Opened>,
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
}

impl OnnxModel {
    fn from_bytes(
        runtime: &OnnxRuntime,
        path: &Path,
        bytes: &[u8],
        options: SessionOptions,
    ) -> Result<Self, ModelError> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let open = || Opened::new(runtime, path, bytes, options);
        let user = User::join(&pool_of(bytes, options), [options.runs, cores], open)?;
        let specs = |outlets: &[Outlet]| -> Result<Vec<TensorSpec>, ModelError> {
            let specs = outlets.iter().map(spec);
            let specs: Result<_, String> = specs.collect();
            specs.map_err(|reason| format_error(path, "ONNX", reason))
        };
        let (inputs, outputs) = user.with_session(|opened| -> Result<_, ModelError> {
            let session = &opened.session;
            Ok((specs(session.inputs())?, specs(session.outputs())?))
        })?;
        Ok(Self {
            name: path.display().to_string(),
            provider: options.provider,
            user,
            inputs,
            outputs,
        })
    }
}

/// The pool of the network `bytes`. On a GPU each network has a session of its own, because
/// negotiation counts the memory of each.
fn pool_of(bytes: &[u8], options: SessionOptions) -> Arc<Pool<Opened>> {
    let SessionOptions {
        threads,
        memory,
        transfer,
        provider: Provider::Cpu,
        ..
    } = options
    else {
        return Arc::default();
    };
    let key = (Sha256::digest(bytes).into(), threads, memory, transfer);
    let mut pools = lock(&POOLS);
    pools.retain(|_, pool| pool.strong_count() > 0);
    pools.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
        let pool = Arc::default();
        pools.insert(key, Arc::downgrade(&pool));
        pool
    })
}

/// A session of a network.
struct Opened {
    session: Session,
    run_options: Options,
    /// Inputs and outputs that stay in place; `None` if they are copied.
    steady: Option<Steady>,
}

impl Opened {
    fn new(
        runtime: &OnnxRuntime,
        path: &Path,
        bytes: &[u8],
        options: SessionOptions,
    ) -> Result<Self, ModelError> {
        let SessionOptions {
            provider, transfer, ..
        } = options;
        let outline = match provider {
            Provider::Cuda(cuda) if cuda.tuning.tensorrt => read_outline(path, bytes)?,
            _ => OnnxOutline::default(),
        };
        let opened = builder(runtime, options, &outline)
            .and_then(|mut builder| builder.commit_from_memory(bytes))
            .and_then(|session| Ok((session, options_of(provider, transfer, None)?)));
        let (session, run_options) = opened.map_err(|error| match provider {
            Provider::Cpu => format_error(path, "ONNX", error.to_string()),
            Provider::Cuda(_) => cuda::failure(path.display().to_string(), error.to_string()),
        })?;
        Ok(Self {
            session,
            run_options,
            steady: (transfer != Transfer::Copied).then(|| Steady::new(provider, transfer)),
        })
    }

    fn run(&mut self, inputs: &[ArrayViewD<'_, f32>]) -> ort::Result<Outputs> {
        let copied = |session: &mut Session| run_copied(session, &self.run_options, inputs);
        match &mut self.steady {
            None => copied(&mut self.session),
            Some(steady) => steady.run(&mut self.session, inputs, copied),
        }
    }
}

/// Outputs of a network.
type Outputs = Vec<ArrayD<f32>>;

/// Options of a run.
type Options = RunOptions<NoSelectedOutputs>;

/// Runs the network on `inputs` where they are.
fn run_copied(
    session: &mut Session,
    options: &Options,
    inputs: &[ArrayViewD<'_, f32>],
) -> ort::Result<Outputs> {
    let inputs = inputs
        .iter()
        .enumerate()
        .map(|(index, values)| input(session.inputs().get(index), values))
        .collect::<ort::Result<Vec<SessionInputValue<'_>>>>()?;
    let outputs = session.run_with_options(inputs.as_slice(), options)?;
    outputs.values().map(|value| floats(&value)).collect()
}

impl Model for OnnxModel {
    fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn run(&self, inputs: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError> {
        let outputs = self.user.with_session(|opened| opened.run(inputs));
        outputs.map_err(|error| {
            let (model, reason) = (self.name.clone(), error.to_string());
            match self.provider {
                Provider::Cpu => ModelError::Run { model, reason },
                Provider::Cuda(_) => cuda::failure(model, reason),
            }
        })
    }
}

/// Enables all graph optimisations. Threads do not spin while they wait, since other elements of
/// the pipeline need the cores. Nothing is written to standard error, since errors are returned.
fn builder(
    runtime: &OnnxRuntime,
    options: SessionOptions,
    outline: &OnnxOutline,
) -> ort::Result<SessionBuilder> {
    let builder = Session::builder(&runtime.environment)?
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_log_level(LogLevel::Fatal)?
        .with_intra_threads(options.threads.max(1))?
        .with_intra_op_spinning(false)?
        .with_inter_op_spinning(false)?
        .with_memory_pattern(options.memory == Memory::Planned)?;
    match options.provider {
        Provider::Cpu => Ok(builder.with_deterministic_compute(true)?),
        Provider::Cuda(provider) => on_cuda(builder, provider, options.transfer, outline),
    }
}

/// Adds the CUDA provider. Without `error_on_failure`, the CPU would replace a provider that does
/// not load.
fn on_cuda(
    builder: SessionBuilder,
    provider: CudaProvider,
    transfer: Transfer,
    outline: &OnnxOutline,
) -> ort::Result<SessionBuilder> {
    let mut providers = Vec::new();
    if let Some(options) = provider.tensorrt_options(&outline.inputs) {
        let tensorrt = with_options(TensorRT::default(), options);
        providers.push(tensorrt.build().error_on_failure());
    }
    let cuda = with_options(CUDA::default(), provider.options(transfer));
    providers.push(cuda.build().error_on_failure());
    let builder = builder
        .with_deterministic_compute(provider.tuning.deterministic)?
        .with_execution_providers(providers)?;
    Ok(match provider.coverage {
        Coverage::Whole => builder.with_disable_cpu_fallback()?,
        Coverage::Most => builder,
    })
}

fn with_options<P: ArbitrarilyConfigurableExecutionProvider>(
    provider: P,
    options: KeysAndValues,
) -> P {
    options
        .into_iter()
        .fold(provider, |provider, (key, value)| {
            provider.with_arbitrary_config(key, value)
        })
}

/// Options of a run on `provider`; with `graph`, the run is captured as the CUDA graph of this
/// number.
fn options_of(provider: Provider, transfer: Transfer, graph: Option<u32>) -> ort::Result<Options> {
    let mut options = RunOptions::new()?;
    if let Provider::Cuda(provider) = provider {
        for (key, value) in provider.run_options(transfer, graph) {
            options.set(key, value)?;
        }
    }
    Ok(options)
}
