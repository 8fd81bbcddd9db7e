// SPDX-License-Identifier: MPL-2.0
//! Keeps an engine running when the GPU fails: first with less GPU memory, then on the CPU. Every
//! step is reported by a [`Notice`]. If falling back is not allowed, the failure is an error.

use std::mem;

use crate::device::{
    self, Cuda, Fault, MemoryReservation, Need, Permit, Placement, Refusal, halved_det_size,
    insufficient, largest_det_size,
};
use crate::engine::{EngineError, Finder, Found, Frame, Notice, Result, Thresholds};
use crate::model::{ModelError, ModelFile, Runtimes};

/// An engine whose detector takes smaller inputs on demand.
pub trait ResizableDetector: Finder {
    /// The models that it runs.
    fn models(&self) -> &[ModelFile];

    /// The runtimes that run them.
    fn runtimes(&self) -> Runtimes;

    /// Side of the detector's input, px.
    fn det_size(&self) -> usize;

    /// Changes the detector's input from the next frame on, if the network allows it.
    fn set_det_size(&mut self, side: usize);

    /// Runs each network once, on a black image.
    ///
    /// # Errors
    /// Returns the errors of the networks.
    fn warm_up(&mut self) -> Result<()>;
}

/// Opens an engine on a device, with the detector's input of `wanted`.
pub type Open<E> = Box<dyn Fn(&Placement, usize) -> Result<E> + Send>;

/// An engine that runs on a GPU until the GPU fails, and then on the CPU.
pub struct GpuFallback<E> {
    /// The engine that runs now.
    pub engine: E,
    open: Open<E>,
    /// Side of the detector's input that is wanted, px.
    det_size: usize,
    /// State of the GPU; `None` on the CPU.
    gpu: Option<OnGpu>,
    notices: Vec<Notice>,
}

/// State of an engine on a GPU.
struct OnGpu {
    reservation: MemoryReservation,
    fallback: bool,
    /// True if the GPU failed before.
    is_reduced: bool,
}

impl<E: ResizableDetector> GpuFallback<E> {
    /// Loads an engine with `open`, on `placement` if possible, with the detector's input of
    /// `wanted`. `wanted` is the GPU memory that it needs. If less is available, the detector's
    /// input is reduced.
    ///
    /// # Errors
    /// Returns the errors of `open`; [`EngineError::Device`] if the GPU has too little memory and
    /// falling back is not allowed.
    pub fn load(placement: &Placement, wanted: Need, open: Open<E>) -> Result<Self> {
        let (engine, gpu, notice) = match placement {
            Placement::Cpu => (open(placement, wanted.det_size)?, None, None),
            Placement::Cuda(cuda) => match on_gpu(cuda, wanted, &open) {
                Err(error) if cuda.fallback && is_of_gpu(&error) => {
                    let engine = open(&Placement::Cpu, wanted.det_size)?;
                    let notice = fell_back(&engine, error.to_string());
                    (engine, None, Some(notice))
                }
                opened => opened?,
            },
        };
        let mut fallback = Self {
            engine,
            open,
            det_size: wanted.det_size,
            gpu,
            notices: notice.into_iter().collect(),
        };
        if let Placement::Cuda(cuda) = placement {
            fallback.warm_up(cuda.tuning.warm_up_runs)?;
        }
        Ok(fallback)
    }

    /// Warms the GPU up with some runs. Errors of the memory estimate show here, before the first
    /// frame.
    fn warm_up(&mut self, runs: usize) -> Result<()> {
        for _ in 0..runs {
            if self.gpu.is_some() {
                self.run(E::warm_up)?;
            }
        }
        Ok(())
    }

    /// Calls `run` again, each time with less GPU use, until it does not fail because of the GPU.
    fn run<T>(&mut self, mut run: impl FnMut(&mut E) -> Result<T>) -> Result<T> {
        loop {
            let Some(gpu) = &mut self.gpu else {
                return run(&mut self.engine);
            };
            let permit = gpu.reservation.turn();
            match run(&mut self.engine) {
                Err(error) if is_of_gpu(&error) => {
                    // The next run may need the permit.
                    drop::<Permit<'_>>(permit);
                    self.fall_back(error)?;
                }
                result => return result,
            }
        }
    }

    /// Reduces GPU use after it failed with `error`. The networks stay as they are if that fails.
    fn fall_back(&mut self, error: EngineError) -> Result<()> {
        let Some(gpu) = self.gpu.as_mut().filter(|gpu| gpu.fallback) else {
            return Err(error);
        };
        let is_first = !mem::replace(&mut gpu.is_reduced, true);
        let is_halved = is_first && is_out_of_memory(&error) && self.halve(&error);
        if !is_halved {
            self.engine = (self.open)(&Placement::Cpu, self.det_size)?;
            self.gpu = None;
            let notice = fell_back(&self.engine, error.to_string());
            self.notices.push(notice);
        }
        Ok(())
    }

