// SPDX-License-Identifier: MPL-2.0
//! Decides which videos are tracked.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use facetrack::printable::Line;
use facetrack_assets::file;
use facetrack_jobs::{Cause, Outcome, Ready, Status};
use serde_json::Value;

use super::arguments::RunArguments;
use super::events::VideoResult;
use super::key;
use super::names;
use super::status_file::StatusFile;
use super::video::Video;
use super::video_lock::{self, Existing};
use crate::output;

/// Reason for tracking a video without a status file.
pub(super) const NEW: &str = "new";

/// A video to track.
#[derive(Debug)]
pub(super) struct VideoJob {
    /// Index of the video.
    pub index: usize,
    pub key: String,
    /// The basis of the key.
    pub basis: Value,
    /// Reason for tracking it: `new` or `again (…)`.
    pub reason: String,
    /// Settings that differ from the settings of the record to replace.
    pub differences: Vec<String>,
    pub existing: Existing,
    /// The status file when the run was planned.
    pub known: Option<Box<StatusFile>>,
    /// Reason why the video is not tracked in segments, although it should be.
    pub whole: Option<String>,
}

/// Decides for all videos. Returns those to track, and the others.
pub(super) fn plan(
    videos: &[Video],
    arguments: &RunArguments,
    ready: &Ready,
) -> (Vec<VideoJob>, Vec<VideoResult>) {
    let (mut jobs, mut settled) = (Vec::new(), Vec::new());
    for (index, video) in videos.iter().enumerate() {
        if !arguments.dry_run && video.refusal.is_none() {
            // If that is impossible, the video cannot be locked either, which is reported.
            let _ = video_lock::recover(&video.record);
        }
        let basis = key::basis(video, arguments, ready);
        let key = key::of(&basis);
        let known = StatusFile::read(&video.record);
        let existing = match decide(index, video, &key, &known, ready, arguments) {
            Ok(existing) => existing,
            Err(result) => {
                settled.push(result);
                continue;
            }
        };
        let known = known.ok().flatten();
        let (reason, differences) = compared(known.as_deref(), video, &basis);
        jobs.push(VideoJob {
            index,
            key,
            basis,
            reason,
            differences,
            existing,
            known,
            whole: None,
        });
    }
    (jobs, settled)
}

impl VideoJob {
    /// The status file of another run that has settled the video since this run was planned.
    pub(super) fn settled_meanwhile(&mut self, video: &Video) -> Option<Box<StatusFile>> {
        let status = StatusFile::read(&video.record).ok().flatten();
        if status == self.known {
            return None;
        }
        self.known = status;
        let known = self.known.as_ref()?;
        self.existing = Existing::Replaced;
        known.with_key(&self.key).cloned().map(Box::new)
    }

    /// Returns the earlier result if it is better than this one, so that it is kept.
    pub(super) fn better(
        &self,
        video: &Video,
        next: &Outcome,
        arguments: &RunArguments,
    ) -> Option<&StatusFile> {
        let known = self.known.as_deref().filter(|_| has_record(video))?;
        let is_better = known.is_better_than(next.status);
        let is_forced = arguments.force && next.status.has_record();
        (is_better && !is_forced).then_some(known)
    }
}

/// Returns the reason for tracking a video, and the settings that differ from the settings of its
/// record.
fn compared(known: Option<&StatusFile>, video: &Video, basis: &Value) -> (String, Vec<String>) {
    let Some(known) = known else {
        return (NEW.to_owned(), Vec::new());
    };
    let was_read = !known.key.is_empty();
    let is_changed = was_read && key::is_changed(&known.basis, basis);
    let mut differences = if was_read {
        key::differences(&known.basis, basis)
    } else {
        Vec::new()
    };
    if is_changed && known.video != video.path {
        differences.push(format!("the record is of {}", known.video.display()));
    }
    let changed = (is_changed && !known.basis.is_null()).then(|| "video changed".to_owned());
    let options = (!differences.is_empty()).then(|| format!("options: {}", differences.join(", ")));
    let mut reasons: Vec<_> = [changed, options].into_iter().flatten().collect();
    if reasons.is_empty() {
        let status = known.last().outcome.status.word();
        reasons.push(format!("was {status}"));
    }
    if !has_result(known, video) {
        differences.clear();
    }
    (format!("again ({})", reasons.join("; ")), differences)
}

