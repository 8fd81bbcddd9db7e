// SPDX-License-Identifier: MPL-2.0
//! Derives values from a face's landmarks, and keeps the state of each face: its pose in the
//! previous frame and its range of expression.
//!
//! This follows `estimate_depth` and `adjust_3d` in `tracker.py`, without the adaptation of the
//! model, which `facetracker.py` does not do by default.

mod blendshapes;
pub(crate) mod calibration;
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
use expression::{Expression, Lesson};
use fit::{Fit, Places, Points};
pub(crate) use model::POINTS as FACE_POINTS;
use normalize::normalized;
use pnp::Camera;
use search::{MAX_ERROR, Search};
use slots::Slots;

/// Minimum confidence of a face for its features to be updated: `adjust_3d`.
const MIN_CONFIDENCE: f32 = 0.4;

/// Error that is reported without a fit, px: `estimate_depth`.
const NO_FIT: f32 = 99_999.0;

/// Faces by identity.
pub struct Faces {
    slots: Slots,
    max_faces: usize,
    running_mode: RunningMode,
    /// Landmarks that the pose is solved with.
    contour: &'static [usize],
    lesson: Lesson,
    /// Points of the model whose projections are reported.
    projected: Vec<usize>,
    deriver: Deriver,
}

impl Faces {
    /// Creates the state, without faces. Landmarks come from a network with this contract.
    pub fn new(config: &EngineConfig, contract: &LandmarkContract) -> Self {
        let max_faces = config.max_faces.unwrap_or(MAX_FACES).max(1);
        let is_fine = contract.points == LandmarkContract::FULL.points;
        let contour: &[_] = if is_fine {
            &model::CONTOUR
        } else {
            &model::COARSE_CONTOUR
        };
        Self {
            slots: Slots::new(max_faces, Vec::new()),
            max_faces,
            running_mode: config.running_mode,
            contour,
            lesson: Lesson {
                time: config.openseeface.calibration_time,
                is_fine,
            },
            projected: match config.openseeface.pnp_points {
                PnpPoints::None => Vec::new(),
                PnpPoints::Fitted => contour.to_vec(),
                PnpPoints::All => (0..model::LANDMARKS).collect(),
            },
            deriver: Deriver::new(config.jaw_open_scale),
        }
    }

    /// Fits the model, and adds pose and features to `face`.
    fn fit(&mut self, face: &mut Observation, places: &Places, context: &Context) -> ModelFit {
        let camera = Camera::new(context.frame_size);
        let slot = self.slots.take(context.id, place(face));
        let Some(fit) = slot.search.fit(&camera, places, self.contour) else {
            return no_fit();
        };
        let mut points = fit.points(places);
        if fit.error <= MAX_ERROR {
            face.pose = fit.head_pose(context.frame_size);
            let is_sure = face.confidence.is_none_or(|c| c >= MIN_CONFIDENCE);
            if let Some(normalized) = normalized(&points).filter(|_| is_sure) {
                points = normalized;
                // A range of expression needs several frames.
                if self.running_mode == RunningMode::Video {
                    face.features = slot.expression.update(&points, context.time, &self.lesson);
                }
            }
        }
        report(&fit, &points, &self.projected)
    }
}

impl Completer for Faces {
    fn begin_frame(&mut self, faces: &[Observation]) {
        let places: Vec<_> = faces.iter().map(place).collect();
        self.slots.begin_frame(&places);
        if self.running_mode == RunningMode::Image {
            for slot in &mut self.slots.all {
                slot.search = Search::in_picture();
            }
        }
    }

    /// Completes a face. Also sets the bounding box to the extent of the landmarks.
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
        for slot in &mut self.slots.all {
            slot.search = Search::default();
            slot.expression.stop_the_clock();
        }
    }

    fn calibration(&self) -> Option<String> {
        let expressions = self.slots.all.iter().map(|slot| &slot.expression);
        Some(calibration::write(expressions))
    }

    /// Takes the first faces of the calibration, as many as are kept.
    fn set_calibration(&mut self, calibration: &str) -> Result<(), EngineError> {
        let learned = calibration::read(calibration)
            .map_err(|reason| EngineError::config("calibration", reason))?;
        self.slots = Slots::new(self.max_faces, learned);
        Ok(())
    }

    fn reset_calibration(&mut self) {
        for slot in &mut self.slots.all {
            slot.expression = Expression::default();
        }
    }
}

/// Position of a face: the mean of its landmarks, as in `assign_face_info`.
fn place(face: &Observation) -> Point {
    match &face.landmarks {
        Some(landmarks) => landmarks.mean(),
        None => face.bbox.center(),
    }
}

/// Landmarks and pupils as (row, column); `None` for landmarks of another scheme. A pupil that was
/// not measured is at the corner of the image, as in the original.
fn places(face: &Observation) -> Option<Places> {
    let landmarks = face.landmarks.as_ref()?;
    if landmarks.points.len() != model::LANDMARKS {
        return None;
    }
    let pupils = face.gaze.map_or([Point::default(); 2], |gaze| {
        [gaze.right, gaze.left].map(|pupil| pupil.position)
    });
    Some(std::array::from_fn(|i| {
        let Point { x, y } = match landmarks.points.get(i) {
            Some(landmark) => Point::new(landmark.x, landmark.y),
            None => pupils[i - model::LANDMARKS],
        };
        Vector2::new(f64::from(y), f64::from(x))
    }))
}

/// Converts a fit with these `points`, and with the projections of the model's points `projected`.
fn report(fit: &Fit<'_>, points: &Points, projected: &[usize]) -> ModelFit {
    ModelFit {
        success: true,
        error: fit.error as f32,
        quaternion: rotation::quaternion(&fit.rotation).map(|value| value as f32),
        euler: rotation::euler(&fit.rotation).map(|angle| angle as f32),
        rotation: fit.pose.rotation.into(),
        translation: fit.pose.translation.into(),
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
        error: NO_FIT,
        points: vec![[0.0; 3]; model::POINTS.len()],
        ..ModelFit::default()
    }
}

#[cfg(test)]
mod tests;
