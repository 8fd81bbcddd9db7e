// SPDX-License-Identifier: MPL-2.0
//! Each error with its remedy.

use std::io::{Error, ErrorKind};

use facetrack::device::Gpu;
use facetrack::memory::OutOfMemory;

use super::*;

#[track_caller]
fn assert_parts(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
}

fn missing(path: &str) -> ModelError {
    let looked = vec!["/nowhere".into()];
    let path = path.into();
    NotFound::File { path, looked }.into()
}

fn no_pack() -> ModelError {
    let looked = vec!["/nowhere".into()];
    let names = vec!["buffalo_l".into()];
    NotFound::Pack { names, looked }.into()
}

#[test]
fn a_missing_model_that_is_not_fetched_says_where_it_is() {
    for (path, is_fetched) in [
        ("face_landmarker.task", true),
        ("lm_model3_opt.onnx, lm_model0_opt.onnx", true),
        ("lm_model3_opt.onnx", false),
        ("/nowhere/mine.onnx", true),
    ] {
        let message = message(&missing(path).into());
        assert_eq!(
            message.contains("Run `facetrack fetch` to fetch it"),
            is_fetched
        );
        assert_eq!(message.contains("docs/models.md"), !is_fetched, "{message}");
        assert_parts(&message, &[path, "/nowhere", "`model`", "`models-dir`"]);
    }
}

#[test]
fn a_role_names_its_property() {
    for (role, property) in [
        (ModelRole::Detector, "`detector-model`"),
        (ModelRole::Landmarks, "`landmark-model`"),
        (ModelRole::Gaze, "`gaze-model`"),
    ] {
        let source = missing("/nowhere/a.onnx");
        assert_parts(&message(&EngineError::Part { role, source }), &[property]);
    }
}

fn replaceable() -> Replaceable {
    Replaceable {
        library: "/lib/a.so".into(),
        writable: "/lib".into(),
    }
}

#[test]
fn every_error_of_a_model_has_its_remedy() {
    let (reason, looked) = (|| "why".to_owned(), || "there".to_owned());
    let own = "/a/2d106det.onnx";
    for (error, parts) in [
        (
            ModelError::Runtime {
                tried: looked(),
                reason: reason(),
            },
            &["Run `facetrack fetch onnxruntime`", "set `onnxruntime`"][..],
        ),
        (
            ModelError::Unsupported {
                path: own.into(),
                reason: reason(),
            },
            &[
                "/a/2d106det.onnx cannot run in the built-in runtime: why",
                "Set `runtime=auto`",
            ],
        ),
        (
            ModelError::Replaceable(replaceable()),
            &[
                "/lib/a.so is not loaded, because every user can write /lib",
                "`chmod o-w '/lib'`",
                "`onnxruntime`",
            ],
        ),
        (
            ModelError::Telemetry {
                library: "/lib/a.so".into(),
            },
            &[
                "/lib/a.so is not loaded, because it reports its use to Microsoft",
                "Set ORT_DISABLE_TELEMETRY=1 before the program starts, or run `facetrack fetch onnxruntime`",
            ],
        ),
        (
            ModelError::Read {
                path: own.into(),
                source: Error::from(ErrorKind::PermissionDenied),
            },
            &["Set `model` to another file"],
        ),
        (
            ModelError::Hash {
                path: own.into(),
                expected: "1".to_owned(),
                actual: "2".to_owned(),
            },
            &[
                "damaged",
                "Run `facetrack fetch insightface`",
                "another name",
            ],
        ),
        (
            ModelError::Format {
                path: own.into(),
                format: "ONNX",
                reason: reason(),
            },
            &[
                "not a valid ONNX file: why",
                "`facetrack fetch insightface`",
            ],
        ),
        (
            ModelError::Tensors {
                path: "/a/face_landmarker.task".into(),
                expected: reason(),
                actual: reason(),
            },
            &["other tensors", "Run `facetrack fetch` to", "`model`"],
        ),
        (
            ModelError::Pack {
                folder: "/a/pack".into(),
                reason: reason(),
            },
            &[
                "/a/pack",
                "`facetrack fetch insightface`",
                "`model`",
                "docs/models.md",
            ],
        ),
        (
            no_pack(),
            &[
                "buffalo_l",
                "`facetrack fetch insightface`",
                "~/.insightface/models",
                "non-commercial",
                "`model`",
                "`models-dir`",
            ],
        ),
        (
            ModelError::InputSize {
                model: "a.onnx".to_owned(),
                width: 9000,
                height: 8000,
            },
            &["9000×8000", "`detect-max-width`"],
        ),
        (
            ModelError::Memory(OutOfMemory {
                purpose: "a.onnx".to_owned(),
                bytes: 5 << 20,
            }),
            &["a.onnx needs 5 MiB", "memory limit", "`detect-max-width`"],
        ),
        (
            ModelError::Gpu {
                model: "a.onnx".to_owned(),
                reason: reason(),
            },
            &["on the GPU: why", "gpu-fallback=true"],
        ),
        (
            ModelError::OutOfMemory {
                model: "a.onnx".to_owned(),
                reason: reason(),
            },
            &[
                "memory: why",
                "gpu-max-vram",
                "det-size",
                "gpu-fallback=true",
            ],
        ),
    ] {
        assert_parts(&message(&error.into()), parts);
    }
    assert!(!message(&no_pack().into()).contains("`facetrack fetch`"));
    let run = ModelError::Run {
        model: "a.onnx".to_owned(),
        reason: reason(),
    };
    assert_eq!(message(&run.into()), "model a.onnx failed to run: why");
}

