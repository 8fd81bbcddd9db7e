// SPDX-License-Identifier: MPL-2.0
//! The engine as something that can run elsewhere.

use super::InsightFace;
use super::regions;
use super::resilient::Movable;
use crate::device::Placement;
use crate::engine::EngineError;
use crate::geometry::Rect;
use crate::image::ImageView;
use crate::observation::Observation;

/// Side of the image in which a face is measured that is not there, px: one that an aligned face has.
const FACE: usize = 112;

impl Movable for InsightFace {
    fn det_size(&self) -> usize {
        self.det_size()
    }

    fn set_det_size(&mut self, side: usize) {
        self.set_det_size(side);
    }

    /// On a black frame of the detector's size, in which a face is measured as if it were there.
    fn warm_up(&mut self) -> Result<(), EngineError> {
        let side = self.det_size().max(FACE);
        let pixels = vec![0; side * side * 3];
        let image = ImageView::rgb(side, side, &pixels)
            .map_err(|error| EngineError::Frame(error.to_string()))?;
        self.detector.detect(&image, 1.0)?;
        let bbox = Rect::new(0.0, 0.0, FACE as f32, FACE as f32);
        let mut faces = [Observation {
            key_points: regions::aligned_points(FACE).to_vec(),
            ..Observation::from_bbox(bbox)
        }];
        Ok(self.measures.measure(&image, &mut faces)?)
    }

    fn reopen(&mut self, placement: &Placement) -> Result<(), EngineError> {
        self.reopen(placement)
    }
}
