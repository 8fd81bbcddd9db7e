// SPDX-License-Identifier: MPL-2.0
//! Whether there is a GPU that networks run on: seven checks, of which the first that fails is the reason.

mod checks;

use super::{Cuda, DriverInfo, Request};
pub use checks::{Gib, insufficient};
use checks::{chosen, compute_capability, device, driver_version, free_memory, placement};

/// What can be asked of a machine, in the order in which it is asked. Tests answer by script.
pub trait Probe {
    /// The NVIDIA driver and its devices.
    ///
    /// # Errors
    /// Why there is nothing to ask.
    fn driver(&mut self) -> Result<DriverInfo, String>;

    /// Whether ONNX Runtime has the CUDA provider; what it is, for a person to read.
    ///
    /// # Errors
    /// What is missing, and what mends it.
    fn provider(&mut self, request: &Request) -> Result<String, Fault>;

    /// Finds the libraries that the provider needs, and loads them; what was found, for a person to read.
    ///
    /// # Errors
    /// What is missing or broken, and what mends it.
    fn libraries(&mut self, request: &Request) -> Result<String, Fault>;

    /// Opens a session on the GPU and runs it.
    ///
    /// # Errors
    /// What the runtime said, and what mends it.
    fn session(&mut self, cuda: &Cuda, request: &Request) -> Result<(), Fault>;
}

/// Something that does not work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What, in words.
    pub reason: String,
    /// What mends it: a sentence without its full stop.
    pub remedy: String,
}

impl Fault {
    /// `reason`, and `remedy` against it.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            remedy: remedy.into(),
        }
    }
}

/// What is checked, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Check {
    /// NVML loads and sees a device that may be used.
    Device,
    /// The driver is new enough.
    Driver,
    /// The device is new enough.
    ComputeCapability,
    /// It has memory to spare.
    FreeMemory,
    /// ONNX Runtime has the CUDA provider.
    Provider,
    /// The provider's libraries are found and load.
    Libraries,
    /// A session opens on the device and runs.
    Session,
}

impl Check {
    /// All, in their order.
    pub const ALL: [Self; 7] = [
        Self::Device,
        Self::Driver,
        Self::ComputeCapability,
        Self::FreeMemory,
        Self::Provider,
        Self::Libraries,
        Self::Session,
    ];

    /// What it asks, for a person to read.
    pub fn title(self) -> &'static str {
        match self {
            Self::Device => "NVIDIA device",
            Self::Driver => "driver 525 or newer",
            Self::ComputeCapability => "compute capability 7.5 or newer",
            Self::FreeMemory => "free memory",
            Self::Provider => "ONNX Runtime with the CUDA provider",
            Self::Libraries => "CUDA's libraries",
            Self::Session => "a session on the GPU",
        }
    }
}

/// Why a GPU can't be used: the first check that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// Which.
    pub check: Check,
    /// What it found.
    pub fault: Fault,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is as it should be: what there is.
    Passed(String),
    /// It is not.
    Failed(Fault),
    /// Nothing, since this other one failed before.
    Skipped(Check),
}

/// A GPU that passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Validated {
    pub cuda: Cuda,
    /// Its driver.
    pub driver: DriverInfo,
}

/// Asks `probe` what `request` needs, up to the first check that fails.
pub(super) fn validate(request: &Request, probe: &mut dyn Probe) -> Result<Validated, Unfit> {
    let at = |check| move |fault| Unfit { check, fault };
    let driver = device(probe).map_err(at(Check::Device))?;
    driver_version(&driver).map_err(at(Check::Driver))?;
    let (index, gpu) = chosen(request, &driver).map_err(at(Check::Device))?;
    compute_capability(gpu).map_err(at(Check::ComputeCapability))?;
    free_memory(request, gpu).map_err(at(Check::FreeMemory))?;
    let cuda = placement(request, index, gpu);
    probe.provider(request).map_err(at(Check::Provider))?;
    probe.libraries(request).map_err(at(Check::Libraries))?;
    probe.session(&cuda, request).map_err(at(Check::Session))?;
    Ok(Validated { cuda, driver })
}

/// Every check that can be made, for a person to read: those of the runtime are made without a GPU as well.
pub fn examine(request: &Request, probe: &mut dyn Probe) -> Vec<(Check, Outcome)> {
    let (mut outcomes, found) = examine_device(request, probe);
    let mut failed = outcomes.iter().find_map(failure);
    let provider = probe.provider(request);
    let has_provider = provider.is_ok();
    outcomes.push((Check::Provider, outcome(provider)));
    let libraries = match has_provider {
        true => outcome(probe.libraries(request)),
        false => Outcome::Skipped(Check::Provider),
    };
    outcomes.push((Check::Libraries, libraries));
    failed = failed.or_else(|| outcomes.iter().find_map(failure));
    let session = match (failed, found) {
        (None, Some(cuda)) => outcome(
            probe
                .session(&cuda, request)
                .map(|()| format!("opens and runs on cuda:{}", cuda.index)),
        ),
        (failed, _) => Outcome::Skipped(failed.unwrap_or(Check::Device)),
    };
    outcomes.push((Check::Session, session));
    outcomes
}

/// The checks that the driver answers, and the GPU if there is one.
fn examine_device(
    request: &Request,
    probe: &mut dyn Probe,
) -> (Vec<(Check, Outcome)>, Option<Cuda>) {
    let driver = match device(probe) {
        Ok(driver) => driver,
        Err(fault) => return (after(Check::Device, fault), None),
    };
    let version = driver_version(&driver);
    let (index, gpu) = match (chosen(request, &driver), &version) {
        (Ok(chosen), _) => chosen,
        // One that is too old tells nothing of its devices.
        (Err(_), Err(fault)) => {
            let device = format!("{} devices", driver.devices);
            let mut outcomes = after(Check::Driver, fault.clone());
            outcomes.insert(0, (Check::Device, Outcome::Passed(device)));
            return (outcomes, None);
        }
        (Err(fault), Ok(_)) => return (after(Check::Device, fault), None),
    };
    let device = format!("cuda:{index}, {}", gpu.name);
    let outcomes = vec![
        (Check::Device, Outcome::Passed(device)),
        (Check::Driver, outcome(version)),
        (Check::ComputeCapability, outcome(compute_capability(gpu))),
        (Check::FreeMemory, outcome(free_memory(request, gpu))),
    ];
    (outcomes, Some(placement(request, index, gpu)))
}

/// `check` failed, and those of the driver's behind it are not made.
fn after(check: Check, fault: Fault) -> Vec<(Check, Outcome)> {
    let behind = Check::ALL
        .into_iter()
        .filter(|other| *other > check && *other < Check::Provider)
        .map(|other| (other, Outcome::Skipped(check)));
    std::iter::once((check, Outcome::Failed(fault)))
        .chain(behind)
        .collect()
}

fn outcome(result: Result<String, Fault>) -> Outcome {
    result.map_or_else(Outcome::Failed, Outcome::Passed)
}

fn failure((check, outcome): &(Check, Outcome)) -> Option<Check> {
    matches!(outcome, Outcome::Failed(_)).then_some(*check)
}
