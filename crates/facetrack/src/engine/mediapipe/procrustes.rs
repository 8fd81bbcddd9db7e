// SPDX-License-Identifier: MPL-2.0
//! The similarity transform that lays one set of points on another.

use nalgebra::{Matrix3, SVD, Vector3};

/// A point in two spaces, and its weight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Correspondence {
    /// Position in the first space.
    pub source: Vector3<f64>,
    /// Position in the second space.
    pub target: Vector3<f64>,
    /// Weight, at least 0.
    pub weight: f64,
}

/// Transform that rotates, scales and translates.
#[derive(Debug, Clone, Copy)]
pub(super) struct Similarity {
    /// Rotation without reflection.
    pub rotation: Matrix3<f64>,
    /// Scale, more than 0.
    pub scale: f64,
    /// Translation, which is applied last.
    pub translation: Vector3<f64>,
}

/// Sums, norms and scales up to this count as 0: `kAbsoluteErrorEps` in MediaPipe's
/// `procrustes_solver.cc`.
const EPSILON: f64 = 1e-9;

/// Maximum number of iterations of the singular value decomposition; a 3×3 matrix needs only a few.
const MAX_ITERATIONS: usize = 100;

/// The transform with the least weighted sum of squared distances; `None` when the points do not
/// determine one.
///
/// Akca: "Generalized Procrustes analysis and its applications in photogrammetry", 2003, section
/// 2.4, without reflections (Gower, Dijksterhuis: "Procrustes Problems", section 4.6).
pub(super) fn solve(points: &[Correspondence]) -> Option<Similarity> {
    let total: f64 = points.iter().map(|p| p.weight).sum();
    if total.is_nan() || total <= EPSILON {
        return None;
    }
    let mean = |place: fn(&Correspondence) -> Vector3<f64>| {
        let weighted = points.iter().map(|p| place(p) * p.weight);
        weighted.sum::<Vector3<f64>>() / total
    };
    let (source_center, target_center) = (mean(|p| p.source), mean(|p| p.target));

    let mut covariance = Matrix3::zeros();
    let mut spread = 0.0;
    for p in points {
        let source = p.source - source_center;
        covariance += (p.target - target_center) * source.transpose() * p.weight;
        spread += source.norm_squared() * p.weight;
    }
    let rotation = nearest_rotation(covariance)?;
    let scale = (rotation.transpose() * covariance).trace() / spread;
    if !(spread > EPSILON && scale > EPSILON && scale.is_finite()) {
        return None;
    }
    Some(Similarity {
        rotation,
        scale,
        translation: target_center - rotation * source_center * scale,
    })
}

fn nearest_rotation(covariance: Matrix3<f64>) -> Option<Matrix3<f64>> {
    let norm = covariance.norm();
    if !(norm > EPSILON && norm.is_finite()) {
        return None;
    }
    let svd = SVD::try_new(covariance, true, true, f64::EPSILON, MAX_ITERATIONS)?;
    let (mut u, v_t) = (svd.u?, svd.v_t?);
    if u.determinant() * v_t.determinant() < 0.0 {
        u.column_mut(2).neg_mut();
    }
    Some(u * v_t)
}

#[cfg(test)]
mod tests {
    use nalgebra::Rotation3;

    use super::*;

    fn cloud() -> Vec<Vector3<f64>> {
        vec![
            Vector3::new(0.0, 0.0, 0.0),
            Vector3::new(3.0, 0.0, 1.0),
            Vector3::new(0.0, 2.0, -1.0),
            Vector3::new(1.0, -2.0, 4.0),
            Vector3::new(-2.0, 1.0, 0.5),
        ]
    }

    fn pairs(target: impl Fn(&Vector3<f64>) -> Vector3<f64>) -> Vec<Correspondence> {
        cloud()
            .into_iter()
            .enumerate()
            .map(|(i, source)| Correspondence {
                source,
                target: target(&source),
                weight: 0.1 + i as f64,
            })
            .collect()
    }

    #[test]
    fn a_known_transform_is_found() {
        for (angles, scale) in [
            ((0.0, 0.0, 0.0), 1.0),
            ((0.4, -0.7, 1.9), 2.5),
            ((3.1, 0.2, -2.0), 0.01),
        ] {
            let rotation = Rotation3::from_euler_angles(angles.0, angles.1, angles.2);
            let translation = Vector3::new(7.0, -3.0, 50.0);
            let found = solve(&pairs(|p| rotation * p * scale + translation)).unwrap();
            assert!(
                (found.rotation - rotation.matrix()).norm() < 1e-9,
                "{angles:?}"
            );
            assert!((found.scale - scale).abs() < 1e-9, "{angles:?}");
            assert!(
                (found.translation - translation).norm() < 1e-9,
                "{angles:?}"
            );
        }
    }

    #[test]
    fn points_without_weight_do_not_count() {
        let mut points = pairs(|p| *p);
        points.push(Correspondence {
            source: Vector3::new(100.0, 0.0, 0.0),
            target: Vector3::new(0.0, -900.0, 3.0),
            weight: 0.0,
        });
        let found = solve(&points).unwrap();
        assert!((found.rotation - Matrix3::identity()).norm() < 1e-9);
    }

    #[test]
    fn a_mirror_image_is_answered_by_a_rotation() {
        let found = solve(&pairs(|p| Vector3::new(-p.x, p.y, p.z))).unwrap();
        assert!((found.rotation.determinant() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn undetermined_transforms_are_none() {
        assert!(solve(&[]).is_none(), "no points");
        assert!(solve(&pairs(|_| Vector3::zeros())).is_none(), "one target");
        assert!(solve(&pairs(|p| p * f64::NAN)).is_none(), "no numbers");
        assert!(solve(&pairs(|p| p * f64::INFINITY)).is_none(), "infinite");
        let mut weightless = pairs(|p| *p);
        weightless.iter_mut().for_each(|p| p.weight = 0.0);
        assert!(solve(&weightless).is_none(), "no weight");
        let mut same = pairs(|p| *p);
        same.iter_mut().for_each(|p| p.source = Vector3::zeros());
        assert!(solve(&same).is_none(), "one source");
    }
}
