// SPDX-License-Identifier: MPL-2.0
//! Where faces are in frames that nobody looks at, if they go on as they moved.

use std::time::Duration;

use super::geometry::Point;
use super::observation::Observation;

/// A face that goes on as it moved between the last two frames in which it was measured.
#[derive(Debug, Clone, Copy)]
pub struct Motion {
    centroid: Point,
    time: Duration,
    step: Option<Step>,
}

/// From one measurement to the next.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// The way of the centroid, px.
    way: Point,
    /// Positive.
    duration: Duration,
}

impl Motion {
    /// A face that is measured for the first time.
    pub fn new(face: &Observation, time: Duration) -> Self {
        Self {
            centroid: face.centroid(),
            time,
            step: None,
        }
    }

    /// Takes the next measurement. One that is no later than the last one tells of no motion.
    pub fn see(&mut self, face: &Observation, time: Duration) {
        let Self { centroid, .. } = *self;
        let next = Self::new(face, time);
        let duration = time.checked_sub(self.time).filter(|it| !it.is_zero());
        *self = Self {
            step: duration.map(|duration| Step {
                way: Point::new(next.centroid.x - centroid.x, next.centroid.y - centroid.y),
                duration,
            }),
            ..next
        };
    }

    /// How far the face has moved at `time` since it was measured, px; `None` where no motion is known.
    ///
    /// It stops after as long as the motion was seen for, so that a face that is not measured any more does not leave on its
    /// own.
    pub fn displacement(&self, time: Duration) -> Option<Point> {
        let Step { way, duration } = self.step?;
        let since = time.saturating_sub(self.time).min(duration);
        let share = since.as_secs_f32() / duration.as_secs_f32();
        let displacement = Point::new(way.x * share, way.y * share);
        (displacement.x.is_finite() && displacement.y.is_finite()).then_some(displacement)
    }
}

/// Moves everything of a face that is a place in the picture. Pose and 3-D models keep their own spaces.
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
    fn a_face_goes_on_for_as_long_as_its_motion_was_seen() {
        let mut motion = Motion::new(&face(100.0), ms(0));
        assert_eq!(motion.displacement(ms(40)), None, "nothing is known yet");
        motion.see(&face(120.0), ms(80));
        for (time, x) in [(40, 0.0), (80, 0.0), (120, 10.0), (160, 20.0), (1000, 20.0)] {
            let want = Some(Point::new(x, 0.0));
            assert_eq!(motion.displacement(ms(time)), want, "{time}");
        }
        motion.see(&face(110.0), ms(120));
        assert_eq!(
            motion.displacement(ms(140)),
            Some(Point::new(-5.0, 0.0)),
            "the newest motion counts"
        );
    }

    #[test]
    fn no_motion_is_known_without_time_or_place() {
        for (x, time) in [(120.0, 40), (120.0, 0), (f32::NAN, 80), (f32::MAX, 80)] {
            let mut motion = Motion::new(&face(if x == f32::MAX { -x } else { 100.0 }), ms(40));
            motion.see(&face(x), ms(time));
            assert_eq!(motion.displacement(ms(200)), None, "{x} {time}");
        }
    }

    #[test]
    fn every_place_moves() {
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
            contour: landmarks(d),
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
