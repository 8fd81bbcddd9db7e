// SPDX-License-Identifier: MPL-2.0
//! Smooths the values of each face over time, without a delay: each is replaced by the mean of the
//! values of the same id around it, weighted by a Gaussian of their distance in time.

use std::collections::VecDeque;

use super::Frames;
use super::frame::{BOX, Face, Frame, difference, normalized};

/// Distance of the last values that count, in standard deviations. They have 1 % of the weight.
const REACH: f64 = 3.0;

/// Frames with smoothed values.
pub struct Smoothed<'a> {
    frames: Frames<'a>,
    /// Standard deviation of the Gaussian, ns.
    deviation: f64,
    /// Frames around the next one, with their times.
    window: VecDeque<(u64, Frame)>,
    /// Index of the next one in the window.
    next: usize,
}

impl<'a> Smoothed<'a> {
    /// Smooths with this standard deviation, in seconds.
    pub fn new(frames: Frames<'a>, deviation: f64) -> Self {
        Self {
            frames,
            deviation: deviation * 1e9,
            window: VecDeque::new(),
            next: 0,
        }
    }

    /// Reads until the window reaches beyond what counts for the next frame.
    fn fill(&mut self) -> Result<(), String> {
        while !self.is_full() {
            let Some(frame) = self.frames.next() else {
                break;
            };
            let frame = frame?;
            self.window.push_back((frame.time()?, frame));
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        let ends = self.window.get(self.next).zip(self.window.back());
        ends.is_some_and(|((next, _), (last, _))| self.is_beyond(*next, *last))
    }

    fn is_beyond(&self, a: u64, b: u64) -> bool {
        a.abs_diff(b) as f64 > REACH * self.deviation
    }

    fn smoothed(&self) -> Option<Frame> {
        let (time, frame) = self.window.get(self.next)?;
        let faces = frame.faces.iter().map(|face| self.face(*time, face));
        Some(Frame {
            faces: faces.collect(),
            ..*frame
        })
    }

    fn face(&self, time: u64, face: &Face) -> Face {
        let mut sums = vec![(0.0, 0.0); face.values.len()];
        for (at, frame) in &self.window {
            let Some(other) = frame.face(face.id) else {
                continue;
            };
            let distance = at.abs_diff(time) as f64 / self.deviation;
            if distance <= REACH {
                let weight = (-0.5 * distance * distance).exp() as f32;
                add_weighted(&mut sums, face, other, weight);
            }
        }
        let values = face.values.iter().zip(sums).enumerate();
        let value = |(place, (value, (sum, weight))): (usize, (&f32, (f32, f32)))| {
            normalized(place, value + sum / weight)
        };
        Face {
            values: [face.values[0]]
                .into_iter()
                .chain(values.skip(BOX).map(value))
                .collect(),
            ..*face
        }
    }

    fn advance(&mut self) {
        self.next += 1;
        let Some((next, _)) = self.window.get(self.next) else {
            return;
        };
        let next = *next;
        while self.next > 0 && self.is_beyond(self.window[0].0, next) {
            self.window.pop_front();
            self.next -= 1;
        }
    }
}

/// Adds the differences from the values of `face`. The score, which comes first, is not smoothed.
fn add_weighted(sums: &mut [(f32, f32)], face: &Face, other: &Face, weight: f32) {
    let pairs = face.values.iter().zip(&other.values).zip(sums).enumerate();
    for (place, ((from, to), (sum, weights))) in pairs.skip(BOX) {
        if !to.is_nan() {
            *sum += weight * difference(place, *from, *to);
            *weights += weight;
        }
    }
}

impl Iterator for Smoothed<'_> {
    type Item = Result<Frame, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.fill() {
            return Some(Err(error));
        }
        let frame = self.smoothed()?;
        self.advance();
        Some(Ok(frame))
    }
}

#[cfg(test)]
mod tests {
    use facetrack::observation::Origin;

    use super::super::frame::{ANGLES, CHANNELS};
    use super::*;

    const MS: u64 = 1_000_000;

    /// A frame with a face whose yaw and first blendshape are these.
    fn frame(time: u64, id: u32, yaw: f32, channel: f32) -> Frame {
        let mut values = vec![0.5; CHANNELS + 1];
        values[ANGLES] = yaw;
        values[CHANNELS] = channel;
        Frame {
            number: 1,
            pts: None,
            time: Some(time * MS),
            is_analysed: true,
            faces: vec![Face {
                id,
                origin: Origin::Detected,
                values,
            }],
        }
    }

    fn smoothed(frames: Vec<Frame>) -> Vec<Face> {
        let frames = Box::new(frames.into_iter().map(Ok));
        let smoothed = Smoothed::new(frames, 0.04).map(Result::unwrap);
        smoothed.flat_map(|frame| frame.faces).collect()
    }

    #[test]
    fn an_impulse_becomes_the_gaussian_around_its_time() {
        let frames = (0..41).map(|i| frame(i * 20, 1, 0.0, f32::from(u8::from(i == 20))));
        let faces = smoothed(frames.collect());
        let gaussian = |i: i32| (-0.5 * (f64::from(i) * 0.5).powi(2)).exp();
        let whole: f64 = (-6..=6).map(gaussian).sum();
        for (i, face) in faces.iter().enumerate() {
            let distance = i as i32 - 20;
            let want = if distance.abs() <= 6 {
                gaussian(distance) / whole
            } else {
                0.0
            };
            let got = f64::from(face.values[CHANNELS]);
            assert!((got - want).abs() < 1e-6, "{i}: {got} {want}");
        }
    }

    #[test]
    fn angles_are_smoothed_across_the_back() {
        let yaws = [179.0, -179.0, 179.0, -179.0];
        let frames = std::iter::zip(0.., yaws).map(|(i, yaw)| frame(i * 20, 1, yaw, 0.0));
        for face in smoothed(frames.collect()) {
            assert!(face.values[ANGLES].abs() > 178.0, "{:?}", face.values);
        }
    }

    #[test]
    fn faces_do_not_mix_and_values_that_are_missing_stay_so() {
        let faces = smoothed(vec![
            frame(0, 1, 0.0, f32::NAN),
            frame(20, 2, 0.0, 1.0),
            frame(40, 1, 0.0, 0.25),
        ]);
        assert!(faces[0].values[CHANNELS].is_nan());
        assert_eq!(faces[1].values[CHANNELS], 1.0);
        assert_eq!(faces[2].values[CHANNELS], 0.25);
    }

    #[test]
    fn frames_without_a_time_are_refused() {
        let mut frame = frame(0, 1, 0.0, 0.0);
        frame.time = None;
        let mut smoothed = Smoothed::new(Box::new([Ok(frame)].into_iter()), 0.1);
        let error = smoothed.next().unwrap().unwrap_err();
        assert!(error.contains("frame 1 has no time"), "{error}");
    }
}
