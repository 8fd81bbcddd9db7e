// SPDX-License-Identifier: MPL-2.0
//! A fitted model: the landmarks in its space, and its error.

use nalgebra::{Matrix3, Rotation3, Vector2, Vector3};

use super::model;
use super::pnp::{Camera, Pose};
use super::rotation;
use crate::observation::HeadPose;

/// Depth of an eyeball's centre behind the corners of the eye, in distances of these:
/// `estimate_depth` in `tracker.py`.
const EYEBALL_DEPTH: f64 = 0.385;

/// Conversion from the original's axes (down, right, away) to the axes of [`HeadPose`] (right, up,
/// towards the viewer).
const HOUSE_FROM_CAMERA: Matrix3<f64> = Matrix3::new(0.0, 1.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, -1.0);

/// Conversion from a head that is not turned, with its left side on the right of the image, to the
/// model, whose x points the other way.
const MODEL_FROM_HEAD: Matrix3<f64> = Matrix3::new(-1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0);

/// Positions of the 66 landmarks, then of the pupils, right before left: (row, column), px.
pub(super) type Places = [Vector2<f64>; model::LANDMARKS + 2];

/// Points in the model's space: the points of [`Places`], then the centres of the eyeballs, right
/// before left.
pub(super) type Points = [Vector3<f64>; model::POINTS.len()];

/// A fitted model in front of a camera, or behind it.
pub(super) struct Fit<'a> {
    camera: &'a Camera,
    /// Camera from model.
    pub pose: Pose,
    /// The rotation of `pose`.
    pub rotation: Matrix3<f64>,
    translation: Vector3<f64>,
    /// Error, px: root of the sum of squared distances of the outline and the tip of the nose from
    /// the model, per coordinate that the pose was found with (`pnp_error` in `estimate_depth`).
    pub error: f64,
}

impl<'a> Fit<'a> {
    /// The model at `pose`, which was solved with `count` of the landmarks at `places`. `None` if
    /// its error is not finite.
    pub(super) fn new(
        camera: &'a Camera,
        pose: Pose,
        places: &Places,
        count: usize,
    ) -> Option<Self> {
        let mut fit = Self {
            camera,
            pose,
            rotation: rotation::matrix(&pose.rotation.cast()),
            translation: pose.translation.cast(),
            error: 0.0,
        };
        let measured = model::OUTLINE.chain([model::NOSE]);
        let squares = measured.map(|i| (places[i] - fit.project(i)).norm_squared());
        fit.error = (squares.sum::<f64>() / (2 * count) as f64).sqrt();
        fit.error.is_finite().then_some(fit)
    }

    /// Projection of a point of the model, (row, column).
    pub(super) fn project(&self, index: usize) -> Vector2<f64> {
        self.camera.project(&self.to_camera(&model::point(index)))
    }

