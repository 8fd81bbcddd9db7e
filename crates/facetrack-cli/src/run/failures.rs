// SPDX-License-Identifier: MPL-2.0
//! The list of videos that are not complete. It can be used as input.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use facetrack_jobs::{Outcome, Status};
use serde::Serialize;

use super::Run;
use super::arguments::RunArguments;
use super::inputs::Video;
use super::shard::Shard;
use super::summary::Summary;
use crate::error::StoreError;
use crate::replacement::{Replacement, is_same};

/// Name of the list in the folder of the records.
const NAME: &str = "facetrack-failed";

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

/// Writes the list, and returns its path. Without failures, the list of an earlier run is removed. A
/// list that is also an input keeps the videos that this run has not settled.
///
/// # Errors
/// The file cannot be written.
pub fn write(run: &Run<'_>, summary: &Summary) -> Result<Option<PathBuf>, StoreError> {
    let path = place(run.arguments, run.shard);
    let incomplete = summary.incomplete();
    let row = |index: usize, outcome| Row::new(&run.videos[index], outcome);
    let settled = incomplete.iter();
    let settled = settled.map(|it| row(it.index, Some(&it.marker.outcome)));
    let mut rows: Vec<_> = settled.collect();
    let mut inputs = run.arguments.input.iter();
    if inputs.any(|input| is_same(input, &path)) {
        let unsettled = summary.unsettled().into_iter();
        rows.extend(unsettled.map(|index| row(index, None)));
    }
    if rows.is_empty() {
        // A device, such as /dev/null, stays.
        if fs::symlink_metadata(&path).is_ok_and(|found| found.is_file()) {
            fs::remove_file(&path).map_err(StoreError::at(&path))?;
        }
        return Ok(None);
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
            start: video.part.start,
            stop: video.part.stop,
            status: outcome.map(|it| it.status),
            message: message.unwrap_or_default(),
        }
    }
}

fn replace(path: &Path, text: &str) -> Result<(), StoreError> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return fs::write(path, text).map_err(StoreError::at(path));
    }
    let file = Replacement::begin(path)?;
    let written = file.file()?.write_all(text.as_bytes());
    written.map_err(StoreError::at(path))?;
    file.finish()
}

/// Where the list is. Runs that share a folder have one each.
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
