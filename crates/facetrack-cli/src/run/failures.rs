// SPDX-License-Identifier: MPL-2.0
//! The list of videos that are not complete. It can be used as input.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use facetrack_jobs::Status;
use serde::Serialize;

use super::arguments::RunArguments;
use super::inputs::Video;
use super::shard::Shard;
use super::summary::Summary;
use crate::error::StoreError;

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
    status: Status,
    message: &'a str,
}

/// Writes the list, and returns its path. Without failures, the list of an earlier run is removed.
///
/// # Errors
/// The file cannot be written.
pub fn write(
    arguments: &RunArguments,
    shard: Shard,
    videos: &[Video],
    summary: &Summary,
) -> Result<Option<PathBuf>, StoreError> {
    let path = place(arguments, shard);
    let incomplete = summary.incomplete();
    if incomplete.is_empty() {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::at(&path)(error))
            }
            _ => Ok(None),
        };
    }
    let line = |report: &&super::events::Report| {
        let video = &videos[report.index];
        let outcome = &report.marker.outcome;
        serde_json::to_string(&Row {
            id: &video.id,
            uri: &video.path,
            start: video.part.start,
            stop: video.part.stop,
            status: outcome.status,
            message: outcome.message.as_deref().unwrap_or_default(),
        })
    };
    let lines: Result<Vec<_>, _> = incomplete.iter().map(line).collect();
    let written = lines
        .map_err(io::Error::from)
        .and_then(|lines| fs::write(&path, lines.join("\n") + "\n"));
    written.map_err(StoreError::at(&path))?;
    Ok(Some(path))
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
