// SPDX-License-Identifier: MPL-2.0
//! YuNet's faces, measured with MediaPipe's landmark network, for engines that use these landmarks.
//!
//! A face has YuNet's box, score and key points, as in the engine `opencv-yunet`, and the landmarks
//! that the network finds in a rotated square around it. If the network finds no face there, the
//! face has no landmarks.

mod region;

use super::yunet::Detector;
use crate::engine::Thresholds;
use crate::engine::mediapipe::LandmarkDetector;
use crate::geometry::RotatedRect;
use crate::image::ImageView;
use crate::model::ModelError;
use crate::nms::Detection;
use crate::observation::{Landmarks, Observation};

/// Minimum presence that every region reaches.
const ANY_PRESENCE: f32 = 0.0;

/// Finds faces and their landmarks.
pub struct YunetMesh {
    /// Finds faces.
    pub detector: Detector,
    /// Finds the landmarks of a face.
    pub landmarks: LandmarkDetector,
}

impl YunetMesh {
    /// Faces in `image`, best first, with 478 landmarks or none.
    ///
    /// # Errors
    /// [`ModelError::Run`].
    pub fn find(
        &mut self,
        image: &ImageView<'_>,
        thresholds: &Thresholds,
    ) -> Result<Vec<Observation>, ModelError> {
        self.detector
            .detect(image, thresholds.detection)?
            .into_iter()
            .map(|detection| self.observe(image, detection, thresholds.presence))
            .collect()
    }

    fn observe(
        &mut self,
        image: &ImageView<'_>,
        detection: Detection,
        min_presence: f32,
    ) -> Result<Observation, ModelError> {
        let landmarks = match region::around(&detection) {
            Some(region) => self.measure(image, &region, min_presence)?,
            None => None,
        };
        Ok(Observation {
            landmarks,
            ..detection.into()
        })
    }

    /// The landmarks of the face in `region`. They are measured again if the first result shows
    /// that the region is rotated against the face.
    fn measure(
        &mut self,
        image: &ImageView<'_>,
        region: &RotatedRect,
        min_presence: f32,
    ) -> Result<Option<Landmarks>, ModelError> {
        let Some(first) = self.landmarks.measure(image, region, ANY_PRESENCE)? else {
            return Ok(None);
        };
        let face = match region::straightened(region, &first.landmarks) {
            Some(straight) => self.landmarks.measure(image, &straight, min_presence)?,
            None => Some(first).filter(|face| face.presence > min_presence),
        };
        Ok(face.map(|face| face.landmarks))
    }
}
