// SPDX-License-Identifier: MPL-2.0
//! Loads the engine from a folder of published files.

use std::path::{Path, PathBuf};

use super::networks::Networks;
use super::pack::{self, Opened, Pack};
use super::pose::PoseFinder;
use super::resilient::Resilient;
use super::{Derived, placed, rewrite, scrfd};
use crate::device::{Need, Placement};
use crate::engine::jaw::JawOpen;
use crate::engine::{Engine, EngineConfig, EngineError};
use crate::model::ModelError;
use crate::model::runtime::{Memory, OnnxModel, OnnxRuntime, Provider, SessionOptions};

/// Loads the pack that `config` names, or else the one in the search paths, where `config` places
/// it.
///
/// # Errors
/// When the runtime or the pack is missing, or a file of it damaged; the message names it. When the
/// GPU can't be used and there is no falling back.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let pack = folder(config)?;
    let (need, settings) = (pack.need, config.clone());
    let finder = Resilient::load(&config.placement, need, move |placement, det_size| {
        let config = EngineConfig {
            placement: placement.clone(),
            ..settings.clone()
        };
        Networks::open(&pack, &config, det_size)
    })?;
    let derived = Derived {
        pose: PoseFinder::new(),
        jaw_open: JawOpen::new(config.jaw_open_scale),
    };
    Ok(Engine::new(finder.engine.info(), finder, derived))
}

/// The pack that `config` names, or the one that is found.
pub(super) fn folder(config: &EngineConfig) -> Result<Folder, ModelError> {
    let folder = config.paths.pack(config.model.as_deref())?;
    Ok(Folder {
        need: need(&folder, config)?,
        folder,
        config: config.clone(),
    })
}

/// GPU memory that the networks in `folder` need if all of them are opened. Files that are not
/// opened count as well.
fn need(folder: &Path, config: &EngineConfig) -> Result<Need, ModelError> {
    let files = pack::files(folder)?;
    let sizes = files
        .iter()
        .map(|file| file.metadata().map_or(0, |m| m.len()));
    Ok(Need {
        det_size: scrfd::wanted_side(config),
        weights: sizes.sum(),
        others: files.len().saturating_sub(1),
    })
}

/// A folder with a pack, and the settings that its networks are opened with.
pub(super) struct Folder {
    folder: PathBuf,
    need: Need,
    config: EngineConfig,
}

impl Pack for Folder {
    fn open(&self, placement: &Placement) -> Result<Vec<Opened>, ModelError> {
        let runtime = OnnxRuntime::load(&self.config.paths.runtime_candidates())?;
        let wanted = self.config.pack.wanted();
        pack::open(
            &self.folder,
            placed::precision(placement),
            |module| wanted.contains(&module),
            |module, path, bytes| {
                let provider = placed::provider(placement, self.need, module, bytes.len() as u64);
                let options = SessionOptions {
                    threads: self.config.threads,
                    runs: 1,
                    memory: Memory::Pieces,
                    transfer: placed::transfer(provider, module),
                    provider,
                };
                let bytes = match provider {
                    Provider::Cpu => rewrite::for_processor(path, bytes),
                    Provider::Cuda(_) => bytes,
                };
                let model = OnnxModel::from_bytes(&runtime, path, &bytes, options)?;
                Ok(Box::new(model))
            },
        )
    }

    fn unusable(&self, reason: &str) -> ModelError {
        pack::unusable(&self.folder, reason)
    }
}
