// SPDX-License-Identifier: MPL-2.0
//! The faces of a record as rows, the same for every table. Columns have the names of the keys in
//! the record: `pose.yaw` is the key `yaw` of the object `pose`. The JSON Schema has their types.
//! Nested lists of numbers become one flat list.

mod columns;
mod expected;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::path::Path;
use std::sync::LazyLock;

use facetrack::record::JSON_SCHEMA;
use facetrack::replay::Replay;
use facetrack::report::FrameStatus;
use facetrack_assets::file;
use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use serde_json::value::RawValue;

pub(crate) use self::columns::{Choice, ColumnPattern};
pub(crate) use self::expected::Settings;

use crate::table::{Cell, Column, Kind};

/// Size of the video for records without one, in pixels: it changes no value of a table.
pub(crate) const ANY_SIZE: (u32, u32) = (1, 1);

/// Suffix of a record that is being written.
const UNFINISHED: &str = ".partial";

/// Names of the numbers of a point.
pub(crate) const AXES: [&str; 3] = ["x", "y", "z"];

/// A frame, with the faces as they are in the record.
#[derive(Deserialize)]
struct Outline<'a> {
    frame: u64,
    pts: Option<u64>,
    #[serde(borrow)]
    tracked_objects: Vec<&'a RawValue>,
}

/// The values of a key.
#[derive(Clone, Copy)]
struct Key {
    kind: Kind,
    /// Length of the lists in a list; otherwise 0.
    width: usize,
    /// True if every face has the key.
    is_common: bool,
}

/// End of the path of numbers that may have any names.
const ANY: &str = ".*";

/// The keys of a face in the schema, by their paths.
static KEYS: LazyLock<IndexMap<String, Key>> = LazyLock::new(|| {
    let schema: Json = serde_json::from_str(JSON_SCHEMA).unwrap_or_default();
    let mut keys = IndexMap::new();
    add_keys("", &schema["$defs"]["object"], &schema, &mut keys);
    let required = &schema["$defs"]["object"]["required"];
    for name in required.as_array().into_iter().flatten() {
        if let Some(key) = name.as_str().and_then(|name| keys.get_mut(name)) {
            key.is_common = true;
        }
    }
    keys
});

