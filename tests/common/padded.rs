// SPDX-License-Identifier: MPL-2.0
//! Frames that are laid out otherwise than their caps say.

use gst_video::prelude::*;
use gst_video::{VideoFrameFlags, VideoFrameRef, VideoInfo, VideoMeta};

/// Byte between rows and planes.
pub const FILLING: u8 = 0xa5;

/// The same frame with `before` bytes ahead of each plane and `after` bytes, which differ from
/// plane to plane, behind each row.
pub fn padded(
    tight: &gst::Buffer,
    info: &VideoInfo,
    before: usize,
    after: impl Fn(u32) -> usize,
) -> gst::Buffer {
    let source = VideoFrameRef::from_buffer_ref_readable(tight, info).expect("mapped");
    let (mut data, mut offsets, mut strides) = (Vec::new(), Vec::new(), Vec::new());
    for plane in 0..info.n_planes() {
        data.extend(vec![FILLING; before]);
        offsets.push(data.len());
        let stride = source.plane_stride()[plane as usize];
        let rows = source.plane_data(plane).expect("a plane");
        for row in rows.chunks(stride as usize) {
            data.extend(row);
            data.extend(vec![FILLING; after(plane)]);
        }
        strides.push(stride + after(plane) as i32);
    }
    let mut buffer = gst::Buffer::from_mut_slice(data);
    VideoMeta::add_full(
        buffer.make_mut(),
        VideoFrameFlags::empty(),
        info.format(),
        info.width(),
        info.height(),
        &offsets,
        &strides,
    )
    .expect("a meta");
    buffer
}
