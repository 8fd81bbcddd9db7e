// SPDX-License-Identifier: MPL-2.0
//! Borrowed images in the layout that the frame already has.

mod layout;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

pub use self::layout::{ColorModel, Component, Layout, Word};

/// Maximum number of bytes from a sample to the next; raw formats have up to eight.
pub(crate) const MAX_STEP: usize = 12;

/// How the bytes of an image make pixels. Names are GStreamer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PixelFormat {
    /// 3 bytes a pixel.
    Rgb,
    /// 3 bytes a pixel, blue first.
    Bgr,
    /// 4 bytes a pixel, the last is ignored (alpha or padding).
    Rgbx,
    /// 4 bytes a pixel, blue first, the last is ignored.
    Bgrx,
    /// 4 bytes a pixel, the first is ignored.
    Xrgb,
    /// 4 bytes a pixel, the first is ignored, blue second.
    Xbgr,
    /// 1 byte a pixel.
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

/// Which weights turn Y′CbCr into R′G′B′.
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

/// Which codes are black and white.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorRange {
    /// Luma 16…235, chroma 16…240.
    #[default]
    Limited,
    /// 0…255.
    Full,
}

/// Where chroma samples lie between luma samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChromaSite {
    /// On the left luma column instead of between two columns.
    pub horizontally_cosited: bool,
    /// On the upper luma row instead of between two rows.
    pub vertically_cosited: bool,
}

/// What an image's numbers mean as colours. Of no consequence to RGB formats, grey has a range alone.
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
#[derive(Debug, Clone, Copy)]
pub struct Plane<'a> {
    /// The bytes, from the first row on.
    pub data: &'a [u8],
    /// Bytes from one row to the next, at least a row's bytes.
    pub stride: usize,
}

/// How the pixels of an image are read.
#[derive(Debug, Clone)]
pub enum Pixels<'a> {
    /// In one of the common formats, which are read fastest.
    Known(PixelFormat),
    /// In another format whose samples lie at regular distances.
    Samples(&'a Layout),
    /// Row by row, by the owner of the frame: the format has no regular distances.
    Rows(Arc<dyn PixelRows + 'a>),
}

/// The rows of a frame that only its owner can read.
pub trait PixelRows: fmt::Debug + Send + Sync {
    /// How pixels are laid out once they are unpacked: one plane, no subsampling.
    fn layout(&self) -> &Layout;

    /// Unpacks the rows whose indices are in `rows` into `picture`, whose rows are `stride` bytes
    /// apart. Row 0 of the frame is row 0 of the picture.
    fn unpack(&self, rows: &mut dyn Iterator<Item = usize>, stride: usize, picture: &mut [u8]);
}

/// A frame that the caller owns, read in place.
///
/// Every row of every plane is known to lie inside its slice: [`ImageView::new`] checks it.
///
/// An image is seen as it is displayed, in square pixels: [`ImageView::width`],
/// [`ImageView::height`] and all coordinates count those. Where stored pixels have another shape,
/// [`ImageView::column_scale`] says how many stored columns a displayed column spans; rows are the
/// same.
#[derive(Debug, Clone)]
pub struct ImageView<'a> {
    pixels: Pixels<'a>,
    stored_size: [usize; 2],
    width: usize,
    colorimetry: Colorimetry,
    planes: [Plane<'a>; MAX_PLANES],
}

/// Planes that hold colours, at most.
const MAX_PLANES: usize = 3;

/// Bytes that a plane has at most: its offsets are 32 bits wide. The largest frame of GStreamer's common formats,
/// 16384×16384 at 4 bytes a pixel, has a quarter of that.
const MAX_PLANE_BYTES: usize = u32::MAX as usize;

/// Why bytes do not make an image.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ImageError {
    /// A side is zero.
    #[error("an image of {width}×{height} pixels is empty")]
    Empty {
        /// Pixels a row.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// A component of the layout is not what a component can be, or its plane is not there.
    #[error("component {index} of the format is laid out in a way that cannot be read")]
    Component {
        /// Index of the component.
        index: usize,
    },
    /// The format has another number of planes.
    #[error("the format has {expected} planes, {actual} given")]
    PlaneCount {
        /// Planes the format has.
        expected: usize,
        /// Planes given.
        actual: usize,
    },
    /// A plane is shorter than its rows.
    #[error(
        "plane {plane} holds {actual} bytes with a stride of {stride}; {rows} rows of {row_bytes} bytes do not fit"
    )]
    PlaneTooSmall {
        /// Index of the plane.
        plane: usize,
        /// Bytes it holds.
        actual: usize,
        /// Bytes from row to row.
        stride: usize,
        /// Rows needed.
        rows: usize,
        /// Bytes a row needs.
        row_bytes: usize,
    },
    /// A plane's rows are spread over too many bytes.
    #[error("plane {plane} spans {bytes} bytes; {MAX_PLANE_BYTES} are the most")]
    PlaneTooLarge {
        /// Index of the plane.
        plane: usize,
        /// Bytes it spans.
        bytes: usize,
    },
}

