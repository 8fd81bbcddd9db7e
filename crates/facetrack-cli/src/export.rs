// SPDX-License-Identifier: MPL-2.0
//! `facetrack export`: a record as a table for other programs, one frame after another, or as
//! tracks for compositors.

mod after_effects;
mod frame;
mod fusion;
mod livelink;
mod nuke;
mod openface;
mod points;
mod resample;
mod selection;
mod smooth;
mod tidy;
mod tracks;

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use facetrack::replay::Replay;
use facetrack_assets::file::is_same;

use frame::{Blend, Frame};
use points::Points;
use resample::Resampled;
use selection::Selection;
use smooth::{Deviations, Smoothed};
use tracks::{Program, TrackSettings};

use crate::error::{StoreError, is_full};
use crate::faces::{self, Choice, ColumnPattern, Contents, Extent, Rows};
use crate::index::videos::{self, Recorded};
use crate::output;
use crate::table::{self, Cell, Column, FileFormat};

/// Warning for frames without a constant rate.
const IRREGULAR: &str =
    "its frames have no constant rate, so that the tracks drift from the video. Set --fps";

/// Warning for a record without landmarks, if the format has room for them.
const NO_LANDMARKS: &str = "it was recorded without landmarks. To have them, run again with --set verbose=true, and with an engine that measures them";

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
    /// livelink-csv and after-effects
    #[arg(long, value_name = "FACES")]
    faces: Option<Selection>,
    /// Constant frame rate to interpolate the values at, in frames per second, such as 24000/1001
    #[arg(long, value_name = "RATE", value_parser = rate)]
    fps: Option<f64>,
    /// Standard deviation of the Gaussian that smooths the values of each face over time, in seconds.
    /// Blendshapes and landmarks are smoothed less, so that blinks stay, unless they are set, too:
    /// 0.05,blendshapes=0.02. Groups: boxes, pose, blendshapes, landmarks
    #[arg(long, value_name = "SECONDS")]
    smooth: Option<Deviations>,
    /// Names of columns, and patterns in quotes, such as 'blendshapes.*' 'pose.*' (csv, parquet). The
    /// columns of the frame and the id are always written. Default: every column but landmarks, and
    /// those for older programs
    #[arg(long, value_name = "PATTERN", num_args = 1.., value_delimiter = ',')]
    columns: Vec<ColumnPattern>,
    /// Add the landmarks (csv, parquet)
    #[arg(long)]
    landmarks: bool,
    /// Parts of a face to track (nuke, after-effects, fusion): box, pose, names such as nose, and
    /// numbers of landmarks; default: box, pose and all names
    #[arg(long, value_name = "POINTS")]
    points: Option<Points>,
    /// Margin on each side of a box, relative to its size (nuke, after-effects, fusion)
    #[arg(long, value_name = "PART", value_parser = margin)]
    margin: Option<f64>,
    /// Number of the first frame (nuke: 1, after-effects, fusion: 0)
    #[arg(long, value_name = "NUMBER")]
    first_frame: Option<i64>,
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
    /// Nodes for Nuke
    Nuke,
    /// Keyframes to paste into After Effects
    AfterEffects,
    /// Tools for Fusion and DaVinci Resolve
    Fusion,
}

impl Format {
    fn form(self) -> Form {
        match self {
            Self::Csv => tidy::CSV,
            Self::Parquet => tidy::PARQUET,
            Self::LivelinkCsv => livelink::FORM,
            Self::OpenfaceCsv => openface::FORM,
            Self::Nuke => Form::of_tracks(nuke::PROGRAM),
            Self::AfterEffects => Form {
                has_one_face: true,
                ..Form::of_tracks(after_effects::PROGRAM)
            },
            Self::Fusion => Form::of_tracks(fusion::PROGRAM),
        }
    }
}

/// The description of a format.
struct Form {
    /// True if a row, or the file, has room for one face only.
    has_one_face: bool,
    /// True if columns can be chosen.
    takes_columns: bool,
    /// True if the landmarks of a record with these contents are always needed.
    needs_landmarks: fn(&Contents) -> bool,
    target: Target,
}

/// The layout for a record of the video with this id, or the reason why there is none.
type LayoutOf = fn(&str, &Contents) -> Result<Box<dyn Layout>, String>;

/// A way to write a file.
enum Target {
    /// A table.
    Table(FileFormat, LayoutOf),
    /// Tracks of the whole record.
    Tracks(Program),
}

