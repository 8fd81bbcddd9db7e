// SPDX-License-Identifier: MPL-2.0
//! Device of networks, and their settings on a GPU.

use smart_default::SmartDefault;

use crate::words::choices;

choices! {
    /// Choice of cuDNN's convolution algorithms.
    pub enum ConvAlgorithmSearch, words conv_algorithm_search_words {
        Exhaustive = "exhaustive": "try all at the first run, which makes the start slower",
        Heuristic = "heuristic": "use a heuristic",
        Default = "default": "use the algorithm that works in all cases, which is very slow",
    }
}

/// Settings of networks on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, SmartDefault)]
pub struct CudaTuning {
    /// Runs before the first frame.
    #[default(3)]
    pub warm_up_runs: usize,
    /// Method with which cuDNN chooses its convolutions.
    #[default(ConvAlgorithmSearch::Heuristic)]
    pub conv_algorithm_search: ConvAlgorithmSearch,
    /// TF32 on Ampere and newer. On an H100 it moved landmarks by up to 0.8 px.
    pub tf32: bool,
    /// The same result in every run: fixed convolutions, no TF32.
    pub deterministic: bool,
    /// Give memory back after each run.
    pub arena_shrinkage: bool,
    /// Inputs and outputs through page-locked memory that is bound once.
    pub pinned_io: bool,
    /// Each network's run captured once as a CUDA graph and replayed.
    pub cuda_graph: bool,
    /// TensorRT before CUDA, on the same GPU. It takes no CUDA graph, and knows neither `tf32` nor
    /// `deterministic`.
    pub tensorrt: bool,
    /// Half precision for networks that a pack also has in half precision; with TensorRT, for
    /// operators that are faster in it.
    pub fp16: bool,
}

impl CudaTuning {
    /// Returns the method with which cuDNN chooses its convolutions: a heuristic if the result must
    /// not change.
    pub fn search(&self) -> ConvAlgorithmSearch {
        match self.deterministic {
            true => ConvAlgorithmSearch::Heuristic,
            false => self.conv_algorithm_search,
        }
    }

    /// Returns true if the first run of a network measures the speed of operators, to choose among
    /// them.
    pub fn measures_speed(&self) -> bool {
        self.tensorrt || self.search() == ConvAlgorithmSearch::Exhaustive
    }

    /// Returns true if both TensorRT and the same result in every run are requested. TensorRT
    /// chooses its operators by measuring them.
    pub fn is_contradictory(&self) -> bool {
        self.tensorrt && self.deterministic
    }
}

/// Device of networks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Placement {
    /// The CPU.
    #[default]
    Cpu,
    /// A GPU.
    Cuda(Cuda),
}

/// A GPU that passed validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cuda {
    /// CUDA index among the visible devices.
    pub index: u32,
    /// The visible devices, as `$CUDA_VISIBLE_DEVICES` lists them; `None` for all.
    pub visible_devices: Option<String>,
    /// Maximum memory that the runtime may take, bytes.
    pub max_vram: u64,
    /// Free memory when it was validated, bytes.
    pub free_memory: u64,
    /// True to go on with the processor when it fails later.
    pub fallback: bool,
    /// Settings of networks on this GPU.
    pub tuning: CudaTuning,
}

impl Placement {
    /// `cpu` or `cuda:<index>`.
    pub fn device(&self) -> String {
        match self {
            Self::Cpu => "cpu".to_owned(),
            Self::Cuda(cuda) => format!("cuda:{}", cuda.index),
        }
    }

    /// ONNX Runtime's name of the execution provider, the first one where there are several.
    pub fn execution_provider(&self) -> &'static str {
        match self {
            Self::Cpu => "CPUExecutionProvider",
            Self::Cuda(cuda) if cuda.tuning.tensorrt => "TensorrtExecutionProvider",
            Self::Cuda(_) => "CUDAExecutionProvider",
        }
    }
}
