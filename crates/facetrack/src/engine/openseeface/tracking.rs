// SPDX-License-Identifier: MPL-2.0
//! Detects and tracks faces: the part of `predict` in `tracker.py` that analyses pixels, one file
//! per stage.

mod crop;
mod detector;
mod gaze;
mod group;
mod heat;
mod landmarks;
mod schedule;

use super::{MAX_FACES, Networks, THRESHOLDS};
use crate::engine::{
    EngineConfig, EngineError, EngineInfo, Finder, Frame, RunningMode, Thresholds,
};
use crate::geometry::Rect;
use crate::image::ImageView;
use crate::model::ModelError;
use crate::observation::{Observation, Origin};
use detector::Detector;
use gaze::GazeNetwork;
use group::Candidate;
use landmarks::LandmarkNetwork;
use schedule::Schedule;

/// Faces from frame to frame.
pub struct Tracking {
    info: EngineInfo,
    detector: Detector,
    landmarks: LandmarkNetwork,
    gaze: Option<GazeNetwork>,
    thresholds: Thresholds,
    max_faces: usize,
    running_mode: RunningMode,
    schedule: Schedule,
    /// Boxes of the faces in the last frame, px.
    places: Vec<Rect>,
}

impl Tracking {
    /// Tracking with `networks`, of the engine that `info` describes.
    pub fn new(info: EngineInfo, networks: Networks, config: &EngineConfig) -> Self {
        let max_faces = config.max_faces.unwrap_or(MAX_FACES);
        Self {
            info,
            detector: Detector(networks.detector),
            landmarks: LandmarkNetwork {
                network: networks.landmarks,
                contract: networks.contract,
            },
            gaze: networks.gaze.map(GazeNetwork::new),
            thresholds: THRESHOLDS,
            max_faces,
            running_mode: config.running_mode,
            schedule: Schedule::new(&config.tracking, max_faces),
            places: Vec::new(),
        }
    }

    /// The face at `place`, if there is one.
    fn measure(
        &mut self,
        image: &ImageView<'_>,
        place: Rect,
        origin: Origin,
    ) -> Result<Option<Candidate>, ModelError> {
        let Some(window) = crop::around(&place, [image.width(), image.height()]) else {
            return Ok(None);
        };
        let face = self.landmarks.measure(image, window)?;
        let is_face = |confidence: &f32| *confidence > self.thresholds.presence;
        Ok(face
            .filter(|(_, confidence)| is_face(confidence))
            .and_then(|(landmarks, confidence)| Candidate::new(landmarks, confidence, origin)))
    }

    fn observation(
        &mut self,
        image: &ImageView<'_>,
        face: Candidate,
    ) -> Result<Observation, ModelError> {
        let gaze = match &mut self.gaze {
            None => None,
            Some(network) => Some(network.measure(image, &face.landmarks)?),
        };
        Ok(Observation {
            // Heat maps can peak above 1, so their mean can exceed 1.
            confidence: Some(face.confidence.clamp(0.0, 1.0)),
            origin: face.origin,
            landmarks: Some(face.landmarks),
            gaze,
            ..Observation::from_bbox(face.bbox)
        })
    }
}

impl Finder for Tracking {
    fn info(&self) -> &EngineInfo {
        &self.info
    }

    fn find(&mut self, frame: &Frame<'_>) -> Result<Vec<Observation>, EngineError> {
        let image = &frame.image;
        if self.running_mode == RunningMode::Image {
            self.reset();
        }
        let mut candidates = Vec::new();
        for place in self.places.clone() {
            candidates.extend(self.measure(image, place, Origin::Tracked)?);
        }
        if self.schedule.searches(self.places.len()) {
            let least_score = self.thresholds.detection;
            for place in self.detector.detect(image, least_score, self.max_faces)? {
                candidates.extend(self.measure(image, place, Origin::Detected)?);
            }
        }
        let faces = group::best(candidates, self.max_faces);
        if self.schedule.keeps(faces.len()) {
            return Ok(Vec::new());
        }
        self.places = faces.iter().map(|face| face.bbox).collect();
        faces
            .into_iter()
            .map(|face| Ok(self.observation(image, face)?))
            .collect()
    }

    fn reset(&mut self) {
        self.places.clear();
        self.schedule.reset();
    }

    fn set_thresholds(&mut self, thresholds: Thresholds) {
        self.thresholds = thresholds;
    }
}

#[cfg(test)]
mod tests;
