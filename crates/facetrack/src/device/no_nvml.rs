// SPDX-License-Identifier: MPL-2.0
//! Replaces NVML in builds without the feature `gpu`: there is no driver.

use super::{DriverInfo, Placement};

/// Asks nothing.
///
/// # Errors
/// Returns the reason.
pub fn nvidia_driver(_: Option<&str>) -> Result<DriverInfo, String> {
    Err("this program was built without the feature `gpu`".to_owned())
}

/// Memory of a GPU that this process uses. There is none.
#[derive(Debug)]
pub enum OwnMemory {}

impl OwnMemory {
    /// Returns `None`.
    pub fn of(_: &Placement) -> Option<Self> {
        None
    }

    /// Current amount, MiB.
    pub fn mebibytes(&self) -> Option<u64> {
        match *self {}
    }
}
