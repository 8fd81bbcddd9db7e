// SPDX-License-Identifier: MPL-2.0
//! Frame formats described by where the samples of each component lie.

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
const MAX_SUBSAMPLING: u32 = 2;

/// How the bytes of a sample make a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// One byte.
    Byte,
    /// Two, the lower one first.
    Le16,
    /// Two, the upper one first.
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

/// Where a component's samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// Index of the plane.
    pub plane: usize,
    /// Bytes from the start of a row to the first sample.
    pub offset: usize,
    /// Bytes from a sample to the next.
    pub step: usize,
    /// A sample stands for 2ⁿ columns and 2ⁿ rows.
    pub subsampling: [u32; 2],
    /// The word that holds a sample.
    pub word: Word,
    /// Bits of the word below the component's.
    pub shift: u32,
    /// Bits of the component.
    pub depth: u32,
}

impl Component {
    /// The largest code.
    pub fn max_code(&self) -> u32 {
        (1 << self.depth) - 1
    }

    /// Whether all bits of a sample lie in its word, and words do not overlap.
    pub fn is_sound(&self) -> bool {
        let bits = self.shift.checked_add(self.depth);
        let fits = bits.is_some_and(|bits| bits <= self.word.bits());
        let bytes = self.word.bytes();
        let is_aligned = self.offset.is_multiple_of(bytes) && self.step.is_multiple_of(bytes);
        let is_subsampled = self.subsampling.iter().all(|n| *n <= MAX_SUBSAMPLING);
        fits && self.depth > 0 && is_aligned && self.offset < self.step && is_subsampled
    }

    /// Columns and rows of samples in a frame of `width`×`height` pixels.
    pub fn samples(&self, [width, height]: [usize; 2]) -> [usize; 2] {
        let [across, down] = self.subsampling;
        [width.div_ceil(1 << across), height.div_ceil(1 << down)]
    }

    /// Bytes from the start of a row to the end of the last of `columns` samples; `None` when there
    /// are too many to count.
    pub fn row_bytes(&self, columns: usize) -> Option<usize> {
        let last = columns.checked_sub(1)?.checked_mul(self.step)?;
        last.checked_add(self.offset)?
            .checked_add(self.word.bytes())
    }
}

/// A format: its components and where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Their meaning.
    pub model: ColorModel,
    /// One to four, in the order of the model.
    pub components: Vec<Component>,
}

impl Layout {
    /// Checks that the colours can be read. Returns the index of the first component for which that
    /// is not so.
    pub(super) fn check(&self) -> Result<(), usize> {
        let colors = self.colors();
        let count = match self.model {
            ColorModel::Gray => 1,
            ColorModel::Rgb | ColorModel::Yuv => 3,
        };
        let is_readable = |index: usize| {
            let component = colors.get(index)?;
            // Components that are read at the same positions.
            let like = match self.model {
                ColorModel::Yuv if index > 0 => &colors[1],
                _ => &colors[0],
            };
            let is_alike = component.subsampling == like.subsampling;
            (component.is_sound()
                && component.step <= MAX_STEP
                && component.plane < MAX_PLANES
                && is_alike)
                .then_some(())
        };
        let unreadable = (0..count).find(|index| is_readable(*index).is_none());
        unreadable.map_or(Ok(()), Err)
    }

    /// Bytes of a row and number of rows of each plane that holds colours, in a frame of
    /// `width`×`height` pixels.
    pub fn plane_layout(&self, width: usize, height: usize) -> Vec<(usize, usize)> {
        let mut planes = Vec::new();
        for component in self.colors() {
            let [columns, rows] = component.samples([width, height]);
            let bytes = component.row_bytes(columns).unwrap_or(usize::MAX);
            if planes.len() <= component.plane {
                planes.resize(component.plane + 1, (0, 1));
            }
            let plane = &mut planes[component.plane];
            *plane = (bytes.max(plane.0), rows.max(plane.1));
        }
        planes
    }

    /// The components that make up the colour, without alpha.
    pub fn colors(&self) -> &[Component] {
        let count = match self.model {
            ColorModel::Gray => 1,
            ColorModel::Rgb | ColorModel::Yuv => 3,
        };
        &self.components[..count.min(self.components.len())]
    }
}