/// Returns the reason why the run must not start: videos have records that were made with other
/// settings.
pub(super) fn conflict(
    videos: &[Video],
    jobs: &[VideoJob],
    arguments: &RunArguments,
) -> Option<String> {
    let is_asked_for = arguments.replace || arguments.force;
    let mut others = jobs.iter().filter(|job| !job.differences.is_empty());
    let first = others.next().filter(|_| !is_asked_for)?;
    let count = output::counted(1 + others.count() as u64, "video");
    Some(format!(
        "{count} would be tracked again with other settings, and the records would be replaced, \
         such as {}: {}. Add --replace to do that, or set another folder with --out",
        videos[first.index].record.display(),
        first.differences.join(", ")
    ))
}

/// Returns true if the status file says that the video has a record, and the record exists.
fn has_result(known: &StatusFile, video: &Video) -> bool {
    known.outcome.status.has_record() && has_record(video)
}

fn has_record(video: &Video) -> bool {
    fs::symlink_metadata(&video.record).is_ok()
}

/// Decides if a video is tracked. If it is not, the error is its result.
fn decide(
    index: usize,
    video: &Video,
    key: &str,
    known: &Result<Option<Box<StatusFile>>, String>,
    ready: &Ready,
    arguments: &RunArguments,
) -> Result<Existing, VideoResult> {
    let new = |outcome| {
        Err(VideoResult {
            index,
            is_new: true,
            status: Box::new(StatusFile::new(key, video, ready, outcome)),
        })
    };
    let skipped = |reason| new(Outcome::without_record(Status::Skipped, reason));
    if let Some(refusal) = &video.refusal {
        return skipped(format!("{}: {refusal}", video.path.display()));
    }
    let known = match known {
        Ok(known) => known.as_deref(),
        Err(_) if arguments.force => None,
        Err(reason) => return skipped(reason.clone()),
    };
    let has_record = has_record(video);
    if let Some(status) = known.and_then(|it| valid(it, key, has_record, arguments)) {
        let mut status = Box::new(status.clone());
        // They would need much memory.
        (status.basis, status.later) = (Value::Null, None);
        return Err(VideoResult {
            index,
            is_new: false,
            status,
        });
    }
    if known.is_some()
        && let Some(outcome) = unreadable(video, arguments)
    {
        return new(kept(outcome, video));
    }
    if let Some(reason) = names::obstacle(&video.record) {
        return skipped(reason);
    }
    if arguments.force || known.is_some() {
        return Ok(Existing::Replaced);
    }
    if has_record {
        return skipped(foreign(&video.record));
    }
    Ok(Existing::Kept)
}

/// The earlier result, if the video is not tracked again.
fn valid<'a>(
    status: &'a StatusFile,
    key: &str,
    has_record: bool,
    arguments: &RunArguments,
) -> Option<&'a StatusFile> {
    let account = status.with_key(key).filter(|_| !arguments.force)?;
    let is_tried_again = arguments.retry_failed && account.outcome.status == Status::Failed;
    let is_whole = has_record || !status.outcome.status.has_record();
    (is_whole && !is_tried_again).then_some(account)
}

/// The outcome of a video that cannot be opened now.
pub(super) fn unreadable(video: &Video, arguments: &RunArguments) -> Option<Outcome> {
    let refused = refuse(&video.path).filter(|_| arguments.fetch.is_none())?;
    (refused.cause == Some(Cause::Unreadable)).then_some(refused)
}

