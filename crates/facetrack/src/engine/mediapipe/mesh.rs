// SPDX-License-Identifier: MPL-2.0
//! Measures a face that any detector found: landmarks in its region, then blendshapes and pose.

use std::path::PathBuf;

use super::blendshapes::BlendshapeNetwork;
use super::geometry::FaceGeometry;
use super::landmarks::LandmarkDetector;
use crate::engine::{Completer, Context, EngineError, EngineInfo, Wanted};
use crate::model::{Model, ModelError};
use crate::observation::Observation;

/// Parts that measure faces. The networks come from `face_landmarker.task` and run in any runtime.
pub struct MeshParts {
    /// `face_landmarks_detector.tflite`, with its input's channels first.
    pub face_landmarks_detector: Box<dyn Model>,
    /// `face_blendshapes.tflite`.
    pub face_blendshapes: Box<dyn Model>,
    /// `geometry_pipeline_metadata_landmarks.binarypb`; without it there is no pose.
    pub geometry_metadata: Option<Vec<u8>>,
    /// File that the parts were read from, for messages.
    pub path: PathBuf,
}

/// The networks that follow MediaPipe's detector, for any engine that finds faces.
pub struct FaceMesh {
    /// Finds landmarks in a region.
    pub landmarks: LandmarkDetector,
    /// Derives blendshapes and pose from the landmarks.
    pub reader: MeshReader,
}

/// Derives blendshapes and pose from landmarks.
pub struct MeshReader {
    blendshapes: BlendshapeNetwork,
    geometry: Option<FaceGeometry>,
}

impl FaceMesh {
    /// Creates the mesh from `parts`. Each network is run once.
    ///
    /// # Errors
    /// If a part is invalid or does not run.
    pub fn new(parts: MeshParts) -> Result<Self, ModelError> {
        let path = parts.path.as_path();
        let geometry = parts
            .geometry_metadata
            .map(|bytes| FaceGeometry::from_metadata(&bytes))
            .transpose()
            .map_err(|reason| ModelError::Format {
                path: path.to_owned(),
                format: "face geometry",
                reason,
            })?;
        Ok(Self {
            reader: MeshReader {
                blendshapes: BlendshapeNetwork::new(parts.face_blendshapes, path)?,
                geometry,
            },
            landmarks: LandmarkDetector::new(parts.face_landmarks_detector, path)?,
        })
    }
}

impl MeshReader {
    /// `info` with what these parts measure.
    pub fn described(&self, info: EngineInfo) -> EngineInfo {
        EngineInfo {
            blendshapes: self.blendshapes.names().clone(),
            pose: self.geometry.is_some(),
            ..info
        }
    }
}

impl Completer for MeshReader {
    /// Also sets the bounding box to the extent of the landmarks, except for a face with key points,
    /// which has the box of its detector. A face without landmarks is not changed.
    fn complete(&mut self, face: &mut Observation, context: &Context) -> Result<(), EngineError> {
        let Some(landmarks) = &face.landmarks else {
            return Ok(());
        };
        if face.key_points.is_empty() {
            face.bbox = landmarks.extent();
        }
        face.pose = self
            .geometry
            .as_ref()
            .and_then(|geometry| geometry.pose(landmarks, context.frame_size));
        if context.wanted == Wanted::Everything {
            face.blendshapes = self.blendshapes.measure(landmarks)?;
        }
        Ok(())
    }
}
