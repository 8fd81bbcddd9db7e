// SPDX-License-Identifier: MPL-2.0
//! Status files: `<record>.done` says that a video is done, and how. A record is done only with its
//! status file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use facetrack_assets::file;
use facetrack_assets::replacement::Replacement;
use facetrack_jobs::{Outcome, Ready, Status};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::video::Video;
use super::{key, names};

/// Maximum size of a status file. Our choice: status files of segments have the faces of their warm-up.
const MAX_SIZE: u64 = 64 << 20;

/// The status of a video.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StatusFile {
    /// Hash of everything that the record depends on. Empty for a video that could not be read.
    pub key: String,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Time from start to end, s.
    pub seconds: f64,
    pub attempts: u32,
    /// Path of the video.
    pub video: PathBuf,
    pub host: String,
    pub engine: String,
    pub device: String,
    pub device_reason: String,
    /// Reason why a long video was not tracked in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<String>,
    /// Hash of the record of a segment and of this status.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The basis of the key. It is only in the file.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub basis: Value,
    /// Status of a later attempt whose result was worse, so that the earlier record was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<Box<StatusFile>>,
}

impl StatusFile {
    /// The status of a video with an engine.
    pub(super) fn new(key: &str, video: &Video, ready: &Ready, outcome: Outcome) -> Self {
        Self {
            key: key.to_owned(),
            outcome,
            video: video.path.clone(),
            host: host(),
            engine: ready.engine.clone(),
            device: ready.device.clone(),
            device_reason: ready.device_reason.clone(),
            ..Self::default()
        }
    }

    /// The status file of a record; `None` if there is none.
    ///
    /// # Errors
    /// Returns the reason why the file with this name is not a status file.
    pub(super) fn read(record: &Path) -> Result<Option<Box<Self>>, String> {
        let path = names::status_file(record);
        let reason = match file::read_itself(&path, MAX_SIZE) {
            Err(error) if names::is_absent(&error) => return Ok(None),
            // A power failure may leave an empty file.
            Ok(text) if text.is_empty() => return Ok(None),
            Ok(text) => match Self::parse(&text) {
                Some(status_file) => return Ok(Some(status_file)),
                None => "is not a status file of `facetrack run`".to_owned(),
            },
            Err(error) => format!("cannot be read: {error}"),
        };
        Err(names::in_the_way(&path, reason))
    }

    /// Reads the status file of the next record. If it exists, the next record is whole.
    pub(super) fn of_next(record: &Path) -> Option<Box<Self>> {
        Self::read(&names::next(record)).ok()?
    }

    /// Parses a status file: any text that has a key.
    fn parse(text: &[u8]) -> Option<Box<Self>> {
        let object: Value = serde_json::from_slice(text).ok()?;
        object.get("key")?.as_str()?;
        serde_json::from_value(object).ok().map(Box::new)
    }

    /// Writes the status file of a record, which is in the folder for unfinished files.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub(super) fn write(&self, record: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Replacement::named(&names::status_file(record), ".partial")?.write(text.as_bytes())
    }

    /// The result with this key, of the record or of a later attempt.
    pub(super) fn with_key(&self, key: &str) -> Option<&Self> {
        let later = self.later.as_deref();
        [Some(self), later]
            .into_iter()
            .flatten()
            .find(|it| it.key == key)
    }

    /// The result of the last attempt.
    pub(super) fn last(&self) -> &Self {
        self.later.as_deref().unwrap_or(self)
    }

    /// Returns true if a record with this result is better than one with the result `other`.
    pub(super) fn is_better_than(&self, other: Status) -> bool {
        rank(self.outcome.status) > rank(other)
    }
}

/// Order of results.
fn rank(status: Status) -> u8 {
    match status {
        Status::Complete => 2,
        Status::Truncated => 1,
        _ => 0,
    }
}

/// The file that was tracked for a record, and whether it is still there as it was; `None` without a
/// status file that names it.
pub(crate) fn tracked_file(record: &Path) -> Option<(PathBuf, bool)> {
    let status = StatusFile::read(record).ok()??;
    let is_same = key::has_content(&status.video, &status.basis);
    (status.video != Path::new("")).then_some((status.video, is_same))
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname");
    name.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_no_status_files() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("a.json");
        assert!(StatusFile::read(&record).unwrap().is_none());
        for (text, is_status_file) in [
            ("", Some(false)),
            ("{\"key\":\"k\"}", Some(true)),
            ("my notes", None),
            ("{\"key\":1}", None),
            ("{}", None),
        ] {
            fs::write(names::status_file(&record), text).unwrap();
            let read = StatusFile::read(&record).ok().map(|it| it.is_some());
            assert_eq!(read, is_status_file, "{text}");
        }
        fs::remove_file(names::status_file(&record)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", names::status_file(&record)).unwrap();
        let error = StatusFile::read(&record).unwrap_err();
        assert!(error.contains("a.json.done cannot be read"), "{error}");
    }
}
