// SPDX-License-Identifier: MPL-2.0
//! Runs networks with ONNX Runtime. The only file that names `ort`.

use std::path::{Path, PathBuf};

use ndarray::{ArrayD, ArrayViewD};
use once_cell::sync::OnceCell;
use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::session::{Session, SessionInputValue};
use ort::value::{Outlet, TensorElementType, TensorRef};

use super::{Model, ModelError, PROPERTY, TensorSpec};

/// The runtime of this process. ONNX Runtime can't be unloaded, nor loaded twice.
static LOADED: OnceCell<OnnxRuntime> = OnceCell::new();

/// ONNX Runtime's library, loaded.
#[derive(Debug, Clone)]
pub struct OnnxRuntime {
    environment: Environment,
    path: PathBuf,
}

impl OnnxRuntime {
    /// Loads the first library of `candidates` that can be. A process has one runtime: when one was loaded before, that
    /// one is returned, whatever the candidates; see [`OnnxRuntime::path`].
    ///
    /// # Errors
    /// [`ModelError::Runtime`] with what the loader said of each candidate.
    pub fn load(candidates: &[PathBuf]) -> Result<Self, ModelError> {
        LOADED.get_or_try_init(|| first_of(candidates)).cloned()
    }

    /// The library that was loaded. Differs from the candidates when another one was loaded before.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The first library that can be loaded.
fn first_of(candidates: &[PathBuf]) -> Result<OnnxRuntime, ModelError> {
    let mut reasons = Vec::new();
    for path in candidates {
        match load_library(path) {
            Ok(runtime) => return Ok(runtime),
            Err(reason) => reasons.push(reason),
        }
    }
    let tried: Vec<String> = candidates.iter().map(|p| p.display().to_string()).collect();
    Err(ModelError::Runtime {
        tried: format!("tried {}", tried.join(", ")),
        reason: reasons.join("; "),
    })
}

/// `{:?}` of the dynamic loader's error holds its cause, `{}` does not.
fn load_library(path: &Path) -> Result<OnnxRuntime, String> {
    let builder = ort::init_from(path).map_err(|error| match error {
        ort::LoadDynamicError::Dlopen { error, .. } => format!("{error:?}"),
        other => other.to_string(),
    })?;
    let environment = builder
        .with_telemetry(false)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(OnnxRuntime {
        environment,
        path: path.to_path_buf(),
    })
}

/// How a network is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// Threads that work on one run; with 1 the calling thread does everything.
    pub threads: usize,
    /// Where the values between its operators lie.
    pub memory: Memory,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            memory: Memory::Planned,
        }
    }
}

/// Where the values between a network's operators lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// In one piece that is planned after the first run: some 2 % faster.
    Planned,
    /// In pieces, which the first run takes as it needs them. Half the memory, since those of the first run are not in
    /// vain: for networks that see large images, or run in few frames.
    Pieces,
}

/// A network in ONNX Runtime, on the CPU.
#[derive(Debug)]
pub struct OnnxModel {
    name: String,
    session: Session,
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
}

impl OnnxModel {
    /// Prepares the ONNX file `bytes`; `path` is for messages.
    ///
    /// # Errors
    /// [`ModelError::Format`] when the runtime refuses the file, or when it has tensors other than of `f32`.
    pub fn from_bytes(
        runtime: &OnnxRuntime,
        path: &Path,
        bytes: &[u8],
        options: SessionOptions,
    ) -> Result<Self, ModelError> {
        let format = |reason: String| ModelError::Format {
            property: PROPERTY,
            path: path.to_path_buf(),
            format: "ONNX",
            reason,
        };
        let session = builder(runtime, options)
            .and_then(|mut builder| builder.commit_from_memory(bytes))
            .map_err(|error| format(error.to_string()))?;
        let specs = |outlets: &[Outlet]| -> Result<Vec<TensorSpec>, ModelError> {
            outlets.iter().map(|o| spec(o).map_err(format)).collect()
        };
        Ok(Self {
            name: path.display().to_string(),
            inputs: specs(session.inputs())?,
            outputs: specs(session.outputs())?,
            session,
        })
    }

    fn try_run(&mut self, inputs: &[ArrayViewD<'_, f32>]) -> ort::Result<Vec<ArrayD<f32>>> {
        let inputs = inputs
            .iter()
            .map(|view| Ok(TensorRef::from_array_view(view.view())?.into()))
            .collect::<ort::Result<Vec<SessionInputValue<'_>>>>()?;
        let outputs = self.session.run(inputs.as_slice())?;
        outputs
            .values()
            .map(|value| Ok(value.try_extract_array::<f32>()?.into_owned()))
            .collect()
    }
}

impl Model for OnnxModel {
    fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    fn run(&mut self, inputs: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError> {
        self.try_run(inputs).map_err(|error| ModelError::Run {
            model: self.name.clone(),
            reason: error.to_string(),
        })
    }
}

/// All graph optimisations, no thread that spins while it waits, since other elements of the pipeline need the cores, and
/// no messages on standard error, since errors are returned.
fn builder(runtime: &OnnxRuntime, options: SessionOptions) -> ort::Result<SessionBuilder> {
    Ok(Session::builder(&runtime.environment)?
        .with_optimization_level(GraphOptimizationLevel::All)?
        .with_log_level(LogLevel::Fatal)?
        .with_intra_threads(options.threads.max(1))?
        .with_intra_op_spinning(false)?
        .with_inter_op_spinning(false)?
        .with_memory_pattern(options.memory == Memory::Planned)?
        .with_deterministic_compute(true)?)
}

fn spec(outlet: &Outlet) -> Result<TensorSpec, String> {
    let name = outlet.name().to_owned();
    let kind = outlet.dtype();
    if kind.tensor_type() != Some(TensorElementType::Float32) {
        return Err(format!("tensor {name} is not of f32 but {kind}"));
    }
    let shape = kind.tensor_shape().map_or_else(Vec::new, |shape| {
        shape.iter().map(|n| usize::try_from(*n).ok()).collect()
    });
    Ok(TensorSpec { name, shape })
}
