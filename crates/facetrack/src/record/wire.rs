// SPDX-License-Identifier: MPL-2.0
//! The JSON form of frames and faces, for writing and reading. Struct fields are in the order of
//! the JSON's keys.
//!
//! The JSON Schema `schema/facetrack-2.schema.json` is generated from these types; their comments
//! are its descriptions.

mod face;
mod fits;
mod head;
mod number;
mod rounded;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::value::{Error as WordError, StrDeserializer};
use serde::{Deserialize, Serialize};

pub(crate) use self::face::Face;
use self::face::ReducedFace;
pub(crate) use self::head::Head;
pub use self::head::{SCHEMA, SCHEMA_1};
use super::export::Export;
use super::metadata::Metadata;
use super::profile::BlendshapeProfile;
use super::stream::{FrameRecord, Stream, Totals};
use crate::observation::Fields;
use crate::report::{FrameReport, FrameStatus, ReportSource, SearchExtent, TrackedFace};

impl FrameReport {
    /// The frame as JSON with all measurements, as frame 1 of a record without times.
    pub fn to_json(&self) -> String {
        let stream = Stream {
            metadata: Metadata {
                width: self.width,
                height: self.height,
                source: Some(self.source.clone()),
                ..Metadata::default()
            },
            totals: Totals {
                frames: 1,
                ..Totals::default()
            },
        };
        let export = Export {
            fields: Fields::all(),
            ..Export::default()
        };
        let frame = Frame::new(&FrameRecord::of(self, None), &stream, &export);
        // Numbers, texts, lists and objects with text keys can be serialised.
        serde_json::to_string(&frame).unwrap_or_default()
    }
}

/// The value that has this name in records and metadata.
pub fn from_name<T: for<'a> Deserialize<'a>>(name: &str) -> Option<T> {
    T::deserialize(StrDeserializer::<WordError>::new(name)).ok()
}

/// The value that a text is in JSON. Unlike `serde_json`, this function refuses a text whose
/// skipped parts are not UTF-8.
///
/// # Errors
/// Returns the reason why the text is not valid.
pub(crate) fn from_json<'a, T: Deserialize<'a>>(text: &'a [u8]) -> serde_json::Result<T> {
    serde_json::from_str(str::from_utf8(text).map_err(serde::de::Error::custom)?)
}

/// One frame.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "frame"))]
#[serde(expecting = "an object")]
pub(crate) struct Frame<'a> {
    /// Number of the frame, counting from 1 without gaps. Frame N is the Nth frame that
    /// ffmpeg and OpenCV read from the file, unless frames were filled in before it (padded_frames)
    /// or are missing (complete).
    #[cfg_attr(test, schemars(range(min = 1)))]
    frame: u64,
    /// The faces in the frame, sorted by centroid_x; empty if there is none.
    tracked_objects: Vec<Face<'a>>,
    /// Position in the video in ns: the stream time minus start_time of the metadata. It is 0 for
    /// the first frame of the video, whatever the container; null if the frame has no timestamp.
    pts: Option<u64>,
    /// tracked: at least one face, also if it is held or predicted. no-face: analysed, no face.
    /// skipped: not analysed, and no face to repeat. gap: filled in for a frame that was missing in
    /// the stream or had no picture. error: the analysis failed.
    #[cfg_attr(test, schemars(required))]
    status: Option<FrameStatus>,
    /// True if the frame is the first one of a shot after a hard cut, so that no id continues from
    /// the frame before; absent otherwise.
    #[cfg_attr(test, schemars(extend("const" = true)))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    /// True if the frame repeats the picture of the frame before, such as a frame that was inserted
    /// to raise the frame rate; absent otherwise.
    #[cfg_attr(test, schemars(extend("const" = true)))]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    repeated: bool,
    /// Width in pixels of this frame; present if the frame size differs from the one in the
    /// metadata.
    #[cfg_attr(test, schemars(range(min = 1)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    width: Option<u32>,
    /// Height in pixels of this frame; present together with width.
    #[cfg_attr(test, schemars(range(min = 1)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    /// Engine of this frame; present if it differs from the one in the metadata, because the engine
    /// was changed.
    #[serde(skip_serializing_if = "Option::is_none", borrow)]
    tracking_engine: Option<Cow<'a, str>>,
    /// Extent of the search for faces; absent if the whole frame was searched, or not analysed by
    /// its status. If it is not whole, the frame may show faces that are not listed. partial: faces were found that are not listed, because of select, or
    /// because the tracker waits for another frame that shows them. limited: as many faces were
    /// found as max-faces allows. known-faces: only the neighbourhoods of earlier faces were
    /// searched. none: not searched; the faces are held or predicted. other-video: the record that
    /// was replayed may be of another video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search: Option<SearchExtent>,
}

