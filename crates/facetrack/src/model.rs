// SPDX-License-Identifier: MPL-2.0
//! The interface between engines and the runtime of their networks.

#[doc(hidden)]
pub mod built_in;
pub(crate) mod cuda;
#[doc(hidden)]
pub mod file;
mod opener;
mod options;
pub(crate) mod placement;
#[cfg_attr(not(feature = "onnxruntime"), path = "model/no_runtime.rs")]
pub mod runtime;
#[doc(hidden)]
pub mod task;
#[doc(hidden)]
pub mod telemetry;

use std::path::{Path, PathBuf};

use facetrack_graph::Graph;
use facetrack_graph::outline::OnnxOutline;
use ndarray::{ArrayD, ArrayViewD};
use thiserror::Error;

use crate::memory::OutOfMemory;
use facetrack_assets::locate::{NotFound, TELEMETRY_VARIABLE};
use facetrack_assets::trust::Replaceable;
pub use facetrack_graph::TensorSpec;
pub use opener::{Opener, RuntimeChoice, Runtimes};
pub use options::{Memory, Provider, SessionOptions, Transfer};

/// A network that is ready to run, by several threads at once. All tensors are `f32`; those that a file has in half precision
/// are converted.
pub trait Model: Send + Sync {
    /// Inputs in the order that [`Model::run`] takes them.
    fn inputs(&self) -> &[TensorSpec];

    /// Outputs in the order that [`Model::run`] returns them.
    fn outputs(&self) -> &[TensorSpec];

    /// Runs the network once.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`] when the runtime refuses the inputs or fails,
    /// [`ModelError::Memory`] when there is too little memory.
    fn run(&self, inputs: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError>;
}

/// A model file that was read, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFile {
    /// File name without folders.
    pub name: String,
    /// SHA-256 of its bytes, lower-case hex.
    pub sha256: String,
}

/// Error of a model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModelError {
    /// ONNX Runtime was not found in the searched places.
    #[error("ONNX Runtime could not be loaded ({tried}): {reason}")]
    Runtime {
        /// Paths tried.
        tried: String,
        /// The loader's message.
        reason: String,
    },
    /// ONNX Runtime can be replaced by every user.
    #[error(transparent)]
    Replaceable(Replaceable),
    /// ONNX Runtime has telemetry, which the environment does not turn off.
    #[error(
        "{library} is not loaded, because it reports its use to Microsoft unless {TELEMETRY_VARIABLE}=1 is set",
        library = library.display()
    )]
    Telemetry {
        /// The library.
        library: PathBuf,
    },
    /// No file or pack exists at the searched places.
    #[error(transparent)]
    Missing(#[from] NotFound),
    /// The file exists but cannot be read.
    #[error("model file {path} could not be read: {source}", path = path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
    /// The file differs from the known model of this name.
    #[error("model file {path} has sha256 {actual}, not {expected}: it is damaged or another version", path = path.display())]
    Hash {
        /// File.
        path: PathBuf,
        /// Hash of the known model.
        expected: String,
        /// Hash of the file.
        actual: String,
    },
    /// The file is not a model of its format, or is cut short.
    #[error("model file {path} is not a valid {format} file: {reason}", path = path.display())]
    Format {
        /// File.
        path: PathBuf,
        /// Format expected.
        format: &'static str,
        /// The reason.
        reason: String,
    },
    /// The model has other tensors than the engine needs.
    #[error("model file {path} has other tensors than {expected}: {actual}", path = path.display())]
    Tensors {
        /// File.
        path: PathBuf,
        /// Tensors the engine needs.
        expected: String,
        /// Tensors the file has.
        actual: String,
    },
    /// A folder with networks that are not those that the engine needs.
    #[error("the pack {folder} cannot be used: {reason}", folder = folder.display())]
    Pack {
        /// Folder.
        folder: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The built-in runtime does not support a network, and no other one is allowed.
    #[error("model file {path} cannot run in the built-in runtime: {reason}", path = path.display())]
    Unsupported {
        /// File.
        path: PathBuf,
        /// The operator.
        reason: String,
    },
    /// The runtime refused or failed a run.
    #[error("model {model} failed to run: {reason}")]
    Run {
        /// Name of the network.
        model: String,
        /// The runtime's message.
        reason: String,
    },
    /// The input of a network would need too much memory.
    #[error(
        "model {model} failed to run: an input of {width}×{height} pixels takes too much memory"
    )]
    InputSize {
        /// Name of the network.
        model: String,
        /// Width of its input, px.
        width: usize,
        /// Height of its input, px.
        height: usize,
    },
    /// The system has too little memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The GPU did not open or run it.
    #[error("model {model} failed on the GPU: {reason}")]
    Gpu {
        /// Name of the network.
        model: String,
        /// The runtime's message.
        reason: String,
    },
    /// The GPU's memory, or as much of it as was allowed, is full.
    #[error("model {model} ran out of GPU memory: {reason}")]
    OutOfMemory {
        /// Name of the network.
        model: String,
        /// The runtime's message.
        reason: String,
    },
}

/// Reads the ONNX file `bytes`; `path` is for messages.
pub(crate) fn read_onnx(path: &Path, bytes: Vec<u8>) -> Result<Graph, ModelError> {
    Graph::read(bytes).map_err(|reason| format_error(path, "ONNX", reason))
}

/// Reads the outline of the ONNX file `bytes`; `path` is for messages.
pub(crate) fn read_outline(path: &Path, bytes: &[u8]) -> Result<OnnxOutline, ModelError> {
    OnnxOutline::read(bytes).map_err(|reason| format_error(path, "ONNX", reason))
}

/// The error for a file that is not valid.
pub(crate) fn format_error(path: &Path, format: &'static str, reason: String) -> ModelError {
    ModelError::Format {
        path: path.to_path_buf(),
        format,
        reason,
    }
}
