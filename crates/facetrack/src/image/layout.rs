// SPDX-License-Identifier: MPL-2.0
//! Descriptions of frame formats by the positions of their samples.

use super::{MAX_PLANES, MAX_STEP};

/// The colour model of a frame's components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorModel {
    /// Red, green, blue, and alpha if there is a fourth.
    Rgb,
    /// Y′, Cb, Cr, and alpha if there is a fourth.
    Yuv,
    /// Y′ only.
    Gray,
}

/// Maximum subsampling, as a power of two: YUV9 has a chroma sample for 4×4 pixels.
pub(crate) const MAX_SUBSAMPLING: u32 = 2;

/// The word that holds a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// One byte.
    Byte,
    /// Two bytes, little-endian.
    Le16,
    /// Two bytes, big-endian.
    Be16,
}

impl Word {
    /// Number of bytes.
    pub fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Le16 | Self::Be16 => 2,
        }
    }

    /// Number of bits.
    pub fn bits(self) -> u32 {
        8 * self.bytes() as u32
    }
}

/// Positions of the samples of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// Index of the plane.
    pub plane: usize,
    /// Bytes from the start of a row to the first sample.
    pub offset: usize,
    /// Bytes from one sample to the next.
    pub step: usize,
    /// Binary logarithms of the columns and rows that share a sample.
    pub subsampling: [u32; 2],
    /// The word that holds a sample.
    pub word: Word,
    /// Number of lower bits of the word that do not belong to the component.
    pub shift: u32,
    /// Number of bits of the component.
    pub depth: u32,
}

impl Component {
    /// Samples of one byte.
    pub(crate) fn byte(plane: usize, offset: usize, step: usize, subsampling: [u32; 2]) -> Self {
        Self {
            plane,
            offset,
            step,
            subsampling,
            word: Word::Byte,
            shift: 0,
            depth: 8,
        }
    }

    /// The largest code.
    pub fn max_code(&self) -> u32 {
        (1 << self.depth) - 1
    }

    /// Returns true if all bits of a sample are in its word, and words do not overlap.
    pub fn is_sound(&self) -> bool {
        let bits = self.shift.checked_add(self.depth);
        let fits = bits.is_some_and(|bits| bits <= self.word.bits());
        let bytes = self.word.bytes();
        let is_aligned = self.offset.is_multiple_of(bytes) && self.step.is_multiple_of(bytes);
        let is_subsampled = self.subsampling.iter().all(|n| *n <= MAX_SUBSAMPLING);
        fits && self.depth > 0 && is_aligned && self.offset < self.step && is_subsampled
    }

    /// The code of sample `index` of a row that starts at the beginning of `row`.
    #[inline(always)]
    pub fn code(&self, row: &[u8], index: usize) -> u32 {
        let bytes = &row[self.offset + index * self.step..];
        let word = match self.word {
            Word::Byte => bytes[0].into(),
            Word::Le16 => u16::from_le_bytes([bytes[0], bytes[1]]),
            Word::Be16 => u16::from_be_bytes([bytes[0], bytes[1]]),
        };
        (u32::from(word) >> self.shift) & self.max_code()
    }

    /// Columns and rows of samples in a frame of `width`×`height` pixels.
    pub fn samples(&self, [width, height]: [usize; 2]) -> [usize; 2] {
        let [across, down] = self.subsampling;
        [width.div_ceil(1 << across), height.div_ceil(1 << down)]
    }

    /// Bytes from the start of a row to the end of the last of `columns` samples; `None` on
    /// overflow.
    pub fn row_bytes(&self, columns: usize) -> Option<usize> {
        let last = columns.checked_sub(1)?.checked_mul(self.step)?;
        last.checked_add(self.offset)?
            .checked_add(self.word.bytes())
    }
}

/// A format, described by its components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Meaning of the components.
    pub model: ColorModel,
    /// One to four components, in the order of the model.
    pub components: Vec<Component>,
}

impl Layout {
    pub(super) fn new<const N: usize>(model: ColorModel, components: [Component; N]) -> Self {
        Self {
            model,
            components: components.into(),
        }
    }

    /// The index of the first component that cannot be read as a color.
    pub(super) fn unreadable(&self) -> Option<usize> {
        let colors = self.colors();
        let is_readable = |index: usize, component: &Component| {
            // Chroma is read at positions of its own.
            let first = usize::from(self.model == ColorModel::Yuv && index > 0);
            component.is_sound()
                && component.step <= MAX_STEP
                && component.plane < MAX_PLANES
                && component.subsampling == colors[first].subsampling
        };
        let mut indices = 0..self.color_count();
        indices.find(|index| !colors.get(*index).is_some_and(|it| is_readable(*index, it)))
    }

    /// The index of the first color that is not stored as in the formats of
    /// [`PixelFormat`](super::PixelFormat): as bytes, with RGB or luma in the first plane.
    pub(super) fn not_of_bytes(&self) -> Option<usize> {
        let (count, steps) = match self.model {
            ColorModel::Rgb => (3, 3..=4),
            ColorModel::Gray | ColorModel::Yuv => (1, 1..=2),
        };
        let is_in_place = |it: &Component| it.plane == 0 && steps.contains(&it.step);
        let is_fit = |index: usize, it: &Component| {
            let is_byte = it.word == Word::Byte && it.shift == 0 && it.depth == 8;
            is_byte && (index >= count || is_in_place(it))
        };
        let mut colors = self.colors().iter().enumerate();
        colors.find_map(|(index, it)| (!is_fit(index, it)).then_some(index))
    }

    /// Number of components without alpha.
    fn color_count(&self) -> usize {
        match self.model {
            ColorModel::Gray => 1,
            ColorModel::Rgb | ColorModel::Yuv => 3,
        }
    }

    /// Bytes of whole pixels of a row and number of rows of each plane with colors, for a frame of
    /// `width`×`height` pixels.
    pub fn plane_layout(&self, width: usize, height: usize) -> Vec<(usize, usize)> {
        let mut planes = Vec::new();
        for component in self.colors() {
            let [columns, rows] = component.samples([width, height]);
            let bytes = columns.saturating_mul(component.step);
            if planes.len() <= component.plane {
                planes.resize(component.plane + 1, (0, 1));
            }
            let plane = &mut planes[component.plane];
            *plane = (bytes.max(plane.0), rows.max(plane.1));
        }
        planes
    }

    /// The components of the color, without alpha.
    pub fn colors(&self) -> &[Component] {
        &self.components[..self.color_count().min(self.components.len())]
    }
}
