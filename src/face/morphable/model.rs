// SPDX-License-Identifier: MPL-2.0
//! Shapes and expressions, and eos' binary files of them.

/// A PCA model of shapes. The unit is the file's: millimetres in the Surrey Face Model.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeModel {
    /// The mean face: x to the left side of the face, which is the image's right, y up, z out of the face.
    pub mean: Vec<[f32; 3]>,
    /// Number of principal components.
    pub components: usize,
    /// What one standard deviation of each component moves: 3·vertices rows (x, y, z of the first vertex …) of
    /// `components` values. The file's orthonormal vectors, each times the root of its eigenvalue: eos'
    /// `rescale_pca_basis`.
    pub basis: Vec<f32>,
    /// Corners of each triangle, counter-clockwise from outside.
    pub triangles: Vec<[u32; 3]>,
    /// Where each vertex is in a texture, 0…1, v downward; empty where the file has none.
    pub texture_coordinates: Vec<[f32; 2]>,
}

impl ShapeModel {
    /// Reads eos' file of a morphable model, such as `sfm_shape_3448.bin`.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn from_bytes(_bytes: &[u8]) -> Result<Self, String> {
        Err("not read yet".to_owned())
    }

    /// The basis' rows of one coordinate of a vertex: `axis` 0…2.
    pub fn basis_row(&self, vertex: usize, axis: usize) -> &[f32] {
        let row = 3 * vertex + axis;
        &self.basis[row * self.components..][..self.components]
    }
}

/// What an expression at its full strength adds to a face.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// What it is called.
    pub name: String,
    /// How far each vertex moves.
    pub offsets: Vec<[f32; 3]>,
}

impl Expression {
    /// Reads eos' file of blendshapes, such as `expression_blendshapes_3448.bin`.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn all_from_bytes(_bytes: &[u8]) -> Result<Vec<Self>, String> {
        Err("not read yet".to_owned())
    }
}
