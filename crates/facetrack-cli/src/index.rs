// SPDX-License-Identifier: MPL-2.0
//! `facetrack index`: the status files of many videos as a table, and the faces of their records.
//! `facetrack.index` and `facetrack.write_index` in Python have the same columns.

pub(crate) mod videos;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use facetrack_assets::file::is_same;

use self::videos::Recorded;
use crate::faces::{self, Rows};
use crate::output;
use crate::table::{self, Add, Cell, Column, FileFormat, Kind};

const PARQUET: FileFormat = FileFormat::Parquet;

/// Arguments of `facetrack index`.
#[derive(Debug, Args)]
pub(crate) struct IndexArguments {
    /// Folders of records, and index files; of videos with the same id, the last one is kept
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<PathBuf>,
    /// Parquet file to write, with a row per video
    #[arg(long, value_name = "FILE", default_value = "videos.parquet")]
    to: PathBuf,
    /// Second Parquet file to write, with a row per face and frame of all records
    #[arg(long, value_name = "FILE")]
    faces: Option<PathBuf>,
    /// Further columns of the second file, such as blendshapes.jawOpen,pose.yaw
    #[arg(
        long,
        value_name = "NAMES",
        requires = "faces",
        value_delimiter = ',',
        value_parser = faces::column
    )]
    columns: Vec<Column>,
}

/// Writes the index.
///
/// # Errors
/// Returns an error if a source or record cannot be read, a file cannot be written, or the file of
/// the faces is also another argument.
///
/// Returns a failure if an entry of a folder was left out.
pub(crate) fn run(arguments: IndexArguments) -> Result<ExitCode, Box<dyn Error>> {
    check_faces(&arguments)?;
    PARQUET.check(&arguments.to, &videos::columns())?;
    let face_columns = [faces::common_columns(), arguments.columns].concat();
    let video = std::iter::once(Column::new("video", Kind::Text));
    let all = video.chain(faces::frame_columns());
    let all: Vec<_> = all.chain(face_columns.iter().cloned()).collect();
    let mut path = arguments.faces.iter();
    path.try_for_each(|path| PARQUET.check(path, &all))?;
    let mut code = ExitCode::SUCCESS;
    let videos = videos::index(&arguments.sources, &mut |complaint| {
        code = ExitCode::FAILURE;
        output::complain(format_args!("facetrack index: left out: {complaint}"));
    })?;
    let columns = videos::columns();
    table::write(&arguments.to, PARQUET, columns, "video", |add| {
        let mut rows = videos.values().cloned();
        rows.try_for_each(|row| Ok(add(row)?))
    })?;
    if let Some(path) = arguments.faces {
        let rows = Rows::new(&face_columns);
        table::write(&path, PARQUET, all, "face", |add| {
            let mut recorded = videos.values().filter_map(|row| videos::recorded(row));
            recorded.try_for_each(|video| add_faces(&video, &rows, add))
        })?;
    }
    Ok(code)
}

/// Adds a row for each face of the video.
///
/// # Errors
/// Returns an error if the record cannot be read or is not finished, or the table cannot be
/// written.
fn add_faces(video: &Recorded<'_>, rows: &Rows, add: &mut Add<'_>) -> Result<(), Box<dyn Error>> {
    let at = |error: String| format!("{}: {error}", video.record.display());
    let mut replay = faces::open(video.record).map_err(at)?;
    if !replay.is_finished() {
        return Err(at("it is cut off. Track the video again".to_owned()).into());
    }
    let frames = replay.frames().len();
    for place in 0..frames {
        let frame = rows.frame(&mut replay, place).map_err(at)?;
        for face in &frame.faces {
            let id = std::iter::once(Cell::Text(video.id.to_owned()));
            let cells = face.cells.iter().cloned();
            add(id.chain(frame.cells()).chain(cells).collect())?;
        }
    }
    Ok(())
}

/// Checks that writing the faces does not overwrite the index or a source.
fn check_faces(arguments: &IndexArguments) -> Result<(), String> {
    let Some(faces) = &arguments.faces else {
        return Ok(());
    };
    let mut others = arguments.sources.iter().chain([&arguments.to]);
    if others.any(|other| is_same(other, faces)) {
        return Err(format!(
            "{}: --faces is the index or a source. Name another file",
            faces.display()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_faces_replace_neither_the_index_nor_a_source() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        let index = |source: &Path, to: &Path, faces: Option<&Path>| {
            run(IndexArguments {
                sources: vec![source.to_owned()],
                to: to.to_owned(),
                faces: faces.map(Path::to_owned),
                columns: Vec::new(),
            })
        };
        index(folder.path(), &a, None).unwrap();
        for (to, faces) in [(&b, &a), (&b, &b)] {
            let error = index(&a, to, Some(faces)).unwrap_err().to_string();
            assert!(
                error.contains("--faces is the index or a source"),
                "{error}"
            );
        }
        let record = folder.path().join("a.json");
        std::fs::write(&record, "{\"metadata\":{}}").unwrap();
        for (to, faces) in [(&record, None), (&b, Some(record.as_path()))] {
            let error = index(&a, to, faces).unwrap_err().to_string();
            assert!(error.contains("is no Parquet file"), "{error}");
        }
        assert_eq!(std::fs::read(&record).unwrap().len(), 15);
        // A table of another program, and the other table.
        let other = folder.path().join("other.parquet");
        let columns = vec![
            Column::new("id", Kind::Text),
            Column::new("mine", Kind::Text),
        ];
        table::write(&other, PARQUET, columns, "row", |_| Ok(())).unwrap();
        index(&a, &a, Some(&b)).unwrap();
        for (to, faces) in [(&other, None), (&a, Some(other.as_path())), (&b, None)] {
            let error = index(&a, to, faces).unwrap_err().to_string();
            assert!(
                error.contains("is no Parquet file with these columns"),
                "{error}"
            );
        }
        // An index is renewed.
        index(&a, &a, Some(&b)).unwrap();
    }
}
