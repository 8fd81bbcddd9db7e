// SPDX-License-Identifier: MPL-2.0
//! Options of a network's runs.

use smart_default::SmartDefault;

use super::cuda::CudaProvider;

/// Options of a network's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SmartDefault)]
pub struct SessionOptions {
    /// Threads that work on one run; with 1, only the calling thread works. In the built-in
    /// runtime, idle threads of other runs help as well.
    #[default(1)]
    pub threads: usize,
    /// Number of runs at the same time.
    #[default(1)]
    pub runs: usize,
    /// Allocation of memory for the values between its operators.
    pub memory: Memory,
    /// Transfer of its inputs and outputs.
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
    /// An NVIDIA GPU. If it can't be used, that is an error, without a fallback to the CPU.
    Cuda(CudaProvider),
}

/// Allocation of memory for the values between a network's operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Memory {
    /// In one block that is planned after the first run: some 2 % faster.
    #[default]
    Planned,
    /// In pieces that the first run allocates on demand and later runs reuse. They take half the
    /// memory, and are for networks with large images or few runs.
    Pieces,
}

/// Transfer of a network's inputs and outputs. The results are the same. Variants other than
/// [`Copied`] apply from the second run with inputs of one shape.
///
/// [`Copied`]: Transfer::Copied
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Transfer {
    /// The runtime allocates memory for them in each run.
    #[default]
    Copied,
    /// Through memory that stays, page-locked where a GPU runs the network.
    Bound,
    /// Like [`Transfer::Bound`], with memory of the device that stays as well, so that a GPU can
    /// repeat a run as a CUDA graph.
    Resident,
}
