// SPDX-License-Identifier: MPL-2.0
//! GStreamer's video frames as images of the domain, read in place.

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
    Arithmetic, ChromaSite, ColorMatrix, ColorRange, Colorimetry, ImageError, ImageView, Layout,
    Plane,
};

/// Maximum width and height, px.
pub(crate) const MAX_SIDE: i32 = 16384;

/// The common formats, for which the domain has special readers. Alpha is ignored.
pub const COMMON_FORMATS: [VideoFormat; 17] = {
    use VideoFormat::*;
    [
        Rgb, Bgr, Rgbx, Bgrx, Xrgb, Xbgr, Rgba, Bgra, Argb, Abgr, Gray8, Nv12, Nv21, I420, Yv12,
        Yuy2, Uyvy,
    ]
};

/// The way to read frames of a format. Alpha is ignored.
#[derive(Debug)]
enum Reader {
    /// Reads sample by sample.
    Samples(Layout, Arithmetic),
    /// Reads row by row, with GStreamer's unpack function.
    Packed(Packed),
    /// Reads row by row, through a palette with this layout.
    Palette(Layout),
    /// Converts the whole frame to a format with this layout.
    Tiled(Layout),
}

impl Reader {
    /// Finds the reader of a format; `None` if GStreamer can neither describe nor unpack it.
    fn new(format: VideoFormat) -> Option<Self> {
        if let Some(layout) = layout(format) {
            let is_common = COMMON_FORMATS.contains(&format);
            let arithmetic = if is_common {
                Arithmetic::Bytes
            } else {
                Arithmetic::Floats
            };
            return Some(Self::Samples(layout, arithmetic));
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

/// The format of a palette's colors: words of 32 bits, alpha in the upper eight.
const PALETTE_COLOR: VideoFormat = if cfg!(target_endian = "little") {
    VideoFormat::Bgra
} else {
    VideoFormat::Argb
};

/// Every raw format that GStreamer can describe or unpack, the common ones first.
static READERS: LazyLock<Vec<(VideoFormat, Reader)>> = LazyLock::new(|| {
    let rare = VideoFormat::iter_raw().filter(|format| !COMMON_FORMATS.contains(format));
    let formats = COMMON_FORMATS.into_iter().chain(rare);
    formats
        .filter_map(|format| Some((format, Reader::new(format)?)))
        .collect()
});

/// Reason why a frame cannot be read as an image.
#[derive(Debug, Error, PartialEq)]
pub enum VideoError {
    /// GStreamer can neither describe nor unpack the format.
    #[error("video/x-raw,format={0} cannot be read; put videoconvert before the element")]
    Format(VideoFormat),
    /// The frame's rows run backwards or overlap, or the plane is too large.
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
    /// The frame is larger than the maximum.
    #[error(
        "a frame of {width}×{height} pixels is too large: the maximum is {MAX_SIDE}×{MAX_SIDE}; put videoscale before the element"
    )]
    Size {
        /// Pixels per row.
        width: u32,
        /// Rows.
        height: u32,
    },
    /// The buffer's metadata describes another frame than the caps.
    #[error(
        "the GstVideoMeta of the buffer describes a {meta} frame of {meta_width}×{meta_height} pixels, but its caps a \
         {format} frame of {width}×{height}; fix the element that produces such buffers",
        meta_width = .meta_size.0, meta_height = .meta_size.1, width = .size.0, height = .size.1
    )]
    Meta {
        /// Format of the metadata.
        meta: VideoFormat,
        /// Width and height of the metadata, px.
        meta_size: (u32, u32),
        /// Format of the caps.
        format: VideoFormat,
        /// Width and height of the caps, px.
        size: (u32, u32),
    },
    /// GStreamer cannot convert the frame.
    #[error(
        "the {format} frame cannot be converted: {reason}; put videoconvert before the element"
    )]
    Tiles {
        /// The frame's format.
        format: VideoFormat,
        /// GStreamer's reason.
        reason: String,
    },
    /// The frame's memory does not match its caps.
    #[error("the frame does not match its caps: {0}")]
    Image(#[from] ImageError),
}

/// Caps that can be read: system memory, 1…16384 pixels per side, every raw format.
pub fn caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .format_list(READERS.iter().map(|(format, _)| *format))
        .width_range(1..=MAX_SIDE)
        .height_range(1..=MAX_SIDE)
        .build()
}

/// Frame rate of caps of video in any memory, as a fraction; 0 for a variable rate.
pub fn rate(caps: &gst::CapsRef) -> Option<(i32, i32)> {
    let rate: gst::Fraction = caps.structure(0)?.get("framerate").ok()?;
    Some((rate.numer(), rate.denom()))
}

/// Width and height of caps of video in any memory, px; 0 if unknown.
pub(crate) fn size(caps: &gst::CapsRef) -> (u32, u32) {
    let side = |name| caps.structure(0)?.get::<i32>(name).ok();
    let [width, height] = ["width", "height"].map(|name| side(name).unwrap_or(0).unsigned_abs());
    (width, height)
}

/// Removes the support of crop metadata from a query to which the base class added the one of a
/// sink. An upstream element would otherwise send uncropped frames with crop metadata, but the
/// elements here only process visible pixels.
pub(crate) fn refuse_crops(query: &mut gst::query::Allocation) {
    while let Some(index) = query.find_allocation_meta::<VideoCropMeta>() {
        query.remove_nth_allocation_meta(index);
    }
}

