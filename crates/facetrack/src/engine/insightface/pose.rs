// SPDX-License-Identifier: MPL-2.0
//! Finds the head pose as `get` in `landmark.py` and `transform.py` do: a 3-D face is fitted to the
//! 68 landmarks, seen by a camera without perspective.
//!
//! InsightFace fits its own mean face. This is OpenSeeFace's face, levelled to match; rotations
//! agree within about 3°.

use nalgebra::{Matrix2x3, Matrix3, RowVector3, Vector2, Vector3};

use crate::engine::openseeface::FACE_POINTS;
use crate::observation::{HeadPose, LandmarkScheme, Landmarks};

/// The landmarks that are fitted, which have the same numbers in both schemes: all but the mouth.
const FITTED: usize = 48;

/// Pitch of OpenSeeFace's face relative to InsightFace's mean face, `meanshape_68.pkl`, radians: 9°
/// upwards, measured by fitting one to the other.
const LEVEL: f64 = 9.0 * std::f64::consts::PI / 180.0;

/// Finds poses.
pub(super) struct PoseFinder {
    /// Points of the face: x to the right of the image, y up, z to the viewer; the unit is about
    /// the width of a face.
    face: Vec<Vector3<f64>>,
    mean: Vector3<f64>,
    /// Inverse of the scatter matrix of the face's points.
    inverse_spread: Matrix3<f64>,
}

impl PoseFinder {
    /// Prepares the face.
    pub(super) fn new() -> Self {
        let (sin, cos) = libm::sincos(LEVEL);
        let level = |[x, y, z]: [f32; 3]| {
            let [x, y, z] = [x, y, z].map(f64::from);
            Vector3::new(-x, cos * y + sin * z, cos * z - sin * y)
        };
        let face: Vec<Vector3<f64>> = FACE_POINTS[..FITTED].iter().map(|p| level(*p)).collect();
        let mean = face.iter().sum::<Vector3<f64>>() / FITTED as f64;
        let spread: Matrix3<f64> = face
            .iter()
            .map(|p| (p - mean) * (p - mean).transpose())
            .sum();
        Self {
            inverse_spread: spread.try_inverse().unwrap_or_default(),
            face,
            mean,
        }
    }

    /// The pose of a head with these landmarks in a frame of `size`, width before height, px. Its
    /// translation is the position of the tip of the nose relative to the centre of the frame, in
    /// units of the face, at depth 0. `None` for another scheme, and for points that determine no
    /// pose.
    pub(super) fn find(&self, landmarks: &Landmarks, size: (usize, usize)) -> Option<HeadPose> {
        if landmarks.scheme != LandmarkScheme::Ibug68 || landmarks.points.len() < FITTED {
            return None;
        }
        let seen = landmarks.points[..FITTED].iter();
        let seen: Vec<Vector2<f64>> = seen
            .map(|p| Vector2::new(f64::from(p.x), -f64::from(p.y)))
            .collect();
        let mean = seen.iter().sum::<Vector2<f64>>() / FITTED as f64;
        let products = std::iter::zip(&seen, &self.face);
        let products: Matrix2x3<f64> = products
            .map(|(seen, face)| (seen - mean) * (face - self.mean).transpose())
            .sum();
        let camera = products * self.inverse_spread;
        let scale = (camera.row(0).norm() + camera.row(1).norm()) / 2.0;
        let [right, up] = upright(&camera)?;
        let origin = mean - camera * self.mean;
        let middle = Vector2::new(size.0 as f64 / 2.0, -(size.1 as f64) / 2.0);
        let translation = (origin - middle) / scale;
        let rotation = Matrix3::from_rows(&[right, up, right.cross(&up)]);
        HeadPose::new(&rotation, &translation.push(0.0))
    }
}

/// The directions of a camera's rows, both turned by the same angle so that they are at right
/// angles. `None` for rows without a direction.
fn upright(camera: &Matrix2x3<f64>) -> Option<[RowVector3<f64>; 2]> {
    let direction = |v: RowVector3<f64>| v.try_normalize(f64::MIN_POSITIVE);
    let right = direction(camera.row(0).into_owned())?;
    let up = direction(camera.row(1).into_owned())?;
    let (sum, difference) = (direction(right + up)?, direction(right - up)?);
    Some([direction(sum + difference)?, direction(sum - difference)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Landmark;

    /// The face turned by yaw, pitch and roll in degrees, as [`HeadPose::euler_degrees`] reads
    /// them, 200 px wide and with its origin at (300, 200).
    fn landmarks([yaw, pitch, roll]: [f64; 3]) -> Landmarks {
        let around = |axis: Vector3<f64>, degrees: f64| {
            nalgebra::Rotation3::new(axis * degrees.to_radians())
        };
        let turn =
            around(Vector3::y(), yaw) * around(Vector3::x(), pitch) * around(Vector3::z(), roll);
        let mut points: Vec<Landmark> = PoseFinder::new()
            .face
            .iter()
            .map(|p| turn * p * 200.0)
            .map(|p| Landmark {
                x: 300.0 + p.x as f32,
                y: 200.0 - p.y as f32,
                z: 0.0,
            })
            .collect();
        points.resize(68, Landmark::default());
        Landmarks::new(LandmarkScheme::Ibug68, points)
    }

    #[test]
    fn the_pose_of_a_turned_face_is_its_turn() {
        for angles in [
            [0.0, 0.0, 0.0],
            [30.0, 0.0, 0.0],
            [0.0, 20.0, 0.0],
            [0.0, 0.0, -45.0],
            [-40.0, -15.0, 10.0],
        ] {
            let pose = PoseFinder::new()
                .find(&landmarks(angles), (640, 480))
                .unwrap();
            let found = pose.euler_degrees();
            let found = [found.yaw, found.pitch, found.roll];
            for (found, angle) in found.into_iter().zip(angles) {
                assert!(
                    (found - angle as f32).abs() < 0.01,
                    "{found} is not {angle}"
                );
            }
            let [x, y, z] = [0, 1, 2].map(|row| pose.matrix[row][3]);
            assert!((x - (300.0 - 320.0) / 200.0).abs() < 1e-4, "{x}");
            assert!((y - (240.0 - 200.0) / 200.0).abs() < 1e-4, "{y}");
            assert_eq!(z, 0.0);
        }
    }

    #[test]
    fn points_that_show_no_face_have_no_pose() {
        let finder = PoseFinder::new();
        let size = (640, 480);
        let flat = Landmarks::new(LandmarkScheme::Ibug68, vec![Landmark::default(); 68]);
        assert_eq!(finder.find(&flat, size), None);
        let mut broken = landmarks([0.0; 3]);
        broken.points[3].x = f32::NAN;
        assert_eq!(finder.find(&broken, size), None);
        broken.points.truncate(20);
        assert_eq!(finder.find(&broken, size), None);
        let mut other = landmarks([0.0; 3]);
        other.scheme = LandmarkScheme::InsightFace106;
        assert_eq!(finder.find(&other, size), None);
    }
}
