// SPDX-License-Identifier: MPL-2.0
//! A boosted cascade of Haar-like features, as it is in the file.

/// A cascade. The trees of a stage vote; a window that passes all stages shows a face.
#[derive(Debug, Clone, PartialEq)]
pub struct Cascade {
    /// Width and height of the window that features lie in, px.
    pub window: [usize; 2],
    /// Stages, in the order of evaluation.
    pub stages: Vec<Stage>,
    /// Features that the nodes of the trees measure.
    pub features: Vec<Feature>,
}

/// One stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Minimum sum of votes to pass.
    pub threshold: f32,
    /// Trees that vote.
    pub trees: Vec<Tree<usize>>,
}

/// A decision tree; most have one node. `F` stands for the features: in the file, it is an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree<F> {
    /// Nodes, the root first; a node's children come after it.
    pub nodes: Vec<Node<F>>,
    /// Votes.
    pub leaves: Vec<f32>,
}

/// A decision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Node<F> {
    /// Feature that is measured.
    pub feature: F,
    /// Bound between the children.
    pub threshold: f32,
    /// Next step for a value below the bound.
    pub below: Child,
    /// Next step for any other value.
    pub above: Child,
}

/// Next step after a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Child {
    /// Another node of the tree.
    Node(usize),
    /// A vote.
    Leaf(usize),
}

/// A weighted sum of the brightness in rectangles.
#[derive(Debug, Clone, PartialEq)]
pub struct Feature {
    /// True if the rectangles are rotated by 45°.
    pub tilted: bool,
    /// One to three rectangles.
    pub rects: Vec<WeightedRect>,
}

/// A rectangle of a feature, in pixels of the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedRect {
    /// Left edge; of a tilted rectangle the x of its topmost corner.
    pub x: usize,
    /// Top edge.
    pub y: usize,
    /// Extent rightward; of a tilted rectangle right- and downward.
    pub width: usize,
    /// Extent downward; of a tilted rectangle left- and downward.
    pub height: usize,
    /// Factor of its brightness.
    pub weight: f32,
}

impl Cascade {
    /// Returns true if a feature is tilted.
    pub fn is_tilted(&self) -> bool {
        self.features.iter().any(|feature| feature.tilted)
    }
}

impl<F> Tree<F> {
    /// The vote of a leaf.
    pub fn vote(&self, leaf: usize) -> f64 {
        f64::from(self.leaves[leaf])
    }
}

impl Feature {
    /// For each rectangle the corners whose integrals make its sum as first − second − third +
    /// fourth: `CV_SUM_OFS` and `CV_TILTED_OFS` in OpenCV's `cascadedetect.hpp`. `None` where a
    /// rectangle leaves a `width`×`height` window.
    pub fn corners(&self, [width, height]: [usize; 2]) -> Option<Vec<[[usize; 2]; 4]>> {
        self.rects
            .iter()
            .map(|rect| {
                let (x, y, w, h) = (rect.x, rect.y, rect.width, rect.height);
                let corners = if self.tilted {
                    let left = x.checked_sub(h)?;
                    [[x, y], [left, y + h], [x + w, y + w], [left + w, y + w + h]]
                } else {
                    [[x, y], [x + w, y], [x, y + h], [x + w, y + h]]
                };
                let inside = |[x, y]: &[usize; 2]| *x <= width && *y <= height;
                corners.iter().all(inside).then_some(corners)
            })
            .collect()
    }
}
