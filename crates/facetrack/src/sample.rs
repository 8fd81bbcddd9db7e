// SPDX-License-Identifier: MPL-2.0
//! The one resampler: a rotated rectangle of any [`ImageView`] becomes a network's input.
//!
//! ```
//! use facetrack::geometry::{Point, RotatedRect, Size};
//! use facetrack::image::ImageView;
//! use facetrack::sample::{Border, Crop, Layout, Levels, ValueRange};
//!
//! let pixels = [200u8; 8 * 4 * 3];
//! let image = ImageView::rgb(8, 4, &pixels).unwrap();
//! let crop = Crop {
//!     roi: RotatedRect { center: Point::new(4.0, 2.0), size: Size::new(8.0, 8.0), rotation: 0.0 },
//!     width: 16,
//!     height: 16,
//!     range: ValueRange::UNIT,
//!     border: Border::Black,
//!     layout: Layout::Planar,
//!     levels: Levels::Whole,
//!     window: None,
//! };
//! let mut tensor = vec![0.0; crop.len()];
//! let image_from_tensor = crop.sample(&image, &mut tensor).unwrap();
//! assert_eq!(image_from_tensor.apply(Point::new(0.0, 4.0)), Point::new(0.0, 0.0));
//! ```
//!
//! # What is compatible with what
//! The corners of the rectangle are the corners (0, 0) and (width, height) of the tensor, and whole coordinates are pixel
//! *indices* on both sides: tensor element (0, 0) shows the image at the rectangle's first corner. That is how MediaPipe
//! calls OpenCV's `warpPerspective` (`image_to_tensor_converter_opencv.cc`), and so are the roundings: positions to the
//! nearest 1/32 pixel (ties to even), interpolated colours to the nearest of 256 levels (ties up), then the linear map
//! from 0…255 to the value range. On RGB the result equals OpenCV's, but for positions that lie within the arithmetic's
//! noise of a tie between two 32nds.
//!
//! Y′CbCr formats are interpolated as they are and converted once per tensor element, with the arithmetic of GStreamer's
//! `videoconvert`: sampled one to one, a frame is what `videoconvert ! video/x-raw,format=RGB` makes of it (GStreamer 1.22:
//! to the bit). So NV12, NV21, YUY2 and UYVY interpolate chroma from where the caps place it, I420 and YV12 repeat it, and
//! RGB codes are shown as they are whatever their range. Two departures: samples on upper luma rows (`v-cosited`) are
//! interpolated, which `videoconvert` leaves out, and frames are taken as progressive.

pub(crate) mod color;
mod grid;
mod kernel;
mod level;
mod luma;
mod picture;
#[expect(
    clippy::needless_range_loop,
    reason = "one index runs through several arrays: the form that compiles to SIMD"
)]
mod source;

use thiserror::Error;

use super::geometry::{Affine, RotatedRect};
use super::image::ImageView;
use grid::Grid;

pub use luma::luma;

/// Channels of every tensor: red, green, blue.
pub const CHANNELS: usize = 3;

/// Which part of an image to show in which form.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crop {
    /// The part, in image pixels. It may reach outside the image.
    pub roi: RotatedRect,
    /// Tensor columns.
    pub width: usize,
    /// Tensor rows.
    pub height: usize,
    /// What black and white become.
    pub range: ValueRange,
    /// What lies outside the window.
    pub border: Border,
    /// Order of the tensor's elements.
    pub layout: Layout,
    /// How finely colours between pixels are told apart.
    pub levels: Levels,
    /// The pixels that are looked at, as if the image had no others; `None` for all.
    pub window: Option<Window>,
}

/// Whole pixels of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First column.
    pub x: usize,
    /// First row.
    pub y: usize,
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Window {
    /// All pixels of `image`.
    pub fn whole(image: &ImageView) -> Self {
        Self {
            x: 0,
            y: 0,
            width: image.width(),
            height: image.height(),
        }
    }

    /// The stored pixels that it shows, of `columns` in a row, where a displayed column spans
    /// `scale` of them.
    fn stored(self, scale: f64, columns: usize) -> Self {
        let x = (self.x as f64 * scale).floor() as usize;
        let end = (((self.x + self.width) as f64 * scale).ceil() as usize).min(columns);
        Self {
            x,
            width: end - x,
            ..self
        }
    }

    /// Whether it has pixels, all of them in `image`.
    fn is_in(&self, image: &ImageView) -> bool {
        let fits = |first: usize, count: usize, all: usize| {
            count > 0 && first.checked_add(count).is_some_and(|end| end <= all)
        };
        fits(self.x, self.width, image.width()) && fits(self.y, self.height, image.height())
    }
}

