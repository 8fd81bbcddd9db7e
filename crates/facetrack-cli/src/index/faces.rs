// SPDX-License-Identifier: MPL-2.0
//! The rows of faces: one for each face and frame of a record. Columns have the names of the keys
//! in the record: `pose.yaw` is the key `yaw` of the object `pose`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Display;
use std::io;

use facetrack::replay::Replay;
use facetrack_assets::file;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::videos::Recorded;
use crate::table::{Cell, Column, Kind};

/// Columns that every table has. `frame` and `pts` describe the frame, the others the face.
const COLUMNS: [(&str, Kind); 18] = [
    ("video", Kind::Text),
    ("frame", Kind::Integer),
    ("pts", Kind::Integer),
    ("id", Kind::Text),
    ("centroid_x", Kind::Integer),
    ("centroid_y", Kind::Integer),
    ("bbox_xmin", Kind::Integer),
    ("bbox_xmax", Kind::Integer),
    ("bbox_ymin", Kind::Integer),
    ("bbox_ymax", Kind::Integer),
    ("bbox_width", Kind::Integer),
    ("bbox_height", Kind::Integer),
    ("confidence", Kind::Double),
    ("is_speaking", Kind::Boolean),
    ("speaking_confidence", Kind::Double),
    ("speaking_method", Kind::Text),
    ("source", Kind::Text),
    ("label", Kind::Text),
];

/// Size of the video for records without one, in pixels: it changes no value of the table.
const ANY_SIZE: (u32, u32) = (1, 1);

/// Columns that are not of a key of the face.
const OF_THE_FRAME: usize = 3;

/// A frame whose values are parsed when they are needed.
#[derive(Deserialize)]
struct Frame<'a> {
    frame: i64,
    pts: Option<i64>,
    #[serde(borrow)]
    tracked_objects: Vec<Object<'a>>,
}

type Object<'a> = BTreeMap<String, &'a RawValue>;

/// The further column of this name.
///
/// # Errors
/// There is no such key.
pub fn column(name: &str) -> Result<Column, String> {
    let kind = kind(name).ok_or(
        "no face has this key. Use the names of keys of a face in the record, such as pose.yaw",
    )?;
    Ok(Column::new(name, kind))
}

fn kind(name: &str) -> Option<Kind> {
    match name {
        "gender" | "origin" | "blendshapes_source" | "eos_fit.failure" => Some(Kind::Text),
        "fit.success" | "blendshapes_corrected" => Some(Kind::Boolean),
        "age" | "pose.yaw" | "pose.pitch" | "pose.roll" | "fit.error" => Some(Kind::Double),
        "eos_fit.scale" | "eos_fit.residual" => Some(Kind::Double),
        "landmarks" | "landmarks_106" | "landmark_confidence" | "key_points" => Some(Kind::Floats),
        "box" | "embedding" | "eye_openness" | "pose.matrix" => Some(Kind::Floats),
        "fit.quaternion" | "fit.euler" | "fit.rotation" | "fit.translation" => Some(Kind::Floats),
        "fit.landmarks_3d" | "fit.projected" => Some(Kind::Floats),
        "eos.shape_coeffs" | "eos.expression_coeffs" => Some(Kind::Floats),
        "eos_fit.rotation" | "eos_fit.origin" | "eos_fit.contour" => Some(Kind::Floats),
        _ => {
            let groups = [
                "blendshapes.",
                "blendshapes_raw.",
                "features.",
                "gaze.",
                "speaking_sources.visual.",
            ];
            let is_number = groups.iter().any(|group| name.starts_with(group));
            is_number.then_some(Kind::Double)
        }
    }
}

/// All columns of the table.
pub fn columns(further: Vec<Column>) -> Vec<Column> {
    let fixed = COLUMNS.map(|(name, kind)| Column::new(name, kind));
    fixed.into_iter().chain(further).collect()
}

/// Lets `add` have a row for each face of the video.
///
/// # Errors
/// The record cannot be read, or `add` fails.
pub fn read(
    video: &Recorded<'_>,
    columns: &[Column],
    add: &mut impl FnMut(Vec<Cell>) -> io::Result<()>,
) -> Result<(), Box<dyn Error>> {
    let at = |error: &dyn Display| format!("{}: {error}", video.record.display());
    let file = file::open(video.record).map_err(|error| at(&error))?;
    let mut replay = Replay::open(file).map_err(|error| at(&error))?;
    if !replay.is_finished() {
        return Err(at(&"it is cut off. Track the video again").into());
    }
    let frames = replay.frames().len();
    for place in 0..frames {
        // Refuses damage in values that are not in the table, too.
        replay.report(place, ANY_SIZE).map_err(|error| at(&error))?;
        let text = replay.text(place).map_err(|error| at(&error))?;
        let frame: Frame = serde_json::from_slice(text).map_err(|error| at(&error))?;
        for face in &frame.tracked_objects {
            let row = row(video.id, &frame, face, columns);
            add(row.map_err(|error| at(&error))?)?;
        }
    }
    Ok(())
}