impl Form {
    fn of_tracks(program: Program) -> Self {
        Self {
            has_one_face: false,
            takes_columns: false,
            needs_landmarks: |_| true,
            target: Target::Tracks(program),
        }
    }

    /// Suffix of file names.
    fn extension(&self) -> &'static str {
        match &self.target {
            Target::Table(file, _) => file.extension(),
            Target::Tracks(program) => program.extension,
        }
    }
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
        let video = faces::video_of(&arguments.record);
        export(&arguments.record, &video, &arguments.out, arguments)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut complaints = Vec::new();
    let folder = std::slice::from_ref(&arguments.record);
    let index = videos::index(folder, &mut |complaint| complaints.push(complaint))?;
    let suffix = arguments.format.form().extension();
    for video in index.values().filter_map(|row| videos::recorded(row)) {
        let out = arguments.out.join(format!("{}.{suffix}", video.id));
        match export_to_folder(&video, &out, arguments) {
            Err(error) if is_full(&*error) => return Err(error),
            Err(error) => complaints.push(error.to_string()),
            Ok(()) => (),
        }
    }
    Ok(output::left_out("export", &complaints))
}

fn export_to_folder(
    video: &Recorded<'_>,
    out: &Path,
    arguments: &ExportArguments,
) -> Result<(), Box<dyn Error>> {
    if let Some(folder) = out.parent() {
        fs::create_dir_all(folder).map_err(StoreError::at(folder))?;
    }
    export(video.record, video.id, out, arguments)
}

fn export(
    path: &Path,
    video: &str,
    out: &Path,
    arguments: &ExportArguments,
) -> Result<(), Box<dyn Error>> {
    let at = |error: String| format!("{}: {error}", path.display());
    let form = arguments.format.form();
    arguments.check(&form)?;
    let mut replay = faces::open(path).map_err(at)?;
    if let Some(line) = replay.cut_line() {
        let warning = format!("line {line} is cut off, and left out");
        output::complain(format_args!("facetrack: {}", at(warning)));
    }
    if is_same(path, out) {
        return Err(at("--out is the record. Name another file".to_owned()).into());
    }
    let extent = match form.target {
        Target::Table(..) => Extent::Expected,
        // A point without a value in any face would have no curve.
        Target::Tracks(_) => Extent::Found,
    };
    let mut contents = Contents::of(&mut replay, extent).map_err(at)?;
    if arguments.lacks_landmarks(&contents) {
        output::complain(format_args!("facetrack: {}", at(NO_LANDMARKS.to_owned())));
    }
    if !(form.needs_landmarks)(&contents) {
        let choice = Choice {
            patterns: &arguments.columns,
            landmarks: arguments.landmarks,
        };
        contents.columns = choice.of(contents.columns).map_err(at)?;
    }
    let selection = selection(arguments, &form, &contents).map_err(at)?;
    let blends: Vec<_> = contents.columns.iter().map(Blend::of).collect();
    let (file, layout) = match form.target {
        Target::Table(file, layout) => (file, layout(video, &contents).map_err(at)?),
        Target::Tracks(program) => {
            table::check_start(out, program.start.as_bytes(), "file of this format")?;
            let settings = TrackSettings {
                points: arguments.points.as_ref(),
                margin: arguments.margin.unwrap_or_default(),
                first_frame: arguments.first_frame.unwrap_or(program.first_frame),
                fps: arguments.fps.or_else(|| replay.fps()),
                pixel_aspect: replay.pixel_aspect_ratio(),
                has_one_face: form.has_one_face,
            };
            let frames = selected(&mut replay, &contents, selection);
            let frames = processed(frames, arguments, &blends);
            let tracks = tracks::collect(frames, &contents, &settings).map_err(at)?;
            if !tracks.is_regular {
                output::complain(format_args!("facetrack: {}", at(IRREGULAR.to_owned())));
            }
            return write_tracks(out, &(program.text)(&tracks).map_err(at)?);
        }
    };
    if let Some(warning) = layout.warning() {
        output::complain(format_args!("facetrack: {}", at(warning.to_owned())));
    }
    let columns = layout.columns();
    file.check(out, &columns)?;
    let frames = selected(&mut replay, &contents, selection);
    let frames = processed(frames, arguments, &blends);
    let count = table::write(out, file, columns, |add| {
        for frame in frames {
            let rows = frame.and_then(|frame| layout.rows(&frame)).map_err(at)?;
            rows.into_iter().try_for_each(&mut *add)?;
        }
        Ok(())
    })?;
    Ok(table::print_count(count, "row", out)?)
}