/// The outcome of an attempt after which the earlier status file stays, and its record if there is
/// one.
pub(super) fn kept(outcome: Outcome, video: &Video) -> Outcome {
    let message = outcome.message.unwrap_or_default();
    let message = if has_record(video) {
        let message = message.trim_end_matches('.');
        format!("{message}. The record of an earlier run is kept")
    } else {
        message
    };
    Outcome {
        message: Some(message),
        ..outcome
    }
}

/// Returns the reason why a record is not replaced.
pub(super) fn foreign(record: &Path) -> String {
    format!(
        "{} exists, and `facetrack run` has not written it. Move it away, or add --force to replace it",
        record.display()
    )
}

/// Returns the outcome of a file that cannot be a video, so that no worker opens it; `None` for
/// other files.
pub(super) fn refuse(path: &Path) -> Option<Outcome> {
    let (status, cause, reason) = refusal(path)?;
    let message = format!("{}: {reason}", path.display());
    Some(Outcome {
        cause,
        ..Outcome::without_record(status, message)
    })
}

/// Returns the reason why a file is not a video, or cannot be opened.
fn refusal(path: &Path) -> Option<(Status, Option<Cause>, String)> {
    let unsupported = |reason: &str| Some((Status::Unsupported, None, reason.to_owned()));
    let unreadable = |reason| Some((Status::Failed, Some(Cause::Unreadable), reason));
    match fs::metadata(path) {
        Err(_) if path.to_string_lossy().contains(":/") => {
            unsupported("only local files can be tracked. Copy or mount it, or add --fetch")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            unreadable("there is no such file".to_owned())
        }
        Err(error) => unreadable(error.to_string()),
        Ok(found) if found.is_dir() => unsupported("it is a folder. Name it on the command line"),
        Ok(found) if !found.is_file() => unsupported("it is a pipe, socket or device, not a file"),
        Ok(found) if found.len() == 0 => {
            Some((Status::NoVideo, None, "the file is empty".to_owned()))
        }
        Ok(_) => unreadable(format!("it cannot be opened: {}", file::open(path).err()?)),
    }
}

