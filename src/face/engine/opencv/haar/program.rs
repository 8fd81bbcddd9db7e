// SPDX-License-Identifier: MPL-2.0
//! A cascade made ready for one layout of the integrals.
//!
//! Votes are single-precision numbers, and the sums of those of any of OpenCV's cascades are exact in double precision
//! (they need 47 bits at most). So votes may be counted in any order: the trees with the most say come first, and
//! a stage is left as soon as the others can't save any window.

use super::cascade::{Cascade, Child, Feature, Node, Stage, Tree};
use super::integral::{Layout, Plane};

/// Trees after which a stage is looked at for windows that can still pass.
const TREES_BETWEEN_LOOKS: usize = 8;

/// More than the rounding of a sum of votes that is not exact, and less than what votes are made of.
const ROUNDING: f64 = 1e-6;

/// The cascade, with rectangles as offsets of cells from a window's first.
#[derive(Debug)]
pub struct Program {
    /// Stages in their order.
    pub panels: Vec<Panel>,
    /// The part of a window that brightness is normalised by, in sums and in sums of squares.
    pub normalizer: [Corners; 2],
    /// Pixels of that part.
    pub area: f64,
}

/// Offsets of the cells that make a rectangle's sum as first − second − third + fourth.
pub type Corners = [u32; 4];

/// A stage.
#[derive(Debug)]
pub struct Panel {
    /// Least sum of votes to pass.
    pub threshold: f64,
    /// Votes of all stumps for values that are not below their bounds.
    pub start: f64,
    /// Its trees, in parts.
    pub parts: Vec<Part>,
}

/// Some trees of a stage.
#[derive(Debug, Default)]
pub struct Part {
    /// Trees of one node.
    pub stumps: Vec<Stump>,
    /// Other trees: nodes, the root first.
    pub trees: Vec<Vec<Decision>>,
    /// The sum of votes below which a window fails whatever the trees of the parts to come say.
    pub hopeless: f64,
}

/// A tree of one node.
#[derive(Debug, Clone, Copy)]
pub struct Stump {
    /// What is measured.
    pub measure: Measure,
    /// Bound of the value.
    pub threshold: f32,
    /// What a value below the bound adds to the votes.
    pub gain: f64,
}

/// A node of a tree.
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
}

/// What a decision leads to.
#[derive(Debug, Clone, Copy)]
pub enum Outcome {
    /// The tree's vote.
    Vote(f64),
    /// Another decision, which comes after it.
    Decision(usize),
}

/// A feature; a rectangle with a weight of 0 is not there.
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
        let [width, height] = cascade.window;
        let measures: Vec<Measure> = cascade
            .features
            .iter()
            .map(|feature| measure(feature, cascade.window, layout))
            .collect();
        // `HaarEvaluator::normrect`.
        let corners = [
            [1, 1],
            [width - 1, 1],
            [1, height - 1],
            [width - 1, height - 1],
        ];
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
    let plane = match feature.tilted {
        true => Plane::Tilted,
        false => Plane::Sums,
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

fn panel(stage: &Stage, measures: &[Measure]) -> Panel {
    let threshold = f64::from(stage.threshold);
    let mut voters: Vec<Voter> = stage
        .trees
        .iter()
        .map(|tree| Voter::new(tree, measures))
        .collect();
    voters.sort_by(|a, b| b.say().total_cmp(&a.say()));
    let start = voters.iter().map(Voter::start).sum();
    let mut rest: f64 = voters.iter().map(Voter::most).sum();
    let mut parts = Vec::new();
    let mut voters = voters.into_iter().peekable();
    while voters.peek().is_some() {
        let mut part = Part::default();
        for voter in voters.by_ref().take(TREES_BETWEEN_LOOKS) {
            rest -= voter.most();
            match voter {
                Voter::Stump { stump, .. } => part.stumps.push(stump),
                Voter::Tree { decisions, .. } => part.trees.push(decisions),
            }
        }
        part.hopeless = threshold - rest - ROUNDING;
        parts.push(part);
    }
    Panel {
        threshold,
        start,
        parts,
    }
}

/// A tree on its way into a panel.
enum Voter {
    Stump {
        stump: Stump,
        above: f64,
    },
    Tree {
        decisions: Vec<Decision>,
        votes: [f64; 2],
    },
}

impl Voter {
    fn new(tree: &Tree, measures: &[Measure]) -> Self {
        let decisions: Vec<Decision> = tree
            .nodes
            .iter()
            .map(|node| decision(node, tree, measures))
            .collect();
        if let [
            Decision {
                measure,
                threshold,
                below: Outcome::Vote(below),
                above: Outcome::Vote(above),
            },
        ] = decisions[..]
        {
            let stump = Stump {
                measure,
                threshold,
                gain: below - above,
            };
            return Self::Stump { stump, above };
        }
        let votes = tree.leaves.iter().map(|vote| f64::from(*vote));
        let least = votes.clone().fold(f64::INFINITY, f64::min);
        let greatest = votes.fold(f64::NEG_INFINITY, f64::max);
        Self::Tree {
            decisions,
            votes: [least, greatest],
        }
    }

    /// What it adds to the votes before anything is measured.
    fn start(&self) -> f64 {
        match self {
            Self::Stump { above, .. } => *above,
            Self::Tree { .. } => 0.0,
        }
    }

    /// The most that it adds to them then.
    fn most(&self) -> f64 {
        match self {
            Self::Stump { stump, .. } => stump.gain.max(0.0),
            Self::Tree {
                votes: [_, greatest],
                ..
            } => *greatest,
        }
    }

    /// How far its votes are apart.
    fn say(&self) -> f64 {
        match self {
            Self::Stump { stump, .. } => stump.gain.abs(),
            Self::Tree {
                votes: [least, greatest],
                ..
            } => greatest - least,
        }
    }
}

fn decision(node: &Node, tree: &Tree, measures: &[Measure]) -> Decision {
    let outcome = |child| match child {
        Child::Leaf(leaf) => Outcome::Vote(f64::from(tree.leaves[leaf])),
        Child::Node(node) => Outcome::Decision(node),
    };
    Decision {
        measure: measures[node.feature],
        threshold: node.threshold,
        below: outcome(node.below),
        above: outcome(node.above),
    }
}