fn write_tracks(out: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    table::write_text(out, text)?;
    Ok(output::print_line(format_args!(
        "tracks in {}",
        out.display()
    ))?)
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
fn selected<'a>(
    replay: &'a mut Replay<File>,
    contents: &'a Contents,
    selection: Selection,
) -> Frames<'a> {
    let rows = Rows::new(&contents.columns);
    let count = replay.frames().len();
    Box::new((0..count).map(move |place| {
        let mut frame = rows.frame(replay, place)?;
        frame.faces = selection.of(frame.faces, contents);
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

impl ExportArguments {
    /// Returns true if landmarks would be written, but the record has none.
    fn lacks_landmarks(&self, contents: &Contents) -> bool {
        let is_wanted = match self.format {
            Format::Csv | Format::Parquet => self.landmarks,
            Format::LivelinkCsv => false,
            Format::OpenfaceCsv => true,
            // Key points have the same names. What is asked for and not there is an error.
            Format::Nuke | Format::AfterEffects | Format::Fusion => {
                self.points.is_none() && contents.place("key_points").is_none()
            }
        };
        is_wanted && contents.landmarks == 0 && !contents.areas.is_empty()
    }

    /// Refuses options that the format does not use.
    fn check(&self, form: &Form) -> Result<(), &'static str> {
        if (self.landmarks || !self.columns.is_empty()) && !form.takes_columns {
            return Err("--columns and --landmarks are only for csv and parquet");
        }
        let is_for_tracks =
            self.points.is_some() || self.margin.is_some() || self.first_frame.is_some();
        if is_for_tracks && matches!(form.target, Target::Table(..)) {
            return Err(
                "--points, --margin and --first-frame are only for nuke, after-effects and fusion",
            );
        }
        Ok(())
    }
}

/// A number, or a fraction such as 24000/1001.
fn rate(text: &str) -> Result<f64, String> {
    match text.split_once('/') {
        Some((frames, seconds)) => Ok(positive(frames)? / positive(seconds)?),
        None => positive(text),
    }
}

fn margin(text: &str) -> Result<f64, String> {
    match text {
        "0" => Ok(0.0),
        text => positive(text),
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
        columns: Vec::new(),
        landmarks: false,
        points: None,
        margin: None,
        first_frame: None,
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
            for others in ["my notes", "video,mine\n1,2\n", "PAR1 PAR1"] {
                fs::write(&out, others).unwrap();
                let error = export(format).unwrap_err().to_string();
                assert!(error.contains("out: it exists, and is no "), "{error}");
                assert_eq!(fs::read_to_string(&out).unwrap(), others);
            }
            fs::remove_file(&out).unwrap();
            for _ in 0..2 {
                export(format).unwrap();
            }
        }
    }

    /// Three frames of four with a face, 200 × 100 px.
    const TRACK: &str = r#"{"metadata":{"fps":23.976023976023978,"tracking_engine":"x","width":200,"height":100},"frames":[
{"frame":1,"tracked_objects":[FACE1],"pts":0,"status":"tracked"},
{"frame":2,"tracked_objects":[FACE2],"pts":41708333,"status":"tracked"},
{"frame":3,"tracked_objects":[],"pts":83416667,"status":"no-face"},
{"frame":4,"tracked_objects":[FACE4],"pts":125125000,"status":"tracked"}
]}"#;

    /// Exports [`TRACK`], changed by `change`, with its box, nose and pose.
    fn tracks(format: Format, change: impl Fn(String) -> String) -> Result<String, String> {
        let face = |x: u32| {
            let points = "[1,2],[3,4],[70.5,25],[5,6],[7,8]";
            format!(
                r#"{{"id":"obj_1","centroid_x":3,"centroid_y":3,"bbox_xmin":{x},"bbox_ymin":20,"bbox_width":40,"bbox_height":20,"confidence":0.5,"box":[{x}.25,20,40,20],"key_points":[{points}],"pose":{{"matrix":[[1,0,0,1],[0,1,0,2],[0,0,1,-30],[0,0,0,1]],"yaw":0,"pitch":0,"roll":20}}}}"#
            )
        };
        let text = [("FACE1", 50), ("FACE2", 52), ("FACE4", 60)]
            .into_iter()
            .fold(TRACK.to_owned(), |text, (name, x)| {
                text.replace(name, &face(x))
            });
        let folder = tempfile::tempdir().unwrap();
        let [record, out] = ["clip.json", "out"].map(|name| folder.path().join(name));
        fs::write(&record, change(text)).unwrap();
        let arguments = ExportArguments {
            record,
            format,
            out: out.clone(),
            points: Some("box,nose,pose".parse().unwrap()),
            ..ARGUMENTS
        };
        for _ in 0..2 {
            run(&arguments).map_err(|error| error.to_string())?;
        }
        Ok(fs::read_to_string(out).unwrap())
    }

    #[test]
    fn nuke_has_curves_with_gaps_from_the_bottom_left() {
        let text = tracks(Format::Nuke, |text| text).unwrap();
        let rest =
            "{} {} 1 0 0 {} 1 0 -32 -32 32 32 -22 -22 22 22 {} {} {} {} {} {} {} {} {} {} {}";
        let enable = "{curve K x1 1 x3 0 x4 1 0}";
        let same = |value: &str| format!("{{curve x1 {value} x2 {value} x4 {value}}}");
        let center = "{curve x1 70.25 x2 72.25 x4 80.25}";
        let left = "{curve x1 50.25 x2 52.25 x4 60.25}";
        let right = "{curve x1 90.25 x2 92.25 x4 100.25}";
        let [y30, y60, y70, y75, y80, nose, x1, z] =
            ["0", "60", "70", "75", "80", "70.5", "1", "-30"].map(same);
        let two = same("2");
        let roll = same("20");
        for part in [
            "Tracker4 {\n inputs 0\n tracks { { 1 31 2 }\n{ { 5 1 20 enable e 1 }\n{ 3 1 75 name name 1 }\n",
            &format!(
                "{{\n {{ {enable} \"box\" {center} {y70} {rest} }}\n {{ {enable} \"nose\" {nose} {y75} {rest} }}\n}}\n}}\n name obj_1_points\n"
            ),
            &format!(
                "Crop {{\n inputs 0\n box {{{left} {y60} {right} {y80}}}\n name obj_1_box\n xpos 120\n"
            ),
            &format!(
                "Axis2 {{\n inputs 0\n rot_order ZXY\n translate {{{x1} {two} {z}}}\n rotate {{{y30} {y30} {roll}}}\n name obj_1_pose\n"
            ),
        ] {
            assert!(text.contains(part), "{part}\nnot in\n{text}");
        }
        let lines = text
            .lines()
            .filter(|line| line.ends_with(" 1 }") && line.starts_with("{ "));
        assert_eq!(lines.count(), 31, "columns");
    }

    #[test]
    fn after_effects_has_keyframes_from_0() {
        let text = tracks(Format::AfterEffects, |text| text).unwrap();
        let keys = |values: [&str; 3]| {
            let keys = std::iter::zip([0, 1, 3], values);
            let keys = keys.map(|(frame, values)| format!("\t{frame}\t{values}\t\n"));
            keys.collect::<String>()
        };
        let want = [
            "Adobe After Effects 8.0 Keyframe Data\n\n\tUnits Per Second\t23.976\n\tSource Width\t200\n\tSource Height\t100\n\tSource Pixel Aspect Ratio\t1\n\tComp Pixel Aspect Ratio\t1\n",
            "\nTransform\tPosition\n\tFrame\tX pixels\tY pixels\tZ pixels\t\n",
            &keys(["70.25\t30\t0", "72.25\t30\t0", "80.25\t30\t0"]),
            "\nTransform\tScale\n\tFrame\tX percent\tY percent\tZ percent\t\n",
            &keys(["20\t20\t100"; 3]),
            "\nTransform\tX Rotation\n\tFrame\tdegrees\t\n",
            &keys(["0"; 3]),
            "\nTransform\tY Rotation\n\tFrame\tdegrees\t\n",
            &keys(["0"; 3]),
            "\nTransform\tRotation\n\tFrame\tdegrees\t\n",
            &keys(["-20"; 3]),
            "\nEffects\tPoint Control #1\tPoint #2\n\tFrame\tX pixels\tY pixels\t\n",
            &keys(["70.5\t25"; 3]),
            "\n\nEnd of Keyframe Data\n",
        ];
        assert_eq!(text, want.concat());
    }

    #[test]
    fn after_effects_knows_the_shape_of_pixels() {
        let wide = r#""height":100,"pixel_aspect_ratio":1.25"#;
        let text = tracks(Format::AfterEffects, |text| {
            text.replace(r#""height":100"#, wide)
        });
        let want = "\tSource Pixel Aspect Ratio\t1.25\n";
        assert!(text.unwrap().contains(want), "{want}");
    }

    #[test]
    fn fusion_has_splines_of_relative_positions() {
        let text = tracks(Format::Fusion, |text| text).unwrap();
        let spline = |name: &str, frames: &[u32], values: &[&str], flag: &str| {
            let keys = std::iter::zip(frames, values).map(|(frame, value)| {
                format!("\t\t\t\t[{frame}] = {{ {value}, Flags = {{ {flag} = true }} }},\n")
            });
            let keys: String = keys.collect();
            format!(
                "\t\t{name} = BezierSpline {{\n\t\t\tKeyFrames = {{\n{keys}\t\t\t}},\n\t\t}},\n"
            )
        };
        let linear = |name, values| spline(name, &[0, 1, 3], values, "Linear");
        for part in [
            "{\n\tTools = ordered() {\n",
            &linear("obj_1_box_X", &["0.35125", "0.36125", "0.40125"]),
            &linear("obj_1_box_Y", &["0.7"; 3]),
            &linear("obj_1_box_Width", &["0.2"; 3]),
            &linear("obj_1_box_Height", &["0.2"; 3]),
            &spline(
                "obj_1_box_Level",
                &[0, 2, 3, 4],
                &["1", "0", "1", "0"],
                "StepIn",
            ),
            &linear("obj_1_nose_X", &["0.3525"; 3]),
            &linear("obj_1_nose_Y", &["0.75"; 3]),
            "obj_1_nose_path = XYPath {\n\t\t\tInputs = { X = Input { SourceOp = \"obj_1_nose_X\", Source = \"Value\", }, Y = ",
            "obj_1_nose = Transform {\n\t\t\tNameSet = true,\n\t\t\tInputs = {\n\t\t\t\tCenter = Input { SourceOp = \"obj_1_nose_path\", Source = \"Value\", },\n",
            &linear("obj_1_pose_Transform3DOp_Rotate_Z", &["20"; 3]),
            "[\"Transform3DOp.Rotate.RotOrder\"] = Input { Value = FuID { \"ZXY\" }, },\n",
            "[\"Transform3DOp.Rotate.Z\"] = Input { SourceOp = \"obj_1_pose_Transform3DOp_Rotate_Z\", Source = \"Value\", },\n",
        ] {
            assert!(text.contains(part), "{part}\nnot in\n{text}");
        }
    }

    #[test]
    fn records_that_cannot_become_tracks_are_refused() {
        type Change = fn(String) -> String;
        let cases: [(Format, Change, &str); 4] = [
            (
                Format::Fusion,
                |text| text.replace(r#","width":200,"height":100"#, ""),
                "it has no size of its frames",
            ),
            (
                Format::Nuke,
                |text| text.replace(r#""frame":4,"#, r#""frame":4,"width":8,"height":8,"#),
                "the size of frame 4 differs",
            ),
            (
                Format::Nuke,
                |text| text.replace("key_points", "points"),
                "it has no nose",
            ),
            (
                Format::AfterEffects,
                |text| text.replace(r#""fps":23.976023976023978,"#, ""),
                "it has no frame rate. Set --fps",
            ),
        ];
        for (format, change, want) in cases {
            let error = tracks(format, change).unwrap_err();
            assert!(error.contains(want), "{want}: {error}");
        }
        let arguments = ExportArguments {
            margin: Some(0.1),
            record: PathBuf::from("/no/such.json"),
            ..ARGUMENTS
        };
        let error = run(&arguments).unwrap_err().to_string();
        assert!(error.contains("only for nuke"), "{error}");
    }

    #[test]
    fn rates_may_be_fractions() {
        for (text, want) in [
            ("24000/1001", 24000.0 / 1001.0),
            ("25", 25.0),
            ("29.97", 29.97),
        ] {
            assert_eq!(rate(text), Ok(want));
        }
        for text in ["24/0", "a/1", "1/2/3", "-25", ""] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
