// SPDX-License-Identifier: MPL-2.0
//! The resampler: turns a rotated rectangle of any [`ImageView`] into the input of a network.
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
//!     rows: None,
//! };
//! let mut tensor = vec![0.0; crop.len()];
//! let image_from_tensor = crop.sample(&image, &mut tensor).unwrap();
//! assert_eq!(image_from_tensor.apply(Point::new(0.0, 4.0)), Point::new(0.0, 0.0));
//! ```
//!
//! # Compatibility
//! The corners of the rectangle are the corners (0, 0) and (width, height) of the tensor, and whole
//! coordinates are pixel *indices* on both sides: tensor element (0, 0) shows the image at the
//! rectangle's first corner. MediaPipe calls OpenCV's `warpPerspective` in this way
//! (`image_to_tensor_converter_opencv.cc`). The rounding is the same: positions to the nearest 1/32
//! pixel (ties to even), interpolated colors to the nearest of 256 levels (ties up), then the
//! linear map from 0…255 to the value range. For RGB the result equals OpenCV's, except at
//! positions within the rounding error of a tie between two 32nds.
//!
//! Y′CbCr formats are interpolated in Y′CbCr and converted once per tensor element, with the
//! arithmetic of GStreamer's `videoconvert`: sampled one to one, a frame equals the output of
//! `videoconvert ! video/x-raw,format=RGB` (in GStreamer 1.22 to the bit). Therefore NV12, NV21,
//! YUY2 and UYVY interpolate chroma from its position in the caps, I420 and YV12 repeat it, and the
//! range of RGB codes is ignored. There are two differences: chroma on upper luma rows
//! (`v-cosited`) is interpolated, unlike in `videoconvert`, and all frames are treated as
//! progressive.

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
use super::memory::OutOfMemory;
use grid::Grid;

pub use luma::{cells, luma};

/// Channels of every tensor: red, green, blue.
pub const CHANNELS: usize = 3;

/// A part of an image, and the form of its tensor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crop {
    /// The part, in image pixels. It may reach outside the image.
    pub roi: RotatedRect,
    /// Tensor columns.
    pub width: usize,
    /// Tensor rows.
    pub height: usize,
    /// Values of black and white.
    pub range: ValueRange,
    /// Color outside the window.
    pub border: Border,
    /// Order of the tensor's elements.
    pub layout: Layout,
    /// Rounding of interpolated colors.
    pub levels: Levels,
    /// The pixels to read, as if the image had no others; `None` for all.
    pub window: Option<Window>,
    /// Rows of the tensor to fill, from the top on. The others keep their values. `None` for all.
    pub rows: Option<usize>,
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

    /// The stored pixels of the window. A row has `columns` stored columns; a displayed column
    /// spans `scale` of them.
    fn stored(self, scale: f64, columns: usize) -> Self {
        let x = (self.x as f64 * scale).floor() as usize;
        let end = (((self.x + self.width) as f64 * scale).ceil() as usize).min(columns);
        Self {
            x,
            width: end - x,
            ..self
        }
    }

    /// Returns true if the window has pixels, all of them in `image`.
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

    /// Creates a range that is the same in every channel.
    pub const fn between(min: f32, max: f32) -> Self {
        Self {
            min: [min; CHANNELS],
            max: [max; CHANNELS],
        }
    }

    /// Values of 0…1 minus `mean`, divided by `deviation`.
    pub const fn normalized(mean: [f32; CHANNELS], deviation: [f32; CHANNELS]) -> Self {
        let ([r, g, b], [dr, dg, db]) = (mean, deviation);
        Self {
            min: [-r / dr, -g / dg, -b / db],
            max: [(1.0 - r) / dr, (1.0 - g) / dg, (1.0 - b) / db],
        }
    }
}

/// Rounding of interpolated colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Levels {
    /// Rounding to the 256 levels of 8-bit samples, like OpenCV for an image of bytes.
    Whole,
    /// No rounding, like OpenCV for an image of floats. Colors of Y′CbCr formats are still whole
    /// levels, since they are converted like `videoconvert` does.
    Exact,
}

/// Color outside a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Border {
    /// The nearest pixel of the window.
    Replicate,
    /// Black, with a transition over one pixel.
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

/// Error in sampling a crop.
#[derive(Debug, Error, PartialEq)]
pub enum SampleError {
    /// The rectangle is empty or not finite.
    #[error("a region needs finite coordinates and sides above 0, not {0:?}")]
    Region(RotatedRect),
    /// The rectangle extends beyond the precision of `f32`.
    #[error("the region {0:?} extends beyond ±{FARTHEST} pixels")]
    TooFar(RotatedRect),
    /// The window is empty or reaches beyond the image.
    #[error("{0:?} is not a part of the image")]
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
    /// The system has too little memory to unpack the image.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

/// Maximum coordinate of a region, px: 2²⁴, beyond which `f32` has no odd numbers.
pub const FARTHEST: f64 = 16_777_216.0;

impl Crop {
    /// A planar tensor of `size` columns and rows, with whole levels and without a window.
    pub fn planar(
        roi: RotatedRect,
        [width, height]: [usize; 2],
        range: ValueRange,
        border: Border,
    ) -> Self {
        Self {
            roi,
            width,
            height,
            range,
            border,
            layout: Layout::Planar,
            levels: Levels::Whole,
            window: None,
            rows: None,
        }
    }

    /// Rows to fill.
    fn filled_rows(&self) -> usize {
        self.rows.unwrap_or(self.height).min(self.height)
    }

    /// Elements of the tensor.
    pub fn len(&self) -> usize {
        self.width * self.height * CHANNELS
    }

    /// Returns true if the tensor has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `tensor`, or its first rows, with the region of `image`. Returns `image_from_tensor`,
    /// the transform from tensor pixels (column, row) to image pixels.
    ///
    /// # Errors
    /// Returns an error if the region is empty, not finite or beyond [`FARTHEST`], if the window is
    /// not a part of the image, if `tensor` does not have [`Crop::len`] elements, or if there is too
    /// little memory.
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
        kernel::fill(image, self, &grid.stored(scale), &stored, tensor)?;
        Ok(grid.image_from_tensor())
    }
}
