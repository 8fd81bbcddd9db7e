// SPDX-License-Identifier: MPL-2.0
//! The edges of a mesh with the triangles on both sides: eos' `sfm_3448_edge_topology.json`.

use serde::Deserialize;

use super::ShapeModel;

/// The edges of a mesh. Indices start at 0 here, and at 1 in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeTopology {
    /// Edges between two triangles. The file also has edges at the rim of the mesh, which a fit
    /// does not use.
    pub edges: Vec<Edge>,
}

/// An edge between two triangles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// Indices of the triangles.
    pub triangles: [u32; 2],
    /// Indices of the vertices at its ends.
    pub vertices: [u32; 2],
}

#[derive(Deserialize)]
struct Document {
    edge_topology: Lists,
}

#[derive(Deserialize)]
struct Lists {
    adjacent_faces: Vec<Pair>,
    adjacent_vertices: Vec<Pair>,
}

/// A `std::array<int, 2>`, as cereal writes it.
#[derive(Deserialize)]
struct Pair {
    value0: u32,
    value1: u32,
}

impl EdgeTopology {
    /// Reads the text of the file.
    ///
    /// # Errors
    /// Returns a description of the problem if the text is not such a file.
    pub fn from_json(text: &str) -> Result<Self, String> {
        let document: Document = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let Lists {
            adjacent_faces: triangles,
            adjacent_vertices: vertices,
        } = document.edge_topology;
        if triangles.len() != vertices.len() {
            let (triangles, vertices) = (triangles.len(), vertices.len());
            return Err(format!(
                "{triangles} edges have triangles, and {vertices} have vertices"
            ));
        }
        let edges = triangles.into_iter().zip(vertices);
        let edges = edges.filter_map(|(triangles, vertices)| {
            let triangles = triangles.counted_from_0()?;
            let vertices = vertices.counted_from_0();
            let edge = vertices.map(|vertices| Edge {
                triangles,
                vertices,
            });
            Some(edge.ok_or("an edge has vertex 0; they are counted from 1"))
        });
        let edges = edges.collect::<Result<_, _>>()?;
        Ok(Self { edges })
    }

    /// Checks that there are edges, all of them edges of `shape`.
    pub(super) fn check(&self, shape: &ShapeModel) -> Result<(), String> {
        if self.edges.is_empty() {
            return Err("it has no edges between triangles".to_owned());
        }
        let Some(edge) = self.edges.iter().find(|edge| !edge.is_of(shape)) else {
            return Ok(());
        };
        let [a, b] = edge.triangles.map(|triangle| triangle + 1);
        let [from, to] = edge.vertices.map(|vertex| vertex + 1);
        Err(format!(
            "the shape has no triangles {a} and {b} with the edge from vertex {from} to {to}"
        ))
    }
}

impl Edge {
    fn is_of(&self, shape: &ShapeModel) -> bool {
        let [a, b] = self.triangles;
        let [from, to] = self.vertices;
        let has_edge = |triangle: u32| {
            let corners = shape.triangles.get(triangle as usize);
            corners.is_some_and(|corners| corners.contains(&from) && corners.contains(&to))
        };
        a != b && from != to && has_edge(a) && has_edge(b)
    }
}

impl Pair {
    /// The same two numbers counted from 0; `None` if one is 0, which the file has for a missing
    /// triangle.
    fn counted_from_0(&self) -> Option<[u32; 2]> {
        Some([self.value0.checked_sub(1)?, self.value1.checked_sub(1)?])
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_shape;
    use super::*;

    const TEXT: &str = r#"{"edge_topology": {
        "adjacent_faces": [{"value0": 0, "value1": 1}, {"value0": 1, "value1": 2}],
        "adjacent_vertices": [{"value0": 1, "value1": 2}, {"value0": 3, "value1": 1}]}}"#;

    #[test]
    fn edges_at_the_rim_are_left_out() {
        let topology = EdgeTopology::from_json(TEXT).unwrap();
        let edge = Edge {
            triangles: [0, 1],
            vertices: [2, 0],
        };
        assert_eq!(topology.edges, [edge]);
        assert_eq!(topology.check(&small_shape()), Ok(()));
    }

    #[test]
    fn what_is_no_topology_is_refused_with_the_reason() {
        let inner = r#"{"value0": 1, "value1": 2}]"#;
        let ends = r#"{"value0": 3, "value1": 1}"#;
        for (what, instead, reason) in [
            ("edge_topology", "edges", "`edge_topology`"),
            ("adjacent_faces", "faces", "`adjacent_faces`"),
            (inner, r#"{"value0": 1}]"#, "`value1`"),
            (inner, r#"{"value0": -1, "value1": 2}]"#, "-1"),
            (
                inner,
                r#"{"value0": 4294967296, "value1": 2}]"#,
                "4294967296",
            ),
            (
                inner,
                r#"{"value0": 4294967295, "value1": 2}]"#,
                "no triangles 4294967295 and 2",
            ),
            (
                inner,
                r#"{"value0": 1, "value1": 3}]"#,
                "no triangles 1 and 3",
            ),
            (
                inner,
                r#"{"value0": 1, "value1": 1}]"#,
                "no triangles 1 and 1",
            ),
            (
                inner,
                r#"{"value0": 0, "value1": 2}]"#,
                "no edges between triangles",
            ),
            (inner, "[1, 2], [2, 1]]", "2 have vertices"),
            (ends, r#"{"value0": 0, "value1": 1}"#, "counted from 1"),
            (ends, r#"{"value0": 2, "value1": 1}"#, "vertex 2 to 1"),
            (ends, r#"{"value0": 3, "value1": 3}"#, "vertex 3 to 3"),
            (ends, r#"{"value0": 5, "value1": 1}"#, "vertex 5 to 1"),
            ("}]}}", "}]}", "EOF"),
            ("}]}}", "}]}}}", "trailing characters"),
        ] {
            let broken = TEXT.replacen(what, instead, 1);
            assert_ne!(broken, TEXT, "{what}");
            let topology = EdgeTopology::from_json(&broken);
            let error = topology.and_then(|topology| topology.check(&small_shape()));
            let error = error.unwrap_err();
            assert!(error.contains(reason), "{what} → {instead}: {error}");
        }
    }

    #[test]
    fn damaged_text_is_refused() {
        assert!(EdgeTopology::from_json(&"[".repeat(100_000)).is_err());
        for end in 0..TEXT.len() {
            assert!(EdgeTopology::from_json(&TEXT[..end]).is_err(), "{end}");
        }
    }
}
