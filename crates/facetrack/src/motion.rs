// SPDX-License-Identifier: MPL-2.0
//! Motion at constant velocity.
//!
//! [`Motion`] takes the velocity of a face from its last measurements in different pictures. The
//! tracker predicts where boxes overlap, the analyzer predicts the faces of frames that are not
//! analysed, and the redaction covers the places that a lost face may have reached.
//!
//! A frame may repeat the picture of the frame before: cameras in low light, network streams and
//! conversions of the frame rate repeat frames. All times here are times of pictures.
//! `PictureClock` derives them from the times of frames.

use std::time::Duration;

use super::geometry::{Point, Rect};
use super::observation::Observation;

/// Minimum time between the measurements of a velocity. It is less than a period at 30 frames per
/// second. In a shorter time, timestamps jitter, and boxes move by errors of the engine. Our choice.
const MIN_TIME: Duration = Duration::from_millis(30);

/// Maximum time for which a picture is repeated. A picture that stays for longer is a still picture.
/// Its frames count like frames of a scene at rest. Two frames per second are the fewest that a video
/// should have for a face to be tracked.
const MAX_REPEATED: Duration = Duration::from_millis(500);

/// Speeds of a face that is not measured any more, in sizes of its box per second: the minimum, and the
/// speed if its velocity was never measured. Our choice: people who walk past a camera are faster, but a
/// face that is found once by mistake should not soon cover the whole picture.
const LEAST_SPEED: f32 = 0.5;
const UNKNOWN_SPEED: f32 = 2.0;

/// Maximum distance by which the box of a face reaches beyond its next box. It is relative to the smaller
/// side of the next box. If the box reaches farther, the face has jumped or shrunk, and its earlier area stays
/// covered for the hold. The default margin is as wide as this distance.
pub(crate) const JUMP: f32 = 0.25;

/// Converts times of frames to times of their pictures.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PictureClock {
    /// Time of the first frame with the picture.
    first: Duration,
}

impl PictureClock {
    /// The time of the picture of a frame at `time`, which is new.
    pub(crate) fn show(&mut self, time: Duration) -> Duration {
        self.first = time;
        time
    }

    /// The time of the picture of a frame at `time`, which repeats the one of the frame before. It is
    /// not before `time` by more than [`MAX_REPEATED`].
    pub(crate) fn repeat(&self, time: Duration) -> Duration {
        self.first.max(time.saturating_sub(MAX_REPEATED)).min(time)
    }
}

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

    /// Speed, px/s; 0 if it is not finite.
    fn speed(self) -> f32 {
        let speed = Point::default().distance(self.displacement) / self.duration;
        if speed.is_finite() { speed } else { 0.0 }
    }
}

/// The position of a face in a picture.
#[derive(Debug, Clone, Copy)]
struct Position {
    centroid: Point,
    time: Duration,
}

/// The largest speed of a face in its last pictures.
#[derive(Debug, Clone, Copy, Default)]
struct LargestSpeed {
    /// Largest speed since `since`, px/s.
    current: f32,
    /// Largest speed in the time before.
    before: f32,
    since: Duration,
}

impl LargestSpeed {
    /// Adds the speed in the picture at `time`. A speed counts for at least [`MAX_REPEATED`], and for
    /// no more than twice as long.
    fn add(&mut self, speed: f32, time: Duration) {
        let passed = time - self.since;
        if passed >= MAX_REPEATED {
            let is_recent = passed < 2 * MAX_REPEATED;
            self.before = if is_recent { self.current } else { 0.0 };
            (self.current, self.since) = (0.0, time);
        }
        self.current = self.current.max(speed);
    }

    /// The largest speed of the current time and of the one before.
    fn largest(&self) -> f32 {
        self.current.max(self.before)
    }
}

