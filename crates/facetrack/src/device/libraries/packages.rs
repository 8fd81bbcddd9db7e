// SPDX-License-Identifier: MPL-2.0
//! Releases of Python packages that fit together: ONNX Runtime with the CUDA provider, and NVIDIA's
//! libraries.

/// The releases for a version of CUDA.
#[derive(Debug, Clone, Copy)]
pub struct PythonPackages {
    /// Major version of CUDA.
    pub cuda: u32,
    /// The oldest driver that runs them.
    pub driver: u32,
    /// ONNX Runtime with the CUDA provider.
    pub runtime: Release,
    /// NVIDIA's libraries, and the libraries that those require.
    pub libraries: &'static [Release],
}

/// A release of a package.
#[derive(Debug, Clone, Copy)]
pub struct Release {
    package: &'static str,
    version: &'static str,
}

impl Release {
    const fn new(package: &'static str, version: &'static str) -> Self {
        Self { package, version }
    }

    /// The release as pip names it.
    pub fn requirement(&self) -> String {
        format!("{}=={}", self.package, self.version)
    }
}

/// The libraries for CUDA 13 are the ones that PyTorch 2.11 requires, those for CUDA 12 the ones that
/// PyTorch 2.8 and 2.9 require. The package of cuDNN 9.20.0.48 for CUDA 13 lacks the library
/// `libcudnn_engines_tensor_ir`: on a machine with another cuDNN it loads the library of that version
/// and fails (PyTorch's issue 188892).
pub const PYTHON_PACKAGES: [PythonPackages; 2] = [
    PythonPackages {
        cuda: 13,
        driver: 580,
        runtime: Release::new("onnxruntime-gpu", "1.31.1"),
        libraries: &[
            Release::new("nvidia-cuda-runtime", "13.0.96"),
            Release::new("nvidia-cuda-nvrtc", "13.0.88"),
            Release::new("nvidia-cublas", "13.1.0.3"),
            Release::new("nvidia-curand", "10.4.0.35"),
            Release::new("nvidia-cufft", "12.0.0.61"),
            Release::new("nvidia-nvjitlink", "13.0.88"),
            Release::new("nvidia-cudnn-cu13", "9.19.0.56"),
        ],
    },
    PythonPackages {
        cuda: 12,
        driver: 525,
        runtime: Release::new("onnxruntime-gpu", "1.23.2"),
        libraries: &[
            Release::new("nvidia-cuda-runtime-cu12", "12.8.90"),
            Release::new("nvidia-cuda-nvrtc-cu12", "12.8.93"),
            Release::new("nvidia-cublas-cu12", "12.8.4.1"),
            Release::new("nvidia-curand-cu12", "10.3.9.90"),
            Release::new("nvidia-cufft-cu12", "11.3.3.83"),
            Release::new("nvidia-nvjitlink-cu12", "12.8.93"),
            Release::new("nvidia-cudnn-cu12", "9.10.2.21"),
        ],
    },
];

impl PythonPackages {
    /// The runtime and its libraries, as pip names them.
    pub fn requirements(&self) -> Vec<String> {
        let all = std::iter::once(&self.runtime).chain(self.libraries);
        all.map(Release::requirement).collect()
    }
}

/// The package with the version that fits CUDA `cuda`, as pip names it; without a version if none is
/// known.
pub fn requirement(cuda: u32, package: &str) -> String {
    let releases = PYTHON_PACKAGES.iter().find(|it| it.cuda == cuda);
    let release =
        releases.and_then(|releases| releases.libraries.iter().find(|it| it.package == package));
    release.map_or_else(|| package.to_owned(), Release::requirement)
}
