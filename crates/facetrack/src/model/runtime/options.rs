// SPDX-License-Identifier: MPL-2.0
//! How a network is run.

use super::cuda::CudaProvider;

/// How a network is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionOptions {
    /// Threads that work on one run; with 1 the calling thread does everything.
    pub threads: usize,
    /// Where the values between its operators lie.
    pub memory: Memory,
    /// How its inputs and outputs come and go.
    pub transfer: Transfer,
    /// What runs it.
    pub provider: Provider,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            memory: Memory::Planned,
            transfer: Transfer::Copied,
            provider: Provider::Cpu,
        }
    }
}

/// What runs a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Provider {
    /// The processor.
    #[default]
    Cpu,
    /// An NVIDIA GPU. Nothing but an error comes of one that can't be used: the processor does not step in.
    Cuda(CudaProvider),
}

/// Where the values between a network's operators lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// In one piece that is planned after the first run: some 2 % faster.
    Planned,
    /// In pieces, which the first run takes as it needs them. Half the memory, since those of the first run are not in
    /// vain: for networks that see large images, or run in few frames.
    Pieces,
}

/// How a network's inputs and outputs come and go. The results are the same in each way. Those other than [`Copied`] hold
/// for runs after the first with inputs of one shape.
///
/// [`Copied`]: Transfer::Copied
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transfer {
    /// The runtime finds memory for them in each run.
    #[default]
    Copied,
    /// Through memory that stays, page-locked where a GPU runs the network.
    Bound,
    /// As [`Transfer::Bound`], and on to memory of the device that stays as well, which lets a GPU repeat a run as a CUDA
    /// graph.
    Resident,
}
