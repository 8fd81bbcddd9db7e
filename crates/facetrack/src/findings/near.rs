// SPDX-License-Identifier: MPL-2.0
//! Faces by the places where they are expected, so that a frame with many faces is not compared with
//! each of them.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use super::face::Face;
use crate::geometry::Point;

/// Maximum number of faces of a cell that are compared. Our choice: no picture has more in one place.
const MOST: usize = 64;

/// Rounding of positions and distances, relative to the reach. Our choice: far more than the rounding
/// of `f32`.
const ROUNDING: f64 = 1e-3;

/// A square: the exponent of its side, a power of two in pixels, and its column and row.
type Cell = (i32, i64, i64);

/// Faces in a grid for each order of magnitude of their reach.
#[derive(Debug, Default)]
pub(super) struct Near<'a> {
    cells: HashMap<Cell, Vec<(u32, &'a Face)>>,
    exponents: BTreeSet<i32>,
}

impl<'a> Near<'a> {
    /// Indexes the faces at a time. Each face reaches positions up to this deviation.
    pub(super) fn new(
        faces: impl Iterator<Item = (u32, &'a Face)>,
        deviation: f32,
        time: Duration,
    ) -> Self {
        let mut near = Self::default();
        for (id, face) in faces {
            near.add(id, face, face.reach(deviation, time));
        }
        near
    }

    fn add(&mut self, id: u32, face: &'a Face, (places, reach): ([Point; 2], f32)) {
        let reach = f64::from(reach) * (1.0 + ROUNDING);
        // Each place reaches at most four cells of this side.
        let exponent = libm::log2(2.0 * reach).ceil() as i32;
        self.exponents.insert(exponent);
        let cells: BTreeSet<Cell> = places
            .into_iter()
            .flat_map(|place| reached(place, reach, exponent))
            .collect();
        for cell in cells {
            self.cells.entry(cell).or_default().push((id, face));
        }
    }

    /// The faces that may reach a place, the last ones of each order of magnitude first.
    pub(super) fn at(&self, place: Point) -> impl Iterator<Item = (u32, &'a Face)> {
        let cells = self.exponents.iter().map(move |exponent| {
            let [x, y] = [place.x, place.y].map(|at| index(at.into(), *exponent));
            (*exponent, x, y)
        });
        let found = cells.filter_map(|cell| self.cells.get(&cell));
        found.flat_map(|faces| faces.iter().rev().take(MOST).copied())
    }
}

/// The cells of the square around a place.
fn reached(place: Point, reach: f64, exponent: i32) -> impl Iterator<Item = Cell> {
    let ends = |at: f32| [-reach, reach].map(|by| index(f64::from(at) + by, exponent));
    let (columns, rows) = (ends(place.x), ends(place.y));
    let cells = columns.into_iter().flat_map(move |x| rows.map(|y| (x, y)));
    cells.map(move |(x, y)| (exponent, x, y))
}

/// The column or row of a coordinate. The cast bounds the coordinates of damaged records.
fn index(at: f64, exponent: i32) -> i64 {
    (at / libm::exp2(exponent.into())).floor() as i64
}
