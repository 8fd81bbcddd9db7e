// SPDX-License-Identifier: MPL-2.0
//! The three networks, ready to run.

use crate::face::model::Model;

/// Sizes of a landmark network, which tell the models of OpenSeeFace apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LandmarkContract {
    /// Width and height of the input, px.
    pub input: usize,
    /// Rows and columns of a heat map.
    pub cells: usize,
    /// Heat maps; as many maps of row offsets and of column offsets follow.
    pub points: usize,
    /// What the logits of the offsets are divided by: `logit_factor` in `tracker.py`.
    pub logit_factor: f32,
}

impl LandmarkContract {
    /// The models 0…4: `[b, 3, 224, 224]` to `[b, 198, 28, 28]`.
    pub const FULL: Self = Self {
        input: 224,
        cells: 28,
        points: 66,
        logit_factor: 16.0,
    };
}

/// The networks.
pub struct Networks {
    /// `[1, 3, 224, 224]` to `[1, 2, 56, 56]`, heat map and radii, and `[1, 2, 56, 56]`, the greatest values around.
    pub detector: Box<dyn Model>,
    /// See `contract`; a batch of one face.
    pub landmarks: Box<dyn Model>,
    /// Sizes of `landmarks`.
    pub contract: LandmarkContract,
    /// `[2, 3, 32, 32]`, right eye and left eye, to `[2, 3, 8, 8]`: heat map, offsets. `None` without gaze.
    pub gaze: Option<Box<dyn Model>>,
}
