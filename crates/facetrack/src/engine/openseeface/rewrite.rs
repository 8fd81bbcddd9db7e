// SPDX-License-Identifier: MPL-2.0
//! Rewrites the published graphs into those that run.

use std::path::Path;

use facetrack_graph::{Graph, Reason, passes};

use super::{LandmarkContract, Peaks};
use crate::model::{ModelError, format_error, read_onnx};

/// Rewrites the published detector `bytes`, read from `path`, for a single image.
///
/// # Errors
/// Returns an error if the file is damaged.
pub fn detector(path: &Path, bytes: Vec<u8>) -> Result<Graph, ModelError> {
    finish(path, read_onnx(path, bytes)?, 1)
}

/// Rewrites the published landmark network `bytes`, read from `path`, for a single image. It yields
/// what [`Peaks`] takes.
///
/// # Errors
/// Returns an error if the file is damaged or another network.
pub fn landmarks(path: &Path, bytes: Vec<u8>) -> Result<(Graph, Peaks), ModelError> {
    let mut graph = read_onnx(path, bytes)?;
    let contract = contract(&graph).map_err(|actual| ModelError::Tensors {
        path: path.to_owned(),
        expected: LandmarkContract::expected(),
        actual,
    })?;
    let peaks = Peaks::cut(&mut graph, contract);
    Ok((finish(path, graph, 1)?, peaks))
}

/// Rewrites the published gaze network `bytes`, read from `path`, for two images. It yields the
/// first output only; nothing reads the second, which distinguishes open eyes from closed ones.
///
/// # Errors
/// Returns an error if the file is damaged.
pub fn gaze(path: &Path, bytes: Vec<u8>) -> Result<Graph, ModelError> {
    let mut graph = read_onnx(path, bytes)?;
    graph.outputs.truncate(1);
    finish(path, graph, 2)
}

/// `graph` for `batch` images. Hard sigmoids, which are additions, clips and divisions in the files,
/// become one operator.
fn finish(path: &Path, mut graph: Graph, batch: usize) -> Result<Graph, ModelError> {
    graph.set_input_extent(0, Some(batch));
    passes::run(&mut graph, passes::OPENSEEFACE)
        .map_err(|reason| format_error(path, "ONNX", reason))?;
    Ok(graph)
}

/// The contract that the tensors of `graph` fulfil.
fn contract(graph: &Graph) -> Result<LandmarkContract, Reason> {
    let (inputs, outputs) = (graph.specs(&graph.inputs), graph.specs(&graph.outputs));
    let fits = |contract: &LandmarkContract| {
        let [input, output] = [&inputs, &outputs].map(|tensors| match &tensors[..] {
            [tensor] => Some(&tensor.shape[..]),
            _ => None,
        });
        let is = |shape: Option<&[Option<usize>]>, wanted: [usize; 4]| {
            shape.is_some_and(|shape| shape.len() == 4 && shape[1..] == wanted.map(Some)[1..])
        };
        is(input, contract.input_shape()) && is(output, contract.map_shape())
    };
    LandmarkContract::ALL
        .into_iter()
        .find(fits)
        .ok_or_else(|| format!("{inputs:?} to {outputs:?}"))
}
