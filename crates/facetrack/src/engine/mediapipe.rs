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
use std::time::Duration;

use super::{
    Engine, EngineConfig, EngineEntry, EngineInfo, Finder, Found, Frame, Result, RunningMode,
    Setting, Thresholds,
};
use crate::model::{ModelError, ModelFile};
use crate::observation::{Observation, Origin};
use crate::parallel;
use crate::profile;
use crate::report::SearchExtent;
use detector::Detector;
use landmarks::Face;
use mesh::MeshReader;
use roi::{any_meet, associate};

pub(super) use geometry::METRES;
pub use landmarks::LandmarkDetector;
pub use load::load;
pub(super) use load::{load_landmarks, load_mesh};
pub(super) use mesh::describe_mesh;
pub(super) use roi::Roi;

/// Default maximum number of faces. It is the default of the older pipeline of `docs/run.md`; the
/// original's default is 1.
pub const DEFAULT_MAX_FACES: usize = 5;

/// Time after the last meeting of two faces during which detections do not replace followed faces.
/// People hide each other for up to 3.4 s while they pass each other.
const MEETING: Duration = Duration::from_secs(4);

/// Maximum IoU of the regions of a detected face and of a followed one during that time. The regions
/// of two faces that touch have at most 0.2. With 0.5, boxes that enclose two faces are taken for a
/// third one.
const APART: f32 = 0.35;

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

/// The half of the engine that looks at pixels.
struct MediaPipe {
    running_mode: RunningMode,
    max_faces: usize,
    detector: Detector,
    /// Landmark networks, one per thread.
    landmarks: Vec<LandmarkDetector>,
    /// Expected regions of the last frame's faces in the next frame.
    followed: Vec<Roi>,
    /// Time at which two followed faces met last.
    met: Option<Duration>,
}

/// Describes the engine with the published bundle, without models.
pub fn describe(config: &EngineConfig) -> EngineInfo {
    EngineInfo {
        temporal: config.running_mode == RunningMode::Video,
        ..describe_mesh(ENTRY.name)
    }
}

/// Creates the engine from a detector, a network that measures its faces, and the networks that
/// derive from landmarks. `files` are listed in the record.
fn assemble(
    detector: Detector,
    landmarks: LandmarkDetector,
    reader: MeshReader,
    files: Vec<ModelFile>,
    config: &EngineConfig,
) -> Engine {
    let info = EngineInfo {
        measures: reader.measures(),
        models: files,
        ..describe(config)
    };
    let finder = MediaPipe {
        running_mode: config.running_mode,
        max_faces: config.max_faces.unwrap_or(DEFAULT_MAX_FACES).max(1),
        detector,
        landmarks: vec![landmarks; config.threads.max(1)],
        followed: Vec::new(),
        met: None,
    };
    Engine::new(info, finder, reader)
}

impl Finder for MediaPipe {
    fn is_independent(&self) -> bool {
        self.running_mode == RunningMode::Image
    }

    fn find(&mut self, frame: &Frame<'_>, thresholds: &Thresholds) -> Result<Found> {
        let rois = self.regions(frame, thresholds)?;
        let search = if rois.len() < self.max_faces {
            SearchExtent::Whole
        } else {
            SearchExtent::Limited
        };
        let faces = parallel::map(&mut self.landmarks, rois, |landmarks, roi| {
            let face = landmarks.measure(&frame.image, &roi.rect, thresholds.presence)?;
            Ok::<_, ModelError>(face.and_then(|face| with_next_region(face, roi.origin)))
        })?;
        let (mut faces, next): (Vec<_>, Vec<_>) = faces.into_iter().flatten().unzip();
        if self.running_mode == RunningMode::Video {
            self.followed = next;
        }
        let score = |face: &Observation| face.confidence.unwrap_or_default();
        faces.sort_by(|a, b| score(b).total_cmp(&score(a)));
        Ok(Found { faces, search })
    }

    fn reset(&mut self) {
        self.followed.clear();
        self.met = None;
    }
}

impl MediaPipe {
    /// Regions to search in this frame: the tracked faces and, if there are fewer than the maximum,
    /// the detected ones.
    ///
    /// The boxes and eyes of a partly covered face are detected wrongly, and one box may enclose two
    /// faces. So faces that have met are followed by their landmarks, unlike in the original.
    fn regions(&mut self, frame: &Frame<'_>, thresholds: &Thresholds) -> Result<Vec<Roi>> {
        let mut rois = mem::take(&mut self.followed);
        if any_meet(&rois, thresholds.tracking) {
            self.met = Some(frame.time);
        }
        if rois.len() < self.max_faces {
            let detections = profile::time_detection(|| {
                self.detector.detect(&frame.image, thresholds.detection)
            })?;
            let best = detections.iter().take(self.max_faces);
            let mut found: Vec<_> = best.filter_map(Roi::from_detection).collect();
            let have_met = |met| frame.time.saturating_sub(met) <= MEETING;
            if self.met.is_some_and(have_met) {
                found.retain(|found| rois.iter().all(|roi| roi.iou(found) <= APART));
            }
            rois.extend(found);
        }
        if self.running_mode == RunningMode::Video {
            rois = associate(rois, thresholds.tracking);
        }
        rois.truncate(self.max_faces);
        Ok(rois)
    }
}

/// A face and its region in the next frame; `None` for landmarks without an extent, which cannot be
/// a face.
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
