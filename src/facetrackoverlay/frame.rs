// SPDX-License-Identifier: MPL-2.0
//! GStreamer's frames as something to draw into.

use gst_video::prelude::*;
use gst_video::{VideoFormat, VideoFrameRef, VideoInfo};
use thiserror::Error;

use super::unpacked::Unpacked;
use crate::video;
use facetrack::image::Layout;
use facetrack::overlay::{Canvas, CanvasError, PlaneMut};

/// How frames of a format are drawn into.
#[derive(Debug)]
pub(super) enum Drawable {
    /// Sample by sample.
    Directly(Layout),
    /// Unpacked.
    Unpacked(Unpacked),
}

/// Why a frame can't be drawn into.
#[derive(Debug, Error)]
pub(super) enum FrameError {
    #[error(
        "a buffer of {size} bytes can't be written as {width}×{height} {format}; put videoconvert before the element, or \
         fix the element that produces such buffers"
    )]
    Map {
        size: usize,
        width: u32,
        height: u32,
        format: VideoFormat,
    },
    #[error("plane {plane} has a stride of {stride} bytes; put videoconvert before the element")]
    Stride { plane: usize, stride: i32 },
    #[error(
        "the frame does not hold what its caps promise: {0}; fix the element that produces such buffers"
    )]
    Canvas(#[from] CanvasError),
}

/// What can be drawn into: raw video in system memory, in every format that has rows and colours of its own.
pub(super) fn caps() -> gst::Caps {
    let formats = VideoFormat::iter_raw().filter(|format| drawable(*format).is_some());
    gst_video::VideoCapsBuilder::new()
        .format_list(formats)
        .build()
}

/// How frames of a format are drawn into; `None` where they can't be.
pub(super) fn drawable(format: VideoFormat) -> Option<Drawable> {
    let unpacked = || Unpacked::new(format).map(Drawable::Unpacked);
    video::layout(format)
        .map(Drawable::Directly)
        .or_else(unpacked)
}

/// Lets `draw` draw into a buffer.
pub(super) fn with_canvas(
    buffer: &mut gst::BufferRef,
    info: &VideoInfo,
    drawable: &mut Drawable,
    draw: impl FnOnce(&mut Canvas),
) -> Result<(), FrameError> {
    let size = buffer.size();
    let mut frame =
        VideoFrameRef::from_buffer_ref_writable(buffer, info).map_err(|_| FrameError::Map {
            size,
            width: info.width(),
            height: info.height(),
            format: info.format(),
        })?;
    let strides: Vec<_> = (0..frame.n_planes() as usize)
        .map(|plane| stride(&frame, plane))
        .collect::<Result<_, _>>()?;
    let available: Vec<_> = (0..frame.n_planes() as usize)
        .map(|plane| video::available_bytes(&frame, plane))
        .collect();
    let (width, height) = (frame.width() as usize, frame.height() as usize);
    let colorimetry = video::colorimetry(frame.info());
    let planes = std::iter::zip(frame.planes_data_mut(), strides).zip(available);
    let planes = planes.map(|((data, stride), available)| {
        // The last row may end with the memory, short of a whole stride.
        let end = available.min(data.len());
        let data = &mut data[..end];
        PlaneMut { data, stride }
    });
    let mut planes: Vec<_> = planes.collect();
    match drawable {
        Drawable::Directly(layout) => {
            draw(&mut Canvas::new(
                (width, height),
                layout,
                colorimetry,
                planes,
            )?);
        }
        Drawable::Unpacked(unpacked) => {
            unpacked.draw((width, height), colorimetry, &mut planes, draw)?;
        }
    }
    Ok(())
}

/// Bytes from row to row, with which the plane's bytes can be counted in 32 bits as `planes_data_mut` does.
fn stride(frame: &VideoFrameRef<&mut gst::BufferRef>, plane: usize) -> Result<usize, FrameError> {
    let stride = frame.plane_stride()[plane];
    let rows = frame.plane_height(plane as u32);
    let bytes = u32::try_from(stride).ok().and_then(|s| s.checked_mul(rows));
    match bytes {
        Some(_) => Ok(stride as usize),
        None => Err(FrameError::Stride { plane, stride }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECT: &str = "RGB BGR RGBx BGRx xRGB xBGR RGBA BGRA ARGB ABGR RGB15 RGB16 GBR GRAY8 GRAY16_LE NV12 \
        NV21 NV16 NV24 I420 YV12 Y42B Y444 Y41B YUY2 UYVY YVYU AYUV VUYA A420 I420_10LE I420_10BE I422_10LE Y444_12LE \
        P010_10LE P016_LE ARGB64 RGBA64_BE";

    const UNPACKED: &str = "v210 v216 VYUY BGR15 BGR16 UYVP r210 NV12_10LE32 NV12_10LE40 NV16_10LE32 RGB10A2_LE \
        BGR10A2_LE Y410 Y412_LE Y210 Y212_BE IYU1 GRAY10_LE32";

    const REFUSED: &str = "RGB8P NV12_4L4 NV12_64Z32";

    #[test]
    fn formats_that_have_rows_and_colors_of_their_own_can_be_drawn_into() {
        gst::init().expect("GStreamer");
        for (names, want) in [
            (DIRECT, Some(true)),
            (UNPACKED, Some(false)),
            (REFUSED, None),
        ] {
            for name in names.split_whitespace() {
                let format: VideoFormat = name.parse().expect("a format");
                let found = drawable(format);
                let directly = found.map(|found| matches!(found, Drawable::Directly(_)));
                assert_eq!(directly, want, "{name}");
            }
        }
    }
}