/// The values of black and white in each channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueRange {
    /// Black.
    pub min: [f32; CHANNELS],
    /// White.
    pub max: [f32; CHANNELS],
}

impl ValueRange {
    /// 0…1.
    pub const UNIT: Self = Self::between(0.0, 1.0);
    /// −1…1.
    pub const SIGNED: Self = Self::between(-1.0, 1.0);
    /// 0…255.
    pub const BYTE: Self = Self::between(0.0, 255.0);

    /// The same in every channel.
    pub const fn between(min: f32, max: f32) -> Self {
        Self {
            min: [min; CHANNELS],
            max: [max; CHANNELS],
        }
    }

    /// Values of 0…1 less their mean, in standard deviations.
    pub const fn normalized(mean: [f32; CHANNELS], deviation: [f32; CHANNELS]) -> Self {
        let ([r, g, b], [dr, dg, db]) = (mean, deviation);
        Self {
            min: [-r / dr, -g / dg, -b / db],
            max: [(1.0 - r) / dr, (1.0 - g) / dg, (1.0 - b) / db],
        }
    }
}

/// How finely interpolated colours are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Levels {
    /// The 256 levels of 8-bit samples, as OpenCV has it of an image of bytes.
    Whole,
    /// Without rounding, as OpenCV has it of an image of floats. Colours of Y′CbCr formats are whole levels nevertheless,
    /// since their conversion is `videoconvert`'s.
    Exact,
}

/// What the plane around a window looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Border {
    /// The nearest pixel of the window.
    Replicate,
    /// Black, blending over one pixel.
    Black,
}

/// Order of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Channel, row, column.
    Planar,
    /// Row, column, channel.
    Interleaved,
}

/// Why a crop cannot be taken.
#[derive(Debug, Error, PartialEq)]
pub enum SampleError {
    /// The rectangle is empty or has no place.
    #[error("a region needs finite coordinates and sides above 0, not {0:?}")]
    Region(RotatedRect),
    /// The rectangle reaches where `f32` no longer tells pixels apart.
    #[error("the region {0:?} reaches beyond ±{FARTHEST} pixels")]
    TooFar(RotatedRect),
    /// The window is empty or reaches beyond the image.
    #[error("{0:?} is no part of the image")]
    Window(Window),
    /// The tensor has another length.
    #[error("a tensor of {width}×{height}×{CHANNELS} has {expected} elements, not {actual}")]
    TensorLength {
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
        /// Elements needed.
        expected: usize,
        /// Elements given.
        actual: usize,
    },
}

/// Largest coordinate, in pixels, that a region may reach: 2²⁴, where `f32` loses the ones.
pub const FARTHEST: f64 = 16_777_216.0;

impl Crop {
    /// Elements of the tensor.
    pub fn len(&self) -> usize {
        self.width * self.height * CHANNELS
    }

    /// Whether the tensor has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `tensor` with what `image` shows in the region, and returns `image_from_tensor`, which takes tensor pixels
    /// (column, row) to image pixels.
    ///
    /// # Errors
    /// When the region is empty, not finite or absurdly far away, the window no part of the image, or `tensor` has not
    /// [`Crop::len`] elements.
    pub fn sample(&self, image: &ImageView, tensor: &mut [f32]) -> Result<Affine, SampleError> {
        let scale = image.column_scale();
        let grid = Grid::new(&self.roi, self.width, self.height, scale)?;
        if tensor.len() != self.len() {
            return Err(SampleError::TensorLength {
                width: self.width,
                height: self.height,
                expected: self.len(),
                actual: tensor.len(),
            });
        }
        let window = self.window.unwrap_or(Window::whole(image));
        if !window.is_in(image) {
            return Err(SampleError::Window(window));
        }
        let stored = window.stored(scale, image.stored_size()[0]);
        kernel::fill(image, self, &grid.stored(scale), &stored, tensor);
        Ok(grid.image_from_tensor())
    }
}
