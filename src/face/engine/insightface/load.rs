// SPDX-License-Identifier: MPL-2.0
//! The engine from a folder of published files.

use std::path::{Path, PathBuf};

use super::pack::{self, Opened, Pack};
use super::{InsightFace, Module, rewrite};
use crate::face::device::Placement;
use crate::face::engine::{EngineConfig, EngineError};
use crate::face::locate;
use crate::face::model::onnx::{Memory, OnnxModel, OnnxRuntime, SessionOptions};
use crate::face::model::{Model, ModelError};

/// Loads the pack that `config` names, or the one that [`locate::pack`] finds.
///
/// # Errors
/// When the runtime or the pack is missing, or a file of it damaged; the message names it.
pub fn load(config: &EngineConfig) -> Result<InsightFace, EngineError> {
    InsightFace::new(Box::new(folder(config)?), config)
}

/// The pack that `config` names, or the one that is found.
pub(super) fn folder(config: &EngineConfig) -> Result<Folder, ModelError> {
    let folder = locate::pack(config.model.as_deref(), config.models_dir.as_deref())?;
    Ok(Folder {
        folder,
        wanted: config.insightface.wanted(),
        onnxruntime: config.onnxruntime.clone(),
        threads: config.threads,
    })
}

/// A folder with a pack, and what its networks are opened with.
pub(super) struct Folder {
    folder: PathBuf,
    wanted: Vec<Module>,
    onnxruntime: Option<PathBuf>,
    threads: usize,
}

impl Pack for Folder {
    fn open(&self, placement: &Placement) -> Result<Vec<Opened>, ModelError> {
        let runtime = OnnxRuntime::load(&locate::runtime(self.onnxruntime.as_deref()))?;
        let options = session_options(placement, self.threads);
        pack::open(
            &self.folder,
            |module| self.wanted.contains(&module),
            |path, bytes| open_network(&runtime, placement, path, bytes, options),
        )
    }

    fn unusable(&self, reason: &str) -> ModelError {
        pack::unusable(&self.folder, reason)
    }
}

/// How networks run on `placement`.
fn session_options(_placement: &Placement, threads: usize) -> SessionOptions {
    SessionOptions {
        threads,
        memory: Memory::Pieces,
    }
}

/// The one place where a network of a pack becomes a session.
fn open_network(
    runtime: &OnnxRuntime,
    placement: &Placement,
    path: &Path,
    bytes: Vec<u8>,
    options: SessionOptions,
) -> Result<Box<dyn Model>, ModelError> {
    let bytes = match placement {
        Placement::Cpu => rewrite::for_processor(path, bytes),
        Placement::Cuda(_) => bytes,
    };
    let model = OnnxModel::from_bytes(runtime, path, &bytes, options)?;
    Ok(Box::new(model))
}
