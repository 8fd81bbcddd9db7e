// SPDX-License-Identifier: MPL-2.0
//! The results of a run, for a command that goes on with them.

use std::path::PathBuf;

use facetrack_jobs::Outcome;

use super::arguments::RunArguments;
use super::inputs;
use super::status_file::StatusFile;

/// A video that was tracked, or could not be.
#[derive(Debug)]
pub(crate) struct TrackedVideo {
    /// The path of its record below the folder for records, without the suffix.
    pub id: String,
    pub path: PathBuf,
    pub record: PathBuf,
    /// Hash of everything that the record depends on.
    pub key: String,
    /// The result, or the reason why there is none.
    pub outcome: Result<Outcome, String>,
}

/// The results of the videos that the arguments name.
///
/// # Errors
/// Returns an error if an input does not exist or cannot be read.
pub(crate) fn tracked(arguments: &RunArguments) -> Result<Vec<TrackedVideo>, String> {
    let videos = inputs::collect(arguments)?.videos.into_iter();
    let result = |video: super::Video| {
        let status = match video.refusal {
            Some(reason) => Err(reason),
            None => StatusFile::read(&video.record),
        };
        let (key, outcome) = match status {
            Ok(Some(status)) => (status.key, Ok(status.outcome)),
            Ok(None) => (String::new(), Err("it was not tracked".to_owned())),
            Err(reason) => (String::new(), Err(reason)),
        };
        TrackedVideo {
            id: video.id,
            path: video.path,
            record: video.record,
            key,
            outcome,
        }
    };
    Ok(videos.map(result).collect())
}
