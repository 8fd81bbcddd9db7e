// SPDX-License-Identifier: MPL-2.0
//! Smoothing of landmarks with the One-Euro filter, as in MediaPipe.
//!
//! Casiez, Roussel, Vogel: "1 € Filter", CHI 2012. As in MediaPipe, speeds are measured in face
//! sizes per second, and values are stored in single precision (`one_euro_filter.cc`,
//! `low_pass_filter.cc`, `landmarks_smoothing_calculator_utils.cc`).

use std::f64::consts::TAU;
use std::time::Duration;

use smart_default::SmartDefault;

use super::observation::{Landmark, Landmarks};

/// Constants of the filter. The default values come from MediaPipe's Face Landmarker:
/// `ConfigureLandmarksSmoothingCalculator` in `face_landmarks_detector_graph.cc`.
#[derive(Debug, Clone, Copy, PartialEq, SmartDefault)]
#[non_exhaustive]
pub struct OneEuro {
    /// Cut-off frequency at rest, Hz; lower is smoother.
    #[default(0.05)]
    pub min_cutoff: f64,
    /// Increase of the cut-off frequency with speed, Hz per face size per second; higher values
    /// follow faster.
    #[default(80.0)]
    pub beta: f64,
    /// Cut-off frequency of the speed estimate, Hz.
    #[default(1.0)]
    pub derivative_cutoff: f64,
}

/// Frame rate assumed until two times other than zero are known, Hz: default of
/// `OneEuroFilter.frequency` in `landmarks_smoothing_calculator.proto`.
const NOMINAL_FREQUENCY: f64 = 30.0;

/// Smallest face size that is smoothed, px: default of `min_allowed_object_scale` there.
const MIN_FACE_SIZE: f32 = 1e-6;

/// Smooths the landmarks of one face.
#[derive(Debug, Clone)]
pub struct LandmarkSmoother {
    constants: OneEuro,
    frequency: f64,
    last_time: Option<Duration>,
    history: Vec<[Coordinate; 3]>,
}

/// Memory of one coordinate.
#[derive(Debug, Clone, Copy)]
struct Coordinate {
    measured: f32,
    smoothed: f32,
    speed: f32,
}

impl LandmarkSmoother {
    /// A smoother without memory: the first landmarks pass unchanged.
    pub fn new(constants: OneEuro) -> Self {
        Self {
            constants,
            frequency: NOMINAL_FREQUENCY,
            last_time: None,
            history: Vec::new(),
        }
    }

    /// Replaces `landmarks`, measured at `time`, by their smoothed positions.
    ///
    /// Smooths the landmarks of the next frame. Landmarks are not changed and not stored if `time`
    /// is not after the last one, or if the face has no extent. If their number changes, smoothing
    /// starts over.
    pub fn smooth(&mut self, landmarks: &mut Landmarks, time: Duration) {
        let extent = landmarks.extent();
        let face_size = (extent.width + extent.height) / 2.0;
        let sizeable = face_size >= MIN_FACE_SIZE && face_size.is_finite();
        if !sizeable || self.last_time.is_some_and(|last| time <= last) {
            return;
        }
        self.update_frequency(time);
        if self.history.len() != landmarks.points.len() {
            self.history = landmarks.points.iter().map(Coordinate::first).collect();
            return;
        }
        let filter = Filter {
            constants: self.constants,
            frequency: self.frequency,
            value_scale: 1.0 / face_size,
            speed_weight: weight(self.constants.derivative_cutoff, self.frequency),
        };
        for (point, [x, y, z]) in landmarks.points.iter_mut().zip(&mut self.history) {
            point.x = filter.apply(x, point.x);
            point.y = filter.apply(y, point.y);
            point.z = filter.apply(z, point.z);
        }
    }

    /// Updates the frequency. MediaPipe keeps the nominal rate for an interval that starts or ends
    /// at time zero.
    fn update_frequency(&mut self, time: Duration) {
        let last = self.last_time.replace(time);
        if let Some(last) = last.filter(|last| !last.is_zero()) {
            self.frequency = 1.0 / (time - last).as_secs_f64();
        }
    }
}

impl Coordinate {
    fn first(point: &Landmark) -> [Self; 3] {
        [point.x, point.y, point.z].map(|value| Self {
            measured: value,
            smoothed: value,
            speed: 0.0,
        })
    }
}

/// Parameters that all coordinates of a frame share.
struct Filter {
    constants: OneEuro,
    frequency: f64,
    value_scale: f32,
    speed_weight: f32,
}

