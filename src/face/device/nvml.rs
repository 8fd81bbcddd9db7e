// SPDX-License-Identifier: MPL-2.0
//! What the NVIDIA driver says of itself, through NVML, which is loaded at run time.

use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Nvml, cuda_driver_version_major, cuda_driver_version_minor};

/// An NVIDIA driver and its devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverInfo {
    /// The driver's version, such as `550.54.14`.
    pub version: String,
    /// The newest CUDA that it runs, such as `12.4`.
    pub cuda: String,
    /// Its devices, by CUDA index.
    pub gpus: Vec<Gpu>,
}

/// One NVIDIA device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Product name.
    pub name: String,
    /// All its memory, bytes.
    pub memory: u64,
    /// Memory that nobody uses, bytes.
    pub free_memory: u64,
}

/// Asks the driver.
///
/// # Errors
/// Why there is nothing to ask, in words: no driver, or one that does not answer.
pub fn nvidia_driver() -> Result<DriverInfo, String> {
    ask().map_err(|error| match error {
        NvmlError::LibloadingError(cause) => format!("no NVIDIA driver: {cause}"),
        other => format!("the NVIDIA driver does not answer: {other}"),
    })
}

fn ask() -> Result<DriverInfo, NvmlError> {
    let nvml = Nvml::init()?;
    let cuda = nvml.sys_cuda_driver_version()?;
    let gpus = (0..nvml.device_count()?)
        .map(|index| {
            let device = nvml.device_by_index(index)?;
            let memory = device.memory_info()?;
            Ok(Gpu {
                name: device.name()?,
                memory: memory.total,
                free_memory: memory.free,
            })
        })
        .collect::<Result<_, NvmlError>>()?;
    Ok(DriverInfo {
        version: nvml.sys_driver_version()?,
        cuda: format!(
            "{}.{}",
            cuda_driver_version_major(cuda),
            cuda_driver_version_minor(cuda)
        ),
        gpus,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_without_a_driver_gives_a_reason() {
        match super::nvidia_driver() {
            Ok(driver) => assert!(!driver.version.is_empty()),
            Err(reason) => assert!(reason.contains("NVIDIA driver"), "{reason}"),
        }
    }
}
