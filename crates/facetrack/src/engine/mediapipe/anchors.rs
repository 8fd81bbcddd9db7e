// SPDX-License-Identifier: MPL-2.0
//! Anchors of BlazeFace's short-range detector.

use crate::geometry::Point;

/// Grids of the detector's output in order: cells per side, anchors per cell.
///
/// `face_detector_graph.cc` asks `SsdAnchorsCalculator` for the strides 8, 16, 16, 16 over 128 px
/// with two anchors (the aspect ratio 1 and its interpolation) each; layers of one stride share
/// their cells.
const GRIDS: [(usize, usize); 2] = [(16, 2), (8, 6)];

/// Number of anchors.
pub(super) const COUNT: usize = 896;

/// Centres of the anchors in the order of the detector's output, in units of the input's sides. All
/// have the size 1×1.
pub(super) fn centers() -> Vec<Point> {
    GRIDS
        .into_iter()
        .flat_map(|(cells, per_cell)| {
            let center = move |cell: usize| (cell as f32 + 0.5) / cells as f32;
            (0..cells * cells * per_cell).map(move |index| {
                let cell = index / per_cell;
                Point::new(center(cell % cells), center(cell / cells))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_table() {
        let centers = centers();
        assert_eq!(centers.len(), COUNT);
        for (index, x, y) in [
            (0, 0.03125, 0.03125),
            (1, 0.03125, 0.03125),
            (2, 0.09375, 0.03125),
            (32, 0.03125, 0.09375),
            (511, 0.96875, 0.96875),
            (512, 0.0625, 0.0625),
            (517, 0.0625, 0.0625),
            (518, 0.1875, 0.0625),
            (560, 0.0625, 0.1875),
            (895, 0.9375, 0.9375),
        ] {
            assert_eq!(centers[index], Point::new(x, y), "anchor {index}");
        }
    }
}
