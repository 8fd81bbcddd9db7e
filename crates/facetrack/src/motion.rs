// SPDX-License-Identifier: MPL-2.0
//! Motion at constant velocity.
//!
//! [`Motion`] takes the velocity of a face from its last two measurements. The tracker predicts
//! where boxes overlap, and the analyzer predicts the faces of frames that are not analysed.

use std::time::Duration;

use super::geometry::Point;
use super::observation::Observation;

/// A constant velocity.
#[derive(Debug, Clone, Copy)]
struct Velocity {
    /// Displacement during `duration`, px.
    displacement: Point,
    /// Duration, s; positive.
    duration: f32,
}

impl Velocity {
    /// Displacement during `time`, px.
    fn over(self, time: f32) -> Point {
        let fraction = time / self.duration;
        Point::new(
            self.displacement.x * fraction,
            self.displacement.y * fraction,
        )
    }
}

/// Motion of a face, from its last two measurements.
#[derive(Debug, Clone, Copy)]
pub struct Motion {
    centroid: Point,
    time: Duration,
    /// Velocity; `None` if the face was measured once, or twice at the same time.
    velocity: Option<Velocity>,
}

impl Motion {
    /// The motion of a face that is measured at `time`, and whose motion was `previous` before.
    pub fn measured(previous: Option<&Self>, face: &Observation, time: Duration) -> Self {
        let centroid = face.centroid();
        Self {
            centroid,
            time,
            velocity: previous.and_then(|previous| previous.velocity_to(centroid, time)),
        }
    }

    /// The position at the last measurement.
    pub fn centroid(&self) -> Point {
        self.centroid
    }

    /// Time since the last measurement.
    pub fn elapsed(&self, time: Duration) -> Duration {
        time.saturating_sub(self.time)
    }

    fn velocity_to(&self, centroid: Point, time: Duration) -> Option<Velocity> {
        let duration = time.checked_sub(self.time).filter(|it| !it.is_zero())?;
        Some(Velocity {
            displacement: Point::new(centroid.x - self.centroid.x, centroid.y - self.centroid.y),
            duration: duration.as_secs_f32(),
        })
    }

    /// Displacement of the face at `time` since the last measurement, px; `None` if the velocity is
    /// unknown.
    ///
    /// The face stops after the time between the two measurements, so that a face that is not
    /// measured any more does not leave the picture.
    pub fn displacement(&self, time: Duration) -> Option<Point> {
        let elapsed = self.elapsed(time).as_secs_f32();
        self.over(elapsed.min(self.velocity?.duration))
    }

    /// Displacement of a face that keeps its velocity for `duration`, px; `None` if the velocity is
    /// unknown.
    pub fn going_on(&self, duration: Duration) -> Option<Point> {
        self.over(duration.as_secs_f32())
    }

    fn over(&self, seconds: f32) -> Option<Point> {
        let displacement = self.velocity?.over(seconds);
        let is_finite = displacement.x.is_finite() && displacement.y.is_finite();
        is_finite.then_some(displacement)
    }
}

/// Moves all image coordinates of a face. Pose and 3-D models are in other spaces and stay as they
/// are.
pub fn displace(face: &mut Observation, by: Point) {
    (face.bbox.x, face.bbox.y) = (face.bbox.x + by.x, face.bbox.y + by.y);
    face.for_each_point(|x, y, _| (*x, *y) = (*x + by.x, *y + by.y));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::geometry::Rect;
    use crate::observation::{
        Gaze, Landmark, LandmarkScheme, Landmarks, ModelFit, MorphableFit, Pupil,
    };

    fn face(x: f32) -> Observation {
        Observation::from_bbox(Rect::new(x, 50.0, 40.0, 40.0))
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_face_moves_on_for_as_long_as_its_motion_was_measured() {
        let mut motion = Motion::measured(None, &face(100.0), ms(0));
        assert_eq!(motion.displacement(ms(40)), None, "nothing is known yet");
        motion = Motion::measured(Some(&motion), &face(120.0), ms(80));
        for (time, x) in [(40, 0.0), (80, 0.0), (120, 10.0), (160, 20.0), (1000, 20.0)] {
            let want = Some(Point::new(x, 0.0));
            assert_eq!(motion.displacement(ms(time)), want, "{time}");
        }
        motion = Motion::measured(Some(&motion), &face(110.0), ms(120));
        assert_eq!(
            motion.displacement(ms(140)),
            Some(Point::new(-5.0, 0.0)),
            "the newest motion counts"
        );
    }

    #[test]
    fn the_velocity_is_unknown_without_time_or_place() {
        for (x, time) in [(120.0, 40), (120.0, 0), (f32::NAN, 80), (f32::MAX, 80)] {
            let start = if x == f32::MAX { -x } else { 100.0 };
            let first = Motion::measured(None, &face(start), ms(40));
            let motion = Motion::measured(Some(&first), &face(x), ms(time));
            assert_eq!(motion.displacement(ms(200)), None, "{x} {time}");
        }
    }

    #[test]
    fn all_image_coordinates_move() {
        let at = |x, y| Point::new(x, y);
        let landmark = |x, y| Landmark { x, y, z: 3.0 };
        let pupil = |position| Pupil {
            position,
            confidence: 1.0,
        };
        let landmarks = |d: f32| {
            Some(Landmarks::new(
                LandmarkScheme::Ibug68,
                vec![landmark(1.0 + d, 2.0 - d)],
            ))
        };
        let made = |d: f32| Observation {
            landmarks: landmarks(d),
            secondary_landmarks: landmarks(d),
            key_points: vec![at(5.0 + d, 6.0 - d)],
            gaze: Some(Gaze {
                right: pupil(at(7.0 + d, 8.0 - d)),
                left: pupil(at(9.0 + d, 10.0 - d)),
            }),
            fit: Some(ModelFit {
                success: true,
                error: 1.0,
                quaternion: [0.0; 4],
                euler: [0.0; 3],
                rotation: [0.0; 3],
                translation: [1.0; 3],
                points: vec![[1.0; 3]],
                projected: vec![at(11.0 + d, 12.0 - d)],
            }),
            morphable: Some(Ok(MorphableFit {
                shape: vec![1.0],
                expression: vec![1.0],
                expression_names: Arc::new([]),
                rotation: [0.0, 0.0, 0.0, 1.0],
                origin: at(13.0 + d, 14.0 - d),
                scale: 1.0,
                residual: 1.0,
                contour: vec![at(15.0 + d, 16.0 - d)],
                mesh: Some(Arc::new([landmark(17.0 + d, 18.0 - d)])),
            })),
            ..Observation::from_bbox(Rect::new(100.0 + d, 50.0 - d, 40.0, 40.0))
        };
        let mut face = made(0.0);
        let kept = face.clone();
        displace(&mut face, at(4.0, -4.0));
        assert_eq!(face, made(4.0));
        assert_eq!(kept, made(0.0), "a shared mesh is not moved");
    }
}
