// SPDX-License-Identifier: MPL-2.0
//! Divides a run into bands of rows, one for each thread.
//!
//! Each band has its own memory, and owns some rows of every tensor that is kept from chain to chain.
//! A chain computes these rows and all rows between its layers that they depend on, even where
//! another band computes the same rows. Rows of earlier chains that other bands own are copied.

use std::mem;
use std::ops::Range;

use super::Step;
use crate::layer::{Id, Layer, Shape};

/// Minimum number of rows of a tensor that a band owns. If a tensor has fewer rows, the first band
/// owns all.
const MIN_ROWS: usize = 3;

/// Number of bands: one for each of `threads`, but fewer if a band would have too few rows, or fewer
/// than `least_work` products.
pub(super) fn count(
    layers: &[Layer],
    shapes: &[Shape],
    threads: usize,
    least_work: usize,
) -> usize {
    let height = shapes.iter().map(|shape| shape.height).max();
    let products = |layer: &Layer| {
        let Shape { height, width, .. } = shapes[layer.output];
        height * width * layer.weights()
    };
    let work: usize = layers.iter().map(products).sum();
    let most = (height.unwrap_or(1) / MIN_ROWS).min(work / least_work.max(1));
    threads.min(most).max(1)
}

/// The rows that a band of `count` owns of a tensor with this height.
fn owned(height: usize, band: usize, count: usize) -> Range<usize> {
    match (height >= MIN_ROWS * count, band) {
        (true, _) => height * band / count..height * (band + 1) / count,
        (false, 0) => 0..height,
        (false, _) => 0..0,
    }
}

/// The band of `count` that owns a row.
pub(crate) fn owner(height: usize, row: usize, count: usize) -> usize {
    let mut bands = 0..count;
    let owner = bands.find(|band| owned(height, *band, count).contains(&row));
    owner.unwrap_or(0)
}

/// The smallest range that contains two others.
pub(super) fn hull(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b.clone(),
        (_, true) => a.clone(),
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}

/// The rows of all tensors that a chain takes or computes, if it has to yield the rows `wanted`.
fn needed(
    layers: &[Layer],
    shapes: &[Shape],
    wanted: impl Fn(Id) -> Range<usize>,
) -> Vec<Range<usize>> {
    let mut needed = vec![0..0; shapes.len()];
    for layer in layers.iter().rev() {
        let rows = hull(&needed[layer.output], &wanted(layer.output));
        needed[layer.output] = rows.clone();
        if rows.is_empty() {
            continue;
        }
        for (index, id) in layer.inputs.iter().enumerate() {
            let of_row = |row| layer.rows(index, row, &shapes[*id], &shapes[layer.output]);
            let own = of_row(rows.start).start..of_row(rows.end - 1).end;
            needed[*id] = hull(&needed[*id], &own);
        }
    }
    needed
}

/// The steps of all bands so far.
#[derive(Debug)]
pub(super) struct Bands {
    /// Steps of each band, for each chain.
    pub steps: Vec<Vec<Vec<Step>>>,
    /// Rows of each tensor that each band has.
    pub held: Vec<Vec<Range<usize>>>,
    /// Number of the stage of each chain.
    stages: Vec<usize>,
    /// Tensors that are copied, and the number of rows.
    pub copies: Vec<(Id, usize)>,
}

impl Bands {
    pub(super) fn new(count: usize, chains: usize, tensors: usize) -> Self {
        Self {
            steps: vec![vec![Vec::new(); chains]; count],
            held: vec![vec![0..0; tensors]; count],
            stages: Vec::with_capacity(chains),
            copies: Vec::new(),
        }
    }

    /// Begins a chain. Copies the rows that other bands own. Returns the rows of each tensor that
    /// each band needs. `chain_of` names the chain that computes a tensor.
    pub(super) fn begin(
        &mut self,
        layers: &[Layer],
        shapes: &[Shape],
        is_taken: impl Fn(Id) -> bool,
        chain_of: impl Fn(Id) -> usize,
    ) -> Vec<Vec<Range<usize>>> {
        let (chain, count) = (self.stages.len(), self.steps.len());
        // The first stage of several bands only takes the inputs.
        let first = usize::from(count > 1 && !layers[0].inputs.is_empty());
        let mut stage = self.stages.last().map_or(first, |last| first.max(*last));
        let needed = (0..count).map(|band| {
            needed(layers, shapes, |id| match is_taken(id) {
                true => owned(shapes[id].height, band, count),
                false => 0..0,
            })
        });
        let needed: Vec<_> = needed.collect();
        for (band, needed) in needed.iter().enumerate() {
            for (id, rows) in needed
                .iter()
                .enumerate()
                .filter(|(_, rows)| !rows.is_empty())
            {
                let rows = hull(&self.held[band][id], rows);
                let has = mem::replace(&mut self.held[band][id], rows.clone());
                let from = chain_of(id);
                if from == chain {
                    continue;
                }
                let missing = match has.is_empty() {
                    true => [rows, 0..0],
                    false => [rows.start..has.start, has.end..rows.end],
                };
                for missing in missing.into_iter().filter(|rows| !rows.is_empty()) {
                    self.copy(id, &missing, (from, chain, band), shapes[id].height);
                    stage = stage.max(self.stages[from] + 1);
                }
            }
        }
        self.stages.push(stage);
        needed
    }

    /// Copies rows to a band from those that own them.
    fn copy(
        &mut self,
        id: Id,
        rows: &Range<usize>,
        (from, chain, band): (usize, usize, usize),
        height: usize,
    ) {
        let count = self.steps.len();
        for owner in 0..count {
            let own = owned(height, owner, count);
            let own = own.start.max(rows.start)..own.end.min(rows.end);
            if own.is_empty() {
                continue;
            }
            let number = self.copies.len();
            self.copies.push((id, own.len()));
            self.steps[owner][from].push(Step::Send(id, own.clone(), number));
            self.steps[band][chain].push(Step::Receive(id, own, number));
        }
    }

    /// Returns, for each band, the steps of each stage, without empty stages at the end.
    pub(super) fn stages(self) -> Vec<Vec<Vec<Step>>> {
        let of_band = |chains: Vec<Vec<Step>>| {
            let mut stages: Vec<Vec<Step>> = Vec::new();
            for (steps, stage) in chains.into_iter().zip(&self.stages) {
                if !steps.is_empty() {
                    stages.resize_with(stage + 1, Vec::new);
                    stages[*stage].extend(steps);
                }
            }
            stages
        };
        self.steps.into_iter().map(of_band).collect()
    }
}
