// SPDX-License-Identifier: MPL-2.0
//! `facetrack index`: the status files of many videos as a table, and the faces of their records.
//! `facetrack.index` in Python reads both, and has the same columns.

pub(crate) mod videos;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use facetrack_assets::file::is_same;

use self::videos::Recorded;
use crate::faces::{self, Choice, ColumnPattern, Rows};
use crate::output;
use crate::table::{self, Add, FileFormat};

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
    /// Columns of the second file, as in facetrack export
    #[arg(
        long,
        value_name = "PATTERN",
        requires = "faces",
        num_args = 1..,
        value_delimiter = ','
    )]
    columns: Vec<ColumnPattern>,
    /// Add the landmarks to the second file
    #[arg(long, requires = "faces")]
    landmarks: bool,
}

/// Writes the index.
///
/// # Errors
/// Returns an error if a source or record cannot be read, a file cannot be written, or the file of
/// the faces is also another argument.
///
/// Returns a failure if an entry of a folder was left out.
pub(crate) fn run(arguments: &IndexArguments) -> Result<ExitCode, Box<dyn Error>> {
    check_faces(arguments)?;
    let (to, columns) = (&arguments.to, videos::columns());
    PARQUET.check(to, &columns)?;
    let mut code = ExitCode::SUCCESS;
    let videos = videos::index(&arguments.sources, &mut |complaint| {
        code = ExitCode::FAILURE;
        output::complain(format_args!("facetrack index: left out: {complaint}"));
    })?;
    let count = table::write(to, PARQUET, columns, |add| {
        let mut rows = videos.values().cloned();
        rows.try_for_each(|row| Ok(add(row)?))
    })?;
    table::print_count(count, "video", to)?;
    if let Some(path) = &arguments.faces {
        let recorded = videos.values().filter_map(|row| videos::recorded(row));
        let recorded: Vec<_> = recorded.collect();
        let choice = Choice {
            patterns: &arguments.columns,
            landmarks: arguments.landmarks,
        };
        let count = write_faces(path, &recorded, choice)?;
        table::print_count(count, "face", path)?;
    }
    Ok(code)
}

/// Checks that a table of faces would replace nothing but an earlier one.
///
/// # Errors
/// Returns a message with the file and the remedy.
pub(crate) fn check_table(path: &Path) -> Result<(), String> {
    PARQUET.check(path, &faces::frame_columns())
}

/// Writes a row for each face and frame of these videos, and returns their number. The table has each
/// column that one of the records has.
///
/// # Errors
/// Returns an error if a record cannot be read or is not finished, a pattern matches no column, or
/// the table cannot be written.
pub(crate) fn write_faces(
    path: &Path,
    videos: &[Recorded<'_>],
    choice: Choice<'_>,
) -> Result<u64, Box<dyn Error>> {
    check_table(path)?;
    let mut columns = faces::columns_of_all(videos.iter().map(|video| video.record))?;
    // Without a record, there is nothing that a pattern could match.
    if !videos.is_empty() {
        columns = choice.of(columns)?;
    }
    let rows = Rows::new(&columns);
    let all = faces::frame_columns().into_iter().chain(columns).collect();
    table::write(path, PARQUET, all, |add| {
        let mut videos = videos.iter();
        videos.try_for_each(|video| add_faces(video, &rows, add))
    })
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
        frame.rows(video.id).try_for_each(&mut *add)?;
    }
    Ok(())
}

/// Checks that writing the faces does not overwrite the index, a source, or a file of another kind.
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
    check_table(faces)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, Kind};

    #[test]
    fn the_faces_replace_neither_the_index_nor_a_source() {
        let folder = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        let index = |source: &Path, to: &Path, faces: Option<&Path>| {
            run(&IndexArguments {
                sources: vec![source.to_owned()],
                to: to.to_owned(),
                faces: faces.map(Path::to_owned),
                columns: Vec::new(),
                landmarks: false,
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
        table::write(&other, PARQUET, columns, |_| Ok(())).unwrap();
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
