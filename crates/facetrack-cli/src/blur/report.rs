// SPDX-License-Identifier: MPL-2.0
//! The report on copies: how many faces were covered, which frames are black and why, and what needs a
//! look.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use facetrack::findings::{Finding, FindingKind, Findings};
use facetrack::printable::Line;
use facetrack::report::SearchExtent;
use serde_json::{Value as Json, json};

use super::check::{Check, Found};
use super::places::{self, Places};
use crate::run::TrackedVideo;
use crate::{faces, output};

/// Findings that tell where a face may have been missed.
const DOUBTFUL: [FindingKind; 4] = [
    FindingKind::Missing,
    FindingKind::NoFace,
    FindingKind::Short,
    FindingKind::Jump,
];

/// Successive frames that have something in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range<T> {
    /// Times of the first and the last frame, s.
    first: f64,
    last: f64,
    count: u64,
    what: T,
}

/// Ranges of frames.
#[derive(Debug)]
pub(super) struct Ranges<T> {
    list: Vec<Range<T>>,
    /// True if the last frame is in the last range.
    is_open: bool,
}

impl<T> Default for Ranges<T> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            is_open: false,
        }
    }
}

impl<T: PartialEq + Copy> Ranges<T> {
    /// Adds the next frame, which is in no range without `what`.
    pub(super) fn add(&mut self, seconds: f64, what: Option<T>) {
        let was_open = std::mem::replace(&mut self.is_open, what.is_some());
        let Some(what) = what else { return };
        match self.list.last_mut() {
            Some(last) if was_open && last.what == what => {
                (last.last, last.count) = (seconds, last.count + 1);
            }
            _ => self.list.push(Range {
                first: seconds,
                last: seconds,
                count: 1,
                what,
            }),
        }
    }

    /// The ranges as JSON, those that are wanted.
    fn json(&self, is_wanted: impl Fn(T) -> bool) -> Vec<Json> {
        let wanted = self.list.iter().filter(|it| is_wanted(it.what));
        wanted.map(Range::json).collect()
    }
}

impl<T> Range<T> {
    fn json(&self) -> Json {
        json!({"from": self.first, "to": self.last, "frames": self.count})
    }
}

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
    video: PathBuf,
    pub copy: PathBuf,
    pub record: PathBuf,
    /// Reason why there is no copy, or it is not checked.
    failure: Option<String>,
    /// Messages about streams that were left out, and about the end of a damaged video.
    notes: Vec<String>,
    check: Check,
    /// Places in the record that deserve a look.
    doubtful: Vec<Finding>,
}