/// Motion of a face, from its last measurements.
#[derive(Debug, Clone, Copy)]
pub struct Motion {
    last: Position,
    /// The start of the next measurement of the velocity.
    base: Position,
    /// Velocity; `None` if the face was measured in one picture.
    velocity: Option<Velocity>,
    speed: LargestSpeed,
    /// Longer side of the box at the last measurement, px.
    side: f32,
    /// Distance that the face may have moved since the last measurement before the clock was
    /// restarted, px.
    reached: f32,
}

impl Motion {
    /// The motion of a face that is measured in the picture at `time`, and whose motion was
    /// `previous` before. Another measurement in the same picture changes only the position.
    pub fn measured(previous: Option<&Self>, face: &Observation, time: Duration) -> Self {
        let centroid = face.centroid();
        let last = Position { centroid, time };
        let side = face.bbox.width.max(face.bbox.height);
        let Some(previous) = previous.filter(|previous| previous.last.time <= time) else {
            return Self {
                last,
                base: last,
                velocity: None,
                speed: LargestSpeed {
                    since: time,
                    ..LargestSpeed::default()
                },
                side,
                reached: 0.0,
            };
        };
        let motion = Self {
            last,
            side,
            reached: 0.0,
            ..*previous
        };
        if previous.last.time == time {
            return motion;
        }
        motion.with_velocity()
    }

    /// Measures the velocity, if the time is long enough or none is known.
    fn with_velocity(mut self) -> Self {
        let duration = self.last.time - self.base.time;
        if duration >= MIN_TIME || self.velocity.is_none() {
            let (from, to) = (self.base.centroid, self.last.centroid);
            self.velocity = Some(Velocity {
                displacement: Point::new(to.x - from.x, to.y - from.y),
                duration: duration.as_secs_f32(),
            });
        }
        if duration >= MIN_TIME {
            self.base = self.last;
        }
        let speed = self.velocity.map_or(0.0, Velocity::speed);
        self.speed.add(speed, self.last.time);
        self
    }

    /// The position at the last measurement.
    pub fn centroid(&self) -> Point {
        self.last.centroid
    }

