// SPDX-License-Identifier: MPL-2.0
//! Shapes and expressions, and eos' binary files of them: `MorphableModel.hpp`, `PcaModel.hpp` and `Blendshape.hpp`.

use super::cereal::{Archive, Matrix};

/// Versions of eos' class `MorphableModel` that there are files of. The published Surrey Face Model has 1, eos 1.5.0 writes
/// 4.
const VERSIONS: std::ops::RangeInclusive<i32> = 1..=4;

/// The first version with expressions in it, with landmark definitions, with triangles of the texture's own.
const WITH_EXPRESSIONS: i32 = 2;
const WITH_DEFINITIONS: i32 = 3;
const WITH_TEXTURE_TRIANGLES: i32 = 4;

/// Most principal components: a fit solves equations in that many unknowns. The Surrey Face Model has 63, the largest models
/// that eos can convert have some hundred.
const MAX_COMPONENTS: usize = 1000;

/// Most expressions, for the same reason. The Surrey Face Model has 6.
const MAX_EXPRESSIONS: usize = 500;

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
    /// Where each vertex is in a texture, 0…1, v downward; empty where the file has none, or has them for corners of
    /// triangles.
    pub texture_coordinates: Vec<[f32; 2]>,
}

impl ShapeModel {
    /// Reads eos' file of a morphable model, such as `sfm_shape_3448.bin`. Its colours and the names of its landmarks are
    /// passed over.
    ///
    /// # Errors
    /// Says what is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        Contents::from_bytes(bytes).map(|contents| contents.shape)
    }

    /// The basis' rows of one coordinate of a vertex: `axis` 0…2.
    pub fn basis_row(&self, vertex: usize, axis: usize) -> &[f32] {
        let row = 3 * vertex + axis;
        &self.basis[row * self.components..][..self.components]
    }

    /// Whether all numbers are finite, and all parts of one mesh.
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
        match numbers.all(|number| number.is_finite()) {
            true => Ok(()),
            false => Err("a number of the shape is not finite".to_owned()),
        }
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
    pub fn all_from_bytes(bytes: &[u8]) -> Result<Vec<Self>, String> {
        let mut archive = Archive::new(bytes);
        let expressions = blendshapes(&mut archive)?;
        archive.end()?;
        Ok(expressions)
    }

    /// Whether there are any, and all are those of `shape`.
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

/// What a file of a morphable model holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contents {
    pub shape: ShapeModel,
    /// `None` where they come in a file of their own.
    pub expressions: Option<Vec<Expression>>,
}

impl Contents {
    /// `MorphableModel::serialize`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
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
        let expressions = match version >= WITH_EXPRESSIONS {
            true => own_expressions(&mut archive)?,
            false => None,
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

/// A PCA model as it is stored: `PcaModel::serialize`.
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

    /// Row after row: `rescale_pca_basis`.
    fn rescaled_basis(&self) -> Result<Vec<f32>, String> {
        let (rows, components) = (self.basis.rows, self.basis.columns);
        let eigenvalues = self.eigenvalues.values("the eigenvalues")?;
        if let Some(eigenvalue) = eigenvalues.iter().find(|value| **value <= 0.0) {
            return Err(format!("an eigenvalue is {eigenvalue}, not above 0"));
        }
        let columns = self.basis.values("the basis")?;
        let mut rescaled = vec![0.0; columns.len()];
        for (component, eigenvalue) in eigenvalues.iter().enumerate() {
            let deviation = eigenvalue.sqrt();
            for row in 0..rows {
                rescaled[row * components + component] =
                    columns[component * rows + row] * deviation;
            }
        }
        Ok(rescaled)
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

/// The least bytes of an item of a map from names to vertices: an empty name and a number.
const DEFINITION_SIZE: usize = 8 + 4;

/// The least bytes of a blendshape: an empty name and an empty matrix.
const BLENDSHAPE_SIZE: usize = 8 + 8;

/// Whether so many expressions can be used.
fn check_number(expressions: usize) -> Result<(), String> {
    match expressions {
        1..=MAX_EXPRESSIONS => Ok(()),
        _ => Err(format!(
            "there are {expressions} expressions; 1 to {MAX_EXPRESSIONS} can be used"
        )),
    }
}

fn blendshapes(archive: &mut Archive) -> Result<Vec<Expression>, String> {
    let count = archive.count(BLENDSHAPE_SIZE, "the list of expressions")?;
    // Before they are read: empty ones take more memory than bytes of the file.
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

/// A `std::optional` of a `std::variant<PcaModel, Blendshapes>`.
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
