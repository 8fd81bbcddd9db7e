// SPDX-License-Identifier: MPL-2.0
#![doc = include_str!("../README.md")]
#![warn(unreachable_pub)]

use std::path::Path;

use facetrack::device::{Fault, PYTHON_PACKAGES, Refusal, Unmet};
use facetrack::engine::{EngineError, ModelRole};
use facetrack::findings::FindingKind;
use facetrack::model::ModelError;
use facetrack_assets::locate::NotFound;
use facetrack_assets::manifest::{self, KnownFile};
use facetrack_assets::trust::Replaceable;

/// The command that fetches every file that need not be requested by name.
pub const FETCH: &str = "facetrack fetch";

/// Gets a pack of InsightFace's networks. Their licence is restrictive, so they are fetched only on
/// request.
pub const GET_A_PACK: &str = "Run `facetrack fetch insightface` to fetch small networks, or unzip one of InsightFace's packs into ~/.insightface/models/<its name>, as docs/models.md describes (all of them are for non-commercial research only)";

/// The remedy for an ONNX Runtime that is not loaded because of its telemetry.
pub const KEEP_TELEMETRY_OFF: &str = "Set ORT_DISABLE_TELEMETRY=1 before the program starts, or run `facetrack fetch onnxruntime` and unset `onnxruntime`, FACETRACK_ONNXRUNTIME and ORT_DYLIB_PATH";

/// The remedy for too little memory.
pub const FREE_MEMORY: &str =
    "End other programs, raise the memory limit of the process, or scale the video down";

const INSTALL_DRIVER: &str =
    "Install NVIDIA's driver, version 525 or newer, and check that nvidia-smi lists the GPU";

const RAISE_MEMORY: &str = "End other programs that use the GPU, or raise gpu-max-vram";

/// The command that fetches `file`.
pub fn fetch_command(file: &KnownFile) -> String {
    if file.on_request {
        format!("{FETCH} {}", file.family)
    } else {
        FETCH.to_owned()
    }
}

/// Returns the message for users of the element: the error and the remedy.
pub fn message(error: &EngineError) -> String {
    match error {
        EngineError::Model(source) => with_remedy(source, "model"),
        EngineError::Part { role, source } => with_remedy(source, property(*role)),
        EngineError::Config { setting, reason } => {
            let property = setting.replace('_', "-");
            format!("`{property}`: {reason}{}", for_setting(setting))
        }
        EngineError::Device(refusal) => format!("{error}. {}", for_refusal(refusal)),
        _ => error.to_string(),
    }
}

/// The remedy for a setting that contradicts others, as another sentence; empty for other settings.
fn for_setting(setting: &str) -> &'static str {
    match setting {
        "deterministic" => ". Unset `tensorrt` or `deterministic`",
        "embedding" => {
            ". Unset `embedding`, or add recognition to `allowed-modules` and set `model` to a pack that can measure it"
        }
        "max_size" => ". Set it above `min-size`",
        _ => "",
    }
}

/// The remedy for a requested GPU that is not used.
pub fn for_unmet(unmet: &Unmet) -> String {
    match unmet {
        Unmet::CpuOnlyEngine => "Set device=auto, or engine=insightface for a GPU".to_owned(),
        Unmet::Fault(fault) => for_fault(fault),
    }
}

/// The remedy for a GPU that can't be used.
pub fn for_fault(fault: &Fault) -> String {
    match fault {
        Fault::NoDriver(_) | Fault::NoDevice(_) => INSTALL_DRIVER,
        Fault::OldDriver(_) => "Install NVIDIA's driver, version 525 or newer",
        Fault::HiddenDevices(_) => "Unset CUDA_VISIBLE_DEVICES, or let it list a device",
        Fault::NoSuchGpu { .. } => "Set gpu-id to an existing GPU, or to -1",
        Fault::OldGpu(_) => "Use a GPU of the Turing generation or newer",
        Fault::FreeMemory { .. } => {
            "End other programs that use the GPU, or lower gpu-min-free-vram"
        }
        Fault::Runtime(_) | Fault::NoCudaProvider(_) => return install_runtime(),
        Fault::NoTensorRtProvider(_) => return format!("{}, or unset tensorrt", install_runtime()),
        Fault::NoProviderFile { .. } => {
            "Put the files of its package that begin with libonnxruntime_providers next to it, or set onnxruntime to the file in the package"
        }
        Fault::OldDriverForRuntime { driver, .. } => {
            return format!(
                "Install a newer NVIDIA driver, or an ONNX Runtime for CUDA {driver}"
            );
        }
        Fault::NoDriverLibrary(_) => "Install NVIDIA's driver, which contains libcuda.so.1",
        Fault::Libraries { packages, .. } => return install_libraries(packages),
        Fault::Session {
            is_out_of_memory: false,
            ..
        } => {
            "Check that the driver is new enough for the CUDA of ONNX Runtime, and that nvidia-smi lists the GPU"
        }
        Fault::Replaceable(library) => return protect(library),
        _ => RAISE_MEMORY,
    }
    .to_owned()
}

