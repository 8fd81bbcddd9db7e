// SPDX-License-Identifier: MPL-2.0
//! The content of a record as columns of whole numbers. A row is a face in a frame.

use std::collections::HashMap;

use facetrack::geometry::Rect;
use facetrack::observation::{Features, Observation, Origin};
use facetrack::report::{FrameReport, FrameStatus, TrackedFace};
use indexmap::{IndexMap, IndexSet};
use serde_json::{Value as Json, json};

use super::encode::{Numbers, PIXEL, quantised};
use super::points::Points;

/// Steps of values.
const SCORE: f32 = 1.0 / 1000.0;
const DEGREE: f32 = 1.0 / 50.0;
const YEAR: f32 = 0.1;

/// Mark of the first frame of a shot, in the number of a frame's status.
const CUT: u64 = 8;

/// Statuses by their numbers.
const STATES: [FrameStatus; 5] = [
    FrameStatus::Tracked,
    FrameStatus::NoFace,
    FrameStatus::Skipped,
    FrameStatus::Gap,
    FrameStatus::Error,
];

/// Origins by their numbers.
const ORIGINS: [Origin; 4] = [
    Origin::Detected,
    Origin::Tracked,
    Origin::Held,
    Origin::Predicted,
];

/// The columns of a record.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// Width and height that all positions refer to, px; 0 before the first report.
    size: (u32, u32),
    places: usize,
    numbers: Numbers,
    times: Numbers,
    states: Numbers,
    rows: usize,
    row_places: Numbers,
    row_ids: Numbers,
    origins: Numbers,
    channels: IndexMap<String, Channel>,
    pub(crate) points: Points,
    last_number: u64,
    last_time: u64,
    last_place: usize,
    /// Ids in the order of their first frames.
    ids: IndexSet<u32>,
}

/// A measurement over all rows.
#[derive(Debug)]
struct Channel {
    step: f32,
    values: Numbers,
    /// Rows that have been written.
    rows: usize,
    /// The last value of each face.
    last: HashMap<u32, i64>,
    range: [f32; 2],
}

impl Columns {
    /// Adds the next frame, with its number and its time in µs. Without a report, it was not
    /// analysed.
    pub(crate) fn add(&mut self, number: u64, time: u64, report: Option<&FrameReport>) {
        self.numbers.push(number.wrapping_sub(self.last_number));
        // Times of damaged videos may go back.
        self.times.push(time.wrapping_sub(self.last_time) as i64);
        (self.last_number, self.last_time) = (number, time);
        let status = report.map_or(FrameStatus::Skipped, |report| report.status);
        let cut = report.is_some_and(|report| report.cut);
        self.states.push(status as u64 + if cut { CUT } else { 0 });
        if let Some(report) = report {
            self.add_faces(report);
        }
        self.places += 1;
    }

    fn add_faces(&mut self, report: &FrameReport) {
        let own = (report.width, report.height);
        if self.size.0 == 0 {
            self.size = own;
        }
        for tracked in &report.faces {
            if own == self.size {
                self.add_face(tracked);
            } else {
                self.add_face(&resized(tracked, own, self.size));
            }
        }
    }

    fn add_face(&mut self, tracked: &TrackedFace) {
        let TrackedFace { id, face } = tracked;
        let (index, _) = self.ids.insert_full(*id);
        self.row_places.push(self.places - self.last_place);
        self.last_place = self.places;
        self.row_ids.push(index);
        self.origins.push(face.origin as u64);
        for_each_value(face, &mut |name, value, step| {
            self.add_value(*id, &name, value, step)
        });
        self.points.add(*id, face);
        self.rows += 1;
    }

    fn add_value(&mut self, id: u32, name: &str, value: f32, step: f32) {
        if !value.is_finite() {
            return;
        }
        if !self.channels.contains_key(name) {
            self.channels.insert(name.to_owned(), Channel::new(step));
        }
        self.channels[name].add(self.rows, id, value);
    }

    /// Number of different faces.
    pub(crate) fn people(&self) -> usize {
        self.ids.len()
    }

    /// Time of the last frame, s.
    pub(crate) fn seconds(&self) -> f64 {
        self.last_time as f64 / 1e6
    }

    /// The columns by their names on the page.
    pub(crate) fn named(&self) -> impl Iterator<Item = (String, &Numbers)> {
        let columns = [
            ("numbers", &self.numbers),
            ("times", &self.times),
            ("states", &self.states),
            ("row-places", &self.row_places),
            ("row-ids", &self.row_ids),
            ("origins", &self.origins),
        ];
        let channels = self.channels.values().enumerate();
        let channels =
            channels.map(|(index, channel)| (format!("channel-{index}"), &channel.values));
        let columns = columns.into_iter();
        columns
            .map(|(name, numbers)| (name.to_owned(), numbers))
            .chain(channels)
    }

