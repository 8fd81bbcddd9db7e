// SPDX-License-Identifier: MPL-2.0
//! Chooses how the networks of a pack run on a device.

use facetrack_graph::outline::Precision;

use super::network::Batch;
use super::{Module, scrfd};
use crate::device::{Need, Placement};
use crate::model::cuda::{CudaProvider, Extents, InputExtents};
use crate::model::{Provider, Transfer};

/// Provider for a network of `bytes` bytes at `placement`, with its share of the memory limit.
pub(super) fn choose(placement: &Placement, need: Need, module: Module, bytes: u64) -> Provider {
    let Placement::Cuda(cuda) = placement else {
        return Provider::Cpu;
    };
    let share = match module {
        Module::Detection => need.share_of_detector(cuda.max_vram),
        _ => need.share_of_other(cuda.max_vram, bytes),
    };
    Provider::Cuda(CudaProvider::new(cuda, share, input(need, module)))
}

/// Provider for the detector's session for inputs of [`scrfd::CLOSE`] px at `placement`. The session
/// has a share of the memory limit like a network of its own.
pub(super) fn choose_close(placement: &Placement, need: Need, bytes: u64) -> Provider {
    let Placement::Cuda(cuda) = placement else {
        return Provider::Cpu;
    };
    let share = need.share_of_other(cuda.max_vram, bytes);
    let close = Need {
        det_size: scrfd::CLOSE,
        ..need
    };
    Provider::Cuda(CudaProvider::new(
        cuda,
        share,
        input(close, Module::Detection),
    ))
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
        _ => InputExtents {
            images: Extents::fixed(FACES_ON_GPU),
            ..InputExtents::default()
        },
    }
}

/// Maximum number of faces in a run on the CPU. A face takes about 2 MB in a small network, so a
/// crowd takes several runs.
const MAX_FACES_ON_CPU: usize = 64;

/// Number of faces in a run on a GPU. On an H200, four faces take 1.2 times as long as one. cuDNN
/// has precompiled convolutions for them, while it compiles those for one or two faces at run time.
const FACES_ON_GPU: usize = 4;

/// Number of faces in a run at `placement`.
pub(super) fn batch(placement: &Placement) -> Batch {
    match placement {
        Placement::Cpu => Batch::UpTo(MAX_FACES_ON_CPU),
        Placement::Cuda(_) => Batch::Exactly(FACES_ON_GPU),
    }
}

/// Returns true if the networks make their first runs at the same time. These runs prepare a GPU's
/// convolutions. If that measures their speed, no other network may run.
pub(super) fn are_tried_at_once(placement: &Placement) -> bool {
    matches!(placement, Placement::Cuda(cuda) if !cuda.tuning.measures_speed())
}

/// Precision of the networks at `placement`, if a pack leaves the choice. A CPU is slow in half
/// precision.
pub(super) fn precision(placement: &Placement) -> Precision {
    match placement {
        Placement::Cuda(cuda) if cuda.tuning.fp16 => Precision::Half,
        _ => Precision::Single,
    }
}

/// Returns the transfer of a network's inputs and outputs. A TensorRT engine is a single launch
/// without a CUDA graph.
pub(super) fn transfer(provider: Provider) -> Transfer {
    let Provider::Cuda(CudaProvider { tuning, .. }) = provider else {
        return Transfer::Copied;
    };
    match (tuning.cuda_graph, tuning.tensorrt, tuning.pinned_io) {
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
        for (pinned, graph, tensorrt, expected) in [
            (false, false, false, copied),
            (false, false, true, copied),
            (true, false, false, bound),
            (true, false, true, bound),
            (false, true, false, resident),
            (true, true, false, resident),
            (false, true, true, bound),
            (true, true, true, bound),
        ] {
            let cuda = cuda(|tuning| {
                tuning.pinned_io = pinned;
                tuning.cuda_graph = graph;
                tuning.tensorrt = tensorrt;
            });
            let provider = choose(&Placement::Cuda(cuda), NEED, Module::Detection, 7);
            let found = transfer(provider);
            assert_eq!(found, expected, "{pinned} {graph} {tensorrt}");
        }
        assert_eq!(transfer(Provider::Cpu), copied);
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
        let images = input(NEED, Module::Recognition).images;
        assert_eq!(images, Extents::fixed(FACES_ON_GPU));
    }

    #[test]
    fn networks_run_where_they_are_placed_and_share_the_memory() {
        assert_eq!(
            choose(&Placement::Cpu, NEED, Module::Detection, 7),
            Provider::Cpu
        );
        let cuda = cuda(|tuning| tuning.tf32 = false);
        let placement = Placement::Cuda(cuda.clone());
        let limits = [Module::Detection, Module::GenderAge].map(|module| {
            match choose(&placement, NEED, module, 50) {
                Provider::Cuda(provider) => {
                    assert_eq!((provider.device, provider.tuning), (3, cuda.tuning));
                    provider.memory_limit
                }
                Provider::Cpu => panic!("{module:?} runs on the processor"),
            }
        });
        assert_eq!(limits[0], 500);
        assert!((1..=500).contains(&limits[1]), "{limits:?}");
        let Provider::Cuda(close) = choose_close(&placement, NEED, 50) else {
            panic!("the second session of the detector runs on the processor");
        };
        assert_eq!(
            (close.memory_limit, close.input.side.most),
            (limits[1], 128)
        );
    }
}
