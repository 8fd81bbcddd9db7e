// SPDX-License-Identifier: MPL-2.0
//! Opens networks on the CPU, in the built-in runtime or in ONNX Runtime.

use std::cell::RefCell;
use std::path::Path;

use facetrack_graph::Graph;

use super::built_in::BuiltInModel;
use super::options::SessionOptions;
use super::placement::Placement;
use super::runtime::OnnxRuntime;
use super::{Model, ModelError};
use crate::words::choices;
use facetrack_assets::locate::SearchPaths;

choices! {
    /// The runtime of networks on the CPU.
    pub enum RuntimeChoice, words runtime_words {
        Auto = "auto": "the built-in runtime, and ONNX Runtime for networks that it does not support",
        BuiltIn = "built-in": "the built-in runtime; a network that it does not support is an error",
        OnnxRuntime = "onnxruntime": "ONNX Runtime",
    }
}

/// The runtimes that run the networks of an engine on the CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runtimes {
    /// True if the built-in runtime runs one of them.
    pub built_in: bool,
    /// True if ONNX Runtime runs one of them.
    pub onnxruntime: bool,
    /// For each network that the built-in runtime does not support: its file and the reason.
    pub fallbacks: Vec<String>,
}

impl Runtimes {
    /// The name of the built-in runtime.
    const BUILT_IN: &str = "built-in";

    /// The names of the runtimes, as the values of [`RuntimeChoice`] spell them.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let built_in = self.built_in.then_some(Self::BUILT_IN);
        let onnxruntime = self.onnxruntime.then_some("onnxruntime");
        built_in.into_iter().chain(onnxruntime)
    }

    /// The runtimes as the record's `execution_provider`. ONNX Runtime has its own name for it.
    pub fn execution_provider(&self) -> String {
        let cpu = Placement::Cpu.execution_provider();
        match (self.built_in, self.onnxruntime) {
            (true, false) => Self::BUILT_IN.to_owned(),
            (true, true) => format!("{}, {cpu}", Self::BUILT_IN),
            (false, _) => cpu.to_owned(),
        }
    }
}

/// Opens the networks of an engine on the CPU. ONNX Runtime is loaded when a network needs it.
#[derive(Debug)]
pub struct Opener<'a> {
    paths: &'a SearchPaths,
    choice: RuntimeChoice,
    runtimes: RefCell<Runtimes>,
}

impl<'a> Opener<'a> {
    /// Opens networks in the runtime of `choice`; ONNX Runtime is looked for in `paths`.
    pub fn new(paths: &'a SearchPaths, choice: RuntimeChoice) -> Self {
        Self {
            paths,
            choice,
            runtimes: RefCell::default(),
        }
    }

    /// Opens the network that `read` reads from `bytes`; the same bytes must yield the same
    /// network. `path` is for messages. Of `options`, only the threads apply to the built-in
    /// runtime.
    ///
    /// # Errors
    /// Returns the errors of `read`, [`ModelError::Unsupported`], and errors of
    /// [`OnnxRuntime::load`] and [`OnnxRuntime::open`].
    pub fn open(
        &self,
        path: &Path,
        bytes: &[u8],
        read: impl Fn() -> Result<Graph, ModelError>,
        options: SessionOptions,
    ) -> Result<Box<dyn Model>, ModelError> {
        if self.choice != RuntimeChoice::OnnxRuntime {
            let threads = options.threads.max(options.runs);
            match BuiltInModel::open(path, bytes, &read, threads)? {
                Ok(model) => {
                    self.runtimes.borrow_mut().built_in = true;
                    return Ok(Box::new(model));
                }
                Err(reason) => self.fall_back(path, reason)?,
            }
        }
        self.open_onnx(path, &read()?.encode(), options)
    }

    /// Opens the ONNX file `bytes`, which the built-in runtime does not support for `reason`.
    ///
    /// # Errors
    /// Returns the errors of [`Opener::open`].
    pub fn open_unsupported(
        &self,
        path: &Path,
        bytes: &[u8],
        reason: String,
        options: SessionOptions,
    ) -> Result<Box<dyn Model>, ModelError> {
        self.fall_back(path, reason)?;
        self.open_onnx(path, bytes, options)
    }

    /// Opens the ONNX file `bytes` in ONNX Runtime, on the device that `options` name; `path` is
    /// for messages.
    ///
    /// # Errors
    /// Returns the errors of [`OnnxRuntime::load`] and [`OnnxRuntime::open`].
    pub fn open_onnx(
        &self,
        path: &Path,
        bytes: &[u8],
        options: SessionOptions,
    ) -> Result<Box<dyn Model>, ModelError> {
        let model = OnnxRuntime::load(self.paths)?.open(path, bytes, options)?;
        self.runtimes.borrow_mut().onnxruntime = true;
        Ok(model)
    }

    /// Notes that ONNX Runtime runs the network of `path`, which the built-in runtime does not
    /// support for `reason`. It is an error if only the built-in runtime is allowed.
    fn fall_back(&self, path: &Path, reason: String) -> Result<(), ModelError> {
        if self.choice == RuntimeChoice::BuiltIn {
            let path = path.to_owned();
            return Err(ModelError::Unsupported { path, reason });
        }
        if self.choice == RuntimeChoice::Auto {
            let fallback = format!("{}: {reason}", path.display());
            self.runtimes.borrow_mut().fallbacks.push(fallback);
        }
        Ok(())
    }

    /// The runtimes of the networks that were opened.
    pub fn into_runtimes(self) -> Runtimes {
        self.runtimes.into_inner()
    }
}
