// SPDX-License-Identifier: MPL-2.0
//! GStreamer's video frames as the domain's images: which formats, and how to read a mapped frame in place.

mod layout;
mod rows;

use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use gst_video::prelude::*;
use gst_video::video_frame::IsVideoFrame;
use gst_video::{
    VideoChromaSite, VideoColorMatrix, VideoColorRange, VideoCropMeta, VideoFormat,
    VideoFormatInfo, VideoFrameRef, VideoInfo, VideoMeta,
};
use thiserror::Error;

pub(crate) use self::layout::layout;

use self::rows::{COLOR_BYTES, PALETTE_COLORS, Packed, PackedRows, PaletteRows, TiledRows};
use facetrack::image::{
    ChromaSite, ColorMatrix, ColorRange, Colorimetry, ImageError, ImageView, Layout, PixelFormat,
    Plane,
};

/// Most pixels a side.
pub(crate) const MAX_SIDE: i32 = 16384;

/// The common formats, for which the domain has readers of their own. Alpha is ignored.
pub const COMMON_FORMATS: [(VideoFormat, PixelFormat); 17] = [
    (VideoFormat::Rgb, PixelFormat::Rgb),
    (VideoFormat::Bgr, PixelFormat::Bgr),
    (VideoFormat::Rgbx, PixelFormat::Rgbx),
    (VideoFormat::Bgrx, PixelFormat::Bgrx),
    (VideoFormat::Xrgb, PixelFormat::Xrgb),
    (VideoFormat::Xbgr, PixelFormat::Xbgr),
    (VideoFormat::Rgba, PixelFormat::Rgbx),
    (VideoFormat::Bgra, PixelFormat::Bgrx),
    (VideoFormat::Argb, PixelFormat::Xrgb),
    (VideoFormat::Abgr, PixelFormat::Xbgr),
    (VideoFormat::Gray8, PixelFormat::Gray8),
    (VideoFormat::Nv12, PixelFormat::Nv12),
    (VideoFormat::Nv21, PixelFormat::Nv21),
    (VideoFormat::I420, PixelFormat::I420),
    (VideoFormat::Yv12, PixelFormat::Yv12),
    (VideoFormat::Yuy2, PixelFormat::Yuy2),
    (VideoFormat::Uyvy, PixelFormat::Uyvy),
];

/// How frames of a format are read. Alpha is ignored.
#[derive(Debug)]
enum Reader {
    /// By a reader of the domain's own.
    Common(PixelFormat),
    /// Sample by sample.
    Samples(Layout),
    /// Row by row, with GStreamer's unpack function.
    Packed(Packed),
    /// Row by row, through a palette of this layout.
    Palette(Layout),
    /// All at once, to a format of this layout.
    Tiled(Layout),
}

impl Reader {
    /// `None` for a format that GStreamer can neither describe nor unpack.
    fn new(format: VideoFormat) -> Option<Self> {
        let common = COMMON_FORMATS.iter().find(|(known, _)| *known == format);
        if let Some((_, format)) = common {
            return Some(Self::Common(*format));
        }
        if let Some(layout) = layout(format) {
            return Some(Self::Samples(layout));
        }
        let info = VideoFormatInfo::from_format(format);
        let unpacked = layout(info.unpack_format())?;
        if info.is_tiled() {
            return Some(Self::Tiled(unpacked));
        }
        if info.has_palette() {
            return layout(PALETTE_COLOR).map(Self::Palette);
        }
        Packed::new(format, unpacked).map(Self::Packed)
    }
}

/// The format of a palette's colours: words of 32 bits, alpha in the uppermost eight.
const PALETTE_COLOR: VideoFormat = match cfg!(target_endian = "little") {
    true => VideoFormat::Bgra,
    false => VideoFormat::Argb,
};

/// Every raw format that GStreamer can describe or unpack, the common ones first.
static READERS: LazyLock<Vec<(VideoFormat, Reader)>> = LazyLock::new(|| {
    let common = COMMON_FORMATS.into_iter().map(|(format, _)| format);
    let is_rare = |format: &VideoFormat| COMMON_FORMATS.iter().all(|(known, _)| known != format);
    let rare = VideoFormat::iter_raw().filter(is_rare);
    common
        .chain(rare)
        .filter_map(|format| Some((format, Reader::new(format)?)))
        .collect()
});

/// Why a frame cannot be read as an image.
#[derive(Debug, Error, PartialEq)]
pub enum VideoError {
    /// GStreamer can neither describe nor unpack the format.
    #[error("video/x-raw,format={0} cannot be read; put videoconvert before the element")]
    Format(VideoFormat),
    /// The frame's rows run backwards or over each other, or the plane is absurdly large.
    #[error(
        "plane {plane} of the {format} frame has a stride of {stride} bytes; put videoconvert before the element, \
         which copies frames to a standard layout"
    )]
    Stride {
        /// The frame's format.
        format: VideoFormat,
        /// Index of the plane.
        plane: usize,
        /// Bytes from row to row.
        stride: i32,
    },
    /// The frame is larger than any that is accepted.
    #[error(
        "a frame of {width}×{height} pixels is too large: {MAX_SIDE} are the most a side; put videoscale before the element"
    )]
    Size {
        /// Pixels a row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// GStreamer does not convert the frame.
    #[error(
        "the {format} frame cannot be converted: {reason}; put videoconvert before the element"
    )]
    Tiles {
        /// The frame's format.
        format: VideoFormat,
        /// As GStreamer says it.
        reason: String,
    },
    /// The frame's memory does not hold its caps.
    #[error("the frame does not hold what its caps promise: {0}")]
    Image(#[from] ImageError),
}

