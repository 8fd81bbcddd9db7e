// SPDX-License-Identifier: MPL-2.0
//! The rows of videos: one for each status file.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use facetrack_assets::file;
use facetrack_jobs::Status;
use serde_json::{Map, Value as Json};
use walkdir::WalkDir;

use crate::error::StoreError;
use crate::places::{self, text};
use crate::run::names::FOLDER;
use crate::table::{Cell, Column, Kind, read_rows};

/// Suffix of a status file. The rest of its path below the folder is the id of the video.
const MARKER: &str = ".json.done";

/// Maximum size of a status file. Our choice: a hundred times the usual one.
const MAX_SIZE: u64 = 1 << 20;

/// Columns of an index: the place of the video, then the keys of its status file. Those of later
/// versions may have more keys.
const COLUMNS: [(&str, Kind); 21] = [
    ("id", Kind::Text),
    ("record", Kind::Text),
    ("status", Kind::Text),
    ("message", Kind::Text),
    ("video", Kind::Text),
    ("key", Kind::Text),
    ("frames", Kind::Integer),
    ("expected_frames", Kind::Integer),
    ("gap_frames", Kind::Integer),
    ("error_frames", Kind::Integer),
    ("decode_errors", Kind::Integer),
    ("faces", Kind::Integer),
    ("seconds", Kind::Double),
    ("cpu_seconds", Kind::Double),
    ("video_seconds", Kind::Double),
    ("attempts", Kind::Integer),
    ("whole", Kind::Text),
    ("host", Kind::Text),
    ("engine", Kind::Text),
    ("device", Kind::Text),
    ("device_reason", Kind::Text),
];

/// Places in a row.
const ID: usize = 0;
const RECORD: usize = 1;
const STATUS: usize = 2;
const MESSAGE: usize = 3;

/// Rows by the ids of their videos.
pub(crate) type Index = BTreeMap<String, Vec<Cell>>;

/// A video with a record.
#[derive(Debug)]
pub(crate) struct Recorded<'a> {
    pub id: &'a str,
    pub record: &'a Path,
}

/// The columns of an index.
pub(crate) fn columns() -> Vec<Column> {
    COLUMNS.map(|(name, kind)| Column::new(name, kind)).into()
}

/// The index of all sources. Of rows with the same id, the one of the last source is kept.
///
/// # Errors
/// Returns an error if a source cannot be read.
///
/// Entries of a folder that cannot be read are left out and reported to `complain`.
pub(crate) fn index(
    sources: &[PathBuf],
    complain: &mut dyn FnMut(String),
) -> Result<Index, Box<dyn Error>> {
    let mut index = Index::new();
    for source in sources {
        if source.is_dir() {
            add_folder(source, &mut index, complain);
        } else {
            add_file(source, &mut index).map_err(StoreError::at(source))?;
        }
    }
    Ok(index)
}

/// The record of the video of this row, if there is one.
pub(crate) fn recorded(row: &[Cell]) -> Option<Recorded<'_>> {
    let text = |place: usize| match &row[place] {
        Cell::Text(text) => Some(text.as_str()),
        _ => None,
    };
    let status: Status = serde_json::from_value(text(STATUS)?.into()).ok()?;
    status.has_record().then_some(Recorded {
        id: text(ID)?,
        record: Path::new(text(RECORD)?),
    })
}

/// The value of a row in a column of the index.
pub(crate) fn value<'a>(row: &'a [Cell], name: &str) -> &'a Cell {
    let place = COLUMNS.iter().position(|(known, _)| *known == name);
    place.map_or(&Cell::Missing, |place| &row[place])
}

fn add_file(path: &Path, index: &mut Index) -> io::Result<()> {
    read_rows(file::open(path)?, &COLUMNS, |row| {
        let Cell::Text(id) = &row[ID] else {
            let reason = "it is not an index: there is a row without an id";
            return Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        };
        index.insert(id.clone(), row);
        Ok(())
    })
}

fn add_folder(folder: &Path, index: &mut Index, complain: &mut dyn FnMut(String)) {
    let entries = WalkDir::new(folder).follow_links(true).into_iter();
    for entry in entries.filter_entry(|it| it.depth() == 0 || !ends_with(it.path(), FOLDER)) {
        let marker = match places::found(entry) {
            Ok(marker) => marker.filter(|it| ends_with(it, MARKER)),
            // Its target is being searched.
            Err(error) if error.loop_ancestor().is_some() => None,
            Err(error) => {
                complain(error.to_string());
                None
            }
        };
        match marker.map(|marker| of_marker(folder, &marker)) {
            Some(Ok((id, row))) => drop(index.insert(id, row)),
            Some(Err(error)) => complain(error.to_string()),
            None => (),
        }
    }
}

fn ends_with(path: &Path, suffix: &str) -> bool {
    let path = path.as_os_str().as_encoded_bytes();
    path.ends_with(suffix.as_bytes())
}

fn of_marker(folder: &Path, path: &Path) -> Result<(String, Vec<Cell>), Box<dyn Error>> {
    let record = path.with_extension("");
    let id = record.strip_prefix(folder)?.with_extension("");
    let (record, id) = (text(&record)?.to_owned(), text(&id)?.to_owned());
    let marker = file::read_itself(path, MAX_SIZE).map_err(|error| error.to_string());
    let row = marker.and_then(|marker| cells(&marker));
    let mut row = row.unwrap_or_else(|reason| damaged(&reason));
    row[ID] = Cell::Text(id.clone());
    row[RECORD] = Cell::Text(record);
    Ok((id, row))
}

