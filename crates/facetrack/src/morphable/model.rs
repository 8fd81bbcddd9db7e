// SPDX-License-Identifier: MPL-2.0
//! Shapes and expressions, and their binary files in eos' format: `MorphableModel.hpp`,
//! `PcaModel.hpp` and `Blendshape.hpp`.

use nalgebra::DMatrix;

use super::cereal::{Archive, Matrix};

/// Supported versions of eos' class `MorphableModel`. The published Surrey Face Model has version
/// 1; eos 1.5.0 writes 4.
const VERSIONS: std::ops::RangeInclusive<i32> = 1..=4;

/// First versions with expressions, with landmark definitions, and with separate triangles of the
/// texture.
const WITH_EXPRESSIONS: i32 = 2;
const WITH_DEFINITIONS: i32 = 3;
const WITH_TEXTURE_TRIANGLES: i32 = 4;

/// Maximum number of principal components: a fit solves equations with as many unknowns. The Surrey
/// Face Model has 63, the largest models that eos can convert have some hundred.
const MAX_COMPONENTS: usize = 1000;

/// Maximum number of expressions, for the same reason. The Surrey Face Model has 6.
const MAX_EXPRESSIONS: usize = 500;

/// A PCA model of shapes. The unit is the file's: millimetres in the Surrey Face Model.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeModel {
    /// The mean face: x to the left side of the face, which is the image's right, y up, z out of
    /// the face.
    pub mean: Vec<[f32; 3]>,
    /// Number of principal components.
    pub components: usize,
    /// Displacement by one standard deviation of each component: 3·vertices rows (x, y, z of the
    /// first vertex …) of `components` values. The orthonormal vectors of the file, times the
    /// square root of their eigenvalues: eos' `rescale_pca_basis`.
    pub basis: Vec<f32>,
    /// Corners of each triangle, counter-clockwise from outside.
    pub triangles: Vec<[u32; 3]>,
    /// Position of each vertex in a texture, 0…1, v downward; empty if the file has none, or has
    /// them for the corners of triangles.
    pub texture_coordinates: Vec<[f32; 2]>,
}

impl ShapeModel {
    /// Reads eos' file of a morphable model, such as `sfm_shape_3448.bin`, without its colours and
    /// the names of its landmarks.
    ///
    /// # Errors
    /// Returns a description of the problem if the bytes are not such a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        Contents::from_bytes(bytes).map(|contents| contents.shape)
    }

    /// The row of the basis for one coordinate of a vertex, `axis` 0…2.
    pub fn basis_row(&self, vertex: usize, axis: usize) -> &[f32] {
        let row = 3 * vertex + axis;
        &self.basis[row * self.components..][..self.components]
    }

    /// Checks that all numbers are finite, and that all parts belong to one mesh.
    pub(super) fn check(&self) -> Result<(), String> {
        let (vertices, components) = (self.mean.len(), self.components);
        if vertices == 0 {
            return Err("the shape has no vertices".to_owned());
        }
        if !(1..=MAX_COMPONENTS).contains(&components) {
            return Err(format!(
                "the shape has {components} components; 1 to {MAX_COMPONENTS} can be used"
            ));
        }
        if self.basis.len() != 3 * vertices * components {
            return Err("the basis is not of 3·vertices·components values".to_owned());
        }
        let coordinates = self.texture_coordinates.len();
        if coordinates != 0 && coordinates != vertices {
            return Err(format!(
                "there are {coordinates} texture coordinates for {vertices} vertices"
            ));
        }
        if self.triangles.is_empty() {
            return Err("the shape has no triangles".to_owned());
        }
        let mut corners = self.triangles.as_flattened().iter();
        if let Some(corner) = corners.find(|corner| **corner as usize >= vertices) {
            return Err(format!("a triangle has vertex {corner} of {vertices}"));
        }
        let numbers = self.mean.as_flattened().iter().chain(&self.basis);
        let mut numbers = numbers.chain(self.texture_coordinates.as_flattened());
        if numbers.all(|number| number.is_finite()) {
            Ok(())
        } else {
            Err("a number of the shape is not finite".to_owned())
        }
    }
}