fn row(
    video: &str,
    frame: &Frame<'_>,
    face: &Object<'_>,
    columns: &[Column],
) -> serde_json::Result<Vec<Cell>> {
    let mut row = Vec::with_capacity(columns.len());
    row.push(Cell::Text(video.to_owned()));
    row.push(Cell::Integer(frame.frame));
    row.push(frame.pts.map_or(Cell::Missing, Cell::Integer));
    for column in &columns[OF_THE_FRAME..] {
        row.push(cell(face, &column.name, column.kind)?);
    }
    Ok(row)
}

/// The value at a path such as `pose.yaw`.
fn cell(object: &Object<'_>, path: &str, kind: Kind) -> serde_json::Result<Cell> {
    let (key, rest) = path.split_once('.').unwrap_or((path, ""));
    let Some(value) = object.get(key) else {
        return Ok(Cell::Missing);
    };
    if rest.is_empty() {
        return parsed(value, kind);
    }
    match serde_json::from_str::<Option<Object>>(value.get())? {
        Some(inner) => cell(&inner, rest, kind),
        None => Ok(Cell::Missing),
    }
}

fn parsed(value: &RawValue, kind: Kind) -> serde_json::Result<Cell> {
    match kind {
        Kind::Integer => scalar(value, Cell::Integer),
        Kind::Double => scalar(value, Cell::Double),
        Kind::Float => scalar(value, Cell::Float),
        Kind::Boolean => scalar(value, Cell::Boolean),
        Kind::Text => scalar(value, Cell::Text),
        Kind::Floats => Ok(floats(value)),
    }
}

fn scalar<T: DeserializeOwned>(value: &RawValue, cell: fn(T) -> Cell) -> serde_json::Result<Cell> {
    let value: Option<T> = serde_json::from_str(value.get())?;
    Ok(value.map_or(Cell::Missing, cell))
}

/// The numbers of a list, or of a list of lists, in their order. They are read as 64-bit numbers, as
/// JSON readers do.
fn floats(list: &RawValue) -> Cell {
    let separators = |c: char| "[], \t\r\n".contains(c);
    let numbers = list.get().split(separators).filter(|it| !it.is_empty());
    let numbers = numbers.map(|number| Ok(number.parse::<f64>()? as f32));
    let numbers: Result<_, std::num::ParseFloatError> = numbers.collect();
    numbers.map_or(Cell::Missing, Cell::Floats)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"metadata":{"tracking_engine":"x","width":8,"height":8},"frames":[
{"frame":1,"tracked_objects":[],"pts":0,"status":"no-face"},
{"frame":2,"tracked_objects":[{"id":"obj_1","centroid_x":3,"centroid_y":3,"bbox_xmin":1,"bbox_ymin":1,"bbox_width":4,"bbox_height":4,"confidence":0.5,"is_speaking":true,"blendshapes":null,"blendshapes_raw":{"jawOpen":0.5},"blendshapes_corrected":true,"pose":{"matrix":[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]],"yaw":-1.5},"key_points":[[1,2.5],[4,6e1]]}],"pts":null,"status":"tracked"}
]}"#;

    #[test]
    fn columns_are_keys_of_the_record() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("r.json");
        std::fs::write(&record, RECORD).unwrap();
        let further = [
            "blendshapes.jawOpen",
            "blendshapes_raw.jawOpen",
            "blendshapes_corrected",
            "pose.yaw",
            "key_points",
            "landmarks",
        ];
        let columns = columns(further.map(|name| column(name).unwrap()).into());
        let mut rows = Vec::new();
        let video = Recorded {
            id: "r",
            record: &record,
        };
        let mut add = |row| {
            rows.push(row);
            Ok(())
        };
        read(&video, &columns, &mut add).unwrap();
        assert_eq!(rows.len(), 1);
        let cell = |name| {
            let place = columns.iter().position(|column| column.name == name);
            &rows[0][place.unwrap()]
        };
        for (name, want) in [
            ("video", Cell::Text("r".into())),
            ("frame", Cell::Integer(2)),
            ("pts", Cell::Missing),
            ("centroid_x", Cell::Integer(3)),
            ("bbox_xmax", Cell::Missing),
            ("is_speaking", Cell::Boolean(true)),
            ("blendshapes.jawOpen", Cell::Missing),
            ("blendshapes_raw.jawOpen", Cell::Double(0.5)),
            ("blendshapes_corrected", Cell::Boolean(true)),
            ("pose.yaw", Cell::Double(-1.5)),
            ("key_points", Cell::Floats(vec![1.0, 2.5, 4.0, 60.0])),
            ("landmarks", Cell::Missing),
        ] {
            assert_eq!(cell(name), &want, "{name}");
        }
    }

    #[test]
    fn keys_that_no_face_has_are_refused() {
        for name in ["jawOpen", "pose", "blendshapes", ""] {
            assert!(column(name).unwrap_err().contains("no face has"), "{name}");
        }
    }
}
