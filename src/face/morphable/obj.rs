// SPDX-License-Identifier: MPL-2.0
//! A mesh as a Wavefront OBJ file, which every 3-D program reads.

use std::io::{self, Write};

use super::ShapeModel;

/// Writes `vertices`, any units, with the triangles and texture coordinates of `model`.
///
/// # Errors
/// Those of `output`; [`io::ErrorKind::InvalidInput`] for another number of vertices than the model has.
pub fn write(
    _output: &mut dyn Write,
    _vertices: &[[f32; 3]],
    _model: &ShapeModel,
) -> io::Result<()> {
    Err(io::Error::other("not written yet"))
}
