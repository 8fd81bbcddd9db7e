// SPDX-License-Identifier: MPL-2.0
//! Decides which videos are tracked.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use facetrack_jobs::{Outcome, Ready, Status};

use super::arguments::RunArguments;
use super::claim;
use super::events::Report;
use super::inputs::Video;
use super::key;
use super::marker::Marker;

/// A video to track.
#[derive(Debug)]
pub struct Task {
    /// Index of the video.
    pub index: usize,
    pub key: String,
    /// Whether an existing record is replaced.
    pub replace: bool,
    /// The marker when the run was planned.
    pub known: Option<Box<Marker>>,
    /// Attempts that ended with the worker.
    pub attempts: u32,
}

/// Whether a video is tracked.
#[derive(Debug, PartialEq)]
enum Decision {
    /// It is.
    Track { replace: bool },
    /// It is done, or its record is not from this command: that is new.
    Settled { is_new: bool, marker: Box<Marker> },
}

/// Decides for all videos. Returns those to track, and the others.
pub fn plan(videos: &[Video], arguments: &RunArguments, ready: &Ready) -> (Vec<Task>, Vec<Report>) {
    let (mut tasks, mut settled) = (Vec::new(), Vec::new());
    for (index, video) in videos.iter().enumerate() {
        let key = key::of(video, arguments, ready);
        let known = Marker::read(&video.record);
        match decide(video, &key, known.as_deref(), ready, arguments) {
            Decision::Track { replace } => tasks.push(Task {
                index,
                key,
                replace,
                known,
                attempts: 0,
            }),
            Decision::Settled { is_new, marker } => settled.push(Report {
                index,
                is_new,
                marker,
            }),
        }
    }
    (tasks, settled)
}

impl Task {
    /// The marker of another run that has settled the video since this run was planned.
    pub fn settled_meanwhile(&mut self, video: &Video) -> Option<Box<Marker>> {
        let marker = Marker::read(&video.record);
        if marker == self.known {
            return None;
        }
        self.replace |= marker.is_some();
        marker.filter(|marker| marker.key == self.key)
    }
}

fn decide(
    video: &Video,
    key: &str,
    known: Option<&Marker>,
    ready: &Ready,
    arguments: &RunArguments,
) -> Decision {
    if arguments.force {
        return Decision::Track { replace: true };
    }
    let has_record = fs::symlink_metadata(&video.record).is_ok();
    match known {
        Some(marker) if is_valid(marker, key, has_record, arguments) => Decision::Settled {
            is_new: false,
            marker: Box::new(marker.clone()),
        },
        Some(_) => Decision::Track { replace: true },
        None if has_record && !claim::exists(&video.record) => {
            let outcome = Outcome::without_record(Status::Skipped, foreign(&video.record));
            Decision::Settled {
                is_new: true,
                marker: Box::new(Marker::new(key, video, ready, outcome)),
            }
        }
        None => Decision::Track {
            replace: has_record,
        },
    }
}

fn is_valid(marker: &Marker, key: &str, has_record: bool, arguments: &RunArguments) -> bool {
    let status = marker.outcome.status;
    let is_tried_again = arguments.retry_failed && status == Status::Failed;
    marker.key == key && !is_tried_again && (has_record || !status.has_record())
}

fn foreign(record: &Path) -> String {
    format!(
        "{} exists, and `facetrack run` has not written it. Move it away, or add --force to replace it",
        record.display()
    )
}

/// The outcome of a file that no worker has to open; `None` if it may be a video.
pub fn refuse(path: &Path) -> Option<Outcome> {
    let (status, reason) = refusal(path)?;
    let message = format!("{}: {reason}", path.display());
    Some(Outcome::without_record(status, message))
}

/// Why a file is no video.
fn refusal(path: &Path) -> Option<(Status, String)> {
    let (status, reason) = match fs::metadata(path) {
        Err(_) if path.to_string_lossy().contains(":/") => (
            Status::Unsupported,
            "only local files can be tracked. Copy or mount it, or add --fetch",
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            (Status::Failed, "there is no such file")
        }
        Err(error) => return Some((Status::Failed, error.to_string())),
        Ok(found) if found.is_dir() => (
            Status::Unsupported,
            "it is a folder. Name it on the command line",
        ),
        Ok(found) if !found.is_file() => (
            Status::Unsupported,
            "it is a pipe, socket or device, not a file",
        ),
        Ok(found) if found.len() == 0 => (Status::NoVideo, "the file is empty"),
        Ok(_) => {
            let error = fs::File::open(path).err()?;
            return Some((Status::Failed, format!("it cannot be opened: {error}")));
        }
    };
    Some((status, reason.to_owned()))
}

/// The plan as lines, for `--dry-run`.
pub fn described(videos: &[Video], tasks: &[Task], settled: &[Report]) -> String {
    let line = |(index, verb): (usize, &str)| {
        let Video { path, record, .. } = &videos[index];
        format!("{verb:<10} {} -> {}\n", path.display(), record.display())
    };
    let tracked = tasks.iter().map(|task| (task.index, "track"));
    let status = |report: &Report| (report.index, report.marker.outcome.status.word());
    let others = settled.iter().map(status);
    let mut lines: Vec<_> = tracked.chain(others).collect();
    lines.sort_unstable();
    lines.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::arguments::tests::parsed;
    use crate::run::marker;

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
                part: facetrack_jobs::Part::default(),
            };
            Self { folder, video }
        }

        fn mark(&self, key: &str, status: Status) {
            let outcome = Outcome::without_record(status, "");
            let marker = Marker::new(key, &self.video, &Ready::default(), outcome);
            let text = serde_json::to_string(&marker).unwrap();
            fs::write(marker::path(&self.video.record), text).unwrap();
        }

        fn write(&self, name: &str) {
            fs::write(self.folder.path().join(name), "x").unwrap();
        }

        /// The decision with an option, or with none.
        fn decide(&self, option: Option<&str>) -> &'static str {
            let arguments = parsed(["a.mp4"].into_iter().chain(option)).unwrap();
            let known = Marker::read(&self.video.record);
            let known = known.as_deref();
            match decide(&self.video, "key", known, &Ready::default(), &arguments) {
                Decision::Track { replace: true } => "replace",
                Decision::Track { replace: false } => "track",
                Decision::Settled { is_new: false, .. } => "keep",
                Decision::Settled { is_new: true, .. } => "foreign",
            }
        }
    }

    #[test]
    fn markers_and_claims_decide() {
        let case = Case::new();
        assert_eq!(case.decide(None), "track");
        case.write("a.json");
        assert_eq!(case.decide(None), "foreign");
        assert_eq!(case.decide(Some("--force")), "replace");
        case.write("a.json.done.partial");
        assert_eq!(case.decide(None), "replace");
        case.mark("key", Status::Complete);
        assert_eq!(case.decide(Some("--retry-failed")), "keep");
        fs::remove_file(&case.video.record).unwrap();
        assert_eq!(case.decide(None), "replace");
        case.mark("key", Status::Failed);
        assert_eq!(case.decide(None), "keep");
        assert_eq!(case.decide(Some("--retry-failed")), "replace");
        case.mark("other", Status::Failed);
        assert_eq!(case.decide(None), "replace");
        case.write("a.json.done");
        assert_eq!(case.decide(None), "replace");
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
        assert!(task.replace);
        case.mark(&task.key, Status::Complete);
        let marker = task.settled_meanwhile(&case.video).unwrap();
        assert_eq!(marker.outcome.status, Status::Complete);
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
