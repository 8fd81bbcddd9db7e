// SPDX-License-Identifier: MPL-2.0
//! The results of a run, for the next step of another command.

use std::collections::HashMap;
use std::path::PathBuf;

use facetrack_jobs::Outcome;

use super::arguments::RunArguments;
use super::events::VideoResult;
use super::status_file::StatusFile;
use super::video::Video;
use super::{inputs, key};

/// A video that was tracked, or could not be.
#[derive(Debug)]
pub(crate) struct TrackedVideo {
    /// The path of its record below the folder for records, without the suffix.
    pub id: String,
    pub path: PathBuf,
    pub record: PathBuf,
    /// True unless only a part of it is tracked.
    pub is_whole: bool,
    /// The result, or the reason why there is none.
    pub result: Result<TrackingResult, String>,
}

/// The result of a video with a record.
#[derive(Debug)]
pub(crate) struct TrackingResult {
    /// Hash of everything that the record depends on.
    pub key: String,
    pub engine: String,
    pub outcome: Outcome,
}

/// The videos of a run with the results that it has settled.
pub(super) fn of_run(videos: &[Video], results: Vec<VideoResult>) -> Vec<TrackedVideo> {
    let results = results.into_iter().map(|it| (it.index, it.status));
    let mut results: HashMap<_, _> = results.collect();
    let numbered = videos.iter().enumerate();
    let all = numbered.map(|(index, video)| {
        let settled = results
            .remove(&index)
            .ok_or("it was not tracked".to_owned());
        video.with_result(settled.and_then(|status| {
            let status = with_record(*status)?;
            match StatusFile::read(&video.record)? {
                Some(there) if there.key == status.key => Ok(status),
                _ => Err("its record is of an earlier run".to_owned()),
            }
        }))
    });
    all.collect()
}

/// The videos that the arguments name, with the results of the last run if their files have not changed
/// since.
///
/// # Errors
/// Returns an error if an input does not exist or cannot be read.
pub(crate) fn recorded(arguments: &RunArguments) -> Result<Vec<TrackedVideo>, String> {
    let videos = inputs::collect(arguments)?.videos.into_iter();
    let result = |video: &Video| {
        if let Some(refusal) = &video.refusal {
            return Err(refusal.clone());
        }
        let status = StatusFile::read(&video.record)?;
        let status = with_record(*status.ok_or("it was not tracked")?)?;
        if status.later.is_some() || !key::has_content(&video.path, &status.basis) {
            return Err("it has changed since it was tracked".to_owned());
        }
        Ok(status)
    };
    Ok(videos
        .map(|video| video.with_result(result(&video)))
        .collect())
}

/// The status of a video that has a record.
///
/// # Errors
/// Returns the reason why it has none.
fn with_record(status: StatusFile) -> Result<StatusFile, String> {
    if status.outcome.status.has_record() {
        return Ok(status);
    }
    let reason = status.outcome.message;
    Err(reason.unwrap_or_else(|| "its faces are not known".to_owned()))
}

impl Video {
    fn with_result(&self, status: Result<StatusFile, String>) -> TrackedVideo {
        TrackedVideo {
            id: self.id.clone(),
            path: self.path.clone(),
            record: self.record.clone(),
            is_whole: self.segment.is_whole(),
            result: status.map(|status| TrackingResult {
                key: status.key,
                engine: status.engine,
                outcome: status.outcome,
            }),
        }
    }
}
