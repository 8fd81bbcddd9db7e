// SPDX-License-Identifier: MPL-2.0
//! Formats out of which samples can't be picked one by one: GStreamer unpacks what is drawn into, and packs it again.

use std::ops::Range;

use gst_video::{VideoChromaSite, VideoFormat, VideoPackFlags};

use crate::video::{self, GROUP, Packed, Room, TooSmall};
use facetrack::image::{ColorModel, Colorimetry, Component, Layout, Word};
use facetrack::overlay::{Canvas, CanvasError, PlaneMut, Source};

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

impl Unpacked {
    /// `None` for tiles, which have no rows, and for palettes, which have no other colours.
    pub fn new(format: VideoFormat) -> Option<Self> {
        let packed = Packed::new(format)?;
        let info = packed.format;
        let mut layout = video::layout(info.unpack_format())?;
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
        Some(Self {
            packed,
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
        let lengths = planes.iter().map(|plane| (plane.data.len(), plane.stride));
        let checked = self.packed.check([width, height], lengths);
        checked.map_err(|TooSmall { plane, component }| CanvasError::PlaneTooSmall {
            component,
            bytes: planes[plane].data.len(),
            stride: planes[plane].stride,
        })?;
        let groups = width.div_ceil(GROUP);
        let pixel = self.layout.components[0].step;
        let stride = groups * GROUP * pixel;
        if self.picture.len() != stride * height {
            // Memory that is zero already is taken up page by page, where something is drawn.
            self.picture = vec![0; stride * height];
        }
        self.there.clear();
        self.there.resize(groups * height, false);
        let mut rows = Rows {
            packed: &self.packed,
            room: self.packed.room(groups),
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

/// The rows of a frame.
#[derive(Debug)]
struct Rows<'a, 'p> {
    packed: &'a Packed,
    room: Room,
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
        let planes = self.planes.iter().map(|plane| (&*plane.data, plane.stride));
        self.room.load(self.packed, y, groups, planes);
    }

    /// Brings it back into the frame.
    fn store(&mut self, y: usize, groups: &Range<usize>) {
        for (index, (room, plane)) in self.room.0.iter().zip(&mut *self.planes).enumerate() {
            let length = (plane.data.len(), plane.stride);
            let bytes = &mut plane.data[self.packed.bytes(index, length, y, groups)];
            bytes.copy_from_slice(&room[..bytes.len()]);
        }
    }

    /// Unpacks a piece of a row into the picture.
    fn unpack(&mut self, y: usize, groups: &Range<usize>, picture: &mut PlaneMut) {
        self.load(y, groups);
        let columns = self.columns(groups);
        let unpacked = self.pixels(picture, y, &columns);
        self.room.unpack(self.packed, columns.len(), unpacked);
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
        let strides = self.room.strides();
        let mut room: Vec<_> = self.room.0.iter_mut().map(Vec::as_mut_slice).collect();
        self.packed.format.pack(
            VideoPackFlags::empty(),
            unpacked,
            unpacked.len() as i32,
            &mut room,
            &strides,
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