fn damaged(reason: &str) -> Vec<Cell> {
    let mut row = vec![Cell::Missing; COLUMNS.len()];
    row[MESSAGE] = Cell::Text(format!(
        "the status file cannot be read ({reason}). Run `facetrack run` again"
    ));
    row
}

/// The row of a status file, without the place of the video.
///
/// # Errors
/// Returns the reason why it is damaged.
fn cells(marker: &[u8]) -> Result<Vec<Cell>, String> {
    let marker: Map<String, Json> =
        serde_json::from_slice(marker).map_err(|error| error.to_string())?;
    let cell = |(name, kind): &(&str, Kind)| {
        let Some(value) = marker.get(*name).filter(|value| !value.is_null()) else {
            return Ok(Cell::Missing);
        };
        cell(value, *kind).ok_or_else(|| format!("`{name}` is {value}"))
    };
    COLUMNS.iter().map(cell).collect()
}

/// The value; `None` for one of another type.
fn cell(value: &Json, kind: Kind) -> Option<Cell> {
    match kind {
        Kind::Integer => value.as_i64().map(Cell::Integer),
        Kind::Double => value.as_f64().map(Cell::Double),
        _ => value.as_str().map(|text| Cell::Text(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MARKER: &str = r#"{"key":"k","status":"complete","frames":3,"faces":2,"seconds":1.5,"attempts":1,"later":[]}"#;

    fn index(sources: &[PathBuf]) -> Result<Index, Box<dyn Error>> {
        super::index(sources, &mut |complaint| panic!("{complaint}"))
    }

    fn text(cell: &Cell) -> &str {
        match cell {
            Cell::Text(text) => text,
            other => panic!("{other:?} is no text"),
        }
    }

    #[test]
    fn status_files_below_a_folder_are_found_and_the_last_source_wins() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, content) in [
            ("a/deep/x.y.json.done", MARKER),
            ("a/z.json.done", r#"{"key":"#),
            ("a/z.json", ""),
            ("a/n.json.done", r#"{"frames":"many"}"#),
            ("b/z.json.done", MARKER),
        ] {
            fs::create_dir_all(path(name).parent().unwrap()).unwrap();
            fs::write(path(name), content).unwrap();
        }
        let only_a = index(&[path("a")]).unwrap();
        assert_eq!(only_a.keys().collect::<Vec<_>>(), ["deep/x.y", "n", "z"]);
        let row = &only_a["deep/x.y"];
        assert_eq!(
            text(&row[RECORD]),
            path("a/deep/x.y.json").to_str().unwrap()
        );
        assert_eq!((&row[6], &row[7]), (&Cell::Integer(3), &Cell::Missing));
        assert_eq!(row[12], Cell::Double(1.5));
        assert_eq!(recorded(row).unwrap().id, "deep/x.y");
        for (id, reason) in [("z", "EOF"), ("n", "`frames` is \"many\"")] {
            let message = text(&only_a[id][MESSAGE]);
            assert!(message.contains(reason), "{message}");
            assert_eq!(only_a[id][STATUS], Cell::Missing);
            assert!(recorded(&only_a[id]).is_none());
        }
        let both = index(&[path("a"), path("b")]).unwrap();
        assert_eq!(text(&both["z"][STATUS]), "complete");
        assert_eq!(both.len(), 3);
    }

    #[test]
    fn status_files_of_segments_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let parts = folder.path().join("a.json.parts");
        fs::create_dir(&parts).unwrap();
        fs::write(parts.join("00001.json.done"), MARKER).unwrap();
        assert_eq!(index(&[folder.path().to_owned()]).unwrap(), Index::new());
        // Nothing else is meant by its name.
        assert_eq!(index(&[parts]).unwrap().len(), 1);
    }

    #[test]
    fn links_without_a_target_end_no_index() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.json.done", "video.mp4"] {
            std::os::unix::fs::symlink("nowhere", folder.path().join(name)).unwrap();
        }
        let index = index(&[folder.path().to_owned()]).unwrap();
        assert_eq!(index.keys().collect::<Vec<_>>(), ["a"]);
        let message = text(&index["a"][MESSAGE]);
        assert!(message.contains("not a regular file"), "{message}");
        assert_eq!(index["a"][STATUS], Cell::Missing);
    }

    #[test]
    fn odd_entries_end_no_index() {
        use std::os::unix::ffi::OsStringExt;
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.json.done"), MARKER).unwrap();
        symlink(".", at("loop")).unwrap();
        symlink("/dev/zero", at("zero.json.done")).unwrap();
        let pipe = std::process::Command::new("mkfifo")
            .arg(at("pipe.json.done"))
            .status();
        assert!(pipe.unwrap().success());
        fs::create_dir(at("folder.json.done")).unwrap();
        let odd = std::ffi::OsString::from_vec(b"\xff.json.done".into());
        fs::write(folder.path().join(odd), MARKER).unwrap();
        let mut complaints = Vec::new();
        let index = super::index(&[folder.path().to_owned()], &mut |it| complaints.push(it));
        let ids: Vec<_> = index.unwrap().into_keys().collect();
        assert_eq!(ids, ["a", "pipe", "zero"]);
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].contains("not UTF-8"), "{complaints:?}");
    }

    #[test]
    fn sources_that_cannot_be_read_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        fs::write(&text, "no table").unwrap();
        for source in [folder.path().join("nowhere"), text] {
            let error = index(std::slice::from_ref(&source))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(source.to_str().unwrap()), "{error}");
        }
    }
}
