// SPDX-License-Identifier: MPL-2.0
//! The edges of a mesh with the triangles on both sides.

use std::collections::BTreeMap;

/// An edge between two triangles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge {
    /// Indices of the triangles.
    pub triangles: [u32; 2],
    /// Indices of the vertices at its ends.
    pub vertices: [u32; 2],
}

/// The edges between two triangles of a mesh: the edges in eos' `sfm_3448_edge_topology.json` for the
/// Surrey Face Model, without the edges at the rim, which a fit does not use.
pub(super) fn edges(triangles: &[[u32; 3]]) -> Vec<Edge> {
    let mut sides = BTreeMap::<[u32; 2], Vec<u32>>::new();
    for (triangle, [a, b, c]) in (0..).zip(triangles) {
        for (from, to) in [(a, b), (b, c), (c, a)] {
            let side = [*from.min(to), *from.max(to)];
            sides.entry(side).or_default().push(triangle);
        }
    }
    let edges = sides.into_iter().filter_map(|(vertices, triangles)| {
        let triangles = triangles.try_into().ok()?;
        Some(Edge {
            triangles,
            vertices,
        })
    });
    edges.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_shape;
    use super::*;

    #[test]
    fn edges_at_the_rim_are_left_out() {
        let edge = Edge {
            triangles: [0, 1],
            vertices: [0, 2],
        };
        assert_eq!(edges(&small_shape().triangles), [edge]);
    }
}
