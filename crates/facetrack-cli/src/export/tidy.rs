// SPDX-License-Identifier: MPL-2.0
//! A row per face and frame, with a column for each measurement that the record contains.

use std::io;

use super::contents::Contents;
use super::frame::{ANGLES, AXES, BOX, CHANNELS, CONFIDENCE, Face, Frame, POSITION};
use super::{ExportArguments, Sink};
use crate::table::{Cell, Column, Kind, Table};

/// The columns of a record with these contents.
pub fn columns(contents: &Contents, with_landmarks: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::new("frame", Kind::Integer),
        Column::new("pts", Kind::Integer),
        Column::new("id", Kind::Text),
    ];
    if contents.has_origin {
        columns.push(Column::new("origin", Kind::Text));
    }
    let floats = places(contents).map(|(_, name)| Column::new(name, Kind::Float));
    columns.extend(floats);
    if with_landmarks && contents.landmarks > 0 {
        let part = |point: usize| AXES.map(|axis| format!("landmarks.{point}.{axis}"));
        columns.push(Column {
            parts: (0..contents.landmarks).flat_map(part).collect(),
            ..Column::new("landmarks", Kind::Floats)
        });
    }
    columns
}

/// The places of single values, and the names of their columns.
fn places(contents: &Contents) -> impl Iterator<Item = (usize, String)> {
    let confidence = (CONFIDENCE, "confidence".to_owned());
    let bbox = ["x", "y", "width", "height"].map(|side| format!("box.{side}"));
    let angles = ["yaw", "pitch", "roll"].map(|angle| format!("pose.{angle}"));
    let position = AXES.map(|axis| format!("pose.{axis}"));
    let pose = (ANGLES..).zip(angles).chain((POSITION..).zip(position));
    let channels = contents.channels.iter();
    let channels = channels.map(|channel| format!("blendshapes.{channel}"));
    let confidence = contents.has_confidence.then_some(confidence);
    let pose = contents.has_pose.then_some(pose);
    confidence
        .into_iter()
        .chain((BOX..).zip(bbox))
        .chain(pose.into_iter().flatten())
        .chain((CHANNELS..).zip(channels.collect::<Vec<_>>()))
}

/// A file that is being written.
struct Tidy<T> {
    table: Box<T>,
    places: Vec<usize>,
    has_origin: bool,
    /// Place of the landmarks, if they are written.
    landmarks: Option<usize>,
    rows: u64,
}

/// Fills `table`, which has the columns of [`columns`].
pub fn sink<T: Table + 'static>(
    table: T,
    contents: &Contents,
    arguments: &ExportArguments,
) -> Box<dyn Sink> {
    let has_landmarks = arguments.landmarks && contents.landmarks > 0;
    Box::new(Tidy {
        table: Box::new(table),
        places: places(contents).map(|(place, _)| place).collect(),
        has_origin: contents.has_origin,
        landmarks: has_landmarks.then_some(CHANNELS + contents.channels.len()),
        rows: 0,
    })
}

impl<T> Tidy<T> {
    fn row(&self, frame: &Frame, face: &Face) -> Vec<Cell> {
        let mut row = vec![
            Cell::Integer(frame.number as i64),
            frame
                .pts
                .map_or(Cell::Missing, |pts| Cell::Integer(pts as i64)),
            Cell::Text(format!("obj_{}", face.id)),
        ];
        if self.has_origin {
            row.push(Cell::Text(face.origin.to_string()));
        }
        row.extend(self.places.iter().map(|place| float(face.values[*place])));
        if let Some(place) = self.landmarks {
            let landmarks = face.values[place..].to_vec();
            let is_missing = landmarks.iter().any(|value| value.is_nan());
            row.push(if is_missing {
                Cell::Missing
            } else {
                Cell::Floats(landmarks)
            });
        }
        row
    }
}

impl<T: Table> Sink for Tidy<T> {
    fn add(&mut self, frame: &Frame) -> Result<(), String> {
        for face in &frame.faces {
            let row = self.row(frame, face);
            self.table.add(row).map_err(|error| error.to_string())?;
            self.rows += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<u64> {
        self.table.finish()?;
        Ok(self.rows)
    }
}

/// The cell of a value, which is missing if it is NaN.
pub fn float(value: f32) -> Cell {
    if value.is_nan() {
        Cell::Missing
    } else {
        Cell::Float(value)
    }
}
