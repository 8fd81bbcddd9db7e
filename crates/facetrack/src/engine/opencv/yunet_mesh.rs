// SPDX-License-Identifier: MPL-2.0
//! YuNet's faces, measured with MediaPipe's landmark network, for engines that use these landmarks.
//!
//! A face has YuNet's box, score and key points, as in the engine `opencv-yunet`, and the landmarks
//! that the network finds in a rotated square around it. If the network finds no face there, the
//! face has no landmarks.

mod region;

use super::yunet::Detector;
use crate::engine::mediapipe::LandmarkDetector;
use crate::engine::{Found, Thresholds};
use crate::geometry::RotatedRect;
use crate::image::ImageView;
use crate::model::ModelError;
use crate::nms::Detection;
use crate::observation::{Landmarks, Observation};
use crate::parallel;
use crate::profile;

/// Minimum presence that every region reaches.
const ANY_PRESENCE: f32 = 0.0;

/// Finds faces and their landmarks.
pub(crate) struct YunetMesh {
    /// Finds faces.
    pub detector: Detector,
    /// Landmark networks, one per thread, which measure several faces at once.
    pub landmarks: Vec<LandmarkDetector>,
}

impl YunetMesh {
    /// Faces in `image`, with 478 landmarks or none.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`].
    pub(crate) fn find(
        &mut self,
        image: &ImageView<'_>,
        thresholds: &Thresholds,
    ) -> Result<Found, ModelError> {
        let Found { faces, search } =
            profile::time_detection(|| self.detector.detect(image, thresholds.detection))?;
        let landmarks = parallel::map(&mut self.landmarks, &faces, |network, detection| {
            let region = region::around(detection);
            let measured = region.map(|region| measure(network, image, &region, thresholds));
            measured.transpose().map(Option::flatten)
        })?;
        let observe = |(landmarks, detection): (_, Detection)| Observation {
            landmarks,
            ..detection.into()
        };
        let faces = std::iter::zip(landmarks, faces).map(observe).collect();
        Ok(Found { faces, search })
    }
}

/// The landmarks of the face in `region`. They are measured again if the first result shows that the
/// region is rotated against the face.
fn measure(
    network: &mut LandmarkDetector,
    image: &ImageView<'_>,
    region: &RotatedRect,
    thresholds: &Thresholds,
) -> Result<Option<Landmarks>, ModelError> {
    let Some(first) = network.measure(image, region, ANY_PRESENCE)? else {
        return Ok(None);
    };
    let min_presence = thresholds.presence;
    let face = match region::straightened(region, &first.landmarks) {
        Some(straight) => network.measure(image, &straight, min_presence)?,
        None => Some(first).filter(|face| face.presence > min_presence),
    };
    Ok(face.map(|face| face.landmarks))
}
