// SPDX-License-Identifier: MPL-2.0
//! Meshes from coefficients: eos' `draw_sample` and `sample_to_mesh`.
//!
//! A mesh is computed in one pass over the model, in memory order. The loop is compiled for several
//! instruction sets; the best one is selected at run time.

use fearless_simd::{Simd, dispatch};

use super::FaceModel;
use crate::instructions::level;

/// Number of vertices that are computed together: some SIMD registers.
const LANES: usize = 16;

type Lanes = [f32; LANES];

/// The model in blocks of [`LANES`] vertices. A block has x, y and z of the vertices, first for the
/// mean, then for every component and every expression.
pub(super) struct Sampler {
    blocks: Vec<[Lanes; 3]>,
    /// Number of parts of a block: mean, components and expressions.
    parts: usize,
    components: usize,
    vertices: usize,
}

/// The positions of all vertices, by axis, in the model's unit. Padded with 0 to whole blocks.
#[derive(Debug, Clone, Default)]
pub(super) struct Mesh {
    pub axes: [Vec<f32>; 3],
}

impl Mesh {
    /// Position of a vertex.
    pub(super) fn vertex(&self, index: usize) -> [f32; 3] {
        [0, 1, 2].map(|axis| self.axes[axis][index])
    }
}

impl Sampler {
    /// A sampler of `model`, which it copies.
    pub(super) fn new(model: &FaceModel) -> Self {
        let (shape, expressions) = (model.shape(), model.expressions());
        let vertices = shape.mean.len();
        let parts = 1 + shape.components + expressions.len();
        let mut blocks = vec![[[0.0; LANES]; 3]; vertices.div_ceil(LANES) * parts];
        for vertex in 0..vertices {
            let (block, lane) = (vertex / LANES, vertex % LANES);
            let block = &mut blocks[block * parts..][..parts];
            for axis in 0..3 {
                let moves = shape.basis_row(vertex, axis).iter().copied();
                let offsets = expressions.iter().map(|e| e.offsets[vertex][axis]);
                let mean = shape.mean[vertex][axis];
                let values = std::iter::once(mean).chain(moves).chain(offsets);
                for (part, value) in std::iter::zip(&mut *block, values) {
                    part[axis][lane] = value;
                }
            }
        }
        Self {
            blocks,
            parts,
            components: shape.components,
            vertices,
        }
    }

    /// Computes the mesh of a face.
    pub(super) fn sample(&self, shape: &[f32], expression: &[f32], mesh: &mut Mesh) {
        for axis in &mut mesh.axes {
            axis.resize(self.vertices.next_multiple_of(LANES), 0.0);
        }
        // Components take most of the time, and every fit begins with the mean face.
        let shape = if shape.iter().all(|c| *c == 0.0) {
            &[]
        } else {
            shape
        };
        dispatch!(level(), simd => simd.vectorize(
            #[inline(always)]
            || self.fill(shape, expression, mesh)
        ));
    }

    #[inline(always)]
    fn fill(&self, shape: &[f32], expression: &[f32], mesh: &mut Mesh) {
        let [x, y, z] = &mut mesh.axes;
        let out = x.chunks_exact_mut(LANES).zip(y.chunks_exact_mut(LANES));
        let out = out.zip(z.chunks_exact_mut(LANES));
        for (block, ((x, y), z)) in self.blocks.chunks_exact(self.parts).zip(out) {
            let mut sum = block[0];
            add(&mut sum, &block[1..], shape);
            add(&mut sum, &block[1 + self.components..], expression);
            x.copy_from_slice(&sum[0]);
            y.copy_from_slice(&sum[1]);
            z.copy_from_slice(&sum[2]);
        }
    }
}

#[inline(always)]
fn add(sum: &mut [Lanes; 3], parts: &[[Lanes; 3]], coefficients: &[f32]) {
    for (part, coefficient) in std::iter::zip(parts, coefficients) {
        for axis in 0..3 {
            for lane in 0..LANES {
                sum[axis][lane] += part[axis][lane] * coefficient;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::synthetic::{self, Noise, head};
    use super::*;

    #[test]
    fn a_mesh_is_the_mean_and_what_is_added_to_it() {
        let model = head();
        let sampler = Sampler::new(&model);
        let mut noise = Noise(4);
        let mut mesh = Mesh::default();
        for (shape, expression) in [
            (noise.take(10), noise.take(2)),
            (vec![0.0; 10], noise.take(2)),
            (noise.take(3), Vec::new()),
        ] {
            sampler.sample(&shape, &expression, &mut mesh);
            let wanted = synthetic::vertices(&model, &shape, &expression);
            for (vertex, wanted) in wanted.into_iter().enumerate() {
                for (got, wanted) in std::iter::zip(mesh.vertex(vertex), wanted) {
                    assert!((got - wanted).abs() < 1e-4, "{vertex}: {got} {wanted}");
                }
            }
        }
    }
}
