// SPDX-License-Identifier: MPL-2.0
//! What was asked for.

use std::path::PathBuf;

use super::{CudaTuning, DeviceChoice, Gate, LibrarySearch};

/// Most memory that the runtime may take unless told otherwise, bytes: the table in the documentation.
pub const MAX_VRAM: u64 = 2048 << 20;

/// Least free memory unless told otherwise, bytes: the table in the documentation.
pub const MIN_FREE_VRAM: u64 = 1536 << 20;

/// Everything that was asked for, explicitly or by the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The property `device` where it was set: it beats the environment. `None` is `auto`, if the environment lets it.
    pub device: Option<DeviceChoice>,
    /// What the environment says about `auto` that nobody set.
    pub gate: Gate,
    /// Whether to run on the processor when the GPU is not to be had.
    pub fallback: bool,
    /// CUDA device; `None` for the one with the most free memory.
    pub gpu_id: Option<u32>,
    /// Most memory that the runtime may take, bytes.
    pub max_vram: u64,
    /// A GPU with less free memory counts as not available, bytes.
    pub min_free_vram: u64,
    /// Where CUDA's libraries are looked for.
    pub libraries: LibrarySearch,
    /// Candidates for ONNX Runtime's library; see
    /// [`SearchPaths::runtime_candidates`](crate::locate::SearchPaths::runtime_candidates).
    pub runtime: Vec<PathBuf>,
    /// Devices that CUDA shows the process, as `$CUDA_VISIBLE_DEVICES` lists them; `None` for all.
    pub visible_devices: Option<String>,
    /// How networks run on the GPU.
    pub tuning: CudaTuning,
}

impl Default for Request {
    /// What holds where nobody asked for anything.
    fn default() -> Self {
        Self {
            device: None,
            gate: Gate::Open,
            fallback: true,
            gpu_id: None,
            max_vram: MAX_VRAM,
            min_free_vram: MIN_FREE_VRAM,
            libraries: LibrarySearch::default(),
            runtime: Vec::new(),
            visible_devices: None,
            tuning: CudaTuning::default(),
        }
    }
}
