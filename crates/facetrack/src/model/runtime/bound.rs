// SPDX-License-Identifier: MPL-2.0
//! Runs networks with inputs and outputs that stay in place, which ONNX Runtime calls I/O binding.
//!
//! A CUDA graph repeats a run with the same addresses, so inputs and outputs have to stay in the
//! device's memory (ONNX Runtime's "Using CUDA Graphs"); they are copied there and back around a
//! run. Outputs come back to ordinary memory, since ONNX Runtime 1.31 fails when it copies them to
//! page-locked memory (microsoft/onnxruntime, issue 29713).

use ndarray::{ArrayD, ArrayViewD};
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{IoBinding, Session};
use ort::value::{DynTensor, Outlet, TensorElementType};

use super::tensor::{fill, floats};
use super::{Options, Outputs, options_of};
use crate::model::{Provider, Transfer};

/// Runs a network through tensors that stay, from the second run with inputs of one shape on.
pub(super) struct Steady {
    provider: Provider,
    transfer: Transfer,
    /// Shapes of the inputs and outputs of the last run.
    last: Option<[Vec<Vec<usize>>; 2]>,
    /// Tensors for inputs of these shapes.
    bound: Option<Bound>,
    /// Number of `bound` so far: each has a CUDA graph of its own with this number.
    made: u32,
}

impl Steady {
    pub(super) fn new(provider: Provider, transfer: Transfer) -> Self {
        Self {
            provider,
            transfer,
            last: None,
            bound: None,
            made: 0,
        }
    }

    /// Runs `session`, with `first` if the last run had inputs of other shapes.
    pub(super) fn run(
        &mut self,
        session: &mut Session,
        inputs: &[ArrayViewD<'_, f32>],
        first: impl FnOnce(&mut Session) -> ort::Result<Outputs>,
    ) -> ort::Result<Outputs> {
        let shapes: Vec<_> = inputs.iter().map(|view| view.shape().to_vec()).collect();
        let outputs = match &self.last {
            Some([own, outputs]) if *own == shapes => outputs,
            _ => {
                self.bound = None;
                self.last = None;
                let outputs = first(session)?;
                let yielded = outputs.iter().map(|output| output.shape().to_vec());
                self.last = Some([shapes, yielded.collect()]);
                return Ok(outputs);
            }
        };
        let bound = match self.bound.take() {
            Some(bound) => bound,
            None => {
                self.made += 1;
                let places = Places::new(session, self.provider, self.transfer)?;
                let options = options_of(self.provider, self.transfer, Some(self.made))?;
                Bound::new(session, &places, [&shapes, outputs], options)?
            }
        };
        self.bound.insert(bound).run(session, inputs)
    }
}

/// Tensors of a network for inputs of one shape.
struct Bound {
    binding: IoBinding,
    options: Options,
    inputs: Vec<Slot>,
    outputs: Vec<Slot>,
}

impl Bound {
    /// Binds inputs and outputs of these shapes.
    fn new(
        session: &Session,
        places: &Places,
        [inputs, outputs]: [&[Vec<usize>]; 2],
        options: Options,
    ) -> ort::Result<Self> {
        let slots = |outlets: &[Outlet], shapes: &[Vec<usize>], host| {
            let outlets = outlets.iter().zip(shapes);
            outlets
                .map(|(outlet, shape)| Slot::new(outlet, shape, host, places.device.as_ref()))
                .collect::<ort::Result<Vec<_>>>()
        };
        let mut bound = Self {
            binding: session.create_binding()?,
            options,
            inputs: slots(session.inputs(), inputs, &places.inputs)?,
            outputs: slots(session.outputs(), outputs, &places.outputs)?,
        };
        for slot in &mut bound.outputs {
            let place = slot.device.as_mut().unwrap_or(&mut slot.host);
            bound.binding.bind_output(&slot.name, place)?;
        }
        for slot in bound.inputs.iter().filter(|slot| slot.device.is_some()) {
            slot.bind_input(&mut bound.binding)?;
        }
        Ok(bound)
    }

    fn run(
        &mut self,
        session: &mut Session,
        inputs: &[ArrayViewD<'_, f32>],
    ) -> ort::Result<Outputs> {
        for (slot, values) in self.inputs.iter_mut().zip(inputs) {
            fill(&mut slot.host, values)?;
            match &mut slot.device {
                Some(device) => slot.host.copy_into(device)?,
                // The runtime copies an input to the device when it is bound, not when it runs.
                None => slot.bind_input(&mut self.binding)?,
            }
        }
        session.run_binding_with_options(&self.binding, &self.options)?;
        self.outputs.iter_mut().map(Slot::read).collect()
    }
}

/// An input or output.
struct Slot {
    name: String,
    /// The tensor in the CPU's memory.
    host: DynTensor,
    /// The tensor that the network uses, if it is in other memory.
    device: Option<DynTensor>,
}

impl Slot {
    fn new(
        outlet: &Outlet,
        shape: &[usize],
        host: &Allocator,
        device: Option<&Allocator>,
    ) -> ort::Result<Self> {
        let kind = outlet.dtype().tensor_type();
        let kind = kind.unwrap_or(TensorElementType::Float32);
        let shape: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
        let tensor = |place: &Allocator| DynTensor::new(place, kind, shape.clone());
        Ok(Self {
            name: outlet.name().to_owned(),
            host: tensor(host)?,
            device: device.map(tensor).transpose()?,
        })
    }

    fn bind_input(&self, binding: &mut IoBinding) -> ort::Result<()> {
        binding.bind_input(&self.name, self.device.as_ref().unwrap_or(&self.host))
    }

    fn read(&mut self) -> ort::Result<ArrayD<f32>> {
        if let Some(device) = &self.device {
            device.copy_into(&mut self.host)?;
        }
        floats(&self.host)
    }
}

/// Memory of tensors.
struct Places {
    inputs: Allocator,
    outputs: Allocator,
    device: Option<Allocator>,
}

impl Places {
    fn new(session: &Session, provider: Provider, transfer: Transfer) -> ort::Result<Self> {
        let (inputs, device, id) = match provider {
            Provider::Cpu => (AllocationDevice::CPU, AllocationDevice::CPU, 0),
            Provider::Cuda(cuda) => (
                AllocationDevice::CUDA_PINNED,
                AllocationDevice::CUDA,
                i32::try_from(cuda.device).unwrap_or(i32::MAX),
            ),
        };
        let place = |device, id, kind| {
            let info = MemoryInfo::new(device, id, AllocatorType::Device, kind)?;
            Allocator::new(session, info)
        };
        Ok(Self {
            inputs: place(inputs, id, MemoryType::CPUOutput)?,
            outputs: place(AllocationDevice::CPU, 0, MemoryType::Default)?,
            device: match transfer {
                Transfer::Resident => Some(place(device, id, MemoryType::Default)?),
                Transfer::Copied | Transfer::Bound => None,
            },
        })
    }
}

#[cfg(test)]
mod tests;
