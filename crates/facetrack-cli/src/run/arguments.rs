// SPDX-License-Identifier: MPL-2.0
//! The options of `facetrack run`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::Args;

use super::fetching::FetchCommand;
use super::segment_plan::SegmentPlan;
use super::shard::ShardOption;
use super::units;
use crate::faces::{Choice, ColumnPattern};

/// Properties of the older pipeline: its rule for ids.
const OLDER_PROPERTIES: [(&str, &str); 2] = [("tracker", "centroid"), ("max-distance", "80")];

/// Options of `facetrack run`.
#[derive(Args)]
pub(crate) struct RunArguments {
    /// Videos, folders, patterns such as 'clips/**/*.mp4', and lists of videos (.txt, .csv, .jsonl,
    /// .json); - = a list from standard input
    #[arg(required_unless_present = "videos_json_path")]
    pub input: Vec<PathBuf>,
    /// Folder for the records, in the tree of the input; by default each record is next to its video
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Engine; default: mediapipe
    #[arg(long, alias = "tracking_engine", value_name = "NAME")]
    pub engine: Option<String>,
    /// Property of facetrack or trackjsonsink, such as max-faces=2; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = units::property)]
    pub properties: Vec<(String, String)>,
    /// Videos to track in parallel; 0 = one per core
    #[arg(
        long,
        alias = "cpu_internal_workers",
        default_value_t = 0,
        value_name = "N"
    )]
    pub jobs: usize,
    /// Track videos again whose records were made with other settings, and replace these
    #[arg(long)]
    pub replace: bool,
    /// Track every video again, and also replace records that this command has not written
    #[arg(long)]
    pub force: bool,
    /// Try videos again that failed in an earlier run
    #[arg(long)]
    pub retry_failed: bool,
    /// Identify videos by their content instead of their size and time of change
    #[arg(long)]
    pub checksum: bool,
    /// List what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Stop at the first video that fails
    #[arg(long)]
    pub fail_fast: bool,
    /// Maximum time for a video, such as 90s, 10m or 2h
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub timeout: Option<Duration>,
    /// Maximum memory of a worker, such as 800M or 2G
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub max_memory: Option<u64>,
    /// Track long videos in parts of this length at the same time; MP4, MOV, Matroska and WebM
    #[arg(long, value_name = "TIME", value_parser = units::duration)]
    pub segment: Option<Duration>,
    /// Time to track before each part
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "segment", value_parser = units::duration)]
    pub warm_up: Duration,
    /// Command that copies a video to a local file, such as 'rclone copyto {} {local}'; videos need
    /// not be local then
    #[arg(long, value_name = "COMMAND", requires = "out", conflicts_with_all = ["segment", "checksum"])]
    pub fetch: Option<FetchCommand>,
    /// Videos to fetch in advance
    #[arg(long, value_name = "N", default_value_t = 2, requires = "fetch")]
    pub fetch_ahead: usize,
    /// Part of the videos to track: I/N, or N if a scheduler numbers its tasks (Slurm, Kubernetes,
    /// HyperQueue)
    #[arg(long, value_name = "I/N")]
    pub shard: Option<ShardOption>,
    /// File for the list of videos that are not complete
    #[arg(long, value_name = "FILE")]
    pub failures: Option<PathBuf>,
    /// Parquet file to write when the run ends, with a row per face and frame of all videos
    #[arg(long, value_name = "FILE")]
    pub table: Option<PathBuf>,
    /// Columns of the table, as in facetrack export
    #[arg(
        long,
        value_name = "PATTERN",
        requires = "table",
        num_args = 1..,
        value_delimiter = ','
    )]
    pub columns: Vec<ColumnPattern>,
    /// Add the landmarks to the table
    #[arg(long, requires = "table")]
    pub landmarks: bool,
    /// Print events as JSON, one per line
    #[arg(long)]
    pub json: bool,
    /// List of videos, under the name of an older pipeline
    #[arg(long = "videos_json_path", value_name = "FILE", hide = true)]
    pub videos_json_path: Option<PathBuf>,
    /// True if the run is a step of another command: it prints no summary
    #[arg(skip)]
    pub is_step: bool,
}

impl RunArguments {
    /// The arguments of a run that is a step of another command.
    pub(crate) fn step(
        input: PathBuf,
        out: PathBuf,
        engine: &str,
        properties: Vec<(String, String)>,
        jobs: usize,
    ) -> Self {
        Self {
            input: vec![input],
            out: Some(out),
            engine: Some(engine.to_owned()),
            properties,
            jobs,
            replace: true,
            force: false,
            retry_failed: true,
            checksum: false,
            dry_run: false,
            fail_fast: false,
            timeout: None,
            max_memory: None,
            segment: None,
            warm_up: Duration::default(),
            fetch: None,
            fetch_ahead: 0,
            shard: None,
            failures: None,
            table: None,
            columns: Vec::new(),
            landmarks: false,
            json: false,
            videos_json_path: None,
            is_step: true,
        }
    }

    /// Returns how long videos are divided, or `None` if they are not.
    pub(crate) fn segment_plan(&self) -> Option<SegmentPlan> {
        let warm_up = self.warm_up;
        self.segment.map(|segment| SegmentPlan { segment, warm_up })
    }

    /// The properties to set, in this order.
    pub(crate) fn properties(&self) -> Vec<(String, String)> {
        let older = self.videos_json_path.iter().flat_map(|_| OLDER_PROPERTIES);
        let older = older.map(|(name, value)| (name.to_owned(), value.to_owned()));
        older.chain(self.properties.clone()).collect()
    }

    /// The columns of the table.
    pub(crate) fn choice(&self) -> Choice<'_> {
        Choice {
            patterns: &self.columns,
            landmarks: self.landmarks,
        }
    }

    /// Videos to track in parallel.
    pub(crate) fn jobs(&self) -> usize {
        match self.jobs {
            0 => cores(),
            jobs => jobs,
        }
    }

    /// Threads for each decoder, so that all of them together occupy the cores.
    pub(crate) fn decoder_threads(&self) -> u32 {
        u32::try_from(cores() / self.jobs()).unwrap_or(1).max(1)
    }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

#[cfg(test)]
pub(super) mod tests {
    use std::ffi::OsString;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: RunArguments,
    }

    /// Parses the words as arguments.
    pub(crate) fn parsed<W: Into<OsString>>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<RunArguments, String> {
        let words = words.into_iter().map(Into::into);
        let line = Line::try_parse_from([OsString::from("run")].into_iter().chain(words));
        line.map(|line| line.arguments)
            .map_err(|error| error.to_string())
    }
}
