// SPDX-License-Identifier: MPL-2.0
//! Asks the machine: NVML for the driver, ONNX Runtime for the rest.

use super::{Cuda, DriverInfo, Fault, Probe, Request, nvidia_driver};

/// This machine.
#[derive(Debug, Default)]
pub struct MachineProbe {
    /// The newest CUDA that the driver runs, once it was asked.
    cuda: Option<String>,
}

impl Probe for MachineProbe {
    fn driver(&mut self) -> Result<DriverInfo, String> {
        let driver = nvidia_driver()?;
        self.cuda = Some(driver.cuda.clone());
        Ok(driver)
    }

    fn provider(&mut self, request: &Request) -> Result<String, Fault> {
        runtime::provider(request)
    }

    fn libraries(&mut self, request: &Request) -> Result<String, Fault> {
        runtime::libraries(request, self.cuda.as_deref())
    }

    fn session(&mut self, cuda: &Cuda, request: &Request) -> Result<(), Fault> {
        runtime::session(cuda, request)
    }
}

mod runtime {
    use std::path::{Path, PathBuf};

    use super::super::{CudaLibraries, Needs, permit};
    use super::*;
    use crate::locate;
    use crate::model::ModelError;
    use crate::model::runtime::cuda::trial;
    use crate::model::runtime::{LibraryLoader, OnnxRuntime};

    /// The provider's library, which ONNX Runtime opens beside its own.
    const PROVIDER: &str = "libonnxruntime_providers_cuda.so";

    /// The library of the TensorRT provider, which is wanted where the tuning says so.
    const TENSORRT: &str = "libonnxruntime_providers_tensorrt.so";

    /// What the provider's library is linked with, and what lies beside it as well.
    const SHARED: &str = "libonnxruntime_providers_shared.so";

    const INSTALL: &str = "Install one for NVIDIA GPUs, such as by `pip install onnxruntime-gpu` into a Python environment, and set onnxruntime to the libonnxruntime.so in its onnxruntime/capi";

    const SESSION: &str = "See that the driver is new enough for the CUDA of ONNX Runtime, and that nvidia-smi lists the GPU";

    fn load(request: &Request) -> Result<OnnxRuntime, Fault> {
        let candidates = locate::runtime(request.onnxruntime.as_deref());
        OnnxRuntime::load(&candidates).map_err(unloaded)
    }

    /// Its own remedy brings a runtime for processors.
    fn unloaded(error: ModelError) -> Fault {
        let reason = match error {
            ModelError::Runtime { tried, reason } => {
                format!("ONNX Runtime could not be loaded ({tried}): {reason}")
            }
            other => other.to_string(),
        };
        Fault::new(reason, INSTALL)
    }

    pub fn provider(request: &Request) -> Result<String, Fault> {
        let runtime = load(request)?;
        let path = runtime.path().display().to_string();
        if !runtime.has_cuda() {
            let reason = format!("this ONNX Runtime has no CUDA provider: {path}");
            return Err(Fault::new(reason, INSTALL));
        }
        let mut told = format!("{path}, {}", provider_file(&runtime, PROVIDER)?.display());
        if request.tuning.tensorrt {
            if !runtime.has_tensorrt() {
                let reason = format!("this ONNX Runtime has no TensorRT provider: {path}");
                return Err(Fault::new(reason, format!("{INSTALL}, or unset tensorrt")));
            }
            let tensorrt = provider_file(&runtime, TENSORRT)?;
            told.push_str(&format!(", {}", tensorrt.display()));
        }
        Ok(told)
    }

    /// The library `provider`.
    fn provider_file(runtime: &OnnxRuntime, provider: &str) -> Result<PathBuf, Fault> {
        let folder = runtime.folder().unwrap_or_default();
        for file in [SHARED, provider] {
            if !folder.join(file).exists() {
                let path = runtime.path().display();
                return Err(Fault::new(
                    format!("{file} is not beside this ONNX Runtime: {path}"),
                    "Put the files of its package that begin with libonnxruntime_providers beside it, or set onnxruntime to the file in the package",
                ));
            }
        }
        Ok(folder.join(provider))
    }

