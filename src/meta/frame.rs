// SPDX-License-Identifier: MPL-2.0
//! Finds the position of the analysed picture in the current frame.
//!
//! GStreamer uses the tags of metadata to decide how an element treats it. All metadata is
//! transformed on a copy; metadata whose tags depend on the picture's size is transformed on
//! scaling and conversion too, and dropped by elements that crop or rotate the picture. The record
//! has no tags, so every element keeps it. A second `GstCustomMeta` with tags accompanies it as a
//! witness: as long as it is present, the picture was only copied, converted or scaled.

use gst::glib;
use gst::meta::{CustomMeta, MetaTag, MetaTransform, MetaTransformCopy};
use gst_video::video_meta::{VideoMetaTransformScale, tags};
use gst_video::{VideoCropMeta, VideoInfo};
use thiserror::Error;

use super::MetaError;
use super::fields::{Fields, Scale, malformed};

/// The name under which the witness is registered.
pub(super) const WITNESS: &str = "FaceTrackFrame";

/// Field of the witness: an element has announced that it scaled or converted the picture.
const SCALED: &str = "scaled";

/// The record's field for the shape of the analysed pixels.
pub(super) const PIXEL_ASPECT_RATIO: &str = "pixel-aspect-ratio";

/// Treatment of a picture whose aspect ratio differs from the output frame of a scaler.
///
/// Metadata does not contain this, so a reader has to know it. It makes no difference if the aspect
/// ratios are the same, which is always the case if the caps do not fix the pixel aspect ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// The picture keeps its aspect ratio and gets black borders: `videoscale` with its default
    /// `add-borders=true`. Several such elements in a row count as one.
    Borders,
    /// The picture is stretched over the frame: `videoscale add-borders=false`.
    Stretch,
}

/// Reasons why the positions of faces in a frame are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Stale {
    /// An element dropped the metadata that depends on the picture's size: it cropped, rotated or
    /// redrew the picture.
    #[error("an element after the analysis cropped, rotated or redrew the picture")]
    Remade,
    /// A `GstVideoCropMeta` limits the frame to a part of the picture in memory.
    #[error("an element after the analysis cropped the picture")]
    Cropped,
    /// The frame's caps have no size, as with some encoded video.
    #[error("the caps do not contain the size of the frame")]
    Unsized,
    /// The frame has another size, and no element announced that it scaled the picture.
    #[error(
        "the frame is {width}×{height}, and no element announced that it scaled the analysed picture"
    )]
    Resized {
        /// Width of the frame, px.
        width: u32,
        /// Height of the frame, px.
        height: u32,
    },
}

/// Size of a frame and the shape of its pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameShape {
    /// Width, px.
    pub width: u32,
    /// Height, px.
    pub height: u32,
    /// Width of a pixel by its height; 1/1 where it is not positive.
    pub pixel_aspect_ratio: gst::Fraction,
}

impl From<&VideoInfo> for FrameShape {
    fn from(info: &VideoInfo) -> Self {
        Self {
            width: info.width(),
            height: info.height(),
            pixel_aspect_ratio: info.par(),
        }
    }
}

impl FrameShape {
    /// Creates a shape with square pixels.
    pub fn square(width: u32, height: u32) -> Self {
        Self {
            width,
            height,
            pixel_aspect_ratio: gst::Fraction::new(1, 1),
        }
    }

    /// Width of a pixel divided by its height; `None` for square pixels.
    pub fn pixel_stretch(self) -> Option<f64> {
        let ratio = self.sound_ratio();
        let stretch = f64::from(ratio.numer()) / f64::from(ratio.denom());
        (stretch != 1.0).then_some(stretch)
    }

    /// Returns the shape of the analysed frame.
    pub(super) fn from_record(record: Fields<'_>) -> Result<Self, MetaError> {
        let ratio = record.optional(PIXEL_ASPECT_RATIO, Fields::get::<gst::Fraction>)?;
        let shape = Self {
            pixel_aspect_ratio: ratio.unwrap_or(gst::Fraction::new(1, 1)),
            ..Self::square(record.positive("width")?, record.positive("height")?)
        };
        let is_sound = shape.sound_ratio() == shape.pixel_aspect_ratio;
        is_sound
            .then_some(shape)
            .ok_or_else(|| malformed(PIXEL_ASPECT_RATIO))
    }

