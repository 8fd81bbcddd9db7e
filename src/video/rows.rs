// SPDX-License-Identifier: MPL-2.0
//! Frames whose rows are unpacked before samples can be read.

use gst_video::prelude::*;
use gst_video::{
    VideoConverter, VideoFormat, VideoFormatInfo, VideoFrame, VideoFrameRef, VideoInfo,
    VideoPackFlags,
};

use facetrack::image::{Layout, PixelRows, Plane, ROW_GROUP};

/// Number of bytes that GStreamer's unpack functions may read beyond the end of a row, if the row
/// ends between two words.
const SLACK: usize = 64;

/// A format that GStreamer can unpack row by row.
#[derive(Debug)]
pub(super) struct Packed {
    format: VideoFormatInfo,
    /// Layout of an unpacked row.
    unpacked: Layout,
    planes: Vec<PackedPlane>,
}

#[derive(Debug)]
struct PackedPlane {
    /// Bytes of [`ROW_GROUP`] pixels.
    group_bytes: usize,
    /// A row holds 2ⁿ rows of the frame.
    subsampling: u32,
}

impl Packed {
    /// Creates a reader; `None` if a plane of `format` has no component.
    pub(super) fn new(format: VideoFormat, unpacked: Layout) -> Option<Self> {
        let info = VideoFormatInfo::from_format(format);
        let group = VideoInfo::builder(format, ROW_GROUP as u32, 2)
            .build()
            .ok()?;
        let planes = (0..info.n_planes()).map(|index| {
            let component = info.plane().iter().position(|plane| *plane == index)?;
            Some(PackedPlane {
                group_bytes: usize::try_from(group.stride()[index as usize]).ok()?,
                subsampling: info.h_sub()[component],
            })
        });
        Some(Self {
            planes: planes.collect::<Option<_>>()?,
            format: info,
            unpacked,
        })
    }

    /// Bytes of a row and number of rows of each plane.
    pub(super) fn plane_layout(&self, width: usize, height: usize) -> Vec<(usize, usize)> {
        let planes = self.planes.iter().map(|plane| {
            let bytes = (width * plane.group_bytes).div_ceil(ROW_GROUP);
            (bytes, height.div_ceil(1 << plane.subsampling))
        });
        planes.collect()
    }
}

/// Unpacks rows with GStreamer's function for the format.
#[derive(Debug)]
pub(super) struct PackedRows<'a> {
    pub packed: &'a Packed,
    pub width: usize,
    pub planes: Vec<Plane<'a>>,
}

impl PixelRows for PackedRows<'_> {
    fn layout(&self) -> &Layout {
        &self.packed.unpacked
    }

    /// Unpacks rows. GStreamer's function gets copies of them, since it reads beyond their end.
    fn unpack(&self, rows: &mut dyn Iterator<Item = usize>, stride: usize, picture: &mut [u8]) {
        let groups = self.width.div_ceil(ROW_GROUP);
        let packed = self.packed.planes.iter();
        let mut copies: Vec<_> = packed
            .map(|plane| vec![0; groups * plane.group_bytes + SLACK])
            .collect();
        let strides: Vec<_> = copies.iter().map(|copy| copy.len() as i32).collect();
        for y in rows {
            for (copy, (plane, packed)) in copies
                .iter_mut()
                .zip(self.planes.iter().zip(&self.packed.planes))
            {
                let row = &plane.data[(y >> packed.subsampling) * plane.stride..];
                let bytes = (groups * packed.group_bytes)
                    .min(plane.stride)
                    .min(row.len());
                copy[..bytes].copy_from_slice(&row[..bytes]);
            }
            let copies: Vec<_> = copies.iter().map(Vec::as_slice).collect();
            let (flags, width) = (VideoPackFlags::empty(), self.width as i32);
            let row = &mut picture[y * stride..][..stride];
            self.packed
                .format
                .unpack(flags, row, &copies, &strides, 0, 0, width);
        }
    }
}

