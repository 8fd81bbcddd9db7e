// SPDX-License-Identifier: MPL-2.0
//! Where the libraries are that ONNX Runtime's CUDA provider needs.

use std::path::PathBuf;

/// Where to look, besides the loader's own path and the usual folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibrarySearch {
    /// Folders that were named, each with libraries in it, or with a Python environment's `nvidia/*/lib` below it.
    pub folders: Vec<PathBuf>,
    /// Homes of CUDA toolkits that were named.
    pub homes: Vec<PathBuf>,
}

/// The libraries that were found, by their paths in the order in which they are loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CudaLibraries {
    /// Paths, or bare names of those that the loader finds by itself.
    pub paths: Vec<PathBuf>,
}
