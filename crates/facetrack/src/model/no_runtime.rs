// SPDX-License-Identifier: MPL-2.0
//! Replaces ONNX Runtime in builds without the feature `onnxruntime`: it cannot be loaded.

use std::path::{Path, PathBuf};

use super::{Model, ModelError, SessionOptions};
use facetrack_assets::locate::SearchPaths;

const REASON: &str = "this program was built without the feature `onnxruntime`";

/// ONNX Runtime's library, which no such build can load.
#[derive(Debug, Clone)]
pub enum OnnxRuntime {}

impl OnnxRuntime {
    /// Loads nothing.
    ///
    /// # Errors
    /// Returns [`ModelError::Runtime`].
    pub fn load(_: &SearchPaths) -> Result<Self, ModelError> {
        Err(ModelError::Runtime {
            tried: "tried nothing".to_owned(),
            reason: REASON.to_owned(),
        })
    }

    /// The library that was loaded.
    pub fn path(&self) -> &Path {
        match *self {}
    }

    /// The folder of the library.
    pub fn folder(&self) -> Option<PathBuf> {
        match *self {}
    }

    /// True if it was built with the CUDA provider.
    pub fn has_cuda(&self) -> bool {
        match *self {}
    }

    /// True if it was built with the TensorRT provider.
    pub fn has_tensorrt(&self) -> bool {
        match *self {}
    }

    /// Opens nothing.
    ///
    /// # Errors
    /// Cannot be called, because no [`OnnxRuntime`] exists.
    pub fn open(
        &self,
        _: &Path,
        _: &[u8],
        _: SessionOptions,
    ) -> Result<Box<dyn Model>, ModelError> {
        match *self {}
    }
}

/// Loads nothing.
///
/// # Errors
/// Returns the reason.
pub(crate) fn preload(_: &Path) -> Result<(), String> {
    Err(REASON.to_owned())
}
