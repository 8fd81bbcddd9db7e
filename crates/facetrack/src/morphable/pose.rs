// SPDX-License-Identifier: MPL-2.0
//! The scaled orthographic camera: eos' `orthographic_camera_estimation_linear.hpp`.

use nalgebra::{Matrix3, Matrix3x2, Rotation3, UnitQuaternion, Vector2, Vector3};

use crate::geometry::Point;
use crate::observation::{FitFailure, HeadPose};

/// Length of the sum or the difference of two unit vectors below which they count as parallel: the
/// square root of the precision, since the direction of a shorter one depends on rounding.
const PARALLEL: f64 = 1.5e-8;

/// A scaled orthographic camera: image = origin + scale·(r₀·v, −r₁·v) for the rows r of the
/// rotation and a vertex v.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pose {
    /// Camera from model; x to the image's right, y up, z towards the camera.
    pub(crate) rotation: Matrix3<f64>,
    /// Position of the model's origin in the image, px.
    pub origin: [f64; 2],
    /// Pixels per unit of the model.
    pub scale: f64,
}

impl Pose {
    /// The camera that shows `vertices` at `points`, pair by pair:
    /// `estimate_orthographic_projection_linear`, the affine camera of least squares (algorithm 7.2
    /// in Hartley & Zisserman, "Multiple View Geometry", 2nd edition) and the scaled orthographic
    /// one next to it.
    ///
    /// # Errors
    /// Returns [`FitFailure::Unsolvable`] if the pairs do not determine a camera.
    pub fn estimate(points: &[Point], vertices: &[[f32; 3]]) -> Result<Self, FitFailure> {
        let count = points.len().min(vertices.len()).max(1) as f64;
        let pairs = || std::iter::zip(points, vertices).map(|(p, v)| (place(p), vector(v)));
        let mean_place = pairs().map(|(place, _)| place).sum::<Vector2<_>>() / count;
        let mean_vertex = pairs().map(|(_, vertex)| vertex).sum::<Vector3<_>>() / count;

        let mut scatter = Matrix3::zeros();
        let mut moments = Matrix3x2::zeros();
        for (place, vertex) in pairs() {
            let vertex = vertex - mean_vertex;
            scatter += vertex * vertex.transpose();
            moments += vertex * (place - mean_place).transpose();
        }
        let solver = scatter.cholesky().ok_or(FitFailure::Unsolvable)?;
        let rows = solver.solve(&moments);
        let [right, up] = [0, 1].map(|axis| rows.column(axis).into_owned());
        let scale = (right.norm() + up.norm()) / 2.0;
        let rotation = nearest_rotation(right, up).ok_or(FitFailure::Unsolvable)?;
        // As in the original, the translation of the affine camera, before its rows are made
        // orthogonal.
        let origin = [
            mean_place[0] - right.dot(&mean_vertex),
            -(mean_place[1] - up.dot(&mean_vertex)),
        ];
        let pose = Self {
            rotation,
            origin,
            scale,
        };
        Some(pose)
            .filter(Self::is_finite)
            .ok_or(FitFailure::Unsolvable)
    }

    /// Returns true if every value is finite.
    pub(super) fn is_finite(&self) -> bool {
        let values = self.rotation.iter().chain(&self.origin);
        values.chain([&self.scale]).all(|value| value.is_finite())
    }

    /// Pose of a head with this rotation at `position` in camera space; `None` if a value is not
    /// finite in `f32`.
    pub fn head_at(&self, position: [f64; 3]) -> Option<HeadPose> {
        HeadPose::new(&self.rotation, &position.into())
    }

    /// Returns the position of `vertex` in the image, px.
    pub fn project(&self, vertex: [f32; 3]) -> Point {
        let seen = self.rotation * vector(&vertex);
        Point::new(
            (self.origin[0] + self.scale * seen.x) as f32,
            (self.origin[1] - self.scale * seen.y) as f32,
        )
    }

    /// Derivatives of a vertex' x and y in the image, px, by each of its coordinates.
    pub fn image_from_model(&self) -> [[f32; 3]; 2] {
        [(0, self.scale), (1, -self.scale)].map(|(axis, scale)| {
            [0, 1, 2].map(|column| (scale * self.rotation[(axis, column)]) as f32)
        })
    }

