// SPDX-License-Identifier: MPL-2.0
//! YuNet's faces, measured with MediaPipe's landmark network, for engines that use these landmarks.
//!
//! A face has YuNet's box, score and key points, as in the engine `opencv-yunet`, and the landmarks
//! that the network finds in a rotated square around it. If the network finds no face there, the
//! face has no landmarks.

mod region;

use super::yunet::{self, Detector};
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
    detector: Detector,
    landmarks: LandmarkDetector,
    thresholds: Thresholds,
}

impl YunetMesh {
    /// Faces that `detector` finds, with landmarks by `landmarks`.
    pub fn new(detector: Detector, landmarks: LandmarkDetector) -> Self {
        Self {
            detector,
            landmarks,
            thresholds: yunet::THRESHOLDS,
        }
    }

    /// Takes other thresholds, from the next frame on.
    pub fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }

    /// Faces in `image`, best first, with 478 landmarks or none.
    ///
    /// # Errors
    /// [`ModelError::Run`].
    pub fn find(&mut self, image: &ImageView<'_>) -> Result<Vec<Observation>, ModelError> {
        let min_score = self.thresholds.detection;
        self.detector
            .detect(image, min_score)?
            .into_iter()
            .map(|detection| self.observe(image, detection))
            .collect()
    }

    fn observe(
        &mut self,
        image: &ImageView<'_>,
        detection: Detection,
    ) -> Result<Observation, ModelError> {
        let landmarks = match region::around(&detection) {
            Some(region) => self.measure(image, &region)?,
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
    ) -> Result<Option<Landmarks>, ModelError> {
        let min_presence = self.thresholds.presence;
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
