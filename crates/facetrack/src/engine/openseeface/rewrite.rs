// SPDX-License-Identifier: MPL-2.0
//! Rewrites the published graphs into equal ones that ONNX Runtime runs faster.
//!
//! ONNX Runtime keeps images in a layout of blocks of channels (`NCHWc`) between operators that it knows, and leaves the
//! layout, and returns to it, around all others. The published graphs make it do so some twenty times:
//! their hard sigmoids are written as additions, clips and divisions, their squeeze-and-excitation multiplies images by
//! one number per channel, the numbers of channels are not whole blocks, and the last convolutions have several filters
//! per channel. One file for each of these. Beside that, offsets are computed only where they are read, which is a third
//! of the landmark network's time.

mod blocks;
mod convolution;
mod gates;
mod hard_sigmoid;
mod peaks;
mod tail;

use std::path::Path;

use super::LandmarkContract;
use crate::model::ModelError;
use crate::model::onnx_file::{OnnxFile, Reason};

/// Makes of the published detector `bytes`, read from `path`, one that takes a single image.
///
/// # Errors
/// When it is damaged.
pub fn detector(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, ModelError> {
    let mut file = OnnxFile::read(path, bytes)?;
    file.fix_batch(1);
    hard_sigmoid::fuse(&mut file);
    gates::stretch(&mut file);
    tail::split_all(&mut file);
    finish(file)
}

/// Makes of the published landmark network `bytes`, read from `path`, one that takes a single image and yields `[4, n]`
/// of the `n` landmarks: the greatest value of each heat map, its cell counted along rows, and the offsets of row and
/// column there.
///
/// # Errors
/// When it is damaged or another network.
pub fn landmarks(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, ModelError> {
    let mut file = OnnxFile::read(path, bytes)?;
    let contract = contract(&file).map_err(|actual| ModelError::Tensors {
        path: path.to_owned(),
        expected: LandmarkContract::expected(),
        actual,
    })?;
    file.fix_batch(1);
    hard_sigmoid::fuse(&mut file);
    gates::stretch(&mut file);
    peaks::find(&mut file, &contract);
    finish(file)
}

/// Makes of the published gaze network `bytes`, read from `path`, one that takes two images and yields the first output
/// alone; the second, which tells open eyes from closed ones, is read by nobody.
///
/// # Errors
/// When it is damaged.
pub fn gaze(path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, ModelError> {
    let mut file = OnnxFile::read(path, bytes)?;
    let outputs = file.outputs().into_iter().map(|output| output.name);
    let first: Vec<String> = outputs.take(1).collect();
    file.fix_batch(2);
    file.set_outputs(&first);
    hard_sigmoid::fuse(&mut file);
    gates::stretch(&mut file);
    tail::split_all(&mut file);
    finish(file)
}

fn finish(mut file: OnnxFile) -> Result<Vec<u8>, ModelError> {
    file.drop_unused();
    blocks::round_channels(&mut file, blocks::block());
    file.drop_unused();
    Ok(file.encode())
}

/// The contract that the tensors of `file` fulfil.
fn contract(file: &OnnxFile) -> Result<LandmarkContract, Reason> {
    let (inputs, outputs) = (file.inputs(), file.outputs());
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