/// A deformation of a face.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// Name in the file.
    pub name: String,
    /// Displacement of each vertex for a coefficient of 1.
    pub offsets: Vec<[f32; 3]>,
}

impl Expression {
    /// Reads eos' file of blendshapes, such as `expression_blendshapes_3448.bin`.
    ///
    /// # Errors
    /// Returns a description of the problem if the bytes are not such a file.
    pub fn all_from_bytes(bytes: &[u8]) -> Result<Vec<Self>, String> {
        let mut archive = Archive::new(bytes);
        let expressions = blendshapes(&mut archive)?;
        archive.end()?;
        Ok(expressions)
    }

    /// Checks the number of expressions, and that all fit `shape`.
    pub(super) fn check(expressions: &[Self], shape: &ShapeModel) -> Result<(), String> {
        check_number(expressions.len())?;
        let vertices = shape.mean.len();
        for Self { name, offsets } in expressions {
            let count = offsets.len();
            if count != vertices {
                return Err(format!(
                    "{name:?} has {count} vertices, the shape {vertices}"
                ));
            }
            if !offsets.as_flattened().iter().all(|x| x.is_finite()) {
                return Err(format!("a number of {name:?} is not finite"));
            }
        }
        Ok(())
    }
}

/// Contents of a file of a morphable model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contents {
    pub shape: ShapeModel,
    /// Expressions; `None` if they are in a separate file.
    pub expressions: Option<Vec<Expression>>,
}

impl Contents {
    /// Reads a model: `MorphableModel::serialize`.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let mut archive = Archive::new(bytes);
        let version = archive.i32("the version")?;
        if !VERSIONS.contains(&version) {
            let (first, last) = VERSIONS.into_inner();
            return Err(format!(
                "it begins with version {version}; eos' models of version {first} to {last} are read"
            ));
        }
        let shape = pca(&mut archive, "the shape")?;
        pca(&mut archive, "the colours")?;
        let expressions = if version >= WITH_EXPRESSIONS {
            own_expressions(&mut archive)?
        } else {
            None
        };
        if version >= WITH_DEFINITIONS {
            skip_definitions(&mut archive)?;
        }
        let coordinates = archive.items("the texture coordinates")?;
        let has_own_triangles = version >= WITH_TEXTURE_TRIANGLES
            && !archive.items::<12>("the texture's triangles")?.is_empty();
        archive.end()?;

        let mut shape = shape.to_model()?;
        if !has_own_triangles {
            shape.texture_coordinates = texture_coordinates(coordinates);
        }
        shape.check()?;
        Ok(Self { shape, expressions })
    }
}

/// A PCA model as stored: `PcaModel::serialize`.
struct Pca<'a> {
    mean: Matrix<'a>,
    basis: Matrix<'a>,
    eigenvalues: Matrix<'a>,
    triangles: &'a [[u8; 12]],
}

fn pca<'a>(archive: &mut Archive<'a>, of: &str) -> Result<Pca<'a>, String> {
    Ok(Pca {
        mean: archive.matrix(&format!("the mean of {of}"))?,
        basis: archive.matrix(&format!("the basis of {of}"))?,
        eigenvalues: archive.matrix(&format!("the eigenvalues of {of}"))?,
        triangles: archive.items(&format!("the triangles of {of}"))?,
    })
}

