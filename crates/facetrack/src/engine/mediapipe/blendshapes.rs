// SPDX-License-Identifier: MPL-2.0
//! The blendshape network, which maps 146 landmarks to 52 channels.

use std::path::Path;
use std::sync::Arc;

use crate::blendshape::{Blendshapes, MEDIAPIPE_CHANNELS};
use crate::engine::network::{Contract, Network};
use crate::model::{Model, ModelError};
use crate::observation::Landmarks;

/// Landmarks that the network takes, in its order: `kLandmarksSubsetIdxs` in MediaPipe's
/// `face_blendshapes_graph.cc`.
#[rustfmt::skip]
const SUBSET: [usize; 146] = [
    0, 1, 4, 5, 6, 7, 8, 10, 13, 14, 17, 21, 33, 37, 39, 40, 46, 52, 53, 54, 55, 58, 61, 63, 65, 66, 67, 70, 78, 80,
    81, 82, 84, 87, 88, 91, 93, 95, 103, 105, 107, 109, 127, 132, 133, 136, 144, 145, 146, 148, 149, 150, 152, 153,
    154, 155, 157, 158, 159, 160, 161, 162, 163, 168, 172, 173, 176, 178, 181, 185, 191, 195, 197, 234, 246, 249, 251,
    263, 267, 269, 270, 276, 282, 283, 284, 285, 288, 291, 293, 295, 296, 297, 300, 308, 310, 311, 312, 314, 317, 318,
    321, 323, 324, 332, 334, 336, 338, 356, 361, 362, 365, 373, 374, 375, 377, 378, 379, 380, 381, 382, 384, 385, 386,
    387, 388, 389, 390, 397, 398, 400, 402, 405, 409, 415, 454, 466, 468, 469, 470, 471, 472, 473, 474, 475, 476, 477,
];

/// Measures expressions.
#[derive(Clone)]
pub(crate) struct BlendshapeNetwork {
    network: Network,
    names: Arc<[String]>,
}

impl BlendshapeNetwork {
    /// The network that runs `model`, which was read from `path`.
    ///
    /// # Errors
    /// Returns an error if the model has other tensors or does not run.
    pub(crate) fn new(model: Box<dyn Model>, path: &Path) -> Result<Self, ModelError> {
        let contract = Contract {
            name: "face blendshapes",
            input: vec![1, SUBSET.len(), 2],
            outputs: vec![MEDIAPIPE_CHANNELS.len()],
        };
        Ok(Self {
            network: Network::checked(model, path, contract)?,
            names: MEDIAPIPE_CHANNELS.map(str::to_owned).into(),
        })
    }

    /// The expression of landmarks in image pixels; `None` if the number of landmarks is not 478,
    /// or if a value of the network is not a number.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`].
    pub(crate) fn measure(
        &mut self,
        landmarks: &Landmarks,
    ) -> Result<Option<Blendshapes>, ModelError> {
        let input = self.network.input().chunks_exact_mut(2);
        for (slot, index) in input.zip(SUBSET) {
            let Some(point) = landmarks.points.get(index) else {
                return Ok(None);
            };
            slot.copy_from_slice(&[point.x, point.y]);
        }
        let outputs = self.network.run()?;
        let values = outputs.get(0).to_vec();
        let is_finite = values.iter().all(|value| value.is_finite());
        Ok(is_finite.then(|| Blendshapes::new(self.names.clone(), values)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subset_is_in_order_and_ends_with_the_irises() {
        assert!(SUBSET.is_sorted_by(|a, b| a < b));
        assert_eq!(
            SUBSET[136..],
            [468, 469, 470, 471, 472, 473, 474, 475, 476, 477]
        );
    }
}
