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
use facetrack::replay::Replay;
use facetrack_assets::file::{self, is_same};
use facetrack_assets::replacement::Replacement;

use contents::Contents;
use frame::Frame;
use livelink::LiveLink;
use openface::OpenFace;
use resample::Resampled;
use selection::Selection;
use smooth::{Deviations, Smoothed};
use tidy::Tidy;

use crate::error::StoreError;
use crate::output;
use crate::table::{Cell, Column, CsvTable, PARQUET, ParquetTable, Table, check_start};

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
    /// Standard deviation of the Gaussian that smooths the values of each face over time, in seconds.
    /// Blendshapes and landmarks are smoothed less, so that blinks stay, unless they are set, too:
    /// 0.05,blendshapes=0.02. Groups: boxes, pose, blendshapes, landmarks
    #[arg(long, value_name = "SECONDS")]
    smooth: Option<Deviations>,
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

/// A way to write frames as rows of a table.
trait Layout {
    /// The columns of the table.
    fn columns(&self) -> Vec<Column>;

    /// The rows of a frame.
    ///
    /// # Errors
    /// The format has no place for the frame.
    fn rows(&self, frame: &Frame) -> Result<Vec<Vec<Cell>>, String>;
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
    if arguments.format == Format::LivelinkCsv && !contents.has_pose {
        output::complain(format_args!(
            "facetrack: {}: it has no head pose, so HeadYaw, HeadPitch and HeadRoll are 0. Record with verbose=true, and with an engine that measures the pose",
            path.display()
        ));
    }
    let layout = layout(arguments, &contents).map_err(at)?;
    let columns = layout.columns();
    match arguments.format {
        Format::Parquet => check_start(&arguments.out, PARQUET, "Parquet file")?,
        _ => check_start(
            &arguments.out,
            columns[0].name.as_bytes(),
            "table of this format",
        )?,
    }
    let replacement = Replacement::begin(&arguments.out).map_err(StoreError::at(&arguments.out))?;
    let table = table(arguments.format, replacement.file()?, columns);
    let mut table = table.map_err(|error| at(error.to_string()))?;
    if !arguments.needs_landmarks(&contents) {
        contents.landmarks = 0;
    }
    let channels = contents.channels.len();
    let frames = source::frames(&mut replay, contents, selection);
    let mut count = 0;
    for frame in processed(Box::new(frames), arguments, channels) {
        let rows = frame.and_then(|frame| layout.rows(&frame));
        for row in rows.map_err(at)? {
            table.add(row).map_err(|error| at(error.to_string()))?;
            count += 1;
        }
    }
    table.finish()?;
    replacement
        .finish()
        .map_err(StoreError::at(&arguments.out))?;
    Ok(output::print_line(format_args!(
        "{} in {}",
        output::counted(count, "row"),
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

fn layout(arguments: &ExportArguments, contents: &Contents) -> Result<Box<dyn Layout>, String> {
    let is_tidy = matches!(arguments.format, Format::Csv | Format::Parquet);
    if arguments.landmarks && !is_tidy {
        return Err("--landmarks is only for csv and parquet".to_owned());
    }
    Ok(match arguments.format {
        Format::LivelinkCsv => Box::new(LiveLink::new(contents)?),
        Format::OpenfaceCsv => Box::new(OpenFace::new(contents)),
        Format::Csv | Format::Parquet => Box::new(Tidy::new(contents, arguments.landmarks)),
    })
}

/// Begins a file.
fn table(format: Format, file: File, columns: Vec<Column>) -> io::Result<Box<dyn Table>> {
    let file = BufWriter::new(file);
    Ok(match format {
        Format::Parquet => Box::new(ParquetTable::new(file, columns)?),
        _ => {
            let mut writer = csv::WriterBuilder::new();
            // Rows of frames without a face are shorter.
            let writer = writer.flexible(format == Format::LivelinkCsv);
            Box::new(CsvTable::new(writer.from_writer(file), columns)?)
        }
    })
}

/// The frames, whose faces have this number of blendshapes, after smoothing and resampling.
fn processed<'a>(frames: Frames<'a>, arguments: &ExportArguments, channels: usize) -> Frames<'a> {
    let frames: Frames<'a> = match arguments.smooth {
        Some(deviations) => Box::new(Smoothed::new(frames, deviations, channels)),
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

    const ARGUMENTS: ExportArguments = ExportArguments {
        record: PathBuf::new(),
        format: Format::Csv,
        out: PathBuf::new(),
        faces: None,
        fps: None,
        smooth: None,
        landmarks: false,
    };

    #[test]
    fn a_record_is_not_replaced_by_its_table() {
        let folder = tempfile::tempdir().unwrap();
        let [record, link] = ["clip.json", "link.csv"].map(|name| folder.path().join(name));
        fs::write(&record, RECORD).unwrap();
        symlink("clip.json", &link).unwrap();
        for out in [record.clone(), link] {
            let arguments = ExportArguments {
                record: record.clone(),
                out,
                ..ARGUMENTS
            };
            let error = run(&arguments).unwrap_err().to_string();
            let reason = "--out is the record. Name another file";
            assert_eq!(error, format!("{}: {reason}", record.display()));
        }
        assert_eq!(fs::read_to_string(&record).unwrap(), RECORD);
    }

    #[test]
    fn only_a_table_of_the_same_format_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [record, out] = ["clip.json", "out"].map(|name| folder.path().join(name));
        fs::write(&record, RECORD).unwrap();
        let export = |format| {
            let (record, out) = (record.clone(), out.clone());
            run(&ExportArguments {
                record,
                format,
                out,
                ..ARGUMENTS
            })
        };
        for format in [Format::Csv, Format::Parquet, Format::OpenfaceCsv] {
            fs::write(&out, "my notes").unwrap();
            let error = export(format).unwrap_err().to_string();
            assert!(error.contains("out: it exists, and is no "), "{error}");
            assert_eq!(fs::read_to_string(&out).unwrap(), "my notes");
            fs::remove_file(&out).unwrap();
            for _ in 0..2 {
                export(format).unwrap();
            }
        }
    }
}
