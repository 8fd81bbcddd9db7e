// SPDX-License-Identifier: MPL-2.0
//! The engine from a folder of published files.

use std::path::{Path, PathBuf};

use super::pack::{self, Opened, Pack};
use super::resilient::Resilient;
use super::{InsightFace, Module, network, rewrite, scrfd};
use crate::face::device::{Need, Placement};
use crate::face::engine::{EngineConfig, EngineError};
use crate::face::locate;
use crate::face::model::ModelError;
use crate::face::model::cuda::{CudaProvider, Extents, InputExtents};
use crate::face::model::onnx::{
    Memory, OnnxModel, OnnxRuntime, Provider, SessionOptions, Transfer,
};

/// Loads the pack that `config` names, or the one that [`locate::pack`] finds, where `config` places it.
///
/// # Errors
/// When the runtime or the pack is missing, or a file of it damaged; the message names it. When the GPU can't be used and
/// there is no falling back.
pub fn load(config: &EngineConfig) -> Result<Resilient<InsightFace>, EngineError> {
    let need = folder(config)?.need;
    Resilient::load(&config.placement, need, |placement| {
        let config = EngineConfig {
            placement: placement.clone(),
            ..config.clone()
        };
        InsightFace::new(Box::new(folder(&config)?), &config)
    })
}

/// The pack that `config` names, or the one that is found.
pub(super) fn folder(config: &EngineConfig) -> Result<Folder, ModelError> {
    let folder = locate::pack(config.model.as_deref(), config.models_dir.as_deref())?;
    Ok(Folder {
        need: need(&folder, config)?,
        folder,
        wanted: config.insightface.wanted(),
        onnxruntime: config.onnxruntime.clone(),
        threads: config.threads,
    })
}

/// What the networks in `folder` ask of a GPU, if all of them are opened: files that are left alone are counted as well.
fn need(folder: &Path, config: &EngineConfig) -> Result<Need, ModelError> {
    let files = pack::files(folder)?;
    let sizes = files
        .iter()
        .map(|file| file.metadata().map_or(0, |m| m.len()));
    Ok(Need {
        det_size: config.insightface.det_size,
        weights: sizes.sum(),
        others: files.len().saturating_sub(1),
    })
}

/// A folder with a pack, and what its networks are opened with.
pub(super) struct Folder {
    folder: PathBuf,
    need: Need,
    wanted: Vec<Module>,
    onnxruntime: Option<PathBuf>,
    threads: usize,
}

impl Pack for Folder {
    fn open(&self, placement: &Placement) -> Result<Vec<Opened>, ModelError> {
        let runtime = OnnxRuntime::load(&locate::runtime(self.onnxruntime.as_deref()))?;
        pack::open(
            &self.folder,
            |module| self.wanted.contains(&module),
            |module, path, bytes| {
                let provider = provider(placement, self.need, module, bytes.len() as u64);
                let options = SessionOptions {
                    threads: self.threads,
                    memory: Memory::Pieces,
                    transfer: transfer(provider, module),
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

/// What runs a network of `bytes` bytes at `placement`, with its share of the memory that all may take. The one place
/// where a network comes to a GPU.
fn provider(placement: &Placement, need: Need, module: Module, bytes: u64) -> Provider {
    let Placement::Cuda(cuda) = placement else {
        return Provider::Cpu;
    };
    let share = match module {
        Module::Detection => need.share_of_detector(cuda.max_vram),
        _ => need.share_of_other(cuda.max_vram, bytes),
    };
    Provider::Cuda(CudaProvider::new(cuda, share, input(need, module)))
}

/// What the input of a network may measure where its file leaves that open.
fn input(need: Need, module: Module) -> InputExtents {
    match module {
        Module::Detection => InputExtents {
            images: Extents::fixed(1),
            side: Extents {
                least: scrfd::MULTIPLE,
                usual: need.det_size,
                most: need
                    .det_size
                    .max(scrfd::TRIAL)
                    .next_multiple_of(scrfd::TRIAL),
            },
        },
        _ => InputExtents {
            images: Extents {
                least: 1,
                usual: 1,
                most: network::MOST,
            },
            ..InputExtents::default()
        },
    }
}

/// How a network's inputs and outputs come and go. The detector alone sees images of one size in one number, frame by
/// frame, as a CUDA graph needs it; an engine of TensorRT is one launch as it is.
fn transfer(provider: Provider, module: Module) -> Transfer {
    let Provider::Cuda(CudaProvider { tuning, .. }) = provider else {
        return Transfer::Copied;
    };
    let is_graph = tuning.cuda_graph && module == Module::Detection;
    match (is_graph, tuning.tensorrt, tuning.pinned_io) {
        (true, false, _) => Transfer::Resident,
        (true, true, _) | (false, _, true) => Transfer::Bound,
        (false, _, false) => Transfer::Copied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::device::{Cuda, CudaTuning};

    const NEED: Need = Need {
        det_size: 640,
        weights: 100,
        others: 1,
    };

    #[test]
    fn networks_run_where_they_are_placed_and_share_the_memory() {
        assert_eq!(
            provider(&Placement::Cpu, NEED, Module::Detection, 7),
            Provider::Cpu
        );
        let cuda = Cuda {
            index: 3,
            max_vram: 1000,
            free_memory: 2000,
            fallback: true,
            tuning: CudaTuning {
                tf32: false,
                ..CudaTuning::default()
            },
        };
        let placement = Placement::Cuda(cuda.clone());
        let limits = [Module::Detection, Module::GenderAge].map(|module| {
            match provider(&placement, NEED, module, 50) {
                Provider::Cuda(provider) => {
                    assert_eq!((provider.device, provider.tuning), (3, cuda.tuning));
                    provider.memory_limit
                }
                Provider::Cpu => panic!("{module:?} runs on the processor"),
            }
        });
        assert_eq!(limits[0], 500);
        assert!((1..=500).contains(&limits[1]), "{limits:?}");
    }
}
