// SPDX-License-Identifier: MPL-2.0
//! A fitted model: the landmarks in its space, and how far it is from them.

use nalgebra::{Matrix3, Rotation3, Vector2, Vector3};

use super::model;
use super::pnp::{Camera, Pose};
use super::rotation;
use crate::face::observation::HeadPose;

/// Depth of an eyeball's centre behind the corners of the eye, in distances of these: `estimate_depth` in `tracker.py`.
const EYEBALL_DEPTH: f64 = 0.385;

/// From the original's axes (down, right, away) to those of [`HeadPose`] (right, up, towards the viewer).
const HOUSE_FROM_CAMERA: Matrix3<f64> = Matrix3::new(0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, -1.0);

/// From a head that is not turned, its left side on the right of the image, to the model, whose x points the other way.
const MODEL_FROM_HEAD: Matrix3<f64> = Matrix3::new(-1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0);

/// Places of the 66 landmarks, then of the pupils, right before left: (row, column), px.
pub type Places = [Vector2<f64>; model::LANDMARKS + 2];

/// Points in the model's space: those of [`Places`], then the centres of the eyeballs, right before left.
pub type Points = [Vector3<f64>; model::POINTS.len()];

/// A model in front of a camera, or behind it.
pub struct Fit<'a> {
    camera: &'a Camera,
    pose: Pose,
    matrix: Matrix3<f64>,
    translation: Vector3<f64>,
    error: f64,
}

impl<'a> Fit<'a> {
    /// The model at `pose`, which was found for the landmarks at `places`, with `count` of them. `None` when it is farther
    /// away from these than can be said.
    pub fn new(camera: &'a Camera, pose: Pose, places: &Places, count: usize) -> Option<Self> {
        let mut fit = Self {
            camera,
            pose,
            matrix: rotation::matrix(&pose.rotation.cast()),
            translation: pose.translation.cast(),
            error: 0.0,
        };
        let measured = model::OUTLINE.chain([model::NOSE]);
        let squares = measured.map(|i| (places[i] - fit.project(i)).norm_squared());
        fit.error = (squares.sum::<f64>() / (2 * count) as f64).sqrt();
        fit.error.is_finite().then_some(fit)
    }

    /// Camera from model.
    pub fn pose(&self) -> &Pose {
        &self.pose
    }

    /// Its rotation.
    pub fn rotation(&self) -> &Matrix3<f64> {
        &self.matrix
    }

    /// Root of the squared distances of the outline and the tip of the nose from the model, per coordinate that the pose was
    /// found with, px: `pnp_error` in `estimate_depth`.
    pub fn error(&self) -> f64 {
        self.error
    }

    /// Where the camera sees a point of the model, (row, column).
    pub fn project(&self, index: usize) -> Vector2<f64> {
        self.camera.project(&self.to_camera(&model::point(index)))
    }

    /// Each landmark where its ray comes as deep as the model's point: `pts_3d` in `estimate_depth`. A point without finite
    /// coordinates is the origin.
    pub fn points(&self, places: &Places) -> Points {
        let mut points = [Vector3::zeros(); model::POINTS.len()];
        for (i, place) in places.iter().take(model::LANDMARKS).enumerate() {
            points[i] = self.at_depth(place, self.to_camera(&model::point(i)).z);
        }
        for (eye, [outer, inner]) in model::EYES.into_iter().enumerate() {
            let pupil = places[model::LANDMARKS + eye];
            let corners = [points[outer], points[inner]];
            let [to_outer, to_inner] = [outer, inner].map(|i| (pupil - places[i]).norm());
            // As in the original, the corner farther away counts more.
            let between = (corners[0] * to_outer + corners[1] * to_inner) / (to_outer + to_inner);
            points[model::LANDMARKS + eye] = self.at_depth(&pupil, self.to_camera(&between).z);
            points[model::LANDMARKS + 2 + eye] = eyeball(corners);
        }
        for point in &mut points {
            if point.iter().any(|coordinate| !coordinate.is_finite()) {
                *point = Vector3::zeros();
            }
        }
        points
    }

    /// The pose for people: in a camera as every engine has it, with y up, looking along −z, that sees the tip of the nose
    /// where this one does. `None` where that is nowhere.
    ///
    /// The original's search starts with the face behind the camera's plane, and ends there. What is behind a camera looks
    /// like its twin in front of it, turned half around the line of sight. That line, in turn, is another one than in the
    /// image, since the principal point is (row w/2, column h/2): the head is turned with it.
    pub fn head_pose(&self, (width, height): (usize, usize)) -> Option<HeadPose> {
        let sight = self.translation.try_normalize(0.0)?;
        let (in_front, side) = match self.translation.z < 0.0 {
            true => (half_turn(&sight) * self.matrix, -1.0),
            false => (self.matrix, 1.0),
        };
        let nose = self.project(model::NOSE);
        let [width, height] = [width, height].map(|side| side as f64);
        let ray = Vector3::new(nose.y - width / 2.0, height / 2.0 - nose.x, -width) / width;
        let turn = Rotation3::rotation_between(&(HOUSE_FROM_CAMERA * sight * side), &ray)?;
        let rotation = turn * HOUSE_FROM_CAMERA * in_front * MODEL_FROM_HEAD;
        let translation = ray * self.translation.z.abs();
        let mut matrix = [[0.0, 0.0, 0.0, 1.0]; 4];
        for (row, values) in matrix.iter_mut().take(3).enumerate() {
            let r = rotation.row(row);
            *values = [r[0], r[1], r[2], translation[row]].map(|value| value as f32);
        }
        let is_finite = matrix.iter().flatten().all(|value| value.is_finite());
        is_finite.then_some(HeadPose { matrix })
    }

    fn to_camera(&self, point: &Vector3<f64>) -> Vector3<f64> {
        self.matrix * point + self.translation
    }

    fn at_depth(&self, place: &Vector2<f64>, depth: f64) -> Vector3<f64> {
        let point = self.camera.unproject(place, depth);
        self.matrix.transpose() * (point - self.translation)
    }
}

/// The rotation by half a turn around a unit vector.
fn half_turn(axis: &Vector3<f64>) -> Matrix3<f64> {
    axis * axis.transpose() * 2.0 - Matrix3::identity()
}

/// The centre of the eyeball between these corners of an eye.
fn eyeball([outer, inner]: [Vector3<f64>; 2]) -> Vector3<f64> {
    let depth = EYEBALL_DEPTH * (outer - inner).norm();
    (outer + inner) / 2.0 - Vector3::z() * depth
}
