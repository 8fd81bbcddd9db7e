// SPDX-License-Identifier: MPL-2.0
//! Loads the engine from a folder of published files.

use std::path::PathBuf;

use super::networks::Networks;
use super::pack::{self, Opened};
use super::pose::PoseFinder;
use super::resilient::Resilient;
use super::rewrite::{self, Files};
use super::scrfd::{self, Boxes, Rest};
use super::{Derived, placed};
use crate::device::{Need, Placement};
use crate::engine::jaw::JawOpen;
use crate::engine::{Engine, EngineConfig, EngineError};
use crate::model::ModelError;
use crate::model::runtime::{Memory, Provider, SessionOptions};

/// Loads the pack that `config` names, or else the one in the search paths, where `config` places
/// it.
///
/// # Errors
/// When the runtime or the pack is missing, or a file of it damaged; the message names it. When the
/// GPU can't be used and there is no falling back.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let pack = folder(config)?;
    let (need, settings) = (pack.need, config.clone());
    let open = move |placement: &Placement, det_size| {
        let config = EngineConfig {
            placement: placement.clone(),
            ..settings.clone()
        };
        check(&config)?;
        Networks::new(pack.open(&config)?, &pack.folder, &config, det_size)
    };
    let finder = Resilient::load(&config.placement, need, Box::new(open))?;
    let derived = Derived {
        pose: PoseFinder::new(),
        jaw_open: JawOpen::new(config.jaw_open_scale),
    };
    Ok(Engine::new(finder.engine.info(), finder, derived))
}

/// # Errors
/// [`EngineError::Config`] for settings that contradict one another or can't be used.
pub(super) fn check(config: &EngineConfig) -> Result<(), EngineError> {
    config.pack.check()?;
    match &config.placement {
        Placement::Cuda(cuda) if cuda.tuning.is_contradictory() => Err(EngineError::config(
            "deterministic",
            "TensorRT chooses its operators by measuring them, so it is not deterministic",
        )),
        _ => Ok(()),
    }
}

/// The pack that `config` names, or the one that is found.
pub(super) fn folder(config: &EngineConfig) -> Result<Folder, ModelError> {
    let folder = config.paths.pack(config.model.as_deref())?;
    let files = pack::files(&folder)?;
    let sizes = files
        .iter()
        .map(|file| file.metadata().map_or(0, |m| m.len()));
    let need = Need {
        det_size: scrfd::wanted_side(config),
        weights: sizes.sum(),
        others: files.len().saturating_sub(1),
    };
    Ok(Folder { folder, need })
}

/// A folder with a pack.
pub(super) struct Folder {
    folder: PathBuf,
    /// GPU memory that the networks need if all of them are opened. Files that are not opened count
    /// as well.
    need: Need,
}

impl Folder {
    /// Opens the networks that `config` wants, where it places them: at most one of each task, a
    /// detector among them.
    ///
    /// # Errors
    /// When a file is missing or damaged, there is no detector, or the runtime refuses one.
    pub(super) fn open(&self, config: &EngineConfig) -> Result<Vec<Opened>, ModelError> {
        let opener = config.opener();
        let (wanted, placement) = (config.pack.wanted(), &config.placement);
        pack::open(
            &self.folder,
            placed::precision(placement),
            |module| wanted.contains(&module),
            |module, path, bytes| {
                let provider = placed::provider(placement, self.need, module, bytes.len() as u64);
                let options = SessionOptions {
                    threads: config.threads,
                    runs: 1,
                    memory: Memory::Pieces,
                    transfer: placed::transfer(provider, module),
                    provider,
                    ..SessionOptions::default()
                };
                let open = |bytes: &[u8]| opener.open_onnx(path, bytes, options);
                let Files { first, rest, boxes } = match provider {
                    Provider::Cpu => rewrite::for_processor(bytes),
                    Provider::Cuda(_) => Files::whole(bytes),
                };
                let first = open(&first)?;
                let rest = rest.map(|(rest, border)| Ok(Rest::new(open(&rest)?, border)));
                let boxes = boxes.map(|(boxes, reach)| Ok(Boxes::new(open(&boxes)?, reach)));
                Ok((first, rest.transpose()?, boxes.transpose()?))
            },
        )
    }
}
