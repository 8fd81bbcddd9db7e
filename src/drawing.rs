// SPDX-License-Identifier: MPL-2.0
//! Mapped frames as canvases to draw into, for the elements that change pictures.

use std::collections::BTreeSet;

use gst_base::prelude::*;
use gst_video::prelude::*;
use gst_video::{VideoFormat, VideoFrameRef, VideoInfo, VideoMultiviewMode};
use thiserror::Error;

use crate::meta::{self, Fit, MetaError, MissingMetaCounter};
use crate::video::{self, VideoError};
use facetrack::image::Layout;
use facetrack::memory::OutOfMemory;
use facetrack::overlay::{Canvas, CanvasError, PlaneMut};
use facetrack::report::SearchExtent;

/// Reason why nothing is drawn into a frame.
#[derive(Debug, Error)]
pub(crate) enum DrawingError {
    #[error(transparent)]
    Meta(#[from] MetaError),
    #[error(
        "a buffer of {0} bytes cannot be mapped for writing as {width}×{height} {format}; put videoconvert before the \
         element, or fix the element that produces such buffers",
        width = .1.width(), height = .1.height(), format = .1.format()
    )]
    Map(usize, Box<VideoInfo>),
    #[error("plane {plane} has a stride of {stride} bytes; put videoconvert before the element")]
    Stride { plane: usize, stride: i32 },
    #[error("the frame does not match its caps: {0}; fix the element that produces such buffers")]
    Canvas(#[from] CanvasError),
    #[error("{0}. {remedy}", remedy = facetrack_remedies::FREE_MEMORY)]
    Memory(#[from] OutOfMemory),
    #[error(transparent)]
    Video(#[from] VideoError),
    #[error("no caps came before the frame; fix the element that produces such streams")]
    NoCaps,
    #[error(
        "some frames have no FaceTrackMeta: the record that trackjsonload replays has no entry for them, or an element \
         after facetrack added them"
    )]
    SomeAbsent,
    #[error("{}", remedy(*.0))]
    Unsearched(SearchExtent),
}

/// The reason why a frame may show faces that its report does not have, with the remedy.
fn remedy(search: SearchExtent) -> &'static str {
    match search {
        SearchExtent::Whole => "",
        SearchExtent::Partial => {
            "facetrack left out faces that it found. Set select=all and tracker=centroid, and name the faces that stay visible in keep"
        }
        SearchExtent::Limited => {
            "facetrack found as many faces as it may report. Set a larger max-faces"
        }
        SearchExtent::KnownFaces => {
            "facetrack looked only near the faces of earlier frames. Set scan-every=1 and a larger max-faces, or use another engine"
        }
        SearchExtent::None => {
            "facetrack did not analyse them. Set inference-interval=1, max-fps=0 and late-frames=analyze, and in a live pipeline put queue leaky=downstream max-size-buffers=1 before facetrack"
        }
        SearchExtent::OtherVideo => {
            "the record that trackjsonload replays may be of another video. Replay the record of this video, or set on-mismatch=ignore of trackjsonload if the warning it posted names no real difference"
        }
    }
}

impl DrawingError {
    /// The error message to post; `effect` is what does not happen.
    pub(crate) fn message(&self, effect: &str) -> gst::ErrorMessage {
        match self {
            Self::Memory(_) => {
                gst::error_msg!(gst::ResourceError::NoSpaceLeft, ("{effect}: {self}"))
            }
            _ => gst::error_msg!(gst::StreamError::Format, ("{effect}: {self}")),
        }
    }
}

/// Caps of frames that can be drawn into: raw video in system memory, in every format whose samples
/// can be addressed one by one.
pub(crate) fn caps() -> gst::Caps {
    let formats = VideoFormat::iter_raw().filter(|format| video::layout(*format).is_some());
    gst_video::VideoCapsBuilder::new()
        .format_list(formats)
        .build()
}

/// The fit of a scaler with this `add-borders`.
pub(crate) fn fit(add_borders: bool) -> Fit {
    if add_borders {
        Fit::Borders
    } else {
        Fit::Stretch
    }
}

/// Maximum number of different warnings in a stream.
const MAX_WARNINGS: usize = 8;

/// The warnings of a stream. Each is posted once.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    posted: BTreeSet<String>,
    missing_meta: MissingMetaCounter,
}

/// A warning to post.
pub(crate) enum Warning {
    /// The frames have no metadata.
    MissingMeta,
    /// The reason why the metadata of a frame cannot be used.
    Frame(String),
}

impl Warnings {
    /// Counts a frame. Returns a warning about `problem`, unless it was posted before.
    pub(crate) fn count(&mut self, problem: Option<&DrawingError>) -> Option<Warning> {
        let is_absent = matches!(problem, Some(DrawingError::Meta(MetaError::Absent)));
        if self.missing_meta.count(!is_absent) {
            return Some(Warning::MissingMeta);
        }
        let text = problem.filter(|_| !is_absent)?.to_string();
        let is_new = self.posted.len() < MAX_WARNINGS && self.posted.insert(text.clone());
        is_new.then_some(Warning::Frame(text))
    }

