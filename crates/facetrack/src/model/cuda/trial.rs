// SPDX-License-Identifier: MPL-2.0
//! A network made in memory, small and with a known answer, to see whether the GPU runs networks: a convolution, which
//! takes cuDNN, and a product of matrices, which takes cuBLAS.

use std::path::Path;

use ndarray::ArrayD;
use prost::Message;

use super::{Coverage, CudaProvider, InputExtents};
use crate::device::Cuda;
use crate::model::onnx::{OnnxModel, OnnxRuntime, Provider, SessionOptions};
use crate::model::onnx_proto::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};
use crate::model::{Model, ModelError};

/// Its name in messages.
const NAME: &str = "the trial network";

/// Its input: ones.
const INPUT: [usize; 4] = [1, 3, 32, 32];

/// Channels between its operators.
const CHANNELS: usize = 8;

/// Weights that are exact in every format of a GPU: with ones, three channels of a half come to 1.5, and eight quarters
/// of that to [`ANSWER`].
const HALF: f32 = 0.5;
const QUARTER: f32 = 0.25;

/// What it yields.
const ANSWER: f32 = 3.0;

/// Memory that it may take, bytes; it needs less than 1 MiB, and cuDNN's search for an algorithm some more.
const MEMORY_LIMIT: u64 = 256 << 20;

/// Opens the network on `cuda` alone and runs it.
///
/// # Errors
/// [`ModelError::Gpu`] or [`ModelError::OutOfMemory`] with what the runtime said, or when its answer is wrong.
pub fn run(runtime: &OnnxRuntime, cuda: &Cuda) -> Result<(), ModelError> {
    let provider = CudaProvider {
        coverage: Coverage::Whole,
        ..CudaProvider::new(
            cuda,
            MEMORY_LIMIT.min(cuda.max_vram),
            InputExtents::default(),
        )
    };
    run_on(runtime, Provider::Cuda(provider))
}

fn run_on(runtime: &OnnxRuntime, provider: Provider) -> Result<(), ModelError> {
    let options = SessionOptions {
        provider,
        ..SessionOptions::default()
    };
    let mut model = OnnxModel::from_bytes(runtime, Path::new(NAME), &network(), options)?;
    let ones = ArrayD::from_elem(INPUT.as_slice(), 1.0_f32);
    let answers = model.run(&[ones.view()])?;
    match answers.first().and_then(|answer| answer.first()) {
        Some(answer) if *answer == ANSWER => Ok(()),
        answer => Err(ModelError::Gpu {
            model: NAME.to_owned(),
            reason: format!("it answers {answer:?} in place of {ANSWER}"),
        }),
    }
}

/// The ONNX file: convolution, ReLU, mean of the image, product.
fn network() -> Vec<u8> {
    let kernel = TensorProto::floats(
        "kernel",
        &[CHANNELS, INPUT[1], 1, 1],
        &[HALF; CHANNELS * INPUT[1]],
    );
    let matrix = TensorProto::floats("matrix", &[CHANNELS, 1], &[QUARTER; CHANNELS]);
    let model = ModelProto::new(
        13,
        GraphProto {
            name: "trial".to_owned(),
            node: vec![
                NodeProto::new("Conv", &["image", "kernel"], "maps"),
                NodeProto::new("Relu", &["maps"], "lit"),
                NodeProto::new("GlobalAveragePool", &["lit"], "means"),
                NodeProto::new("Flatten", &["means"], "row"),
                NodeProto::new("MatMul", &["row", "matrix"], "answer"),
            ],
            initializer: vec![kernel, matrix],
            input: vec![ValueInfoProto::floats("image", &INPUT)],
            output: vec![ValueInfoProto::floats("answer", &[1, 1])],
        },
    );
    model.encode_to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::CudaTuning;
    use crate::locate::tests::installed;

    fn runtime() -> Option<OnnxRuntime> {
        let runtime = OnnxRuntime::load(&installed().runtime_candidates()).ok();
        if runtime.is_none() {
            eprintln!("SKIPPED: no ONNX Runtime on this machine");
        }
        runtime
    }

    #[test]
    fn the_network_gives_its_answer_on_the_processor() {
        let Some(runtime) = runtime() else { return };
        run_on(&runtime, Provider::Cpu).unwrap();
    }

    #[test]
    fn a_runtime_that_has_no_cuda_does_not_pass_by_the_processor() {
        let Some(runtime) = runtime() else { return };
        if runtime.has_cuda() {
            eprintln!("SKIPPED: this ONNX Runtime has the CUDA provider");
            return;
        }
        for tensorrt in [false, true] {
            let cuda = Cuda {
                index: 0,
                visible_devices: None,
                max_vram: 1 << 30,
                free_memory: 1 << 30,
                fallback: true,
                tuning: CudaTuning {
                    tensorrt,
                    ..CudaTuning::default()
                },
            };
            let error = run(&runtime, &cuda).unwrap_err();
            assert!(matches!(error, ModelError::Gpu { .. }), "{error}");
        }
    }
}
