// SPDX-License-Identifier: MPL-2.0
//! A 3-D morphable model of faces, and its fit to 68 landmarks: what `eos::fitting::fit_shape_and_pose` of eos 1.5.0
//! (patrikhuber/eos, commit ce984207) computes, from the files that eos publishes.
//!
//! A shape is the mean face plus principal components, an expression adds non-negative multiples of some deformations, and
//! the camera is a scaled orthographic one: rotation, scale, and a place in the image. [`Fitter::fit`] finds all of them for
//! one set of landmarks, without a detector or a network; [`Fitter::follow`] does it for a face in a video.
//!
//! ```no_run
//! use std::sync::Arc;
//! use gstfacetrack::face::geometry::Point;
//! use gstfacetrack::face::morphable::{self, FitSettings, Fitter};
//!
//! # fn landmarks() -> [Point; 68] { [Point::default(); 68] }
//! let (model, _files) = morphable::load(None, Some("models/eos".as_ref()))?;
//! let mut fitter = Fitter::new(Arc::new(model), FitSettings::default());
//! let fit = fitter.fit(&landmarks())?;
//! println!("{:?} {:?}", fit.shape, fit.expression);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cereal;
mod contours;
mod correspondence;
mod expression;
mod fit;
mod fitted;
mod identity;
#[cfg(test)]
mod invented;
mod landmarks;
mod load;
mod mapping;
mod mesh;
mod model;
pub mod obj;
mod observed;
mod pose;
mod shape;
mod topology;
mod turns;
mod visibility;

pub use contours::ModelContours;
pub use fit::{FitSettings, Fitter};
pub use fitted::Fit;
pub use identity::Past;
pub use load::load;
pub use mapping::LandmarkMapping;
pub use model::{Expression, ShapeModel};
pub use pose::Pose;
pub use topology::{Edge, EdgeTopology};

/// Landmarks that a model is fitted to: iBUG's.
pub const LANDMARKS: usize = 68;

/// Most bytes of a small text file; the largest of eos' has 3 KB.
const MAX_TEXT: usize = 1 << 20;

/// Everything that a fit needs to know of faces. All indices in it are within bounds: [`FaceModel::new`] checks them.
#[derive(Debug, Clone)]
pub struct FaceModel {
    shape: ShapeModel,
    expressions: Vec<Expression>,
    mapping: LandmarkMapping,
    contours: ModelContours,
    topology: EdgeTopology,
    landmark_vertices: [usize; LANDMARKS],
}

impl FaceModel {
    /// The model made of parts that belong together.
    ///
    /// # Errors
    /// Says which part does not fit the shape model: an expression with another number of vertices, a vertex or triangle
    /// that is not there, a landmark beyond [`LANDMARKS`], an edge that its triangles do not have.
    pub fn new(
        shape: ShapeModel,
        expressions: Vec<Expression>,
        mapping: LandmarkMapping,
        contours: ModelContours,
        topology: EdgeTopology,
    ) -> Result<Self, String> {
        shape.check()?;
        let part = |name: &'static str| move |reason| format!("{name}: {reason}");
        Expression::check(&expressions, &shape).map_err(part("the expressions"))?;
        mapping.check(&shape).map_err(part("the landmarks"))?;
        contours.check(&shape).map_err(part("the contours"))?;
        topology.check(&shape).map_err(part("the edges"))?;
        Ok(Self {
            landmark_vertices: landmarks::landmark_vertices(&shape, &mapping),
            shape,
            expressions,
            mapping,
            contours,
            topology,
        })
    }

    /// Identity: mean, components and mesh.
    pub fn shape(&self) -> &ShapeModel {
        &self.shape
    }

    /// Expressions, in the file's order.
    pub fn expressions(&self) -> &[Expression] {
        &self.expressions
    }

    /// Which landmark belongs to which vertex.
    pub fn mapping(&self) -> &LandmarkMapping {
        &self.mapping
    }

    /// The vertex of each landmark on a fitted mesh, those of the outline aside, which differ from fit to fit: the mapping's,
    /// where it has one. The inner corners of the mouth, which eos' mapping leaves out, are the vertices of the upper lip next
    /// to the corners of the mesh's opening; a landmark that is then left takes the vertex of the nearest one in number.
    pub fn landmark_vertices(&self) -> &[usize; LANDMARKS] {
        &self.landmark_vertices
    }

    /// Vertices of the mean face's outline.
    pub fn contours(&self) -> &ModelContours {
        &self.contours
    }

    /// The mesh's edges.
    pub fn topology(&self) -> &EdgeTopology {
        &self.topology
    }
}

#[cfg(test)]
mod tests;
