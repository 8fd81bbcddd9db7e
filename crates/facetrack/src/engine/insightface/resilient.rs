// SPDX-License-Identifier: MPL-2.0
//! Keeps an engine running when the GPU fails: first with less GPU memory, then on the CPU. Every
//! step is reported by a [`Notice`]. If falling back is not allowed, the failure is an error.

use std::mem;

use crate::device::{
    self, Claim, Cuda, Fault, Need, Permit, Placement, Refusal, halved_det_size, insufficient,
    largest_det_size,
};
use crate::engine::{EngineError, EngineInfo, Finder, Frame, Notice, Thresholds};
use crate::model::ModelError;
use crate::observation::Observation;

/// An engine that can move to another device.
pub trait Movable: Finder {
    /// Side of the detector's input, px.
    fn det_size(&self) -> usize;

    /// Changes the detector's input from the next frame on, if the network allows it.
    fn set_det_size(&mut self, side: usize);

    /// Runs each network once, on a black image.
    ///
    /// # Errors
    /// Those of the networks.
    fn warm_up(&mut self) -> Result<(), EngineError>;

    /// Reopens the networks on `placement`, with the initial detector input. Nothing changes if
    /// that fails.
    ///
    /// # Errors
    /// Those of loading.
    fn reopen(&mut self, placement: &Placement) -> Result<(), EngineError>;
}

/// An engine that runs on a GPU until the GPU fails, and then on the CPU.
pub struct Resilient<E> {
    engine: E,
    /// `None` on the processor.
    gpu: Option<OnGpu>,
    notices: Vec<Notice>,
}

/// State of an engine on a GPU.
struct OnGpu {
    claim: Claim,
    fallback: bool,
    /// Whether the GPU failed before.
    is_reduced: bool,
}

impl<E: Movable> Resilient<E> {
    /// Loads an engine with `open`, on `placement` if possible, with a detector's input of a number
    /// of px. `wanted` is the GPU memory that it needs. If less is available, the detector's input
    /// is reduced.
    ///
    /// # Errors
    /// Those of `open`; [`EngineError::Device`] when the GPU has too little memory and there is no
    /// falling back.
    pub fn load(
        placement: &Placement,
        wanted: Need,
        open: impl Fn(&Placement, usize) -> Result<E, EngineError>,
    ) -> Result<Self, EngineError> {
        let mut notices = Vec::new();
        if let Placement::Cuda(cuda) = placement {
            match Self::on_gpu(cuda, wanted, &open) {
                Err(error) if cuda.fallback && is_of_gpu(&error) => {
                    let reason = error.to_string();
                    notices.push(Notice::FellBackToCpu { reason });
                }
                loaded => return loaded,
            }
        }
        Ok(Self {
            engine: open(&Placement::Cpu, wanted.det_size)?,
            gpu: None,
            notices,
        })
    }

    fn on_gpu(
        cuda: &Cuda,
        wanted: Need,
        open: impl Fn(&Placement, usize) -> Result<E, EngineError>,
    ) -> Result<Self, EngineError> {
        let (mut claim, det_size, limits) = claim(cuda, wanted)?;
        let permit = claim.turn();
        let placement = Placement::Cuda(Cuda {
            max_vram: limits.max_vram,
            ..cuda.clone()
        });
        // The first run of the networks is a part of opening them.
        let (engine, shortage) = match open(&placement, det_size) {
            Err(error) if cuda.fallback && is_out_of_memory(&error) => {
                match halved_det_size(det_size) {
                    Some(half) => (open(&placement, half)?, Some(error)),
                    None => return Err(error),
                }
            }
            opened => (opened?, None),
        };
        drop(permit);
        let mut resilient = Self {
            engine,
            gpu: Some(OnGpu {
                claim,
                fallback: cuda.fallback,
                is_reduced: shortage.is_some(),
            }),
            notices: Vec::new(),
        };
        let det_size = resilient.engine.det_size();
        if det_size < wanted.det_size {
            resilient.notices.push(Notice::DetectionSizeReduced {
                det_size,
                reason: shortage
                    .map_or_else(|| limits.too_little(wanted), |error| error.to_string()),
            });
        }
        // Errors of the memory estimate show here, before the first frame.
        for _ in 0..cuda.tuning.warm_up_runs {
            if resilient.gpu.is_some() {
                resilient.run(E::warm_up)?;
            }
        }
        Ok(resilient)
    }

