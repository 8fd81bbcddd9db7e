// SPDX-License-Identifier: MPL-2.0
//! A pack: a folder of networks, each recognised by its tensors as `ModelRouter.get_model` in
//! `model_zoo.py` and the classes behind it do it. Of several networks for a task, the first by
//! file name is used, as in `FaceAnalysis`, unless a pack also has it in half precision.

use std::fs;
use std::path::{Path, PathBuf};

use facetrack_graph::outline::{OnnxOutline, Precision};

use super::Module;
use super::opened::{Layers, Opened};
use super::package::{self, Declared, unusable};
use crate::model::{ModelError, ModelFile, TensorSpec, file, read_outline};
use crate::sample::ValueRange;
use facetrack_assets::manifest;

/// Maximum size of a file in a pack, bytes. The largest known network has 261 MB;
/// `inswapper_128.onnx`, which is recognised and skipped, has 554 MB.
const MAX_BYTES: u64 = 1 << 30;

/// Values of a face in the output of `1k3d68`; `Landmark` in `landmark.py` knows it by them.
const VALUES_3D: usize = 3309;

/// Opens the networks in `folder` that `wanted` selects, one for each task: the first one in
/// `precision`, or else the first one. `open` receives the task, the path and the content of a
/// file. Files of other networks are skipped.
///
/// # Errors
/// Returns [`ModelError::Pack`] for a folder without a detector, others for a file that is damaged
/// or can't be opened.
pub fn open(
    folder: &Path,
    precision: Precision,
    wanted: impl Fn(Module) -> bool,
    mut open: impl FnMut(Module, &Path, Vec<u8>) -> Result<Layers, ModelError>,
) -> Result<Vec<Opened>, ModelError> {
    let networks = match package::declared(folder)? {
        Some(declared) => stated(folder, declared, wanted)?,
        None => recognised(folder, precision, wanted)?,
    };
    if !networks.iter().any(|n| n.module == Module::Detection) {
        return Err(unusable(folder, "none of its .onnx files is a detector"));
    }
    networks
        .into_iter()
        .map(|network| {
            let Network { module, path, .. } = network;
            let bytes = file::bytes_of(&path, "ONNX", MAX_BYTES)?;
            let layers = open(module, &path, bytes).map_err(|error| of_pack(folder, error))?;
            let (model, rest, boxes) = layers;
            Ok(Opened {
                module,
                model,
                rest,
                boxes,
                range: network.range,
                path,
                file: network.file,
            })
        })
        .collect()
}

/// A network to be opened. Its file is read to choose it and then dropped, because a pack may have
/// hundreds of megabytes.
struct Network {
    module: Module,
    path: PathBuf,
    file: ModelFile,
    precision: Precision,
    range: ValueRange,
}

/// The networks that a manifest declares.
fn stated(
    folder: &Path,
    declared: Vec<Declared>,
    wanted: impl Fn(Module) -> bool,
) -> Result<Vec<Network>, ModelError> {
    let declared = declared.into_iter().filter(|it| wanted(it.module));
    declared
        .map(|it| {
            let (file, outline) = outline(folder, &it.path)?;
            let refuse = |reason: String| unusable(folder, &reason);
            it.check(&file).map_err(refuse)?;
            if recognise(&outline) != Some(it.module) {
                let path = it.path.display();
                return Err(refuse(format!("{path} has other tensors than its task")));
            }
            Ok(Network {
                module: it.module,
                path: it.path,
                file,
                precision: outline.precision,
                range: it.range,
            })
        })
        .collect()
}

/// A file of a pack and the outside of its network.
fn outline(folder: &Path, path: &Path) -> Result<(ModelFile, OnnxOutline), ModelError> {
    let (bytes, file) = file::read_up_to(MAX_BYTES, path, "ONNX")?;
    let outline = read_outline(path, &bytes).map_err(|error| of_pack(folder, error))?;
    Ok((file, outline))
}