    /// Time since the last measurement.
    pub fn elapsed(&self, time: Duration) -> Duration {
        time.saturating_sub(self.last.time)
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

    /// Maximum distance of the face at `time` from the last measurement, px.
    pub fn reach(&self, time: Duration) -> f32 {
        self.reached + self.largest_speed() * self.elapsed(time).as_secs_f32()
    }

    /// Distance of the face at `time` from the last measurement by the largest speed that was measured
    /// lately, px.
    pub(crate) fn measured_reach(&self, time: Duration) -> f32 {
        self.reached + self.speed.largest() * self.elapsed(time).as_secs_f32()
    }

    /// The largest speed that the face had lately, px/s: it may have been slower in the last pictures,
    /// or these may be repeated ones that are not known as such. It is at least [`LEAST_SPEED`], or
    /// [`UNKNOWN_SPEED`] if no velocity is known.
    pub(crate) fn largest_speed(&self) -> f32 {
        let sizes = self.velocity.map_or(UNKNOWN_SPEED, |_| LEAST_SPEED);
        self.speed.largest().max(sizes * self.side)
    }

    /// The motion in frames that are `x` times as wide and `y` times as high.
    pub(crate) fn scaled(mut self, x: f32, y: f32) -> Self {
        let scaled = |point: Point| Point::new(point.x * x, point.y * y);
        for position in [&mut self.last, &mut self.base] {
            position.centroid = scaled(position.centroid);
        }
        if let Some(velocity) = &mut self.velocity {
            velocity.displacement = scaled(velocity.displacement);
        }
        let by = x.max(y);
        self.side *= by;
        self.reached *= by;
        self.speed.current *= by;
        self.speed.before *= by;
        self
    }

    /// The motion after the clock has been set from one time to another. The area that the face could
    /// have reached by then stays the same.
    pub(crate) fn restarted(mut self, from: Duration, time: Duration) -> Self {
        self.reached = self.reach(from);
        (self.last.time, self.base.time, self.speed.since) = (time, time, time);
        self
    }

    fn over(&self, seconds: f32) -> Option<Point> {
        let displacement = self.velocity?.over(seconds);
        let is_finite = displacement.x.is_finite() && displacement.y.is_finite();
        is_finite.then_some(displacement)
    }
}

/// Returns true if a face has jumped or shrunk from one box to the next.
pub(crate) fn has_jumped(before: &Rect, bbox: &Rect) -> bool {
    exceeds(before, bbox, JUMP * bbox.width.min(bbox.height))
}

/// Returns true if a box exceeds the next one by more than `most` on one side.
pub(crate) fn exceeds(before: &Rect, bbox: &Rect, most: f32) -> bool {
    before.x < bbox.x - most
        || before.y < bbox.y - most
        || before.right() > bbox.right() + most
        || before.bottom() > bbox.bottom() + most
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

    /// Motion of a face that moves by 10 px from picture to picture. Each item is the time of a frame
    /// and the number of its picture.
    fn steps(frames: &[(u64, u8)]) -> Motion {
        let mut clock = PictureClock::default();
        let (mut motion, mut last) = (None, None);
        for (time, picture) in frames {
            let time = if last.replace(*picture) == Some(*picture) {
                clock.repeat(ms(*time))
            } else {
                clock.show(ms(*time))
            };
            let face = face(10.0 * f32::from(*picture));
            motion = Some(Motion::measured(motion.as_ref(), &face, time));
        }
        motion.expect("a frame")
    }

    #[test]
    fn repeated_pictures_do_not_slow_a_face_down() {
        for repeats in 1..=5 {
            let frames: Vec<_> = (0..6 * repeats)
                .map(|n| (40 * n, (n / repeats) as u8))
                .collect();
            let motion = steps(&frames);
            let next = ms(40 * 6 * repeats);
            let step = motion.displacement(next).expect("a velocity").x;
            assert!((step - 10.0).abs() < 1e-3, "{repeats}: {step}");
            assert!((motion.reach(next) - 10.0).abs() < 1e-3, "{repeats}");
        }
        // 24 frames per second at 60: pictures are shown for two and three frames in turn.
        let pulldown = steps(&[
            (0, 0),
            (17, 0),
            (33, 1),
            (50, 1),
            (67, 1),
            (83, 2),
            (100, 2),
        ]);
        let step = pulldown.displacement(ms(117)).expect("a velocity").x;
        assert!((6.0..14.0).contains(&step), "{step}");
        assert!(pulldown.reach(ms(117)) >= 10.0);
    }

    #[test]
    fn a_face_that_moves_again_after_a_still_picture_is_slow() {
        let still = (0..250).map(|n| (40 * n, 0));
        let motion = steps(&still.chain([(10_000, 1)]).collect::<Vec<_>>());
        assert!(motion.reach(ms(10_040)) < 1.0, "{motion:?}");
        let clock = PictureClock { first: ms(1000) };
        for (time, want) in [
            (1040, 1000),
            (1500, 1000),
            (1501, 1001),
            (9000, 8500),
            (900, 900),
        ] {
            assert_eq!(clock.repeat(ms(time)), ms(want), "{time}");
        }
    }

    #[test]
    fn times_that_jitter_do_not_make_a_face_fast() {
        let motion = steps(&[(0, 0), (40, 1), (79, 2), (80, 3), (120, 4)]);
        assert!(motion.reach(ms(160)) < 21.0, "{motion:?}");
    }

    #[test]
    fn the_largest_speed_of_the_last_pictures_counts() {
        let mut motion = steps(&[(0, 0), (40, 1)]);
        // In the end, half the size of 40 px per second.
        for (time, want) in [(80, 10.0), (500, 10.0), (960, 10.0), (1500, 0.8)] {
            motion = Motion::measured(Some(&motion), &face(10.0), ms(time));
            let reach = motion.reach(ms(time + 40));
            assert!((reach - want).abs() < 1e-3, "{time}: {reach}");
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
