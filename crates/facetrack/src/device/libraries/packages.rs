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
    /// ONNX Runtime with the CUDA provider, as pip names it.
    pub runtime: &'static str,
    /// NVIDIA's libraries, and the libraries that those require, as pip names them.
    pub libraries: &'static [&'static str],
}

/// The libraries for CUDA 13 are the ones that PyTorch 2.11 requires, those for CUDA 12 the ones that
/// PyTorch 2.8 and 2.9 require. The package of cuDNN 9.20.0.48 for CUDA 13 lacks the library
/// `libcudnn_engines_tensor_ir`: on a machine with another cuDNN it loads the library of that version
/// and fails (PyTorch's issue 188892).
pub const PYTHON_PACKAGES: [PythonPackages; 2] = [
    PythonPackages {
        cuda: 13,
        driver: 580,
        runtime: "onnxruntime-gpu==1.28.0",
        libraries: &[
            "nvidia-cuda-runtime==13.0.96",
            "nvidia-cuda-nvrtc==13.0.88",
            "nvidia-cublas==13.1.0.3",
            "nvidia-curand==10.4.0.35",
            "nvidia-cufft==12.0.0.61",
            "nvidia-nvjitlink==13.0.88",
            "nvidia-cudnn-cu13==9.19.0.56",
        ],
    },
    PythonPackages {
        cuda: 12,
        driver: 525,
        runtime: "onnxruntime-gpu==1.23.2",
        libraries: &[
            "nvidia-cuda-runtime-cu12==12.8.90",
            "nvidia-cuda-nvrtc-cu12==12.8.93",
            "nvidia-cublas-cu12==12.8.4.1",
            "nvidia-curand-cu12==10.3.9.90",
            "nvidia-cufft-cu12==11.3.3.83",
            "nvidia-nvjitlink-cu12==12.8.93",
            "nvidia-cudnn-cu12==9.10.2.21",
        ],
    },
];

/// The package with the version that fits CUDA `cuda`, as pip names it; without a version if none is
/// known.
pub(super) fn requirement(cuda: u32, package: &str) -> String {
    let releases = PYTHON_PACKAGES.iter().filter(|it| it.cuda == cuda);
    let mut libraries = releases.flat_map(|it| it.libraries);
    let is_wanted = |library: &&&str| library.split("==").next() == Some(package);
    libraries.find(is_wanted).unwrap_or(&package).to_string()
}
