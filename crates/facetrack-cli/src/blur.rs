// SPDX-License-Identifier: MPL-2.0
//! `facetrack blur`: copies videos with their faces covered, and lets another engine look for faces in
//! the copies. The records and the report are in a folder next to the copies.

mod check;
mod copies;
mod report;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use facetrack_assets::file::{is_same, target, with_suffix};
use facetrack_jobs::Container;
use serde_json::json;

use self::copies::Copies;
use self::report::{Report, VideoReport};
use crate::error::{StoreError, is_full};
use crate::run::{self, RunArguments, TrackedVideo, units};
use crate::{TRY_AGAIN, output, table};

/// End of the name of the folder for records.
const RECORDS: &str = ".records";

/// The engine that finds faces, and its options: they find small and faint faces, and report all.
/// Chosen by recall, see the page of facetrackblur.
const FINDER: &str = "opencv-yunet";
const FINDER_OPTIONS: [(&str, &str); 2] =
    [("detect-max-width", "0"), ("detection-confidence", "0.3")];

/// Exit status of a run after which the next step makes sense: the videos with a record are complete, or
/// at least known.
const USABLE: [u8; 3] = [run::COMPLETE, run::INCOMPLETE, run::HOPELESS];

/// Options of `facetrack blur`.
#[derive(Debug, Args)]
pub(crate) struct BlurArguments {
    /// Video; folder, pattern or list of videos
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Video to write (.mp4, .mov or .mkv); for several videos, the folder to write them to
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Property of facetrackblur, such as mode=fill or keep=3; may be repeated
    #[arg(long = "cover", value_name = "NAME=VALUE", value_parser = units::property)]
    covers: Vec<(String, String)>,
    /// Engine that finds the faces
    #[arg(long, default_value = FINDER, value_name = "NAME")]
    engine: String,
    /// Property of facetrack for this engine; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = units::property)]
    properties: Vec<(String, String)>,
    /// Engine that looks for faces in the copies; default: insightface if its models are fetched, else
    /// mediapipe
    #[arg(long, value_name = "NAME")]
    check_engine: Option<String>,
    /// Check copies that this command has written, and write none
    #[arg(long)]
    check_only: bool,
    /// Videos to track in parallel; 0 = one per core
    #[arg(long, default_value_t = 0, value_name = "N")]
    jobs: usize,
    /// Copy every video again, and also replace files that this command has not written
    #[arg(long)]
    force: bool,
}

