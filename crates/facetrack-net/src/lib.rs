// SPDX-License-Identifier: MPL-2.0
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![warn(unreachable_pub)]

mod kernel;
mod layer;
mod lower;
pub mod memory;
mod plan;
mod run;

use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, thread};

use facetrack_graph::{Graph, TensorSpec};
use fearless_simd::Level;
#[cfg(not(target_arch = "x86_64"))]
use fearless_simd::dispatch;
use ndarray::{ArrayD, ArrayViewD, Axis};

use lower::Layers;
use memory::OutOfMemory;
use plan::Plan;
use run::State;

/// The reason why a network cannot be run here: an operator, or operands of it.
pub type Unsupported = String;

/// The reason why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// The system has too little memory for images of this size.
    Memory(OutOfMemory),
    /// The inputs do not fit the network, or a thread panicked.
    Failed(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(OutOfMemory { bytes }) => write!(f, "{bytes} bytes cannot be allocated"),
            Self::Failed(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for RunError {}

impl From<OutOfMemory> for RunError {
    fn from(error: OutOfMemory) -> Self {
        Self::Memory(error)
    }
}

/// Calls a function on another thread, now or later, or drops it.
pub type Spawn<'a> = dyn Fn(Box<dyn FnOnce() + Send>) + 'a;

/// Runs `$run` with the instruction set of `$level`, like `fearless_simd::dispatch`, but for SSE4.2
/// with that of SSE2: networks take the same time with both, and each set is compiled separately.
macro_rules! with_instructions {
    ($level:expr, $simd:ident => $run:expr) => {
        match $level {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512($simd) => $run,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2($simd) => $run,
            #[cfg(target_arch = "x86_64")]
            level => match level.as_sse2() {
                Some($simd) => $run,
                None => unreachable!("every x86-64 processor has SSE2"),
            },
            #[cfg(not(target_arch = "x86_64"))]
            level => dispatch!(level, $simd => $run),
        }
    };
}

/// Number of other image sizes whose memory is kept.
const SIZES: usize = 4;

/// Minimum number of products of each thread of a run, which take 0.2 to 0.3 ms. OpenSeeFace's gaze
/// and InsightFace's genderage, which have half as many, take longer on two threads than on one.
const LEAST_WORK: usize = 10_000_000;

/// A network that is ready to run, by several threads at once.
#[derive(Debug)]
pub struct Network {
    layers: Arc<Layers>,
    inputs: Vec<TensorSpec>,
    outputs: Vec<TensorSpec>,
    level: Level,
    /// Memory of runs, the last used one last.
    states: Mutex<Vec<Arc<State>>>,
    /// Maximum number of runs whose memory is kept.
    most_states: usize,
    /// Minimum number of products of a thread.
    least_work: usize,
}

impl Network {
    /// Prepares `graph`, whose nodes are sorted.
    ///
    /// # Errors
    /// Returns an error if the first operator that is not supported.
    pub fn new(graph: &Graph) -> Result<Self, Unsupported> {
        Ok(Self {
            layers: lower::lower(graph)?.into(),
            inputs: graph.specs(&graph.inputs),
            outputs: graph.specs(&graph.outputs),
            level: Level::new(),
            states: Mutex::default(),
            most_states: SIZES + thread::available_parallelism().map_or(1, usize::from),
            least_work: LEAST_WORK,
        })
    }

    /// Returns the network with kernels for the instruction set of `level` instead of the best one.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Returns the network with another minimum number of products for each thread of a run. With
    /// the default, several threads are faster than one.
    #[must_use]
    pub fn with_least_work(mut self, products: usize) -> Self {
        self.least_work = products;
        self
    }

    /// Inputs, in the order of [`Network::run`].
    pub fn inputs(&self) -> &[TensorSpec] {
        &self.inputs
    }

    /// Outputs, in the order of [`Network::run`].
    pub fn outputs(&self) -> &[TensorSpec] {
        &self.outputs
    }

    /// Runs the network once. Of several images, one is processed after the other.
    ///
    /// # Errors
    /// Returns an error if the inputs do not fit the network, or if there is too little memory.
    pub fn run(&self, inputs: &[ArrayViewD<'_, f32>]) -> Result<Vec<ArrayD<f32>>, RunError> {
        self.run_on(inputs, 1, &drop)
    }

    /// Runs the network on several threads: this one, and those that call the functions that it
    /// gives to `spawn`. It gives `spawn` at most `threads` − 1 functions, and does not wait for
    /// functions that have not begun. [`Network::run`] has the same outputs.
    ///
    /// # Errors
    /// Returns the errors of [`Network::run`], and an error if another thread panics.
    pub fn run_on(
        &self,
        inputs: &[ArrayViewD<'_, f32>],
        threads: usize,
        spawn: &Spawn<'_>,
    ) -> Result<Vec<ArrayD<f32>>, RunError> {
        let count = self.check(inputs).map_err(RunError::Failed)?;
        let mut outputs: Vec<ArrayD<f32>> = Vec::new();
        for item in 0..count {
            let of_item = inputs.iter().map(|input| input.index_axis(Axis(0), item));
            let yielded = self.run_one(&of_item.collect::<Vec<_>>(), threads, spawn)?;
            if item == 0 {
                outputs = yielded;
                continue;
            }
            for (output, yielded) in outputs.iter_mut().zip(yielded) {
                output.append(Axis(0), yielded.view()).map_err(failed)?;
            }
        }
        Ok(outputs)
    }

    /// Checks the inputs, and returns the number of images in each.
    fn check(&self, inputs: &[ArrayViewD<'_, f32>]) -> Result<usize, String> {
        if inputs.len() != self.inputs.len() {
            let expected = self.inputs.len();
            return Err(format!("{} inputs instead of {expected}", inputs.len()));
        }
        for (input, spec) in inputs.iter().zip(&self.inputs) {
            if !spec.takes_batch(input.shape()) {
                let (name, shape) = (&spec.name, input.shape());
                return Err(format!("the input {name} of the shape {shape:?}"));
            }
        }
        let count = inputs.first().map_or(1, |input| input.len_of(Axis(0)));
        if count == 0 || inputs.iter().any(|input| input.len_of(Axis(0)) != count) {
            return Err("batches of other sizes".to_owned());
        }
        Ok(count)
    }

    /// Runs the network on inputs without their first axis.
    fn run_one(
        &self,
        inputs: &[ArrayViewD<'_, f32>],
        threads: usize,
        spawn: &Spawn<'_>,
    ) -> Result<Vec<ArrayD<f32>>, RunError> {
        let extents = inputs.iter().map(|input| match *input.shape() {
            [_, height, width] => [height, width],
            ref other => [1, other[0]],
        });
        let extents: Vec<_> = extents.collect();
        let contiguous: Vec<_> = inputs
            .iter()
            .map(|input| input.as_standard_layout())
            .collect();
        let values: Vec<&[f32]> = contiguous
            .iter()
            .filter_map(|input| input.as_slice())
            .collect();
        let state = self.state(extents, threads)?;
        state.begin();
        for own in 1..state.bands() {
            let (level, layers, state) = (self.level, self.layers.clone(), state.clone());
            spawn(Box::new(
                move || with_instructions!(level, simd => state.work(simd, &layers, own)),
            ));
        }
        with_instructions!(self.level, simd => {
            state.load(simd, &self.layers, &values);
            state.work(simd, &self.layers, 0);
        });
        if state.has_failed() {
            return Err(failed("a thread panicked"));
        }
        let outputs = self.layers.outputs.iter().map(|output| {
            ArrayD::from_shape_vec(state.shape(output), state.output(output)?).map_err(failed)
        });
        let outputs = outputs.collect();
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if states.len() == self.most_states {
            states.remove(0);
        }
        states.push(state);
        outputs
    }

    /// Number of runs whose memory is kept, for tests.
    #[doc(hidden)]
    pub fn kept_runs(&self) -> usize {
        self.states
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Memory for inputs of these heights and widths.
    fn state(&self, extents: Vec<[usize; 2]>, threads: usize) -> Result<Arc<State>, RunError> {
        let mut states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = states
            .iter()
            .rposition(|state| state.fits(&extents, threads))
        {
            return Ok(states.remove(place));
        }
        drop(states);
        let plan = Plan::new(&self.layers, &extents, threads, self.least_work)
            .ok_or_else(|| failed("the layers do not fit images of this size"))?;
        let bytes = plan.floats * size_of::<f32>();
        let state = State::new(plan, extents, threads).map_err(|_| OutOfMemory { bytes })?;
        Ok(Arc::new(state))
    }
}

/// The error of a run that failed for `reason`.
fn failed(reason: impl fmt::Display) -> RunError {
    RunError::Failed(reason.to_string())
}
