// SPDX-License-Identifier: MPL-2.0
//! ONNX Runtime's options for a GPU, and its errors. The keys come from
//! `cuda_execution_provider_info.cc`, `tensorrt_execution_provider_info.cc` and
//! `onnxruntime_run_options_config_keys.h` of ONNX Runtime 1.31.

mod tensorrt;
pub(crate) mod trial;

use super::Transfer;
use crate::model::ModelError;
use crate::model::placement::{ConvAlgorithmSearch, Cuda, CudaTuning};
pub(crate) use tensorrt::{Extents, InputExtents};

/// Options of ONNX Runtime.
pub(crate) type KeysAndValues = Vec<(&'static str, String)>;

/// Settings of a network on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaProvider {
    /// CUDA index.
    pub device: u32,
    /// Maximum size of the network's arena, in bytes.
    pub memory_limit: u64,
    /// Tuning of the run.
    pub tuning: CudaTuning,
    /// Part of it that has to run there.
    pub coverage: Coverage,
    /// Range of the extents of its input that the file leaves open.
    pub input: InputExtents,
}

/// Part of a network that has to run on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// All operators that the provider has; shapes are computed on the CPU.
    Most,
    /// The whole network: anything else is an error.
    Whole,
}

impl CudaProvider {
    /// A network of `cuda`'s engine, whose arena takes `memory_limit` bytes at most.
    pub fn new(cuda: &Cuda, memory_limit: u64, input: InputExtents) -> Self {
        Self {
            device: cuda.index,
            memory_limit,
            tuning: cuda.tuning,
            coverage: Coverage::Most,
            input,
        }
    }

    /// Keys and values for the provider. The arena grows by the requested size, since doubling
    /// would reach the limit with half of it unused.
    pub fn options(&self, transfer: Transfer) -> KeysAndValues {
        let tuning = &self.tuning;
        let search = match tuning.search() {
            ConvAlgorithmSearch::Default => "DEFAULT",
            ConvAlgorithmSearch::Heuristic => "HEURISTIC",
            ConvAlgorithmSearch::Exhaustive => "EXHAUSTIVE",
        };
        let mut options = vec![
            ("device_id", self.device.to_string()),
            ("gpu_mem_limit", self.memory_limit.to_string()),
            ("arena_extend_strategy", "kSameAsRequested".to_owned()),
            ("cudnn_conv_algo_search", search.to_owned()),
            ("use_tf32", switch(tuning.tf32 && !tuning.deterministic)),
        ];
        if transfer == Transfer::Resident {
            options.push(("enable_cuda_graph", switch(true)));
        }
        options
    }

    /// Keys and values for a run. With `graph`, the first run is captured as the CUDA graph of this
    /// number, and later runs repeat it. Memory that a graph uses is never given back.
    pub fn run_options(&self, transfer: Transfer, graph: Option<u32>) -> KeysAndValues {
        if transfer == Transfer::Resident {
            let graph = graph.map_or_else(|| NO_GRAPH.to_owned(), |number| number.to_string());
            return vec![("gpu_graph_id", graph)];
        }
        match self.tuning.arena_shrinkage {
            true => vec![(
                "memory.enable_memory_arena_shrinkage",
                format!("gpu:{}", self.device),
            )],
            false => Vec::new(),
        }
    }
}

/// `gpu_graph_id` of a run that is not captured.
const NO_GRAPH: &str = "-1";

fn switch(on: bool) -> String {
    u8::from(on).to_string()
}

/// Parts of error messages that mean that memory ran out: in the arena (`bfc_arena.cc`, at its
/// limit or at the limit of the device), in CUDA (`cudaErrorMemoryAllocation`) and in its
/// libraries.
const OUT_OF_MEMORY: [&str; 6] = [
    "Failed to allocate memory",
    "is smaller than requested bytes",
    "out of memory",
    "cudaErrorMemoryAllocation",
    "_ALLOC_FAILED",
    "_ALLOCATION_FAILED",
];

/// Beginnings of the part of a message that says what happened. Signatures of functions precede it.
const BEGINNINGS: [&str; 4] = [
    "CUDA failure",
    "CUDNN failure",
    "CUBLAS failure",
    "Failed to allocate memory",
];

/// End of that part. Names of the machine, the file and the call follow.
const END: &str = " ; GPU=";

