// SPDX-License-Identifier: MPL-2.0
//! Markers: `<record>.done` says that a video is done, and how. A record is done only with its
//! marker, which is written after it.

use std::fs;
use std::path::{Path, PathBuf};

use facetrack::file::with_suffix;
use facetrack_jobs::{Outcome, Ready};
use serde::{Deserialize, Serialize};

use super::inputs::Video;

/// Suffix of the name of a marker. `*.json` does not match it.
const DONE: &str = ".done";

/// The account of a video.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marker {
    /// Hash of everything that the record depends on.
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
}

impl Marker {
    /// The account of a video with an engine.
    pub fn new(key: &str, video: &Video, ready: &Ready, outcome: Outcome) -> Self {
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

    /// The marker of a record; `None` if there is none. A damaged one has no key.
    pub fn read(record: &Path) -> Option<Box<Self>> {
        let text = fs::read(path(record)).ok()?;
        Some(serde_json::from_slice(&text).unwrap_or_default())
    }
}

/// The path of the marker of a record.
pub fn path(record: &Path) -> PathBuf {
    with_suffix(record, DONE)
}

fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname");
    name.unwrap_or_default().trim().to_owned()
}