fn add_keys(path: &str, key: &Json, schema: &Json, keys: &mut IndexMap<String, Key>) {
    let reference = key["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    let key = reference.and_then(|it| schema.pointer(it)).unwrap_or(key);
    if let Some(properties) = key["properties"].as_object() {
        for (name, key) in properties {
            add_keys(&joined(path, name), key, schema, keys);
        }
        return;
    }
    let (list, inner) = (&key["items"], &key["items"]["items"]);
    let item = [inner, list, key].into_iter().find(|it| !it.is_null());
    let kind = match item.and_then(|it| it["type"].as_str()) {
        Some("string") if !list.is_null() => Kind::Texts,
        _ if !list.is_null() => Kind::Floats,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Double,
        Some("boolean") => Kind::Boolean,
        _ => Kind::Text,
    };
    let (path, kind) = match &key["additionalProperties"] {
        Json::Object(_) => (format!("{path}{ANY}"), Kind::Double),
        _ => (path.to_owned(), kind),
    };
    let width = list["maxItems"].as_u64().unwrap_or(0) as usize;
    let is_common = false;
    keys.insert(
        path,
        Key {
            kind,
            width,
            is_common,
        },
    );
}

fn joined(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

/// The key of a value at this path.
fn key(path: &str) -> Option<Key> {
    let any = || Some(format!("{}{ANY}", path.split_once('.')?.0));
    let found = KEYS.get(path);
    found.or_else(|| KEYS.get(&any()?)).copied()
}

/// Calls `work` with the path and the text of each value of a face that the schema has.
fn visit(
    path: &str,
    value: &RawValue,
    work: &mut impl FnMut(&str, Kind, &RawValue) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    if value.get().starts_with('{') {
        let object: IndexMap<String, &RawValue> = serde_json::from_str(value.get())?;
        let mut values = object.into_iter();
        return values.try_for_each(|(name, value)| visit(&joined(path, &name), value, work));
    }
    match key(path) {
        Some(key) if value.get() != "null" => work(path, key.kind, value),
        _ => Ok(()),
    }
}

/// The column with this name.
///
/// # Errors
/// Returns an error if the schema has no such key.
pub(crate) fn column(name: &str) -> Result<Column, String> {
    let key = key(name).filter(|_| !name.ends_with(ANY)).ok_or(
        "no face has this key. Use the names of keys of a face in the record, such as pose.yaw",
    )?;
    Ok(Column::new(name, key.kind))
}

/// The columns that every record has.
fn common_columns() -> Vec<Column> {
    let keys = KEYS.iter().filter(|(_, key)| key.is_common);
    keys.map(|(name, key)| Column::new(name, key.kind))
        .collect()
}

/// The columns of the frame that a face is in. They come first, and are in every table.
pub(crate) fn frame_columns() -> [Column; 4] {
    [
        ("video", Kind::Text),
        ("frame", Kind::Integer),
        ("seconds", Kind::Double),
        ("pts", Kind::Integer),
    ]
    .map(|(name, kind)| Column::new(name, kind))
}

/// The columns of faces that follow from the settings: all of them for a known engine.
pub(crate) fn columns_of(settings: Settings<'_>) -> Vec<Column> {
    let expected = expected::columns(settings);
    let further = expected.iter().filter_map(|(name, _)| column(name).ok());
    let mut columns: Vec<_> = common_columns().into_iter().chain(further).collect();
    columns.sort_by_cached_key(|column| columns::rank(&column.name));
    columns
}

/// The columns of one table of several records.
///
/// # Errors
/// Returns an error with its path if a record cannot be read.
pub(crate) fn columns_of_all<'a>(
    records: impl Iterator<Item = &'a Path>,
) -> Result<Vec<Column>, String> {
    let mut all: Vec<Column> = common_columns();
    let mut known: HashSet<String> = all.iter().map(|column| column.name.clone()).collect();
    for record in records {
        let replay = open(record).map_err(|error| format!("{}: {error}", record.display()))?;
        let columns = columns_of(settings(&replay)).into_iter();
        all.extend(columns.filter(|column| known.insert(column.name.clone())));
    }
    all.sort_by_cached_key(|column| columns::rank(&column.name));
    Ok(all)
}

/// The settings of a record.
fn settings<S>(replay: &Replay<S>) -> Settings<'_> {
    Settings {
        engine: replay.engine(),
        of_sink: replay.options(),
        of_engine: replay.facetrack_options(),
    }
}

/// The id of the video of a single record: its name without suffixes.
pub(crate) fn video_of(record: &Path) -> String {
    let name = record.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(UNFINISHED).unwrap_or(&name);
    name.rsplit_once('.')
        .map_or(name, |(stem, _)| stem)
        .to_owned()
}

/// Opens a record.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not a record.
pub(crate) fn open(path: &Path) -> Result<Replay<File>, String> {
    let file = file::open(path).map_err(|error| error.to_string())?;
    Replay::open(file).map_err(|error| error.to_string())
}

/// Columns of a record besides those that every record has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Those that follow from the head, so that the files of a folder have the same ones, and those
    /// that a face has a value for nevertheless, as in records of other engines.
    Expected,
    /// Those that a face has a value for.
    Found,
}

/// The values that the faces of a record have.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// In the order of the schema.
    pub columns: Vec<Column>,
    /// Number of landmarks of a face; 0 without landmarks.
    pub landmarks: usize,
    /// True if a face has a head pose.
    pub has_pose: bool,
    /// Areas of the boxes of each id, summed over all frames, in square pixels.
    pub areas: BTreeMap<u32, f64>,
}

