// SPDX-License-Identifier: MPL-2.0
//! Regions of interest that mark the covered parts of a picture.

use gst_video::{VideoInfo, VideoRegionOfInterestMeta};

use super::frame::FrameShape;
use super::region::{Canvas, to_int};
use facetrack::geometry::Rect;
use facetrack::redaction::{Cover, Region};

/// Type of the regions.
const TYPE: &str = "redacted";

/// Parameter of a region with the id of its face.
const OBJECT: &str = "object_id";

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
                let id = gst::Structure::builder(OBJECT).field("id", to_int(*id));
                region.add_param(id.build());
            }
        }
    }
}

/// The covered parts of a frame.
#[derive(Debug, Default, PartialEq)]
pub struct Redacted {
    /// True if the whole frame is covered.
    pub is_whole: bool,
    /// The id of each covered face, with the left edge, the top edge, the width and the height of the
    /// covered area, px.
    pub regions: Vec<(u32, [u32; 4])>,
}

/// The parts that facetrackblur has covered in the frame in `buffer`.
pub fn redacted(buffer: &gst::BufferRef) -> Redacted {
    let mut redacted = Redacted::default();
    let regions = buffer.iter_meta::<VideoRegionOfInterestMeta>();
    for region in regions.filter(|it| it.roi_type() == TYPE) {
        let id = region.param(OBJECT).and_then(|it| it.get::<i32>("id").ok());
        let (x, y, width, height) = region.rect();
        match id.and_then(|id| u32::try_from(id).ok()) {
            Some(id) => redacted.regions.push((id, [x, y, width, height])),
            None => redacted.is_whole = true,
        }
    }
    redacted
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
