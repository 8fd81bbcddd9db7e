// SPDX-License-Identifier: MPL-2.0
//! `facetrack blur`: copies videos with their faces covered, and lets another engine look for faces in
//! the copies. The records and the report are in a folder next to the copies.

mod check;
mod copies;
mod places;
mod report;

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use facetrack_assets::file::remove_if_there;
use serde_json::json;

use self::copies::Copies;
use self::places::Places;
use self::report::{Report, VideoReport};
use crate::error::{StoreError, is_full};
use crate::run::{self, RunArguments, units};
use crate::{TRY_AGAIN, output};

/// The engine that finds faces, and its options: they find small and faint faces, and report all.
/// Chosen by recall, see the page of facetrackblur.
const FINDER: &str = "opencv-yunet";
const FINDER_OPTIONS: [(&str, &str); 2] =
    [("detect-max-width", "0"), ("detection-confidence", "0.3")];

/// Exit status of a run after which the next step makes sense: each video has a result.
const SETTLED: [u8; 3] = [run::COMPLETE, run::INCOMPLETE, run::HOPELESS];

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
    let stop = run::stop_on_signals()?;
    let wanted = arguments.check_engine.as_deref();
    let places = Places::of(arguments)?;
    // An invalid setting ends the command before hours of tracking.
    let copies = Copies::begin(arguments, &places, &stop)?;
    let _claim = places.claim(!arguments.check_only)?;
    let tracking = places.tracking(arguments);
    let recorded = arguments.check_only.then(|| run::recorded(&tracking));
    let recorded = recorded.transpose()?;
    // Copies that are only checked may be of other records.
    let results = recorded.iter().flatten().flat_map(|it| &it.result);
    let mut finders: Vec<_> = results.map(|it| it.engine.as_str()).collect();
    if recorded.is_none() {
        finders.push(&arguments.engine);
    }
    for finder in finders {
        check::engine(wanted, finder)?;
    }
    // If this command ends early, nobody should take an earlier report for its own.
    remove_if_there(&places.report()).map_err(StoreError::at(&places.report()))?;
    let videos = if let Some(videos) = recorded {
        videos
    } else {
        output::print_line(format_args!("Finding faces ({})", arguments.engine))?;
        let (status, videos) = run::track(&tracking, &stop)?;
        if !SETTLED.contains(&status) {
            return Ok(status.into());
        }
        output::print_line("Covering faces")?;
        videos
    };
    // Files may have come since.
    places.check_copies(videos.iter().map(|it| (it.id.as_str(), it.path.as_path())))?;
    let mut reports = Vec::new();
    for video in &videos {
        let brought = copies.bring(video);
        if stop.load(Ordering::Relaxed) {
            return Ok(TRY_AGAIN.into());
        }
        match brought {
            Err(error) if is_full(&*error) => {
                output::complain(format_args!("facetrack blur: {error}"));
                return Ok(TRY_AGAIN.into());
            }
            brought => reports.push(VideoReport::new(video, &places, brought)),
        }
    }
    drop(copies);
    let mut results = videos.iter().filter_map(|video| video.result.as_ref().ok());
    let finder = results.next().map_or(&arguments.engine, |it| &it.engine);
    let engine = check::engine(wanted, finder)?;
    output::print_line(format_args!("Checking the copies ({engine})"))?;
    let status = check_copies(&places, &engine, arguments, &stop, &mut reports)?;
    if !SETTLED.contains(&status) {
        return Ok(status.into());
    }
    let report = Report {
        engine: finder.clone(),
        check_engine: engine,
        videos: reports,
    };
    let path = places.report();
    report.write(&path)?;
    output::print(report.text())?;
    output::print_line(format_args!("Report: {}", path.display()))?;
    Ok(if report.is_clean() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Lets `engine` look for faces in the copies, and adds what it finds to the reports. Returns the exit
/// status of its run.
fn check_copies(
    places: &Places,
    engine: &str,
    arguments: &BlurArguments,
    stop: &Arc<AtomicBool>,
    reports: &mut [VideoReport],
) -> Result<u8, Box<dyn Error>> {
    let mut copied: Vec<_> = reports.iter_mut().filter(|it| it.is_copied()).collect();
    if copied.is_empty() {
        return Ok(run::COMPLETE);
    }
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let rows = copied.iter();
    let rows = rows.map(|it| json!({"id": it.id, "uri": absolute(&it.copy)}).to_string() + "\n");
    let list = places.check_list();
    places::write(&list, rows.collect::<String>().as_bytes())?;
    let (folder, options) = (places.check_folder(), check::options(engine));
    let tracking = RunArguments::step(list, folder, engine, options, arguments.jobs);
    let (status, videos) = run::track(&tracking, stop)?;
    let videos = videos.into_iter().map(|video| (video.id.clone(), video));
    let mut videos: HashMap<_, _> = videos.collect();
    for report in &mut copied {
        report.take_check(match videos.remove(&report.id) {
            Some(video) => check::compare(&video, &report.record, &places.note(&report.id)),
            None => Err("it was not tracked".to_owned()),
        });
    }
    Ok(status)
}
