// SPDX-License-Identifier: MPL-2.0
//! What follows from a face's landmarks, and what is known of each face: its pose in the frame before, and its range of
//! expression.
//!
//! `estimate_depth` and `adjust_3d` in `tracker.py`, without the adaptation of the model, which `facetracker.py` leaves out
//! unless told otherwise.

mod blendshapes;
mod calibration;
mod expression;
mod feature;
mod fit;
#[cfg(test)]
mod golden;
mod least_norm;
mod measure;
mod model;
mod normalize;
mod pnp;
mod remedian;
mod rotation;
mod search;
mod slots;

use nalgebra::Vector2;

use super::{LandmarkContract, MAX_FACES, PnpPoints};
use crate::engine::{Completer, Context, EngineConfig, EngineError, RunningMode, Wanted};
use crate::geometry::Point;
use crate::observation::{ModelFit, Observation};
use blendshapes::Deriver;
use expression::{Detail, Expression, Lesson};
use fit::{Fit, Places, Points};
pub use model::POINTS as FACE_POINTS;
use normalize::normalized;
use pnp::Camera;
use search::{MAX_ERROR, Search};
use slots::Slots;

/// Least confidence of a face whose features are updated: `adjust_3d`.
const MIN_CONFIDENCE: f32 = 0.4;

/// The error that stands for no fit, px: `estimate_depth`.
const NO_FIT: f32 = 99_999.0;

/// Faces by identity.
pub struct Faces {
    slots: Slots,
    max_faces: usize,
    running_mode: RunningMode,
    /// Landmarks that the pose is solved with.
    contour: &'static [usize],
    lesson: Lesson,
    /// Points of the model that are reported as the camera sees them.
    projected: &'static [usize],
    deriver: Deriver,
}

impl Faces {
    /// No face yet. Landmarks come from a network with this contract.
    pub fn new(config: &EngineConfig, contract: &LandmarkContract) -> Self {
        let max_faces = config.max_faces.unwrap_or(MAX_FACES).max(1);
        let (contour, detail): (&[_], _) = match contract.points == LandmarkContract::FULL.points {
            true => (&model::CONTOUR, Detail::Fine),
            false => (&model::COARSE_CONTOUR, Detail::Coarse),
        };
        Self {
            slots: Slots::new(max_faces, Vec::new()),
            max_faces,
            running_mode: config.running_mode,
            contour,
            lesson: Lesson {
                time: config.tracking.calibration_time,
                detail,
            },
            projected: match config.tracking.pnp_points {
                PnpPoints::None => &[],
                PnpPoints::Fitted => contour,
                PnpPoints::All => &model::ALL_LANDMARKS,
            },
            deriver: Deriver::new(config.jaw_open_scale),
        }
    }

    /// Fits the model, and adds to `face` what the fit tells.
    fn fit(&mut self, face: &mut Observation, places: &Places, context: &Context) -> ModelFit {
        let camera = Camera::new(context.frame_size);
        let slot = self.slots.take(context.id, place(face));
        let Some(fit) = slot.search.fit(&camera, places, self.contour) else {
            return no_fit();
        };
        let points = fit.points(places);
        if fit.error() > MAX_ERROR {
            return report(&fit, &points, self.projected);
        }
        face.pose = fit.head_pose(context.frame_size);
        let is_sure = face
            .confidence
            .is_none_or(|confidence| confidence >= MIN_CONFIDENCE);
        let Some(points) = normalized(&points).filter(|_| is_sure) else {
            return report(&fit, &points, self.projected);
        };
        // A range of expression is a matter of several frames.
        if self.running_mode == RunningMode::Video {
            face.features = slot.expression.update(&points, context.time, &self.lesson);
        }
        report(&fit, &points, self.projected)
    }
}