    /// Describes the columns for the page.
    pub(crate) fn header(&self) -> Json {
        let channel = |(name, channel): (&String, &Channel)| json!({"name": name, "step": channel.step, "range": channel.range});
        json!({
            "width": self.size.0,
            "height": self.size.1,
            "frames": self.places,
            "rows": self.rows,
            "ids": self.ids,
            "states": STATES,
            "origins": ORIGINS,
            "channels": self.channels.iter().map(channel).collect::<Vec<_>>(),
            "points": self.points.header(),
        })
    }
}

impl Channel {
    fn new(step: f32) -> Self {
        Self {
            step,
            values: Numbers::default(),
            rows: 0,
            last: HashMap::new(),
            range: [f32::INFINITY, f32::NEG_INFINITY],
        }
    }

    /// Adds the value of a face in this row, as the difference to the last value of the face.
    fn add(&mut self, row: usize, id: u32, value: f32) {
        if self.rows > row {
            // A name that a damaged record has twice.
            return;
        }
        while self.rows < row {
            self.values.push_none();
            self.rows += 1;
        }
        let quantised = quantised(value, self.step);
        let last = self.last.insert(id, quantised).unwrap_or_default();
        self.values.push(quantised - last);
        self.rows += 1;
        self.range = [self.range[0].min(value), self.range[1].max(value)];
    }
}

/// Calls `add` with the name, the value and the step of each number of a face. Names are the keys
/// of the record.
fn for_each_value(face: &Observation, add: &mut dyn FnMut(String, f32, f32)) {
    let Rect {
        x,
        y,
        width,
        height,
    } = face.bbox;
    for (name, value) in [("x", x), ("y", y), ("width", width), ("height", height)] {
        add(format!("box.{name}"), value, PIXEL);
    }
    if let Some(score) = face.confidence {
        add("confidence".to_owned(), score, SCORE);
    }
    if let Some(angles) = face.pose.map(|pose| pose.euler_degrees()) {
        for (name, value) in [
            ("yaw", angles.yaw),
            ("pitch", angles.pitch),
            ("roll", angles.roll),
        ] {
            add(format!("pose.{name}"), value, DEGREE);
        }
    }
    for (name, value) in face.blendshapes.iter().flat_map(|shapes| shapes.iter()) {
        add(format!("blendshapes.{name}"), value, SCORE);
    }
    for (side, pupil) in face
        .gaze
        .iter()
        .flat_map(|gaze| [("right", gaze.right), ("left", gaze.left)])
    {
        add(format!("gaze.{side}.x"), pupil.position.x, PIXEL);
        add(format!("gaze.{side}.y"), pupil.position.y, PIXEL);
        add(format!("gaze.{side}.confidence"), pupil.confidence, SCORE);
    }
    for name in face.features.iter().flat_map(|_| Features::NAMES) {
        let value = face.features.and_then(|features| features.get(name));
        add(format!("features.{name}"), value.unwrap_or_default(), SCORE);
    }
    if let Some(attributes) = face.attributes {
        add("age".to_owned(), attributes.age, YEAR);
    }
    let fit = face.morphable.iter().flatten();
    for (name, value) in fit.flat_map(|fit| std::iter::zip(&*fit.expression_names, &fit.expression))
    {
        add(format!("eos_fit.{name}"), *value, SCORE);
    }
}

/// The face as in a frame of size `to`.
fn resized(tracked: &TrackedFace, from: (u32, u32), to: (u32, u32)) -> TrackedFace {
    let scale_x = to.0 as f32 / from.0 as f32;
    let scale_y = to.1 as f32 / from.1 as f32;
    let mut tracked = tracked.clone();
    let face = &mut tracked.face;
    face.scale_columns(scale_x);
    face.bbox.y *= scale_y;
    face.bbox.height *= scale_y;
    face.for_each_point(|_, y, _| *y *= scale_y);
    tracked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_has_an_element_for_each_row() {
        let mut channel = Channel::new(0.5);
        for (row, id, value) in [(1, 7, 1.0), (2, 8, -2.0), (4, 7, 0.5)] {
            channel.add(row, id, value);
        }
        let mut want = Numbers::default();
        for number in ["null", "2", "-4", "null", "-1"] {
            want.push(number);
        }
        assert_eq!(channel.values, want);
        assert_eq!(channel.range, [-2.0, 1.0]);
    }
}
