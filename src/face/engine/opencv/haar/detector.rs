// SPDX-License-Identifier: MPL-2.0
//! Looks for faces in grey frames: `CascadeClassifier::detectMultiScale` in OpenCV's `cascadedetect.cpp`.

use fearless_simd::{Level as Instructions, Simd, dispatch};

use super::Search;
use super::cascade::Cascade;
use super::group::{Detection, group};
use super::integral::{Integral, Layout};
use super::levels::{Level, levels, scaled};
use super::program::Program;
use super::resize::Resizer;
use super::scan::Row;

/// Rows of windows whose integrals are in memory at once: few enough for a processor's cache, and enough for the rows
/// that neighbouring bands share not to matter.
const BAND: usize = 64;

/// The detector. It keeps what depends on the frame's size, and memory to work in.
#[derive(Debug)]
pub struct Detector {
    cascade: Cascade,
    search: Search,
    frame: [usize; 2],
    passes: Vec<Pass>,
    scratch: Scratch,
}

/// Levels with one distance between windows.
#[derive(Debug)]
struct Pass {
    layout: Layout,
    program: Program,
    levels: Vec<(Level, Resizer)>,
}

/// Memory to work in.
#[derive(Debug, Default)]
struct Scratch {
    integral: Integral,
    column_sums: Vec<u16>,
    pixels: Vec<u8>,
    row: Row,
}

impl Detector {
    /// A detector of what `cascade` knows.
    pub fn new(cascade: Cascade, search: Search) -> Self {
        Self {
            cascade,
            search,
            frame: [0; 2],
            passes: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Makes ready for frames of that width and height; `false` where they are too small to show anything.
    pub fn prepare(&mut self, frame: [usize; 2]) -> bool {
        if self.frame != frame {
            let levels = levels(frame, self.cascade.window, &self.search);
            self.passes = levels
                .chunk_by(|a, b| a.step == b.step)
                .map(|levels| Pass::new(&self.cascade, frame, levels))
                .collect();
            self.frame = frame;
        }
        !self.passes.is_empty()
    }

    /// Faces in a grey frame of the size last prepared for, rows one after another.
    pub fn detect(&mut self, luma: &[u8]) -> Vec<Detection> {
        let mut found = Vec::new();
        for pass in &self.passes {
            for (level, resizer) in &pass.levels {
                let search = LevelSearch {
                    cascade: &self.cascade,
                    pass,
                    level,
                    resizer,
                };
                dispatch!(Instructions::new(), simd => simd.vectorize(
                    #[inline(always)]
                    || search.run(simd, luma, &mut self.scratch, &mut found)
                ));
            }
        }
        let [width, height] = self.frame.map(|side| side as i32);
        let faces = group(found, self.search.min_neighbors).into_iter();
        faces
            .filter_map(|face| face.clipped(width, height))
            .collect()
    }
}

impl Pass {
    fn new(cascade: &Cascade, frame: [usize; 2], levels: &[Level]) -> Self {
        let widest = levels.iter().map(|level| level.size[0]).max().unwrap_or(0);
        let layout = Layout::new(levels[0].step, widest, BAND + cascade.window[1]);
        Self {
            layout,
            program: Program::new(cascade, &layout),
            levels: levels
                .iter()
                .map(|level| (*level, Resizer::new(frame, level.size)))
                .collect(),
        }
    }
}

/// The search of one level.
struct LevelSearch<'a> {
    cascade: &'a Cascade,
    pass: &'a Pass,
    level: &'a Level,
    resizer: &'a Resizer,
}

impl LevelSearch<'_> {
    #[inline(always)]
    fn run<S: Simd>(
        &self,
        simd: S,
        luma: &[u8],
        scratch: &mut Scratch,
        found: &mut Vec<Detection>,
    ) {
        let Pass {
            layout, program, ..
        } = self.pass;
        let [width, _] = self.level.size;
        let height = self.cascade.window[1];
        scratch
            .integral
            .begin(layout, width, self.cascade.is_tilted());
        scratch.pixels.resize(width, 0);
        let mut next_row = 0;
        for band in (0..self.level.rows).step_by(BAND) {
            if band > 0 {
                scratch.integral.forget(layout, BAND);
            }
            let end = (band + BAND).min(self.level.rows);
            for row in next_row..end - 1 + height {
                let Scratch {
                    column_sums,
                    pixels,
                    ..
                } = scratch;
                self.resizer.row(luma, row, column_sums, pixels);
                scratch.integral.push(layout, pixels);
            }
            next_row = end - 1 + height;
            for row in (band..end).step_by(layout.step) {
                let cells = scratch.integral.row(layout, row - band);
                let windows = self.level.columns.div_ceil(layout.step);
                let faces = scratch.row.faces(simd, program, cells, windows);
                found.extend(faces.map(|window| self.detection(window * layout.step, row)));
            }
        }
    }

    fn detection(&self, column: usize, row: usize) -> Detection {
        let [width, height] = self.cascade.window;
        let [x, y, width, height] =
            [column, row, width, height].map(|length| scaled(length, self.level.scale) as i32);
        Detection {
            x,
            y,
            width,
            height,
        }
    }
}