    /// Derivatives of `vertex`' x and y in the image, px, by the camera's parameters: the two
    /// coordinates of the origin, the logarithm of the scale, and a rotation around each of the
    /// image's axes, in radians.
    pub fn derivatives(&self, vertex: [f32; 3]) -> [[f32; 6]; 2] {
        let seen = self.rotation * vector(&vertex) * self.scale;
        let [x, y, z] = [0, 1, 2].map(|axis| seen[axis] as f32);
        [[1.0, 0.0, x, 0.0, z, -y], [0.0, 1.0, -y, z, 0.0, -x]]
    }

    /// Depth of `vertex` behind the model's origin, px.
    pub fn depth(&self, vertex: [f32; 3]) -> f32 {
        (-self.scale * (self.rotation * vector(&vertex)).z) as f32
    }

    /// The rotation as a unit quaternion (x, y, z, w); w is not negative.
    pub fn quaternion(&self) -> [f32; 4] {
        let rotation = Rotation3::from_matrix_unchecked(self.rotation);
        let quaternion = UnitQuaternion::from_rotation_matrix(&rotation).coords;
        let sign = if quaternion.w < 0.0 { -1.0 } else { 1.0 };
        quaternion.map(|part| (sign * part) as f32).into()
    }

    /// Rotation of the face towards the image's right, degrees, as in
    /// [`HeadPose::euler_degrees`](crate::observation::HeadPose::euler_degrees). The first value of `RenderingParameters::get_yaw_pitch_roll`.
    pub fn yaw(&self) -> f64 {
        libm::atan2(self.rotation[(0, 2)], self.rotation[(2, 2)]).to_degrees()
    }
}

/// A point of the image, y up.
fn place(point: &Point) -> Vector2<f64> {
    Vector2::new(f64::from(point.x), -f64::from(point.y))
}

fn vector(vertex: &[f32; 3]) -> Vector3<f64> {
    Vector3::from(vertex.map(f64::from))
}

/// The rotation nearest to the matrix of the normalized rows `right` and `up` and their cross
/// product, which the original takes from a singular value decomposition. Both rows are rotated by
/// the same angle, away from or towards each other, until they are orthogonal. `None` if they are
/// parallel.
fn nearest_rotation(right: Vector3<f64>, up: Vector3<f64>) -> Option<Matrix3<f64>> {
    let (right, up) = (right.try_normalize(0.0)?, up.try_normalize(0.0)?);
    let between = (right + up).try_normalize(PARALLEL)?;
    let across = (right - up).try_normalize(PARALLEL)?;
    let right = (between + across) * std::f64::consts::FRAC_1_SQRT_2;
    let up = (between - across) * std::f64::consts::FRAC_1_SQRT_2;
    Some(Matrix3::from_columns(&[right, up, right.cross(&up)]).transpose())
}

#[cfg(test)]
mod tests {
    use super::super::tests::synthetic::{self, Noise};
    use super::*;
    use crate::observation::HeadPose;

    fn cloud(count: usize) -> Vec<[f32; 3]> {
        let mut noise = Noise(3);
        (0..count)
            .map(|_| [0; 3].map(|_| 60.0 * noise.next()))
            .collect()
    }

    #[test]
    fn a_camera_is_found_by_what_it_shows() {
        let vertices = cloud(20);
        for (yaw, pitch, roll, scale) in [
            (0.0, 0.0, 0.0, 1.0),
            (30.0, -20.0, 10.0, 2.5),
            (-90.0, 5.0, 0.0, 0.1),
            (170.0, 60.0, -120.0, 40.0),
        ] {
            let camera = synthetic::pose(yaw, pitch, roll, scale);
            let points: Vec<_> = vertices.iter().map(|v| camera.project(*v)).collect();
            let found = Pose::estimate(&points, &vertices).unwrap();
            assert!((found.rotation - camera.rotation).norm() < 1e-4);
            assert!((found.scale / scale - 1.0).abs() < 1e-4);
            assert!((found.origin[0] - 320.0).abs() < 1e-2);
            assert!((found.origin[1] - 180.0).abs() < 1e-2);
            assert!((found.yaw() - f64::from(yaw)).abs() < 1e-2);
            let head = HeadPose::new(&found.rotation, &Vector3::new(1.0, 2.0, 3.0));
            let angles = head.unwrap().euler_degrees();
            for (angle, wanted) in [
                (angles.yaw, yaw),
                (angles.pitch, pitch),
                (angles.roll, roll),
            ] {
                assert!((angle - wanted).abs() < 0.02, "{angles:?}");
            }
        }
    }

