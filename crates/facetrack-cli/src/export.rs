// SPDX-License-Identifier: MPL-2.0
//! `facetrack export`: a record as a table for other programs, one frame after another.

mod contents;
mod frame;
mod livelink;
mod openface;
mod resample;
mod selection;
mod smooth;
mod source;
mod tidy;

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use facetrack::file;
use facetrack::replay::Replay;

use contents::Contents;
use frame::Frame;
use resample::Resampled;
use selection::Selection;
use smooth::Smoothed;
use source::Source;

use crate::output;
use crate::replacement::{Replacement, is_same};
use crate::table::{CsvTable, ParquetTable};

/// Arguments of `facetrack export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// JSON record, dense or jsonl, finished or not
    #[arg(value_name = "RECORD")]
    record: PathBuf,
    /// Format to write
    #[arg(long, value_enum)]
    format: Format,
    /// File to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Faces to export: all, largest, or ids such as obj_1,obj_3; default: all, and largest with
    /// livelink-csv
    #[arg(long, value_name = "FACES")]
    faces: Option<Selection>,
    /// Constant frame rate to interpolate the values at, in frames per second
    #[arg(long, value_name = "RATE", value_parser = positive)]
    fps: Option<f64>,
    /// Standard deviation of the Gaussian that smooths the values of each face over time, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    smooth: Option<f64>,
    /// Add the landmarks (csv, parquet)
    #[arg(long)]
    landmarks: bool,
}

impl ExportArguments {
    /// Whether the landmarks of a record with these contents are exported.
    fn needs_landmarks(&self, contents: &Contents) -> bool {
        let is_openface = self.format == Format::OpenfaceCsv;
        self.landmarks || is_openface && openface::has_landmarks(contents)
    }
}

/// A format to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A row per face and frame
    Csv,
    /// The same as Parquet
    Parquet,
    /// A row per frame, as Epic's app Live Link Face records it
    LivelinkCsv,
    /// A row per face and frame with the columns of OpenFace
    OpenfaceCsv,
}

/// A file that is being written, frame by frame.
trait Sink {
    /// Writes a frame.
    ///
    /// # Errors
    /// The file cannot be written, or the format has no place for the frame.
    fn add(&mut self, frame: &Frame) -> Result<(), String>;

    /// Writes the rest, and returns the number of rows.
    ///
    /// # Errors
    /// The file cannot be written.
    fn finish(self: Box<Self>) -> io::Result<u64>;
}

/// Frames in their order, or the reason why there are no more.
type Frames<'a> = Box<dyn Iterator<Item = Result<Frame, String>> + 'a>;

/// Exports the record.
///
/// # Errors
/// The record cannot be read, has not what the format needs, or the file cannot be written or is
/// the record.
pub fn run(arguments: &ExportArguments) -> Result<(), Box<dyn Error>> {
    let path = &arguments.record;
    let at = |error: String| format!("{}: {error}", path.display());
    let mut replay = open(path).map_err(at)?;
    if is_same(path, &arguments.out) {
        return Err(at("--out is the record. Name another file".to_owned()).into());
    }
    let mut contents = Contents::of(&mut replay).map_err(at)?;
    let selection = selection(arguments, &contents).map_err(at)?;
    let replacement = Replacement::begin(&arguments.out)?;
    let mut sink = sink(arguments, &contents, replacement.file()?).map_err(at)?;
    if !arguments.needs_landmarks(&contents) {
        contents.landmarks = 0;
    }
    let source = Source::new(&mut replay, contents, selection);
    for frame in processed(Box::new(source), arguments) {
        sink.add(&frame.map_err(at)?).map_err(at)?;
    }
    let rows = sink.finish()?;
    replacement.finish()?;
    Ok(output::print_line(format_args!(
        "{} in {}",
        output::counted(rows, "row"),
        arguments.out.display()
    ))?)
}

fn open(path: &Path) -> Result<Replay<File>, String> {
    let file = file::open(path).map_err(|error| error.to_string())?;
    let replay = Replay::open(file).map_err(|error| error.to_string())?;
    if let Some(line) = replay.cut_line() {
        output::complain(format_args!(
            "facetrack: {}: line {line} is cut off, and left out",
            path.display()
        ));
    }
    Ok(replay)
}

fn selection(arguments: &ExportArguments, contents: &Contents) -> Result<Selection, String> {
    let has_one_face = arguments.format == Format::LivelinkCsv;
    let default = if has_one_face {
        Selection::Largest
    } else {
        Selection::All
    };
    let selection = arguments.faces.clone().unwrap_or(default);
    let ids = selection.ids(contents)?;
    if has_one_face && ids.len() > 1 && selection != Selection::Largest {
        return Err(format!(
            "livelink-csv has one face per row, but {} are selected: {}. Set --faces largest, or export each with its id",
            ids.len(),
            selection::names(&ids)
        ));
    }
    Ok(selection)
}

fn sink(
    arguments: &ExportArguments,
    contents: &Contents,
    file: File,
) -> Result<Box<dyn Sink>, String> {
    let is_tidy = matches!(arguments.format, Format::Csv | Format::Parquet);
    if arguments.landmarks && !is_tidy {
        return Err("--landmarks is only for csv and parquet".to_owned());
    }
    let file = BufWriter::new(file);
    let columns = tidy::columns(contents, arguments.landmarks);
    let sink: io::Result<Box<dyn Sink>> = match arguments.format {
        Format::LivelinkCsv => return livelink::sink(file, contents),
        Format::OpenfaceCsv => openface::sink(file, contents),
        Format::Csv => {
            CsvTable::new(file, columns).map(|table| tidy::sink(table, contents, arguments))
        }
        Format::Parquet => {
            ParquetTable::new(file, columns).map(|table| tidy::sink(table, contents, arguments))
        }
    };
    sink.map_err(|error| error.to_string())
}

/// The frames after smoothing and resampling.
fn processed<'a>(frames: Frames<'a>, arguments: &ExportArguments) -> Frames<'a> {
    let frames: Frames<'a> = match arguments.smooth {
        Some(deviation) => Box::new(Smoothed::new(frames, deviation)),
        None => frames,
    };
    match arguments.fps {
        Some(rate) => Box::new(Resampled::new(frames, rate)),
        None => frames,
    }
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok();
    let number = number.filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "it is not a number above 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    const RECORD: &str = r#"{"metadata":{"tracking_engine":"x","width":8,"height":8},"frames":[
{"frame":1,"tracked_objects":[],"pts":0,"status":"no-face"}
]}"#;

    #[test]
    fn a_record_is_not_replaced_by_its_table() {
        let folder = tempfile::tempdir().unwrap();
        let [record, link] = ["clip.json", "link.csv"].map(|name| folder.path().join(name));
        fs::write(&record, RECORD).unwrap();
        symlink("clip.json", &link).unwrap();
        for out in [record.clone(), link] {
            let arguments = ExportArguments {
                record: record.clone(),
                format: Format::Csv,
                out,
                faces: None,
                fps: None,
                smooth: None,
                landmarks: false,
            };
            let error = run(&arguments).unwrap_err().to_string();
            let reason = "--out is the record. Name another file";
            assert_eq!(error, format!("{}: {reason}", record.display()));
        }
        assert_eq!(fs::read_to_string(&record).unwrap(), RECORD);
    }
}
