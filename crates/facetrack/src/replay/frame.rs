// SPDX-License-Identifier: MPL-2.0
//! One frame of a record, read back.

use std::sync::Arc;

use serde::Deserialize;

use super::face::FaceJson;
use super::index::Source;
use crate::report::{FrameReport, FrameStatus};

/// A frame as JSON.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct FrameJson {
    tracked_objects: Vec<FaceJson>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    width: Option<u32>,
    #[serde(default)]
    height: Option<u32>,
}

impl FrameJson {
    /// The frame's report; `None` where nothing analysed it. `size` is that of the record's frames, `channels` those of the
    /// last blendshapes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn report(
        self,
        source: Source<'_>,
        size: (u32, u32),
        channels: &mut Arc<[String]>,
    ) -> Result<Option<FrameReport>, String> {
        let status = self.status()?;
        let unseen = matches!(status, FrameStatus::Skipped | FrameStatus::Gap);
        if unseen && !source.known {
            return Ok(None);
        }
        let (width, height) = self.width.zip(self.height).unwrap_or(size);
        if width == 0 || height == 0 {
            return Err("a frame of no size".to_owned());
        }
        let faces = self.tracked_objects.into_iter();
        Ok(Some(FrameReport {
            width,
            height,
            status,
            faces: faces
                .map(|face| face.tracked(channels))
                .collect::<Result<_, _>>()?,
            source: source.source.clone(),
        }))
    }

    /// Records of other programs do not say it.
    fn status(&self) -> Result<FrameStatus, String> {
        match &self.status {
            Some(name) => {
                FrameStatus::from_name(name).ok_or_else(|| format!("there is no status {name:?}"))
            }
            None if self.tracked_objects.is_empty() => Ok(FrameStatus::NoFace),
            None => Ok(FrameStatus::Tracked),
        }
    }
}
