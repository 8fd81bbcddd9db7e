// SPDX-License-Identifier: MPL-2.0
//! Estimates how much of a GPU's memory an engine takes, on the safe side. A run that needs more
//! memory than it was given fails with an error and is repeated with a smaller input.

use std::iter;

use super::Cuda;

/// Memory that CUDA itself takes in a process: its context, the code of ONNX Runtime's, cuBLAS' and
/// cuDNN's kernels, and their workspaces. It lies outside of the runtime's arenas, bytes. On an
/// H100, a process takes 546 MiB after a first run, and 1.2 to 1.8 GiB in all with small networks.
const CONTEXT: u64 = 1 << 30;

/// Memory of a detector per pixel of its input, bytes. All maps of the largest published one,
/// SCRFD-10g (56 channels in its first stage, 88 and 224 behind: `scrfd_10g_bnkps.py`), take some
/// 600 bytes without reuse of memory; the rest is for the workspaces of cuDNN's convolutions.
const PER_PIXEL: u64 = 1024;

/// Memory of a network that sees up to four faces at a time, without its weights, bytes. The
/// largest, a ResNet of 64 channels that sees 192×192 px, holds some 10 MB of maps per face at once.
const PER_NETWORK: u64 = 64 << 20;

/// Sides of a detector's input are multiples of this, px: the greatest stride of SCRFD's maps.
const STEP: usize = 32;

/// Minimum side of the detector's input, px. In a smaller input, a face that is a tenth of the
/// frame has fewer than 16 px, the smallest size that SCRFD was trained for.
const MIN_DET_SIZE: usize = 160;

/// Memory that an engine needs on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Side of the detector's input, px.
    pub det_size: usize,
    /// Size of its files of networks, the detector's and the others', bytes.
    pub weights: u64,
    /// Number of sessions of the other networks, and one more if the detector has two sessions.
    pub others: usize,
}

impl Need {
    /// Size of the arenas, bytes.
    pub fn arenas(&self) -> u64 {
        let side = self.det_size as u64;
        let maps = side.saturating_mul(side).saturating_mul(PER_PIXEL);
        let others = PER_NETWORK.saturating_mul(self.others as u64);
        self.weights.saturating_add(maps).saturating_add(others)
    }

    /// Memory that must be free, bytes.
    pub fn in_all(&self) -> u64 {
        self.arenas().saturating_add(CONTEXT)
    }

    /// Returns the need with the smallest useful detector's input.
    #[must_use]
    pub fn smallest(self) -> Self {
        Self {
            det_size: self.det_size.min(MIN_DET_SIZE),
            ..self
        }
    }

    /// Maximum part of `max_vram`, in bytes, for the arena of the detector: half if there are other
    /// networks, because each network has its own arena.
    pub fn share_of_detector(&self, max_vram: u64) -> u64 {
        match self.others {
            0 => max_vram,
            _ => max_vram / 2,
        }
    }

    /// Maximum part of `max_vram`, in bytes, for the arena of another network whose file has
    /// `weights` bytes: its share of the other half, in proportion to its need.
    pub fn share_of_other(&self, max_vram: u64, weights: u64) -> u64 {
        let rest = u128::from(max_vram - max_vram / 2);
        let need = u128::from(weights) + u128::from(PER_NETWORK);
        let needs = u128::from(self.weights) + u128::from(PER_NETWORK) * self.others.max(1) as u128;
        u64::try_from(rest * need / needs.max(need)).unwrap_or(u64::MAX)
    }

    fn fits(&self, cuda: &Cuda, claimed: u64) -> bool {
        self.in_all() <= cuda.free_memory && self.arenas().saturating_add(claimed) <= cuda.max_vram
    }
}

/// The largest detector input, up to `wanted.det_size`, that fits into the free and allowed GPU
/// memory. The other engines of this process have reserved `claimed` bytes. `None` if even the
/// smallest input does not fit.
pub(crate) fn largest_det_size(wanted: Need, cuda: &Cuda, claimed: u64) -> Option<usize> {
    let largest = wanted.det_size.saturating_sub(1) / STEP;
    let smaller = (MIN_DET_SIZE / STEP..=largest).rev();
    let mut sides = iter::once(wanted.det_size).chain(smaller.map(|steps| steps * STEP));
    sides.find(|&det_size| Need { det_size, ..wanted }.fits(cuda, claimed))
}

