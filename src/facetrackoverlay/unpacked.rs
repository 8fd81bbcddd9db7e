// SPDX-License-Identifier: MPL-2.0
//! Formats out of which samples can't be picked one by one: GStreamer unpacks what is drawn into, and packs it again.

use std::ops::Range;

use gst_video::{VideoChromaSite, VideoFormat, VideoFormatInfo, VideoInfo, VideoPackFlags};

use super::frame;
use crate::face::image::Colorimetry;
use crate::face::overlay::{
    Canvas, CanvasError, ColorModel, Component, Layout, PlaneMut, Source, Word,
};

/// Pixels of a row that are unpacked together. Formats put 2 (UYVP), 3 (GRAY10_LE32), 4 (IYU1) or 6 (v210) of them into
/// whole words, and rows of v210 are whole 48.
const GROUP: usize = 48;

/// Bytes by which GStreamer's functions may read and write beyond the end of a row, where it ends between two words.
const SLACK: usize = 64;

/// A format, and room for frames of it.
#[derive(Debug)]
pub(super) struct Unpacked {
    packed: Packed,
    /// Where the samples of unpacked pixels are.
    layout: Layout,
    /// All of the frame, unpacked where it is drawn into.
    picture: Vec<u8>,
    /// The groups of each row that are in the picture.
    there: Vec<bool>,
}

/// How pixels are packed.
#[derive(Debug)]
struct Packed {
    format: VideoFormatInfo,
    planes: Vec<Plane>,
    /// Columns and rows that share their chroma, as powers of 2.
    subsampling: [u32; 2],
}

#[derive(Debug)]
struct Plane {
    /// Index of the first component that it holds.
    component: usize,
    /// Bytes of a group.
    group: usize,
    /// A row stands for 2ⁿ of the frame.
    down: u32,
}

impl Unpacked {
    /// `None` for tiles, which have no rows, and for palettes, which have no other colours.
    pub fn new(format: VideoFormat) -> Option<Self> {
        let info = VideoFormatInfo::from_format(format);
        if info.is_tiled() || info.has_palette() {
            return None;
        }
        let mut layout = frame::layout(info.unpack_format())?;
        let count = info.n_components() as usize;
        layout.components.truncate(count);
        // The upper bits of a word are the sample; the others only fill it, and not all of it where there are two.
        for (component, depth) in layout.components.iter_mut().zip(info.depth()) {
            let depth = component.depth.min(*depth);
            component.shift = component.depth - depth;
            component.depth = depth;
        }
        if info.is_gray() {
            layout.model = ColorModel::Gray;
        }
        let group = VideoInfo::builder(format, GROUP as u32, 2).build().ok()?;
        let planes = (0..info.n_planes() as usize).map(|index| {
            let mut planes = info.plane()[..count].iter();
            let component = planes.position(|plane| *plane as usize == index)?;
            Some(Plane {
                component,
                group: usize::try_from(group.stride()[index]).ok()?,
                down: info.h_sub()[component],
            })
        });
        let chroma = |shared: &[u32]| shared.get(1).copied().unwrap_or(0);
        Some(Self {
            packed: Packed {
                format: info,
                planes: planes.collect::<Option<_>>()?,
                subsampling: [chroma(info.w_sub()), chroma(info.h_sub())],
            },
            layout,
            picture: Vec::new(),
            there: Vec::new(),
        })
    }

    /// Lets `draw` draw into a frame of `width`×`height` pixels in `planes`.
    ///
    /// # Errors
    /// When a plane is too small.
    pub fn draw(
        &mut self,
        (width, height): (usize, usize),
        colorimetry: Colorimetry,
        planes: &mut [PlaneMut],
        draw: impl FnOnce(&mut Canvas),
    ) -> Result<(), CanvasError> {
        self.packed.check((width, height), planes)?;
        let groups = width.div_ceil(GROUP);
        let pixel = self.layout.components[0].step;
        let stride = groups * GROUP * pixel;
        if self.picture.len() != stride * height {
            // Memory that is zero already is taken up page by page, where something is drawn.
            self.picture = vec![0; stride * height];
        }
        self.there.clear();
        self.there.resize(groups * height, false);
        let room = self.packed.room(groups);
        let mut rows = Rows {
            packed: &self.packed,
            strides: room.iter().map(|room| room.len() as i32).collect(),
            room,
            planes,
            size: (width, height),
            groups,
            there: &mut self.there,
            layout: &self.layout,
        };
        let picture = PlaneMut {
            data: &mut self.picture,
            stride,
        };
        let canvas = Canvas::new((width, height), &self.layout, colorimetry, vec![picture])?;
        draw(&mut canvas.filled_by(&mut rows));
        rows.pack(&mut PlaneMut {
            data: &mut self.picture,
            stride,
        });
        Ok(())
    }
}

