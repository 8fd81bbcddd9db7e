// SPDX-License-Identifier: MPL-2.0
//! The frames that are tracked before a part, so that the tracker knows the faces when it starts.

use std::mem;
use std::sync::{Arc, Mutex};

use facetrack::lock::lock;
use facetrack::record::joining::SeenFrame;
use facetrack::report::TrackedFace;
use gst::prelude::*;
use gstfacetrack::meta::FaceTrackMeta;

use crate::branch;

/// Keeps the frames before a part out of its record, until it is dropped.
pub struct Overlap {
    pad: gst::Pad,
    probe: Option<gst::PadProbeId>,
    seen: Arc<Mutex<Vec<SeenFrame>>>,
}

impl Overlap {
    /// Drops the frames before `start`, a stream time in ns, at the source pad `pad`.
    pub fn before(start: u64, pad: gst::Pad) -> Self {
        let seen: Arc<Mutex<Vec<_>>> = Arc::default();
        let frames = seen.clone();
        let probe = pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
            let buffer = info.buffer();
            let frame = buffer.and_then(|buffer| seen_before(start, pad, buffer));
            let Some(frame) = frame else {
                return gst::PadProbeReturn::Ok;
            };
            lock(&frames).push(frame);
            gst::PadProbeReturn::Handled
        });
        Self { pad, probe, seen }
    }

    /// The faces in the frames that were dropped.
    pub fn take(&self) -> Vec<SeenFrame> {
        mem::take(&mut lock(&self.seen))
    }
}

impl Drop for Overlap {
    fn drop(&mut self) {
        if let Some(probe) = self.probe.take() {
            self.pad.remove_probe(probe);
        }
    }
}

/// The faces in a frame, if it is before `start`.
fn seen_before(start: u64, pad: &gst::Pad, buffer: &gst::Buffer) -> Option<SeenFrame> {
    let time = branch::stream_time(pad, buffer).filter(|time| *time < start)?;
    let report = FaceTrackMeta::read(buffer);
    let faces = report.map(|report| report.faces).unwrap_or_default();
    let face = |face: &TrackedFace| {
        let bbox = face.face.bbox;
        (face.id, [bbox.x, bbox.y, bbox.width, bbox.height])
    };
    Some(SeenFrame {
        time,
        faces: faces.iter().map(face).collect(),
    })
}