impl Pca<'_> {
    /// The shape, without texture coordinates.
    fn to_model(&self) -> Result<ShapeModel, String> {
        let (rows, components) = (self.basis.rows, self.basis.columns);
        if rows != self.mean.rows {
            let mean = self.mean.rows;
            return Err(format!("the basis has {rows} rows, the mean {mean}"));
        }
        let (eigenvalues, columns) = (self.eigenvalues.rows, self.eigenvalues.columns);
        if (eigenvalues, columns) != (components, 1) {
            return Err(format!(
                "there are {eigenvalues}×{columns} eigenvalues for {components} components"
            ));
        }
        let triangles: Result<_, String> = self.triangles.iter().map(triangle).collect();
        Ok(ShapeModel {
            mean: self.mean.points("the mean")?,
            components,
            basis: self.rescaled_basis()?,
            triangles: triangles?,
            texture_coordinates: Vec::new(),
        })
    }

    /// Returns the rescaled basis in row-major order: `rescale_pca_basis`.
    fn rescaled_basis(&self) -> Result<Vec<f32>, String> {
        let eigenvalues = self.eigenvalues.values("the eigenvalues")?;
        if let Some(eigenvalue) = eigenvalues.iter().find(|value| **value <= 0.0) {
            return Err(format!("an eigenvalue is {eigenvalue}, not above 0"));
        }
        let columns = self.basis.values("the basis")?;
        let mut basis = DMatrix::from_vec(self.basis.rows, self.basis.columns, columns);
        for (mut column, eigenvalue) in basis.column_iter_mut().zip(eigenvalues) {
            column *= eigenvalue.sqrt();
        }
        Ok(basis.transpose().data.into())
    }
}

fn triangle(bytes: &[u8; 12]) -> Result<[u32; 3], String> {
    let [a, b, c] = [0, 4, 8].map(|at| {
        let corner = i32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        u32::try_from(corner).map_err(|_| format!("a triangle has vertex {corner}"))
    });
    Ok([a?, b?, c?])
}

fn texture_coordinates(pairs: &[[u8; 16]]) -> Vec<[f32; 2]> {
    let pairs = pairs.iter().map(|pair| pair.as_chunks().0);
    pairs
        .map(|numbers| [0, 1].map(|i| f64::from_le_bytes(numbers[i]) as f32))
        .collect()
}

/// Minimum number of bytes of an item of a map from names to vertices: an empty name and a number.
const DEFINITION_SIZE: usize = 8 + 4;

/// Minimum number of bytes of a blendshape: an empty name and an empty matrix.
const BLENDSHAPE_SIZE: usize = 8 + 8;

/// Checks the number of expressions.
fn check_number(expressions: usize) -> Result<(), String> {
    if (1..=MAX_EXPRESSIONS).contains(&expressions) {
        Ok(())
    } else {
        Err(format!(
            "there are {expressions} expressions; 1 to {MAX_EXPRESSIONS} can be used"
        ))
    }
}

fn blendshapes(archive: &mut Archive) -> Result<Vec<Expression>, String> {
    let count = archive.count(BLENDSHAPE_SIZE, "the list of expressions")?;
    // The count is checked before reading, because empty expressions take more memory than bytes of
    // the file.
    check_number(count)?;
    let expressions = (0..count).map(|_| {
        let name = archive.string("the name of an expression")?;
        let deformation = archive.matrix(name)?;
        Ok(Expression {
            name: name.to_owned(),
            offsets: deformation.points(name)?,
        })
    });
    expressions.collect()
}

/// Reads a `std::optional` of a `std::variant<PcaModel, Blendshapes>`.
fn own_expressions(archive: &mut Archive) -> Result<Option<Vec<Expression>>, String> {
    if archive.flag("whether there are no expressions")? {
        return Ok(None);
    }
    match archive.i32("the kind of the expressions")? {
        0 => Err("its expressions are principal components; only blendshapes are read".to_owned()),
        1 => blendshapes(archive).map(Some),
        kind => Err(format!(
            "its expressions are of kind {kind}, neither 0 nor 1"
        )),
    }
}

fn skip_definitions(archive: &mut Archive) -> Result<(), String> {
    if archive.flag("whether there are no landmark definitions")? {
        return Ok(());
    }
    for _ in 0..archive.count(DEFINITION_SIZE, "the landmark definitions")? {
        archive.string("the name of a landmark")?;
        archive.i32("the vertex of a landmark")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
