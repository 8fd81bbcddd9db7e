// SPDX-License-Identifier: MPL-2.0
//! Frames at a constant rate, from the first frame to the last one. A value lies on the line between
//! the two frames around its time. A face that is missing in one of them is missing there.

use std::mem;

use super::Frames;
use super::frame::{Blend, Face, Frame, number};
use crate::table::Cell;

/// Times that are closer are the same, ns: Matroska rounds times to milliseconds.
const SAME: u64 = 1_000_000;

/// Frames at a constant rate.
pub(super) struct Resampled<'a> {
    frames: Frames<'a>,
    /// Interpolation of each column.
    blends: Vec<Option<Blend>>,
    /// Frames per second.
    rate: f64,
    /// Time of the first frame, ns; not known before it is read.
    start: Option<u64>,
    /// Number of frames until now.
    count: u64,
    /// Frames around the next time, with their times: the first is not after it.
    around: [Option<(u64, Frame)>; 2],
}

impl<'a> Resampled<'a> {
    /// Frames with such columns at `rate` per second.
    pub(super) fn new(frames: Frames<'a>, rate: f64, blends: Vec<Option<Blend>>) -> Self {
        Self {
            frames,
            blends,
            rate,
            start: None,
            count: 0,
            around: [None, None],
        }
    }

    /// The next frame that was analysed, with its time. The others say nothing about faces.
    fn read(&mut self) -> Result<Option<(u64, Frame)>, String> {
        let frames = self.frames.by_ref();
        let analysed = frames.find(|frame| frame.as_ref().map_or(true, |it| it.is_analysed));
        let Some(frame) = analysed.transpose()? else {
            return Ok(None);
        };
        let time = frame.time()?;
        let before = self.around[1].as_ref().map(|(time, _)| *time);
        if before.is_some_and(|before| time < before) {
            let number = frame.number;
            return Err(format!(
                "the time of frame {number} is before the one of the frame before it, so --fps cannot be used"
            ));
        }
        Ok(Some((time, frame)))
    }

    /// Reads until the last frame is not before `time`; `false` if there is none.
    fn advance(&mut self, time: u64) -> Result<bool, String> {
        while self.around[1]
            .as_ref()
            .is_none_or(|(last, _)| last + SAME < time)
        {
            let Some(next) = self.read()? else {
                return Ok(false);
            };
            let [_, after] = mem::take(&mut self.around);
            self.around = [after, Some(next)];
        }
        Ok(true)
    }

    fn frame(&mut self) -> Result<Option<Frame>, String> {
        let passed = (self.count as f64 / self.rate * 1e9).round() as u64;
        let time = self.start.unwrap_or(0) + passed;
        if !self.advance(time)? {
            return Ok(None);
        }
        let [before, Some((after_time, after))] = &self.around else {
            return Ok(None);
        };
        let size = after.size;
        let start = *self.start.get_or_insert(*after_time);
        let time = start + passed;
        self.count += 1;
        let faces = match before {
            _ if time.abs_diff(*after_time) <= SAME => after.faces.clone(),
            Some((before_time, before)) if time.abs_diff(*before_time) <= SAME => {
                before.faces.clone()
            }
            Some((before_time, before)) => {
                let part = (time - before_time) as f64 / (after_time - before_time) as f64;
                self.between(before, after, part)
            }
            None => Vec::new(),
        };
        Ok(Some(Frame {
            number: self.count,
            pts: Some(time),
            time: Some(time),
            is_analysed: true,
            size,
            faces,
        }))
    }
}

impl Resampled<'_> {
    /// The faces of both frames, at this part of the time between them.
    fn between(&self, before: &Frame, after: &Frame, part: f64) -> Vec<Face> {
        let (faces, after) = (before.faces.iter(), after.by_id());
        let pairs = faces.filter_map(|face| Some((face, *after.get(&face.id)?)));
        let face = |(from, to): (&Face, &Face)| {
            let cells = from.cells.iter().zip(&to.cells).zip(&self.blends);
            let cells = cells.map(|((from, to), blend)| between(*blend, from, to, part));
            Face {
                id: from.id,
                cells: cells.collect(),
            }
        };
        pairs.map(face).collect()
    }
}

impl Iterator for Resampled<'_> {
    type Item = Result<Frame, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.frame().transpose()
    }
}

/// The cell at this part of the way from one to another. The nearer one, if it is not blended.
fn between(blend: Option<Blend>, from: &Cell, to: &Cell, part: f64) -> Cell {
    let Some(blend) = blend else {
        return if part < 0.5 { from } else { to }.clone();
    };
    if from.len() != to.len() || number(to, 0).is_none() {
        return Cell::Missing;
    }
    blend.changed(from, |index, value| {
        let to = number(to, index).unwrap_or(value);
        part * blend.difference(value, to)
    })
}

