// SPDX-License-Identifier: MPL-2.0
//! Libraries that ONNX Runtime's CUDA provider needs: the entries of its dynamic section, and the
//! libraries that it opens at its first run (cuDNN, cuFFT, NVRTC), as seen in onnxruntime-gpu
//! 1.28.0 and 1.31.1. The names by CUDA version come from `_get_nvidia_dll_paths` in
//! `onnxruntime/__init__.py`.

use std::path::Path;

use elf::ElfStream;
use elf::abi::DT_NEEDED;
use elf::endian::AnyEndian;

use super::packages::requirement;
use crate::device::Fault;
use facetrack_assets::file;

/// Versions that a CUDA provider needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Major version of CUDA.
    pub cuda: u32,
    /// Major version of TensorRT, if its provider is needed as well.
    pub tensorrt: Option<u32>,
}

impl Needs {
    /// Reads the versions that the library `provider` was built for.
    ///
    /// # Errors
    /// Returns the reason why the version can't be read from the file.
    pub(crate) fn of_provider(provider: &Path) -> Result<Self, String> {
        Ok(Self {
            cuda: version_of("libcudart.so.", provider, "CUDA")?,
            tensorrt: None,
        })
    }

    /// Adds the version that the TensorRT provider in the file `provider` was built for.
    ///
    /// # Errors
    /// Returns the reason why the version can't be read from the file.
    pub(crate) fn with_tensorrt(self, provider: &Path) -> Result<Self, String> {
        Ok(Self {
            tensorrt: Some(version_of("libnvinfer.so.", provider, "TensorRT")?),
            ..self
        })
    }

    /// Checks that a driver for the CUDA version `driver` supports this version. Drivers for the
    /// same or a later major version do (NVIDIA's CUDA Compatibility, "Minor Version
    /// Compatibility").
    ///
    /// # Errors
    /// Returns [`Fault::OldDriverForRuntime`].
    pub(crate) fn check_driver(&self, driver: &str) -> Result<(), Fault> {
        let major = driver
            .split('.')
            .next()
            .and_then(|major| major.parse().ok());
        let cuda = self.cuda;
        if major.is_none_or(|major: u32| major >= cuda) {
            return Ok(());
        }
        Err(Fault::OldDriverForRuntime {
            needed: cuda,
            driver: driver.to_owned(),
        })
    }

    /// Returns the libraries. A library that another one needs comes first.
    pub(crate) fn libraries(&self) -> Vec<Library> {
        let Self { cuda, tensorrt } = *self;
        // `_get_cufft_version`.
        let cufft = if cuda >= 13 { 12 } else { 11 };
        // "Starting with CUDA 13, NVIDIA dropped the -cuNN suffix".
        let suffix = match cuda {
            13.. => String::new(),
            _ => format!("-cu{cuda}"),
        };
        let toolkit = [
            ("libcudart", cuda, "nvidia-cuda-runtime"),
            ("libnvrtc", cuda, "nvidia-cuda-nvrtc"),
            ("libcublasLt", cuda, "nvidia-cublas"),
            ("libcublas", cuda, "nvidia-cublas"),
            ("libcurand", 10, "nvidia-curand"),
            ("libcufft", cufft, "nvidia-cufft"),
        ]
        .map(|(library, version, package)| Library {
            file: format!("{library}.so.{version}"),
            package: requirement(cuda, &format!("{package}{suffix}")),
        });
        let cudnn = CUDNN.map(|library| Library {
            file: format!("{library}.so.9"),
            package: requirement(cuda, &format!("nvidia-cudnn-cu{cuda}")),
        });
        let tensorrt = tensorrt.into_iter().flat_map(|version| {
            TENSORRT.map(|library| Library {
                file: format!("{library}.so.{version}"),
                // Newer ones have other names, which that provider does not know.
                package: format!("tensorrt-cu{cuda}=={version}.*"),
            })
        });
        toolkit.into_iter().chain(cudnn).chain(tensorrt).collect()
    }
}

/// Libraries that the TensorRT provider is linked with, and the plugins that it opens by name at
/// its start.
const TENSORRT: [&str; 3] = ["libnvinfer", "libnvinfer_plugin", "libnvonnxparser"];

/// The number behind `name`, a library of `product`, among the libraries that the library `path` was
/// linked with.
fn version_of(name: &str, path: &Path, product: &str) -> Result<u32, String> {
    let needed = needed(path).map_err(|reason| format!("{}: {reason}", path.display()))?;
    let mut versions = needed
        .iter()
        .filter_map(|own| own.strip_prefix(name)?.parse().ok());
    versions
        .next()
        .ok_or_else(|| format!("{} needs no {product}", path.display()))
}