impl Packed {
    /// Whether the planes hold all rows.
    fn check(
        &self,
        (width, height): (usize, usize),
        planes: &[PlaneMut],
    ) -> Result<(), CanvasError> {
        for (plane, frame) in self.planes.iter().zip(planes) {
            let (bytes, stride) = (frame.data.len(), frame.stride);
            let row = (width * plane.group).div_ceil(GROUP);
            let last = (height - 1) >> plane.down;
            let end = stride.checked_mul(last).and_then(|at| at.checked_add(row));
            if row > stride || end.is_none_or(|end| end > bytes) {
                return Err(CanvasError::PlaneTooSmall {
                    component: plane.component,
                    bytes,
                    stride,
                });
            }
        }
        Ok(())
    }

    /// Room for so many groups of a row in each plane.
    fn room(&self, groups: usize) -> Vec<Vec<u8>> {
        let planes = self.planes.iter();
        let room = planes.map(|plane| vec![0; groups * plane.group + SLACK]);
        room.collect()
    }
}

impl Plane {
    /// Where groups of a row are, as far as the row has them: it may end in the middle of a word that is packed as a whole.
    fn bytes(&self, frame: &PlaneMut, y: usize, groups: &Range<usize>) -> Range<usize> {
        let row = (y >> self.down) * frame.stride;
        let end = row + (groups.end * self.group).min(frame.stride);
        row + groups.start * self.group..end.min(frame.data.len())
    }
}

/// The rows of a frame.
#[derive(Debug)]
struct Rows<'a, 'p> {
    packed: &'a Packed,
    /// A piece of a row of each plane: GStreamer's functions see no more of the frame.
    room: Vec<Vec<u8>>,
    /// Bytes of each.
    strides: Vec<i32>,
    planes: &'a mut [PlaneMut<'p>],
    size: (usize, usize),
    /// Groups of a row.
    groups: usize,
    there: &'a mut [bool],
    layout: &'a Layout,
}

impl Source for Rows<'_, '_> {
    fn bring(&mut self, y: usize, columns: Range<usize>, planes: &mut [PlaneMut<'_>]) {
        let groups = columns.start / GROUP..columns.end.div_ceil(GROUP);
        let rows = self.together(y);
        for groups in self.runs(y, groups, false) {
            for row in rows.clone() {
                self.unpack(row, &groups, &mut planes[0]);
                let at = row * self.groups;
                self.there[at + groups.start..at + groups.end].fill(true);
            }
        }
    }
}

impl Rows<'_, '_> {
    /// The rows that share their chroma with row `y`.
    fn together(&self, y: usize) -> Range<usize> {
        let [_, down] = self.packed.subsampling;
        let start = y >> down << down;
        start..(start + (1 << down)).min(self.size.1)
    }

    /// Those of some groups of a row that are in the picture, or those that are not.
    fn runs(&self, y: usize, groups: Range<usize>, there: bool) -> Vec<Range<usize>> {
        let row = &self.there[y * self.groups..];
        let runs = row[groups.clone()].chunk_by(|a, b| a == b);
        let runs = runs.scan(groups.start, |start, run| {
            let groups = *start..*start + run.len();
            *start = groups.end;
            Some((run[0] == there).then_some(groups))
        });
        runs.flatten().collect()
    }

    /// The columns in some groups.
    fn columns(&self, groups: &Range<usize>) -> Range<usize> {
        groups.start * GROUP..(groups.end * GROUP).min(self.size.0)
    }

