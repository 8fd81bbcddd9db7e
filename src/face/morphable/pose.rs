// SPDX-License-Identifier: MPL-2.0
//! The scaled orthographic camera: eos' `orthographic_camera_estimation_linear.hpp`.

use nalgebra::{Matrix3, Rotation3, UnitQuaternion, Vector3};

use crate::face::geometry::Point;
use crate::face::observation::{FitFailure, HeadPose};

/// A scaled orthographic camera: image = origin + scale·(r₀·v, −r₁·v) for the rows r of the rotation and a vertex v.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pose {
    /// Camera from model; x to the image's right, y up, z towards the camera.
    pub rotation: Matrix3<f64>,
    /// Where the model's origin is in the image, px.
    pub origin: [f64; 2],
    /// Pixels per unit of the model.
    pub scale: f64,
}

impl Pose {
    /// The camera that shows `vertices` at `points`, pair by pair: `estimate_orthographic_projection_linear`, the affine
    /// camera of least squares (algorithm 7.2 in Hartley & Zisserman, "Multiple View Geometry", 2nd edition) and the scaled
    /// orthographic one next to it.
    ///
    /// # Errors
    /// [`FitFailure::Unsolvable`] where the pairs do not say.
    pub fn estimate(points: &[Point], vertices: &[[f32; 3]]) -> Result<Self, FitFailure> {
        let count = points.len().min(vertices.len()).max(1) as f64;
        let pairs = || std::iter::zip(points, vertices).map(|(p, v)| (place(p), vector(v)));
        let (mean_place, mean_vertex) = pairs().fold(
            ([0.0; 2], Vector3::zeros()),
            |([x, y], sum), (place, vertex)| ([x + place[0], y + place[1]], sum + vertex),
        );
        let (mean_place, mean_vertex) = (mean_place.map(|sum| sum / count), mean_vertex / count);

        let mut scatter = Matrix3::zeros();
        let mut moments = [Vector3::zeros(); 2];
        for (place, vertex) in pairs() {
            let vertex = vertex - mean_vertex;
            scatter += vertex * vertex.transpose();
            for axis in 0..2 {
                moments[axis] += vertex * (place[axis] - mean_place[axis]);
            }
        }
        let solver = scatter.cholesky().ok_or(FitFailure::Unsolvable)?;
        let [right, up] = moments.map(|moment| solver.solve(&moment));
        let scale = (right.norm() + up.norm()) / 2.0;
        let rotation = nearest_rotation(right, up).ok_or(FitFailure::Unsolvable)?;
        // The affine camera's own translation, as in the original: not that of the mended rows.
        let origin = [
            mean_place[0] - right.dot(&mean_vertex),
            -(mean_place[1] - up.dot(&mean_vertex)),
        ];
        let pose = Self {
            rotation,
            origin,
            scale,
        };
        pose.is_finite()
            .then_some(pose)
            .ok_or(FitFailure::Unsolvable)
    }

    fn is_finite(&self) -> bool {
        let values = self.rotation.iter().chain(&self.origin);
        values.chain([&self.scale]).all(|value| value.is_finite())
    }

    /// Where `vertex` is in the image, px.
    pub fn project(&self, vertex: [f32; 3]) -> Point {
        let seen = self.rotation * vector(&vertex);
        Point::new(
            (self.origin[0] + self.scale * seen.x) as f32,
            (self.origin[1] - self.scale * seen.y) as f32,
        )
    }

    /// How many px a vertex moves rightward and downward in the image with each of its coordinates.
    pub fn image_from_model(&self) -> [[f32; 3]; 2] {
        [(0, self.scale), (1, -self.scale)].map(|(axis, scale)| {
            [0, 1, 2].map(|column| (scale * self.rotation[(axis, column)]) as f32)
        })
    }

    /// How much farther from the camera than the model's origin `vertex` is, px.
    pub fn depth(&self, vertex: [f32; 3]) -> f32 {
        (-self.scale * (self.rotation * vector(&vertex)).z) as f32
    }

    /// The rotation as a unit quaternion (x, y, z, w) with w from 0 on.
    pub fn quaternion(&self) -> [f32; 4] {
        let rotation = Rotation3::from_matrix_unchecked(self.rotation);
        let quaternion = UnitQuaternion::from_rotation_matrix(&rotation).coords;
        let sign = if quaternion.w < 0.0 { -1.0 } else { 1.0 };
        quaternion.map(|part| (sign * part) as f32).into()
    }

    /// Degrees by which the face is turned to the image's right, as [`HeadPose::euler_degrees`] has it: the first of
    /// `RenderingParameters::get_yaw_pitch_roll`.
    pub fn yaw(&self) -> f64 {
        self.rotation[(0, 2)]
            .atan2(self.rotation[(2, 2)])
            .to_degrees()
    }

    /// The rotation of a head, at `translation`.
    pub fn head(&self, translation: [f32; 3]) -> HeadPose {
        let row = |axis: usize| {
            let [x, y, z] = [0, 1, 2].map(|column| self.rotation[(axis, column)] as f32);
            [x, y, z, translation[axis]]
        };
        HeadPose {
            matrix: [row(0), row(1), row(2), [0.0, 0.0, 0.0, 1.0]],
        }
    }
}

/// A point of the image with y upward.
fn place(point: &Point) -> [f64; 2] {
    [f64::from(point.x), -f64::from(point.y)]
}

fn vector(vertex: &[f32; 3]) -> Vector3<f64> {
    Vector3::from(vertex.map(f64::from))
}

/// The rotation next to the matrix of the rows `right`, `up`, both of length 1, and their cross product, which the original
/// takes from a singular value decomposition. Both rows are turned by the same angle, away from or towards one another, until
/// they are at right angles; the third then follows. `None` where they are parallel.
fn nearest_rotation(right: Vector3<f64>, up: Vector3<f64>) -> Option<Matrix3<f64>> {
    let (right, up) = (right.try_normalize(0.0)?, up.try_normalize(0.0)?);
    let between = (right + up).try_normalize(f64::EPSILON)?;
    let across = (right - up).try_normalize(f64::EPSILON)?;
    let right = (between + across) * std::f64::consts::FRAC_1_SQRT_2;
    let up = (between - across) * std::f64::consts::FRAC_1_SQRT_2;
    Some(Matrix3::from_columns(&[right, up, right.cross(&up)]).transpose())
}