    /// Reduces the detector's input and adds a notice; returns whether that was possible.
    fn reduce(&mut self, det_size: usize, reason: impl FnOnce() -> String) -> bool {
        let before = self.engine.det_size();
        self.engine.set_det_size(det_size);
        let det_size = self.engine.det_size();
        if det_size < before {
            let reason = reason();
            self.notices
                .push(Notice::DetectionSizeReduced { det_size, reason });
        }
        det_size < before
    }

    /// The engine that runs now.
    pub fn engine(&self) -> &E {
        &self.engine
    }

    /// Calls `run` again, each time with less GPU use, until it does not fail because of the GPU.
    fn run<T>(
        &mut self,
        mut run: impl FnMut(&mut E) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        loop {
            let Some(gpu) = &mut self.gpu else {
                return run(&mut self.engine);
            };
            let permit = gpu.claim.turn();
            match run(&mut self.engine) {
                Err(error) if is_of_gpu(&error) => {
                    // The next run may need the permit.
                    drop::<Permit<'_>>(permit);
                    self.retreat(error)?;
                }
                result => return result,
            }
        }
    }

    /// Reduces GPU use after it failed with `error`.
    fn retreat(&mut self, error: EngineError) -> Result<(), EngineError> {
        let Some(gpu) = self.gpu.as_mut().filter(|gpu| gpu.fallback) else {
            return Err(error);
        };
        let reason = error.to_string();
        let is_first = !mem::replace(&mut gpu.is_reduced, true);
        let half = halved_det_size(self.engine.det_size())
            .filter(|_| is_first && is_out_of_memory(&error));
        if half.is_some_and(|half| self.reduce(half, || reason.clone())) {
            return Ok(());
        }
        self.engine.reopen(&Placement::Cpu)?;
        self.gpu = None;
        self.notices.push(Notice::FellBackToCpu { reason });
        Ok(())
    }
}

/// Claims GPU memory for `wanted`, or for the largest detector input that fits. Returns the claim,
/// the size of the input, and the limits for the arenas.
fn claim(cuda: &Cuda, wanted: Need) -> Result<(Claim, usize, Limits), EngineError> {
    let mut fitting = (0, Limits::default());
    let claim = device::claim(cuda.index, |of_others| {
        let limits = Limits {
            free_memory: cuda.free_memory,
            max_vram: cuda.max_vram.saturating_sub(of_others),
            of_others,
        };
        let det_size = largest_det_size(wanted, cuda, of_others).ok_or_else(|| {
            let reason = limits.too_little(wanted.smallest());
            EngineError::Device(Refusal::Unavailable(Fault::NetworkMemory(reason)))
        })?;
        fitting = (det_size, limits);
        Ok::<_, EngineError>(Need { det_size, ..wanted }.arenas())
    })?;
    let (det_size, limits) = fitting;
    Ok((claim, det_size, limits))
}

/// GPU memory that an engine may use, bytes.
#[derive(Clone, Copy, Default)]
struct Limits {
    free_memory: u64,
    /// For its arenas.
    max_vram: u64,
    /// Claimed by other engines of this process.
    of_others: u64,
}

impl Limits {
    /// Message that there is less memory than `need`.
    fn too_little(&self, need: Need) -> String {
        if self.free_memory < need.in_all() {
            return insufficient(self.free_memory, need.in_all());
        }
        let [left, needed, taken] =
            [self.max_vram, need.arenas(), self.of_others].map(|bytes| bytes >> 20);
        let others = match taken {
            0 => String::new(),
            _ => format!(" (other engines of this process have claimed {taken} MiB)"),
        };
        format!("the limit for GPU memory leaves {left} MiB{others}, but {needed} MiB are needed")
    }
}

fn is_of_gpu(error: &EngineError) -> bool {
    let is_refused = matches!(error, EngineError::Device(_));
    let is_broken = matches!(error, EngineError::Model(ModelError::Gpu { .. }));
    is_refused || is_broken || is_out_of_memory(error)
}

fn is_out_of_memory(error: &EngineError) -> bool {
    matches!(error, EngineError::Model(ModelError::OutOfMemory { .. }))
}

impl<E: Movable> Finder for Resilient<E> {
    fn info(&self) -> &EngineInfo {
        self.engine.info()
    }

    /// On a GPU it measures the memory and decides about the fallback, for all frames.
    fn is_independent(&self) -> bool {
        self.gpu.is_none()
    }

    fn find(&mut self, frame: &Frame<'_>) -> Result<Vec<Observation>, EngineError> {
        self.run(|engine| engine.find(frame))
    }

    fn reset(&mut self) {
        self.engine.reset();
    }

    fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.engine.set_thresholds(thresholds);
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        mem::take(&mut self.notices)
    }
}

#[cfg(test)]
mod tests;