    /// Halves the detector's input because of `error`. Returns true if this was possible.
    fn halve(&mut self, error: &EngineError) -> bool {
        let before = self.engine.det_size();
        if let Some(half) = halved_det_size(before) {
            self.engine.set_det_size(half);
        }
        let det_size = self.engine.det_size();
        if det_size < before {
            let reason = error.to_string();
            self.notices
                .push(Notice::DetectionSizeReduced { det_size, reason });
        }
        det_size < before
    }
}

/// An engine on a GPU, its state, and a notice if its detector's input is smaller than `wanted`.
type Opened<E> = (E, Option<OnGpu>, Option<Notice>);

fn on_gpu<E: ResizableDetector>(cuda: &Cuda, wanted: Need, open: &Open<E>) -> Result<Opened<E>> {
    let (mut reservation, det_size, of_others) = reserve(cuda, wanted)?;
    let permit = reservation.turn();
    let placement = Placement::Cuda(Cuda {
        max_vram: cuda.max_vram.saturating_sub(of_others),
        ..cuda.clone()
    });
    // The first run of the networks is a part of opening them.
    let (engine, shortage) = match (open(&placement, det_size), halved_det_size(det_size)) {
        (Err(error), Some(half)) if cuda.fallback && is_out_of_memory(&error) => {
            (open(&placement, half)?, Some(error.to_string()))
        }
        (opened, _) => (opened?, None),
    };
    drop(permit);
    let gpu = OnGpu {
        reservation,
        fallback: cuda.fallback,
        is_reduced: shortage.is_some(),
    };
    let det_size = engine.det_size();
    let notice = (det_size < wanted.det_size).then(|| Notice::DetectionSizeReduced {
        det_size,
        reason: shortage.unwrap_or_else(|| too_little(cuda, of_others, wanted)),
    });
    Ok((engine, Some(gpu), notice))
}

fn fell_back(engine: &impl ResizableDetector, reason: String) -> Notice {
    Notice::FellBackToCpu {
        reason,
        models: engine.models().to_vec(),
        runtimes: engine.runtimes(),
    }
}

/// Reserves GPU memory for `wanted`, or for the largest detector input that fits. Returns the
/// reservation, the size of the input, and the bytes that other engines of this process have
/// reserved.
fn reserve(cuda: &Cuda, wanted: Need) -> Result<(MemoryReservation, usize, u64)> {
    let (mut det_size, mut of_others) = (0, 0);
    let reservation = device::reserve(cuda.index, |claimed| {
        of_others = claimed;
        det_size = largest_det_size(wanted, cuda, claimed).ok_or_else(|| {
            let reason = too_little(cuda, claimed, wanted.smallest());
            Refusal::Unavailable(Fault::NetworkMemory(reason))
        })?;
        Ok::<_, Refusal>(Need { det_size, ..wanted }.arenas())
    })?;
    Ok((reservation, det_size, of_others))
}

/// Message that there is less memory than `need`. Other engines of this process have claimed
/// `of_others` bytes.
fn too_little(cuda: &Cuda, of_others: u64, need: Need) -> String {
    if cuda.free_memory < need.in_all() {
        return insufficient(cuda.free_memory, need.in_all());
    }
    let left = cuda.max_vram.saturating_sub(of_others);
    let [left, needed, taken] = [left, need.arenas(), of_others].map(|bytes| bytes >> 20);
    let others = match taken {
        0 => String::new(),
        _ => format!(" (other engines of this process have claimed {taken} MiB)"),
    };
    format!("the limit for GPU memory leaves {left} MiB{others}, but {needed} MiB are needed")
}

fn is_of_gpu(error: &EngineError) -> bool {
    let is_failure = matches!(
        error,
        EngineError::Device(_) | EngineError::Model(ModelError::Gpu { .. })
    );
    is_failure || is_out_of_memory(error)
}

fn is_out_of_memory(error: &EngineError) -> bool {
    matches!(error, EngineError::Model(ModelError::OutOfMemory { .. }))
}

impl<E: ResizableDetector> Finder for GpuFallback<E> {
    /// Returns false on a GPU, because the engine measures memory and decides about the fallback
    /// for all frames.
    fn is_independent(&self) -> bool {
        self.gpu.is_none()
    }

    fn find(&mut self, frame: &Frame<'_>, thresholds: &Thresholds) -> Result<Found> {
        self.run(|engine| engine.find(frame, thresholds))
    }

    fn reset(&mut self) {
        self.engine.reset();
    }

    fn take_notices(&mut self) -> Vec<Notice> {
        mem::take(&mut self.notices)
    }
}

#[cfg(test)]
mod tests;
