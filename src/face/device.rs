// SPDX-License-Identifier: MPL-2.0
//! Where an engine runs: a pure decision over what was asked for and what a probe of the machine says.
//!
//! CUDA is permitted for the engine `insightface` alone. Every other engine runs on the processor, whatever properties and
//! environment say, and nothing is probed for it.

use std::path::PathBuf;

use thiserror::Error;

use super::engine::EngineKind;
use crate::face::options::choices;

mod libraries;
mod nvml;
mod permit;
mod probe;

pub use libraries::{CudaLibraries, LibrarySearch};
pub use nvml::{DriverInfo, Gpu, nvidia_driver};
pub use permit::{Permit, permit};
pub use probe::MachineProbe;

choices! {
    /// The device that was asked for.
    pub enum DeviceChoice {
        Auto = "auto": "what suits the engine",
        Cpu = "cpu": "the processor",
        Cuda = "cuda": "an NVIDIA GPU, for engines that may use one",
    }
}

choices! {
    /// How cuDNN chooses among its convolutions.
    pub enum ConvAlgorithmSearch {
        Exhaustive = "exhaustive": "tries all of them at the first run: slow to start, fastest then",
        Heuristic = "heuristic": "guesses",
        Default = "default": "takes the one that always works",
    }
}

/// Everything that was asked for, explicitly or by the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The property `device`.
    pub device: DeviceChoice,
    /// What the environment says about `auto`.
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
    /// ONNX Runtime's library; `None` to look for it.
    pub onnxruntime: Option<PathBuf>,
    /// How networks run on the GPU.
    pub tuning: CudaTuning,
}

/// What the environment says about `device=auto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// Nothing against the GPU.
    Open,
    /// No GPU, since this variable has this value.
    Closed {
        /// Name of the variable.
        variable: &'static str,
        /// Its value; empty where it is missing.
        value: String,
    },
}

/// How networks run on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaTuning {
    /// Runs before the first frame.
    pub warm_up_runs: usize,
    /// How cuDNN chooses among its convolutions.
    pub conv_algorithm_search: ConvAlgorithmSearch,
    /// TF32 on Ampere and newer.
    pub tf32: bool,
    /// CUDA graphs for networks whose inputs always have one shape.
    pub cuda_graph: bool,
    /// The same result in every run: fixed convolutions, no TF32.
    pub deterministic: bool,
    /// Give memory back after each run.
    pub arena_shrinkage: bool,
}

impl Default for CudaTuning {
    fn default() -> Self {
        Self {
            warm_up_runs: 3,
            conv_algorithm_search: ConvAlgorithmSearch::Exhaustive,
            tf32: true,
            cuda_graph: false,
            deterministic: false,
            arena_shrinkage: false,
        }
    }
}

/// Where networks run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Placement {
    /// On the processor.
    #[default]
    Cpu,
    /// On a GPU.
    Cuda(Cuda),
}

/// A GPU that passed validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cuda {
    /// CUDA index.
    pub index: u32,
    /// Most memory that the runtime may take, bytes.
    pub max_vram: u64,
    /// Free memory when it was validated, bytes.
    pub free_memory: u64,
    /// Whether to go on with the processor when it fails later.
    pub fallback: bool,
    /// How networks run on it.
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

    /// ONNX Runtime's name of the execution provider.
    pub fn execution_provider(&self) -> &'static str {
        match self {
            Self::Cpu => "CPUExecutionProvider",
            Self::Cuda(_) => "CUDAExecutionProvider",
        }
    }
}

/// Where an engine runs, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Where it runs.
    pub placement: Placement,
    /// Why, for the property `device-reason`, the message on the bus and the JSON.
    pub reason: String,
    /// Lines for the log, in their order.
    pub log: Vec<(Severity, String)>,
    /// What a user has to know: the GPU was wanted and is not used. For a message on the bus.
    pub warning: Option<String>,
}

/// How loudly a line is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// As asked for.
    Info,
    /// Something else than was asked for.
    Warning,
}

/// Why an engine may not run at all. The message names the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// InsightFace was told to run on the processor without being allowed to fall back on it: row 6 and 7 of the table.
    #[error(
        "InsightFace is GPU-only ({because}). Set device=auto gpu-fallback=true to let it run on the processor where there is no GPU"
    )]
    GpuOnly {
        /// What asked for the processor, such as `device=cpu` or a variable with its value.
        because: String,
    },
    /// The GPU is not to be had, and there is no falling back: row 5.
    #[error(
        "GPU requested but unavailable: {reason}. {remedy}, or set gpu-fallback=true to run on the processor"
    )]
    Unavailable {
        /// What the validation said.
        reason: String,
        /// What mends it.
        remedy: String,
    },
}

/// Why a GPU can't be used: the first check that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// Number of the check, from 1.
    pub check: u8,
    /// The reason in words.
    pub reason: String,
    /// What mends it.
    pub remedy: String,
}

/// What can be asked of a machine, in the order in which it is asked. Tests answer by script.
pub trait Probe {
    /// The NVIDIA driver and its devices: checks 1 to 4 look at the answer.
    ///
    /// # Errors
    /// Why there is nothing to ask.
    fn driver(&mut self) -> Result<DriverInfo, String>;

    /// Whether ONNX Runtime has the CUDA provider and finds its libraries, which are loaded: check 5.
    ///
    /// # Errors
    /// What is missing, and what mends it.
    fn runtime(&mut self, request: &Request) -> Result<(), (String, String)>;

    /// Opens a session on the GPU and runs it: check 6.
    ///
    /// # Errors
    /// What the runtime said.
    fn session(&mut self, cuda: &Cuda, request: &Request) -> Result<(), String>;
}

/// Decides where `engine` runs. `probe` is asked only where the GPU is permitted and wanted.
///
/// # Errors
/// [`Refusal`] when it may not run: rows 5 to 7 of the table in the documentation.
pub fn negotiate(
    engine: EngineKind,
    request: &Request,
    _probe: &mut dyn Probe,
) -> Result<Decision, Refusal> {
    let _ = (engine, request);
    Ok(Decision {
        placement: Placement::Cpu,
        reason: String::new(),
        log: Vec::new(),
        warning: None,
    })
}
