// SPDX-License-Identifier: MPL-2.0
//! The account of a run.

use std::collections::HashSet;
use std::time::Instant;

use facetrack_jobs::Status;
use serde::Serialize;

use super::events::Report;

const HOUR: f64 = 3600.0;

/// Counts of settled videos.
pub struct Summary {
    /// Videos of this run.
    total: usize,
    start: Instant,
    /// All settled videos.
    reports: Vec<Report>,
}

/// The figures of a run.
#[derive(Debug, Serialize)]
pub struct Figures {
    videos: usize,
    done: usize,
    skipped: usize,
    no_face: usize,
    truncated: usize,
    failed: usize,
    open: usize,
    frames: u64,
    video_hours: f64,
    seconds: f64,
}

/// Whether a video will never have a record.
pub fn is_hopeless(status: Status) -> bool {
    matches!(status, Status::NoVideo | Status::Unsupported)
}

impl Summary {
    pub fn new(total: usize) -> Self {
        Self {
            total,
            start: Instant::now(),
            reports: Vec::new(),
        }
    }

    pub fn add(&mut self, report: Report) {
        self.reports.push(report);
    }

    /// The settled videos that are not complete, in the order of the input.
    pub fn incomplete(&self) -> Vec<&Report> {
        let mut reports: Vec<_> = self.reports.iter().collect();
        reports.retain(|report| report.marker.outcome.status != Status::Complete);
        reports.sort_by_key(|report| report.index);
        reports
    }

    /// The indexes of the videos that are not settled.
    pub fn unsettled(&self) -> Vec<usize> {
        let settled: HashSet<_> = self.reports.iter().map(|report| report.index).collect();
        (0..self.total).filter(|it| !settled.contains(it)).collect()
    }

    /// Whether every video is complete.
    pub fn is_complete(&self) -> bool {
        self.reports.len() == self.total && self.incomplete().is_empty()
    }

    /// The status of the only video; `None` if there are several, or it is not settled.
    pub fn only_status(&self) -> Option<Status> {
        match self.reports.as_slice() {
            [report] if self.total == 1 => Some(report.marker.outcome.status),
            _ => None,
        }
    }

    /// Videos that are not settled.
    pub fn open(&self) -> usize {
        self.total - self.reports.len()
    }

    fn tracked(&self) -> impl Iterator<Item = &Report> {
        let is_tracked =
            |report: &&Report| report.is_new && report.marker.outcome.status != Status::Skipped;
        self.reports.iter().filter(is_tracked)
    }

    fn count(&self, is_meant: impl Fn(&Report) -> bool) -> usize {
        self.tracked().filter(|report| is_meant(report)).count()
    }

    fn sum(&self, figure: impl Fn(&Report) -> f64) -> f64 {
        self.tracked().map(figure).fold(0.0, |sum, it| sum + it)
    }

    pub fn figures(&self) -> Figures {
        let status = |status| move |report: &Report| report.marker.outcome.status == status;
        let has_no_face = |report: &Report| {
            report.marker.outcome.status.has_record() && report.marker.outcome.faces == 0
        };
        let failed = |report: &Report| !report.marker.outcome.status.has_record();
        Figures {
            videos: self.total,
            done: self.count(status(Status::Complete)),
            skipped: self.reports.len() - self.tracked().count(),
            no_face: self.count(has_no_face),
            truncated: self.count(status(Status::Truncated)),
            failed: self.count(failed),
            open: self.open(),
            frames: self.sum(|report| report.marker.outcome.frames as f64) as u64,
            video_hours: self.video_seconds() / HOUR,
            seconds: self.start.elapsed().as_secs_f64(),
        }
    }

    fn video_seconds(&self) -> f64 {
        self.sum(|report| report.marker.outcome.video_seconds.unwrap_or(0.0))
    }
}

impl Figures {
    /// The figures as a table.
    pub fn table(&self) -> String {
        let line = |name: &str, value: String| format!("  {name:<12}{value:>10}\n");
        let counts = [
            ("done", self.done),
            ("skipped", self.skipped),
            ("no face", self.no_face),
            ("truncated", self.truncated),
            ("failed", self.failed),
        ];
        let counts = counts.map(|(name, count)| line(name, count.to_string()));
        let frames = line("frames", self.frames.to_string());
        let hours = line("video", format!("{:.2} h", self.video_hours));
        let seconds = self.seconds.max(f64::EPSILON);
        let fps = self.frames as f64 / seconds;
        let speed = self.video_hours * HOUR / seconds;
        let speed = format!("{fps:.1} fps, {speed:.1} x real time");
        format!("{}{frames}{hours}  speed       {speed}\n", counts.concat())
    }
}

#[cfg(test)]
mod tests {
    use facetrack_jobs::Outcome;

    use super::*;
    use crate::run::marker::Marker;

    fn report(index: usize, status: Status, is_new: bool, faces: u64) -> Report {
        let outcome = Outcome {
            status,
            frames: 10,
            faces,
            video_seconds: Some(HOUR),
            ..Outcome::default()
        };
        let marker = Marker {
            outcome,
            ..Marker::default()
        };
        Report {
            index,
            is_new,
            marker,
        }
    }

    #[test]
    fn figures_of_a_run() {
        let mut summary = Summary::new(6);
        for report in [
            report(3, Status::Failed, true, 0),
            report(0, Status::Complete, true, 5),
            report(1, Status::Complete, false, 5),
            report(2, Status::Truncated, true, 0),
            report(4, Status::Skipped, true, 0),
        ] {
            summary.add(report);
        }
        let table = summary.figures().table();
        let figures = serde_json::to_value(summary.figures()).unwrap();
        for (name, count) in [
            ("done", 1),
            ("skipped", 2),
            ("no_face", 1),
            ("truncated", 1),
            ("failed", 1),
            ("open", 1),
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
    }

    #[test]
    fn a_run_of_one_video() {
        let mut summary = Summary::new(1);
        assert!(!summary.is_complete());
        summary.add(report(0, Status::Complete, false, 0));
        assert!(summary.is_complete());
        assert_eq!(summary.only_status(), Some(Status::Complete));
    }
}