/// Copies the videos, and checks the copies.
///
/// # Errors
/// Returns an error if an argument is invalid, or a file cannot be written.
pub(crate) fn run(arguments: &BlurArguments) -> Result<ExitCode, Box<dyn Error>> {
    let places = Places::of(arguments)?;
    let records = &places.records;
    // An invalid setting ends the command before hours of tracking.
    let copies = Copies::begin(arguments, &places)?;
    let tracking = places.tracking(arguments);
    if !arguments.check_only {
        output::print_line(format_args!("Finding faces ({})", arguments.engine))?;
        let status = run::status(&tracking)?;
        if !USABLE.contains(&status) {
            return Ok(status.into());
        }
        output::print_line("Covering faces")?;
    }
    let videos = run::tracked(&tracking)?;
    let mut reports = Vec::new();
    for video in &videos {
        match copies.bring(video) {
            Err(error) if is_full(&*error) => {
                output::complain(format_args!("facetrack blur: {error}"));
                return Ok(TRY_AGAIN.into());
            }
            brought => reports.push(VideoReport::new(video, places.copy(video), brought)),
        }
    }
    drop(copies);
    fs::create_dir_all(records).map_err(StoreError::at(records))?;
    let engine = check::engine(arguments);
    output::print_line(format_args!("Checking the copies ({engine})"))?;
    let status = places.check(&engine, arguments, &mut reports)?;
    if !USABLE.contains(&status) {
        return Ok(status.into());
    }
    let report = Report {
        engine: arguments.engine.clone(),
        check_engine: engine,
        videos: reports,
    };
    let path = records.join("report.json");
    report.write(&path)?;
    output::print(report.text())?;
    output::print_line(format_args!("Report: {}", path.display()))?;
    Ok(if report.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Where everything is that this command writes.
struct Places {
    input: PathBuf,
    output: PathBuf,
    /// True if the output is a folder.
    has_several: bool,
    /// The folder for records.
    records: PathBuf,
}

impl Places {
    /// Checks the arguments.
    ///
    /// # Errors
    /// Returns an error if the output has another container, or would be an input of the next run.
    fn of(arguments: &BlurArguments) -> Result<Self, String> {
        let (input, output) = (arguments.input.clone(), arguments.output.clone());
        let at = |reason: &str| Err(format!("{}: {reason}", output.display()));
        let has_several = run::is_several(&input);
        if has_several {
            if output.is_file() {
                return at("it is a file. Name a folder for the copies of several videos");
            }
            if input.is_dir() && is_within(&output, &input) {
                return at(
                    "it is in the folder of the videos, so that copies would become videos of the next run. Name a folder outside",
                );
            }
        } else if is_same(&input, &output) {
            return at("it is the video itself. Name another file");
        } else if output.is_dir() {
            return at("it is a folder. Name the video to write");
        } else if Container::of(&output).is_none() {
            return at("unknown container. Name a file with the suffix .mp4, .mov or .mkv");
        }
        let name = output.components().as_path();
        Ok(Self {
            records: with_suffix(name, RECORDS),
            input,
            output,
            has_several,
        })
    }

    /// The arguments of the run that finds faces.
    fn tracking(&self, arguments: &BlurArguments) -> RunArguments {
        let is_finder = arguments.engine == FINDER;
        let options = FINDER_OPTIONS.iter().filter(|_| is_finder);
        let options = options.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        RunArguments {
            force: arguments.force,
            ..RunArguments::step(
                self.input.clone(),
                self.records.join("faces"),
                &arguments.engine,
                options.chain(arguments.properties.clone()).collect(),
                arguments.jobs,
            )
        }
    }

    /// The copy of a video.
    fn copy(&self, video: &TrackedVideo) -> PathBuf {
        if !self.has_several {
            return self.output.clone();
        }
        // Suffixes with other containers are replaced.
        let suffix = video
            .path
            .extension()
            .filter(|_| Container::of(&video.path).is_some());
        let mut name = self.output.join(&video.id).into_os_string();
        name.push(".");
        name.push(suffix.unwrap_or("mkv".as_ref()));
        name.into()
    }

    /// The record of what is found in the copy of a video.
    fn check_record(&self, video: &VideoReport) -> PathBuf {
        let mut name = self.records.join("check").join(&video.id).into_os_string();
        name.push(".json");
        name.into()
    }

    /// Lets `engine` look for faces in the copies, and adds what it finds to the reports. Returns the
    /// exit status of its run.
    fn check(
        &self,
        engine: &str,
        arguments: &BlurArguments,
        reports: &mut [VideoReport],
    ) -> Result<u8, Box<dyn Error>> {
        let copies = reports.iter().filter(|report| report.is_copied());
        let rows = copies.map(|it| json!({"id": it.id, "uri": it.copy}).to_string() + "\n");
        let rows: String = rows.collect();
        if rows.is_empty() {
            return Ok(0);
        }
        let list = self.records.join("check.jsonl");
        table::write_text(&list, &rows)?;
        let found = RunArguments::step(
            list,
            self.records.join("check"),
            engine,
            check::options(engine),
            arguments.jobs,
        );
        let status = run::status(&found)?;
        for report in reports.iter_mut().filter(|report| report.is_copied()) {
            let record = self.check_record(report);
            report.take_check(check::compare(&report.record, &record));
        }
        Ok(status)
    }
}

/// Returns true if a path is in a folder, or is it.
fn is_within(path: &Path, folder: &Path) -> bool {
    let absolute = |path: &Path| {
        let path = target(path);
        fs::canonicalize(&path).or_else(|_| std::path::absolute(&path))
    };
    let (path, folder) = (absolute(path), absolute(folder));
    matches!((path, folder), (Ok(path), Ok(folder)) if path.starts_with(&folder))
}
