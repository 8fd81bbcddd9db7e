// SPDX-License-Identifier: MPL-2.0
//! Queries the NVIDIA driver through NVML, which is loaded at run time.

use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, Nvml, cuda_driver_version_major, cuda_driver_version_minor};

use super::{DriverInfo, Gpu, Placement};

/// Asks the driver. `visible` lists the devices that CUDA shows this process, as in
/// [`Request::visible_devices`](super::Request::visible_devices).
///
/// # Errors
/// Returns the reason why the driver cannot be asked: it is missing or does not answer.
pub fn nvidia_driver(visible: Option<&str>) -> Result<DriverInfo, String> {
    ask(visible).map_err(|error| match error {
        NvmlError::LibloadingError(cause) => format!("no NVIDIA driver: {cause}"),
        other => format!("the NVIDIA driver does not respond: {other}"),
    })
}

fn ask(visible: Option<&str>) -> Result<DriverInfo, NvmlError> {
    let nvml = Nvml::init()?;
    let cuda = nvml.sys_cuda_driver_version()?;
    let gpus = usable(&nvml, visible).and_then(|gpus| gpus.iter().map(gpu).collect());
    let gpus = match gpus {
        // Older drivers lack these functions, so the version is the reason to report.
        Err(NvmlError::FailedToLoadSymbol(_)) => Vec::new(),
        answer => answer?,
    };
    Ok(DriverInfo {
        version: nvml.sys_driver_version()?,
        cuda: format!(
            "{}.{}",
            cuda_driver_version_major(cuda),
            cuda_driver_version_minor(cuda)
        ),
        devices: nvml.device_count()?,
        gpus,
    })
}

/// The devices that this process may use, by CUDA index.
fn usable<'a>(nvml: &'a Nvml, shown: Option<&str>) -> Result<Vec<Device<'a>>, NvmlError> {
    let uuids = (0..nvml.device_count()?)
        .map(|index| nvml.device_by_index(index)?.uuid())
        .collect::<Result<Vec<_>, _>>()?;
    visible(&uuids, shown)
        .into_iter()
        .map(|index| nvml.device_by_index(index as u32))
        .collect()
}

/// Memory of a GPU that this process uses, as the driver counts it.
#[derive(Debug)]
pub struct OwnMemory {
    nvml: Nvml,
    uuid: String,
}

impl OwnMemory {
    /// Memory on the GPU of `placement`; `None` on the CPU, and if the driver does not report it.
    pub fn of(placement: &Placement) -> Option<Self> {
        let Placement::Cuda(cuda) = placement else {
            return None;
        };
        let nvml = Nvml::init().ok()?;
        let usable = usable(&nvml, cuda.visible_devices.as_deref()).ok()?;
        let uuid = usable.get(cuda.index as usize)?.uuid().ok()?;
        Some(Self { nvml, uuid })
    }

    /// Current amount, MiB; `None` where the driver does not know this process, as in most
    /// containers.
    pub fn mebibytes(&self) -> Option<u64> {
        let device = self.nvml.device_by_uuid(self.uuid.as_str()).ok()?;
        let processes = device.running_compute_processes().ok()?;
        Some(memory_of(std::process::id(), &processes)? >> 20)
    }
}

/// Memory of the process `pid`, bytes; `None` where nothing is known of it.
fn memory_of(pid: u32, processes: &[ProcessInfo]) -> Option<u64> {
    let own = processes.iter().filter(|process| process.pid == pid);
    own.filter_map(|process| match process.used_gpu_memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    })
    .reduce(u64::saturating_add)
}

fn gpu(device: &Device<'_>) -> Result<Gpu, NvmlError> {
    let memory = device.memory_info()?;
    let capability = device.cuda_compute_capability()?;
    let versions = [capability.major, capability.minor];
    Ok(Gpu {
        name: device.name()?,
        compute_capability: versions.map(|n| u32::try_from(n).unwrap_or(0)).into(),
        memory: memory.total,
        free_memory: memory.free,
    })
}

/// Indices of the devices with these UUIDs that CUDA shows a process, in CUDA's order: all, or the
/// devices that `list` names by index or by the beginning of a UUID, up to the first entry without
/// a device (NVIDIA's CUDA Programming Guide, "CUDA Environment Variables").
fn visible(uuids: &[String], list: Option<&str>) -> Vec<usize> {
    let Some(list) = list else {
        return (0..uuids.len()).collect();
    };
    list.split(',')
        .map_while(|entry| find(uuids, entry.trim()))
        .collect()
}

fn find(uuids: &[String], entry: &str) -> Option<usize> {
    match entry.parse::<usize>() {
        Ok(index) => Some(index).filter(|index| *index < uuids.len()),
        Err(_) if entry.is_empty() => None,
        Err(_) => uuids.iter().position(|uuid| uuid.starts_with(entry)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_driver_gives_a_reason() {
        match nvidia_driver(None) {
            Ok(driver) => assert!(!driver.version.is_empty()),
            Err(reason) => assert!(reason.contains("NVIDIA driver"), "{reason}"),
        }
    }

    #[test]
    fn memory_is_that_of_the_process_alone() {
        let process = |pid, used_gpu_memory| ProcessInfo {
            pid,
            used_gpu_memory,
            gpu_instance_id: None,
            compute_instance_id: None,
        };
        let processes = [
            process(7, UsedGpuMemory::Used(100)),
            process(8, UsedGpuMemory::Unavailable),
            process(9, UsedGpuMemory::Used(20)),
            // Another part of the same GPU.
            process(9, UsedGpuMemory::Used(3)),
        ];
        for (pid, memory) in [(7, Some(100)), (8, None), (9, Some(23)), (10, None)] {
            assert_eq!(memory_of(pid, &processes), memory, "{pid}");
        }
    }

    #[test]
    fn nobody_has_memory_of_a_gpu_on_the_processor() {
        assert!(OwnMemory::of(&Placement::Cpu).is_none());
    }

    #[test]
    fn devices_are_counted_as_cuda_counts_them() {
        let uuids = ["GPU-aa11", "GPU-bb22", "GPU-cc33"].map(str::to_owned);
        for (variable, expected) in [
            (None, &[0, 1, 2][..]),
            (Some("2,0"), &[2, 0]),
            (Some(" 1 "), &[1]),
            (Some("GPU-bb"), &[1]),
            (Some("GPU-cc33,0"), &[2, 0]),
            (Some(""), &[]),
            (Some("-1"), &[]),
            (Some("0,7,1"), &[0]),
            (Some("0,,1"), &[0]),
            (Some("NoDevFiles"), &[]),
        ] {
            assert_eq!(visible(&uuids, variable), expected, "{variable:?}");
        }
    }
}
