// SPDX-License-Identifier: MPL-2.0
//! Where an engine runs: a pure decision over what was asked for.
//!
//! CUDA is permitted for the engine `insightface` alone, which this version does not have. So every engine runs on the
//! processor, whatever properties and environment say, and nothing is probed.

use super::engine::EngineKind;
use crate::face::options::choices;

mod nvml;

pub use nvml::{DriverInfo, Gpu, nvidia_driver};

choices! {
    /// The device that was asked for.
    pub enum DeviceChoice {
        Auto = "auto": "what suits the engine",
        Cpu = "cpu": "the processor",
        Cuda = "cuda": "an NVIDIA GPU, for engines that may use one",
    }
}

/// Where an engine runs, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// `cpu` or `cuda:<index>`.
    pub device: String,
    /// ONNX Runtime's name of the execution provider.
    pub execution_provider: &'static str,
    /// Why, for the log and the property `device-reason`.
    pub reason: String,
    /// How loudly to say so.
    pub severity: Severity,
}

/// How loudly a decision is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// As asked for.
    Info,
    /// Something else than was asked for.
    Warning,
}

/// Decides where `engine` runs when `wanted` was asked for.
pub fn negotiate(engine: EngineKind, wanted: DeviceChoice) -> Decision {
    let (severity, reason) = match wanted {
        DeviceChoice::Cuda => (
            Severity::Warning,
            format!(
                "GPU mode is reserved for InsightFace only. Engine '{}' will run in CPU-only mode.",
                engine.name()
            ),
        ),
        DeviceChoice::Auto | DeviceChoice::Cpu => (
            Severity::Info,
            "CPU-only mode (GPU disabled or not supported for this engine)".to_owned(),
        ),
    };
    Decision {
        device: "cpu".to_owned(),
        execution_provider: "CPUExecutionProvider",
        reason,
        severity,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_runs_on_the_processor() {
        for engine in EngineKind::ALL {
            for (wanted, severity, reason) in [
                (
                    DeviceChoice::Auto,
                    Severity::Info,
                    "CPU-only mode (GPU disabled or not supported for this engine)".to_owned(),
                ),
                (
                    DeviceChoice::Cpu,
                    Severity::Info,
                    "CPU-only mode (GPU disabled or not supported for this engine)".to_owned(),
                ),
                (
                    DeviceChoice::Cuda,
                    Severity::Warning,
                    format!(
                        "GPU mode is reserved for InsightFace only. Engine '{}' will run in CPU-only mode.",
                        engine.name()
                    ),
                ),
            ] {
                let decision = negotiate(engine, wanted);
                assert_eq!(decision.device, "cpu");
                assert_eq!(decision.execution_provider, "CPUExecutionProvider");
                assert_eq!(decision.severity, severity);
                assert_eq!(decision.reason, reason);
            }
        }
    }
}
