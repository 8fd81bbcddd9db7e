// SPDX-License-Identifier: MPL-2.0
//! YuNet's faces, measured with MediaPipe's landmark and blendshape networks.
//!
//! A face is reported as the engine `opencv-yunet` does it, with YuNet's box, score and key points, and beside that with
//! what MediaPipe's networks see in a rotated square around it. Where they see no face it stays one, without landmarks,
//! blendshapes and pose.

mod region;

use crate::face::blendshape::MEDIAPIPE_CHANNELS;
use crate::face::engine::mediapipe::{FaceMesh, MeshParts};
use crate::face::engine::{
    Context, Engine, EngineError, EngineInfo, EngineKind, Frame, Thresholds,
};
#[cfg(feature = "onnx")]
use crate::face::engine::{EngineConfig, mediapipe};
use crate::face::geometry::RotatedRect;
use crate::face::image::ImageView;
use crate::face::model::{ModelError, ModelFile};
use crate::face::nms::Detection;
use crate::face::observation::{LandmarkScheme, Landmarks, Observation};

use super::yunet::{self, Detector};

/// The property that names YuNet's file.
#[cfg(feature = "onnx")]
const DETECTOR_PROPERTY: &str = "detector-model";

/// The property that names MediaPipe's bundle.
const LANDMARK_PROPERTY: &str = "landmark-model";

/// A presence that every region has.
const ANY_PRESENCE: f32 = 0.0;

/// The engine.
pub struct YunetPyfeat {
    info: EngineInfo,
    detector: Detector,
    mesh: FaceMesh,
    thresholds: Thresholds,
}

/// What the engine measures; no models are listed.
pub fn describe() -> EngineInfo {
    EngineInfo {
        landmarks: Some(LandmarkScheme::MediaPipe478),
        key_points: yunet::KEY_POINTS,
        blendshapes: MEDIAPIPE_CHANNELS.map(str::to_owned).into(),
        pose: true,
        ..EngineInfo::of_boxes(EngineKind::OpenCvYunetPyfeat)
    }
}

/// Loads YuNet's file and MediaPipe's bundle, those that `config` names or the published ones.
///
/// # Errors
/// When the runtime or a model is missing, damaged or another one; the message names the property of that model.
#[cfg(feature = "onnx")]
pub fn load(config: &EngineConfig) -> Result<YunetPyfeat, EngineError> {
    let (detector, detector_file) = Detector::load(config.detector_model.as_deref(), config)
        .map_err(|error| error.of(DETECTOR_PROPERTY))?;
    let (mesh, mut files) = mediapipe::load_mesh(config.landmark_model.as_deref(), config)
        .map_err(|error| error.of(LANDMARK_PROPERTY))?;
    files.insert(0, detector_file);
    YunetPyfeat::new(detector, mesh, files)
}

impl Engine for YunetPyfeat {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn process(&mut self, frame: &Frame<'_>) -> Result<Vec<Observation>, EngineError> {
        let min_score = self.thresholds.detection;
        self.detector
            .detect(&frame.image, min_score)?
            .into_iter()
            .map(|detection| Ok(self.observe(&frame.image, detection)?))
            .collect()
    }

    fn complete(&mut self, face: &mut Observation, context: &Context) -> Result<(), EngineError> {
        Ok(self.mesh.complete(face, context)?)
    }

    fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }
}

impl YunetPyfeat {
    /// The engine made of a detector and of the parts that measure its faces; `files` are where they came from, for the
    /// record. Each network of `mesh` is run once.
    ///
    /// # Errors
    /// [`EngineError::Model`] when a part is not what it should be or does not run.
    pub fn new(
        detector: Detector,
        mesh: MeshParts,
        files: Vec<ModelFile>,
    ) -> Result<Self, EngineError> {
        let mesh = FaceMesh::new(mesh).map_err(|error| error.of(LANDMARK_PROPERTY))?;
        Ok(Self {
            info: mesh.described(EngineInfo {
                models: files,
                ..describe()
            }),
            detector,
            mesh,
            thresholds: yunet::THRESHOLDS,
        })
    }

    fn observe(
        &mut self,
        image: &ImageView<'_>,
        detection: Detection,
    ) -> Result<Observation, ModelError> {
        let landmarks = match region::around(&detection) {
            Some(region) => self.landmarks(image, &region)?,
            None => None,
        };
        Ok(Observation {
            confidence: Some(detection.score),
            landmarks,
            key_points: detection.key_points,
            ..Observation::from_bbox(detection.bbox)
        })
    }

    /// The landmarks of the face in `region`, after a second look where the first one shows it lie askew.
    fn landmarks(
        &mut self,
        image: &ImageView<'_>,
        region: &RotatedRect,
    ) -> Result<Option<Landmarks>, ModelError> {
        let min_presence = self.thresholds.presence;
        let Some(first) = self.mesh.look(image, region, ANY_PRESENCE)? else {
            return Ok(None);
        };
        let face = match region::straightened(region, &first.landmarks) {
            Some(straight) => self.mesh.look(image, &straight, min_presence)?,
            None => Some(first).filter(|face| face.presence > min_presence),
        };
        Ok(face.map(|face| face.landmarks))
    }
}
