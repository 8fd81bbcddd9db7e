// SPDX-License-Identifier: MPL-2.0
//! Regions of interest that mark the covered parts of a picture.

use gst_video::{VideoInfo, VideoRegionOfInterestMeta};

use super::frame::FrameShape;
use super::region::{Canvas, to_int};
use facetrack::geometry::Rect;
use facetrack::redaction::{Cover, Region};

/// Type of the regions.
const TYPE: &str = "redacted";

/// Id of the regions, which belong to no detection.
const NO_DETECTION: i32 = -1;

/// Adds a region for each covered part of the frame in `buffer`, with the id of its face.
pub(crate) fn mark(buffer: &mut gst::BufferRef, frame: &VideoInfo, cover: &Cover) {
    match cover {
        Cover::Frame => {
            add(buffer, [0, 0, frame.width(), frame.height()]);
        }
        Cover::Regions(regions) => {
            let canvas = Canvas::of_frame(FrameShape::from(frame));
            for Region { id, outline, .. } in regions {
                let extent = Rect::enclosing(outline.iter().copied()).unwrap_or_default();
                let mut region = add(buffer, canvas.pixels(&extent));
                let id = gst::Structure::builder("object_id").field("id", to_int(*id));
                region.add_param(id.build());
            }
        }
    }
}

fn add(
    buffer: &mut gst::BufferRef,
    [x, y, width, height]: [u32; 4],
) -> gst::MetaRefMut<'_, VideoRegionOfInterestMeta, gst::meta::Standalone> {
    let rect = (x, y, width, height);
    let mut region = VideoRegionOfInterestMeta::add(buffer, TYPE, rect);
    region.set_id(NO_DETECTION);
    region
}
