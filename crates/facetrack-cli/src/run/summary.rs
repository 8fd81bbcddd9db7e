// SPDX-License-Identifier: MPL-2.0
//! Summary of a run.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Instant;

use facetrack_jobs::{Outcome, Status};
use serde::Serialize;

use super::events::VideoResult;
use super::plan::{self, VideoJob};

const HOUR: f64 = 3600.0;

/// Counts of settled videos.
pub(super) struct Summary {
    /// Number of videos of this run.
    total: usize,
    start: Instant,
    /// All settled videos.
    pub results: Vec<VideoResult>,
    /// Reasons for tracking the videos.
    reasons: HashMap<usize, String>,
}

/// Counts of all videos, followed by figures of this run only.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    videos: usize,
    done: usize,
    skipped: usize,
    no_face: usize,
    truncated: usize,
    failed: usize,
    open: usize,
    new: usize,
    again: usize,
    frames: u64,
    video_hours: f64,
    seconds: f64,
}

/// Returns true if a video will never have a record.
pub(super) fn is_hopeless(status: Status) -> bool {
    matches!(status, Status::NoVideo | Status::Unsupported)
}

impl Summary {
    pub(super) fn new(total: usize, jobs: &[VideoJob]) -> Self {
        let reasons = jobs.iter().map(|job| (job.index, job.reason.clone()));
        Self {
            total,
            start: Instant::now(),
            results: Vec::new(),
            reasons: reasons.collect(),
        }
    }

    /// The settled videos that are not complete, in the order of the input.
    pub(super) fn incomplete(&self) -> Vec<&VideoResult> {
        let mut results: Vec<_> = self.results.iter().collect();
        results.retain(|result| result.status.outcome.status != Status::Complete);
        results.sort_by_key(|result| result.index);
        results
    }

    /// The indexes of the videos that are not settled.
    pub(super) fn unsettled(&self) -> Vec<usize> {
        let settled: HashSet<_> = self.results.iter().map(|result| result.index).collect();
        (0..self.total).filter(|it| !settled.contains(it)).collect()
    }

    /// Returns true if every video is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.results.len() == self.total && self.incomplete().is_empty()
    }

    /// The status of the only video; `None` if there are several, or it is not settled.
    pub(super) fn only_status(&self) -> Option<Status> {
        let result = self.results.first().filter(|_| self.total == 1)?;
        Some(result.status.outcome.status)
    }

    /// Videos that are not settled.
    pub(super) fn open(&self) -> usize {
        self.total - self.results.len()
    }

    /// The videos that this run has tracked, counted by the reason.
    fn reasons(&self) -> BTreeMap<&str, usize> {
        let tracked = self.results.iter().filter(|result| result.is_tracked());
        let mut counts = BTreeMap::new();
        for reason in tracked.filter_map(|result| self.reasons.get(&result.index)) {
            *counts.entry(reason.as_str()).or_default() += 1;
        }
        counts
    }

    pub(super) fn figures(&self) -> Figures {
        let count = |is_meant: fn(&Outcome) -> bool| {
            let outcomes = self.results.iter().map(|result| &result.status.outcome);
            outcomes.filter(|it| is_meant(it)).count()
        };
        let tracked = || {
            let tracked = self.results.iter().filter(|result| result.is_tracked());
            tracked.map(|result| &result.status.outcome)
        };
        let seconds = tracked().filter_map(|it| it.video_seconds);
        let mut reasons = self.reasons();
        let new = reasons.remove(plan::NEW).unwrap_or(0);
        Figures {
            videos: self.total,
            done: count(|it| it.status == Status::Complete),
            skipped: count(|it| it.status == Status::Skipped),
            no_face: count(|it| it.status.has_record() && it.faces == 0),
            truncated: count(|it| it.status == Status::Truncated),
            failed: count(|it| !it.status.has_record() && it.status != Status::Skipped),
            open: self.open(),
            new,
            again: reasons.values().sum(),
            frames: tracked().map(|it| it.frames).sum(),
            video_hours: seconds.fold(0.0, |sum, it| sum + it) / HOUR,
            seconds: self.start.elapsed().as_secs_f64(),
        }
    }

    /// The figures as a table.
    pub(super) fn table(&self) -> String {
        let mut reasons = self.reasons();
        reasons.entry(plan::NEW).or_default();
        let line = |(reason, count)| format!("  {reason:<12}{count:>10}\n");
        let reasons: String = reasons.into_iter().rev().map(line).collect();
        self.figures().table(&reasons)
    }
}

impl Figures {
    fn table(&self, reasons: &str) -> String {
        let line = |name: &str, value: String| format!("  {name:<12}{value:>10}\n");
        let counts = [
            ("done", self.done as u64),
            ("skipped", self.skipped as u64),
            ("no face", self.no_face as u64),
            ("truncated", self.truncated as u64),
            ("failed", self.failed as u64),
        ];
        let counts = counts.map(|(name, count)| line(name, count.to_string()));
        let frames = line("frames", self.frames.to_string());
        let hours = line("video", format!("{:.2} h", self.video_hours));
        let seconds = self.seconds.max(f64::EPSILON);
        let fps = self.frames as f64 / seconds;
        let speed = self.video_hours * HOUR / seconds;
        let speed = format!("{fps:.1} fps, {speed:.1} x real time");
        let counts = counts.concat();
        format!("{counts}{reasons}{frames}{hours}  speed       {speed}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::status_file::StatusFile;

    fn result(index: usize, status: Status, is_new: bool, faces: u64) -> VideoResult {
        let outcome = Outcome {
            status,
            frames: 10,
            faces,
            video_seconds: Some(HOUR),
            ..Outcome::default()
        };
        let status = StatusFile {
            outcome,
            attempts: u32::from(status != Status::Skipped),
            ..StatusFile::default()
        };
        VideoResult {
            index,
            is_new,
            status: Box::new(status),
        }
    }

    #[test]
    fn figures_of_a_run() {
        let mut summary = Summary::new(6, &[]);
        summary.reasons.insert(0, plan::NEW.to_owned());
        summary
            .reasons
            .insert(3, "again (video changed)".to_owned());
        summary.results.extend([
            result(3, Status::Failed, true, 0),
            result(0, Status::Complete, true, 5),
            result(1, Status::Complete, false, 5),
            result(2, Status::Truncated, true, 0),
            result(4, Status::Skipped, true, 0),
        ]);
        let table = summary.table();
        let figures = serde_json::to_value(summary.figures()).unwrap();
        for (name, count) in [
            ("done", 2),
            ("skipped", 1),
            ("no_face", 1),
            ("truncated", 1),
            ("failed", 1),
            ("open", 1),
            ("new", 1),
            ("again", 1),
            ("frames", 30),
        ] {
            assert_eq!(figures[name], count, "{name}");
        }
        assert_eq!(figures["video_hours"], 3.0);
        let incomplete: Vec<_> = summary.incomplete().iter().map(|it| it.index).collect();
        assert_eq!(incomplete, [2, 3, 4]);
        assert!(!summary.is_complete());
        assert_eq!(summary.only_status(), None);
        assert!(table.contains("  truncated            1\n"), "{table}");
        let tracked = "  new                  1\n  again (video changed)         1\n";
        assert!(table.contains(tracked), "{table}");
    }

    #[test]
    fn a_run_of_one_video() {
        let mut summary = Summary::new(1, &[]);
        assert!(!summary.is_complete());
        summary.results.push(result(0, Status::Complete, false, 0));
        assert!(summary.is_complete());
        assert_eq!(summary.only_status(), Some(Status::Complete));
    }
}
