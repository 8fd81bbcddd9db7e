// SPDX-License-Identifier: MPL-2.0
//! The list of videos that are not complete. It can be used as input.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use facetrack_assets::file::{self, is_same};
use facetrack_assets::replacement::Replacement;
use facetrack_jobs::{Outcome, Status};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Run;
use super::arguments::RunArguments;
use super::inputs::Places;
use super::names;
use super::shard::Shard;
use super::summary::Summary;
use super::video::Video;
use crate::error::StoreError;

/// Name of the list in the folder of the records.
const NAME: &str = "facetrack-failed";

/// Maximum size of a list. Our choice: more than a million rows.
const MAX_SIZE: u64 = 1 << 30;

/// Keys of each row. They identify a list.
const KEYS: [&str; 2] = ["uri", "message"];

/// A row of the list.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    uri: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status>,
    message: &'a str,
}

/// Checks that the list replaces nothing but an earlier one.
///
/// # Errors
/// Returns the reason why it cannot have its name.
pub(super) fn check(
    arguments: &RunArguments,
    shard: Shard,
    videos: &[Video],
) -> Result<(), String> {
    let path = place(arguments, shard);
    let at = |reason: &str| format!("{}: {reason}. Set another --failures", path.display());
    let mut places = Places::default();
    let list = places.of(&path);
    let mut names = videos.iter().flat_map(|video| names::all(&video.record));
    if names.any(|own| own.file_name() == path.file_name() && places.of(&own) == list) {
        return Err(at("it is the record or status file of a video"));
    }
    check_content(&path).map_err(|error| at(&error.to_string()))
}

/// Checks that the path has no file, an earlier list, or something other than a regular file.
fn check_content(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => (),
        _ => return Ok(()),
    }
    let text = file::read(path, MAX_SIZE)?;
    let mut lines = text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let is_row = |line: &[u8]| {
        let row = serde_json::from_slice::<Map<String, Value>>(line);
        row.is_ok_and(|row| KEYS.iter().all(|key| row.contains_key(*key)))
    };
    if lines.all(is_row) {
        return Ok(());
    }
    let reason = "it exists, and is not a list of failures";
    Err(io::Error::new(ErrorKind::AlreadyExists, reason))
}

/// Writes the list, and returns its path. Without failures, the list of an earlier run is removed. A
/// list that is also an input keeps the videos that this run has not settled.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(super) fn write(run: &Run<'_>, summary: &Summary) -> Result<Option<PathBuf>, StoreError> {
    let path = place(run.arguments, run.shard);
    let incomplete = summary.incomplete();
    let row = |index: usize, outcome| Row::new(&run.videos[index], outcome);
    let settled = incomplete.iter();
    let settled = settled.map(|it| row(it.index, Some(&it.status.outcome)));
    let mut rows: Vec<_> = settled.collect();
    let mut inputs = run.arguments.input.iter();
    if inputs.any(|input| is_same(input, &path)) {
        let unsettled = summary.unsettled().into_iter();
        rows.extend(unsettled.map(|index| row(index, None)));
    }
    if rows.is_empty() {
        // A device, such as /dev/null, stays.
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            check_content(&path).map_err(StoreError::at(&path))?;
            fs::remove_file(&path).map_err(StoreError::at(&path))?;
        }
        return Ok(None);
    }
    if let Some(out) = run
        .arguments
        .out
        .as_ref()
        .filter(|out| path.starts_with(out))
    {
        fs::create_dir_all(out).map_err(StoreError::at(out))?;
    }
    let lines: Result<Vec<_>, _> = rows.iter().map(serde_json::to_string).collect();
    let text = lines.map_err(|error| StoreError::at(&path)(error.into()))?;
    replace(&path, &(text.join("\n") + "\n"))?;
    Ok(Some(path))
}

impl<'a> Row<'a> {
    /// The row of a video; without an outcome, it is not settled.
    fn new(video: &'a Video, outcome: Option<&'a Outcome>) -> Self {
        let message = outcome.map_or(Some("it was not tracked"), |it| it.message.as_deref());
        Self {
            id: &video.id,
            uri: &video.path,
            start: video.segment.start,
            stop: video.segment.stop,
            status: outcome.map(|it| it.status),
            message: message.unwrap_or_default(),
        }
    }
}

fn replace(path: &Path, text: &str) -> Result<(), StoreError> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return write_to_device(path, text).map_err(StoreError::at(path));
    }
    check_content(path).map_err(StoreError::at(path))?;
    Replacement::begin(path)
        .and_then(|file| file.write(text.as_bytes()))
        .map_err(StoreError::at(path))
}

/// Writes to a pipe or device, which has to be ready.
fn write_to_device(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::File::options();
    let mut device = options
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    device.write_all(text.as_bytes())
}

/// Returns the path of the list. Each of several runs that share a folder has its own.
fn place(arguments: &RunArguments, shard: Shard) -> PathBuf {
    if let Some(path) = &arguments.failures {
        return path.clone();
    }
    let name = if shard.is_one_of_several() {
        format!("{NAME}-{shard}.jsonl")
    } else {
        format!("{NAME}.jsonl")
    };
    arguments.out.as_deref().unwrap_or(Path::new("")).join(name)
}
