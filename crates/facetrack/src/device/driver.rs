// SPDX-License-Identifier: MPL-2.0
//! The report of an NVIDIA driver.

/// An NVIDIA driver and its devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverInfo {
    /// The driver's version, such as `550.54.14`.
    pub version: String,
    /// The newest CUDA that it runs, such as `12.4`.
    pub cuda: String,
    /// Number of devices, including those that this process may not use.
    pub devices: u32,
    /// Devices that this process may use, by CUDA index; empty if the driver is too old to report
    /// them.
    pub gpus: Vec<Gpu>,
}

/// One NVIDIA device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpu {
    /// Product name.
    pub name: String,
    /// Compute capability, such as (7, 5): major and minor.
    pub compute_capability: (u32, u32),
    /// Total memory, bytes.
    pub memory: u64,
    /// Free memory, bytes.
    pub free_memory: u64,
}