/// Checks that the metadata of a buffer describes a frame that fits the caps, which GStreamer
/// asserts when it maps the frame. The frame in memory may be larger, for elements that crop.
///
/// # Errors
/// Returns [`VideoError::Meta`].
pub(crate) fn check_meta(buffer: &gst::BufferRef, info: &VideoInfo) -> Result<(), VideoError> {
    // GStreamer uses the metadata with the lowest number for mapping.
    let Some(meta) = buffer.iter_meta::<VideoMeta>().min_by_key(|meta| meta.id()) else {
        return Ok(());
    };
    let fits = meta.format() == info.format()
        && meta.n_planes() == info.n_planes()
        && meta.width() >= info.width()
        && meta.height() >= info.height();
    fits.then_some(()).ok_or(VideoError::Meta {
        meta: meta.format(),
        meta_size: (meta.width(), meta.height()),
        format: info.format(),
        size: (info.width(), info.height()),
    })
}

/// The frame as an image with the frame's strides, plane offsets, colorimetry and pixel aspect
/// ratio. Only tiled formats are copied.
///
/// # Errors
/// Returns an error if GStreamer can neither describe nor unpack the format, or the strides or the
/// memory do not fit the frame's size.
pub fn image<'a>(frame: &'a VideoFrameRef<&gst::BufferRef>) -> Result<ImageView<'a>, VideoError> {
    let format = frame.format();
    let reader = READERS.iter().find(|(known, _)| *known == format);
    let (_, reader) = reader.ok_or(VideoError::Format(format))?;
    let (width, height) = (frame.width(), frame.height());
    let max = MAX_SIDE as u32;
    // A VideoMeta may differ from the caps.
    if width > max || height > max {
        return Err(VideoError::Size { width, height });
    }
    let (width, height) = (width as usize, height as usize);
    let colorimetry = colorimetry(frame.info());
    let image = match reader {
        Reader::Samples(layout, arithmetic) => {
            let planes = planes(frame, layout.plane_layout(width, height))?;
            ImageView::with_layout(layout, *arithmetic, width, height, colorimetry, &planes)
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

/// Checks that tiles have the standard layout, in memory that is large enough: GStreamer's
/// converter does not check it.
fn check_tiles(frame: &VideoFrameRef<&gst::BufferRef>) -> Result<(), VideoError> {
    let tiles = |reason: &str| VideoError::Tiles {
        format: frame.format(),
        reason: reason.to_owned(),
    };
    let usual = VideoInfo::builder(frame.format(), frame.width(), frame.height())
        .interlace_mode(frame.info().interlace_mode())
        .build()
        .map_err(|error| tiles(&error.to_string()))?;
    let is_usual = usual.stride() == frame.plane_stride() && usual.offset() == frame.plane_offset();
    let is_whole = frame.buffer().n_memory() == 1 && frame.buffer().size() >= usual.size();
    if is_usual && is_whole {
        Ok(())
    } else {
        Err(tiles(
            "its tiles do not have the standard layout in one memory",
        ))
    }
}

/// Supported pixel aspect ratios. With others, frames would have absurd sizes.
const PIXEL_ASPECT_RATIOS: RangeInclusive<f64> = 0.1..=10.0;

/// Width of a pixel divided by its height; `None` for square pixels and for an unsupported ratio.
fn pixel_aspect_ratio(info: &VideoInfo) -> Option<f64> {
    let ratio = info.par();
    let ratio = f64::from(ratio.numer()) / f64::from(ratio.denom());
    (ratio != 1.0 && PIXEL_ASPECT_RATIOS.contains(&ratio)).then_some(ratio)
}

/// Returns true if pixels are treated as square although the caps have another ratio.
pub(crate) fn ignores_pixel_aspect_ratio(info: &VideoInfo) -> bool {
    info.par() != gst::Fraction::new(1, 1) && pixel_aspect_ratio(info).is_none()
}

/// The planes of a frame; `layout` has the bytes of a row and the number of rows of each plane.
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
    // This is checked before `plane_data`, which multiplies the two in 32 bits.
    let bytes = u32::try_from(stride)
        .ok()
        .and_then(|s| s.checked_mul(rows as u32));
    if bytes.is_none() || (stride as usize) < row_bytes {
        return Err(unusable());
    }
    let stride = stride as usize;
    // The last row may be shorter than a stride, at the end of the memory.
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

/// Bytes of the buffer's memory from the start of a plane on. The bindings compute the length of a
/// plane from stride and height without checking the memory.
pub(crate) fn available_bytes<T>(frame: &VideoFrameRef<T>, plane: usize) -> usize
where
    VideoFrameRef<T>: IsVideoFrame,
{
    let (buffer, offset) = (frame.buffer(), frame.plane_offset()[plane]);
    if buffer.meta::<VideoMeta>().is_none() {
        return buffer.size().saturating_sub(offset);
    }
    // With a VideoMeta, only the memory with the start of a plane is mapped for it.
    let found = buffer.find_memory(offset..offset.saturating_add(1));
    found.map_or(0, |(memories, skip)| {
        buffer
            .peek_memory(memories.start)
            .size()
            .saturating_sub(skip)
    })
}

/// Colorimetry of `info`'s frames. Unknown values are replaced by GStreamer's defaults for the
/// format and size.
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
