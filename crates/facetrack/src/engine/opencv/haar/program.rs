// SPDX-License-Identifier: MPL-2.0
//! A cascade prepared for one layout of the integrals.

use super::cascade::{Cascade, Child, Feature, Node, Stage, Tree};
use super::integral::{Layout, Plane};

/// The cascade, with rectangles as offsets of cells from a window's first.
#[derive(Debug)]
pub(super) struct Program {
    /// Stages in their order.
    pub panels: Vec<Panel>,
    /// Corners of the part of a window that brightness is normalised by, in the sums and in the
    /// sums of squares.
    pub normalizer: [Corners; 2],
    /// Number of pixels of that part.
    pub area: f64,
}

/// Offsets of the cells that make a rectangle's sum as first − second − third + fourth.
pub(super) type Corners = [u32; 4];

/// A stage.
#[derive(Debug, Default)]
pub(super) struct Panel {
    /// Minimum sum of votes to pass.
    pub threshold: f64,
    /// Sum of the votes of all stumps for values that are not below their bounds. Votes are
    /// single-precision numbers and their sums are exact in double precision (OpenCV's cascades
    /// need at most 47 bits), so they may be added in any order.
    pub start: f64,
    /// Its trees of one node.
    pub stumps: Vec<Stump>,
    /// Its other trees.
    pub trees: Vec<Tree<Measure>>,
}

/// A tree of one node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stump {
    /// Feature that is measured.
    pub measure: Measure,
    /// Bound of the value.
    pub threshold: f32,
    /// Change of the votes for a value below the bound.
    pub gain: f64,
}

/// A feature. A rectangle with a weight of 0 is unused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Measure {
    /// Corners of each rectangle.
    pub rects: [Corners; 3],
    /// Weights of each rectangle.
    pub weights: [f32; 3],
}

impl Program {
    /// Prepares `cascade` for integrals of `layout`.
    pub(super) fn new(cascade: &Cascade, layout: &Layout) -> Self {
        let [width, height] = cascade.window;
        let measures: Vec<Measure> = cascade
            .features
            .iter()
            .map(|feature| measure(feature, cascade.window, layout))
            .collect();
        // `HaarEvaluator::normrect`.
        let (right, bottom) = (width - 1, height - 1);
        let corners = [[1, 1], [right, 1], [1, bottom], [right, bottom]];
        Self {
            panels: cascade
                .stages
                .iter()
                .map(|stage| panel(stage, &measures))
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
    let mut measure = Measure::default();
    let rects = feature.corners(window).unwrap_or_default();
    for (i, (rect, corners)) in feature.rects.iter().zip(rects).enumerate() {
        measure.rects[i] = corners.map(|corner| layout.cell(plane, corner) as u32);
        measure.weights[i] = rect.weight;
    }
    measure
}

fn panel(stage: &Stage, measures: &[Measure]) -> Panel {
    let mut panel = Panel {
        threshold: f64::from(stage.threshold),
        ..Panel::default()
    };
    for tree in &stage.trees {
        match tree.nodes[..] {
            [
                Node {
                    feature,
                    threshold,
                    below: Child::Leaf(below),
                    above: Child::Leaf(above),
                },
            ] => {
                panel.start += tree.vote(above);
                panel.stumps.push(Stump {
                    measure: measures[feature],
                    threshold,
                    gain: tree.vote(below) - tree.vote(above),
                });
            }
            _ => panel.trees.push(measured(tree, measures)),
        }
    }
    panel
}

/// The tree with the features' measures in place of their indices.
fn measured(tree: &Tree<usize>, measures: &[Measure]) -> Tree<Measure> {
    let nodes = tree.nodes.iter().map(|node| Node {
        feature: measures[node.feature],
        threshold: node.threshold,
        below: node.below,
        above: node.above,
    });
    Tree {
        nodes: nodes.collect(),
        leaves: tree.leaves.clone(),
    }
}