impl VideoReport {
    /// The report on a copy that was brought up to date, or could not be.
    pub(super) fn new(
        video: &TrackedVideo,
        places: &Places,
        brought: Result<Option<String>, Box<dyn Error>>,
    ) -> Self {
        let outcome = video.result.as_ref().ok().map(|it| &it.outcome);
        let damage = outcome.and_then(|outcome| outcome.message.clone());
        let brought = brought.map_err(|error| error.to_string());
        let brought = brought.and_then(|left_out| Ok((left_out, doubtful(&video.record)?)));
        let (notes, doubtful, failure) = match brought {
            Ok((left_out, doubtful)) => {
                let notes = damage.into_iter().chain(left_out).collect();
                (notes, doubtful, None)
            }
            Err(error) => (Vec::new(), Vec::new(), Some(error)),
        };
        Self {
            id: video.id.clone(),
            video: video.path.clone(),
            copy: places.copy(&video.id, &video.path),
            record: video.record.clone(),
            notes,
            failure,
            check: Check::default(),
            doubtful,
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
        self.failure.is_none() && self.check.found.list.is_empty()
    }

    /// Numbers of faces that are covered, and that stay visible.
    fn faces(&self) -> [usize; 2] {
        let frames = &self.check.frames;
        let covered = frames.iter().flat_map(|it| &it.covers);
        let kept = frames.iter().flat_map(|it| &it.kept);
        let covered: BTreeSet<_> = covered.map(|it| it.id).collect();
        let kept: BTreeSet<_> = kept.map(|it| it.id).collect();
        [covered.len(), kept.len()]
    }

    /// Frames that may show other faces, whether they are black, and why.
    fn unsearched(&self) -> Ranges<(bool, SearchExtent)> {
        let mut ranges = Ranges::default();
        for frame in &self.check.frames {
            let is_unsearched = frame.is_black || frame.search != SearchExtent::Whole;
            let what = is_unsearched.then_some((frame.is_black, frame.search));
            ranges.add(frame.time as f64 * 1e-9, what);
        }
        ranges
    }

    fn json(&self) -> Json {
        let unsearched = self.unsearched();
        let unsearched = unsearched.list.iter().map(|range| {
            let (is_black, search) = range.what;
            let mut json = range.json();
            (json["black"], json["search"]) = (is_black.into(), json!(search));
            json
        });
        let doubtful = self.doubtful.iter().map(|it| {
            json!({"kind": it.kind, "face": it.face, "from": it.first.time.as_secs_f64(),
                "to": it.last.time.as_secs_f64(), "text": it.text})
        });
        let [covered, kept] = self.faces();
        json!({
            "video": self.video, "copy": self.copy, "record": self.record,
            "failure": self.failure, "notes": self.notes,
            "frames": self.check.frames.len(), "covered_faces": covered, "kept_faces": kept,
            "left": self.check.found.json(|it| it == Found::Uncovered),
            "on_covers": self.check.found.json(|it| it == Found::OnCover),
            "unsearched": unsearched.collect::<Vec<_>>(),
            "doubtful": doubtful.collect::<Vec<_>>(),
        })
    }

    /// The lines for a terminal.
    fn text(&self, text: &mut String) {
        let copy = Line(self.copy.display());
        if let Some(failure) = &self.failure {
            let _ = writeln!(text, "{copy}: failed: {}", Line(failure));
            return;
        }
        let [covered, kept] = self.faces();
        let faces = output::counted(covered as u64, "face");
        let frames = output::counted(self.check.frames.len() as u64, "frame");
        let _ = write!(text, "{copy}: {faces} covered in {frames}");
        let _ = match kept {
            0 => writeln!(text),
            kept => writeln!(text, ", {kept} kept visible"),
        };
        for note in &self.notes {
            let _ = writeln!(text, "  note: {}", Line(note));
        }
        for range in &self.check.found.list {
            let what = match range.what {
                Found::Uncovered => "FACE LEFT",
                Found::OnCover => "FACE ON COVER",
            };
            let _ = writeln!(text, "  {what}: {}", described(range));
        }
        for range in &self.unsearched().list {
            let (is_black, search) = range.what;
            let what = if is_black { "black" } else { "not searched" };
            let _ = writeln!(text, "  {what}: {} ({search})", described(range));
        }
        for finding in &self.doubtful {
            let time = clock(finding.first.time.as_secs_f64());
            let _ = writeln!(text, "  look at {time}: {}", Line(&finding.text));
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
        let text = serde_json::to_string_pretty(&report)? + "\n";
        Ok(places::write(path, text.as_bytes())?)
    }

    /// The report for a terminal.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.videos.iter().for_each(|video| video.text(&mut text));
        let is =
            |wanted: fn(&VideoReport) -> bool| self.videos.iter().filter(|it| wanted(it)).count();
        let failed = is(|it| !it.is_copied());
        let found = is(|it| it.is_copied() && !it.is_clean());
        let clean = output::counted(is(VideoReport::is_clean) as u64, "video");
        let _ = writeln!(
            text,
            "{}: no face found in {clean}; faces found in {found}; failed: {failed}",
            self.check_engine
        );
        text
    }
}

/// The places in a record where a face may have been missed.
fn doubtful(record: &Path) -> Result<Vec<Finding>, String> {
    let at = |error: String| format!("{}: {error}", record.display());
    let mut replay = faces::open(record).map_err(at)?;
    let mut findings = Findings::new(replay.fps());
    let frames: Vec<_> = replay.frames().collect();
    for (place, (number, pts)) in frames.into_iter().enumerate() {
        let report = replay.report(place, faces::ANY_SIZE);
        let report = report.map_err(|error| at(error.to_string()))?;
        findings.add(number, pts, report.as_ref());
    }
    let mut doubtful = findings.finish();
    doubtful.retain(|finding| DOUBTFUL.contains(&finding.kind));
    Ok(doubtful)
}

/// Frames as a range of times.
fn described<T>(range: &Range<T>) -> String {
    let count = output::counted(range.count, "frame");
    format!("{} to {}, {count}", clock(range.first), clock(range.last))
}

/// A time in a video as minutes and seconds.
fn clock(seconds: f64) -> String {
    format!("{:02}:{:06.3}", (seconds / 60.0) as u64, seconds % 60.0)
}
