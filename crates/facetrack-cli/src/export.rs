// SPDX-License-Identifier: MPL-2.0
//! `facetrack export`: a record as a table for other programs, one frame after another.

mod frame;
mod livelink;
mod openface;
mod resample;
mod selection;
mod smooth;
mod tidy;

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use facetrack::replay::Replay;
use facetrack_assets::file::is_same;

use frame::{Blend, Frame};
use resample::Resampled;
use selection::Selection;
use smooth::{Deviations, Smoothed};

use crate::faces::{self, Contents, Rows};
use crate::index::videos;
use crate::output;
use crate::table::{self, Cell, Column, FileFormat};

/// Columns that are only written on request: a face has up to a thousand of these numbers.
const LANDMARKS: [&str; 3] = ["landmarks", "landmarks_106", "landmark_confidence"];

/// Arguments of `facetrack export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// JSON record, dense or jsonl, finished or not; or a folder of records that facetrack run wrote
    #[arg(value_name = "RECORD")]
    record: PathBuf,
    /// Format to write
    #[arg(long, value_enum)]
    format: Format,
    /// File to write; of a folder, the folder for a file per record
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

impl Format {
    fn form(self) -> Form {
        match self {
            Self::Csv => tidy::CSV,
            Self::Parquet => tidy::PARQUET,
            Self::LivelinkCsv => livelink::FORM,
            Self::OpenfaceCsv => openface::FORM,
        }
    }
}

/// The description of a format.
struct Form {
    file: FileFormat,
    /// True if a row has room for one face only.
    has_one_face: bool,
    /// True if the landmarks are written on request.
    takes_landmarks: bool,
    /// True if the landmarks of a record with these contents are always needed.
    needs_landmarks: fn(&Contents) -> bool,
    /// The layout for a record with these contents, or the reason why there is none.
    layout: fn(&Contents) -> Result<Box<dyn Layout>, String>,
}

/// A way to write frames as rows of a table.
trait Layout {
    /// The columns of the table.
    fn columns(&self) -> Vec<Column>;

    /// The rows of a frame.
    ///
    /// # Errors
    /// Returns an error if the format has no place for the frame.
    fn rows(&self, frame: &Frame) -> Result<Vec<Vec<Cell>>, String>;

    /// Returns a measurement that the record lacks and the format needs.
    fn warning(&self) -> Option<&'static str> {
        None
    }
}

/// Frames in their order, or the reason why there are no more.
type Frames<'a> = Box<dyn Iterator<Item = Result<Frame, String>> + 'a>;

/// Exports the record, or the records of a folder.
///
/// # Errors
/// Returns an error if the record cannot be read, lacks a measurement that the format needs, or the
/// file cannot be written or is the record.
///
/// Returns a failure if a record of a folder was left out.
pub(crate) fn run(arguments: &ExportArguments) -> Result<ExitCode, Box<dyn Error>> {
    if !arguments.record.is_dir() {
        export(&arguments.record, &arguments.out, arguments)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut complaints = Vec::new();
    let folder = std::slice::from_ref(&arguments.record);
    let index = videos::index(folder, &mut |complaint| complaints.push(complaint))?;
    let suffix = arguments.format.form().file.extension();
    for video in index.values().filter_map(|row| videos::recorded(row)) {
        let out = arguments.out.join(format!("{}.{suffix}", video.id));
        if let Err(error) = export_to_folder(video.record, &out, arguments) {
            complaints.push(error.to_string());
        }
    }
    for complaint in &complaints {
        output::complain(format_args!("facetrack export: left out: {complaint}"));
    }
    Ok(if complaints.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn export_to_folder(
    record: &Path,
    out: &Path,
    arguments: &ExportArguments,
) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = out.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    export(record, out, arguments)
}

fn export(path: &Path, out: &Path, arguments: &ExportArguments) -> Result<(), Box<dyn Error>> {
    let at = |error: String| format!("{}: {error}", path.display());
    let mut replay = faces::open(path).map_err(at)?;
    if let Some(line) = replay.cut_line() {
        let warning = format!("line {line} is cut off, and left out");
        output::complain(format_args!("facetrack: {}", at(warning)));
    }
    if is_same(path, out) {
        return Err(at("--out is the record. Name another file".to_owned()).into());
    }
    let form = arguments.format.form();
    if arguments.landmarks && !form.takes_landmarks {
        return Err("--landmarks is only for csv and parquet".into());
    }
    let mut contents = Contents::of(&mut replay).map_err(at)?;
    if !arguments.landmarks && !(form.needs_landmarks)(&contents) {
        let is_kept = |column: &Column| !LANDMARKS.contains(&column.name.as_str());
        contents.columns.retain(is_kept);
    }
    let selection = selection(arguments, &form, &contents).map_err(at)?;
    let layout = (form.layout)(&contents).map_err(at)?;
    if let Some(warning) = layout.warning() {
        output::complain(format_args!("facetrack: {}", at(warning.to_owned())));
    }
    let columns = layout.columns();
    form.file.check(out, &columns)?;
    let blends: Vec<_> = contents.columns.iter().map(Blend::of).collect();
    let frames = selected(&mut replay, contents, selection);
    let frames = processed(frames, arguments, &blends);
    table::write(out, form.file, columns, "row", |add| {
        for frame in frames {
            let rows = frame.and_then(|frame| layout.rows(&frame)).map_err(at)?;
            let mut rows = rows.into_iter();
            rows.try_for_each(&mut *add)
                .map_err(|error| at(error.to_string()))?;
        }
        Ok(())
    })
}

fn selection(
    arguments: &ExportArguments,
    form: &Form,
    contents: &Contents,
) -> Result<Selection, String> {
    let default = if form.has_one_face {
        Selection::Largest
    } else {
        Selection::All
    };
    let selection = arguments.faces.clone().unwrap_or(default);
    let ids = selection.ids(contents)?;
    if form.has_one_face && ids.len() > 1 && selection != Selection::Largest {
        return Err(format!(
            "the format has one face per row, but {} are selected: {}. Set --faces largest, or export each with its id",
            ids.len(),
            selection::names(&ids)
        ));
    }
    Ok(selection)
}

/// The frames with the selected faces.
fn selected(replay: &mut Replay<File>, contents: Contents, selection: Selection) -> Frames<'_> {
    let rows = Rows::new(&contents.columns);
    let count = replay.frames().len();
    Box::new((0..count).map(move |place| {
        let mut frame = rows.frame(replay, place)?;
        frame.faces = selection.of(frame.faces, &contents);
        Ok(frame)
    }))
}

/// The frames, whose faces have such columns, after smoothing and resampling.
fn processed<'a>(
    frames: Frames<'a>,
    arguments: &ExportArguments,
    blends: &[Option<Blend>],
) -> Frames<'a> {
    let frames: Frames<'a> = match arguments.smooth {
        Some(deviations) => Box::new(Smoothed::new(frames, deviations, blends.to_owned())),
        None => frames,
    };
    match arguments.fps {
        Some(rate) => Box::new(Resampled::new(frames, rate, blends.to_owned())),
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
