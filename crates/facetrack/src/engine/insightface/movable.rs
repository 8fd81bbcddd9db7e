// SPDX-License-Identifier: MPL-2.0
//! Moves the engine from one device to another.

use super::InsightFace;
use super::networks::Networks;
use super::regions;
use super::resilient::Movable;
use crate::device::Placement;
use crate::engine::EngineError;
use crate::geometry::Rect;
use crate::image::ImageView;
use crate::observation::Observation;

/// Side of the image used for warming up, px: the side of an aligned face.
const FACE: usize = 112;

impl Movable for InsightFace {
    fn det_size(&self) -> usize {
        self.networks.detector.side()
    }

    /// The side is a multiple of 32.
    fn set_det_size(&mut self, side: usize) {
        self.networks.detector.side = side;
    }

    /// Runs on a black frame of the detector's size, and measures a face as if the frame showed
    /// one.
    fn warm_up(&mut self) -> Result<(), EngineError> {
        let side = self.det_size().max(FACE);
        let pixels = vec![0; side * side * 3];
        let image = ImageView::rgb(side, side, &pixels)
            .map_err(|error| EngineError::Frame(error.to_string()))?;
        self.networks.detector.detect(&image, 1.0)?;
        let bbox = Rect::new(0.0, 0.0, FACE as f32, FACE as f32);
        let mut faces = [Observation {
            key_points: regions::aligned_points(FACE).to_vec(),
            ..Observation::from_bbox(bbox)
        }];
        Ok(self.networks.measures.measure(&image, &mut faces)?)
    }

    fn reopen(&mut self, placement: &Placement) -> Result<(), EngineError> {
        let det_size = self.config.pack.det_size;
        self.networks = Networks::open(&*self.pack, &self.config, placement, det_size)?;
        self.info.models = self.networks.files.clone();
        Ok(())
    }
}