impl Completer for Faces {
    fn begin_frame(&mut self, faces: &[Observation]) {
        let places: Vec<_> = faces.iter().map(place).collect();
        self.slots.begin_frame(&places);
        if self.running_mode == RunningMode::Image {
            for slot in self.slots.iter_mut() {
                slot.search = Search::in_picture();
            }
        }
    }

    /// Also sets the bounding box to the extent of the landmarks.
    fn complete(&mut self, face: &mut Observation, context: &Context) -> Result<(), EngineError> {
        let Some(places) = places(face) else {
            return Ok(());
        };
        if let Some(landmarks) = &face.landmarks {
            face.bbox = landmarks.extent();
        }
        face.fit = Some(self.fit(face, &places, context));
        if context.wanted == Wanted::Everything {
            face.blendshapes = self.deriver.derive(face);
        }
        Ok(())
    }

    fn forget(&mut self, id: u32) {
        self.slots.forget(id);
    }

    fn reset(&mut self) {
        for slot in self.slots.iter_mut() {
            slot.lose_sight();
            slot.expression.stop_the_clock();
        }
    }

    fn calibration(&self) -> Option<String> {
        let expressions = self.slots.iter().map(|slot| &slot.expression);
        Some(calibration::write(expressions))
    }

    /// Takes the first faces of the calibration, as many as are kept.
    fn set_calibration(&mut self, calibration: &str) -> Result<(), EngineError> {
        let learned = calibration::read(calibration)
            .map_err(|reason| EngineError::config("calibration", reason.to_string()))?;
        self.slots = Slots::new(self.max_faces, learned);
        Ok(())
    }

    fn reset_calibration(&mut self) {
        for slot in self.slots.iter_mut() {
            slot.expression = Expression::default();
        }
    }
}

/// Where a face is: the mean of its landmarks, as in `assign_face_info`.
fn place(face: &Observation) -> Point {
    match &face.landmarks {
        Some(landmarks) => landmarks.mean(),
        None => face.bbox.center(),
    }
}

/// Landmarks and pupils as the camera takes them; `None` for other landmarks than OpenSeeFace's. A pupil that nobody looked
/// for is in the corner of the image, as in the original.
fn places(face: &Observation) -> Option<Places> {
    let landmarks = face.landmarks.as_ref()?;
    if landmarks.points.len() != model::LANDMARKS {
        return None;
    }
    let pupils = face.gaze.map_or([Point::default(); 2], |gaze| {
        [gaze.right, gaze.left].map(|pupil| pupil.position)
    });
    let landmarks = landmarks.points.iter().map(|p| Point::new(p.x, p.y));
    let mut places = [Vector2::zeros(); model::LANDMARKS + 2];
    for (place, p) in places.iter_mut().zip(landmarks.chain(pupils)) {
        *place = Vector2::new(f64::from(p.y), f64::from(p.x));
    }
    Some(places)
}

/// A fit with these `points`, which shows where the camera sees those of the model that are named `projected`.
fn report(fit: &Fit<'_>, points: &Points, projected: &[usize]) -> ModelFit {
    let pose = fit.pose();
    ModelFit {
        success: true,
        error: fit.error() as f32,
        quaternion: rotation::quaternion(fit.rotation()).map(|value| value as f32),
        euler: rotation::euler(fit.rotation()).map(|angle| angle as f32),
        rotation: pose.rotation.into(),
        translation: pose.translation.into(),
        points: points.iter().map(|point| point.cast().into()).collect(),
        projected: projected
            .iter()
            .map(|&index| fit.project(index))
            .map(|place| Point::new(place.y as f32, place.x as f32))
            .collect(),
    }
}

fn no_fit() -> ModelFit {
    ModelFit {
        success: false,
        error: NO_FIT,
        quaternion: [0.0; 4],
        euler: [0.0; 3],
        rotation: [0.0; 3],
        translation: [0.0; 3],
        points: vec![[0.0; 3]; model::POINTS.len()],
        projected: Vec::new(),
    }
}

#[cfg(test)]
mod tests;