    /// Brings a piece of a row into the room.
    fn load(&mut self, y: usize, groups: &Range<usize>) {
        let planes = self.packed.planes.iter().zip(&*self.planes);
        for (room, (plane, frame)) in self.room.iter_mut().zip(planes) {
            let bytes = &frame.data[plane.bytes(frame, y, groups)];
            room[..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// Brings it back into the frame.
    fn store(&mut self, y: usize, groups: &Range<usize>) {
        let planes = self.packed.planes.iter().zip(&mut *self.planes);
        for (room, (plane, frame)) in self.room.iter().zip(planes) {
            let bytes = plane.bytes(frame, y, groups);
            let bytes = &mut frame.data[bytes];
            bytes.copy_from_slice(&room[..bytes.len()]);
        }
    }

    /// Unpacks a piece of a row into the picture.
    fn unpack(&mut self, y: usize, groups: &Range<usize>, picture: &mut PlaneMut) {
        self.load(y, groups);
        let columns = self.columns(groups);
        let room: Vec<_> = self.room.iter().map(Vec::as_slice).collect();
        let unpacked = self.pixels(picture, y, &columns);
        let (flags, width) = (VideoPackFlags::empty(), columns.len() as i32);
        let format = self.packed.format;
        format.unpack(flags, unpacked, &room, &self.strides, 0, 0, width);
    }

    /// Packs all that is in the picture.
    fn pack(&mut self, picture: &mut PlaneMut) {
        let [_, down] = self.packed.subsampling;
        for y in (0..self.size.1).step_by(1 << down) {
            for groups in self.runs(y, 0..self.groups, true) {
                self.share_chroma(picture, y, &self.columns(&groups));
                for row in self.together(y) {
                    self.pack_row(row, &groups, picture);
                }
            }
        }
    }

    /// Packs a piece of a row. Whole words behind its end stay as they were.
    fn pack_row(&mut self, y: usize, groups: &Range<usize>, picture: &mut PlaneMut) {
        self.load(y, groups);
        let columns = self.columns(groups);
        let unpacked = self.pixels(picture, y, &columns);
        let mut room: Vec<_> = self.room.iter_mut().map(Vec::as_mut_slice).collect();
        self.packed.format.pack(
            VideoPackFlags::empty(),
            unpacked,
            unpacked.len() as i32,
            &mut room,
            &self.strides,
            VideoChromaSite::empty(),
            0,
            columns.len() as i32,
        );
        self.store(y, groups);
    }

    /// Columns of a row of the picture.
    fn pixels<'b>(
        &self,
        picture: &'b mut PlaneMut,
        y: usize,
        columns: &Range<usize>,
    ) -> &'b mut [u8] {
        let pixel = self.layout.components[0].step;
        let row = y * picture.stride;
        &mut picture.data[row + columns.start * pixel..row + columns.end * pixel]
    }

    /// Gives all pixels that share their chroma the mean of it: GStreamer packs that of one of them.
    fn share_chroma(&self, picture: &mut PlaneMut, y: usize, columns: &Range<usize>) {
        let [across, _] = self.packed.subsampling;
        if self.packed.subsampling == [0, 0] || self.layout.model != ColorModel::Yuv {
            return;
        }
        let Component { step, word, .. } = self.layout.components[0];
        let together = self.together(y);
        let rows = picture.data[together.start * picture.stride..].chunks_mut(picture.stride);
        let rows = rows.take(together.len());
        let rows = rows.map(|row| &mut row[columns.start * step..columns.end * step]);
        match word {
            Word::Byte => {
                let mut rows: Vec<_> = rows.map(|row| row.as_chunks_mut::<4>().0).collect();
                share_chroma(&mut rows, 1 << across);
            }
            Word::Le16 | Word::Be16 => {
                let mut rows: Vec<_> = rows.map(|row| row.as_chunks_mut::<8>().0).collect();
                share_chroma(&mut rows, 1 << across);
            }
        }
    }
}

/// Gives all pixels of a cell, `across` columns of all rows, the mean of their chroma. The pixels are AYUV or AYUV64, whose
/// words are the machine's.
fn share_chroma<const PIXEL: usize>(rows: &mut [&mut [[u8; PIXEL]]], across: usize) {
    let (chroma, word) = (PIXEL / 2, PIXEL / 4);
    let width = rows.first().map_or(0, |row| row.len());
    for start in (0..width).step_by(across) {
        let columns = start..(start + across).min(width);
        let first = rows[0][start];
        let cell = || rows.iter().flat_map(|row| &row[columns.clone()]);
        if cell().all(|pixel| pixel[chroma..] == first[chroma..]) {
            continue;
        }
        let count = (rows.len() * columns.len()) as u32;
        let means = [chroma, chroma + word].map(|at| {
            let samples = cell().map(|pixel| match word {
                1 => u32::from(pixel[at]),
                _ => u32::from(u16::from_ne_bytes([pixel[at], pixel[at + 1]])),
            });
            (samples.sum::<u32>() + count / 2) / count
        });
        for pixel in rows.iter_mut().flat_map(|row| &mut row[columns.clone()]) {
            let samples = pixel[chroma..].chunks_mut(word);
            for (sample, mean) in samples.zip(means) {
                match word {
                    1 => sample[0] = mean as u8,
                    _ => sample.copy_from_slice(&(mean as u16).to_ne_bytes()),
                }
            }
        }
    }
}
