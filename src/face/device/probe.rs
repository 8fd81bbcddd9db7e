// SPDX-License-Identifier: MPL-2.0
//! Asks the machine: NVML for the driver, ONNX Runtime for the rest.

use super::{Cuda, DriverInfo, Probe, Request, nvidia_driver};

/// This machine.
#[derive(Debug, Default)]
pub struct MachineProbe;

impl Probe for MachineProbe {
    fn driver(&mut self) -> Result<DriverInfo, String> {
        nvidia_driver()
    }

    fn runtime(&mut self, _request: &Request) -> Result<(), (String, String)> {
        Err(("not asked yet".to_owned(), "use the processor".to_owned()))
    }

    fn session(&mut self, _cuda: &Cuda, _request: &Request) -> Result<(), String> {
        Err("not asked yet".to_owned())
    }
}