impl<'a> Frame<'a> {
    /// The last frame of `stream`.
    pub(crate) fn new(frame: &FrameRecord<'a>, stream: &Stream, export: &Export) -> Self {
        let size = (stream.metadata.width, stream.metadata.height);
        let own_size = frame.size.filter(|own| *own != size);
        let source = stream.metadata.source.as_ref();
        let engine = source.map(|source| &*source.engine);
        let own_engine = frame.engine.filter(|own| Some(*own) != engine);
        let tracked_objects = faces(frame.faces, export);
        let is_partial = tracked_objects.len() < frame.faces.len();
        Self {
            frame: stream.totals.frames,
            tracked_objects,
            pts: frame.pts,
            status: Some(frame.status),
            cut: frame.cut,
            repeated: frame.repeated,
            width: own_size.map(|(width, _)| width),
            height: own_size.map(|(_, height)| height),
            tracking_engine: own_engine.map(Cow::Borrowed),
            search: stated_search(frame, is_partial),
        }
    }

    /// The engine of this frame, if it is not the one in the metadata.
    pub(crate) fn engine(&self) -> Option<&str> {
        self.tracking_engine.as_deref()
    }

    /// The frame's report. `size` is the size that the metadata state, `channels` are the names of
    /// the last blendshapes.
    ///
    /// # Errors
    /// Returns a description of an invalid value.
    pub(crate) fn report(
        self,
        source: Arc<ReportSource>,
        size: (u32, u32),
        channels: &mut Arc<[String]>,
    ) -> Result<FrameReport, String> {
        let status = self.status();
        let (width, height) = self.width.zip(self.height).unwrap_or(size);
        if width == 0 || height == 0 {
            return Err("a frame of no size".to_owned());
        }
        // Texts of GStreamer end at a zero byte.
        if source.engine.contains('\0') {
            return Err("a string contains the character NUL".to_owned());
        }
        let faces = self.tracked_objects.into_iter();
        let faces: Result<Vec<_>, _> = faces.map(|face| face.tracked(channels)).collect();
        let faces = faces?;
        Ok(FrameReport {
            width,
            height,
            status,
            cut: self.cut,
            search: self
                .search
                .unwrap_or_else(|| SearchExtent::of(status, &faces)),
            repeated: self.repeated,
            faces,
            source,
        })
    }

    /// The frame's status, which follows from its faces in records of other programs.
    pub(crate) fn status(&self) -> FrameStatus {
        self.status.unwrap_or(if self.tracked_objects.is_empty() {
            FrameStatus::NoFace
        } else {
            FrameStatus::Tracked
        })
    }
}

/// The extent of the search, unless a reader of the frame concludes it from the rest, with or
/// without the origins of the faces.
fn stated_search(frame: &FrameRecord<'_>, is_partial: bool) -> Option<SearchExtent> {
    let is_analysed = matches!(frame.status, FrameStatus::Tracked | FrameStatus::NoFace);
    let least = if is_partial {
        SearchExtent::Partial
    } else {
        SearchExtent::Whole
    };
    let search = frame.search.max(least);
    let is_implied =
        search == SearchExtent::Whole && SearchExtent::of(frame.status, frame.faces) == search;
    Some(search).filter(|_| is_analysed && !is_implied)
}

/// The faces from left to right, without those that [`Face::new`] refuses.
fn faces<'a>(faces: &'a [TrackedFace], export: &Export) -> Vec<Face<'a>> {
    let faces = faces.iter().filter_map(|face| Face::new(face, export));
    let mut faces: Vec<_> = faces.collect();
    faces.sort_by_key(Face::centroid_x);
    faces
}

/// The first line with format=jsonl. Counts are not known yet and null.
#[derive(Serialize, Deserialize)]
#[cfg_attr(
    test,
    derive(schemars::JsonSchema),
    schemars(rename = "header", extend("not" = {"required": ["frames"]}))
)]
#[serde(expecting = "an object")]
pub(crate) struct Header {
    /// The video and how it is analysed.
    pub(crate) metadata: Head,
}

/// The last line with format=jsonl. If it is missing, the stream broke off.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "trailer"))]
#[serde(expecting = "an object")]
pub(crate) struct Trailer {
    /// The metadata again, with all counts.
    pub(crate) trailer: Head,
}

/// One frame of a reduced file.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "reducedFrame"))]
pub(crate) struct ReducedFrame {
    /// Number of the frame, counting from 1 without gaps. Frame N is the Nth frame that
    /// ffmpeg and OpenCV read from the file, unless frames were filled in before it, which a reduced
    /// file does not count, or are missing.
    #[cfg_attr(test, schemars(range(min = 1)))]
    frame: u64,
    /// The faces in the frame, sorted by centroid_x.
    tracked_objects: Vec<ReducedFace>,
}

impl ReducedFrame {
    /// The last frame of `stream`.
    pub(crate) fn new(frame: &FrameRecord<'_>, stream: &Stream) -> Self {
        let export = Export {
            profile: BlendshapeProfile::None,
            ..Export::default()
        };
        let faces = faces(frame.faces, &export).into_iter();
        Self {
            frame: stream.totals.frames,
            tracked_objects: faces.map(ReducedFace::from).collect(),
        }
    }
}
