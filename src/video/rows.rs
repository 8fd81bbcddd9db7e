// SPDX-License-Identifier: MPL-2.0
//! Frames whose rows have to be unpacked before samples can be read.

use gst_video::prelude::*;
use gst_video::{VideoConverter, VideoFrame, VideoFrameRef, VideoInfo};

use super::packed::{GROUP, Packed};
use facetrack::image::{Layout, PixelRows, Plane};

/// Unpacks rows with the function that GStreamer has for the format.
#[derive(Debug)]
pub(super) struct PackedRows<'a> {
    pub packed: &'a Packed,
    /// Of an unpacked row.
    pub layout: &'a Layout,
    pub width: usize,
    pub planes: Vec<Plane<'a>>,
}

impl PixelRows for PackedRows<'_> {
    fn layout(&self) -> &Layout {
        self.layout
    }

    fn unpack(&self, rows: &mut dyn Iterator<Item = usize>, stride: usize, picture: &mut [u8]) {
        let groups = 0..self.width.div_ceil(GROUP);
        let mut room = self.packed.room(groups.end);
        for y in rows {
            let planes = self.planes.iter().map(|plane| (plane.data, plane.stride));
            room.load(self.packed, y, &groups, planes);
            let row = &mut picture[y * stride..][..stride];
            room.unpack(self.packed, self.width, row);
        }
    }
}

/// Looks 8-bit indices up in a palette of 32-bit colours.
#[derive(Debug)]
pub(super) struct PaletteRows<'a> {
    /// Of the palette's colours.
    pub layout: &'a Layout,
    pub width: usize,
    pub indices: Plane<'a>,
    pub palette: &'a [[u8; 4]],
}

impl PixelRows for PaletteRows<'_> {
    fn layout(&self) -> &Layout {
        self.layout
    }

    fn unpack(&self, rows: &mut dyn Iterator<Item = usize>, stride: usize, picture: &mut [u8]) {
        for y in rows {
            let indices = &self.indices.data[y * self.indices.stride..][..self.width];
            let (pixels, _) = picture[y * stride..].as_chunks_mut();
            for (pixel, index) in pixels.iter_mut().zip(indices) {
                *pixel = self
                    .palette
                    .get(usize::from(*index))
                    .copied()
                    .unwrap_or_default();
            }
        }
    }
}

/// A frame in tiles, converted as a whole: the safe bindings cannot unpack a row of tiles.
#[derive(Debug)]
pub(super) struct TiledRows<'a> {
    layout: &'a Layout,
    frame: VideoFrame<gst_video::video_frame::Readable>,
}

impl<'a> TiledRows<'a> {
    /// `layout` describes the format to which rows of `frame` are unpacked.
    ///
    /// # Errors
    /// When GStreamer cannot convert the frame.
    pub fn new(
        frame: &VideoFrameRef<&gst::BufferRef>,
        layout: &'a Layout,
    ) -> Result<Self, gst::glib::BoolError> {
        let source = frame.info();
        let format = frame.format_info().unpack_format();
        let info = VideoInfo::builder(format, frame.width(), frame.height())
            .colorimetry(&source.colorimetry())
            .fps(source.fps())
            .interlace_mode(source.interlace_mode())
            .build()?;
        let converter = VideoConverter::new(source, &info, None)?;
        let buffer = gst::Buffer::with_size(info.size())?;
        let mut rows = VideoFrame::from_buffer_writable(buffer, &info)
            .map_err(|_| gst::glib::bool_error!("a new buffer of {info:?} cannot be mapped"))?;
        converter.frame_ref(frame, &mut rows.as_mut_video_frame_ref());
        let frame = VideoFrame::from_buffer_readable(rows.into_buffer(), &info)
            .map_err(|_| gst::glib::bool_error!("a new buffer of {info:?} cannot be mapped"))?;
        Ok(Self { layout, frame })
    }
}

impl PixelRows for TiledRows<'_> {
    fn layout(&self) -> &Layout {
        self.layout
    }

    fn unpack(&self, rows: &mut dyn Iterator<Item = usize>, stride: usize, picture: &mut [u8]) {
        let data = self.frame.plane_data(0).unwrap_or_default();
        let own = self.frame.plane_stride()[0] as usize;
        for y in rows {
            let bytes = own.min(stride);
            picture[y * stride..][..bytes].copy_from_slice(&data[y * own..][..bytes]);
        }
    }
}
