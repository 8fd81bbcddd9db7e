// SPDX-License-Identifier: MPL-2.0
//! Decides on which device an engine runs, from the request and a probe of the machine.
//!
//! Only the engine `insightface` may use CUDA. Every other engine runs on the CPU, regardless of
//! properties and environment, and the machine is not probed for it.

mod driver;
mod gpu_policy;
mod libraries;
mod memory;
mod negotiate;
#[cfg_attr(not(feature = "gpu"), path = "device/no_nvml.rs")]
mod nvml;
mod permit;
mod probe;
mod request;
mod validation;

pub use crate::model::placement::{ConvAlgorithmSearch, Cuda, CudaTuning, Placement};
pub use crate::words::parse_switch;
pub use driver::{DriverInfo, Gpu};
pub use gpu_policy::GpuPolicy;
pub use libraries::{LibrarySearch, PYTHON_PACKAGES, PythonPackages};
pub(crate) use memory::{Need, halved_det_size, largest_det_size};
pub use negotiate::{Refusal, negotiate};
pub use nvml::{OwnMemory, nvidia_driver};
pub(crate) use permit::{MemoryReservation, Permit, reserve};
pub use probe::{CUDA_PROVIDER, MachineProbe};
pub use request::{Capabilities, MAX_VRAM, MIN_FREE_VRAM, Request};
pub(crate) use validation::insufficient;
pub use validation::{Check, Fault, Outcome, Probe, examine};

/// The requested device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The best device for the engine.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// An NVIDIA GPU, for engines that can use one.
    Cuda,
}

impl DeviceChoice {
    /// Parses `auto`, `cpu`, `cuda`, or `cuda:` and the number of a CUDA device, as
    /// [`Placement::device`] names it.
    pub fn parse(text: &str) -> Option<(Self, Option<u32>)> {
        Some(match text {
            "auto" => (Self::Auto, None),
            "cpu" => (Self::Cpu, None),
            "cuda" => (Self::Cuda, None),
            _ => {
                let number = text.strip_prefix("cuda:")?.parse().ok()?;
                (Self::Cuda, Some(number))
            }
        })
    }
}

/// Device on which an engine runs, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Device.
    pub placement: Placement,
    /// Reason for the property `device-reason`, the message on the bus and the JSON.
    pub reason: String,
    /// Lines for the log, in their order.
    pub log: Vec<(Severity, String)>,
    /// Reason why the requested GPU is not used.
    pub unmet: Option<Unmet>,
}

/// Reason why a requested GPU is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmet {
    /// The engine runs only on the CPU.
    CpuOnlyEngine,
    /// No GPU can be used.
    Fault(Fault),
}

/// Log level of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The device is the requested one.
    Info,
    /// The device differs from the request.
    Warning,
}
