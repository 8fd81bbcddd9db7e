// SPDX-License-Identifier: MPL-2.0
//! Finds faces in grey frames: `CascadeClassifier::detectMultiScale` in OpenCV's
//! `cascadedetect.cpp`.

use fearless_simd::{Simd, dispatch};

use super::Search;
use super::cascade::Cascade;
use super::group::{Detection, group};
use super::integral::{Integral, Layout};
use super::levels::{Level, levels, scaled};
use super::program::Program;
use super::resize::Resizer;
use super::scan::Row;
use crate::instructions;
use crate::memory::OutOfMemory;

/// Rows of windows whose integrals are in memory at once. They fit a CPU's cache, and the rows that
/// neighbouring bands share are few in comparison.
const BAND: usize = 64;

/// Maximum number of windows of a frame that are grouped; other windows are ignored. With a scale
/// factor of 1.1, a crowd of thousands has fewer. A cascade that sees faces everywhere has more
/// than one per pixel.
const MAX_FOUND: usize = 1 << 18;

/// The detector. It keeps data that depends on the frame's size, and working memory.
#[derive(Debug)]
pub(crate) struct Detector {
    cascade: Cascade,
    search: Search,
    frame: [usize; 2],
    passes: Vec<Pass>,
    scratch: Scratch,
}

/// Levels with the same distance between windows.
#[derive(Debug)]
struct Pass {
    layout: Layout,
    program: Program,
    levels: Vec<Level>,
}

/// Working memory.
#[derive(Debug, Default)]
struct Scratch {
    resizer: Resizer,
    integral: Integral,
    pixels: Vec<u8>,
    row: Row,
}

impl Detector {
    /// Creates a detector that evaluates `cascade`.
    pub(crate) fn new(cascade: Cascade, search: Search) -> Self {
        Self {
            cascade,
            search,
            frame: [0; 2],
            passes: Vec::new(),
            scratch: Scratch::default(),
        }
    }

    /// Prepares for frames of this width and height; returns `false` if they are too small for any
    /// window.
    ///
    /// # Errors
    /// Returns an error if there is too little memory.
    pub(crate) fn prepare(&mut self, frame: [usize; 2]) -> Result<bool, OutOfMemory> {
        if self.frame != frame {
            let levels = levels(frame, self.cascade.window, &self.search);
            self.passes = levels
                .chunk_by(|a, b| a.step == b.step)
                .map(|levels| Pass::new(&self.cascade, levels))
                .collect();
            self.frame = frame;
        }
        let is_tilted = self.cascade.is_tilted();
        for pass in &self.passes {
            self.scratch.integral.reserve(&pass.layout, is_tilted)?;
        }
        Ok(!self.passes.is_empty())
    }

    /// Faces in a grey frame of the size last prepared for, rows one after another.
    pub(crate) fn detect(&mut self, luma: &[u8]) -> Vec<Detection> {
        let mut found = Vec::new();
        for pass in &self.passes {
            for level in &pass.levels {
                let search = LevelSearch {
                    cascade: &self.cascade,
                    frame: self.frame,
                    pass,
                    level,
                };
                dispatch!(instructions::level(), simd => simd.vectorize(
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
    fn new(cascade: &Cascade, levels: &[Level]) -> Self {
        let widest = levels.iter().map(|level| level.size[0]).max().unwrap_or(0);
        let layout = Layout::new(levels[0].step, widest, BAND + cascade.window[1]);
        Self {
            layout,
            program: Program::new(cascade, &layout),
            levels: levels.to_vec(),
        }
    }
}

/// The search of one level.
struct LevelSearch<'a> {
    cascade: &'a Cascade,
    frame: [usize; 2],
    pass: &'a Pass,
    level: &'a Level,
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
        scratch.resizer.begin(self.frame, self.level.size);
        scratch.pixels.resize(width, 0);
        let mut next_row = 0;
        for band in (0..self.level.rows).step_by(BAND) {
            if band > 0 {
                scratch.integral.forget(layout, BAND);
            }
            let end = (band + BAND).min(self.level.rows);
            for row in next_row..end - 1 + height {
                scratch.resizer.row(luma, row, &mut scratch.pixels);
                scratch.integral.push(layout, &scratch.pixels);
            }
            next_row = end - 1 + height;
            for row in (band..end).step_by(layout.step) {
                let cells = scratch.integral.row(layout, row - band);
                let windows = self.level.columns.div_ceil(layout.step);
                let faces = scratch.row.faces(simd, program, cells, windows);
                let faces = faces.map(|window| self.detection(window * layout.step, row));
                found.extend(faces.take(MAX_FOUND - found.len()));
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

#[cfg(test)]
mod tests {
    use super::super::cascade::{Child, Feature, Node, Stage, Tree, WeightedRect};
    use super::*;

    /// Sees a face in each window that is not flat.
    fn sees_faces_everywhere() -> Cascade {
        let rect = WeightedRect {
            x: 0,
            y: 0,
            width: 3,
            height: 3,
            weight: 1.0,
        };
        let node = Node {
            feature: 0,
            threshold: 0.0,
            below: Child::Leaf(0),
            above: Child::Leaf(1),
        };
        Cascade {
            window: [8, 8],
            stages: vec![Stage {
                threshold: -1.0,
                trees: vec![Tree {
                    nodes: vec![node],
                    leaves: vec![1.0, 2.0],
                }],
            }],
            features: vec![Feature {
                tilted: false,
                rects: vec![rect],
            }],
        }
    }

    #[test]
    fn a_cascade_that_sees_faces_everywhere_takes_no_memory_without_end() {
        let noise: Vec<u8> = (0..800 * 800)
            .map(|i: usize| (i * i * 31 % 251) as u8)
            .collect();
        for (side, some) in [(20, 40), (800, MAX_FOUND)] {
            let search = Search {
                min_neighbors: 0,
                min_size: 0,
                ..Search::default()
            };
            let mut detector = Detector::new(sees_faces_everywhere(), search);
            assert_eq!(detector.prepare([side; 2]), Ok(true));
            let found = detector.detect(&noise[..side * side]).len();
            assert!((some..=MAX_FOUND).contains(&found), "{side}: {found}");
        }
    }
}