#[cfg(test)]
mod tests {
    use super::super::frame::tests::{CHANNEL, YAW, blends, cells, value};
    use super::*;

    const MS: u64 = 1_000_000;

    /// A frame with faces with these ids and values, which are the yaw and the first blendshape.
    fn frame(time: u64, faces: &[(u32, f64)]) -> Frame {
        let face = |(id, value): &(u32, f64)| Face {
            id: *id,
            cells: cells(*value, *value),
        };
        Frame {
            number: 1,
            pts: None,
            time: Some(time * MS),
            is_analysed: true,
            size: None,
            faces: faces.iter().map(face).collect(),
        }
    }

    fn resampled(frames: Vec<Frame>, rate: f64) -> Vec<Frame> {
        let frames = Box::new(frames.into_iter().map(Ok));
        Resampled::new(frames, rate, blends())
            .map(Result::unwrap)
            .collect()
    }

    /// Time in ms and first blendshape of each frame.
    fn channels(frames: &[Frame]) -> Vec<(u64, Option<f64>)> {
        let channel = |frame: &Frame| Some(value(frame.faces.first()?, CHANNEL));
        let both = |frame: &Frame| (frame.time.unwrap() / MS, channel(frame));
        frames.iter().map(both).collect()
    }

    #[test]
    fn values_lie_between_the_neighbours() {
        let frames = [(100, 0.0), (200, 1.0), (300, 0.0)];
        let frames = frames.map(|(time, value)| frame(time, &[(1, value)]));
        let doubled = resampled(frames.clone().into(), 20.0);
        let want = [(100, 0.0), (150, 0.5), (200, 1.0), (250, 0.5), (300, 0.0)];
        let want = want.map(|(time, value)| (time, Some(value)));
        assert_eq!(channels(&doubled), want);
        let numbers: Vec<_> = doubled.iter().map(|frame| frame.number).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        let halved = resampled(frames.into(), 5.0);
        assert_eq!(channels(&halved), [(100, Some(0.0)), (300, Some(0.0))]);
    }

    #[test]
    fn faces_that_one_neighbour_lacks_are_missing() {
        let frames = vec![
            frame(0, &[(1, 1.0)]),
            frame(100, &[]),
            frame(200, &[(1, 1.0), (2, 3.0)]),
            frame(300, &[(2, 5.0)]),
        ];
        let got = resampled(frames, 20.0);
        let ids: Vec<Vec<u32>> = got
            .iter()
            .map(|frame| frame.faces.iter().map(|face| face.id).collect())
            .collect();
        let want: [&[u32]; 7] = [&[1], &[], &[], &[], &[1, 2], &[2], &[2]];
        assert_eq!(ids, want);
        assert_eq!(value(&got[5].faces[0], CHANNEL), 4.0);
    }

    #[test]
    fn frames_that_were_not_analysed_are_passed_over() {
        let mut skipped = frame(100, &[]);
        skipped.is_analysed = false;
        let frames = vec![frame(0, &[(1, 0.0)]), skipped, frame(200, &[(1, 1.0)])];
        let want = [(0, 0.0), (100, 0.5), (200, 1.0)];
        let want = want.map(|(time, value)| (time, Some(value)));
        assert_eq!(channels(&resampled(frames, 10.0)), want);
    }

    #[test]
    fn angles_take_the_shorter_way() {
        let frames = vec![frame(0, &[(1, 170.0)]), frame(100, &[(1, -170.0)])];
        let got = resampled(frames, 20.0);
        assert_eq!(value(&got[1].faces[0], YAW).abs(), 180.0);
        assert_eq!(value(&got[1].faces[0], CHANNEL), 0.0);
    }

    #[test]
    fn times_that_were_rounded_are_those_of_the_frames() {
        let frames = [0, 33, 67, 100].map(|time| frame(time, &[(1, time as f64)]));
        let got = resampled(frames.into(), 30.0);
        let values: Vec<_> = got.iter().map(|it| value(&it.faces[0], CHANNEL)).collect();
        assert_eq!(values, [0.0, 33.0, 67.0, 100.0]);
    }

    #[test]
    fn times_that_go_back_are_refused() {
        let frames = [40, 80, 0].map(|time| Ok(frame(time, &[])));
        let mut resampled = Resampled::new(Box::new(frames.into_iter()), 25.0, blends());
        let error = resampled.find_map(Result::err).unwrap();
        assert!(error.contains("is before"), "{error}");
        assert!(
            Resampled::new(Box::new([].into_iter()), 25.0, blends())
                .next()
                .is_none()
        );
    }
}