impl Contents {
    /// Looks through the whole record.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read, or a frame is damaged.
    pub(crate) fn of(replay: &mut Replay<File>, extent: Extent) -> Result<Self, String> {
        let mut contents = Self::default();
        let expected = match extent {
            Extent::Expected => expected::columns(settings(replay)),
            Extent::Found => Vec::new(),
        };
        let further = expected.iter().filter_map(|(name, _)| column(name).ok());
        let mut found: IndexMap<String, Column> = common_columns()
            .into_iter()
            .chain(further)
            .map(|column| (column.name.clone(), column))
            .collect();
        let numbers: Vec<u64> = replay.frames().map(|(number, _)| number).collect();
        for (place, number) in numbers.into_iter().enumerate() {
            let text = replay.text(place).map_err(|error| error.to_string())?;
            let read = contents.add(text, &mut found);
            read.map_err(|error| format!("frame {number}: {error}"))?;
        }
        for (name, length) in expected {
            if let Some(column) = found.get_mut(&name).filter(|it| it.parts.is_empty()) {
                column.parts = parts(&name, length);
            }
        }
        found.sort_by_cached_key(|name, _| columns::rank(name));
        contents.columns = found.into_values().collect();
        let landmarks = contents.place("landmarks");
        let numbers = landmarks.map_or(0, |place| contents.columns[place].parts.len());
        contents.landmarks = numbers / AXES.len();
        Ok(contents)
    }

    fn add(
        &mut self,
        frame: &[u8],
        found: &mut IndexMap<String, Column>,
    ) -> serde_json::Result<()> {
        let frame: Outline = serde_json::from_slice(frame)?;
        for face in frame.tracked_objects {
            let (mut id, mut area) = (None, 1.0);
            visit("", face, &mut |name, kind, value| {
                match name {
                    "id" => {
                        id = serde_json::from_str(value.get()).map(|text: String| number(&text))?
                    }
                    "bbox_width" | "bbox_height" => {
                        area *= serde_json::from_str::<f64>(value.get())?
                    }
                    "pose.yaw" => self.has_pose = true,
                    _ => (),
                }
                let column = match found.get_mut(name) {
                    Some(column) => column,
                    None => found
                        .entry(name.to_owned())
                        .or_insert(Column::new(name, kind)),
                };
                if matches!(kind, Kind::Floats | Kind::Texts) && column.parts.is_empty() {
                    column.parts = parts(name, cell(value, kind)?.len());
                }
                Ok(())
            })?;
            // Other ids are reported when the face is read.
            if let Some(id) = id {
                *self.areas.entry(id).or_default() += area;
            }
        }
        Ok(())
    }

    /// Place of the column with this name.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// Names of the values of a list.
fn parts(name: &str, count: usize) -> Vec<String> {
    let width = key(name).map_or(0, |key| key.width);
    let part = |index: usize| match index.checked_div(width) {
        None => format!("{name}.{index}"),
        Some(point) if width <= AXES.len() => format!("{name}.{point}.{}", AXES[index % width]),
        Some(row) => format!("{name}.{row}.{}", index % width),
    };
    (0..count).map(part).collect()
}

/// The number of an id such as `obj_1`.
fn number(id: &str) -> Option<u32> {
    id.strip_prefix("obj_")?.parse().ok()
}

/// A frame of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    /// Number of the frame, from 1.
    pub number: u64,
    /// Time of the record, ns.
    pub pts: Option<u64>,
    /// Time of the record, or computed from the frame rate, ns.
    pub time: Option<u64>,
    /// True if the engine has analysed the frame, or repeated the faces of another one.
    pub is_analysed: bool,
    /// Width and height, in pixels; `None` if the record does not have them.
    pub size: Option<[u32; 2]>,
    pub faces: Vec<Face>,
}

/// A face, with a cell for each column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Face {
    pub id: u32,
    pub cells: Vec<Cell>,
}

impl Frame {
    /// Returns the time, ns.
    ///
    /// # Errors
    /// Returns an error if the frame has no time.
    pub(crate) fn time(&self) -> Result<u64, String> {
        self.time.ok_or_else(|| {
            let number = self.number;
            format!("frame {number} has no time, and the record has no frame rate")
        })
    }

    /// The faces by their ids. Of those with the same id, as in a damaged record, the first one.
    pub(crate) fn by_id(&self) -> HashMap<u32, &Face> {
        let faces = self.faces.iter().rev();
        faces.map(|face| (face.id, face)).collect()
    }

    /// A row for each face of the frame of this video.
    pub(crate) fn rows(&self, video: &str) -> impl Iterator<Item = Vec<Cell>> {
        let cell = |time: Option<u64>, cell: fn(u64) -> Cell| time.map_or(Cell::Missing, cell);
        let place = [
            Cell::Text(video.to_owned()),
            Cell::Integer(self.number as i64),
            cell(self.time, |time| Cell::Double(time as f64 / 1e9)),
            cell(self.pts, |pts| Cell::Integer(pts as i64)),
        ];
        let faces = self.faces.iter();
        faces.map(move |face| [&place[..], &face.cells].concat())
    }
}

