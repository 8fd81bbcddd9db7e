// SPDX-License-Identifier: MPL-2.0
//! How a network is run.

use smart_default::SmartDefault;

use super::cuda::CudaProvider;

/// How a network is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SmartDefault)]
pub struct SessionOptions {
    /// Threads that work on one run; with 1 the calling thread does everything. In the built-in
    /// runtime, threads of `runs` that are not under way help as well.
    #[default(1)]
    pub threads: usize,
    /// Number of runs at the same time.
    #[default(1)]
    pub runs: usize,
    /// How memory for the values between its operators is allocated.
    pub memory: Memory,
    /// How its inputs and outputs are transferred.
    pub transfer: Transfer,
    /// Device that runs it.
    pub provider: Provider,
}

/// Device that runs a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Provider {
    /// The CPU.
    #[default]
    Cpu,
    /// An NVIDIA GPU. If it can't be used, that is an error: there is no fallback to the CPU.
    Cuda(CudaProvider),
}

/// How memory for the values between a network's operators is allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Memory {
    /// In one block that is planned after the first run: some 2 % faster.
    #[default]
    Planned,
    /// In pieces that the first run allocates as it needs them, and that later runs use again. Half
    /// the memory: for networks that take large images, or run in few frames.
    Pieces,
}

/// How a network's inputs and outputs are transferred. The results are the same. Variants other
/// than [`Copied`] apply from the second run with inputs of one shape.
///
/// [`Copied`]: Transfer::Copied
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Transfer {
    /// The runtime allocates memory for them in each run.
    #[default]
    Copied,
    /// Through memory that stays, page-locked where a GPU runs the network.
    Bound,
    /// As [`Transfer::Bound`], and on to memory of the device that stays as well, which lets a GPU
    /// repeat a run as a CUDA graph.
    Resident,
}
