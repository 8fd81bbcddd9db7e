// SPDX-License-Identifier: MPL-2.0
//! The checks that the driver's answer decides.

use std::cmp::Reverse;

use super::{Fault, Probe};
use crate::device::{Cuda, DriverInfo, Gpu, Request};

/// Major version of the oldest supported driver: the first one for CUDA 12.
pub(super) const MIN_DRIVER: u32 = 525;

/// Oldest supported compute capability: Turing's.
pub(super) const MIN_COMPUTE_CAPABILITY: (u32, u32) = (7, 5);

pub(super) fn device(request: &Request, probe: &mut dyn Probe) -> Result<DriverInfo, Fault> {
    let driver = probe.driver(request).map_err(Fault::NoDriver)?;
    if driver.devices == 0 {
        return Err(Fault::NoDevice(driver.version));
    }
    Ok(driver)
}

pub(super) fn driver_version(driver: &DriverInfo) -> Result<String, Fault> {
    let version = &driver.version;
    let major = version.split('.').next().unwrap_or_default();
    match major.parse::<u32>() {
        Ok(major) if major >= MIN_DRIVER => Ok(format!("{version}, for CUDA {}", driver.cuda)),
        _ => Err(Fault::OldDriver(version.clone())),
    }
}

/// The requested GPU, or the GPU with the most free memory among those that are new enough.
pub(super) fn chosen<'a>(
    request: &Request,
    driver: &'a DriverInfo,
) -> Result<(u32, &'a Gpu), Fault> {
    let gpus = &driver.gpus;
    let none = || Fault::HiddenDevices(driver.devices);
    let Some(id) = request.gpu_id else {
        let best = (0..).zip(gpus).max_by_key(|(index, gpu)| {
            let is_new = gpu.compute_capability >= MIN_COMPUTE_CAPABILITY;
            (is_new, gpu.free_memory, Reverse(*index))
        });
        return best.ok_or_else(none);
    };
    let last = gpus.len().checked_sub(1).ok_or_else(none)?;
    let gpu = usize::try_from(id).ok().and_then(|id| gpus.get(id));
    gpu.map(|gpu| (id, gpu))
        .ok_or(Fault::NoSuchGpu { id, last })
}

pub(super) fn compute_capability(gpu: &Gpu) -> Result<String, Fault> {
    if gpu.compute_capability < MIN_COMPUTE_CAPABILITY {
        return Err(Fault::OldGpu(gpu.clone()));
    }
    let (major, minor) = gpu.compute_capability;
    Ok(format!("{major}.{minor}"))
}

pub(super) fn free_memory(request: &Request, gpu: &Gpu) -> Result<String, Fault> {
    let (free, required) = (gpu.free_memory, request.min_free_vram);
    if free < required {
        return Err(Fault::FreeMemory { free, required });
    }
    Ok(format!("{} GiB free of {} GiB", gib(free), gib(gpu.memory)))
}

/// Describes that there is too little memory.
pub(crate) fn insufficient(free: u64, required: u64) -> String {
    format!(
        "insufficient VRAM ({} GiB free < {} GiB required)",
        gib(free),
        gib_rounded_up(required)
    )
}

pub(super) fn placement(request: &Request, index: u32, gpu: &Gpu) -> Cuda {
    Cuda {
        index,
        visible_devices: request.visible_devices.clone(),
        max_vram: request.max_vram,
        free_memory: gpu.free_memory,
        fallback: request.fallback,
        tuning: request.tuning,
    }
}

/// Bytes as GiB with one decimal, rounded down, for free memory.
pub(crate) fn gib(bytes: u64) -> String {
    decimal((u128::from(bytes) * 10) >> 30)
}

/// The same rounded up, for required memory.
fn gib_rounded_up(bytes: u64) -> String {
    decimal((u128::from(bytes) * 10).div_ceil(1 << 30))
}

fn decimal(tenths: u128) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}
