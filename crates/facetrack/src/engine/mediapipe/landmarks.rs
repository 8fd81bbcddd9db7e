// SPDX-License-Identifier: MPL-2.0
//! The landmark network, which maps a rotated region of 256×256 px to 478 points and the
//! probability of a face.

use std::path::Path;

use crate::engine::network::{Contract, Network};
use crate::geometry::{Point, RotatedRect};
use crate::image::ImageView;
use crate::model::{Model, ModelError};
use crate::nms::sigmoid;
use crate::observation::{Landmark, LandmarkScheme, Landmarks};
use crate::sample::{Border, CHANNELS, Crop, FARTHEST, ValueRange};

/// Side of the input, px.
const SIDE: usize = 256;

/// Number of landmarks: 468 of the mesh, 10 of the irises.
pub(super) const COUNT: usize = 478;

/// Measures faces.
#[derive(Clone)]
pub struct LandmarkDetector {
    network: Network,
}

/// A face that the network found in a region.
#[derive(Debug, Clone, PartialEq)]
pub struct Face {
    /// 478 landmarks, image px.
    pub landmarks: Landmarks,
    /// Probability that the region shows a face.
    pub presence: f32,
}

impl LandmarkDetector {
    /// The detector that runs `model`, which was read from `path`.
    ///
    /// # Errors
    /// Returns an error if the model has other tensors or does not run.
    pub fn new(model: Box<dyn Model>, path: &Path) -> Result<Self, ModelError> {
        let contract = Contract {
            name: "face landmarks detector",
            input: vec![1, CHANNELS, SIDE, SIDE],
            outputs: vec![COUNT * 3, 1],
        };
        Ok(Self {
            network: Network::checked(model, path, contract)?,
        })
    }

    /// The face in `roi`; `None` when its presence is not above `min_presence`, or the region or
    /// the network's answer cannot be used.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`].
    pub fn measure(
        &mut self,
        image: &ImageView<'_>,
        roi: &RotatedRect,
        min_presence: f32,
    ) -> Result<Option<Face>, ModelError> {
        let crop = Crop::planar(*roi, [SIDE; 2], ValueRange::UNIT, Border::Replicate);
        if self.network.show(&crop, image).is_err() {
            return Ok(None);
        }
        let outputs = self.network.run()?;
        let presence = outputs.get(1).first().copied().map_or(0.0, sigmoid);
        let is_face = presence > min_presence;
        if !is_face {
            return Ok(None);
        }
        let aspect = image.width() as f32 / image.height() as f32;
        let points = project(outputs.get(0), roi, aspect);
        Ok(points.iter().all(is_in_reach).then_some(Face {
            landmarks: Landmarks::new(LandmarkScheme::MediaPipe478, points),
            presence,
        }))
    }
}

/// Returns true if all coordinates are finite and within the range of regions.
fn is_in_reach(point: &Landmark) -> bool {
    [point.x, point.y, point.z]
        .into_iter()
        .all(|value| f64::from(value).abs() < FARTHEST)
}

/// Converts tensor pixels to image pixels; `aspect` is the image's width per height.
///
/// Depth has the scale of the region's width, but MediaPipe measures that width in image units,
/// where a turned region in an image that is not square has another one; blendshapes and pose were
/// tuned to it (`CalculateZScale` in `landmark_projection_calculator.cc`).
fn project(tensor: &[f32], roi: &RotatedRect, aspect: f32) -> Vec<Landmark> {
    let image_from_unit = roi.outer_from_unit();
    let z_scale = libm::hypotf(image_from_unit.xx, image_from_unit.yx * aspect);
    let side = SIDE as f32;
    tensor
        .chunks_exact(3)
        .map(|xyz| {
            let Point { x, y } = image_from_unit.apply(Point::new(xyz[0] / side, xyz[1] / side));
            let z = xyz[2] / side * z_scale;
            Landmark { x, y, z }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Size;

    #[test]
    fn projection_table() {
        let quarter = std::f32::consts::FRAC_PI_2;
        // Rotation, aspect, tensor point, image point: the region is 128 wide around (100, 200).
        for (rotation, aspect, tensor, image) in [
            (0.0, 1.0, [128.0, 128.0, 10.0], [100.0, 200.0, 5.0]),
            (0.0, 2.0, [0.0, 256.0, -10.0], [36.0, 264.0, -5.0]),
            (quarter, 1.0, [0.0, 0.0, 10.0], [164.0, 136.0, 5.0]),
            (quarter, 2.0, [0.0, 0.0, 10.0], [164.0, 136.0, 10.0]),
        ] {
            let roi = RotatedRect {
                center: Point::new(100.0, 200.0),
                size: Size::new(128.0, 128.0),
                rotation,
            };
            let Landmark { x, y, z } = project(&tensor, &roi, aspect)[0];
            for (got, want) in [x, y, z].into_iter().zip(image) {
                assert!((got - want).abs() < 1e-4, "{tensor:?}: {got} {want}");
            }
        }
    }
}
