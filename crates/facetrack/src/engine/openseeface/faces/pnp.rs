// SPDX-License-Identifier: MPL-2.0
//! Finds the pose at which a camera sees a model's points at given positions.
//!
//! This follows OpenCV's `solvePnP` (`SOLVEPNP_ITERATIVE` with a first guess) of version 4.12 step
//! by step. The original starts it with the model's origin at the camera, where the equations are
//! singular. The steps determine where the search goes from there, and whether it gets stuck
//! (`findExtrinsicCameraParams2` in `calibration_base.cpp`, `CvLevMarq` in `compat_ptsetreg.cpp`).

use std::f32::consts::{FRAC_1_SQRT_2, PI};

use nalgebra::{Matrix2x6, Matrix3, Matrix6, Vector2, Vector3, Vector6};

use super::least_norm;
use super::rotation;

/// Maximum number of steps.
const MAX_STEPS: usize = 20;

/// A step with a smaller relative length is the last one.
const SMALL_STEP: f64 = f32::EPSILON as f64;

/// Exponents of 10 of the damping: the first, the minimum and the maximum.
const FIRST_DAMPING: i32 = -3;
const MIN_DAMPING: i32 = -16;
const MAX_DAMPING: i32 = 16;

/// A rotation and a translation, in single precision as the original keeps them from frame to
/// frame. The default is at the camera, without rotation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Pose {
    /// Rotation: axis times angle, radians.
    pub rotation: Vector3<f32>,
    /// Translation in units of the model.
    pub translation: Vector3<f32>,
}

impl Pose {
    /// A head that faces the camera at the typical distance of a webcam, behind the camera, where
    /// the original finds heads.
    pub(super) fn facing() -> Self {
        let half_turn = PI * FRAC_1_SQRT_2;
        Self {
            rotation: Vector3::new(-half_turn, -half_turn, 0.0),
            translation: Vector3::new(0.0, 0.0, -8.0),
        }
    }

    fn parameters(&self) -> Vector6<f64> {
        let (r, t) = (self.rotation.cast(), self.translation.cast());
        Vector6::new(r.x, r.y, r.z, t.x, t.y, t.z)
    }

    /// Converts parameters to a pose; `None` if a value is not finite.
    fn from_parameters(parameters: &Vector6<f64>) -> Option<Self> {
        let parameters = parameters.map(|value| value as f32);
        let is_finite = parameters.iter().all(|value| value.is_finite());
        is_finite.then(|| Self {
            rotation: parameters.fixed_rows::<3>(0).into_owned(),
            translation: parameters.fixed_rows::<3>(3).into_owned(),
        })
    }
}

/// The original's camera: `camera` in `Tracker.__init__`.
///
/// Its first axis points down the image and its second to the right, so that a point is (row,
/// column). The coordinates of the principal point are not swapped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Camera {
    focal_length: f64,
    principal: Vector2<f64>,
}

impl Camera {
    /// The camera of a frame of this width and height, px.
    pub(super) fn new((width, height): (usize, usize)) -> Self {
        let (width, height) = (width as f64, height as f64);
        Self {
            focal_length: width,
            principal: Vector2::new(width, height) / 2.0,
        }
    }

    /// Projection of a point, (row, column).
    pub(super) fn project(&self, point: &Vector3<f64>) -> Vector2<f64> {
        point.xy() * inverse_depth(point) * self.focal_length + self.principal
    }

    /// Returns the point at `depth` that the camera sees at (row, column).
    pub(super) fn unproject(&self, image: &Vector2<f64>, depth: f64) -> Vector3<f64> {
        let ray = (image - self.principal) / self.focal_length;
        (ray * depth).push(depth)
    }
}

/// Inverse of a point's depth; 1 for a point in the plane of the camera, as in `projectPoints`.
fn inverse_depth(point: &Vector3<f64>) -> f64 {
    if point.z == 0.0 { 1.0 } else { 1.0 / point.z }
}

/// A point of a model, in its units, and its position in the image, (row, column), px.
pub(super) type Correspondence = (Vector3<f64>, Vector2<f64>);

