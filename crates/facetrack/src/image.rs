// SPDX-License-Identifier: MPL-2.0
//! Borrowed images in the layout of the frame.

mod layout;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

pub(crate) use self::layout::MAX_SUBSAMPLING;
pub use self::layout::{ColorModel, Component, Layout, Word};

/// Maximum number of bytes from a sample to the next; raw formats have up to eight.
pub(crate) const MAX_STEP: usize = 12;

/// Common pixel formats, with GStreamer's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PixelFormat {
    /// 3 bytes per pixel.
    Rgb,
    /// 3 bytes per pixel, blue first.
    Bgr,
    /// 4 bytes per pixel, the last is ignored (alpha or padding).
    Rgbx,
    /// 4 bytes per pixel, blue first, the last is ignored.
    Bgrx,
    /// 4 bytes per pixel, the first is ignored.
    Xrgb,
    /// 4 bytes per pixel, the first is ignored, blue second.
    Xbgr,
    /// 1 byte per pixel.
    Gray8,
    /// Planar luma, interleaved U V at half size.
    Nv12,
    /// Planar luma, interleaved V U at half size.
    Nv21,
    /// Planar Y, U, V; chroma at half size.
    I420,
    /// Planar Y, V, U; chroma at half size.
    Yv12,
    /// Packed Y U Y V; chroma at half width.
    Yuy2,
    /// Packed U Y V Y; chroma at half width.
    Uyvy,
}

/// Weights for the conversion between Y′CbCr and R′G′B′.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorMatrix {
    /// ITU-R BT.601.
    #[default]
    Bt601,
    /// ITU-R BT.709.
    Bt709,
    /// ITU-R BT.2020, non-constant luminance.
    Bt2020,
    /// FCC 73.682.
    Fcc,
    /// SMPTE 240M.
    Smpte240m,
}

/// Codes of black and white.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorRange {
    /// Luma 16…235, chroma 16…240.
    #[default]
    Limited,
    /// 0…255.
    Full,
}

impl ColorMatrix {
    /// Weights of red and blue in luma; ITU-R BT.601-7, BT.709-6, BT.2020-2; the others as in
    /// `gst_video_color_matrix_get_Kr_Kb`.
    pub(crate) fn luma_weights(self) -> (f64, f64) {
        match self {
            Self::Bt601 => (0.299, 0.114),
            Self::Bt709 => (0.2126, 0.0722),
            Self::Bt2020 => (0.2627, 0.0593),
            Self::Fcc => (0.30, 0.11),
            Self::Smpte240m => (0.212, 0.087),
        }
    }

    /// Weights of Cr in red, of Cb and Cr in green, and of Cb in blue:
    /// R = Y + 2(1−Kr)·V, B = Y + 2(1−Kb)·U, and G such that Y = Kr·R + Kg·G + Kb·B.
    pub(crate) fn chroma_weights(self) -> [f64; 4] {
        let (kr, kb) = self.luma_weights();
        let kg = 1.0 - kr - kb;
        [
            2.0 * (1.0 - kr),
            -2.0 * (1.0 - kb) * kb / kg,
            -2.0 * (1.0 - kr) * kr / kg,
            2.0 * (1.0 - kb),
        ]
    }
}

impl ColorRange {
    /// The code of black, and the number of codes from black to white, for luma of `depth` bits;
    /// ITU-R BT.601-7 and BT.2100-2.
    pub(crate) fn luma_span(self, depth: u32) -> (f64, f64) {
        let unit = libm::exp2(f64::from(depth) - 8.0);
        match self {
            Self::Limited => (16.0 * unit, 219.0 * unit),
            Self::Full => (0.0, libm::exp2(f64::from(depth)) - 1.0),
        }
    }

    /// The number of codes from the lowest to the highest chroma of `depth` bits; ITU-R BT.601-7
    /// and BT.2100-2.
    pub(crate) fn chroma_span(self, depth: u32) -> f64 {
        match self {
            Self::Limited => 224.0 * libm::exp2(f64::from(depth) - 8.0),
            Self::Full => libm::exp2(f64::from(depth)) - 1.0,
        }
    }
}

