// SPDX-License-Identifier: MPL-2.0
//! Meshes as Wavefront OBJ files.

use std::io::{self, Write};

use super::ShapeModel;

/// Writes `vertices`, in any unit, y up, with the triangles and texture coordinates of `model`.
/// Like eos' `write_obj.hpp` it writes the texture's v upward.
///
/// # Errors
/// Returns the errors of `output`; [`io::ErrorKind::InvalidInput`] if the model has another number
/// of vertices.
pub fn write(output: &mut dyn Write, vertices: &[[f32; 3]], model: &ShapeModel) -> io::Result<()> {
    let expected = model.mean.len();
    if vertices.len() != expected {
        let reason = format!("{} vertices for a model of {expected}", vertices.len());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    for [x, y, z] in vertices {
        writeln!(output, "v {x} {y} {z}")?;
    }
    for [u, v] in &model.texture_coordinates {
        writeln!(output, "vt {u} {}", 1.0 - v)?;
    }
    for triangle in &model.triangles {
        let [a, b, c] = triangle.map(|corner| corner + 1);
        if model.texture_coordinates.is_empty() {
            writeln!(output, "f {a} {b} {c}")?;
        } else {
            writeln!(output, "f {a}/{a} {b}/{b} {c}/{c}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_shape;
    use super::*;

    fn written(vertices: &[[f32; 3]], model: &ShapeModel) -> String {
        let mut output = Vec::new();
        write(&mut output, vertices, model).expect("memory takes it");
        String::from_utf8(output).expect("it is text")
    }

    /// The numbers of the lines that begin with `key`.
    fn read<T: std::str::FromStr>(text: &str, key: &str) -> Vec<Vec<T>> {
        let number = |word: &str| word.parse().ok().expect("a number");
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let lines = lines.filter(|(own, _)| *own == key);
        lines
            .map(|(_, line)| line.split([' ', '/']).map(number).collect())
            .collect()
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut model = small_shape();
        let mut vertices = model.mean.clone();
        vertices[1] = [-1e-7, 123.456_79, 1e20];
        let text = written(&vertices, &model);
        assert_eq!(read::<f32>(&text, "v"), vertices);
        let upward = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]];
        assert_eq!(read::<f32>(&text, "vt"), upward);
        let corners = [[1, 1, 2, 2, 3, 3], [1, 1, 3, 3, 4, 4]];
        assert_eq!(read::<u32>(&text, "f"), corners);
        assert_eq!(text.lines().count(), 4 + 4 + 2);

        model.texture_coordinates.clear();
        let text = written(&vertices, &model);
        assert_eq!(read::<u32>(&text, "f"), [[1, 2, 3], [1, 3, 4]]);
        assert_eq!(text.lines().count(), 4 + 2);
    }

    #[test]
    fn other_meshes_are_refused() {
        let error = write(&mut Vec::new(), &[[0.0; 3]; 3], &small_shape()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(error.to_string(), "3 vertices for a model of 4");
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut little = [0; 20];
        let vertices = small_shape().mean;
        assert!(write(&mut little.as_mut_slice(), &vertices, &small_shape()).is_err());
    }
}