/// The error of `model` on a GPU for which the runtime gives `reason`.
pub(crate) fn failure(model: String, reason: String) -> ModelError {
    let is_out_of_memory = OUT_OF_MEMORY.iter().any(|words| reason.contains(words));
    let begin = BEGINNINGS.iter().find_map(|words| reason.find(words));
    let said = &reason[begin.unwrap_or_default()..];
    let reason = said.split(END).next().unwrap_or(said).trim().to_owned();
    match is_out_of_memory {
        true => ModelError::OutOfMemory { model, reason },
        false => ModelError::Gpu { model, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(tuning: CudaTuning) -> CudaProvider {
        CudaProvider {
            device: 1,
            memory_limit: 1 << 30,
            tuning,
            coverage: Coverage::Most,
            input: InputExtents::default(),
        }
    }

    fn value(tuning: CudaTuning, key: &str) -> String {
        let options = provider(tuning).options(Transfer::Copied);
        let found = options.into_iter().find(|(own, _)| *own == key);
        found.unwrap_or_else(|| panic!("{key} is not set")).1
    }

    #[test]
    fn the_runtime_gets_the_options() {
        let usual = CudaTuning::default();
        for (key, expected) in [
            ("device_id", "1"),
            ("gpu_mem_limit", "1073741824"),
            ("cudnn_conv_algo_search", "HEURISTIC"),
            ("use_tf32", "0"),
        ] {
            assert_eq!(value(usual, key), expected, "{key}");
        }
        let exhaustive = CudaTuning {
            conv_algorithm_search: ConvAlgorithmSearch::Exhaustive,
            tf32: true,
            ..usual
        };
        assert_eq!(value(exhaustive, "cudnn_conv_algo_search"), "EXHAUSTIVE");
        assert_eq!(value(exhaustive, "use_tf32"), "1");
    }

    #[test]
    fn the_same_result_in_every_run_costs_what_differs_between_runs() {
        let deterministic = CudaTuning {
            deterministic: true,
            conv_algorithm_search: ConvAlgorithmSearch::Exhaustive,
            tf32: true,
            ..CudaTuning::default()
        };
        assert_eq!(value(deterministic, "cudnn_conv_algo_search"), "HEURISTIC");
        assert_eq!(value(deterministic, "use_tf32"), "0");
    }

    #[test]
    fn memory_is_given_back_to_the_device_that_it_is_of() {
        let usual = CudaTuning::default();
        let run_options = |tuning| provider(tuning).run_options(Transfer::Copied, None);
        assert_eq!(run_options(usual), []);
        let shrinking = CudaTuning {
            arena_shrinkage: true,
            ..usual
        };
        let key = "memory.enable_memory_arena_shrinkage";
        let expected = [(key, "gpu:1".to_owned())];
        assert_eq!(run_options(shrinking), expected);
    }

    #[test]
    fn options_that_are_off_are_not_reported() {
        let usual = provider(CudaTuning::default());
        let keys = |transfer| -> Vec<_> {
            let options = usual.options(transfer);
            options.into_iter().map(|(key, _)| key).collect()
        };
        let expected = [
            "device_id",
            "gpu_mem_limit",
            "arena_extend_strategy",
            "cudnn_conv_algo_search",
            "use_tf32",
        ];
        for transfer in [Transfer::Copied, Transfer::Bound] {
            assert_eq!(keys(transfer), expected, "{transfer:?}");
            assert_eq!(usual.run_options(transfer, Some(1)), []);
        }
        assert_eq!(usual.tensorrt_options(&[]), None);
    }

    #[test]
    fn runs_are_captured_where_inputs_and_outputs_stay_on_the_device() {
        let captured = |tuning| {
            let provider = provider(tuning);
            let options = provider.options(Transfer::Resident);
            let is_on = options.contains(&("enable_cuda_graph", "1".to_owned()));
            let runs = [None, Some(1), Some(2)]
                .map(|graph| provider.run_options(Transfer::Resident, graph));
            (is_on, runs)
        };
        let graph = |number: &str| vec![("gpu_graph_id", number.to_owned())];
        let numbered = [graph("-1"), graph("1"), graph("2")];
        let usual = CudaTuning::default();
        assert_eq!(captured(usual), (true, numbered.clone()));
        let shrinking = CudaTuning {
            arena_shrinkage: true,
            ..usual
        };
        assert_eq!(
            captured(shrinking),
            (true, numbered),
            "nothing is given back"
        );
    }

    #[test]
    fn memory_that_ran_out_is_distinguished_from_other_failures() {
        for (reason, is_memory) in [
            (
                "Non-zero status code returned while running Conv node. Name:'Conv_0' Status Message: /onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:376 void* onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Failed to allocate memory for requested buffer of size 104857600",
                true,
            ),
            (
                "bfc_arena.cc:359 Available memory of 1048576 is smaller than requested bytes of 104857600",
                true,
            ),
            ("CUDA failure 2: out of memory ; GPU=0 ; hostname=x", true),
            (
                "CUDNN failure 4000: CUDNN_STATUS_ALLOC_FAILED ; GPU=0",
                true,
            ),
            ("CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0", true),
            (
                "CUDA failure 700: an illegal memory access was encountered",
                false,
            ),
            (
                "CUDA failure 100: no CUDA-capable device is detected",
                false,
            ),
            ("Got invalid dimensions for input: input.1", false),
        ] {
            let error = failure("a.onnx".to_owned(), reason.to_owned());
            let is_told = matches!(error, ModelError::OutOfMemory { .. });
            assert_eq!(is_told, is_memory, "{reason}");
        }
    }

    #[test]
    fn a_message_says_what_happened_without_signatures() {
        for (reason, expected) in [
            (
                "/onnxruntime_src/cuda_call.cc:154 std::conditional_t<THRW, void, common::Status> = void] CUDA failure 2: out of memory ; GPU=0 ; hostname=x ; file=a.cc ; line=1 ; expr=cudaMalloc",
                "a.onnx ran out of GPU memory: CUDA failure 2: out of memory",
            ),
            (
                "Non-zero status code returned while running Relu node. bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal(size_t) Failed to allocate memory for requested buffer of size 6553600",
                "a.onnx ran out of GPU memory: Failed to allocate memory for requested buffer of size 6553600",
            ),
            (
                "Got invalid dimensions for input: input.1\n",
                "a.onnx failed on the GPU: Got invalid dimensions for input: input.1",
            ),
        ] {
            let error = failure("a.onnx".to_owned(), reason.to_owned()).to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