/// Position of chroma samples between luma samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChromaSite {
    /// Chroma samples are on the left luma column instead of between two columns.
    pub horizontally_cosited: bool,
    /// Chroma samples are on the upper luma row instead of between two rows.
    pub vertically_cosited: bool,
}

/// Meaning of an image's codes. Ignored for RGB formats; gray formats use only the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Colorimetry {
    /// Weights.
    pub matrix: ColorMatrix,
    /// Black and white.
    pub range: ColorRange,
    /// Chroma position.
    pub chroma_site: ChromaSite,
}

/// One plane of an image.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plane<'a> {
    /// The bytes, from the first row on.
    pub data: &'a [u8],
    /// Bytes from one row to the next, at least a row's bytes.
    pub stride: usize,
}

/// Arithmetic with which colors are computed from samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    /// The 8-bit arithmetic of GStreamer's `videoconvert`, for the common formats.
    Bytes,
    /// Floating point, rounded once.
    Floats,
}

/// The format of an image.
#[derive(Debug, Clone)]
pub enum Pixels<'a> {
    /// A format whose samples are at regular distances.
    Samples(Cow<'a, Layout>, Arithmetic),
    /// A format without regular distances: the owner of the frame unpacks its rows.
    Rows(Arc<dyn PixelRows + 'a>),
}

/// Unpacked rows are padded to a multiple of this number of pixels, since [`PixelRows::unpack`] may
/// write whole words of several pixels. GStreamer's v210 has the longest groups.
pub const ROW_GROUP: usize = 48;

/// The rows of a frame that only its owner can read.
pub trait PixelRows: fmt::Debug + Send + Sync {
    /// Layout of unpacked pixels: one plane, no subsampling.
    fn layout(&self) -> &Layout;

    /// Unpacks the rows whose indices are in `rows` into `picture`. Row `y` of the frame starts at
    /// byte `y`·`stride` of the picture, and a row has room for a multiple of [`ROW_GROUP`] pixels.
    fn unpack(&self, rows: &mut dyn Iterator<Item = usize>, stride: usize, picture: &mut [u8]);
}

/// A frame that the caller owns, read in place.
///
/// All rows of all planes are inside their slices: [`ImageView::new`] checks it.
///
/// [`ImageView::width`], [`ImageView::height`] and all coordinates count square pixels, as
/// displayed. If stored pixels are not square, a displayed column spans [`ImageView::column_scale`]
/// stored columns; rows are the same.
#[derive(Debug, Clone)]
pub struct ImageView<'a> {
    pixels: Pixels<'a>,
    stored_size: [usize; 2],
    width: usize,
    colorimetry: Colorimetry,
    planes: [Plane<'a>; MAX_PLANES],
}

/// Maximum number of planes with colors.
const MAX_PLANES: usize = 3;

/// Maximum number of bytes of a plane, whose offsets have 32 bits. 16384×16384 pixels of 4 bytes
/// have a quarter of it.
const MAX_PLANE_BYTES: usize = u32::MAX as usize;

/// Error in the creation of an image.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageError {
    /// A side is zero.
    #[error("an image of {width}×{height} pixels is empty")]
    Empty {
        /// Pixels per row.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// A component of the layout is not supported, or its plane does not exist.
    #[error("component {index} of the format has a layout that cannot be read")]
    Component {
        /// Index of the component.
        index: usize,
    },
    /// The number of planes is wrong.
    #[error("the format has {expected} planes, not {actual}")]
    PlaneCount {
        /// Number of planes of the format.
        expected: usize,
        /// Number of planes given.
        actual: usize,
    },
    /// A plane is shorter than its rows.
    #[error(
        "plane {plane} holds {actual} bytes with a stride of {stride}; {rows} rows of {row_bytes} bytes do not fit"
    )]
    PlaneTooSmall {
        /// Index of the plane.
        plane: usize,
        /// Bytes of its slice.
        actual: usize,
        /// Bytes from row to row.
        stride: usize,
        /// Rows needed.
        rows: usize,
        /// Bytes a row needs.
        row_bytes: usize,
    },
    /// The rows of a plane span too many bytes.
    #[error("plane {plane} spans {bytes} bytes; the maximum is {MAX_PLANE_BYTES}")]
    PlaneTooLarge {
        /// Index of the plane.
        plane: usize,
        /// Bytes it spans.
        bytes: usize,
    },
}