    /// The pixel aspect ratio, or 1/1 if the caps have an invalid one.
    pub(super) fn sound_ratio(self) -> gst::Fraction {
        let ratio = Some(self.pixel_aspect_ratio);
        let ratio = ratio.filter(|ratio| ratio.numer() > 0 && ratio.denom() > 0);
        ratio.unwrap_or(gst::Fraction::new(1, 1))
    }

    pub(super) fn scale(self) -> Scale {
        Scale::of(self.width, self.height)
    }

    /// The position of the picture of this shape in the frame of `buffer`, which has the caps of
    /// `frame`.
    pub(super) fn placed(
        self,
        buffer: &gst::BufferRef,
        frame: &VideoInfo,
        fit: Fit,
    ) -> Result<Scale, Stale> {
        let (width, height) = (frame.width(), frame.height());
        let scaled = was_scaled(buffer).ok_or(Stale::Remade)?;
        // Cropping is relative to the memory, not to the caps.
        if buffer.meta::<VideoCropMeta>().is_some() {
            return Err(Stale::Cropped);
        }
        if !scaled && (width, height) == (self.width, self.height) {
            return Ok(self.scale());
        }
        if width == 0 || height == 0 {
            return Err(Stale::Unsized);
        }
        if !scaled {
            return Err(Stale::Resized { width, height });
        }
        Ok(match fit {
            Fit::Borders => self.between_borders(frame.into()),
            Fit::Stretch => Scale::of(width, height),
        })
    }

    /// Computes the borders like `gst_video_convert_scale_set_info` of GStreamer's
    /// `gstvideoconvertscale.c`. The converter then moves the picture to a whole chroma sample,
    /// which is not reproduced: by up to one pixel, or three with 4:1:1.
    pub(super) fn between_borders(self, frame: Self) -> Scale {
        let (width, height) = (u128::from(frame.width), u128::from(frame.height));
        let [across, up] = terms(self);
        let [frame_across, frame_up] = terms(frame);
        // The picture's width by its height, in the frame's pixels.
        let shape_width = u128::from(self.width) * across * frame_up;
        let shape_height = u128::from(self.height) * up * frame_across;
        let fitting_height = width * shape_height / shape_width;
        let (inner_width, inner_height) = if fitting_height <= height {
            (width, fitting_height)
        } else {
            (height * shape_width / shape_height, height)
        };
        Scale {
            left: ((width - inner_width) / 2) as f64,
            top: ((height - inner_height) / 2) as f64,
            x: inner_width as f64,
            y: inner_height as f64,
        }
    }
}

/// Width and height of a pixel.
fn terms(shape: FrameShape) -> [u128; 2] {
    let ratio = shape.sound_ratio();
    [ratio.numer(), ratio.denom()].map(|term| u128::from(term.unsigned_abs()))
}

/// Makes the witness known to GStreamer.
pub(super) fn register() {
    if CustomMeta::is_registered(WITNESS) {
        return;
    }
    let (video, size) = (tags::Video::TAG_NAME, tags::Size::TAG_NAME);
    let tags = [video, size, tags::Orientation::TAG_NAME].map(|tag| tag.as_str());
    CustomMeta::register_with_transform(WITNESS, &tags, follow);
}

/// Copies the witness to the buffer `to` of an element. From GStreamer 1.28 on, an element may
/// offer a matrix, even for a rotation or a crop. If the matrix is refused, the element offers the
/// scale if it only scales; otherwise it drops the witness.
fn follow(
    to: &mut gst::BufferRef,
    witness: &CustomMeta,
    _: &gst::BufferRef,
    how: glib::Quark,
) -> bool {
    let scales = how == VideoMetaTransformScale::quark();
    if !scales && how != MetaTransformCopy::quark() {
        return false;
    }
    let scaled = witness.structure().get(SCALED).unwrap_or(true);
    attach(to, scaled || scales).is_ok()
}

/// Marks a buffer as the frame that was analysed, or as the same picture in another size.
pub(super) fn attach(buffer: &mut gst::BufferRef, scaled: bool) -> Result<(), glib::BoolError> {
    let mut witness = CustomMeta::add(buffer, WITNESS)?;
    witness.mut_structure().set(SCALED, scaled);
    Ok(())
}

/// Returns true if the picture was scaled or converted; `None` if it may have been changed in
/// another way.
fn was_scaled(buffer: &gst::BufferRef) -> Option<bool> {
    let witness = CustomMeta::from_buffer(buffer, WITNESS).ok()?;
    witness.structure().get(SCALED).ok()
}
