// SPDX-License-Identifier: MPL-2.0
//! Formats whose samples cannot be picked one by one, but whose rows GStreamer can unpack.

use std::ops::Range;

use gst_video::{VideoFormat, VideoFormatInfo, VideoInfo, VideoPackFlags};

/// Pixels of a row that are unpacked together. Formats put 2 (UYVP), 3 (GRAY10_LE32), 4 (IYU1) or 6
/// (v210) of them into whole words, and rows of v210 are whole 48.
pub(crate) const GROUP: usize = 48;

/// GStreamer's functions may read and write so many bytes beyond the end of a row, if the row ends
/// between two words.
const SLACK: usize = 64;

/// How the pixels of a format are packed.
#[derive(Debug, Clone)]
pub(crate) struct Packed {
    pub format: VideoFormatInfo,
    planes: Vec<PlaneInfo>,
    /// Columns and rows that share their chroma, as powers of 2.
    pub subsampling: [u32; 2],
}

#[derive(Debug, Clone)]
struct PlaneInfo {
    /// Index of the first component that it holds.
    component: usize,
    /// Bytes of a group.
    group: usize,
    /// A row stands for 2ⁿ of the frame.
    down: u32,
}

/// A plane that does not hold its rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooSmall {
    pub plane: usize,
    /// Index of the plane's first component.
    pub component: usize,
}

impl Packed {
    /// `None` for tiles, which have no rows, and for palettes, which GStreamer describes as a second
    /// plane without a component.
    pub fn new(format: VideoFormat) -> Option<Self> {
        let info = VideoFormatInfo::from_format(format);
        if info.is_tiled() || info.has_palette() {
            return None;
        }
        let count = info.n_components() as usize;
        let group = VideoInfo::builder(format, GROUP as u32, 2).build().ok()?;
        let planes = (0..info.n_planes() as usize).map(|index| {
            let mut planes = info.plane()[..count].iter();
            let component = planes.position(|plane| *plane as usize == index)?;
            Some(PlaneInfo {
                component,
                group: usize::try_from(group.stride()[index]).ok()?,
                down: info.h_sub()[component],
            })
        });
        let chroma = |shared: &[u32]| shared.get(1).copied().unwrap_or(0);
        Some(Self {
            format: info,
            planes: planes.collect::<Option<_>>()?,
            subsampling: [chroma(info.w_sub()), chroma(info.h_sub())],
        })
    }

    /// Checks that planes of the given lengths and strides, in bytes, hold all rows.
    pub fn check(
        &self,
        [width, height]: [usize; 2],
        planes: impl Iterator<Item = (usize, usize)>,
    ) -> Result<(), TooSmall> {
        for (index, (plane, (bytes, stride))) in self.planes.iter().zip(planes).enumerate() {
            let row = self.row_bytes(index, width);
            let last = (height - 1) >> plane.down;
            let end = stride.checked_mul(last).and_then(|at| at.checked_add(row));
            if row > stride || end.is_none_or(|end| end > bytes) {
                return Err(TooSmall {
                    plane: index,
                    component: plane.component,
                });
            }
        }
        Ok(())
    }

    /// Bytes of `width` pixels in a plane.
    pub fn row_bytes(&self, plane: usize, width: usize) -> usize {
        (width * self.planes[plane].group).div_ceil(GROUP)
    }

    /// Room for so many groups of a row in each plane.
    pub fn room(&self, groups: usize) -> Room {
        let planes = self.planes.iter();
        let room = planes.map(|plane| vec![0; groups * plane.group + SLACK]);
        Room(room.collect())
    }

    /// Where groups of row `y` are in a plane of `bytes` bytes, as far as the row has them: it may
    /// end in the middle of a word that is packed as a whole.
    pub fn bytes(
        &self,
        plane: usize,
        (bytes, stride): (usize, usize),
        y: usize,
        groups: &Range<usize>,
    ) -> Range<usize> {
        let PlaneInfo { group, down, .. } = self.planes[plane];
        let row = (y >> down) * stride;
        let end = row + (groups.end * group).min(stride);
        row + groups.start * group..end.min(bytes)
    }
}

/// A piece of a row of each plane: GStreamer's functions see no more of the frame.
#[derive(Debug)]
pub(crate) struct Room(pub Vec<Vec<u8>>);

impl Room {
    /// Brings groups of row `y` into the room; `data` has bytes and stride of each plane.
    pub fn load<'a>(
        &mut self,
        packed: &Packed,
        y: usize,
        groups: &Range<usize>,
        data: impl Iterator<Item = (&'a [u8], usize)>,
    ) {
        for (index, (room, (data, stride))) in self.0.iter_mut().zip(data).enumerate() {
            let bytes = &data[packed.bytes(index, (data.len(), stride), y, groups)];
            room[..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Unpacks the first `width` pixels of the room.
    pub fn unpack(&self, packed: &Packed, width: usize, out: &mut [u8]) {
        let room: Vec<_> = self.0.iter().map(Vec::as_slice).collect();
        let strides = self.strides();
        let flags = VideoPackFlags::empty();
        packed
            .format
            .unpack(flags, out, &room, &strides, 0, 0, width as i32);
    }

    /// Bytes of each piece.
    pub fn strides(&self) -> Vec<i32> {
        self.0.iter().map(|room| room.len() as i32).collect()
    }
}
