// SPDX-License-Identifier: MPL-2.0
//! Smooths the values of each face over time, without a delay: each is replaced by the mean of the
//! values of the same id around it, weighted by a Gaussian of their distance in time.

use std::collections::{HashMap, VecDeque};
use std::str::FromStr;

use super::frame::{Blend, Face, Frame, GROUPS, number};
use super::{Frames, positive};
use crate::table::Cell;

/// Distance of the last values that count, in standard deviations. They have 1 % of the weight.
const REACH: f64 = 3.0;

/// Maximum standard deviation for blendshapes and landmarks unless another one is set, s. It takes
/// at most 2 % off the blinks in clips of 24 to 30 frames per second, and 4 % off a blink of 0.1 s at
/// any rate; 0.05 s takes 7 to 58 % off.
const MAX_EXPRESSION: f64 = 0.0125;

/// Standard deviation of the Gaussian for each of [`GROUPS`], s; 0 for values as they are.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Deviations([f64; 4]);

impl FromStr for Deviations {
    type Err = String;

    /// Reads seconds for all groups, such as `0.05`, or for some, such as `0.05,blendshapes=0.02`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut deviations = Self::default();
        for item in text.split(',') {
            deviations.set(item)?;
        }
        Ok(deviations)
    }
}

impl Deviations {
    fn set(&mut self, item: &str) -> Result<(), String> {
        let Some((name, seconds)) = item.split_once('=') else {
            let all = positive(item)?;
            let expression = all.min(MAX_EXPRESSION);
            self.0 = [all, all, expression, expression];
            return Ok(());
        };
        let names = GROUPS.map(|(name, _)| name);
        let group = names.iter().position(|group| *group == name);
        let group = group.ok_or_else(|| format!("{name} is none of {}", names.join(", ")))?;
        self.0[group] = positive(seconds)?;
        Ok(())
    }

    fn max(&self) -> f64 {
        self.0.iter().copied().fold(0.0, f64::max)
    }

    /// Weights of values at this distance in time, for each group.
    fn weights(&self, distance: u64) -> [f64; 4] {
        self.0.map(|deviation| {
            if distance == 0 {
                return 1.0;
            }
            let distance = distance as f64 / 1e9 / deviation;
            if distance > REACH {
                return 0.0;
            }
            libm::exp(-0.5 * distance * distance)
        })
    }
}

/// Frames with smoothed values.
pub(super) struct Smoothed<'a> {
    frames: Frames<'a>,
    deviations: Deviations,
    /// Smoothing of each column.
    blends: Vec<Option<Blend>>,
    /// Frames around the next one, with their times.
    window: VecDeque<(u64, Frame)>,
    /// Index of the next one in the window.
    next: usize,
}