/// Caps that can be read: system memory, 1…16384 pixels a side, every raw format.
pub fn caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .format_list(READERS.iter().map(|(format, _)| *format))
        .width_range(1..=MAX_SIDE)
        .height_range(1..=MAX_SIDE)
        .build()
}

/// Frames a second that caps of video in any memory tell, as a fraction; 0 of a variable rate.
pub(crate) fn rate(caps: &gst::CapsRef) -> Option<(i32, i32)> {
    let rate: gst::Fraction = caps.structure(0)?.get("framerate").ok()?;
    Some((rate.numer(), rate.denom()))
}

/// Width and height that caps of video in any memory tell, px; 0 where they do not.
pub(crate) fn size(caps: &gst::CapsRef) -> (u32, u32) {
    let side = |name| caps.structure(0)?.get::<i32>(name).ok();
    let [width, height] = ["width", "height"].map(|name| side(name).unwrap_or(0).unsigned_abs());
    (width, height)
}

/// Takes back the offer of crop metadata, which a sink has made and the base class handed on: who takes it leaves the
/// picture as it is and says where it is to be cut, and here pixels are read that are to be shown.
pub(crate) fn refuse_crops(query: &mut gst::query::Allocation) {
    while let Some(index) = query.find_allocation_meta::<VideoCropMeta>() {
        query.remove_nth_allocation_meta(index);
    }
}

/// The frame as an image, without a copy unless its format is in tiles: its own strides, plane
/// offsets, colorimetry and pixel aspect ratio.
///
/// # Errors
/// When GStreamer can neither describe nor unpack the format, or the strides or the memory do not
/// fit the frame's size.
pub fn image<'a>(frame: &'a VideoFrameRef<&gst::BufferRef>) -> Result<ImageView<'a>, VideoError> {
    let format = frame.format();
    let reader = READERS.iter().find(|(known, _)| *known == format);
    let (_, reader) = reader.ok_or(VideoError::Format(format))?;
    let (width, height) = (frame.width(), frame.height());
    let max = MAX_SIDE as u32;
    // A VideoMeta may say something else than the caps.
    if width > max || height > max {
        return Err(VideoError::Size { width, height });
    }
    let (width, height) = (width as usize, height as usize);
    let colorimetry = colorimetry(frame.info());
    let image = match reader {
        Reader::Common(format) => {
            let planes = planes(frame, format.plane_layout(width, height))?;
            ImageView::new(*format, width, height, colorimetry, &planes)
        }
        Reader::Samples(layout) => {
            let planes = planes(frame, layout.plane_layout(width, height))?;
            ImageView::with_layout(layout, width, height, colorimetry, &planes)
        }
        Reader::Packed(packed) => {
            let rows = PackedRows {
                packed,
                width,
                planes: planes(frame, packed.plane_layout(width, height))?,
            };
            ImageView::from_rows(Arc::new(rows), width, height, colorimetry)
        }
        Reader::Palette(layout) => {
            let palette = plane(frame, 1, COLOR_BYTES, PALETTE_COLORS)?;
            let rows = PaletteRows {
                layout,
                width,
                indices: plane(frame, 0, width, height)?,
                palette: palette.data.as_chunks().0,
            };
            ImageView::from_rows(Arc::new(rows), width, height, colorimetry)
        }
        Reader::Tiled(layout) => {
            check_tiles(frame)?;
            let rows = TiledRows::new(frame, layout).map_err(|error| VideoError::Tiles {
                format,
                reason: error.to_string(),
            })?;
            ImageView::from_rows(Arc::new(rows), width, height, colorimetry)
        }
    }?;
    Ok(match pixel_aspect_ratio(frame.info()) {
        Some(ratio) => image.with_pixel_aspect_ratio(ratio),
        None => image,
    })
}

/// Checks that tiles lie as the caps say, in memory that holds them all: GStreamer's converter does
/// not.
fn check_tiles(frame: &VideoFrameRef<&gst::BufferRef>) -> Result<(), VideoError> {
    let tiles = |reason: &str| VideoError::Tiles {
        format: frame.format(),
        reason: reason.to_owned(),
    };
    let usual = VideoInfo::builder(frame.format(), frame.width(), frame.height())
        .build()
        .map_err(|error| tiles(&error.to_string()))?;
    let is_usual = usual.stride() == frame.plane_stride() && usual.offset() == frame.plane_offset();
    let is_whole = frame.buffer().n_memory() == 1 && frame.buffer().size() >= usual.size();
    if is_usual && is_whole {
        Ok(())
    } else {
        Err(tiles("its tiles do not lie in one memory as its caps say"))
    }
}