/// Reads the frames of records.
pub(crate) struct Rows {
    /// Places of the columns by their names.
    places: HashMap<String, usize>,
}

impl Rows {
    /// Reads the values of these columns.
    pub(crate) fn new(columns: &[Column]) -> Self {
        let names = columns.iter().map(|column| column.name.clone());
        Self {
            places: names.zip(0..).collect(),
        }
    }

    /// The frame at this place of the record.
    ///
    /// # Errors
    /// Returns an error if the frame cannot be read, or is damaged, also in values that have no
    /// column.
    pub(crate) fn frame(&self, replay: &mut Replay<File>, place: usize) -> Result<Frame, String> {
        let report = replay.report(place, ANY_SIZE);
        let report = report.map_err(|error| error.to_string())?;
        let size = report.as_ref().map(|it| (it.width, it.height));
        let size = size.filter(|size| *size != ANY_SIZE);
        let status = report.map(|report| report.status);
        let fps = replay.fps();
        let text = replay.text(place).map_err(|error| error.to_string())?;
        let outline: Outline = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let faces = outline.tracked_objects.iter().map(|face| self.face(face));
        let faces: Result<Vec<_>, _> = faces.collect();
        let faces = faces.map_err(|error| error.to_string())?;
        let is_skipped = matches!(status, None | Some(FrameStatus::Skipped));
        let seconds = outline.frame.saturating_sub(1) as f64;
        let by_rate = fps.map(|fps| (seconds / fps * 1e9).round() as u64);
        Ok(Frame {
            number: outline.frame,
            pts: outline.pts,
            time: outline.pts.or(by_rate),
            is_analysed: !(is_skipped && faces.is_empty()),
            size: size.map(|(width, height)| [width, height]),
            faces,
        })
    }

    fn face(&self, face: &RawValue) -> serde_json::Result<Face> {
        let mut cells = vec![Cell::Missing; self.places.len()];
        let mut id = None;
        visit("", face, &mut |name, kind, value| {
            if name == "id" {
                id = serde_json::from_str(value.get()).map(|text: String| number(&text))?;
            }
            if let Some(place) = self.places.get(name) {
                cells[*place] = cell(value, kind)?;
            }
            Ok(())
        })?;
        // The reader of the record refuses other ids.
        let id = id.unwrap_or_default();
        Ok(Face { id, cells })
    }
}

fn cell(value: &RawValue, kind: Kind) -> serde_json::Result<Cell> {
    match kind {
        Kind::Integer => scalar(value, Cell::Integer),
        Kind::Double => scalar(value, Cell::Double),
        Kind::Float => scalar(value, Cell::Float),
        Kind::Boolean => scalar(value, Cell::Boolean),
        Kind::Text => scalar(value, Cell::Text),
        Kind::Texts => scalar(value, Cell::Texts),
        Kind::Floats => Ok(floats(value)),
    }
}

