// SPDX-License-Identifier: MPL-2.0
//! Checks that networks can run on a GPU, in seven steps. The first that fails is the reason.

mod checks;

use strum::{IntoStaticStr, VariantArray};
use thiserror::Error;

use facetrack_assets::trust::Replaceable;

use super::{Cuda, DriverInfo, Gpu, Request};
use checks::{
    MIN_COMPUTE_CAPABILITY, MIN_DRIVER, chosen, compute_capability, device, driver_version,
    free_memory, placement,
};
pub(crate) use checks::{gib, insufficient};

/// Queries to the machine, in the order of their use. Tests implement it with a script.
pub trait Probe {
    /// The NVIDIA driver and its devices.
    ///
    /// # Errors
    /// Returns the reason why no driver was found.
    fn driver(&mut self, request: &Request) -> Result<DriverInfo, String>;

    /// Checks that ONNX Runtime has the CUDA provider, and returns a description of it.
    ///
    /// # Errors
    /// Returns the fault that was found.
    fn provider(&mut self, request: &Request) -> Result<String, Fault>;

    /// Finds the libraries that the provider needs, and loads them. Returns a description of them.
    ///
    /// # Errors
    /// Returns the fault that was found.
    fn libraries(&mut self, request: &Request) -> Result<String, Fault>;

    /// Opens a session on the GPU and runs it.
    ///
    /// # Errors
    /// Returns [`Fault::Session`].
    fn session(&mut self, cuda: &Cuda, request: &Request) -> Result<(), Fault>;
}

/// Reason why no network runs on the GPU.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The NVIDIA driver is missing or does not answer.
    #[error("{0}")]
    NoDriver(String),
    /// The driver of this version sees no device.
    #[error("the NVIDIA driver {0} finds no device")]
    NoDevice(String),
    /// The driver of this version is too old.
    #[error("the NVIDIA driver {0} is older than {MIN_DRIVER}")]
    OldDriver(String),
    /// This many devices exist, but CUDA may use none of them.
    #[error("CUDA may use none of the {0} devices")]
    HiddenDevices(u32),
    /// The requested device does not exist.
    #[error("there is no GPU {id}; the last GPU is {last}")]
    NoSuchGpu {
        /// CUDA index that was requested.
        id: u32,
        /// Highest CUDA index.
        last: usize,
    },
    /// The device is too old.
    #[error(
        "compute capability {}.{} of {} is below {}.{}",
        .0.compute_capability.0, .0.compute_capability.1, .0.name,
        MIN_COMPUTE_CAPABILITY.0, MIN_COMPUTE_CAPABILITY.1
    )]
    OldGpu(Gpu),
    /// The device has less free memory than required.
    #[error("{}", insufficient(*free, *required))]
    FreeMemory {
        /// Free memory, bytes.
        free: u64,
        /// Required memory, bytes.
        required: u64,
    },
    /// ONNX Runtime does not load, or its CUDA provider can't be read.
    #[error("{0}")]
    Runtime(String),
    /// The ONNX Runtime at this path was built without CUDA.
    #[error("this ONNX Runtime has no CUDA provider: {0}")]
    NoCudaProvider(String),
    /// The ONNX Runtime at this path was built without TensorRT.
    #[error("this ONNX Runtime has no TensorRT provider: {0}")]
    NoTensorRtProvider(String),
    /// A library of ONNX Runtime is not in its folder.
    #[error("{file} is not next to this ONNX Runtime: {runtime}")]
    NoProviderFile {
        /// Name of the missing file.
        file: &'static str,
        /// Path of ONNX Runtime.
        runtime: String,
    },
    /// The driver is too old for this ONNX Runtime.
    #[error("this ONNX Runtime was built for CUDA {needed}, but the driver supports CUDA {driver}")]
    OldDriverForRuntime {
        /// Major version of CUDA that ONNX Runtime needs.
        needed: u32,
        /// CUDA version of the driver.
        driver: String,
    },
    /// CUDA's libraries do not load without the library of the driver.
    #[error("{0}")]
    NoDriverLibrary(String),
    /// Some of CUDA's libraries are missing or broken.
    #[error("{reason}")]
    Libraries {
        /// Each library, and its problem.
        reason: String,
        /// Python packages that contain them.
        packages: Vec<String>,
    },
    /// A library can be replaced by every user.
    #[error(transparent)]
    Replaceable(#[from] Replaceable),
    /// A session does not open or run.
    #[error("ONNX Runtime does not run on cuda:{index}: {reason}")]
    Session {
        /// CUDA index.
        index: u32,
        /// The runtime's message.
        reason: String,
        /// True if the session ran out of memory.
        is_out_of_memory: bool,
    },
    /// The networks of an engine need more memory than is free, or than the engine may use.
    #[error("{0}")]
    NetworkMemory(String),
}

