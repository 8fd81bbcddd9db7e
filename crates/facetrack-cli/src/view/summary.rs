// SPDX-License-Identifier: MPL-2.0
//! A summary of a record for a terminal.

use std::collections::BTreeMap;
use std::time::Duration;

use facetrack::printable::Line;
use facetrack::report::FrameReport;

use super::columns::for_each_value;
use crate::plot;

/// Counts of frames and faces, and the values of a channel.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    channel: String,
    engine: String,
    fps: Option<f64>,
    frames: usize,
    with_face: usize,
    faces: BTreeMap<u32, Face>,
}

/// A face.
#[derive(Debug)]
struct Face {
    /// Number of frames that have it.
    frames: usize,
    /// The channel in each frame, where it was measured.
    samples: Vec<Option<f32>>,
}

impl Summary {
    /// Creates a summary with a curve of this channel.
    pub(crate) fn new(channel: String) -> Self {
        Self {
            channel,
            ..Self::default()
        }
    }

    pub(crate) fn begin(&mut self, engine: &str, fps: Option<f64>, frames: usize) {
        (self.engine, self.fps, self.frames) = (engine.to_owned(), fps, frames);
    }

    /// Adds the frame at this place.
    pub(crate) fn add(&mut self, place: usize, report: Option<&FrameReport>) {
        let faces = report.map_or(&[][..], |report| &report.faces);
        self.with_face += usize::from(!faces.is_empty());
        for tracked in faces {
            let face = self.faces.entry(tracked.id).or_insert_with(|| Face {
                frames: 0,
                samples: vec![None; self.frames],
            });
            face.frames += 1;
            for_each_value(&tracked.face, &mut |name, value, _| {
                if name == self.channel {
                    face.samples[place] = Some(value);
                }
            });
        }
    }

    /// The summary; `elapsed` is the duration of the run.
    pub(crate) fn text(&self, elapsed: Option<Duration>) -> String {
        let Self {
            frames,
            with_face,
            fps,
            ..
        } = self;
        let mut out = format!(
            "  engine   {}\n  frames   {frames} at {:.3} fps\n  \
            faces    {}, in {with_face} of {frames} frames\n",
            Line(&self.engine),
            fps.unwrap_or_default(),
            self.faces.len()
        );
        if let Some(elapsed) = elapsed.filter(|elapsed| !elapsed.is_zero()) {
            let seconds = elapsed.as_secs_f64();
            let speed = *frames as f64 / seconds;
            out += &format!("  speed    {speed:.1} fps ({seconds:.2} s from start to end)\n");
        }
        format!("{out}\n{}", self.picture())
    }

    /// The channel of the face that is in most frames, the first of several.
    fn picture(&self) -> String {
        let channel = Line(&self.channel);
        // Of several maxima the last one counts.
        let most_seen = self.faces.iter().rev().max_by_key(|(_, face)| face.frames);
        let Some((id, face)) = most_seen else {
            return "  No face to draw.\n".to_owned();
        };
        if face.samples.iter().all(Option::is_none) {
            return format!("  {channel} was not measured.\n");
        }
        let seconds = self.fps.map_or(0.0, |fps| self.frames as f64 / fps);
        let curve = plot::curve(&face.samples, seconds);
        format!("  {channel} of obj_{id} over time\n{curve}")
    }
}