    /// Handles a stream's start and end. Returns a warning if the stream had no metadata.
    pub(crate) fn handle(&mut self, event: &gst::EventRef) -> Option<Warning> {
        match event.view() {
            gst::EventView::StreamStart(_) => self.missing_meta = MissingMetaCounter::default(),
            gst::EventView::Eos(_) if self.missing_meta.end() => {
                return Some(Warning::MissingMeta);
            }
            _ => (),
        }
        None
    }
}

impl Warning {
    /// The problem and its remedy. The caller must hold no lock, because other elements are asked.
    pub(crate) fn text(self, element: &impl IsA<gst_base::BaseTransform>) -> String {
        match self {
            Self::MissingMeta => meta::remedy(Some(element.src_pad())).to_owned(),
            Self::Frame(why) => why,
        }
    }
}

/// Format of the frames of a stream.
#[derive(Debug)]
pub(crate) struct FrameFormat {
    pub info: VideoInfo,
    layout: Layout,
}

impl FrameFormat {
    /// The format of `caps`; `None` if such frames cannot be drawn into.
    pub(crate) fn of(caps: &gst::CapsRef) -> Option<Self> {
        let info = VideoInfo::from_caps(caps).ok()?;
        // The other views would stay as they are.
        if info.multiview_mode() == VideoMultiviewMode::Separated {
            return None;
        }
        let layout = video::layout(info.format())?;
        Some(Self { info, layout })
    }

    /// Calls `draw` with a canvas over the frame in `buffer`.
    ///
    /// # Errors
    /// Returns an error if the buffer cannot be mapped for writing, or does not hold a frame of this
    /// format, and the error of `draw`.
    pub(crate) fn draw_into(
        &self,
        buffer: &mut gst::BufferRef,
        draw: impl FnOnce(&mut Canvas) -> Result<(), OutOfMemory>,
    ) -> Result<(), DrawingError> {
        let Self { info, layout } = self;
        video::check_meta(buffer, info)?;
        let size = buffer.size();
        let mut frame = VideoFrameRef::from_buffer_ref_writable(buffer, info)
            .map_err(|_| DrawingError::Map(size, info.clone().into()))?;
        let sizes = (0..frame.n_planes() as usize).map(|plane| plane_size(&frame, plane));
        let sizes: Vec<_> = sizes.collect::<Result<_, _>>()?;
        let (width, height) = (frame.width() as usize, frame.height() as usize);
        let colorimetry = video::colorimetry(frame.info());
        let planes = std::iter::zip(frame.planes_data_mut(), sizes);
        let planes = planes.map(|(data, (stride, available))| {
            // The last row may be shorter than a stride, at the end of the memory.
            let end = available.min(data.len());
            let data = &mut data[..end];
            PlaneMut { data, stride }
        });
        let mut canvas = Canvas::new((width, height), layout, colorimetry, planes.collect())?;
        Ok(draw(&mut canvas)?)
    }
}

/// Bytes from row to row, and the bytes that are available. Checks that the plane's size fits 32
/// bits, since `planes_data_mut` computes it with 32 bits.
fn plane_size(
    frame: &VideoFrameRef<&mut gst::BufferRef>,
    plane: usize,
) -> Result<(usize, usize), DrawingError> {
    let stride = frame.plane_stride()[plane];
    let rows = frame.plane_height(plane as u32);
    let bytes = u32::try_from(stride).ok().and_then(|s| s.checked_mul(rows));
    bytes
        .map(|_| (stride as usize, video::available_bytes(frame, plane)))
        .ok_or(DrawingError::Stride { plane, stride })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPTED: &str = "RGB BGR RGBx BGRx xRGB xBGR RGBA BGRA ARGB ABGR RGB15 RGB16 GBR GRAY8 GRAY16_LE NV12 \
        NV21 NV16 NV24 I420 YV12 Y42B Y444 Y41B YUY2 UYVY YVYU AYUV VUYA A420 I420_10LE I420_10BE I422_10LE Y444_12LE \
        P010_10LE P016_LE ARGB64 RGBA64_BE";

    const REFUSED: &str = "v210 v216 VYUY BGR15 BGR16 UYVP r210 NV12_10LE32 NV12_10LE40 NV16_10LE32 RGB10A2_LE \
        BGR10A2_LE Y410 Y412_LE Y210 Y212_BE IYU1 GRAY10_LE32 RGB8P NV12_4L4 NV12_64Z32";

    #[test]
    fn formats_with_addressable_samples_are_accepted() {
        gst::init().expect("GStreamer");
        let caps = caps();
        for (names, is_accepted) in [(ACCEPTED, true), (REFUSED, false)] {
            for name in names.split_whitespace() {
                let frame = gst::Caps::builder("video/x-raw")
                    .field("format", name)
                    .build();
                assert_eq!(caps.can_intersect(&frame), is_accepted, "{name}");
            }
        }
    }
}
