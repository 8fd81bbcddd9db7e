// SPDX-License-Identifier: MPL-2.0
//! `facetrack index`: the status files of many videos as a table, and the faces of their records.
//! `facetrack.index` and `facetrack.write_index` in Python have the same columns.

mod faces;
mod videos;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use facetrack_assets::file::is_same;
use facetrack_assets::replacement::Replacement;

use crate::error::StoreError;
use crate::output;
use crate::table::{Column, PARQUET, ParquetTable, Table, check_start};

/// Arguments of `facetrack index`.
#[derive(Debug, Args)]
pub struct IndexArguments {
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
/// A source or record cannot be read, a file cannot be written, or the file of the faces is another
/// one of the arguments.
///
/// Returns a failure if an entry of a folder was left out.
pub fn run(arguments: IndexArguments) -> Result<ExitCode, Box<dyn Error>> {
    check_faces(&arguments)?;
    let outputs = [Some(&arguments.to), arguments.faces.as_ref()];
    outputs
        .into_iter()
        .flatten()
        .try_for_each(|path| check_start(path, PARQUET, "Parquet file"))?;
    let mut code = ExitCode::SUCCESS;
    let videos = videos::index(&arguments.sources, &mut |complaint| {
        code = ExitCode::FAILURE;
        output::complain(format_args!("facetrack index: left out: {complaint}"));
    })?;
    write(&arguments.to, videos::columns(), |table| {
        let mut rows = videos.values().cloned();
        rows.try_for_each(|row| Ok(table.add(row)?))
    })?;
    say(videos.len() as u64, "video", &arguments.to)?;
    if let Some(path) = arguments.faces {
        let columns = faces::columns(arguments.columns);
        let mut count = 0;
        write(&path, columns.clone(), |table| {
            let mut add = |row| {
                count += 1;
                table.add(row)
            };
            let mut recorded = videos.values().filter_map(|row| videos::recorded(row));
            recorded.try_for_each(|video| faces::read(&video, &columns, &mut add))
        })?;
        say(count, "face", &path)?;
    }
    Ok(code)
}

/// The index and the sources stay as they are when the faces are written.
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

/// Writes a Parquet file with the rows that `fill` adds.
fn write(
    path: &Path,
    columns: Vec<Column>,
    fill: impl FnOnce(&mut dyn Table) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let replacement = Replacement::begin(path).map_err(StoreError::at(path))?;
    let mut table = Box::new(ParquetTable::new(replacement.file()?, columns)?);
    fill(&mut *table)?;
    table.finish()?;
    replacement.finish().map_err(StoreError::at(path))?;
    Ok(())
}

fn say(count: u64, thing: &str, path: &Path) -> Result<(), Box<dyn Error>> {
    let count = output::counted(count, thing);
    output::print_line(format_args!("{count} in {}", path.display()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
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
        // An index is renewed.
        index(&a, &a, Some(&b)).unwrap();
    }
}