/// The parts of cuDNN 9 that every version of it has, those that others need first.
const CUDNN: [&str; 8] = [
    "libcudnn",
    "libcudnn_graph",
    "libcudnn_ops",
    "libcudnn_heuristic",
    "libcudnn_adv",
    "libcudnn_cnn",
    "libcudnn_engines_precompiled",
    "libcudnn_engines_runtime_compiled",
];

/// One library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Library {
    /// Its file's name.
    pub file: String,
    /// The Python package that brings it, as pip names it.
    pub package: String,
}

/// The names of the libraries that the library `path` was linked with.
fn needed(path: &Path) -> Result<Vec<String>, String> {
    let said = |error: elf::ParseError| error.to_string();
    let file = file::open(path).map_err(|error| error.to_string())?;
    let mut elf = ElfStream::<AnyEndian, _>::open_stream(file).map_err(said)?;
    let entries: Vec<u64> = elf
        .dynamic()
        .map_err(said)?
        .ok_or("it is no shared library")?
        .iter()
        .filter(|entry| entry.d_tag == DT_NEEDED)
        .map(|entry| entry.d_val())
        .collect();
    let (_, strings) = elf
        .dynamic_symbol_table()
        .map_err(said)?
        .ok_or("it has no dynamic symbols")?;
    let text = |offset| {
        let offset = usize::try_from(offset).ok()?;
        strings.get(offset).ok().map(str::to_owned)
    };
    Ok(entries.into_iter().filter_map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(cuda: u32) -> Needs {
        Needs {
            cuda,
            tensorrt: None,
        }
    }

    #[test]
    fn tensorrt_comes_last_and_in_the_version_of_its_provider() {
        let usual = needs(13).libraries();
        let all = Needs {
            tensorrt: Some(10),
            ..needs(13)
        };
        let all = all.libraries();
        let (same, more) = all.split_at(usual.len());
        assert_eq!(same, usual);
        let more: Vec<&str> = more.iter().map(|library| library.file.as_str()).collect();
        assert_eq!(
            more,
            [
                "libnvinfer.so.10",
                "libnvinfer_plugin.so.10",
                "libnvonnxparser.so.10",
            ]
        );
        assert_eq!(all[usual.len()].package, "tensorrt-cu13==10.*");
        let own = std::env::current_exe().unwrap();
        let reason = needs(13).with_tensorrt(&own).unwrap_err();
        assert!(reason.ends_with("needs no TensorRT"), "{reason}");
    }

    #[test]
    fn names_follow_the_version_of_cuda() {
        let of = |cuda| {
            let libraries = needs(cuda).libraries();
            let find = |start: &str| {
                let found = libraries.iter().find(|own| own.file.starts_with(start));
                let found = found.unwrap();
                format!("{} {}", found.file, found.package)
            };
            [find("libcublas."), find("libcufft"), find("libcudnn.")]
        };
        assert_eq!(
            of(12),
            [
                "libcublas.so.12 nvidia-cublas-cu12==12.8.4.1",
                "libcufft.so.11 nvidia-cufft-cu12==11.3.3.83",
                "libcudnn.so.9 nvidia-cudnn-cu12==9.10.2.21",
            ]
        );
        assert_eq!(
            of(13),
            [
                "libcublas.so.13 nvidia-cublas==13.1.0.3",
                "libcufft.so.12 nvidia-cufft==12.0.0.61",
                "libcudnn.so.9 nvidia-cudnn-cu13==9.19.0.56",
            ]
        );
        assert_eq!(of(14)[0], "libcublas.so.14 nvidia-cublas");
    }

    #[test]
    fn a_driver_has_to_be_as_new_as_the_runtimes_cuda() {
        for (driver, fits) in [
            ("12.4", false),
            ("13.0", true),
            ("13.2", true),
            ("14.0", true),
            ("?", true),
        ] {
            assert_eq!(needs(13).check_driver(driver).is_ok(), fits, "{driver}");
        }
        let fault = needs(13).check_driver("12.4").unwrap_err();
        let told = "this ONNX Runtime was built for CUDA 13, but the driver supports CUDA 12.4";
        assert_eq!(fault.to_string(), told);
    }

    #[test]
    fn files_that_are_no_provider_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("provider.so");
        for content in [
            &b""[..],
            b"garbage",
            b"\x7fELF",
            b"\x7fELF\x02\x01\x01\0garbage",
        ] {
            std::fs::write(&path, content).unwrap();
            let reason = Needs::of_provider(&path).unwrap_err();
            assert!(reason.contains("provider.so"), "{reason}");
        }
        assert!(Needs::of_provider(&folder.path().join("none.so")).is_err());
        // This very program is a file that needs libraries, and no CUDA.
        let own = std::env::current_exe().unwrap();
        let reason = Needs::of_provider(&own).unwrap_err();
        assert!(reason.ends_with("needs no CUDA"), "{reason}");
        let needed = needed(&own).unwrap();
        assert!(
            needed.iter().any(|name| name.starts_with("libc.so")),
            "{needed:?}"
        );
    }
}