/// Finds the pose for which `camera` sees the points best, starting with `guess`; `None` if a value
/// becomes infinite or NaN. The result may be a local minimum far from the points.
pub(super) fn solve(points: &[Correspondence], camera: &Camera, guess: &Pose) -> Option<Pose> {
    let equations = Equations { points, camera };
    let mut parameters = guess.parameters();
    let mut least_error = equations.error(&parameters);
    let mut damping = FIRST_DAMPING;
    for _ in 0..MAX_STEPS {
        let start = parameters;
        let normal = equations.normal(&start);
        let error = loop {
            parameters = start - normal.step(damping);
            let error = equations.error(&parameters);
            let is_worse = error > least_error;
            damping += i32::from(is_worse);
            if !is_worse || damping > MAX_DAMPING {
                break error;
            }
        };
        damping = (damping - 1).max(MIN_DAMPING);
        least_error = error;
        if (parameters - start).norm() / (start.norm() + f64::EPSILON) < SMALL_STEP {
            break;
        }
    }
    Pose::from_parameters(&parameters)
}

/// The distances that are minimised.
struct Equations<'a> {
    points: &'a [Correspondence],
    camera: &'a Camera,
}

impl Equations<'_> {
    /// Root of the sum of squared distances, px.
    fn error(&self, parameters: &Vector6<f64>) -> f64 {
        let (matrix, translation) = transform(parameters);
        let square = |(model, image): &Correspondence| {
            let seen = self.camera.project(&(matrix * model + translation));
            (seen - image).norm_squared()
        };
        self.points.iter().map(square).sum::<f64>().sqrt()
    }

    /// The equations at `parameters`, linearised and squared.
    fn normal(&self, parameters: &Vector6<f64>) -> Normal {
        let (matrix, translation) = transform(parameters);
        let derivatives = rotation::derivatives(&parameters.fixed_rows::<3>(0).into_owned());
        let mut normal = Normal::default();
        for (model, image) in self.points {
            let point = matrix * model + translation;
            let turned = Matrix3::from_columns(&derivatives.map(|derivative| derivative * model));
            let jacobian = self.jacobian(&point, &turned);
            normal.matrix += jacobian.transpose() * jacobian;
            normal.right += jacobian.transpose() * (self.camera.project(&point) - image);
        }
        normal
    }

    /// Derivatives of the projection by the parameters. `turned` are the point's derivatives by the
    /// first three.
    fn jacobian(&self, point: &Vector3<f64>, turned: &Matrix3<f64>) -> Matrix2x6<f64> {
        let nearness = inverse_depth(point);
        let seen = point.xy() * nearness;
        let scale = nearness * self.camera.focal_length;
        let mut jacobian = Matrix2x6::zeros();
        let by_place = nalgebra::Matrix2x3::new(1.0, 0.0, -seen.x, 0.0, 1.0, -seen.y) * scale;
        jacobian
            .fixed_columns_mut::<3>(0)
            .copy_from(&(by_place * turned));
        jacobian.fixed_columns_mut::<3>(3).copy_from(&by_place);
        jacobian
    }
}

fn transform(parameters: &Vector6<f64>) -> (Matrix3<f64>, Vector3<f64>) {
    let rotation = parameters.fixed_rows::<3>(0).into_owned();
    let translation = parameters.fixed_rows::<3>(3).into_owned();
    (rotation::matrix(&rotation), translation)
}

/// Normal equations of a step.
#[derive(Default)]
struct Normal {
    matrix: Matrix6<f64>,
    right: Vector6<f64>,
}

impl Normal {
    /// The step with a damping of ten to the power of `exponent`.
    fn step(&self, exponent: i32) -> Vector6<f64> {
        let damping = libm::exp10(f64::from(exponent));
        let mut matrix = self.matrix;
        for i in 0..6 {
            matrix[(i, i)] *= 1.0 + damping;
        }
        least_norm::solve(&matrix, &self.right)
    }
}
