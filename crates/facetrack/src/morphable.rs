// SPDX-License-Identifier: MPL-2.0
//! A 3-D morphable model of faces, and its fit to 68 landmarks: `eos::fitting::fit_shape_and_pose`
//! of eos 1.5.0 (patrikhuber/eos, commit ce984207), with the files that eos publishes.
//!
//! A shape is the mean face plus principal components. An expression adds non-negative multiples of
//! some deformations. The camera is scaled orthographic: rotation, scale, and position in the
//! image. [`Fitter::fit`] computes all of them from one set of landmarks, without a detector or a
//! network; [`Fitter::follow`] does so for a face in a video.
//!
//! ```no_run
//! use std::sync::Arc;
//! use facetrack::geometry::Point;
//! use facetrack_assets::locate::SearchPaths;
//! use facetrack::morphable::{self, FitSettings, Fitter};
//!
//! # fn landmarks() -> [Point; 68] { [Point::default(); 68] }
//! let paths = SearchPaths {
//!     models_dir: Some("models/eos".into()),
//!     ..SearchPaths::default()
//! };
//! let (model, _files) = morphable::load(None, &paths)?;
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
mod visibility;

pub use contours::ModelContours;
pub use fit::{FitSettings, Fitter};
pub use fitted::Fit;
pub use identity::Past;
pub use load::load;
pub use mapping::LandmarkMapping;
pub use model::{Expression, ShapeModel};
pub use pose::Pose;
use topology::Edge;

/// Number of landmarks that a model is fitted to: iBUG's.
pub const LANDMARKS: usize = 68;

/// Maximum number of bytes of a small text file; eos' largest has 3 KB.
const MAX_TEXT: usize = 1 << 20;

/// A morphable model with its landmarks, contours and edges. All indices are within bounds:
/// [`FaceModel::new`] checks them.
#[derive(Debug, Clone)]
pub struct FaceModel {
    shape: ShapeModel,
    expressions: Vec<Expression>,
    mapping: LandmarkMapping,
    contours: ModelContours,
    edges: Vec<Edge>,
    landmark_vertices: [usize; LANDMARKS],
}

impl FaceModel {
    /// Combines the parts of a model.
    ///
    /// # Errors
    /// Returns a description of the part that does not fit the shape model: an expression with
    /// another number of vertices, a vertex that does not exist, a landmark beyond [`LANDMARKS`].
    pub fn new(
        shape: ShapeModel,
        expressions: Vec<Expression>,
        mapping: LandmarkMapping,
        contours: ModelContours,
    ) -> Result<Self, String> {
        shape.check()?;
        let part = |name: &'static str| move |reason| format!("{name}: {reason}");
        Expression::check(&expressions, &shape).map_err(part("the expressions"))?;
        mapping.check(&shape).map_err(part("the landmarks"))?;
        contours.check(&shape).map_err(part("the contours"))?;
        Ok(Self {
            landmark_vertices: landmarks::landmark_vertices(&shape, &mapping),
            edges: topology::edges(&shape.triangles),
            shape,
            expressions,
            mapping,
            contours,
        })
    }

    /// The shape: mean, components and mesh.
    pub fn shape(&self) -> &ShapeModel {
        &self.shape
    }

    /// Expressions, in the file's order.
    pub fn expressions(&self) -> &[Expression] {
        &self.expressions
    }

    /// The vertices of landmarks.
    pub fn mapping(&self) -> &LandmarkMapping {
        &self.mapping
    }

    /// The vertex of each landmark on a fitted mesh, except that landmarks of the outline have
    /// other vertices in every fit. It is the vertex of the mapping, if there is one. The inner
    /// corners of the mouth, which eos' mapping does not have, are the vertices of the upper lip
    /// next to the corners of the mesh's opening. Any other landmark takes the vertex of the
    /// landmark with the nearest number.
    pub fn landmark_vertices(&self) -> &[usize; LANDMARKS] {
        &self.landmark_vertices
    }

    /// Vertices of the mean face's outline.
    pub fn contours(&self) -> &ModelContours {
        &self.contours
    }
}

#[cfg(test)]
mod tests;