impl PixelFormat {
    /// The positions of the samples.
    pub fn layout(self) -> Layout {
        use PixelFormat::*;
        let rgb = |step, offsets: [usize; 3]| {
            let components = offsets.map(|offset| Component::byte(0, offset, step, [0, 0]));
            Layout::new(ColorModel::Rgb, components)
        };
        // Plane, offset and step of Cb and Cr.
        let yuv = |luma, chroma: [[usize; 3]; 2], subsampling| {
            let [cb, cr] = chroma.map(|[p, o, s]| Component::byte(p, o, s, subsampling));
            Layout::new(ColorModel::Yuv, [luma, cb, cr])
        };
        let planar = Component::byte(0, 0, 1, [0, 0]);
        let packed = |offset| Component::byte(0, offset, 2, [0, 0]);
        match self {
            Rgb => rgb(3, [0, 1, 2]),
            Bgr => rgb(3, [2, 1, 0]),
            Rgbx => rgb(4, [0, 1, 2]),
            Bgrx => rgb(4, [2, 1, 0]),
            Xrgb => rgb(4, [1, 2, 3]),
            Xbgr => rgb(4, [3, 2, 1]),
            Gray8 => Layout::new(ColorModel::Gray, [planar]),
            Nv12 => yuv(planar, [[1, 0, 2], [1, 1, 2]], [1, 1]),
            Nv21 => yuv(planar, [[1, 1, 2], [1, 0, 2]], [1, 1]),
            I420 => yuv(planar, [[1, 0, 1], [2, 0, 1]], [1, 1]),
            Yv12 => yuv(planar, [[2, 0, 1], [1, 0, 1]], [1, 1]),
            Yuy2 => yuv(packed(0), [[0, 1, 4], [0, 3, 4]], [1, 0]),
            Uyvy => yuv(packed(1), [[0, 0, 4], [0, 2, 4]], [1, 0]),
        }
    }

    /// Bytes of a row and number of rows of each plane, for an image of `width`×`height` pixels.
    pub fn plane_layout(self, width: usize, height: usize) -> Vec<(usize, usize)> {
        self.layout().plane_layout(width, height)
    }
}

