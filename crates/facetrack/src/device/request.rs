// SPDX-License-Identifier: MPL-2.0
//! The requested device.

use smart_default::SmartDefault;

use super::{CudaTuning, DeviceChoice, GpuPolicy, LibrarySearch};
use facetrack_assets::locate::SearchPaths;

/// Default maximum of memory that the runtime may take, bytes.
pub const MAX_VRAM: u64 = 2048 << 20;

/// Default minimum of free memory, bytes.
pub const MIN_FREE_VRAM: u64 = 1536 << 20;

/// Properties of an engine that decide where it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// The engine's name.
    pub engine: &'static str,
    /// True if the engine can run on a GPU.
    pub gpu: bool,
}

/// All options of the device, set explicitly or by the environment.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault)]
pub struct Request {
    /// The property `device` if it was set; it takes precedence over the environment. `None` stands
    /// for `auto`, if the environment permits it.
    pub device: Option<DeviceChoice>,
    /// Permission of the environment to use the GPU for the default, `auto`.
    #[default(GpuPolicy::Allowed)]
    pub gpu_policy: GpuPolicy,
    /// True to fall back to the CPU if no GPU can be used.
    #[default(true)]
    pub fallback: bool,
    /// CUDA device; `None` for the one with the most free memory.
    pub gpu_id: Option<u32>,
    /// Maximum memory that the runtime may take, bytes.
    #[default(MAX_VRAM)]
    pub max_vram: u64,
    /// A GPU with less free memory counts as not available, bytes.
    #[default(MIN_FREE_VRAM)]
    pub min_free_vram: u64,
    /// Folders to search for CUDA's libraries.
    pub libraries: LibrarySearch,
    /// Folders to search for ONNX Runtime.
    pub paths: SearchPaths,
    /// Devices that CUDA shows the process, as `$CUDA_VISIBLE_DEVICES` lists them; `None` for all.
    pub visible_devices: Option<String>,
    /// Settings for networks on the GPU.
    pub tuning: CudaTuning,
}