    /// Each landmark at the depth of the model's point: `pts_3d` in `estimate_depth`. A point
    /// without finite coordinates becomes the origin.
    pub(super) fn points(&self, places: &Places) -> Points {
        let mut points = [Vector3::zeros(); model::POINTS.len()];
        for (i, place) in places.iter().take(model::LANDMARKS).enumerate() {
            points[i] = self.at_depth(place, self.to_camera(&model::point(i)).z);
        }
        for (eye, [outer, inner]) in model::EYES.into_iter().enumerate() {
            let pupil = places[model::LANDMARKS + eye];
            let corners = [points[outer], points[inner]];
            let [to_outer, to_inner] = [outer, inner].map(|i| (pupil - places[i]).norm());
            // As in the original, the corner farther away has the larger weight.
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

    /// The pose in the camera that all engines use: y up, looking along −z, principal point at the
    /// centre of the frame. The translation is the position of the tip of the nose. `None` for a
    /// head at the camera's position.
    ///
    /// The original's search starts with the face behind the camera, and ends there. A face behind
    /// the camera looks like one in front of it that is rotated by half a turn around the line of
    /// sight. The original's camera also has another principal point. So the line of sight, and
    /// with it the head, is rotated onto the ray through the head's position in the image.
    pub(super) fn head_pose(&self, (width, height): (usize, usize)) -> Option<HeadPose> {
        let middle = model::EARS.map(model::point);
        let middle = (middle[0] + middle[1]) / 2.0;
        let seen = self.to_camera(&middle);
        let sight = seen.try_normalize(0.0)?;
        let (twin, sight) = if seen.z < 0.0 {
            (half_turn(&sight) * self.rotation, -sight)
        } else {
            (self.rotation, sight)
        };
        let place = self.camera.project(&seen);
        let [width, height] = [width, height].map(|side| side as f64);
        let ray = Vector3::new(place.y - width / 2.0, height / 2.0 - place.x, -width) / width;
        let turn = Rotation3::rotation_between(&(HOUSE_FROM_CAMERA * sight), &ray)?;
        let rotation = turn * HOUSE_FROM_CAMERA * twin * MODEL_FROM_HEAD;
        let nose = ray * seen.z.abs() - rotation * MODEL_FROM_HEAD * middle;
        HeadPose::new(&rotation, &nose)
    }

    fn to_camera(&self, point: &Vector3<f64>) -> Vector3<f64> {
        self.rotation * point + self.translation
    }

    fn at_depth(&self, place: &Vector2<f64>, depth: f64) -> Vector3<f64> {
        let point = self.camera.unproject(place, depth);
        self.rotation.transpose() * (point - self.translation)
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

#[cfg(test)]
mod tests {
    use super::super::golden::{Golden, Sequence, assert_near};
    use super::super::search::Search;
    use super::*;

    /// Checks the fit of each frame with a head that the original found.
    fn fits(sequence: &Sequence, check: impl Fn(&str, &super::super::golden::Frame, &Fit<'_>)) {
        let camera = Camera::new(sequence.size());
        for (index, frame) in sequence.frames.iter().enumerate() {
            let pose = Pose {
                rotation: frame.rotation.into(),
                translation: frame.translation.into(),
            };
            if pose == Pose::default() {
                continue;
            }
            let fit = Fit::new(&camera, pose, &frame.places(), model::CONTOUR.len()).unwrap();
            check(&format!("{}: frame {index}", sequence.name), frame, &fit);
        }
    }

    #[test]
    fn points_and_errors_are_the_originals() {
        for sequence in Golden::read().sequences {
            fits(&sequence, |name, frame, fit| {
                assert_near(name, [fit.error / frame.error], [1.0], 1e-5);
                let points = fit.points(&frame.places());
                for (got, want) in points.iter().zip(frame.points()) {
                    assert_near(name, got.as_slice(), want.as_slice(), 1e-4);
                }
            });
        }
    }

    #[test]
    fn rotations_are_reported_as_the_original_does() {
        for sequence in Golden::read().sequences {
            fits(&sequence, |name, frame, fit| {
                let matrix = &fit.rotation;
                assert_near(name, rotation::quaternion(matrix), frame.quaternion, 1e-5);
                assert_near(name, rotation::euler(matrix), frame.euler, 1e-3);
            });
        }
    }

    #[test]
    fn points_that_are_nowhere_are_the_origin() {
        let camera = Camera::new((640, 360));
        let mut places = Golden::read().sequences[0].frames[0].places();
        let fit = Search::default()
            .fit(&camera, &places, &model::CONTOUR)
            .unwrap();
        places[40].x = f64::NAN;
        // A pupil in both corners of the eye is in neither.
        (places[42], places[45]) = (places[67], places[67]);
        let points = fit.points(&places);
        assert_eq!([points[40], points[67]], [Vector3::zeros(); 2]);
        assert_ne!(points[41], Vector3::zeros());
        assert!(
            Fit::new(
                &camera,
                Pose::default(),
                &[Vector2::repeat(f64::NAN); 68],
                14
            )
            .is_none()
        );
    }

    #[test]
    fn a_head_that_looks_into_the_camera_is_not_turned() {
        const SIZE: (usize, usize) = (400, 400);
        let camera = Camera::new(SIZE);
        let places = [Vector2::repeat(200.0); 68];
        let [_, up, out] = model::POINTS[model::EARS[0]];
        let half = std::f32::consts::PI / 2f32.sqrt();
        // Each puts the middle of the head 8 units away, in front of the camera and behind it.
        for (rotation, translation) in [
            ([-half, half, 0.0], [up, 0.0, 8.0 + out]),
            ([half, half, 0.0], [-up, 0.0, -8.0 + out]),
        ] {
            let pose = Pose {
                rotation: rotation.into(),
                translation: translation.into(),
            };
            let fit = Fit::new(&camera, pose, &places, 14).unwrap();
            let matrix = fit.head_pose(SIZE).unwrap().matrix;
            let want = [
                [1.0, 0.0, 0.0, 0.0],
                [0.0, 1.0, 0.0, -up],
                [0.0, 0.0, 1.0, -8.0 - out],
                [0.0, 0.0, 0.0, 1.0],
            ];
            for (got, want) in matrix.iter().flatten().zip(want.iter().flatten()) {
                assert!((got - want).abs() < 1e-5, "{matrix:?}");
            }
        }
    }

    #[test]
    fn a_head_in_the_camera_has_no_pose() {
        let camera = Camera::new((640, 360));
        let places = Golden::read().sequences[0].frames[0].places();
        let [_, up, out] = model::POINTS[model::EARS[0]];
        let pose = Pose {
            translation: Vector3::new(0.0, -up, -out),
            ..Pose::default()
        };
        let fit = Fit::new(&camera, pose, &places, 14).unwrap();
        assert_eq!(fit.head_pose((640, 360)), None);
    }

    /// Returns the positions at which a camera sees the points of a head.
    fn seen(
        rotation: &Rotation3<f64>,
        at: &Vector3<f64>,
        (width, height): (usize, usize),
    ) -> Places {
        let (width, height) = (width as f64, height as f64);
        std::array::from_fn(|i| {
            let point = rotation * (MODEL_FROM_HEAD * model::point(i)) + at;
            let flat = point.xy() * (width / -point.z);
            Vector2::new(height / 2.0 - flat.y, width / 2.0 + flat.x)
        })
    }

    #[test]
    fn heads_are_where_a_camera_sees_them() {
        const SIZE: (usize, usize) = (1280, 720);
        let camera = Camera::new(SIZE);
        let mut search = Search::default();
        for (yaw, pitch, roll, at) in [
            (0.0, 0.0, 0.0, [0.0, 0.0, -12.0]),
            (25.0, -10.0, 5.0, [2.0, 1.0, -14.0]),
            (-30.0, 15.0, -20.0, [-3.0, -1.5, -12.0]),
        ] {
            let [about_x, about_y, about_z] = [pitch, yaw, roll].map(f64::to_radians);
            let rotation = Rotation3::from_axis_angle(&Vector3::y_axis(), about_y)
                * Rotation3::from_axis_angle(&Vector3::x_axis(), about_x)
                * Rotation3::from_axis_angle(&Vector3::z_axis(), about_z);
            let at = Vector3::from(at);
            let places = seen(&rotation, &at, SIZE);
            // The first look only comes near.
            search.fit(&camera, &places, &model::CONTOUR);
            let fit = search.fit(&camera, &places, &model::CONTOUR).unwrap();
            let pose = fit.head_pose(SIZE).unwrap();
            let angles = pose.euler_degrees();
            let got = [angles.yaw, angles.pitch, angles.roll].map(f64::from);
            assert_near("angles", got, [yaw, pitch, roll], 5.0);
            let place: [f64; 3] = std::array::from_fn(|row| f64::from(pose.matrix[row][3]));
            assert_near("place", place, at.as_slice(), 0.5);
        }
    }
}
