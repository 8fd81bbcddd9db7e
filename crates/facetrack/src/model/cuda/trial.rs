// SPDX-License-Identifier: MPL-2.0
//! A small network with a known result, made in memory, that shows if the GPU runs networks. Its
//! convolution needs cuDNN, and its product of matrices needs cuBLAS.

use std::path::Path;

use facetrack_graph::Graph;
use ndarray::ArrayD;

use super::{Coverage, CudaProvider, InputExtents};
use crate::model::placement::Cuda;
use crate::model::runtime::OnnxRuntime;
use crate::model::{ModelError, Provider, SessionOptions};

/// Name of the network in messages.
const NAME: &str = "the trial network";

/// Version of ONNX's operators.
const OPSET: i64 = 13;

/// Shape of the input, which consists of ones.
const INPUT: [usize; 4] = [1, 3, 32, 32];

/// Channels between its operators.
const CHANNELS: usize = 8;

/// Weights that are exact in every format of a GPU: with ones, three channels of a half yield 1.5,
/// and eight quarters of that yield [`ANSWER`].
const HALF: f32 = 0.5;
const QUARTER: f32 = 0.25;

/// Value of each output.
const ANSWER: f32 = 3.0;

/// Maximum memory that it may take, in bytes; it needs less than 1 MiB, and cuDNN's search for an
/// algorithm some more.
const MEMORY_LIMIT: u64 = 256 << 20;

/// Opens the network on `cuda`, without the CPU, and runs it.
///
/// # Errors
/// Returns [`ModelError::Gpu`] or [`ModelError::OutOfMemory`] with the runtime's message, or an
/// error if the result is wrong.
pub(crate) fn run(runtime: &OnnxRuntime, cuda: &Cuda) -> Result<(), ModelError> {
    let memory_limit = MEMORY_LIMIT.min(cuda.max_vram);
    let provider = CudaProvider {
        coverage: Coverage::Whole,
        ..CudaProvider::new(cuda, memory_limit, InputExtents::default())
    };
    run_on(runtime, Provider::Cuda(provider))
}

fn run_on(runtime: &OnnxRuntime, provider: Provider) -> Result<(), ModelError> {
    let options = SessionOptions {
        provider,
        ..SessionOptions::default()
    };
    let model = runtime.open(Path::new(NAME), &network(), options)?;
    let ones = ArrayD::from_elem(INPUT.as_slice(), 1.0_f32);
    let answers = model.run(&[ones.view()])?;
    match answers.first().and_then(|answer| answer.first()) {
        Some(answer) if *answer == ANSWER => Ok(()),
        answer => Err(ModelError::Gpu {
            model: NAME.to_owned(),
            reason: format!("its result is {answer:?} instead of {ANSWER}"),
        }),
    }
}

/// The ONNX file: convolution, ReLU, mean of the image, product.
fn network() -> Vec<u8> {
    let mut graph = Graph::new(OPSET);
    let image = graph.add_input("image", &INPUT);
    let kernel = graph.add_floats(&[CHANNELS, INPUT[1], 1, 1], &[HALF; CHANNELS * INPUT[1]]);
    let matrix = graph.add_floats(&[CHANNELS, 1], &[QUARTER; CHANNELS]);
    let maps = graph.add("Conv", &[image, kernel], vec![]);
    let positive = graph.add("Relu", &[maps], vec![]);
    let means = graph.add("GlobalAveragePool", &[positive], vec![]);
    let row = graph.add("Flatten", &[means], vec![]);
    let answer = graph.add_shaped("MatMul", &[row, matrix], vec![], vec![1, 1]);
    graph.add_output("answer", answer);
    graph.encode()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::placement::CudaTuning;
    use facetrack_assets::locate::SearchPaths;

    fn runtime() -> Option<OnnxRuntime> {
        let runtime = OnnxRuntime::load(&SearchPaths::from_vars(std::env::var_os)).ok();
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
