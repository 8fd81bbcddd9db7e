// SPDX-License-Identifier: MPL-2.0
//! Converts rotations between matrix, axis and angle, quaternion, and angles.

use nalgebra::{Matrix3, Vector2, Vector3};

/// Smaller angles and components count as 0: `DBL_EPSILON` in OpenCV's `Rodrigues` and
/// `RQDecomp3x3`.
const EPSILON: f64 = f64::EPSILON;

/// The matrix of a rotation around `vector` by its length in radians (Rodrigues' formula).
pub(super) fn matrix(vector: &Vector3<f64>) -> Matrix3<f64> {
    let angle = vector.norm();
    if angle < EPSILON {
        return Matrix3::identity();
    }
    let axis = vector / angle;
    let (sin, cos) = libm::sincos(angle);
    let (along, turned) = (axis * axis.transpose(), axis.cross_matrix());
    Matrix3::identity() * cos + along * (1.0 - cos) + turned * sin
}

/// Derivatives of [`matrix`] by the components of the vector.
pub(super) fn derivatives(vector: &Vector3<f64>) -> [Matrix3<f64>; 3] {
    let units = [Vector3::x(), Vector3::y(), Vector3::z()];
    let angle = vector.norm();
    if angle < EPSILON {
        return units.map(|unit| unit.cross_matrix());
    }
    let axis = vector / angle;
    let (sin, cos) = libm::sincos(angle);
    let (outer, turn) = (axis * axis.transpose(), axis.cross_matrix());
    let (per_outer, per_turn) = ((1.0 - cos) / angle, sin / angle);
    units.map(|unit| {
        let along = axis.dot(&unit);
        Matrix3::identity() * (-sin * along)
            + outer * ((sin - 2.0 * per_outer) * along)
            + (unit * axis.transpose() + axis * unit.transpose()) * per_outer
            + turn * ((cos - per_turn) * along)
            + unit.cross_matrix() * per_turn
    })
}

/// The inverse rotation as a quaternion (x, y, z, w): `matrix_to_quaternion` in `tracker.py`.
/// Receivers of OpenSeeFace's data expect the inverse.
pub(super) fn quaternion(m: &Matrix3<f64>) -> [f64; 4] {
    let (xx, yy, zz) = (m[(0, 0)], m[(1, 1)], m[(2, 2)]);
    let sum = |a, b| m[(a, b)] + m[(b, a)];
    let difference = |a, b| m[(a, b)] - m[(b, a)];
    // The largest of the four components comes from the diagonal.
    let (square, components) = if zz < 0.0 && xx > yy {
        let x = 1.0 + xx - yy - zz;
        (x, [x, sum(0, 1), sum(2, 0), difference(1, 2)])
    } else if zz < 0.0 {
        let y = 1.0 - xx + yy - zz;
        (y, [sum(0, 1), y, sum(1, 2), difference(2, 0)])
    } else if xx < -yy {
        let z = 1.0 - xx - yy + zz;
        (z, [sum(2, 0), sum(1, 2), z, difference(0, 1)])
    } else {
        let w = 1.0 + xx + yy + zz;
        (w, [difference(1, 2), difference(2, 0), difference(0, 1), w])
    };
    components.map(|component| component * 0.5 / square.sqrt())
}

/// Returns cosine and sine of the rotation that turns (sin, cos) to (0, length); no rotation if
/// `sin` is 0. The negative is the rotation by another half turn.
fn removing(sin: f64, cos: f64) -> Vector2<f64> {
    if sin.abs() <= EPSILON {
        return Vector2::x();
    }
    Vector2::new(cos, sin) / libm::hypot(sin, cos)
}

fn inverse(rotation: Vector2<f64>) -> Vector2<f64> {
    Vector2::new(rotation.x, -rotation.y)
}

/// The angle of a rotation in a plane.
fn degrees(rotation: Vector2<f64>) -> f64 {
    let angle = libm::acos(rotation.x.clamp(-1.0, 1.0)).to_degrees();
    if rotation.y >= 0.0 { angle } else { -angle }
}

/// The rotation as angles around x, y and z in degrees, as in OpenCV's `RQDecomp3x3`.
pub(super) fn euler(m: &Matrix3<f64>) -> [f64; 3] {
    let mut x = removing(m[(2, 1)], m[(2, 2)]);
    let (c, s) = (x.x, x.y);
    let m = m * Matrix3::new(1.0, 0.0, 0.0, 0.0, c, s, 0.0, -s, c);

    let mut y = removing(-m[(2, 0)], m[(2, 2)]);
    let (c, s) = (y.x, y.y);
    let m = m * Matrix3::new(c, 0.0, -s, 0.0, 1.0, 0.0, s, 0.0, c);

    let mut z = removing(m[(1, 0)], m[(1, 1)]);
    let (c, s) = (z.x, z.y);
    let m = m * Matrix3::new(c, s, 0.0, -s, c, 0.0, 0.0, 0.0, 1.0);

    // The remaining matrix is upper triangular. Its first two diagonal elements are made positive.
    match (m[(0, 0)] < 0.0, m[(1, 1)] < 0.0) {
        (true, true) => z = -z,
        (true, false) => (y, z) = (-y, inverse(z)),
        (false, true) => (x, y, z) = (-x, inverse(y), inverse(z)),
        (false, false) => {}
    }
    [x, y, z].map(degrees)
}

#[cfg(test)]
mod tests {
    use super::super::golden::{Golden, assert_near};
    use super::*;

    #[test]
    fn vectors_become_matrices_as_opencv_has_it() {
        for case in Golden::read().rotations {
            let name = format!("{:?}", case.vector);
            let vector = Vector3::from(case.vector);
            let (got, want) = (matrix(&vector).transpose(), case.matrix.concat());
            assert_near(&name, got.as_slice(), want, 1e-11);
            for (derivative, want) in derivatives(&vector).iter().zip(case.derivatives) {
                assert_near(&name, derivative.transpose().as_slice(), want, 1e-11);
            }
        }
    }

    #[test]
    fn matrices_become_quaternions_as_receivers_expect_them() {
        for case in Golden::read().rotations {
            let got = quaternion(&matrix(&Vector3::from(case.vector)));
            assert_near(&format!("{:?}", case.vector), got, case.quaternion, 2e-6);
        }
    }

    #[test]
    fn matrices_become_angles_as_opencv_has_it() {
        for case in Golden::read().rotations {
            let got = euler(&matrix(&Vector3::from(case.vector)));
            assert_near(&format!("{:?}", case.vector), got, case.euler, 2e-6);
        }
    }

    #[test]
    fn matrices_without_a_rotation_in_a_plane_have_angles_too() {
        for (diagonal, want) in [
            ([1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
            ([1.0, -1.0, -1.0], [-180.0, 0.0, 0.0]),
            ([-1.0, 1.0, -1.0], [0.0, -180.0, 0.0]),
            ([-1.0, -1.0, 1.0], [0.0, 0.0, -180.0]),
        ] {
            let matrix = Matrix3::from_diagonal(&Vector3::from(diagonal));
            assert_eq!(
                euler(&matrix).map(f64::abs),
                want.map(f64::abs),
                "{diagonal:?}"
            );
        }
    }
}
