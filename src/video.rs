// SPDX-License-Identifier: MPL-2.0
//! stub until the real one is merged
use crate::face::image::*;
use gst_video::prelude::*;
pub fn caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .format_list([gst_video::VideoFormat::Rgb, gst_video::VideoFormat::Gray8])
        .build()
}
pub fn image<'a>(
    f: &'a gst_video::VideoFrameRef<&gst::BufferRef>,
) -> Result<ImageView<'a>, ImageError> {
    let p = Plane {
        data: f.plane_data(0).unwrap(),
        stride: f.plane_stride()[0] as usize,
    };
    let fmt = if f.format() == gst_video::VideoFormat::Rgb {
        PixelFormat::Rgb
    } else {
        PixelFormat::Gray8
    };
    ImageView::new(
        fmt,
        f.width() as usize,
        f.height() as usize,
        Colorimetry::default(),
        &[p],
    )
}