/// Number of colors of a palette.
pub(super) const PALETTE_COLORS: usize = 256;

/// Bytes of a color of a palette.
pub(super) const COLOR_BYTES: usize = 4;

/// Looks 8-bit indices up in a palette of 32-bit colors.
#[derive(Debug)]
pub(super) struct PaletteRows<'a> {
    /// Layout of the palette's colors.
    pub layout: &'a Layout,
    pub width: usize,
    pub indices: Plane<'a>,
    pub palette: &'a [[u8; COLOR_BYTES]],
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
                let color = self.palette.get(usize::from(*index));
                *pixel = color.copied().unwrap_or_default();
            }
        }
    }
}

/// Columns of a tile of the formats `MT2110T` and `MT2110R`.
const TILE_COLUMNS: u32 = 16;

/// A frame in tiles, converted as a whole: the safe bindings cannot unpack a row of tiles.
#[derive(Debug)]
pub(super) struct TiledRows<'a> {
    layout: &'a Layout,
    frame: VideoFrame<gst_video::video_frame::Readable>,
}

impl<'a> TiledRows<'a> {
    /// `layout` describes the format to which GStreamer unpacks rows of `frame`.
    ///
    /// # Errors
    /// Returns an error if GStreamer cannot convert the frame.
    pub(super) fn new(
        frame: &VideoFrameRef<&gst::BufferRef>,
        layout: &'a Layout,
    ) -> Result<Self, gst::glib::BoolError> {
        let whole = in_whole_tiles(frame.info())?;
        if whole.width() == frame.width() {
            return Self::converted(frame, layout);
        }
        // The copy has no video metadata, because that contains the width.
        let tiles = frame
            .buffer()
            .copy_region(gst::BufferCopyFlags::MEMORY, ..)?;
        let frame = VideoFrameRef::from_buffer_ref_readable(&tiles, &whole)
            .map_err(|_| gst::glib::bool_error!("its tiles cannot be mapped as {whole:?}"))?;
        Self::converted(&frame, layout)
    }

    fn converted(
        frame: &VideoFrameRef<&gst::BufferRef>,
        layout: &'a Layout,
    ) -> Result<Self, gst::glib::BoolError> {
        let format = frame.format_info().unpack_format();
        let info = resized(frame.info(), format, frame.width())?;
        let converter = VideoConverter::new(frame.info(), &info, None)?;
        let buffer = gst::Buffer::with_size(info.size())?;
        let mut rows = VideoFrame::from_buffer_writable(buffer, &info)
            .map_err(|_| gst::glib::bool_error!("a new buffer of {info:?} cannot be mapped"))?;
        converter.frame_ref(frame, &mut rows.as_mut_video_frame_ref());
        let frame = VideoFrame::from_buffer_readable(rows.into_buffer(), &info)
            .map_err(|_| gst::glib::bool_error!("a new buffer of {info:?} cannot be mapped"))?;
        Ok(Self { layout, frame })
    }
}

/// The frame with all columns of its last tiles. GStreamer 1.28 and older convert only full tiles of
/// some formats.
fn in_whole_tiles(info: &VideoInfo) -> Result<VideoInfo, gst::glib::BoolError> {
    match info.name() {
        "MT2110T" | "MT2110R" => {
            let width = info.width().next_multiple_of(TILE_COLUMNS);
            resized(info, info.format(), width)
        }
        _ => Ok(info.clone()),
    }
}

/// The description of a frame of another format and width.
fn resized(
    info: &VideoInfo,
    format: VideoFormat,
    width: u32,
) -> Result<VideoInfo, gst::glib::BoolError> {
    VideoInfo::builder(format, width, info.height())
        .colorimetry(&info.colorimetry())
        .chroma_site(info.chroma_site())
        .fps(info.fps())
        .interlace_mode(info.interlace_mode())
        .build()
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
