// SPDX-License-Identifier: MPL-2.0
//! The edges of a mesh with the triangles at both sides: eos' `sfm_3448_edge_topology.json`.

/// Everything is counted from 0 here, from 1 in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeTopology {
    /// Edges between two triangles. The file also has those at the rim of the mesh, which a fit has no use for.
    pub edges: Vec<Edge>,
}

/// An edge between two triangles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The triangles.
    pub triangles: [u32; 2],
    /// Its ends.
    pub vertices: [u32; 2],
}

impl EdgeTopology {
    /// Reads the text of the file.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn from_json(_text: &str) -> Result<Self, String> {
        Err("not read yet".to_owned())
    }
}
