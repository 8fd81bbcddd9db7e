// SPDX-License-Identifier: MPL-2.0
//! Selections of channels that a convolution makes itself: it yields only these, in this order.

use std::mem;

use super::{MAX_WEIGHTS, Output};
use crate::kernel::{Activation, padded};
use crate::layer::{Id, Layer, Operator};

/// Maximum number of products of an output that may be computed several times instead of being copied.
const MAX_REPEATED: usize = 64;

/// Replaces selections from the output of a convolution by convolutions, which take its place if
/// nothing else takes its output. `weights` is the number of packed weights so far.
pub(super) fn fold(layers: &mut Vec<Layer>, outputs: &[Output], mut weights: usize) {
    let all = mem::take(layers);
    let mut folded: Vec<Vec<Layer>> = all.iter().map(|_| Vec::new()).collect();
    let mut is_folded = vec![false; all.len()];
    for (layer, is_folded) in all.iter().zip(&mut is_folded) {
        let source = all
            .iter()
            .position(|own| layer.inputs.first() == Some(&own.output));
        if let Some(source) = source
            && let Some(own) = with_columns(&all[source], layer, MAX_WEIGHTS - weights)
        {
            weights += own.weights();
            folded[source].push(own);
            *is_folded = true;
        }
    }
    let pieces: Vec<Id> = outputs
        .iter()
        .flat_map(|output| output.pieces.iter().map(|piece| piece.id))
        .collect();
    let users = |id| {
        let inputs = all.iter().flat_map(|layer| &layer.inputs);
        inputs.chain(&pieces).filter(|own| **own == id).count()
    };
    let is_needed: Vec<bool> = all
        .iter()
        .zip(&folded)
        .map(|(layer, folded)| folded.is_empty() || users(layer.output) > folded.len())
        .collect();
    for (index, (layer, folded)) in all.into_iter().zip(folded).enumerate() {
        if is_needed[index] && !is_folded[index] {
            layers.push(layer);
        }
        layers.extend(folded);
    }
}

/// The convolution `source` with the channels that `selection` takes, unless it would compute much
/// more than it does, or have more than `most` packed weights.
fn with_columns(source: &Layer, selection: &Layer, most: usize) -> Option<Layer> {
    let (Operator::Select(channels), Operator::Dense(weights, window)) =
        (&selection.operator, &source.operator)
    else {
        return None;
    };
    let is_ordered = channels.is_sorted_by(|a, b| a < b);
    let is_cheap = is_ordered || weights.depth() <= MAX_REPEATED;
    // Columns that only fill the last vector.
    let stored = padded(channels.len());
    let is_full = 8 * stored <= 9 * channels.len();
    if !is_cheap
        || !is_full
        || weights.depth() * stored > most
        || source.inputs.len() != 1
        || selection.activation != Activation::Linear
    {
        return None;
    }
    let activation = match &source.activation {
        Activation::PRelu(slopes) => {
            let mut own: Vec<f32> = channels.iter().map(|channel| slopes[*channel]).collect();
            own.resize(stored, 0.0);
            Activation::PRelu(own)
        }
        other => other.clone(),
    };
    Some(Layer {
        operator: Operator::Dense(weights.with_columns(channels), *window),
        activation,
        inputs: source.inputs.clone(),
        output: selection.output,
    })
}
