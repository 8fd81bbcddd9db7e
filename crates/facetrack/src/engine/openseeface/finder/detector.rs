// SPDX-License-Identifier: MPL-2.0
//! The network that finds faces in a whole frame: `detect_faces` in `tracker.py`.

use super::crop;
use crate::engine::network::Network;
use crate::geometry::Rect;
use crate::image::ImageView;
use crate::model::ModelError;
use crate::sample::Window;

/// Width and height of the input.
const SIDE: usize = 224;

/// Rows and columns of the heat map.
const CELLS: usize = 56;

/// Input elements from one cell to the next.
const STRIDE: f32 = (SIDE / CELLS) as f32;

/// Unit of the radii, in input elements.
const RADIUS: f32 = 112.0;

/// Finds faces.
pub(super) struct Detector(pub Network);

impl Detector {
    /// Boxes of faces with a score of at least `least_score`, px, best first and at most `count`.
    ///
    /// # Errors
    /// Returns [`ModelError::Run`].
    pub(super) fn detect(
        &mut self,
        image: &ImageView<'_>,
        least_score: f32,
        count: usize,
    ) -> Result<Vec<Rect>, ModelError> {
        let crop = crop::shown(Window::whole(image), SIDE, SIDE);
        if self.0.show(&crop, image).is_err() {
            return Ok(Vec::new());
        }
        let outputs = self.0.run()?;
        let [x, y] = [image.width(), image.height()].map(|side| side as f32 / SIDE as f32);
        let boxes = decode(outputs.get(0), outputs.get(1), least_score).into_iter();
        let scaled = |b: Rect| Rect::new(b.x * x, b.y * y, b.width * x, b.height * y);
        Ok(boxes.take(count).map(scaled).collect())
    }
}

/// Squares around the peaks of the heat map, in input elements, best first; among equal ones, the
/// last in the map first. `maps` holds the heat map and the radii, `greatest` the maximum heat
/// around each cell.
fn decode(maps: &[f32], greatest: &[f32], least_score: f32) -> Vec<Rect> {
    let (heat, radii) = maps.split_at(maps.len().min(CELLS * CELLS));
    let cells = heat.iter().zip(greatest).zip(radii).enumerate();
    let mut peaks: Vec<(f32, Rect)> = cells
        .filter(|(_, ((heat, greatest), _))| heat == greatest && **heat >= least_score)
        .map(|(cell, ((heat, _), radius))| (*heat, square(cell, radius * RADIUS)))
        .filter(|(heat, square)| (heat + square.width).is_finite())
        .collect();
    peaks.reverse();
    peaks.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    peaks.into_iter().map(|(_, square)| square).collect()
}

/// The square of that radius around a cell.
fn square(cell: usize, radius: f32) -> Rect {
    let [x, y] = [cell % CELLS, cell / CELLS].map(|index| index as f32 * STRIDE);
    Rect::new(x - radius, y - radius, 2.0 * radius, 2.0 * radius)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_of_the_heat_map_are_faces() {
        let at = |column: usize, row: usize| row * CELLS + column;
        // Column, row, heat, greatest heat around, radius.
        let decoded = |cells: &[(usize, usize, f32, f32, f32)]| {
            let mut maps = vec![0.0; 2 * CELLS * CELLS];
            let mut greatest = vec![0.5; CELLS * CELLS];
            for (column, row, heat, around, radius) in cells {
                maps[at(*column, *row)] = *heat;
                maps[CELLS * CELLS + at(*column, *row)] = *radius;
                greatest[at(*column, *row)] = *around;
            }
            decode(&maps, &greatest, 0.6)
        };
        let square = |x: f32, y: f32, side: f32| Rect::new(x, y, side, side);
        for (name, cells, want) in [
            ("nothing", &[][..], vec![]),
            (
                "a peak",
                &[(10, 20, 0.75, 0.75, 0.125)],
                vec![square(26.0, 66.0, 28.0)],
            ),
            (
                "just hot enough",
                &[(0, 0, 0.6, 0.6, 0.25)],
                vec![square(-28.0, -28.0, 56.0)],
            ),
            ("not hot enough", &[(10, 20, 0.59, 0.59, 0.125)], vec![]),
            ("beside a peak", &[(10, 20, 0.75, 0.8, 0.125)], vec![]),
            (
                "the best first, then the last",
                &[
                    (1, 0, 0.75, 0.75, 0.125),
                    (2, 0, 0.75, 0.75, 0.125),
                    (3, 0, 0.875, 0.875, 0.125),
                ],
                vec![
                    square(-2.0, -14.0, 28.0),
                    square(-6.0, -14.0, 28.0),
                    square(-10.0, -14.0, 28.0),
                ],
            ),
            ("no numbers", &[(10, 20, f32::NAN, f32::NAN, 0.125)], vec![]),
            ("no size", &[(10, 20, 0.75, 0.75, f32::NAN)], vec![]),
            (
                "no end",
                &[(10, 20, f32::INFINITY, f32::INFINITY, 0.125)],
                vec![],
            ),
        ] {
            assert_eq!(decoded(cells), want, "{name}");
        }
        for (maps, greatest) in [(0, 0), (10, 10), (2 * CELLS * CELLS, 0)] {
            assert_eq!(decode(&vec![0.7; maps], &vec![0.7; greatest], 0.6), []);
        }
    }
}