fn scalar<T: DeserializeOwned>(value: &RawValue, cell: fn(T) -> Cell) -> serde_json::Result<Cell> {
    serde_json::from_str(value.get()).map(cell)
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
{"frame":2,"tracked_objects":[{"id":"obj_1","centroid_x":3,"centroid_y":3,"bbox_xmin":1,"bbox_ymin":1,"bbox_width":4,"bbox_height":4,"confidence":0.5,"is_speaking":true,"blendshapes":null,"blendshapes_raw":{"jawOpen":0.5},"blendshapes_corrected":true,"pose":{"matrix":[[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]],"yaw":-1.5},"key_points":[[1,2.5],[4,6e1]],"from_the_future":7}],"pts":null,"status":"tracked"}
]}"#;

    fn record() -> (tempfile::TempDir, Replay<File>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        std::fs::write(&path, RECORD).unwrap();
        let replay = open(&path).unwrap();
        (folder, replay)
    }

    #[test]
    fn columns_are_keys_of_the_record() {
        let (_folder, mut replay) = record();
        let names = [
            "centroid_x",
            "bbox_xmax",
            "is_speaking",
            "blendshapes.jawOpen",
            "blendshapes_raw.jawOpen",
            "blendshapes_corrected",
            "pose.yaw",
            "key_points",
            "landmarks",
        ];
        let rows = Rows::new(&names.map(|name| column(name).unwrap()));
        assert!(rows.frame(&mut replay, 0).unwrap().faces.is_empty());
        let frame = rows.frame(&mut replay, 1).unwrap();
        let row = frame.rows("clip").next().unwrap();
        let text = Cell::Text("clip".to_owned());
        assert_eq!(
            row[..4],
            [text, Cell::Integer(2), Cell::Missing, Cell::Missing]
        );
        let wanted = [
            Cell::Integer(3),
            Cell::Missing,
            Cell::Boolean(true),
            Cell::Missing,
            Cell::Double(0.5),
            Cell::Boolean(true),
            Cell::Double(-1.5),
            Cell::Floats(vec![1.0, 2.5, 4.0, 60.0]),
            Cell::Missing,
        ];
        assert_eq!(frame.faces[0].cells, wanted);
        assert_eq!((frame.faces[0].id, frame.faces.len()), (1, 1));
    }

    #[test]
    fn contents_are_the_common_columns_and_those_with_values() {
        let contents = Contents::of(&mut record().1, Extent::Found).unwrap();
        let mut names: Vec<_> = contents.columns.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names[0], "id");
        let common = common_columns();
        assert_eq!(common.len(), 15);
        names.retain(|name| common.iter().all(|column| column.name != *name));
        let found = [
            "pose.yaw",
            "pose.matrix",
            "blendshapes_corrected",
            "blendshapes_raw.jawOpen",
            "key_points",
        ];
        assert_eq!(names, found);
        let parts = |name: &str| &contents.columns[contents.place(name).unwrap()].parts;
        let points = ["0.x", "0.y", "1.x", "1.y"];
        assert_eq!(
            *parts("key_points"),
            points.map(|it| format!("key_points.{it}"))
        );
        assert_eq!(parts("pose.matrix")[7], "pose.matrix.1.3");
        assert_eq!(contents.areas, BTreeMap::from([(1, 16.0)]));
    }

    #[test]
    fn a_single_record_names_its_video() {
        for name in ["a/x.y.json", "x.y.jsonl", "x.y.json.partial", "x.y"] {
            let want = if name == "x.y" { "x" } else { "x.y" };
            assert_eq!(video_of(Path::new(name)), want, "{name}");
        }
    }

    #[test]
    fn one_table_has_the_columns_of_all_records() {
        let folder = tempfile::tempdir().unwrap();
        let record = |name: &str, engine: &str, fields: &str| {
            let path = folder.path().join(name);
            let head =
                serde_json::json!({"tracking_engine": engine, "options": {"fields": fields}});
            let record = serde_json::json!({"metadata": head, "frames": []});
            std::fs::write(&path, record.to_string()).unwrap();
            path
        };
        let records = [
            record("a", "openseeface", "gaze"),
            record("b", "mediapipe", ""),
            record("c", "mediapipe", "box"),
        ];
        let names = |records: &[std::path::PathBuf]| -> Vec<String> {
            let columns = columns_of_all(records.iter().map(|it| it.as_path())).unwrap();
            columns.into_iter().map(|column| column.name).collect()
        };
        let all = names(&records);
        assert!(all.is_sorted_by_key(|name| columns::rank(name)), "{all:?}");
        let single = records
            .iter()
            .flat_map(|it| names(std::slice::from_ref(it)));
        assert_eq!(
            single.collect::<HashSet<_>>(),
            all.iter().cloned().collect()
        );
        let reversed: Vec<_> = records.iter().rev().cloned().collect();
        assert_eq!(names(&reversed), all);
        let error = columns_of_all([Path::new("nowhere")].into_iter()).unwrap_err();
        assert!(error.starts_with("nowhere: "), "{error}");
    }

    #[test]
    fn keys_that_no_face_has_are_refused() {
        for name in ["jawOpen", "pose", "blendshapes", "id.x", ""] {
            assert!(column(name).unwrap_err().contains("no face has"), "{name}");
        }
        assert_eq!(column("eos_fit.expressions").unwrap().kind, Kind::Texts);
        assert_eq!(column("features.eye_l").unwrap().kind, Kind::Double);
    }
}
