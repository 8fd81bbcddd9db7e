// SPDX-License-Identifier: MPL-2.0
//! Asks the machine: NVML for the driver, ONNX Runtime for the rest.

use std::path::{Path, PathBuf};

use super::libraries::{self, Needs};
use super::{Cuda, DriverInfo, Fault, Probe, Request, nvidia_driver, permit};
use crate::model::ModelError;
use crate::model::cuda::trial;
use crate::model::runtime::{OnnxRuntime, preload};
use facetrack_assets::file::listed;
use facetrack_assets::trust;

/// The provider's library, which ONNX Runtime opens in its own folder.
pub const CUDA_PROVIDER: &str = "libonnxruntime_providers_cuda.so";

/// The library of the TensorRT provider, which is needed only with TensorRT.
const TENSORRT: &str = "libonnxruntime_providers_tensorrt.so";

/// The library that each provider is linked with, in the same folder.
const SHARED: &str = "libonnxruntime_providers_shared.so";

/// Probe of this machine.
#[derive(Debug, Default)]
pub struct MachineProbe {
    /// The newest CUDA version that the driver runs; `None` before the driver was asked.
    cuda: Option<String>,
}

impl Probe for MachineProbe {
    fn driver(&mut self, request: &Request) -> Result<DriverInfo, String> {
        let driver = nvidia_driver(request.visible_devices.as_deref())?;
        self.cuda = Some(driver.cuda.clone());
        Ok(driver)
    }

    fn provider(&mut self, request: &Request) -> Result<String, Fault> {
        let runtime = load(request)?;
        let path = runtime.path().display().to_string();
        if !runtime.has_cuda() {
            return Err(Fault::NoCudaProvider(path));
        }
        let mut files = vec![provider_file(&runtime, CUDA_PROVIDER)?];
        if request.tuning.tensorrt {
            if !runtime.has_tensorrt() {
                return Err(Fault::NoTensorRtProvider(path));
            }
            files.push(provider_file(&runtime, TENSORRT)?);
        }
        Ok(format!("{path}, {}", listed(&files)))
    }

    fn libraries(&mut self, request: &Request) -> Result<String, Fault> {
        let runtime = load(request)?;
        let cuda = provider_file(&runtime, CUDA_PROVIDER)?;
        let mut needs = Needs::of_provider(&cuda).map_err(Fault::Runtime)?;
        if request.tuning.tensorrt {
            let tensorrt = provider_file(&runtime, TENSORRT)?;
            needs = needs.with_tensorrt(&tensorrt).map_err(Fault::Runtime)?;
        }
        if let Some(driver) = &self.cuda {
            needs.check_driver(driver)?;
        }
        let root = Path::new("/");
        let found = libraries::load(needs, &request.libraries, root, &mut preload)?;
        Ok(format!(
            "CUDA {}: {}",
            needs.cuda,
            libraries::summary(&found)
        ))
    }

    fn session(&mut self, cuda: &Cuda, request: &Request) -> Result<(), Fault> {
        let runtime = load(request)?;
        let _permit = permit::turn();
        trial::run(&runtime, cuda).map_err(|error| session_fault(cuda, error))
    }
}

fn load(request: &Request) -> Result<OnnxRuntime, Fault> {
    OnnxRuntime::load(&request.paths).map_err(|error| match error {
        ModelError::Replaceable(library) => library.into(),
        other => Fault::Runtime(other.to_string()),
    })
}

/// The path of the library `provider`.
fn provider_file(runtime: &OnnxRuntime, provider: &'static str) -> Result<PathBuf, Fault> {
    let folder = runtime.folder().unwrap_or_default();
    let missing = [SHARED, provider]
        .into_iter()
        .find(|file| !folder.join(file).exists());
    match missing {
        None => {
            trust::check(&folder.join(SHARED))?;
            trust::check(&folder.join(provider))?;
            Ok(folder.join(provider))
        }
        Some(file) => Err(Fault::NoProviderFile {
            file,
            runtime: runtime.path().display().to_string(),
        }),
    }
}

fn session_fault(cuda: &Cuda, error: ModelError) -> Fault {
    let is_out_of_memory = matches!(error, ModelError::OutOfMemory { .. });
    let reason = match error {
        ModelError::OutOfMemory { reason, .. } | ModelError::Gpu { reason, .. } => reason,
        other => other.to_string(),
    };
    Fault::Session {
        index: cuda.index,
        reason,
        is_out_of_memory,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::device::{CudaTuning, LibrarySearch};
    use crate::model::cuda::failure;
    use facetrack_assets::locate::SearchPaths;

    #[test]
    fn a_session_that_fails_says_whether_memory_was_full() {
        let cuda = Cuda {
            index: 2,
            visible_devices: None,
            max_vram: 1,
            free_memory: 0,
            fallback: true,
            tuning: CudaTuning::default(),
        };
        for (reason, is_memory) in [
            ("CUDA failure 2: out of memory", true),
            ("CUDA failure 35: insufficient driver", false),
        ] {
            let fault = session_fault(&cuda, failure("trial".to_owned(), reason.to_owned()));
            let told = format!("ONNX Runtime does not run on cuda:2: {reason}");
            assert_eq!(fault.to_string(), told);
            let is_out_of_memory = matches!(
                fault,
                Fault::Session {
                    is_out_of_memory: true,
                    ..
                }
            );
            assert_eq!(is_out_of_memory, is_memory);
        }
    }

    #[test]
    fn a_runtime_without_cuda_says_so() {
        let Ok(runtime) = OnnxRuntime::load(&SearchPaths::from_vars(std::env::var_os)) else {
            eprintln!("SKIPPED: no ONNX Runtime on this machine");
            return;
        };
        if runtime.has_cuda() {
            eprintln!("SKIPPED: this ONNX Runtime has the CUDA provider");
            return;
        }
        let request = Request {
            paths: SearchPaths::from_vars(std::env::var_os),
            ..Request::default()
        };
        let mut machine = MachineProbe::default();
        let fault = machine.provider(&request).unwrap_err();
        let path = runtime.path().display().to_string();
        assert_eq!(fault, Fault::NoCudaProvider(path));
        let fault = machine.libraries(&request).unwrap_err();
        assert!(matches!(fault, Fault::NoProviderFile { .. }), "{fault:?}");
    }

    #[test]
    fn libraries_that_are_garbage_are_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let needs = Needs {
            cuda: 99,
            tensorrt: None,
        };
        let files: Vec<String> = needs.libraries().into_iter().map(|own| own.file).collect();
        for file in &files {
            fs::write(folder.path().join(file), [b'x'; 4096]).unwrap();
        }
        let search = LibrarySearch {
            folders: vec![folder.path().to_owned()],
            homes: Vec::new(),
        };
        let root = folder.path();
        let fault = libraries::load(needs, &search, root, &mut preload).unwrap_err();
        let garbage = folder.path().join("libcublas.so.99");
        let told = format!("{} does not load: ", garbage.display());
        for part in [told.as_str(), "invalid ELF header"] {
            assert!(fault.to_string().contains(part), "{part} not in {fault:?}");
        }
    }
}
