// SPDX-License-Identifier: MPL-2.0
//! Derives blendshapes and pose from the landmarks of a face that any detector found.

use super::blendshapes::BlendshapeNetwork;
use super::geometry::FaceGeometry;
use crate::blendshape::{MEDIAPIPE_CHANNELS, MEDIAPIPE_NEAR_ZERO};
use crate::engine::{Completer, Context, EngineError, EngineInfo, Result, Wanted};
use crate::observation::{Fields, LandmarkScheme, Observation};
use crate::parallel;

/// Describes an engine that measures the mesh with the published bundle, without models.
pub(crate) fn describe_mesh(name: &'static str) -> EngineInfo {
    EngineInfo {
        landmarks: Some(LandmarkScheme::MediaPipe478),
        blendshapes: MEDIAPIPE_CHANNELS.map(str::to_owned).into(),
        near_zero_blendshapes: &MEDIAPIPE_NEAR_ZERO,
        measures: Fields::POSE,
        ..EngineInfo::named(name)
    }
}

/// Derives blendshapes and pose from landmarks.
pub(crate) struct MeshReader {
    /// Blendshape networks, one per thread.
    pub blendshapes: Vec<BlendshapeNetwork>,
    /// The canonical face; without it, poses are not computed.
    pub geometry: Option<FaceGeometry>,
}

impl MeshReader {
    /// Measurements besides the blendshapes.
    pub(crate) fn measures(&self) -> Fields {
        Fields::of([(Fields::POSE, self.geometry.is_some())])
    }
}

impl Completer for MeshReader {
    /// Completes a face. Also sets the bounding box to the extent of the landmarks, except for a
    /// face with key points, which has the box of its detector. A face without landmarks is not
    /// changed.
    fn complete(&mut self, face: &mut Observation, context: &Context) -> Result<()> {
        self.complete_all(&mut [(face, *context)])
    }

    fn complete_all(&mut self, faces: &mut [(&mut Observation, Context)]) -> Result<()> {
        let geometry = self.geometry.as_ref();
        parallel::map(&mut self.blendshapes, faces, |network, (face, context)| {
            let Some(landmarks) = &face.landmarks else {
                return Ok(());
            };
            if context.wanted == Wanted::Everything {
                face.blendshapes = network.measure(landmarks)?;
            }
            face.pose = geometry.and_then(|it| it.pose(landmarks, context.frame_size));
            if face.key_points.is_empty() {
                face.bbox = landmarks.extent();
            }
            Ok::<_, EngineError>(())
        })?;
        Ok(())
    }
}
