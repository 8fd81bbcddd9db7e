// SPDX-License-Identifier: MPL-2.0
//! A cascade made ready for one layout of the integrals.

use super::cascade::{Cascade, Child, Feature, Node, Stage, Tree};
use super::integral::{Layout, Plane};

/// Trees after which a stage is looked at for windows that can still pass.
const TREES_BETWEEN_LOOKS: usize = 8;

/// More than what the rounding of a stage's sum in double precision amounts to: votes are below 1000, and few.
const ROUNDING: f64 = 1e-6;

/// The cascade, with offsets of cells from a window's origin for rectangles.
#[derive(Debug)]
pub struct Program {
    /// Stages in their order.
    pub stages: Vec<Stretches>,
    /// Corners of the part of a window that brightness is normalised by, in the sums of pixels and of squares.
    pub normalizer: [Corners; 2],
    /// Pixels of that part.
    pub area: f64,
}

/// Offsets of the cells that make a rectangle's sum as first − second − third + fourth.
pub type Corners = [u32; 4];

/// A stage.
#[derive(Debug)]
pub struct Stretches {
    /// Least sum of votes to pass.
    pub threshold: f64,
    /// Its trees, in parts.
    pub stretches: Vec<Stretch>,
}

/// Some trees of a stage.
#[derive(Debug)]
pub struct Stretch {
    /// Nodes of trees, one tree after another.
    pub decisions: Vec<Decision>,
    /// The sum of votes so far below which a window fails whatever the remaining trees say.
    pub hopeless: f64,
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub struct Decision {
    /// What is measured.
    pub measure: Measure,
    /// Bound between the outcomes.
    pub threshold: f32,
    /// For values below the bound.
    pub below: Outcome,
    /// For other values.
    pub above: Outcome,
    /// Nodes of this tree from this one on.
    pub remaining: usize,
}

/// What a decision leads to.
#[derive(Debug, Clone, Copy)]
pub enum Outcome {
    /// The tree's vote.
    Vote(f64),
    /// The decision that many places on.
    Decision(usize),
}

/// A feature: rectangles of a weight of 0 are not there.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// Corners of each rectangle.
    pub rects: [Corners; 3],
    /// Weights of each rectangle.
    pub weights: [f32; 3],
}

impl Program {
    /// `cascade` on integrals of `layout`.
    pub fn new(cascade: &Cascade, layout: &Layout) -> Self {
        let measures: Vec<Measure> = cascade
            .features
            .iter()
            .map(|feature| measure(feature, cascade.window, layout))
            .collect();
        let [width, height] = cascade.window;
        // `HaarEvaluator::normrect`.
        let corners = [
            [1, 1],
            [width - 1, 1],
            [1, height - 1],
            [width - 1, height - 1],
        ];
        Self {
            stages: cascade
                .stages
                .iter()
                .map(|s| stretches(s, &measures))
                .collect(),
            normalizer: [Plane::Sums, Plane::Squares]
                .map(|plane| corners.map(|corner| layout.cell(plane, corner) as u32)),
            area: ((width - 2) * (height - 2)) as f64,
        }
    }
}

fn measure(feature: &Feature, window: [usize; 2], layout: &Layout) -> Measure {
    let plane = if feature.tilted {
        Plane::Tilted
    } else {
        Plane::Sums
    };
    let mut measure = Measure {
        rects: [[0; 4]; 3],
        weights: [0.0; 3],
    };
    let rects = feature.corners(window).unwrap_or_default();
    for (i, (rect, corners)) in feature.rects.iter().zip(rects).enumerate() {
        measure.rects[i] = corners.map(|corner| layout.cell(plane, corner) as u32);
        measure.weights[i] = rect.weight;
    }
    measure
}

fn stretches(stage: &Stage, measures: &[Measure]) -> Stretches {
    let threshold = f64::from(stage.threshold);
    let parts = stage.trees.chunks(TREES_BETWEEN_LOOKS);
    let mut left = &stage.trees[..];
    let stretches = parts
        .map(|trees| {
            left = &left[trees.len()..];
            let most: f64 = left.iter().map(greatest_vote).sum();
            Stretch {
                decisions: trees
                    .iter()
                    .flat_map(|tree| decisions(tree, measures))
                    .collect(),
                hopeless: threshold - most - ROUNDING,
            }
        })
        .collect();
    Stretches {
        threshold,
        stretches,
    }
}

fn greatest_vote(tree: &Tree) -> f64 {
    let votes = tree.leaves.iter().copied().map(f64::from);
    votes.fold(f64::NEG_INFINITY, f64::max)
}

fn decisions(tree: &Tree, measures: &[Measure]) -> impl Iterator<Item = Decision> {
    tree.nodes.iter().enumerate().map(|(own, node)| {
        let outcome = |child| match child {
            Child::Leaf(leaf) => Outcome::Vote(f64::from(tree.leaves[leaf])),
            Child::Node(node) => Outcome::Decision(node - own),
        };
        let Node {
            feature,
            threshold,
            below,
            above,
        } = *node;
        Decision {
            measure: measures[feature],
            threshold,
            below: outcome(below),
            above: outcome(above),
            remaining: tree.nodes.len() - own,
        }
    })
}