#[test]
fn a_setting_is_called_as_its_property() {
    for (setting, expected) in [
        ("det_size", "`det-size`: why"),
        (
            "deterministic",
            "`deterministic`: why. Unset `tensorrt` or `deterministic`",
        ),
        (
            "embedding",
            "`embedding`: why. Unset `embedding`, or add recognition to `allowed-modules` and set `model` to a pack that can measure it",
        ),
        ("max_size", "`max-size`: why. Set it above `min-size`"),
    ] {
        assert_eq!(message(&EngineError::config(setting, "why")), expected);
    }
}

#[test]
fn a_refused_device_names_the_properties() {
    let only = Refusal::GpuOnly {
        because: "why".to_owned(),
    };
    assert_eq!(
        message(&only.into()),
        "InsightFace is GPU-only (why). Set device=cpu to run on the CPU, or device=auto gpu-fallback=true to run on a GPU if there is one"
    );
    let unavailable = Refusal::Unavailable(Fault::NoDriver("no NVIDIA driver".to_owned()));
    assert_eq!(
        message(&unavailable.into()),
        "GPU requested but unavailable: no NVIDIA driver. Install NVIDIA's driver, version 525 or newer, and check that nvidia-smi lists the GPU, or set gpu-fallback=true to run on the CPU"
    );
    assert!(for_unmet(&Unmet::CpuOnlyEngine).contains("device=auto"));
}

#[test]
fn every_fault_of_a_gpu_has_its_remedy() {
    let why = || "why".to_owned();
    let gpu = Gpu {
        name: "GTX 1080".to_owned(),
        compute_capability: (6, 1),
        memory: 1,
        free_memory: 1,
    };
    let session = |is_out_of_memory| Fault::Session {
        index: 0,
        reason: why(),
        is_out_of_memory,
    };
    for (fault, part) in [
        (Fault::NoDriver(why()), "nvidia-smi"),
        (Fault::NoDevice(why()), "nvidia-smi"),
        (Fault::OldDriver(why()), "525"),
        (Fault::HiddenDevices(1), "CUDA_VISIBLE_DEVICES"),
        (Fault::NoSuchGpu { id: 3, last: 0 }, "gpu-id"),
        (Fault::OldGpu(gpu), "Turing"),
        (
            Fault::FreeMemory {
                free: 0,
                required: 1,
            },
            "gpu-min-free-vram",
        ),
        (
            Fault::Runtime(why()),
            "`pip install onnxruntime-gpu==1.28.0` in a Python environment, or onnxruntime-gpu==1.23.2 if the driver is older than 580",
        ),
        (
            Fault::NoCudaProvider(why()),
            "pip install onnxruntime-gpu==",
        ),
        (Fault::NoTensorRtProvider(why()), "unset tensorrt"),
        (
            Fault::NoProviderFile {
                file: "a.so",
                runtime: why(),
            },
            "libonnxruntime_providers",
        ),
        (
            Fault::OldDriverForRuntime {
                needed: 13,
                driver: "12.4".to_owned(),
            },
            "ONNX Runtime for CUDA 12.4",
        ),
        (Fault::NoDriverLibrary(why()), "NVIDIA's driver"),
        (
            Fault::Libraries {
                reason: why(),
                packages: vec!["nvidia-curand".to_owned(), "tensorrt-cu13==10.*".to_owned()],
            },
            "`pip install nvidia-curand 'tensorrt-cu13==10.*'` in a Python environment, and set cuda-lib-path",
        ),
        (replaceable().into(), "`chmod o-w '/lib'`"),
        (session(true), "gpu-max-vram"),
        (session(false), "driver is new enough"),
        (Fault::NetworkMemory(why()), "gpu-max-vram"),
    ] {
        let remedy = for_unmet(&Unmet::Fault(fault));
        assert_parts(&remedy, &[part]);
        assert!(!remedy.ends_with('.'), "{remedy}");
    }
}
