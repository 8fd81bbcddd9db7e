// SPDX-License-Identifier: MPL-2.0
//! The report on copies: how many faces were covered, which frames are black and why, and what needs a
//! look.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use facetrack::findings::{Finding, FindingKind, Findings};
use facetrack::redaction::search_of;
use facetrack::report::SearchExtent;
use serde_json::{Value as Json, json};

use super::check::{self, Check, Frames};
use crate::run::TrackedVideo;
use crate::{faces, output, table};

/// Findings that tell where a face may have been missed.
const DOUBTFUL: [FindingKind; 4] = [
    FindingKind::Missing,
    FindingKind::NoFace,
    FindingKind::Short,
    FindingKind::Jump,
];

/// The report on all copies.
pub(super) struct Report {
    /// The engine that found the faces, and the one that checked the copies.
    pub engine: String,
    pub check_engine: String,
    pub videos: Vec<VideoReport>,
}

/// The report on a copy.
pub(super) struct VideoReport {
    pub id: String,
    pub video: PathBuf,
    pub copy: PathBuf,
    pub record: PathBuf,
    /// Reason why there is no copy, or it is not checked.
    failure: Option<String>,
    /// Message about streams that were left out, or about the end of a damaged video.
    note: Option<String>,
    check: Check,
    facts: Facts,
}

/// What the record of a video says.
#[derive(Default)]
struct Facts {
    frames: u64,
    faces: usize,
    /// Frames that are black, with the reason.
    black: Vec<(Frames, SearchExtent)>,
    doubtful: Vec<Finding>,
}

impl VideoReport {
    /// The report on a copy that was brought up to date, or could not be.
    pub(super) fn new(
        video: &TrackedVideo,
        copy: PathBuf,
        brought: Result<Option<String>, Box<dyn Error>>,
    ) -> Self {
        let (note, mut failure) = match brought {
            Ok(note) => (note, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let facts = match failure.is_none().then(|| facts(&video.record)) {
            Some(Ok(facts)) => facts,
            Some(Err(error)) => {
                failure = Some(error);
                Facts::default()
            }
            None => Facts::default(),
        };
        let outcome = video.outcome.as_ref().ok();
        let damage = outcome.and_then(|outcome| outcome.message.clone());
        Self {
            id: video.id.clone(),
            video: video.path.clone(),
            copy,
            record: video.record.clone(),
            note: damage.filter(|_| failure.is_none()).or(note),
            failure,
            check: Check::default(),
            facts,
        }
    }

    pub(super) fn is_copied(&self) -> bool {
        self.failure.is_none()
    }

    /// Takes what was found in the copy.
    pub(super) fn take_check(&mut self, check: Result<Check, String>) {
        match check {
            Ok(check) => self.check = check,
            Err(reason) => self.failure = Some(format!("the copy is not checked: {reason}")),
        }
    }

    fn is_clean(&self) -> bool {
        self.failure.is_none() && self.check.left.is_empty()
    }

    fn json(&self) -> Json {
        let range = |frames: &Frames| json!({"from": frames.first, "to": frames.last, "frames": frames.count});
        let black = self.facts.black.iter().map(|(frames, search)| {
            let mut range = range(frames);
            range["search"] = json!(search);
            range
        });
        let doubtful = self.facts.doubtful.iter().map(|it| {
            json!({"kind": it.kind, "face": it.face, "from": it.first.time.as_secs_f64(),
                "to": it.last.time.as_secs_f64(), "text": it.text})
        });
        json!({
            "video": self.video, "copy": self.copy, "record": self.record,
            "failure": self.failure, "note": self.note,
            "frames": self.facts.frames, "faces": self.facts.faces,
            "left": self.check.left.iter().map(range).collect::<Vec<_>>(),
            "found_on_covers": self.check.on_covers,
            "black": black.collect::<Vec<_>>(),
            "doubtful": doubtful.collect::<Vec<_>>(),
        })
    }

    /// The lines for a terminal.
    fn text(&self, text: &mut String) {
        let copy = self.copy.display();
        if let Some(failure) = &self.failure {
            let _ = writeln!(text, "{copy}: failed: {failure}");
            return;
        }
        let faces = output::counted(self.facts.faces as u64, "face");
        let frames = output::counted(self.facts.frames, "frame");
        let _ = writeln!(text, "{copy}: {faces} covered in {frames}");
        if let Some(note) = &self.note {
            let _ = writeln!(text, "  note: {note}");
        }
        for frames in &self.check.left {
            let _ = writeln!(text, "  FACE LEFT: {}", described(frames));
        }
        for (frames, search) in &self.facts.black {
            let _ = writeln!(text, "  black: {} ({search})", described(frames));
        }
        for finding in &self.facts.doubtful {
            let time = clock(finding.first.time.as_secs_f64());
            let _ = writeln!(text, "  look at {time}: {}", finding.text);
        }
    }
}

impl Report {
    /// Returns true if there is a copy of each video, and no face was found in it.
    pub(super) fn is_clean(&self) -> bool {
        self.videos.iter().all(VideoReport::is_clean)
    }

    /// Writes the report.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(super) fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let videos: Vec<_> = self.videos.iter().map(VideoReport::json).collect();
        let report = json!({
            "engine": self.engine, "check_engine": self.check_engine, "videos": videos,
        });
        Ok(table::write_text(
            path,
            &(serde_json::to_string_pretty(&report)? + "\n"),
        )?)
    }

    /// The report for a terminal.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.videos.iter().for_each(|video| video.text(&mut text));
        let is =
            |wanted: fn(&VideoReport) -> bool| self.videos.iter().filter(|it| wanted(it)).count();
        let failed = is(|it| !it.is_copied());
        let left = is(|it| it.is_copied() && !it.is_clean());
        let clean = output::counted(is(VideoReport::is_clean) as u64, "video");
        let _ = writeln!(
            text,
            "{}: no face found in {clean}; faces left in {left}; failed: {failed}",
            self.check_engine
        );
        text
    }
}

