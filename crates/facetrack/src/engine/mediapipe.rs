// SPDX-License-Identifier: MPL-2.0
//! MediaPipe's Face Landmarker: a detector, a landmark network that follows the faces it found, a
//! blendshape network, and a canonical face for the pose.
//!
//! The stages follow `face_landmarker_graph.cc` in MediaPipe Tasks 0.10.21, one file each. The
//! caller smooths faces and assigns identities between [`Finder::find`] and
//! [`Completer::complete`](super::Completer::complete).

mod anchors;
mod blendshapes;
mod detector;
pub(crate) mod geometry;
mod landmarks;
mod load;
mod mesh;
mod procrustes;
mod roi;

use std::mem;

use super::{
    Engine, EngineConfig, EngineEntry, EngineError, EngineInfo, EngineKind, Finder, Frame,
    RunningMode, Setting, Thresholds, parallel,
};
use crate::blendshape::{MEDIAPIPE_CHANNELS, MEDIAPIPE_NEAR_ZERO};
use crate::image::ImageView;
use crate::model::{Model, ModelFile};
use crate::observation::{LandmarkScheme, Observation, Origin};
use detector::Detector;
use landmarks::Face;
use roi::associate;

pub(super) use geometry::METRES;
pub use landmarks::LandmarkDetector;
pub use load::load;
pub(super) use load::{load_landmarks, load_mesh};
pub(super) use mesh::FaceMesh;
pub use mesh::MeshParts;
pub(super) use roi::Roi;

/// Default maximum number of faces, as in the pipeline that this engine replaces. (The original's
/// default is 1.)
pub const DEFAULT_MAX_FACES: usize = 5;

/// The engine `mediapipe`.
pub static ENTRY: EngineEntry = EngineEntry {
    aliases: &["mediapipe-landmarker"],
    settings: &[
        Setting::RunningMode,
        Setting::Detection,
        Setting::Presence,
        Setting::Overlap,
        Setting::Landmarks,
        Setting::Networks,
        Setting::Models,
        Setting::Model,
    ],
    metres: Some(METRES),
    // `num_faces` of 1 with a stream in `face_landmarker_graph.cc`.
    smooths_natively: |config| {
        config.running_mode == RunningMode::Video && config.max_faces == Some(1)
    },
    ..EngineEntry::new("mediapipe", |config| Ok(describe(config)), load)
};

/// Parts of the engine. The networks come from `face_landmarker.task` and run in any runtime.
pub struct Parts {
    /// `face_detector.tflite`, with its input's channels first.
    pub face_detector: Box<dyn Model>,
    /// The rest of the bundle.
    pub mesh: MeshParts,
    /// The files, for the record.
    pub files: Vec<ModelFile>,
}

/// The half of the engine that looks at pixels.
pub struct MediaPipe {
    info: EngineInfo,
    running_mode: RunningMode,
    max_faces: usize,
    thresholds: Thresholds,
    detector: Detector,
    /// One per thread.
    landmarks: Vec<LandmarkDetector>,
    /// Expected regions of the last frame's faces in the next frame.
    followed: Vec<Roi>,
}

/// Describes the engine with the published bundle, without models.
pub fn describe(config: &EngineConfig) -> EngineInfo {
    EngineInfo {
        landmarks: Some(LandmarkScheme::MediaPipe478),
        blendshapes: MEDIAPIPE_CHANNELS.map(str::to_owned).into(),
        near_zero_blendshapes: &MEDIAPIPE_NEAR_ZERO,
        pose: true,
        temporal: config.running_mode == RunningMode::Video,
        ..EngineInfo::of_boxes(EngineKind::MediaPipe)
    }
}

/// Creates the engine from `parts`. Each network is run once.
///
/// # Errors
/// [`EngineError::Model`] if a part is invalid or does not run.
pub fn assemble(parts: Parts, config: &EngineConfig) -> Result<Engine, EngineError> {
    let detector = Detector::new(parts.face_detector, &parts.mesh.path)?;
    let FaceMesh { landmarks, reader } = FaceMesh::new(parts.mesh, config.threads)?;
    let finder = MediaPipe {
        info: reader.described(EngineInfo {
            models: parts.files,
            ..describe(config)
        }),
        running_mode: config.running_mode,
        max_faces: config.max_faces.unwrap_or(DEFAULT_MAX_FACES).max(1),
        thresholds: Thresholds::default(),
        detector,
        landmarks,
        followed: Vec::new(),
    };
    Ok(Engine::new(finder, reader))
}

impl Finder for MediaPipe {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn is_independent(&self) -> bool {
        self.running_mode == RunningMode::Image
    }

    fn find(&mut self, frame: &Frame<'_>) -> Result<Vec<Observation>, EngineError> {
        let rois = self.regions(&frame.image)?;
        let min_presence = self.thresholds.presence;
        let faces = parallel::map(&mut self.landmarks, &rois, |landmarks, roi| {
            landmarks.measure(&frame.image, &roi.rect, min_presence)
        })?;
        let faces: Vec<_> = std::iter::zip(faces, rois)
            .filter_map(|(face, roi)| with_next_region(face?, roi.origin))
            .collect();
        if self.running_mode == RunningMode::Video {
            self.followed = faces.iter().map(|(_, next)| *next).collect();
        }
        let mut faces: Vec<_> = faces.into_iter().map(|(face, _)| face).collect();
        faces.sort_by(|a, b| {
            let score = |face: &Observation| face.confidence.unwrap_or_default();
            score(b).total_cmp(&score(a))
        });
        Ok(faces)
    }

    fn reset(&mut self) {
        self.followed.clear();
    }

    fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }
}

impl MediaPipe {
    /// Regions to search in this frame: the tracked faces and, if there are fewer than the maximum,
    /// the detected ones.
    fn regions(&mut self, image: &ImageView<'_>) -> Result<Vec<Roi>, EngineError> {
        let mut rois = mem::take(&mut self.followed);
        if rois.len() < self.max_faces {
            let detections = self.detector.detect(image, self.thresholds.detection)?;
            let best = detections.iter().take(self.max_faces);
            rois.extend(best.filter_map(Roi::from_detection));
        }
        if self.running_mode == RunningMode::Video {
            rois = associate(rois, self.thresholds.tracking);
        }
        rois.truncate(self.max_faces);
        Ok(rois)
    }
}

/// A face and its region in the next frame; `None` for landmarks without an extent, which are no
/// face.
fn with_next_region(face: Face, origin: Origin) -> Option<(Observation, Roi)> {
    let next = Roi::from_landmarks(&face.landmarks.points)?;
    let bbox = face.landmarks.extent();
    let observation = Observation {
        confidence: Some(face.presence),
        origin,
        landmarks: Some(face.landmarks),
        ..Observation::from_bbox(bbox)
    };
    Some((observation, next))
}

#[cfg(test)]
mod tests;
