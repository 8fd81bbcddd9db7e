// SPDX-License-Identifier: MPL-2.0
//! The measurements that a record contains. They decide which columns a table has.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use facetrack::replay::Replay;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value as Json};

/// The measurements that at least one face of a record has.
#[derive(Debug, Default)]
pub struct Contents {
    /// Blendshapes, in the engine's order.
    pub channels: Vec<String>,
    /// Number of landmarks of a face; 0 without landmarks.
    pub landmarks: usize,
    pub has_pose: bool,
    pub has_confidence: bool,
    pub has_origin: bool,
    /// Areas of the boxes of each id, summed over all frames, in square pixels.
    pub areas: BTreeMap<u32, f64>,
}

/// A frame without values.
#[derive(Deserialize)]
struct Outline {
    tracked_objects: Vec<Face>,
}

/// The keys of a face that matter here.
#[derive(Deserialize)]
struct Face {
    id: String,
    #[serde(default)]
    confidence: f32,
    bbox_width: f64,
    bbox_height: f64,
    blendshapes: Option<Map<String, Json>>,
    pose: Option<IgnoredAny>,
    origin: Option<IgnoredAny>,
    landmarks: Option<Vec<IgnoredAny>>,
}

impl Contents {
    /// Looks through the whole record.
    ///
    /// # Errors
    /// It cannot be read, or a frame is damaged.
    pub fn of<S: Read + Seek>(replay: &mut Replay<S>) -> Result<Self, String> {
        let mut contents = Self::default();
        let numbers: Vec<u64> = replay.frames().map(|(number, _)| number).collect();
        for (place, number) in numbers.into_iter().enumerate() {
            let text = replay.text(place).map_err(|error| error.to_string())?;
            let outline: Outline =
                serde_json::from_slice(text).map_err(|error| format!("frame {number}: {error}"))?;
            for face in outline.tracked_objects {
                contents.add(face);
            }
        }
        Ok(contents)
    }

    fn add(&mut self, face: Face) {
        self.has_pose |= face.pose.is_some();
        self.has_confidence |= face.confidence != 0.0;
        self.has_origin |= face.origin.is_some();
        if self.landmarks == 0 {
            self.landmarks = face.landmarks.map_or(0, |points| points.len());
        }
        for (channel, _) in face.blendshapes.unwrap_or_default() {
            if !self.channels.contains(&channel) {
                self.channels.push(channel);
            }
        }
        // Reading the face will complain about another id.
        let id = face.id.strip_prefix("obj_").and_then(|id| id.parse().ok());
        if let Some(id) = id {
            *self.areas.entry(id).or_default() += face.bbox_width * face.bbox_height;
        }
    }
}