/// Reads what a record says.
fn facts(record: &Path) -> Result<Facts, String> {
    let at = |error: String| format!("{}: {error}", record.display());
    let mut replay = faces::open(record).map_err(at)?;
    let mut facts = Facts::default();
    let mut findings = Findings::new(replay.fps());
    let frames: Vec<_> = std::iter::zip(replay.frames(), check::times(&replay)).collect();
    let mut ids = BTreeSet::new();
    let mut before = SearchExtent::Whole;
    for (place, ((number, pts), time)) in frames.into_iter().enumerate() {
        let report = replay.report(place, faces::ANY_SIZE);
        let report = report.map_err(|error| at(error.to_string()))?;
        ids.extend(report.iter().flat_map(|it| &it.faces).map(|it| it.id));
        findings.add(number, pts, report.as_ref());
        let search = search_of(report.as_ref());
        facts.frames += 1;
        let seconds = time.as_secs_f64();
        match facts.black.last_mut().filter(|_| search == before) {
            Some((last, _)) if search != SearchExtent::Whole => {
                (last.last, last.count) = (seconds, last.count + 1);
            }
            None if search != SearchExtent::Whole => {
                let frames = Frames {
                    first: seconds,
                    last: seconds,
                    count: 1,
                };
                facts.black.push((frames, search));
            }
            _ => (),
        }
        before = search;
    }
    facts.faces = ids.len();
    facts.doubtful = findings.finish();
    facts
        .doubtful
        .retain(|finding| DOUBTFUL.contains(&finding.kind));
    Ok(facts)
}

/// Frames as a range of times.
fn described(frames: &Frames) -> String {
    let count = output::counted(frames.count, "frame");
    format!("{} to {}, {count}", clock(frames.first), clock(frames.last))
}

/// A time in a video as minutes and seconds.
fn clock(seconds: f64) -> String {
    format!("{:02}:{:06.3}", (seconds / 60.0) as u64, seconds % 60.0)
}