impl<'a> Smoothed<'a> {
    /// Smooths frames with such columns.
    pub(super) fn new(
        frames: Frames<'a>,
        deviations: Deviations,
        blends: Vec<Option<Blend>>,
    ) -> Self {
        Self {
            frames,
            deviations,
            blends,
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
        a.abs_diff(b) as f64 / 1e9 > REACH * self.deviations.max()
    }

    fn smoothed(&self) -> Option<Frame> {
        let (time, frame) = self.window.get(self.next)?;
        let around = self.window.iter().map(|(at, frame)| {
            let weights = self.deviations.weights(at.abs_diff(*time));
            (weights, frame.by_id())
        });
        let around: Vec<_> = around.collect();
        let faces = frame.faces.iter().map(|face| self.face(face, &around));
        Some(Frame {
            faces: faces.collect(),
            ..*frame
        })
    }

    /// The face with means of its values in the frames around it, which have these weights.
    fn face(&self, face: &Face, around: &[([f64; 4], HashMap<u32, &Face>)]) -> Face {
        let around = around.iter();
        let around = around.filter_map(|(weights, it)| Some((weights, &it.get(&face.id)?.cells)));
        let around: Vec<_> = around.collect();
        let cells = face.cells.iter().zip(&self.blends).enumerate();
        let cells = cells.map(|(place, (cell, blend))| match blend {
            Some(blend) => {
                let others = around.iter();
                let others = others.map(|(weights, cells)| (weights[blend.group], &cells[place]));
                mean(*blend, cell, &others.collect::<Vec<_>>())
            }
            None => cell.clone(),
        });
        Face {
            id: face.id,
            cells: cells.collect(),
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

/// The weighted mean of a cell and others, without those that are missing or have other lengths.
fn mean(blend: Blend, cell: &Cell, others: &[(f64, &Cell)]) -> Cell {
    blend.changed(cell, |index, from| {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (weight, other) in others.iter().filter(|(_, it)| it.len() == cell.len()) {
            if let Some(to) = number(other, index) {
                sum += weight * blend.difference(from, to);
                weights += weight;
            }
        }
        sum / weights
    })
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
    use super::super::frame::tests::{CHANNEL, YAW, blends, cells, value};
    use super::*;

    const MS: u64 = 1_000_000;

    /// A frame with a face whose yaw and first blendshape are these.
    fn frame(time: u64, id: u32, yaw: f64, channel: f64) -> Frame {
        Frame {
            number: 1,
            pts: None,
            time: Some(time * MS),
            is_analysed: true,
            size: None,
            faces: vec![Face {
                id,
                cells: cells(yaw, channel),
            }],
        }
    }

    fn smoothed(frames: Vec<Frame>) -> Vec<Face> {
        let frames = Box::new(frames.into_iter().map(Ok));
        let smoothed = Smoothed::new(frames, Deviations([0.04; 4]), blends()).map(Result::unwrap);
        smoothed.flat_map(|frame| frame.faces).collect()
    }

    /// Values of `eyeBlinkLeft` in two clips, as MediaPipe 0.10.21 measures them, and their rates.
    #[rustfmt::skip]
    const BLINKS: [(f64, &[f64]); 2] = [
        (24.0, &[0.054, 0.055, 0.052, 0.049, 0.049, 0.047, 0.049, 0.572, 0.43, 0.291, 0.191, 0.145, 0.13, 0.117, 0.11]),
        (25.0, &[0.019, 0.014, 0.029, 0.025, 0.011, 0.017, 0.281, 0.645, 0.366, 0.193, 0.151, 0.091, 0.059, 0.025, 0.018]),
    ];

    #[test]
    fn a_blink_keeps_its_strength_unless_blendshapes_are_to_be_smoothed() {
        for (rate, values) in BLINKS {
            let blink = |text: &str| {
                let frames = std::iter::zip(0.., values).map(|(i, value)| {
                    let mut frame = frame(0, 1, 0.0, *value);
                    frame.time = Some((f64::from(i) / rate * 1e9) as u64);
                    Ok(frame)
                });
                let frames = Smoothed::new(Box::new(frames), text.parse().unwrap(), blends());
                let values = frames.map(|frame| value(&frame.unwrap().faces[0], CHANNEL));
                let (min, max) = values.fold((1.0f64, 0.0f64), |(min, max), value| {
                    (min.min(value), max.max(value))
                });
                max - min
            };
            let measured = blink("boxes=0.05");
            assert!(blink("0.2") > 0.95 * measured, "{rate}");
            assert!(blink("0.2,blendshapes=0.05") < 0.8 * measured, "{rate}");
        }
    }

    #[test]
    fn groups_have_their_own_strengths() {
        let parsed = |text: &str| text.parse::<Deviations>().map(|it| it.0);
        assert_eq!(parsed("0.01"), Ok([0.01; 4]));
        let short = MAX_EXPRESSION;
        assert_eq!(parsed("0.05"), Ok([0.05, 0.05, short, short]));
        let some = "pose=0.1,landmarks=0.02";
        assert_eq!(parsed(some), Ok([0.0, 0.1, 0.0, 0.02]));
        assert_eq!(parsed("0.1,pose=0.2"), Ok([0.1, 0.2, short, short]));
        for text in ["", "0", "pose", "pose=-1", "mouth=1", "0.1,"] {
            assert!(parsed(text).is_err(), "{text}");
        }
        let frames = [frame(0, 1, 10.0, 1.0), frame(10, 1, 20.0, 0.0)];
        let frames = Box::new(frames.into_iter().map(Ok));
        let smoothed = Smoothed::new(frames, "pose=0.1".parse().unwrap(), blends());
        let faces: Vec<_> = smoothed.map(|it| it.unwrap().faces[0].clone()).collect();
        assert!(value(&faces[0], YAW) > 14.0);
        assert_eq!(value(&faces[0], CHANNEL), 1.0);
    }

    #[test]
    fn an_impulse_becomes_the_gaussian_around_its_time() {
        let frames = (0..41).map(|i| frame(i * 20, 1, 0.0, f64::from(u8::from(i == 20))));
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
            let got = value(face, CHANNEL);
            assert!((got - want).abs() < 1e-6, "{i}: {got} {want}");
        }
    }

    #[test]
    fn angles_are_smoothed_across_the_back() {
        let yaws = [179.0, -179.0, 179.0, -179.0];
        let frames = std::iter::zip(0.., yaws).map(|(i, yaw)| frame(i * 20, 1, yaw, 0.0));
        for face in smoothed(frames.collect()) {
            assert!(value(&face, YAW).abs() > 178.0, "{face:?}");
        }
    }

    #[test]
    fn faces_do_not_mix_and_values_that_are_missing_stay_so() {
        let faces = smoothed(vec![
            frame(0, 1, 0.0, f64::NAN),
            frame(20, 2, 0.0, 1.0),
            frame(40, 1, 0.0, 0.25),
        ]);
        assert!(value(&faces[0], CHANNEL).is_nan());
        assert_eq!(value(&faces[1], CHANNEL), 1.0);
        assert_eq!(value(&faces[2], CHANNEL), 0.25);
    }

    #[test]
    fn frames_without_a_time_are_refused() {
        let mut frame = frame(0, 1, 0.0, 0.0);
        frame.time = None;
        let mut smoothed = Smoothed::new(
            Box::new([Ok(frame)].into_iter()),
            Deviations([0.1; 4]),
            blends(),
        );
        let error = smoothed.next().unwrap().unwrap_err();
        assert!(error.contains("frame 1 has no time"), "{error}");
    }
}
