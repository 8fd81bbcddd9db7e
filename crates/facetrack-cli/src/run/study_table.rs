// SPDX-License-Identifier: MPL-2.0
//! The table of all videos of a run, which is written when it ends.

use std::error::Error;
use std::path::Path;

use facetrack_jobs::Ready;

use super::Run;
use super::arguments::RunArguments;
use super::queue::Stop;
use super::shard::Shard;
use super::summary::Summary;
use crate::faces::{self, Settings};
use crate::index::{self, videos::Recorded};

/// The format of records that have no faces to read.
const REDUCED: &str = "reduced";

/// A table that was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Written<'a> {
    pub path: &'a Path,
    /// Number of its rows.
    pub faces: u64,
}

/// Checks that the table can be written when the run ends.
///
/// # Errors
/// Returns the reason why it cannot be, and the remedy.
pub(super) fn check(arguments: &RunArguments, shard: Shard, ready: &Ready) -> Result<(), String> {
    let Some(path) = &arguments.table else {
        return Ok(());
    };
    let at = |reason: &str| format!("--table {}: {reason}", path.display());
    if shard.is_one_of_several() {
        return Err(at(
            "each shard would replace the table of the others. Leave it out, and run `facetrack \
             index` with --faces when all shards have ended",
        ));
    }
    if ready.options.get("format").and_then(|it| it.as_str()) == Some(REDUCED) {
        return Err(at(
            "reduced records cannot be read. Leave out format=reduced",
        ));
    }
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(at("there is no such folder. Create it"));
    }
    index::check_table(path)?;
    let columns = faces::columns_of(Settings {
        engine: &ready.engine,
        of_sink: &ready.options,
        of_engine: &ready.options,
    });
    arguments.choice().of(columns).map(drop)
}

/// Writes the table of the videos that have a record, sorted by their ids. An earlier table stays if
/// the run was interrupted.
///
/// # Errors
/// Returns an error if the run was interrupted, a record cannot be read, or the table cannot be
/// written.
pub(super) fn write<'a>(
    run: &Run<'a>,
    summary: &Summary,
    stop: Option<Stop>,
) -> Result<Option<Written<'a>>, Box<dyn Error>> {
    let arguments = run.arguments;
    let Some(path) = &arguments.table else {
        return Ok(None);
    };
    if matches!(stop, Some(Stop::Terminated | Stop::OutOfSpace)) {
        let reason = "it is not written, because the run was interrupted";
        return Err(format!("{}: {reason}", path.display()).into());
    }
    let results = summary.results.iter();
    let results = results.filter(|it| it.status.outcome.status.has_record());
    let videos = results.map(|result| &run.videos[result.index]);
    let mut videos: Vec<_> = videos
        .map(|video| Recorded {
            id: &video.id,
            record: &video.record,
        })
        .collect();
    videos.sort_by_key(|video| video.id);
    let faces = index::write_faces(path, &videos, arguments.choice())?;
    Ok(Some(Written { path, faces }))
}
