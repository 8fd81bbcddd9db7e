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

use super::{MAX_FACES, Networks};
use crate::engine::{EngineConfig, Finder, Found, Frame, Result, RunningMode, Thresholds};
use crate::geometry::Rect;
use crate::image::ImageView;
use crate::model::ModelError;
use crate::observation::{Observation, Origin};
use crate::parallel;
use crate::profile;
use crate::report::SearchExtent;
use detector::Detector;
use gaze::GazeNetwork;
use group::Candidate;
use landmarks::LandmarkNetwork;
use schedule::Schedule;

/// The networks that measure a face.
#[derive(Clone)]
struct FaceNetworks {
    landmarks: LandmarkNetwork,
    gaze: Option<GazeNetwork>,
}

/// Faces from frame to frame.
pub(super) struct FaceFinder {
    detector: Detector,
    /// Networks for one face, one set per thread.
    networks: Vec<FaceNetworks>,
    max_faces: usize,
    running_mode: RunningMode,
    schedule: Schedule,
    /// Boxes of the faces in the last frame, px.
    places: Vec<Rect>,
}

impl FaceFinder {
    /// Creates a finder with `networks`.
    pub(super) fn new(networks: Networks, config: &EngineConfig) -> Self {
        let max_faces = config.max_faces.unwrap_or(MAX_FACES);
        let of_a_face = FaceNetworks {
            landmarks: LandmarkNetwork {
                network: networks.landmarks,
                peaks: networks.peaks.into(),
            },
            gaze: networks.gaze.map(GazeNetwork::new),
        };
        Self {
            detector: Detector(networks.detector),
            networks: vec![of_a_face; config.threads.max(1)],
            max_faces,
            running_mode: config.running_mode,
            schedule: Schedule::new(&config.openseeface, max_faces),
            places: Vec::new(),
        }
    }

    /// The faces at `places`.
    fn measure(
        &mut self,
        image: &ImageView<'_>,
        places: &[Rect],
        origin: Origin,
        min_confidence: f32,
    ) -> Result<Vec<Candidate>, ModelError> {
        let measured = parallel::map(&mut self.networks, places, |networks, place| {
            let Some(window) = crop::around(place, [image.width(), image.height()]) else {
                return Ok(None);
            };
            networks.landmarks.measure(image, window)
        })?;
        let faces = measured.into_iter().flatten();
        Ok(faces
            .filter(|(_, confidence)| *confidence > min_confidence)
            .filter_map(|(landmarks, confidence)| Candidate::new(landmarks, confidence, origin))
            .collect())
    }

    fn observations(
        &mut self,
        image: &ImageView<'_>,
        faces: Vec<Candidate>,
    ) -> Result<Vec<Observation>, ModelError> {
        let gazes = parallel::map(&mut self.networks, &faces, |networks, face| {
            let network = networks.gaze.as_mut();
            network
                .map(|network| network.measure(image, &face.landmarks))
                .transpose()
        })?;
        let observe = |(gaze, face): (_, Candidate)| Observation {
            // Heat maps can peak above 1, so their mean can exceed 1.
            confidence: Some(face.confidence.clamp(0.0, 1.0)),
            origin: face.origin,
            landmarks: Some(face.landmarks),
            gaze,
            ..Observation::from_bbox(face.bbox)
        };
        Ok(std::iter::zip(gazes, faces).map(observe).collect())
    }
}

impl Finder for FaceFinder {
    fn is_independent(&self) -> bool {
        self.running_mode == RunningMode::Image
    }

    fn find(&mut self, frame: &Frame<'_>, thresholds: &Thresholds) -> Result<Found> {
        let image = &frame.image;
        if self.running_mode == RunningMode::Image {
            self.reset();
        }
        let places = self.places.clone();
        let (detection, presence) = (thresholds.detection, thresholds.presence);
        let mut candidates = self.measure(image, &places, Origin::Tracked, presence)?;
        // The original waits for up to `scan_every` frames, or `discard_after` if no face is left. In
        // fast motion, a face has then moved too far to keep its identity.
        let has_lost = candidates.len() < places.len();
        let is_searched = self.schedule.searches(places.len()) || has_lost;
        let mut seen = places.len();
        if is_searched {
            let places =
                profile::time_detection(|| self.detector.detect(image, detection, self.max_faces))?;
            seen = places.len();
            candidates.extend(self.measure(image, &places, Origin::Detected, presence)?);
        }
        let faces = group::best(candidates, self.max_faces);
        let search = if seen.max(faces.len()) >= self.max_faces {
            SearchExtent::Limited
        } else if is_searched {
            SearchExtent::Whole
        } else {
            SearchExtent::KnownFaces
        };
        if self.schedule.keeps(faces.len()) {
            return Ok(Found {
                faces: Vec::new(),
                search,
            });
        }
        self.places = faces.iter().map(|face| face.bbox).collect();
        let faces = self.observations(image, faces)?;
        Ok(Found { faces, search })
    }

    fn reset(&mut self) {
        self.places.clear();
        self.schedule.reset();
    }
}

#[cfg(test)]
mod tests;
