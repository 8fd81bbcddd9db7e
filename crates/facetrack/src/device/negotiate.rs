// SPDX-License-Identifier: MPL-2.0
//! Decides on which device an engine runs.

use thiserror::Error;

use super::validation::{gib, validate};
use super::{
    Capabilities, Cuda, Decision, DeviceChoice, DriverInfo, Fault, GpuPolicy, Placement, Probe,
    Request, Severity, Unmet,
};

/// Reason why an engine may not run at all.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The environment forbids the GPU for InsightFace, which the older pipeline ran only there.
    #[error("InsightFace is GPU-only ({because})")]
    GpuOnly {
        /// The variable that forbids it, with its value.
        because: String,
    },
    /// No GPU can be used, and falling back is not allowed.
    #[error("GPU requested but unavailable: {0}")]
    Unavailable(Fault),
}

/// Decides where an engine with these `capabilities` runs. `probe` is used only if the GPU is
/// permitted and requested.
///
/// # Errors
/// Returns [`Refusal`] if the engine may not run on any device.
pub fn negotiate(
    capabilities: Capabilities,
    request: &Request,
    probe: &mut dyn Probe,
) -> Result<Decision, Refusal> {
    let engine = capabilities.engine;
    if !capabilities.gpu {
        return Ok(without_gpu(engine, request.device));
    }
    if request.device == Some(DeviceChoice::Cpu) {
        let line = format!("CPU mode requested for engine: {engine}");
        return Ok(on_cpu(Severity::Info, line, None));
    }
    if let Some(because) = objection(request) {
        return Err(Refusal::GpuOnly { because });
    }
    match validate(request, probe) {
        Ok((cuda, driver)) => Ok(on_cuda(engine, cuda, &driver)),
        Err(unfit) if request.fallback && !is_gpu_expected(request, &unfit) => {
            let line = format!("CPU mode selected for {engine}: {unfit}");
            Ok(on_cpu(Severity::Info, line, None))
        }
        Err(unfit) if request.fallback => Ok(fallen_back(unfit)),
        Err(unfit) => Err(Refusal::Unavailable(unfit)),
    }
}

/// The decision for an engine that runs only on the CPU.
fn without_gpu(engine: &str, device: Option<DeviceChoice>) -> Decision {
    if device == Some(DeviceChoice::Cuda) {
        let line = format!(
            "GPU mode is reserved for InsightFace only. Engine '{engine}' will run in CPU-only mode."
        );
        return on_cpu(Severity::Warning, line, Some(Unmet::CpuOnlyEngine));
    }
    let line = "CPU-only mode (GPU disabled or not supported for this engine)";
    on_cpu(Severity::Info, line.to_owned(), None)
}

/// The decision for the CPU that `line` gives the reason for.
fn on_cpu(severity: Severity, line: String, unmet: Option<Unmet>) -> Decision {
    Decision {
        placement: Placement::Cpu,
        reason: line.clone(),
        log: vec![(severity, line)],
        unmet,
    }
}

/// Returns the variable that forbids the GPU, unless the device was set.
fn objection(request: &Request) -> Option<String> {
    let (None, GpuPolicy::Disabled { variable, value }) = (request.device, &request.gpu_policy)
    else {
        return None;
    };
    Some(if value.is_empty() {
        format!("the environment does not set {variable}, which enables the GPU")
    } else {
        format!("the environment sets {variable}={value}, which disables the GPU")
    })
}

/// Returns true if a GPU was requested, or the machine has one: the user expects that it is used.
fn is_gpu_expected(request: &Request, fault: &Fault) -> bool {
    let is_requested = match request.device {
        Some(device) => device == DeviceChoice::Cuda,
        None => request.gpu_policy == GpuPolicy::Enabled,
    };
    let is_absent = matches!(
        fault,
        Fault::NoDriver(_) | Fault::NoDevice(_) | Fault::HiddenDevices(_)
    );
    is_requested || request.gpu_id.is_some() || !is_absent
}

/// The decision for a GPU that passed the checks.
fn on_cuda(engine: &str, cuda: Cuda, driver: &DriverInfo) -> Decision {
    let passed = format!(
        "GPU validation passed: VRAM {} GiB free, CUDA {}",
        gib(cuda.free_memory),
        driver.cuda
    );
    Decision {
        placement: Placement::Cuda(cuda),
        reason: passed.clone(),
        log: [
            format!("GPU mode requested for engine: {engine}"),
            passed,
            format!("GPU mode ENABLED for {engine}"),
        ]
        .map(|line| (Severity::Info, line))
        .to_vec(),
        unmet: None,
    }
}

/// The decision for the CPU after a GPU failed the checks.
fn fallen_back(fault: Fault) -> Decision {
    let line = format!("GPU requested but unavailable: {fault}");
    let mut decision = on_cpu(Severity::Warning, line, Some(Unmet::Fault(fault)));
    let enabled = "Auto-fallback to CPU enabled".to_owned();
    decision.log.push((Severity::Info, enabled));
    decision
}

#[cfg(test)]
mod tests;