impl PixelFormat {
    /// For each plane the bytes of a row and the number of rows of a `width`×`height` image.
    pub fn plane_layout(self, width: usize, height: usize) -> Vec<(usize, usize)> {
        use PixelFormat::*;
        let (half_width, half_height) = (width.div_ceil(2), height.div_ceil(2));
        match self {
            Rgb | Bgr => vec![(width * 3, height)],
            Rgbx | Bgrx | Xrgb | Xbgr => vec![(width * 4, height)],
            Gray8 => vec![(width, height)],
            Nv12 | Nv21 => vec![(width, height), (half_width * 2, half_height)],
            I420 | Yv12 => vec![
                (width, height),
                (half_width, half_height),
                (half_width, half_height),
            ],
            Yuy2 | Uyvy => vec![(half_width * 4, height)],
        }
    }
}

impl<'a> ImageView<'a> {
    /// A view of `planes` as an image of `width`×`height` square pixels.
    ///
    /// # Errors
    /// When a side is zero, or the planes are not those of the format, or too small.
    pub fn new(
        format: PixelFormat,
        width: usize,
        height: usize,
        colorimetry: Colorimetry,
        planes: &[Plane<'a>],
    ) -> Result<Self, ImageError> {
        let layout = format.plane_layout(width, height);
        let pixels = Pixels::Known(format);
        Self::checked(pixels, [width, height], colorimetry, planes, &layout)
    }

    /// A view of `planes` as an image of `width`×`height` square pixels in the format that `layout`
    /// describes.
    ///
    /// # Errors
    /// When a side is zero, the layout has a component that cannot be read, or the planes do not
    /// fit the layout.
    pub fn with_layout(
        layout: &'a Layout,
        width: usize,
        height: usize,
        colorimetry: Colorimetry,
        planes: &[Plane<'a>],
    ) -> Result<Self, ImageError> {
        if let Err(index) = layout.check() {
            return Err(ImageError::Component { index });
        }
        let rows = layout.plane_layout(width, height);
        let pixels = Pixels::Samples(layout);
        Self::checked(pixels, [width, height], colorimetry, planes, &rows)
    }

    /// An image of `width`×`height` square pixels that `rows` unpacks.
    ///
    /// # Errors
    /// When a side is zero.
    pub fn from_rows(
        rows: Arc<dyn PixelRows + 'a>,
        width: usize,
        height: usize,
        colorimetry: Colorimetry,
    ) -> Result<Self, ImageError> {
        Self::checked(Pixels::Rows(rows), [width, height], colorimetry, &[], &[])
    }

    /// The same image, of pixels that are `ratio` times as wide as they are high. The displayed
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
        let mut all = [Plane {
            data: &[],
            stride: 0,
        }; MAX_PLANES];
        let count = planes.len().min(all.len());
        all[..count].copy_from_slice(&planes[..count]);
        Ok(Self {
            pixels,
            stored_size: [width, height],
            width,
            colorimetry,
            planes: all,
        })
    }

    /// A tightly packed RGB image of the full range.
    ///
    /// # Errors
    /// When `data` is shorter than `width`·`height`·3 bytes or a side is zero.
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

    /// How the pixels are read.
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

    /// Meaning of the numbers.
    pub fn colorimetry(&self) -> Colorimetry {
        self.colorimetry
    }

    /// All planes.
    pub fn planes(&self) -> [Plane<'a>; MAX_PLANES] {
        self.planes
    }

    /// The planes that the format has.
    pub fn plane(&self, index: usize) -> Plane<'a> {
        self.planes[index]
    }
}