/// The checks, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
pub enum Check {
    /// NVML loads and sees a device that may be used.
    #[strum(serialize = "NVIDIA device")]
    Device,
    /// The driver is new enough.
    #[strum(serialize = "driver 525 or newer")]
    Driver,
    /// The device is new enough.
    #[strum(serialize = "compute capability 7.5 or newer")]
    ComputeCapability,
    /// The device has enough free memory.
    #[strum(serialize = "free memory")]
    FreeMemory,
    /// ONNX Runtime has the CUDA provider.
    #[strum(serialize = "ONNX Runtime with the CUDA provider")]
    Provider,
    /// The provider's libraries are found and load.
    #[strum(serialize = "CUDA's libraries")]
    Libraries,
    /// A session opens on the device and runs.
    #[strum(serialize = "a session on the GPU")]
    Session,
}

impl Check {
    /// All, in their order.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Title, for messages.
    pub fn title(self) -> &'static str {
        self.into()
    }
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The check passed; the text describes the result.
    Passed(String),
    /// The check failed.
    Failed(Fault),
    /// The check was skipped, because this other one failed before.
    Skipped(Check),
}

/// Makes the checks up to the first that fails. Returns the GPU, and its driver.
pub(super) fn validate(
    request: &Request,
    probe: &mut dyn Probe,
) -> Result<(Cuda, DriverInfo), Fault> {
    let driver = device(request, probe)?;
    driver_version(&driver)?;
    let (index, gpu) = chosen(request, &driver)?;
    compute_capability(gpu)?;
    free_memory(request, gpu)?;
    let cuda = placement(request, index, gpu);
    probe.provider(request)?;
    probe.libraries(request)?;
    probe.session(&cuda, request)?;
    Ok((cuda, driver))
}

/// Makes every check that is possible, for a report. The checks of the runtime are made without a
/// GPU as well.
pub fn examine(request: &Request, probe: &mut dyn Probe) -> Vec<(Check, Outcome)> {
    let (mut outcomes, found) = examine_device(request, probe);
    let provider = outcome(probe.provider(request));
    let libraries = match provider {
        Outcome::Passed(_) => outcome(probe.libraries(request)),
        Outcome::Failed(_) | Outcome::Skipped(_) => Outcome::Skipped(Check::Provider),
    };
    outcomes.extend([(Check::Provider, provider), (Check::Libraries, libraries)]);
    let session = match (outcomes.iter().find_map(failure), found) {
        (None, Some(cuda)) => {
            let ran = probe.session(&cuda, request);
            outcome(ran.map(|()| format!("ONNX Runtime runs on cuda:{}", cuda.index)))
        }
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
    let driver = match device(request, probe) {
        Ok(driver) => driver,
        Err(fault) => return (after(Check::Device, fault), None),
    };
    let version = driver_version(&driver);
    let (index, gpu) = match (chosen(request, &driver), &version) {
        (Ok(chosen), _) => chosen,
        // A driver that is too old does not list its devices.
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

/// The outcomes if `check` failed: the later checks of the driver are skipped.
fn after(check: Check, fault: Fault) -> Vec<(Check, Outcome)> {
    let later = (check as usize + 1)..Check::Provider as usize;
    let skipped = Check::ALL[later]
        .iter()
        .map(|later| (*later, Outcome::Skipped(check)));
    std::iter::once((check, Outcome::Failed(fault)))
        .chain(skipped)
        .collect()
}

fn outcome(result: Result<String, Fault>) -> Outcome {
    result.map_or_else(Outcome::Failed, Outcome::Passed)
}

fn failure((check, outcome): &(Check, Outcome)) -> Option<Check> {
    matches!(outcome, Outcome::Failed(_)).then_some(*check)
}
