// SPDX-License-Identifier: MPL-2.0
//! Chooses how the networks of a pack run on a device.

use facetrack_graph::outline::Precision;

use super::{Module, scrfd};
use crate::device::{Need, Placement};
use crate::model::runtime::cuda::{CudaProvider, Extents, InputExtents};
use crate::model::runtime::{Provider, Transfer};

/// Provider for a network of `bytes` bytes at `placement`, with its share of the memory limit. No
/// other function places a network on a GPU.
pub fn provider(placement: &Placement, need: Need, module: Module, bytes: u64) -> Provider {
    let Placement::Cuda(cuda) = placement else {
        return Provider::Cpu;
    };
    let share = match module {
        Module::Detection => need.share_of_detector(cuda.max_vram),
        _ => need.share_of_other(cuda.max_vram, bytes),
    };
    Provider::Cuda(CudaProvider::new(cuda, share, input(need, module)))
}

/// Extents of a network's input where its file leaves them open.
fn input(need: Need, module: Module) -> InputExtents {
    match module {
        Module::Detection => InputExtents {
            side: Extents {
                least: scrfd::MULTIPLE,
                usual: need.det_size,
                most: need.det_size.next_multiple_of(scrfd::LARGEST_MULTIPLE),
            },
            ..InputExtents::default()
        },
        _ => InputExtents::default(),
    }
}

/// Maximum number of faces in a run on the CPU. A face takes about 2 MB in a small network, so a
/// crowd takes several runs.
const MOST_ON_CPU: usize = 64;

/// Maximum number of faces in a run at `placement`. It is one on a GPU: ONNX Runtime prepares a
/// network's convolutions again, which takes seconds, whenever the shape of its input changes.
pub fn most_faces(placement: &Placement) -> usize {
    match placement {
        Placement::Cpu => MOST_ON_CPU,
        Placement::Cuda(_) => 1,
    }
}

/// Whether the networks make their first runs at the same time. These runs prepare a GPU's
/// convolutions. If that measures their speed, no other network may run.
pub fn are_tried_at_once(placement: &Placement) -> bool {
    matches!(placement, Placement::Cuda(cuda) if !cuda.tuning.measures_speed())
}

/// Precision of the networks at `placement`, if a pack leaves the choice. A CPU is slow in half
/// precision.
pub fn precision(placement: &Placement) -> Precision {
    match placement {
        Placement::Cuda(cuda) if cuda.tuning.fp16 => Precision::Half,
        _ => Precision::Single,
    }
}

/// How a network's inputs and outputs are transferred. A CUDA graph needs the same shapes in every
/// frame, and only the detector has them. A TensorRT engine is a single launch anyway.
pub fn transfer(provider: Provider, module: Module) -> Transfer {
    let Provider::Cuda(CudaProvider { tuning, .. }) = provider else {
        return Transfer::Copied;
    };
    let is_graph = tuning.cuda_graph && module == Module::Detection;
    match (is_graph, tuning.tensorrt, tuning.pinned_io) {
        (true, false, _) => Transfer::Resident,
        (true, true, _) | (false, _, true) => Transfer::Bound,
        (false, _, false) => Transfer::Copied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{ConvAlgorithmSearch, Cuda, CudaTuning};

    const NEED: Need = Need {
        det_size: 640,
        weights: 100,
        others: 1,
    };

    /// A GPU with what `change` makes of the usual tuning.
    fn cuda(change: impl Fn(&mut CudaTuning)) -> Cuda {
        let mut tuning = CudaTuning::default();
        change(&mut tuning);
        Cuda {
            index: 3,
            visible_devices: None,
            max_vram: 1000,
            free_memory: 2000,
            fallback: true,
            tuning,
        }
    }

    #[test]
    fn inputs_and_outputs_stay_where_that_was_asked_for() {
        let [copied, bound, resident] = [Transfer::Copied, Transfer::Bound, Transfer::Resident];
        for (pinned, graph, tensorrt, detector, others) in [
            (false, false, false, copied, copied),
            (false, false, true, copied, copied),
            (true, false, false, bound, bound),
            (true, false, true, bound, bound),
            (false, true, false, resident, copied),
            (true, true, false, resident, bound),
            (false, true, true, bound, copied),
            (true, true, true, bound, bound),
        ] {
            let cuda = cuda(|tuning| {
                tuning.pinned_io = pinned;
                tuning.cuda_graph = graph;
                tuning.tensorrt = tensorrt;
            });
            let placement = Placement::Cuda(cuda);
            for &module in Module::ALL {
                let provider = provider(&placement, NEED, module, 7);
                let expected = match module {
                    Module::Detection => detector,
                    _ => others,
                };
                let found = transfer(provider, module);
                assert_eq!(found, expected, "{pinned} {graph} {tensorrt} {module:?}");
                assert_eq!(transfer(Provider::Cpu, module), copied);
            }
        }
    }

    #[test]
    fn networks_are_tried_at_once_unless_that_disturbs_a_measurement() {
        let exhaustive = |tuning: &mut CudaTuning| {
            tuning.conv_algorithm_search = ConvAlgorithmSearch::Exhaustive;
        };
        let at_once = |change: &dyn Fn(&mut CudaTuning)| {
            are_tried_at_once(&Placement::Cuda(cuda(|tuning| change(tuning))))
        };
        assert!(at_once(&|_| {}));
        assert!(!at_once(&exhaustive));
        assert!(!at_once(&|tuning| tuning.tensorrt = true));
        assert!(at_once(&|tuning| {
            exhaustive(tuning);
            tuning.deterministic = true;
        }));
        assert!(!are_tried_at_once(&Placement::Cpu));
    }

    #[test]
    fn half_precision_is_for_a_gpu_that_was_asked_for_it() {
        for (fp16, expected) in [(false, Precision::Single), (true, Precision::Half)] {
            let placement = Placement::Cuda(cuda(|tuning| tuning.fp16 = fp16));
            assert_eq!(precision(&placement), expected);
        }
        assert_eq!(precision(&Placement::Cpu), Precision::Single);
    }

    #[test]
    fn the_range_of_an_input_has_every_size_that_comes() {
        for (det_size, most) in [(32, 128), (128, 128), (640, 640), (672, 768)] {
            let need = Need { det_size, ..NEED };
            let InputExtents { images, side } = input(need, Module::Detection);
            assert_eq!(images, Extents::fixed(1));
            assert_eq!((side.least, side.usual, side.most), (32, det_size, most));
        }
        assert_eq!(input(NEED, Module::Recognition).images, Extents::fixed(1));
    }

    #[test]
    fn networks_run_where_they_are_placed_and_share_the_memory() {
        assert_eq!(
            provider(&Placement::Cpu, NEED, Module::Detection, 7),
            Provider::Cpu
        );
        let cuda = cuda(|tuning| tuning.tf32 = false);
        let placement = Placement::Cuda(cuda.clone());
        let limits = [Module::Detection, Module::GenderAge].map(|module| {
            match provider(&placement, NEED, module, 50) {
                Provider::Cuda(provider) => {
                    assert_eq!((provider.device, provider.tuning), (3, cuda.tuning));
                    provider.memory_limit
                }
                Provider::Cpu => panic!("{module:?} runs on the processor"),
            }
        });
        assert_eq!(limits[0], 500);
        assert!((1..=500).contains(&limits[1]), "{limits:?}");
    }
}
