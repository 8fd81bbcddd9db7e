// SPDX-License-Identifier: MPL-2.0
//! Measures a face that any detector found: landmarks in its region, then blendshapes and pose.

use std::path::PathBuf;
use std::sync::Arc;

use super::blendshapes::BlendshapeNetwork;
use super::geometry::FaceGeometry;
use super::landmarks::LandmarkDetector;
use crate::blendshape::Blendshapes;
use crate::engine::parallel;
use crate::engine::{Completer, Context, EngineError, EngineInfo, Wanted};
use crate::model::{Model, ModelError};
use crate::observation::{HeadPose, Observation};

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
    /// Find landmarks in a region, one for each thread.
    pub landmarks: Vec<LandmarkDetector>,
    /// Derives blendshapes and pose from the landmarks.
    pub reader: MeshReader,
}

/// Derives blendshapes and pose from landmarks.
pub struct MeshReader {
    /// One for each thread.
    blendshapes: Vec<BlendshapeNetwork>,
    names: Arc<[String]>,
    geometry: Option<FaceGeometry>,
}

impl FaceMesh {
    /// Creates the mesh from `parts`, for faces on `threads` threads. Each network is run once.
    ///
    /// # Errors
    /// If a part is invalid or does not run.
    pub fn new(parts: MeshParts, threads: usize) -> Result<Self, ModelError> {
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
        let blendshapes = BlendshapeNetwork::new(parts.face_blendshapes, path)?;
        let landmarks = LandmarkDetector::new(parts.face_landmarks_detector, path)?;
        Ok(Self {
            reader: MeshReader {
                names: blendshapes.names().clone(),
                blendshapes: vec![blendshapes; threads.max(1)],
                geometry,
            },
            landmarks: vec![landmarks; threads.max(1)],
        })
    }
}

impl MeshReader {
    /// `info` with what these parts measure.
    pub fn described(&self, info: EngineInfo) -> EngineInfo {
        EngineInfo {
            blendshapes: self.names.clone(),
            pose: self.geometry.is_some(),
            ..info
        }
    }
}

/// Measurements that derive from the landmarks of a face.
struct Derived {
    pose: Option<HeadPose>,
    blendshapes: Option<Blendshapes>,
}

impl Completer for MeshReader {
    /// Also sets the bounding box to the extent of the landmarks, except for a face with key points,
    /// which has the box of its detector. A face without landmarks is not changed.
    fn complete(&mut self, face: &mut Observation, context: &Context) -> Result<(), EngineError> {
        self.complete_all(&mut [(face, *context)])
    }

    fn complete_all(
        &mut self,
        faces: &mut [(&mut Observation, Context)],
    ) -> Result<(), EngineError> {
        let geometry = self.geometry.as_ref();
        let derived = parallel::map(&mut self.blendshapes, faces, |network, (face, context)| {
            let Some(landmarks) = &face.landmarks else {
                return Ok(None);
            };
            let blendshapes = match context.wanted {
                Wanted::Everything => network.measure(landmarks)?,
                Wanted::AllButBlendshapes => face.blendshapes.clone(),
            };
            let pose = geometry.and_then(|it| it.pose(landmarks, context.frame_size));
            Ok::<_, EngineError>(Some(Derived { pose, blendshapes }))
        })?;
        for ((face, _), derived) in faces.iter_mut().zip(derived) {
            let (Some(landmarks), Some(derived)) = (&face.landmarks, derived) else {
                continue;
            };
            if face.key_points.is_empty() {
                face.bbox = landmarks.extent();
            }
            (face.pose, face.blendshapes) = (derived.pose, derived.blendshapes);
        }
        Ok(())
    }
}