impl Filter {
    fn apply(&self, coordinate: &mut Coordinate, value: f32) -> f32 {
        let step = f64::from(value) - f64::from(coordinate.measured);
        let speed = step * f64::from(self.value_scale) * self.frequency;
        coordinate.speed = low_pass(self.speed_weight, speed as f32, coordinate.speed);
        let cutoff =
            self.constants.min_cutoff + self.constants.beta * f64::from(coordinate.speed.abs());
        coordinate.measured = value;
        coordinate.smoothed = low_pass(weight(cutoff, self.frequency), value, coordinate.smoothed);
        coordinate.smoothed
    }
}

/// Weight of a new value, for a cut-off frequency and a sample frequency in Hz.
fn weight(cutoff: f64, frequency: f64) -> f32 {
    let ratio = TAU * cutoff / frequency;
    (ratio / (1.0 + ratio)) as f32
}

fn low_pass(weight: f32, value: f32, stored: f32) -> f32 {
    (f64::from(weight * value) + (1.0 - f64::from(weight)) * f64::from(stored)) as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::LandmarkScheme;

    fn landmarks(points: &[[f32; 3]]) -> Landmarks {
        Landmarks::new(
            LandmarkScheme::MediaPipe478,
            points
                .iter()
                .map(|&[x, y, z]| Landmark { x, y, z })
                .collect(),
        )
    }

    fn flat(landmarks: &Landmarks) -> Vec<f32> {
        landmarks
            .points
            .iter()
            .flat_map(|p| [p.x, p.y, p.z])
            .collect()
    }

    #[derive(serde::Deserialize)]
    struct Case {
        name: String,
        min_cutoff: f64,
        beta: f64,
        derivative_cutoff: f64,
        frames: Vec<GoldenFrame>,
    }

    #[derive(serde::Deserialize)]
    struct GoldenFrame {
        time_ns: u64,
        measured: Vec<[f32; 3]>,
        smoothed: Vec<[f32; 3]>,
    }

    #[test]
    fn agrees_with_the_golden_sequences() {
        let cases: Vec<Case> =
            serde_json::from_str(include_str!("../../../tests/golden/one_euro.json")).unwrap();
        for case in cases {
            let mut smoother = LandmarkSmoother::new(OneEuro {
                min_cutoff: case.min_cutoff,
                beta: case.beta,
                derivative_cutoff: case.derivative_cutoff,
            });
            for (index, frame) in case.frames.iter().enumerate() {
                let mut got = landmarks(&frame.measured);
                smoother.smooth(&mut got, Duration::from_nanos(frame.time_ns));
                for (got, want) in flat(&got).iter().zip(flat(&landmarks(&frame.smoothed))) {
                    assert!(
                        (got - want).abs() <= 2e-5 * want.abs().max(1.0),
                        "{} frame {index}: {got} {want}",
                        case.name
                    );
                }
            }
        }
    }

    #[test]
    fn a_time_that_does_not_advance_changes_nothing() {
        let mut smoother = LandmarkSmoother::new(OneEuro::default());
        let a = [[0.0, 0.0, 0.0], [100.0, 100.0, 0.0]];
        let b = [[1.0, 0.0, 0.0], [101.0, 100.0, 0.0]];
        smoother.smooth(&mut landmarks(&a), Duration::from_millis(10));
        let before = format!("{smoother:?}");
        for time in [10, 9, 0] {
            let mut again = landmarks(&b);
            smoother.smooth(&mut again, Duration::from_millis(time));
            assert_eq!(again, landmarks(&b));
        }
        assert_eq!(format!("{smoother:?}"), before);
    }

    #[test]
    fn faces_without_extent_pass() {
        let mut smoother = LandmarkSmoother::new(OneEuro::default());
        for point in [[5.0, 5.0, 5.0], [f32::NAN; 3], [f32::INFINITY; 3]] {
            let mut got = landmarks(&[point]);
            smoother.smooth(&mut got, Duration::from_secs(1));
            assert_eq!(format!("{:?}", flat(&got)), format!("{:?}", point.to_vec()));
        }
        let mut none = landmarks(&[]);
        smoother.smooth(&mut none, Duration::from_secs(2));
        assert!(none.points.is_empty());
    }

    #[test]
    fn another_number_of_points_starts_over() {
        let mut smoother = LandmarkSmoother::new(OneEuro::default());
        let two = [[0.0, 0.0, 0.0], [100.0, 100.0, 0.0]];
        let three = [[9.0, 0.0, 0.0], [100.0, 100.0, 0.0], [3.0, 4.0, 5.0]];
        smoother.smooth(&mut landmarks(&two), Duration::from_millis(1));
        let mut got = landmarks(&three);
        smoother.smooth(&mut got, Duration::from_millis(2));
        assert_eq!(got, landmarks(&three));
    }
}
