// SPDX-License-Identifier: MPL-2.0
//! Evaluates the windows of a row, 16 at a time.
//!
//! Each lane does the same as OpenCV does for each window (`CascadeClassifierInvoker`,
//! `HaarEvaluator::setWindow` and `predictOrdered`). Sums of pixels are exact integers, and all
//! other values keep OpenCV's order and precision.

use fearless_simd::{Simd, f32x16, f64x8, i32x16, prelude::*};

use super::cascade::{Child, Tree};
use super::program::{Corners, Measure, Panel, Program};
use super::xml::MAX_TREE_NODES;

/// Number of windows evaluated together.
const LANES: usize = 16;

/// A window whose factor times area is at least this is flat and skipped:
/// `HaarEvaluator::setWindow`.
const FLAT: f64 = 1e-1;

/// One value in double precision for each lane.
type Doubles<S> = (f64x8<S>, f64x8<S>);

/// Working memory for a row.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// Factor that each window's measures are normalised by.
    norms: Vec<f32>,
    /// A bit for each window.
    alive: Bits,
    failed: Bits,
}

impl Row {
    /// Returns the windows that pass all stages, among `count` windows whose cells start at
    /// `cells[0]`.
    #[inline(always)]
    pub(super) fn faces<S: Simd>(
        &mut self,
        simd: S,
        program: &Program,
        cells: &[i32],
        count: usize,
    ) -> impl Iterator<Item = usize> {
        self.first_stage(simd, program, cells, count);
        skip_after_failures(&mut self.alive, &self.failed);
        for panel in &program.panels[1..] {
            let mut next = 0;
            while let Some(first) = self.alive.next(next) {
                let alive = self.alive.get(first);
                let norms = f32x16::from_slice(simd, &self.norms[first..first + LANES]);
                let passed = judge(simd, panel, &cells[first..], norms, alive);
                self.alive.clear(first, alive & !passed);
                next = first + LANES;
            }
        }
        self.alive.ones()
    }

    /// Normalises all windows and evaluates the first stage.
    #[inline(always)]
    fn first_stage<S: Simd>(&mut self, simd: S, program: &Program, cells: &[i32], count: usize) {
        self.norms
            .resize(count.next_multiple_of(LANES) + LANES, 0.0);
        self.alive.reset(count);
        self.failed.reset(count);
        for first in (0..count).step_by(LANES) {
            let window = &cells[first..];
            let (norms, lively) = normalize(simd, program, window);
            norms.store_slice(&mut self.norms[first..first + LANES]);
            let there = u16::MAX >> LANES.saturating_sub(count - first);
            let lively = lively & there;
            let passed = judge(simd, &program.panels[0], window, norms, lively);
            self.alive.set(first, passed);
            self.failed.set(first, lively & !passed);
        }
    }
}

/// Returns the windows' normalisation factors, and a bit for each window that is not flat.
#[inline(always)]
fn normalize<S: Simd>(simd: S, program: &Program, window: &[i32]) -> (f32x16<S>, u16) {
    let [sums, squares] = &program.normalizer;
    let (sums, squares) = (sum(simd, window, sums), sum(simd, window, squares));
    let sums = f32x16::float_from(sums).widen();
    // Sums of squares are unsigned; each half of one is exact in single precision.
    let low = f32x16::float_from(squares & 0xffff).widen();
    let high = f32x16::float_from((squares >> 16) & 0xffff).widen();
    let norm = |sum: f64x8<S>, low: f64x8<S>, high: f64x8<S>| {
        let squares = high * 65536.0 + low;
        let variance = squares * program.area - sum * sum;
        f64x8::splat(simd, 1.0) / variance.sqrt()
    };
    let norms: f32x16<S> = norm(sums.0, low.0, high.0).narrow(norm(sums.1, low.1, high.1));
    let wide = norms.widen();
    // Where the variance is 0 or below, the comparison is with infinity or NaN, and false.
    let lively = |norm: f64x8<S>| (norm * program.area).simd_lt(FLAT).to_bitmask();
    (norms, (lively(wide.0) | lively(wide.1) << 8) as u16)
}

/// Returns a bit for each of the windows `alive` that passes a stage.
#[inline(always)]
fn judge<S: Simd>(simd: S, panel: &Panel, window: &[i32], norms: f32x16<S>, alive: u16) -> u16 {
    if alive == 0 {
        return 0;
    }
    let mut votes = splat(simd, panel.start);
    for stump in &panel.stumps {
        let value = measure(simd, &stump.measure, window) * norms;
        let (low, high) = value.simd_lt(stump.threshold).widen();
        votes.0 = low.select(votes.0 + stump.gain, votes.0);
        votes.1 = high.select(votes.1 + stump.gain, votes.1);
    }
    for tree in &panel.trees {
        let vote = vote(simd, tree, window, norms);
        votes = (votes.0 + vote.0, votes.1 + vote.1);
    }
    let passed = |votes: f64x8<S>| votes.simd_ge(panel.threshold).to_bitmask();
    (passed(votes.0) | passed(votes.1) << 8) as u16 & alive
}

/// The votes of a tree, from its last nodes to its root.
#[inline(always)]
fn vote<S: Simd>(simd: S, tree: &Tree<Measure>, window: &[i32], norms: f32x16<S>) -> Doubles<S> {
    let mut votes = [splat(simd, 0.0); MAX_TREE_NODES];
    for (own, node) in tree.nodes.iter().enumerate().rev() {
        let of = |child| match child {
            Child::Leaf(leaf) => splat(simd, tree.vote(leaf)),
            Child::Node(node) => votes[node],
        };
        let (below, above) = (of(node.below), of(node.above));
        let value = measure(simd, &node.feature, window) * norms;
        let (low, high) = value.simd_lt(node.threshold).widen();
        votes[own] = (low.select(below.0, above.0), high.select(below.1, above.1));
    }
    votes[0]
}

