// SPDX-License-Identifier: MPL-2.0
//! The frames that two parts of a video share. They are tracked before one part, so that the
//! tracker knows the faces when the part starts, and are the last frames of the other part. They
//! show if the parts can be joined.

use std::hash::{DefaultHasher, Hasher};
use std::mem;
use std::sync::{Arc, Mutex};

use facetrack::record::joining::SeenFrame;
use facetrack::report::TrackedFace;
use facetrack_assets::lock::lock;
use gst::prelude::*;
use gst_video::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

use crate::branch::{self, Clock, FRAMES};

/// Times at which a part overlaps with its neighbours, ns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Edges {
    /// Start of the part; frames before it are not in its record.
    pub start: Option<u64>,
    /// Start of the frames that the next part has, too.
    pub last: Option<u64>,
}

/// Observes the frames of a part, until it is dropped.
pub(crate) struct Overlap {
    pad: gst::Pad,
    probe: Option<gst::PadProbeId>,
    seen: Arc<Mutex<Seen>>,
}

/// The frames that were seen.
#[derive(Default)]
pub(crate) struct Seen {
    pub before: Vec<SeenFrame>,
    pub last: Vec<SeenFrame>,
    /// True if the stream is interrupted where the part starts, which its record does not show.
    pub starts_interrupted: bool,
    has_started: bool,
}

impl Overlap {
    /// Observes the frames that leave `pad`, and drops those before the start.
    pub(crate) fn of(edges: Edges, pad: gst::Pad, clock: Clock) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let frames = seen.clone();
        let probe = pad.add_probe(FRAMES, move |pad, info| {
            let time = clock(pad, info);
            let Some((time, buffer)) = time.zip(info.buffer()) else {
                return gst::PadProbeReturn::Ok;
            };
            if edges.last.is_some_and(|last| time >= last) {
                let frame = seen_frame(pad, buffer, Vec::new());
                lock(&frames).last.extend(frame);
            }
            if edges.start.is_some_and(|start| time < start) {
                let frame = seen_frame(pad, buffer, faces(buffer));
                lock(&frames).before.extend(frame);
                return gst::PadProbeReturn::Handled;
            }
            lock(&frames).start(buffer);
            gst::PadProbeReturn::Ok
        });
        Self { pad, probe, seen }
    }

    /// The frames that were seen.
    pub(crate) fn take(&self) -> Seen {
        mem::take(&mut lock(&self.seen))
    }
}

impl Seen {
    /// Takes a frame of the part.
    fn start(&mut self, buffer: &gst::BufferRef) {
        let is_first = !mem::replace(&mut self.has_started, true) && !self.before.is_empty();
        self.starts_interrupted |= is_first && buffer.flags().contains(gst::BufferFlags::DISCONT);
    }
}

impl Drop for Overlap {
    fn drop(&mut self) {
        if let Some(probe) = self.probe.take() {
            self.pad.remove_probe(probe);
        }
    }
}

fn seen_frame(
    pad: &gst::Pad,
    buffer: &gst::BufferRef,
    faces: Vec<(u32, [f32; 4])>,
) -> Option<SeenFrame> {
    Some(SeenFrame {
        time: branch::stream_time(pad, buffer)?,
        picture: picture(pad, buffer)?,
        faces,
    })
}

/// The ids and boxes of the faces in a frame.
fn faces(buffer: &gst::BufferRef) -> Vec<(u32, [f32; 4])> {
    let report = FaceTrackMeta::read(buffer);
    let faces = report.map(|report| report.faces).unwrap_or_default();
    let face = |face: &TrackedFace| {
        let bbox = face.face.bbox;
        (face.id, [bbox.x, bbox.y, bbox.width, bbox.height])
    };
    faces.iter().map(face).collect()
}

/// Returns a hash of the pixels of a frame. A new version of Rust may change the hash, and then
/// parts of an earlier version cannot be joined.
fn picture(pad: &gst::Pad, buffer: &gst::BufferRef) -> Option<u64> {
    let info = gst_video::VideoInfo::from_caps(pad.current_caps()?.as_ref()).ok()?;
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info).ok()?;
    let mut hasher = DefaultHasher::new();
    for component in 0..frame.n_components() {
        let plane = frame.format_info().plane()[component as usize];
        let stride = usize::try_from(frame.plane_stride()[plane as usize]).ok()?;
        // The bytes after the pixels of a row may have any value.
        let pixels = frame.comp_width(component) as usize * frame.comp_pstride(component) as usize;
        let rows = frame.plane_data(plane).ok()?.chunks(stride.max(1));
        for row in rows.take(frame.comp_height(component) as usize) {
            hasher.write(&row[..pixels.min(row.len())]);
        }
    }
    Some(hasher.finish())
}