    #[test]
    fn a_head_turned_to_the_images_right_shows_its_right_side_farther_away_on_the_left() {
        let camera = synthetic::pose(40.0, 0.0, 0.0, 2.0);
        let (nose, right_ear) = ([0.0, 0.0, 50.0], [-70.0, 0.0, 0.0]);
        assert!(camera.project(nose).x > 320.0 + 60.0);
        assert!(camera.project(right_ear).x < 320.0 - 100.0);
        assert!(camera.project([0.0, 10.0, 0.0]).y < 180.0);
        assert!(camera.depth(nose) < 0.0);
        assert_eq!(camera.quaternion()[0], 0.0);
        let [_, y, _, w] = camera.quaternion();
        assert!((y - 20f32.to_radians().sin()).abs() < 1e-6);
        assert!((w - 20f32.to_radians().cos()).abs() < 1e-6);
    }

    #[test]
    fn rows_that_are_almost_parallel_make_a_rotation_or_none() {
        let right = Vector3::new(0.6, 0.64, 0.48);
        for (exponent, is_one) in (1..20).map(|exponent| (exponent, exponent < 8)) {
            let up = -right + Vector3::new(0.8, -0.48, -0.36) * 10f64.powi(-exponent);
            let found = nearest_rotation(right, up);
            assert_eq!(found.is_some(), is_one, "{exponent}");
            if let Some(rotation) = found {
                let identity = rotation * rotation.transpose();
                assert!((identity - Matrix3::identity()).norm() < 1e-7, "{identity}");
            }
        }
    }

    #[test]
    fn rows_that_are_not_at_right_angles_are_turned_alike() {
        let (right, up) = (Vector3::new(3.0, 0.0, 0.0), Vector3::new(0.6, 0.8, 0.0));
        let rotation = nearest_rotation(right, up).unwrap();
        let identity = rotation * rotation.transpose();
        assert!((identity - Matrix3::identity()).norm() < 1e-12);
        assert!((rotation.determinant() - 1.0).abs() < 1e-12);
        let angle = |row: usize, to: Vector3<f64>| rotation.row(row).transpose().dot(&to);
        assert!((angle(0, right.normalize()) - angle(1, up)).abs() < 1e-12);
        // The nearest one: the polar factor of the matrix with these rows and their cross product.
        let rows = Matrix3::from_columns(&[right / 3.0, up, (right / 3.0).cross(&up)]).transpose();
        let svd = rows.svd(true, true);
        let nearest = svd.u.unwrap() * svd.v_t.unwrap();
        assert!((rotation - nearest).norm() < 1e-12);
        assert_eq!(nearest_rotation(right, right), None);
        assert_eq!(nearest_rotation(right, -right), None);
        assert_eq!(nearest_rotation(right, Vector3::zeros()), None);
    }

    #[test]
    fn pairs_that_do_not_say_are_unsolvable() {
        let vertices = cloud(10);
        let points: Vec<_> = (0..10).map(|i| Point::new(i as f32, 7.0)).collect();
        let flat: Vec<_> = vertices.iter().map(|[x, y, _]| [*x, *y, 0.0]).collect();
        for (points, vertices) in [
            (&points[..0], &vertices[..0]),
            (&points[..3], &vertices[..3]),
            (&points, &flat),
            (&[Point::default(); 10], &vertices),
            (&points, &vertices),
        ] {
            let found = Pose::estimate(points, vertices);
            assert_eq!(found, Err(FitFailure::Unsolvable));
        }
    }
}