/// The remedy for a finding in a track; `None` if there is no general one.
pub fn for_finding(kind: FindingKind) -> Option<&'static str> {
    match kind {
        FindingKind::NoFace => {
            Some("Try another engine, or a lower detection-confidence, for example 0.3")
        }
        _ => None,
    }
}

/// The remedy for a library that every user can replace.
pub fn protect(library: &Replaceable) -> String {
    let path = library.writable.display();
    format!("Check who wrote it, and run `chmod o-w '{path}'`")
}

fn install_runtime() -> String {
    let [newest, older] = PYTHON_PACKAGES;
    format!(
        "Install one for NVIDIA GPUs, for example with `pip install {}` in a Python environment, or {} if the driver is older than {}, and set onnxruntime to the libonnxruntime.so in its onnxruntime/capi",
        newest.runtime, older.runtime, newest.driver
    )
}

fn install_libraries(packages: &[String]) -> String {
    let quoted = |package: &String| {
        // A shell would expand a star.
        if package.contains('*') {
            format!("'{package}'")
        } else {
            package.clone()
        }
    };
    let packages: Vec<String> = packages.iter().map(quoted).collect();
    format!(
        "Install them, for example with `pip install {}` in a Python environment, and set cuda-lib-path to its folder",
        packages.join(" ")
    )
}

fn for_refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::GpuOnly { .. } => {
            "Set device=cpu to run on the CPU, or device=auto gpu-fallback=true to run on a GPU if there is one".to_owned()
        }
        Refusal::Unavailable(fault) => {
            format!(
                "{}, or set gpu-fallback=true to run on the CPU",
                for_fault(fault)
            )
        }
    }
}

/// The property that sets the model of this role.
fn property(role: ModelRole) -> &'static str {
    match role {
        ModelRole::Detector => "detector-model",
        ModelRole::Landmarks => "landmark-model",
        ModelRole::Gaze => "gaze-model",
    }
}

/// Returns the error of the model that `property` sets, and the remedy.
fn with_remedy(error: &ModelError, property: &str) -> String {
    let get_again = |path, wanted, other| {
        format!(
            "{} to fetch {wanted}, or set `{property}` to {other}",
            run(path)
        )
    };
    let remedy = match error {
        ModelError::Runtime { .. } => {
            format!(
                "Run `{FETCH} onnxruntime`, or set `onnxruntime` to the path of libonnxruntime.so"
            )
        }
        ModelError::Replaceable(library) => {
            format!("{}, or set `onnxruntime` to another one", protect(library))
        }
        ModelError::Telemetry { .. } => KEEP_TELEMETRY_OFF.to_owned(),
        ModelError::Missing(NotFound::File { path, .. }) => {
            format!("{}, or set `{property}` or `models-dir`", get(path))
        }
        ModelError::Read { .. } => format!("Set `{property}` to another file"),
        ModelError::Hash { path, .. } => {
            get_again(path, "the published one", "a file of another name")
        }
        ModelError::Format { path, .. } => get_again(path, "the published one", "another file"),
        ModelError::Tensors { path, .. } => get_again(path, "the engine's own", "another file"),
        ModelError::Pack { .. } => {
            format!("{GET_A_PACK}, or set `{property}` to the folder of another pack")
        }
        ModelError::Missing(NotFound::Pack { .. }) => format!(
            "{GET_A_PACK}, or set `{property}` to the folder of a pack or `models-dir` to a folder that contains packs"
        ),
        ModelError::Unsupported { .. } => "Set `runtime=auto`".to_owned(),
        ModelError::InputSize { .. } => "Lower `detect-max-width`".to_owned(),
        ModelError::Memory(_) => format!("{FREE_MEMORY}, or lower `detect-max-width`"),
        ModelError::Gpu { .. } => "Set gpu-fallback=true to fall back to the CPU".to_owned(),
        ModelError::OutOfMemory { .. } => {
            format!("{RAISE_MEMORY}, lower det-size, or set gpu-fallback=true")
        }
        _ => return error.to_string(),
    };
    format!("{error}. {remedy}")
}

/// Returns the way to get a missing model. A model that was searched by name may be one that is
/// never fetched.
fn get(path: &Path) -> String {
    let names = path.to_string_lossy();
    let mut fetched = manifest::manifest().files.iter().map(|file| &*file.name);
    let is_searched = path.parent() == Some(Path::new(""));
    if is_searched && !fetched.any(|name| names.contains(name)) {
        format!("`{FETCH}` does not fetch it: docs/models.md describes how to get it")
    } else {
        format!("{} to fetch it", run(path))
    }
}

/// "Run" and the command that fetches the file that a path names.
fn run(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let command = manifest::known(&name).map_or_else(|| FETCH.to_owned(), fetch_command);
    format!("Run `{command}`")
}

#[cfg(test)]
mod tests;
