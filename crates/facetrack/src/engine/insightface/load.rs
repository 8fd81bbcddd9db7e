// SPDX-License-Identifier: MPL-2.0
//! Loads the engine from a folder of published files.

use std::path::{Path, PathBuf};

use facetrack_graph::Graph;

use super::gpu_fallback::GpuFallback;
use super::networks::Networks;
use super::opened::{Layers, Opened};
use super::pack;
use super::pose::PoseFinder;
use super::rewrite::{self, Parts};
use super::scrfd::close::TwoSizes;
use super::scrfd::{self, Rest};
use super::{Derived, Module, provider};
use crate::device::{Need, Placement};
use crate::engine::jaw::JawOpen;
use crate::engine::{Engine, EngineConfig, EngineError};
use crate::model::{Memory, Provider, SessionOptions, Transfer};
use crate::model::{ModelError, Opener, Runtimes};

/// Loads the pack that `config` names, or else the one in the search paths, where `config` places
/// it.
///
/// # Errors
/// Returns an error if the runtime or the pack is missing, or a file of the pack is damaged; the
/// message names it. Also returns an error if the GPU can't be used and falling back is not
/// allowed.
pub fn load(config: &EngineConfig) -> Result<Engine, EngineError> {
    let pack = folder(config)?;
    let (need, settings) = (pack.need, config.clone());
    let open = move |placement: &Placement, det_size| {
        let config = EngineConfig {
            placement: placement.clone(),
            ..settings.clone()
        };
        check(&config)?;
        let (opened, runtimes) = pack.open(&config)?;
        Networks::new(opened, runtimes, &pack.folder, &config, det_size)
    };
    let finder = GpuFallback::load(&config.placement, need, Box::new(open))?;
    let derived = Derived {
        pose: PoseFinder::new(),
        jaw_open: JawOpen::new(config.jaw_open_scale),
    };
    Ok(Engine::new(finder.engine.info(), finder, derived))
}

/// # Errors
/// Returns [`EngineError::Config`] for settings that contradict one another or can't be used.
pub(super) fn check(config: &EngineConfig) -> Result<(), EngineError> {
    config.insightface.check()?;
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
    let second_detector = usize::from(scrfd::is_searched_close(config));
    let need = Need {
        det_size: scrfd::wanted_side(config),
        weights: sizes.sum(),
        others: files.len().saturating_sub(1) + second_detector,
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
    /// detector among them. Also returns the runtimes that run them.
    ///
    /// # Errors
    /// Returns an error if a file is missing or damaged, the pack has no detector, or the runtime
    /// refuses a network.
    pub(super) fn open(
        &self,
        config: &EngineConfig,
    ) -> Result<(Vec<Opened>, Runtimes), ModelError> {
        let opener = config.opener();
        let (wanted, placement) = (config.insightface.wanted(), &config.placement);
        let opened = pack::open(
            &self.folder,
            provider::precision(placement),
            |module| wanted.contains(&module),
            |module, path, bytes| {
                let size = bytes.len() as u64;
                let provider = provider::choose(placement, self.need, module, size);
                let options = SessionOptions {
                    threads: config.threads,
                    runs: 1,
                    memory: Memory::Pieces,
                    transfer: provider::transfer(provider),
                    provider,
                };
                match provider {
                    Provider::Cpu => open_parts(&opener, path, &bytes, options),
                    Provider::Cuda(_) => {
                        let (bytes, options) = for_batches(module, bytes, options);
                        let open = |provider| {
                            opener.open_onnx(
                                path,
                                &bytes,
                                SessionOptions {
                                    provider,
                                    ..options
                                },
                            )
                        };
                        let usual = open(provider)?;
                        if module != Module::Detection || !scrfd::is_searched_close(config) {
                            return Ok((usual, None, None));
                        }
                        let close = open(provider::choose_close(placement, self.need, size))?;
                        Ok((Box::new(TwoSizes { usual, close }), None, None))
                    }
                }
            },
        );
        Ok((opened?, opener.into_runtimes()))
    }
}

/// The network `bytes` and its options for outputs of several faces that stay in place. A file that
/// cannot be changed to this end has its outputs copied.
fn for_batches(
    module: Module,
    bytes: Vec<u8>,
    options: SessionOptions,
) -> (Vec<u8>, SessionOptions) {
    if module == Module::Detection || options.transfer == Transfer::Copied {
        return (bytes, options);
    }
    match rewrite::with_open_outputs(&bytes) {
        Ok(open) => (open, options),
        Err(_) => {
            let transfer = Transfer::Copied;
            (
                bytes,
                SessionOptions {
                    transfer,
                    ..options
                },
            )
        }
    }
}

/// Opens the parts of the network in the file `bytes` on the CPU.
fn open_parts(
    opener: &Opener<'_>,
    path: &Path,
    bytes: &[u8],
    options: SessionOptions,
) -> Result<Layers, ModelError> {
    let open = |graph: Graph| {
        let content = graph.clone().encode();
        opener.open(path, &content, || Ok(graph.clone()), options)
    };
    match rewrite::divided(bytes) {
        Err(reason) => {
            let whole = opener.open_unsupported(path, bytes, reason, options)?;
            Ok((whole, None, None))
        }
        Ok(Parts { first, rest, boxes }) => {
            let first = open(first)?;
            let rest = rest.map(|(rest, border)| open(rest).map(|rest| Rest::new(rest, border)));
            Ok((first, rest.transpose()?, boxes))
        }
    }
}