    pub fn libraries(request: &Request, driver: Option<&str>) -> Result<String, Fault> {
        let runtime = load(request)?;
        let unreadable = |reason| Fault::new(reason, INSTALL);
        let provider = provider_file(&runtime, PROVIDER)?;
        let mut needs = Needs::of_provider(&provider).map_err(unreadable)?;
        if request.tuning.tensorrt {
            let tensorrt = provider_file(&runtime, TENSORRT)?;
            needs = needs.with_tensorrt(&tensorrt).map_err(unreadable)?;
        }
        if let Some(driver) = driver {
            needs.check_driver(driver)?;
        }
        let root = Path::new("/");
        let found = CudaLibraries::load(needs, &request.libraries, root, &mut LibraryLoader)?;
        Ok(format!("CUDA {}: {}", needs.cuda, found.summary()))
    }

    pub fn session(cuda: &Cuda, request: &Request) -> Result<(), Fault> {
        let runtime = load(request)?;
        let _permit = permit::turn();
        trial::run(&runtime, cuda).map_err(|error| failed(cuda, error))
    }

    fn failed(cuda: &Cuda, error: ModelError) -> Fault {
        let (reason, remedy) = match error {
            ModelError::OutOfMemory { reason, .. } => (
                reason,
                "End other programs that use the GPU, or raise gpu-max-vram",
            ),
            ModelError::Gpu { reason, .. } => (reason, SESSION),
            other => (other.to_string(), SESSION),
        };
        let index = cuda.index;
        Fault::new(format!("no session runs on cuda:{index}: {reason}"), remedy)
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::device::CudaTuning;
        use crate::model::runtime::cuda::failure;

        #[test]
        fn a_session_that_fails_is_mended_by_what_it_lacks() {
            let cuda = Cuda {
                index: 2,
                max_vram: 1,
                free_memory: 0,
                fallback: true,
                tuning: CudaTuning::default(),
            };
            for (reason, remedy) in [
                ("CUDA failure 2: out of memory", "gpu-max-vram"),
                ("CUDA failure 35: insufficient driver", "driver"),
            ] {
                let fault = failed(&cuda, failure("trial".to_owned(), reason.to_owned()));
                assert_eq!(fault.reason, format!("no session runs on cuda:2: {reason}"));
                assert!(fault.remedy.contains(remedy), "{fault:?}");
            }
        }

        #[test]
        fn a_runtime_that_does_not_load_has_one_remedy() {
            let fault = unloaded(ModelError::Runtime {
                tried: "tried a.so".to_owned(),
                reason: "broken".to_owned(),
            });
            let told = "ONNX Runtime could not be loaded (tried a.so): broken";
            assert_eq!(fault.reason, told);
            assert_eq!(fault.remedy, INSTALL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::device::{CudaLibraries, LibrarySearch, Needs};
    use crate::locate;
    use crate::model::runtime::{LibraryLoader, OnnxRuntime};

    #[test]
    fn a_runtime_without_cuda_says_so() {
        let Ok(runtime) = OnnxRuntime::load(&locate::runtime(None)) else {
            eprintln!("SKIPPED: no ONNX Runtime on this machine");
            return;
        };
        if runtime.has_cuda() {
            eprintln!("SKIPPED: this ONNX Runtime has the CUDA provider");
            return;
        }
        let mut machine = MachineProbe::default();
        let fault = machine.provider(&Request::default()).unwrap_err();
        let path = runtime.path().display().to_string();
        for part in ["this ONNX Runtime has no CUDA provider: ", &path] {
            assert!(fault.reason.contains(part), "{fault:?}");
        }
        assert!(fault.remedy.contains("onnxruntime-gpu"), "{fault:?}");
        let fault = machine.libraries(&Request::default()).unwrap_err();
        assert!(
            fault.reason.contains("is not beside this ONNX Runtime"),
            "{fault:?}"
        );
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
        let fault = CudaLibraries::load(needs, &search, root, &mut LibraryLoader).unwrap_err();
        let garbage = folder.path().join("libcublas.so.99");
        let told = format!("{} does not load: ", garbage.display());
        for part in [told.as_str(), "invalid ELF header"] {
            assert!(fault.reason.contains(part), "{part} not in {fault:?}");
        }
    }
}