#[inline(always)]
fn splat<S: Simd>(simd: S, value: f64) -> Doubles<S> {
    (f64x8::splat(simd, value), f64x8::splat(simd, value))
}

/// Measures a feature: `HaarEvaluator::OptFeature::calc`.
#[inline(always)]
fn measure<S: Simd>(simd: S, measure: &Measure, window: &[i32]) -> f32x16<S> {
    let [first, second, third] = &measure.rects;
    let weights = measure.weights;
    let value = weigh(simd, window, first, weights[0]) + weigh(simd, window, second, weights[1]);
    if weights[2] == 0.0 {
        return value;
    }
    value + weigh(simd, window, third, weights[2])
}

/// A term of a measure. This and the next function are not closures, because debug builds do not
/// inline closures, which makes the search three times as slow.
#[inline(always)]
fn weigh<S: Simd>(simd: S, window: &[i32], corners: &Corners, weight: f32) -> f32x16<S> {
    f32x16::float_from(sum(simd, window, corners)) * weight
}

#[inline(always)]
fn sum<S: Simd>(simd: S, window: &[i32], [a, b, c, d]: &Corners) -> i32x16<S> {
    lanes(simd, window, *a) - lanes(simd, window, *b) - lanes(simd, window, *c)
        + lanes(simd, window, *d)
}

#[inline(always)]
fn lanes<S: Simd>(simd: S, window: &[i32], first: u32) -> i32x16<S> {
    i32x16::from_slice(simd, &window[first as usize..][..LANES])
}

/// Skips the window after one that fails the first stage: `CascadeClassifierInvoker`.
///
/// So of consecutive windows that fail, the second, fourth … are skipped, and also the window after
/// them if their number is odd. An addition finds the ends of all such runs: its carry passes
/// through a run and stops behind it.
fn skip_after_failures(alive: &mut Bits, failed: &Bits) {
    const EVEN: u64 = 0x5555_5555_5555_5555;
    let mut skip_first = 0;
    for (alive, failed) in alive.words.iter_mut().zip(&failed.words) {
        let failed = failed & !skip_first;
        let follows = failed << 1 | skip_first;
        let odd_starts = failed & !EVEN & !follows;
        let (ends, overflow) = odd_starts.overflowing_add(failed);
        let skipped = (EVEN ^ ends << 1) & follows;
        skip_first = u64::from(overflow);
        *alive &= !skipped;
    }
}

/// A bit for each window of a row.
#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Sets all bits to 0. A run of [`LANES`] bits can start at any of `count`.
    fn reset(&mut self, count: usize) {
        self.words.clear();
        self.words.resize(count / 64 + 2, 0);
    }

    /// The first bit from `from` on that is 1.
    #[inline(always)]
    fn next(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.words.get(word)? & u64::MAX << (from % 64);
        while bits == 0 {
            word += 1;
            bits = *self.words.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// A run of bits.
    #[inline(always)]
    fn get(&self, first: usize) -> u16 {
        let [low, high] = [0, 1].map(|i| u128::from(self.words[first / 64 + i]));
        ((low | high << 64) >> (first % 64)) as u16
    }

    /// Sets the bits of a run to 1 that are 1 in `run`.
    #[inline(always)]
    fn set(&mut self, first: usize, run: u16) {
        let run = u128::from(run) << (first % 64);
        self.words[first / 64] |= run as u64;
        self.words[first / 64 + 1] |= (run >> 64) as u64;
    }

    /// Sets the bits of a run to 0 that are 1 in `run`.
    #[inline(always)]
    fn clear(&mut self, first: usize, run: u16) {
        let run = u128::from(run) << (first % 64);
        self.words[first / 64] &= !(run as u64);
        self.words[first / 64 + 1] &= !((run >> 64) as u64);
    }

    /// The bits that are 1.
    fn ones(&self) -> impl Iterator<Item = usize> {
        std::iter::successors(self.next(0), |bit| self.next(bit + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One window after another.
    fn skipped_one_by_one(failed: &[bool]) -> Vec<bool> {
        let mut skip = false;
        failed
            .iter()
            .map(|failed| {
                let skipped = skip;
                skip = *failed && !skipped;
                skipped
            })
            .collect()
    }

    #[test]
    fn the_window_after_a_failure_is_left_out() {
        let mut state = 1u32;
        for rate in [1, 2, 5, 9, 10] {
            let failed: Vec<bool> = (0..500)
                .map(|_| {
                    state = state.wrapping_mul(1664525).wrapping_add(1013904223);
                    state >> 16 & 0xff < 26 * rate
                })
                .collect();
            let (mut alive, mut bits) = (Bits::default(), Bits::default());
            alive.reset(500);
            bits.reset(500);
            for (window, failed) in failed.iter().enumerate() {
                alive.set(window, 1);
                bits.set(window, u16::from(*failed));
            }
            skip_after_failures(&mut alive, &bits);
            let expected = skipped_one_by_one(&failed);
            let left: Vec<usize> = (0..500).filter(|i| !expected[*i]).collect();
            assert_eq!(alive.ones().collect::<Vec<_>>(), left, "{rate}");
        }
    }

    #[test]
    fn runs_of_bits_are_read_and_cleared_where_they_were_set() {
        let mut bits = Bits::default();
        bits.reset(130);
        bits.set(60, 0b1010_0000_0000_1001);
        assert_eq!(bits.ones().collect::<Vec<_>>(), [60, 63, 73, 75]);
        assert_eq!(bits.get(60), 0b1010_0000_0000_1001);
        bits.clear(63, 1);
        assert_eq!((bits.next(61), bits.next(76)), (Some(73), None));
    }
}