/// Half of `det_size`, a multiple of 32 px; `None` if that is too small.
pub(crate) fn halved_det_size(det_size: usize) -> Option<usize> {
    let half = det_size / 2 / STEP * STEP;
    (half >= MIN_DET_SIZE).then_some(half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::CudaTuning;

    const MIB: u64 = 1 << 20;

    /// A pack of buffalo_l's size.
    fn need(det_size: usize) -> Need {
        Need {
            det_size,
            weights: 340 * MIB,
            others: 4,
        }
    }

    fn cuda(free: u64, max_vram: u64) -> Cuda {
        Cuda {
            index: 0,
            visible_devices: None,
            max_vram,
            free_memory: free,
            fallback: true,
            tuning: CudaTuning::default(),
        }
    }

    #[test]
    fn the_usual_size_fits_into_2_gib() {
        use crate::device::MAX_VRAM;
        let usual = cuda(2048 * MIB, MAX_VRAM);
        assert_eq!(largest_det_size(need(640), &usual, 0), Some(640));
    }

    #[test]
    fn the_size_goes_down_with_the_memory_until_it_is_of_no_use() {
        for (free, max_vram, claimed, expected) in [
            (8192, 8192, 0, Some(1280)),
            (8192, 2048, 0, Some(1216)),
            (2560, 8192, 0, Some(960)),
            (2560, 8192, 8192, None),
            (2020, 2048, 0, Some(640)),
            (2019, 2048, 0, Some(608)),
            (2020, 2048, 1052, Some(640)),
            (2020, 2048, 1053, Some(608)),
            (1645, 2048, 0, Some(160)),
            (1644, 2048, 0, None),
            (0, 0, 0, None),
        ] {
            let cuda = cuda(free * MIB, max_vram * MIB);
            let wanted = match expected {
                Some(960 | 1216 | 1280) => need(1280),
                _ => need(640),
            };
            let fitting = largest_det_size(wanted, &cuda, claimed * MIB);
            assert_eq!(fitting, expected, "{free} {max_vram} {claimed}");
        }
    }

    #[test]
    fn what_fits_is_never_more_than_asked_for_or_there() {
        for free in (0..6000).step_by(97) {
            for asked in [64, 159, 160, 320, 333, 640, 1280] {
                let cuda = cuda(free * MIB, 2048 * MIB);
                let Some(fitting) = largest_det_size(need(asked), &cuda, 0) else {
                    continue;
                };
                assert!(fitting == asked || fitting % STEP == 0 && fitting < asked);
                assert!(need(fitting).in_all() <= cuda.free_memory);
                assert!(need(fitting).arenas() <= cuda.max_vram);
            }
        }
    }

    #[test]
    fn sizes_without_bounds_fit_nowhere() {
        let endless = Need {
            det_size: usize::MAX,
            weights: u64::MAX,
            others: usize::MAX,
        };
        assert_eq!(endless.in_all(), u64::MAX);
        let small = Need {
            det_size: 640,
            ..endless
        };
        assert_eq!(largest_det_size(small, &cuda(8192 * MIB, MIB), 0), None);
    }

    #[test]
    fn half_a_size_is_a_multiple_of_the_stride() {
        for (size, half) in [
            (1280, Some(640)),
            (640, Some(320)),
            (608, Some(288)),
            (320, Some(160)),
            (288, None),
            (0, None),
        ] {
            assert_eq!(halved_det_size(size), half, "{size}");
        }
    }

    #[test]
    fn shares_never_exceed_what_is_there() {
        let buffalo_l = [17, 5, 144, 1, 174].map(|mib| mib * MIB);
        let of = |max_vram, networks: &[u64]| -> Vec<u64> {
            let need = Need {
                det_size: 640,
                weights: networks.iter().fold(0, |sum, own| sum.saturating_add(*own)),
                others: networks.len() - 1,
            };
            let others = networks[1..].iter();
            std::iter::once(need.share_of_detector(max_vram))
                .chain(others.map(|own| need.share_of_other(max_vram, *own)))
                .collect()
        };
        let shares = of(2048 * MIB, &buffalo_l);
        assert_eq!(shares[0], 1024 * MIB);
        for (share, weights) in shares.iter().zip(buffalo_l) {
            assert!(*share > weights + PER_NETWORK, "{share} for {weights}");
        }
        assert_eq!(of(2048 * MIB, &[7]), [2048 * MIB]);
        for max_vram in [0, 1, 2048 * MIB, u64::MAX] {
            for networks in [&[7][..], &buffalo_l, &[0, 0], &[1, 1 << 60, 1 << 60]] {
                let shares = of(max_vram, networks);
                let sum: u128 = shares.iter().copied().map(u128::from).sum();
                assert!(sum <= u128::from(max_vram), "{max_vram} {networks:?}");
            }
        }
    }
}
