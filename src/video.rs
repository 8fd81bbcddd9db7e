// SPDX-License-Identifier: MPL-2.0
//! GStreamer's video frames as the domain's images: which formats, and how to read a mapped frame in place.

use gst_video::prelude::*;
use gst_video::{
    VideoChromaSite, VideoColorMatrix, VideoColorRange, VideoCropMeta, VideoFormat, VideoInfo,
};
use thiserror::Error;

use crate::face::image::{
    ChromaSite, ColorMatrix, ColorRange, Colorimetry, ImageError, ImageView, PixelFormat, Plane,
};

/// Most pixels a side.
const MAX_SIDE: i32 = 16384;

/// The formats that frames may have, and how the domain reads them. Alpha is ignored.
pub const FORMATS: [(VideoFormat, PixelFormat); 17] = [
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

/// Why a frame cannot be read as an image.
#[derive(Debug, Error, PartialEq)]
pub enum VideoError {
    /// The caps have a format outside [`FORMATS`].
    #[error("video/x-raw,format={0} cannot be read; put videoconvert before the element")]
    Format(VideoFormat),
    /// The frame's rows run backwards or over each other, or the plane is absurdly large.
    #[error(
        "plane {plane} of the {format} frame has a stride of {stride} bytes; put videoconvert before the element, \
         which lays frames out anew"
    )]
    Stride {
        /// The frame's format.
        format: VideoFormat,
        /// Index of the plane.
        plane: usize,
        /// Bytes from row to row.
        stride: i32,
    },
    /// The frame's memory does not hold its caps.
    #[error("the frame does not hold what its caps promise: {0}")]
    Image(#[from] ImageError),
}

/// What can be read: system memory, 1…16384 pixels a side, any of [`FORMATS`].
pub fn caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new()
        .format_list(FORMATS.map(|(format, _)| format))
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

/// How the domain reads `format`; `None` when it cannot.
pub fn pixel_format(format: VideoFormat) -> Option<PixelFormat> {
    let (_, pixel_format) = FORMATS.iter().find(|(video, _)| *video == format)?;
    Some(*pixel_format)
}

/// The frame as an image, without a copy: its own strides, plane offsets and colorimetry.
///
/// # Errors
/// When the format is not one of [`FORMATS`], or the strides or the memory do not fit the frame's size.
pub fn image<'a>(
    frame: &'a gst_video::VideoFrameRef<&gst::BufferRef>,
) -> Result<ImageView<'a>, VideoError> {
    let format = frame.format();
    let pixel_format = pixel_format(format).ok_or(VideoError::Format(format))?;
    let (width, height) = (frame.width() as usize, frame.height() as usize);
    let planes = pixel_format
        .plane_layout(width, height)
        .into_iter()
        .enumerate()
        .map(|(index, (row_bytes, rows))| plane(frame, index, row_bytes, rows))
        .collect::<Result<Vec<_>, _>>()?;
    let colorimetry = colorimetry(frame.info());
    Ok(ImageView::new(
        pixel_format,
        width,
        height,
        colorimetry,
        &planes,
    )?)
}

/// One plane of `rows` rows of `row_bytes` bytes.
fn plane<'a>(
    frame: &'a gst_video::VideoFrameRef<&gst::BufferRef>,
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
    let data = frame.plane_data(index as u32).map_err(|_| unusable())?;
    // The last row may end with the memory, short of a whole stride.
    let used = stride * (rows - 1) + row_bytes;
    let data = data.get(..used).unwrap_or(data);
    Ok(Plane { data, stride })
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