/// Pixel aspect ratios that are read as they are said. Beyond them frames would have absurd sizes.
const PIXEL_ASPECT_RATIOS: RangeInclusive<f64> = 0.1..=10.0;

/// Width of a pixel divided by its height; `None` for square pixels and for a ratio that cannot be
/// read.
fn pixel_aspect_ratio(info: &VideoInfo) -> Option<f64> {
    let ratio = info.par();
    let ratio = f64::from(ratio.numer()) / f64::from(ratio.denom());
    (ratio != 1.0 && PIXEL_ASPECT_RATIOS.contains(&ratio)).then_some(ratio)
}

/// Whether frames are taken for square pixels although the caps say something else.
pub(crate) fn ignores_pixel_aspect_ratio(info: &VideoInfo) -> bool {
    info.par() != gst::Fraction::new(1, 1) && pixel_aspect_ratio(info).is_none()
}

/// The planes of a frame; `layout` has bytes of a row and number of rows of each.
fn planes<'a>(
    frame: &'a VideoFrameRef<&gst::BufferRef>,
    layout: Vec<(usize, usize)>,
) -> Result<Vec<Plane<'a>>, VideoError> {
    let planes = layout.into_iter().enumerate();
    planes
        .map(|(index, (bytes, rows))| plane(frame, index, bytes, rows))
        .collect()
}

/// One plane of `rows` rows of `row_bytes` bytes.
fn plane<'a>(
    frame: &'a VideoFrameRef<&gst::BufferRef>,
    index: usize,
    row_bytes: usize,
    rows: usize,
) -> Result<Plane<'a>, VideoError> {
    let stride = frame.plane_stride()[index];
    let unusable = || VideoError::Stride {
        format: frame.format(),
        plane: index,
        stride,
    };
    // Checked before `plane_data`, which multiplies the two in 32 bits.
    let bytes = u32::try_from(stride)
        .ok()
        .and_then(|s| s.checked_mul(rows as u32));
    if bytes.is_none() || (stride as usize) < row_bytes {
        return Err(unusable());
    }
    let stride = stride as usize;
    // The last row may end with the memory, short of a whole stride.
    let used = stride * (rows - 1) + row_bytes;
    let available = available_bytes(frame, index);
    if used > available {
        return Err(VideoError::Image(ImageError::PlaneTooSmall {
            plane: index,
            actual: available,
            stride,
            rows,
            row_bytes,
        }));
    }
    let data = frame.plane_data(index as u32).map_err(|_| unusable())?;
    let data = data.get(..used).unwrap_or(data);
    Ok(Plane { data, stride })
}

/// Bytes of the buffer's memory from the start of a plane on. The bindings take a plane to be as
/// long as its stride and height say, whatever the memory holds.
pub(crate) fn available_bytes<T>(frame: &VideoFrameRef<T>, plane: usize) -> usize
where
    VideoFrameRef<T>: IsVideoFrame,
{
    let (buffer, offset) = (frame.buffer(), frame.plane_offset()[plane]);
    if buffer.meta::<VideoMeta>().is_none() {
        return buffer.size().saturating_sub(offset);
    }
    // With a VideoMeta, only the memory that holds the start of a plane is mapped for it.
    let found = buffer.find_memory(offset..offset.saturating_add(1));
    found.map_or(0, |(memories, skip)| {
        buffer
            .peek_memory(memories.start)
            .size()
            .saturating_sub(skip)
    })
}

/// What the numbers of `info`'s frames mean; what the caps leave unknown is what GStreamer assumes for the format and
/// size.
pub fn colorimetry(info: &VideoInfo) -> Colorimetry {
    let named = info.colorimetry();
    let assumed = VideoInfo::builder(info.format(), info.width(), info.height())
        .build()
        .map_or_else(|_| named, |info| info.colorimetry());
    let site = info.chroma_site();
    Colorimetry {
        matrix: matrix(named.matrix())
            .or(matrix(assumed.matrix()))
            .unwrap_or_default(),
        range: range(named.range())
            .or(range(assumed.range()))
            .unwrap_or_default(),
        chroma_site: ChromaSite {
            horizontally_cosited: site.contains(VideoChromaSite::H_COSITED),
            vertically_cosited: site.contains(VideoChromaSite::V_COSITED),
        },
    }
}

fn matrix(matrix: VideoColorMatrix) -> Option<ColorMatrix> {
    match matrix {
        VideoColorMatrix::Bt601 => Some(ColorMatrix::Bt601),
        VideoColorMatrix::Bt709 => Some(ColorMatrix::Bt709),
        VideoColorMatrix::Bt2020 => Some(ColorMatrix::Bt2020),
        VideoColorMatrix::Fcc => Some(ColorMatrix::Fcc),
        VideoColorMatrix::Smpte240m => Some(ColorMatrix::Smpte240m),
        _ => None,
    }
}

fn range(range: VideoColorRange) -> Option<ColorRange> {
    match range {
        VideoColorRange::Range0_255 => Some(ColorRange::Full),
        VideoColorRange::Range16_235 => Some(ColorRange::Limited),
        _ => None,
    }
}