/// The plan as lines, for `--dry-run`.
pub(super) fn described(videos: &[Video], tasks: &[VideoJob], settled: &[VideoResult]) -> String {
    let line = |(index, verb): (usize, &str)| {
        let Video { path, record, .. } = &videos[index];
        let (path, record) = (Line(path.display()), Line(record.display()));
        format!("{verb:<10} {path} -> {record}\n")
    };
    let tracked = tasks.iter().map(|task| (task.index, task.reason.as_str()));
    let status = |report: &VideoResult| (report.index, report.status.outcome.status.word());
    let others = settled.iter().map(status);
    let mut lines: Vec<_> = tracked.chain(others).collect();
    lines.sort_unstable();
    lines.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::arguments::tests::parsed;

    struct Case {
        folder: tempfile::TempDir,
        video: Video,
    }

    impl Case {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.mp4");
            let record = folder.path().join("a.json");
            let video = Video {
                id: "a".to_owned(),
                name: "a.mp4".to_owned(),
                path,
                record,
                ..Video::default()
            };
            Self { folder, video }
        }

        fn mark(&self, key: &str, status: Status) {
            let outcome = Outcome::without_record(status, "");
            let status = StatusFile::new(key, &self.video, &Ready::default(), outcome);
            let text = serde_json::to_string(&status).unwrap();
            fs::write(names::status_file(&self.video.record), text).unwrap();
        }

        fn write(&self, name: &str) {
            fs::write(self.folder.path().join(name), "x").unwrap();
        }

        /// The decision with an option, or with none.
        fn decide(&self, option: Option<&str>) -> &'static str {
            let arguments = parsed(["a.mp4"].into_iter().chain(option)).unwrap();
            let known = StatusFile::read(&self.video.record);
            match decide(0, &self.video, "key", &known, &Ready::default(), &arguments) {
                Ok(Existing::Replaced) => "replace",
                Ok(Existing::Kept) => "track",
                Err(result) if result.is_new => result.status.outcome.status.word(),
                Err(_) => "keep",
            }
        }
    }

    #[test]
    fn status_files_decide() {
        let case = Case::new();
        assert_eq!(case.decide(None), "track");
        case.write("a.json");
        assert_eq!(case.decide(None), "skipped");
        assert_eq!(case.decide(Some("--force")), "replace");
        case.mark("key", Status::Complete);
        assert_eq!(case.decide(Some("--retry-failed")), "keep");
        // The video is not there.
        case.mark("other", Status::Complete);
        assert_eq!(case.decide(None), "failed");
        case.write("a.mp4");
        assert_eq!(case.decide(None), "replace");
        fs::remove_file(&case.video.record).unwrap();
        assert_eq!(case.decide(None), "replace");
        case.mark("key", Status::Failed);
        assert_eq!(case.decide(None), "keep");
        assert_eq!(case.decide(Some("--retry-failed")), "replace");
        case.mark("other", Status::Failed);
        assert_eq!(case.decide(None), "replace");
        fs::remove_file(&case.video.path).unwrap();
        for option in [None, Some("--retry-failed"), Some("--force")] {
            assert_eq!(case.decide(option), "failed", "{option:?}");
        }
        case.write("a.mp4");
        case.write("a.json.done");
        assert_eq!(case.decide(None), "skipped");
        assert_eq!(case.decide(Some("--force")), "replace");
        case.write("a.json.parts");
        assert_eq!(case.decide(Some("--force")), "skipped");
    }

    #[test]
    fn a_better_record_is_kept() {
        let case = Case::new();
        let videos = std::slice::from_ref(&case.video);
        case.write("a.json");
        case.write("a.mp4");
        case.mark("other", Status::Truncated);
        let next = |status| Outcome::without_record(status, "");
        for (option, status, is_kept) in [
            (None, Status::Failed, true),
            (None, Status::Truncated, false),
            (Some("--force"), Status::NoVideo, true),
        ] {
            let arguments = parsed(["a.mp4"].into_iter().chain(option)).unwrap();
            let (tasks, _) = plan(videos, &arguments, &Ready::default());
            let better = tasks[0].better(&case.video, &next(status), &arguments);
            assert_eq!(better.is_some(), is_kept, "{option:?} {status:?}");
        }
    }

    #[test]
    fn a_video_that_another_run_has_settled_is_not_tracked_again() {
        let case = Case::new();
        let videos = std::slice::from_ref(&case.video);
        let (mut tasks, _) = plan(videos, &parsed(["a.mp4"]).unwrap(), &Ready::default());
        let task = &mut tasks[0];
        assert_eq!(task.settled_meanwhile(&case.video), None);
        case.write("a.json");
        case.mark("another key", Status::Complete);
        assert_eq!(task.settled_meanwhile(&case.video), None);
        assert_eq!(task.existing, Existing::Replaced);
        case.mark(&task.key, Status::Complete);
        let status = task.settled_meanwhile(&case.video).unwrap();
        assert_eq!(status.outcome.status, Status::Complete);
    }

    #[test]
    fn files_that_are_no_videos() {
        let case = Case::new();
        let folder = case.folder.path();
        case.write("a.mp4");
        fs::write(folder.join("empty.mp4"), "").unwrap();
        let socket = folder.join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, status) in [
            (folder.join("a.mp4"), None),
            (folder.join("empty.mp4"), Some(Status::NoVideo)),
            (folder.join("missing.mp4"), Some(Status::Failed)),
            (folder.to_owned(), Some(Status::Unsupported)),
            (socket, Some(Status::Unsupported)),
            ("rtsp://camera/live".into(), Some(Status::Unsupported)),
        ] {
            let refused = refuse(&path).map(|outcome| outcome.status);
            assert_eq!(refused, status, "{}", path.display());
        }
    }
}