impl<'a> ImageView<'a> {
    /// A view of `planes` as an image of `width`×`height` square pixels.
    ///
    /// # Errors
    /// Returns an error if a side is zero, or the number or size of the planes does not fit the
    /// format.
    pub fn new(
        format: PixelFormat,
        width: usize,
        height: usize,
        colorimetry: Colorimetry,
        planes: &[Plane<'a>],
    ) -> Result<Self, ImageError> {
        let layout = Cow::Owned(format.layout());
        let size = [width, height];
        Self::of_samples(layout, Arithmetic::Bytes, size, colorimetry, planes)
    }

    /// A view of `planes` as an image of `width`×`height` square pixels in the format that `layout`
    /// describes. [`Arithmetic::Bytes`] is for the layouts of [`PixelFormat`]; other components,
    /// such as alpha, are ignored.
    ///
    /// # Errors
    /// Returns an error if a side is zero, the layout has a component that is unsupported or does
    /// not suit `arithmetic`, or the planes do not fit the layout.
    pub fn with_layout(
        layout: &'a Layout,
        arithmetic: Arithmetic,
        width: usize,
        height: usize,
        colorimetry: Colorimetry,
        planes: &[Plane<'a>],
    ) -> Result<Self, ImageError> {
        let (layout, size) = (Cow::Borrowed(layout), [width, height]);
        Self::of_samples(layout, arithmetic, size, colorimetry, planes)
    }

    fn of_samples(
        layout: Cow<'a, Layout>,
        arithmetic: Arithmetic,
        size: [usize; 2],
        colorimetry: Colorimetry,
        planes: &[Plane<'a>],
    ) -> Result<Self, ImageError> {
        let unfit = || match arithmetic {
            Arithmetic::Bytes => layout.not_of_bytes(),
            Arithmetic::Floats => None,
        };
        if let Some(index) = layout.unreadable().or_else(unfit) {
            return Err(ImageError::Component { index });
        }
        let [width, height] = size;
        let rows = layout.plane_layout(width, height);
        let pixels = Pixels::Samples(layout, arithmetic);
        Self::checked(pixels, size, colorimetry, planes, &rows)
    }

    /// An image of `width`×`height` square pixels that `rows` unpacks.
    ///
    /// # Errors
    /// Returns an error if a side is zero.
    pub fn from_rows(
        rows: Arc<dyn PixelRows + 'a>,
        width: usize,
        height: usize,
        colorimetry: Colorimetry,
    ) -> Result<Self, ImageError> {
        Self::checked(Pixels::Rows(rows), [width, height], colorimetry, &[], &[])
    }

    /// The same image with pixels that are `ratio` times as wide as high. The displayed
    /// width is rounded to whole pixels, as `videoscale` does.
    pub fn with_pixel_aspect_ratio(self, ratio: f64) -> Self {
        let [stored_width, _] = self.stored_size;
        let width = (stored_width as f64 * ratio).round().max(1.0) as usize;
        Self { width, ..self }
    }

    /// `layout` has bytes of a row and number of rows of each plane.
    fn checked(
        pixels: Pixels<'a>,
        [width, height]: [usize; 2],
        colorimetry: Colorimetry,
        planes: &[Plane<'a>],
        layout: &[(usize, usize)],
    ) -> Result<Self, ImageError> {
        if width == 0 || height == 0 {
            return Err(ImageError::Empty { width, height });
        }
        if layout.len() != planes.len() {
            return Err(ImageError::PlaneCount {
                expected: layout.len(),
                actual: planes.len(),
            });
        }
        for (index, (plane, (row_bytes, rows))) in planes.iter().zip(layout).enumerate() {
            let needed = plane
                .stride
                .checked_mul(rows - 1)
                .and_then(|n| n.checked_add(*row_bytes));
            let bytes = needed.filter(|n| *n <= plane.data.len() && plane.stride >= *row_bytes);
            let Some(bytes) = bytes else {
                return Err(ImageError::PlaneTooSmall {
                    plane: index,
                    actual: plane.data.len(),
                    stride: plane.stride,
                    rows: *rows,
                    row_bytes: *row_bytes,
                });
            };
            if bytes > MAX_PLANE_BYTES {
                return Err(ImageError::PlaneTooLarge {
                    plane: index,
                    bytes,
                });
            }
        }
        Ok(Self {
            pixels,
            stored_size: [width, height],
            width,
            colorimetry,
            planes: std::array::from_fn(|index| planes.get(index).copied().unwrap_or_default()),
        })
    }

    /// A tightly packed RGB image of the full range.
    ///
    /// # Errors
    /// Returns an error if `data` is shorter than `width`·`height`·3 bytes or a side is zero.
    pub fn rgb(width: usize, height: usize, data: &'a [u8]) -> Result<Self, ImageError> {
        let plane = Plane {
            data,
            stride: width * 3,
        };
        Self::new(
            PixelFormat::Rgb,
            width,
            height,
            Colorimetry {
                range: ColorRange::Full,
                ..Colorimetry::default()
            },
            &[plane],
        )
    }

    /// The pixels.
    pub fn pixels(&self) -> &Pixels<'a> {
        &self.pixels
    }

    /// Displayed columns, in square pixels.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.stored_size[1]
    }

    /// Columns and rows in memory.
    pub fn stored_size(&self) -> [usize; 2] {
        self.stored_size
    }

    /// Stored columns that a displayed column spans; 1 for square pixels.
    pub fn column_scale(&self) -> f64 {
        self.stored_size[0] as f64 / self.width as f64
    }

    /// Meaning of the codes.
    pub fn colorimetry(&self) -> Colorimetry {
        self.colorimetry
    }

    /// The planes; empty beyond the number that the format has.
    pub fn planes(&self) -> [Plane<'a>; MAX_PLANES] {
        self.planes
    }
}
