// SPDX-License-Identifier: MPL-2.0
//! The seam between engines and whatever runs their networks.

pub mod file;
pub(crate) mod graph;
pub mod runtime;
pub mod task;

use std::path::{Path, PathBuf};

use ndarray::{ArrayD, ArrayViewD};
use thiserror::Error;

use crate::manifest::{FETCH, KnownFile, known, manifest};
pub use graph::tflite;

/// A network that is ready to run. All tensors are `f32`; those that a file has in half precision are converted.
pub trait Model: Send {
    /// Inputs in the order that [`Model::run`] takes them.
    fn inputs(&self) -> &[TensorSpec];

    /// Outputs in the order that [`Model::run`] returns them.
    fn outputs(&self) -> &[TensorSpec];

    /// Runs the network once.
    ///
    /// # Errors
    /// [`ModelError::Run`] when the runtime refuses the inputs or fails.
    fn run(&mut self, inputs: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, ModelError>;
}

/// Name and shape of one tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// The name in the model file.
    pub name: String,
    /// Extents, outermost first; `None` where the model takes any.
    pub shape: Vec<Option<usize>>,
}

impl TensorSpec {
    /// Whether a tensor of the shape `wanted` fits.
    pub fn takes(&self, wanted: &[usize]) -> bool {
        let mut extents = self.shape.iter().zip(wanted);
        self.shape.len() == wanted.len()
            && extents.all(|(has, wants)| has.is_none_or(|has| has == *wants))
    }
}

/// A model file that was read, for the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFile {
    /// File name without folders.
    pub name: String,
    /// SHA-256 of its bytes, lower-case hex.
    pub sha256: String,
}

/// The property that names the model of an engine with one; see [`ModelError::of`].
pub const PROPERTY: &str = "model";

/// Why a model can't be used. The message names the path and the remedy.
#[derive(Debug, Error)]
pub enum ModelError {
    /// ONNX Runtime is not where it was looked for.
    #[error(
        "ONNX Runtime could not be loaded ({tried}): {reason}. Run `{FETCH}`, or set `onnxruntime` to the path of libonnxruntime.so"
    )]
    Runtime {
        /// Paths tried.
        tried: String,
        /// What the loader said.
        reason: String,
    },
    /// No file at that path.
    #[error("model file {path} not found (looked in {looked}). {remedy}, or set `{property}` or `models-dir`", path = path.display(), remedy = remedy(path))]
    Missing {
        /// File asked for.
        path: PathBuf,
        /// Folders looked in.
        looked: String,
        /// Property that names the file.
        property: &'static str,
    },
    /// The file is there and can't be read.
    #[error("model file {path} could not be read: {source}. Set `{property}` to another file", path = path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
        /// Property that names the file.
        property: &'static str,
    },
    /// The bytes are not those of the known model.
    #[error("model file {path} has sha256 {actual}, expected {expected}: it is damaged or another version. Run `{command}` to fetch the published one, or set `{property}` to a file of another name", path = path.display(), command = command(path))]
    Hash {
        /// File.
        path: PathBuf,
        /// Hash of the known model.
        expected: String,
        /// Hash of the file.
        actual: String,
        /// Property that names the file.
        property: &'static str,
    },
    /// The file is not a model of its format, or is cut short.
    #[error("model file {path} is not a valid {format} file: {reason}. Run `{command}` to fetch the published one, or set `{property}` to another file", path = path.display(), command = command(path))]
    Format {
        /// File.
        path: PathBuf,
        /// Format expected.
        format: &'static str,
        /// What is wrong with it.
        reason: String,
        /// Property that names the file.
        property: &'static str,
    },
    /// The model is of another kind than the engine needs.
    #[error("model file {path} has other tensors than {expected}: {actual}. Run `{command}` to fetch the engine's own, or set `{property}` to another file", path = path.display(), command = command(path))]
    Tensors {
        /// File.
        path: PathBuf,
        /// Property that names the file.
        property: &'static str,
        /// Tensors the engine needs.
        expected: String,
        /// Tensors the file has.
        actual: String,
    },
    /// A folder with networks that are not those that the engine needs.
    #[error("the pack {folder} can't be used: {reason}. {GET_A_PACK}, or set `model` to the folder of another", folder = folder.display())]
    Pack {
        /// Folder.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No folder with networks of InsightFace's.
    #[error(
        "no pack of InsightFace's networks: {names} not found, or without .onnx files (looked in {looked}). {GET_A_PACK}, or set `model` to the folder of a pack or `models-dir` to one with packs in it"
    )]
    NoPack {
        /// Packs looked for.
        names: String,
        /// Folders looked in.
        looked: String,
    },
    /// The runtime refused or failed a run.
    #[error("model {model} failed to run: {reason}")]
    Run {
        /// Which network.
        model: String,
        /// What the runtime said.
        reason: String,
    },
    /// The GPU did not open or run it.
    #[error(
        "model {model} failed on the GPU: {reason}. Set gpu-fallback=true to go on with the processor"
    )]
    Gpu {
        /// Which network.
        model: String,
        /// What the runtime said.
        reason: String,
    },
    /// The GPU's memory, or as much of it as was allowed, is full.
    #[error(
        "model {model} ran out of GPU memory: {reason}. Raise gpu-max-vram, end other programs that use the GPU, lower det-size, or set gpu-fallback=true"
    )]
    OutOfMemory {
        /// Which network.
        model: String,
        /// What the runtime said.
        reason: String,
    },
}

/// How to come by networks of InsightFace's. Their licence does not let everybody use them, so that nothing fetches them
/// unasked.
const GET_A_PACK: &str = "Run `facetrack fetch insightface` to fetch small networks, or unzip one of InsightFace's packs into ~/.insightface/models/<its name>, as models/README.md says (all of them are for non-commercial research only)";

/// What fetches the file that a path names.
fn command(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    known(&name).map_or_else(|| FETCH.to_owned(), KnownFile::command)
}

/// How to come by a missing model. One that was looked for by its name alone may be none of those that are fetched.
fn remedy(path: &Path) -> String {
    let names = path.to_string_lossy();
    let mut fetched = manifest().files.iter().map(|file| &file.name);
    let is_searched = path.parent() == Some(Path::new(""));
    match is_searched && !fetched.any(|name| names.contains(name)) {
        true => format!("`{FETCH}` does not fetch it: get it as models/README.md says"),
        false => format!("Run `{}` to fetch it", command(path)),
    }
}

impl ModelError {
    /// The same of the model that `property` names: an engine with several models says which one is meant.
    #[must_use]
    pub fn of(mut self, property: &'static str) -> Self {
        match &mut self {
            Self::Missing { property: own, .. }
            | Self::Read { property: own, .. }
            | Self::Hash { property: own, .. }
            | Self::Format { property: own, .. }
            | Self::Tensors { property: own, .. } => *own = property,
            Self::Runtime { .. }
            | Self::Pack { .. }
            | Self::NoPack { .. }
            | Self::Run { .. }
            | Self::Gpu { .. }
            | Self::OutOfMemory { .. } => {}
        }
        self
    }
}

/// The error for a file that is not valid.
pub(crate) fn format_error(path: &Path, format: &'static str, reason: String) -> ModelError {
    ModelError::Format {
        property: PROPERTY,
        path: path.to_path_buf(),
        format,
        reason,
    }
}
