// SPDX-License-Identifier: MPL-2.0
//! A video to track.

use std::path::{Path, PathBuf};

use facetrack_jobs::Segment;

/// A video, or a segment of one.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Video {
    /// Name that no other video has, and the path of the record without the suffix.
    pub id: String,
    /// Path below the folder or list that named the video; the record contains it.
    pub name: String,
    pub path: PathBuf,
    pub segment: Segment,
    /// Path of the record; empty until all inputs are read.
    pub record: PathBuf,
    /// Reason why the video cannot be tracked, if any.
    pub refusal: Option<String>,
}

impl Video {
    /// A file that is named by itself.
    pub(super) fn of_file(path: &Path) -> Self {
        Self::below(path.parent().unwrap_or(Path::new("")), path)
    }

    /// A file in a folder. Everything that is not UTF-8 is replaced.
    pub(super) fn below(folder: &Path, path: &Path) -> Self {
        let name = path.strip_prefix(folder).unwrap_or(path);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        Self {
            id: text(&name.with_extension("")),
            name: text(name),
            path: text(path).into(),
            ..Self::default()
        }
    }
}