/// The networks that are recognised by their tensors.
fn recognised(
    folder: &Path,
    precision: Precision,
    wanted: impl Fn(Module) -> bool,
) -> Result<Vec<Network>, ModelError> {
    let mut networks: Vec<Network> = Vec::new();
    for path in onnx_files(folder)? {
        let (file, outline) = outline(folder, &path)?;
        let Some(module) = recognise(&outline).filter(|module| wanted(*module)) else {
            continue;
        };
        let is_better =
            |other: &Network| outline.precision == precision && other.precision != precision;
        match networks.iter().position(|own| own.module == module) {
            Some(index) if !is_better(&networks[index]) => continue,
            Some(index) => drop(networks.remove(index)),
            None => {}
        }
        networks.push(Network {
            module,
            path,
            file,
            precision: outline.precision,
            range: range(module, &outline.first_nodes),
        });
    }
    Ok(networks)
}

/// The files of the networks that a pack may open.
///
/// # Errors
/// Returns an error if the folder or its manifest cannot be read.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>, ModelError> {
    match package::declared(folder)? {
        Some(declared) => Ok(declared.into_iter().map(|it| it.path).collect()),
        None => onnx_files(folder),
    }
}

/// The ONNX files in a folder, by name.
fn onnx_files(folder: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let unreadable = |source| ModelError::Read {
        path: folder.to_owned(),
        source,
    };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()).map_err(unreadable));
    let mut files = paths.collect::<Result<Vec<_>, _>>()?;
    files.retain(|path| path.extension().is_some_and(|end| end == "onnx") && path.is_file());
    files.sort_unstable();
    Ok(files)
}

/// Converts the error of a damaged file: the whole pack has to be replaced, unless the file can be
/// fetched separately.
fn of_pack(folder: &Path, error: ModelError) -> ModelError {
    match error {
        ModelError::Format { path, reason, .. } if !is_known(&path) => unusable(
            folder,
            &format!("{} is not a valid ONNX file: {reason}", path.display()),
        ),
        error => error,
    }
}

fn is_known(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    manifest::known(&name).is_some()
}

/// Task of a network; `None` for a network that this engine does not use.
fn recognise(outline: &OnnxOutline) -> Option<Module> {
    let [input] = &outline.inputs[..] else {
        return None;
    };
    if outline.outputs.len() >= 5 {
        return Some(Module::Detection);
    }
    let ([output], Some(side)) = (&outline.outputs[..], side(input)) else {
        return None;
    };
    match (side, values(output)?) {
        (192, VALUES_3D) => Some(Module::Landmark3d68),
        (192, 212) => Some(Module::Landmark2d106),
        (96, 3) => Some(Module::GenderAge),
        (192 | 96, _) => None,
        (112.., _) if side.is_multiple_of(16) => Some(Module::Recognition),
        _ => None,
    }
}

/// Width and height of the input of a network of faces, px.
pub(super) fn side(input: &TensorSpec) -> Option<usize> {
    match input.shape[..] {
        [_, Some(3), Some(height), Some(width)] if height == width => Some(width),
        _ => None,
    }
}

/// Number of values that a network of faces yields for each face.
pub(super) fn values(output: &TensorSpec) -> Option<usize> {
    match output.shape[..] {
        [_, values] => values,
        _ => None,
    }
}

/// Range of a network's input: `input_mean` and `input_std` of its class. A network of faces that
/// normalises pixels itself takes them unchanged.
fn range(module: Module, first_nodes: &[String]) -> ValueRange {
    let begins = |prefixes: [&str; 2]| {
        let mut names = first_nodes.iter();
        names.any(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
    };
    let normalises = begins(["Sub", "_minus"]) && begins(["Mul", "_mul"]);
    let has_norm = first_nodes.iter().take(3).any(|name| name == "bn_data");
    match module {
        Module::Detection => around_grey(128.0),
        Module::Recognition if normalises => ValueRange::BYTE,
        Module::Recognition => around_grey(127.5),
        _ if normalises || has_norm => ValueRange::BYTE,
        _ => around_grey(128.0),
    }
}

/// The values of 0…255 less 127.5, divided by `deviation`.
fn around_grey(deviation: f32) -> ValueRange {
    ValueRange::between(-127.5 / deviation, 127.5 / deviation)
}

#[cfg(test)]
mod tests;
