// SPDX-License-Identifier: MPL-2.0
//! A row per face and frame, with a column for each measurement that the record contains.

use super::Layout;
use super::contents::Contents;
use super::frame::{ANGLES, AXES, BOX, CHANNELS, CONFIDENCE, Face, Frame, POSITION};
use crate::table::{Cell, Column, Kind};

/// A row per face and frame.
pub struct Tidy {
    /// Places of single values, and the names of their columns.
    places: Vec<(usize, String)>,
    has_origin: bool,
    /// Number of landmarks of a face; 0 if they are not written.
    landmarks: usize,
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

impl Tidy {
    /// The layout for a record with these contents.
    pub fn new(contents: &Contents, with_landmarks: bool) -> Self {
        Self {
            places: places(contents).collect(),
            has_origin: contents.has_origin,
            landmarks: if with_landmarks {
                contents.landmarks
            } else {
                0
            },
        }
    }

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
        let places = self.places.iter();
        row.extend(places.map(|(place, _)| float(face.values[*place])));
        if self.landmarks > 0 {
            // They are the last values.
            let landmarks = &face.values[face.values.len() - 3 * self.landmarks..];
            let is_missing = landmarks.iter().any(|value| value.is_nan());
            row.push(if is_missing {
                Cell::Missing
            } else {
                Cell::Floats(landmarks.to_vec())
            });
        }
        row
    }
}

impl Layout for Tidy {
    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            Column::new("frame", Kind::Integer),
            Column::new("pts", Kind::Integer),
            Column::new("id", Kind::Text),
        ];
        if self.has_origin {
            columns.push(Column::new("origin", Kind::Text));
        }
        let places = self.places.iter();
        columns.extend(places.map(|(_, name)| Column::new(name, Kind::Float)));
        if self.landmarks > 0 {
            let part = |point: usize| AXES.map(|axis| format!("landmarks.{point}.{axis}"));
            columns.push(Column {
                parts: (0..self.landmarks).flat_map(part).collect(),
                ..Column::new("landmarks", Kind::Floats)
            });
        }
        columns
    }

    fn rows(&self, frame: &Frame) -> Result<Vec<Vec<Cell>>, String> {
        let faces = frame.faces.iter();
        Ok(faces.map(|face| self.row(frame, face)).collect())
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
