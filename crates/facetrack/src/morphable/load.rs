// SPDX-License-Identifier: MPL-2.0
//! The model from the files that eos publishes.

use std::path::{Path, PathBuf};

use super::model::Contents;
use super::{EdgeTopology, Expression, FaceModel, LandmarkMapping, ModelContours};
use crate::locate::SearchPaths;
use crate::model::{ModelError, ModelFile, file};

/// Folder that a collection of models keeps them in.
const FAMILY: &str = "eos";

/// A file of the published model, and what messages call its format.
struct Part {
    name: &'static str,
    format: &'static str,
}

const SHAPE: Part = Part {
    name: "sfm_shape_3448.bin",
    format: "eos model",
};
const EXPRESSIONS: Part = Part {
    name: "expression_blendshapes_3448.bin",
    format: "eos blendshapes",
};
const MAPPING: Part = Part {
    name: "ibug_to_sfm.txt",
    format: "eos landmark mapping",
};
const CONTOURS: Part = Part {
    name: "sfm_model_contours.json",
    format: "eos model contours",
};
const TOPOLOGY: Part = Part {
    name: "sfm_3448_edge_topology.json",
    format: "eos edge topology",
};

/// Loads the shape model at `model`, or in that folder, and the other files beside it; those that are not there, and all
/// five where `model` is `None`, are looked for as [`SearchPaths::model`] does it. A model with expressions of its own needs no
/// file of them.
///
/// # Errors
/// [`ModelError`] when a file is missing, damaged, not what it should be, or not one of the same model; the message names
/// it.
pub fn load(
    model: Option<&Path>,
    paths: &SearchPaths,
) -> Result<(FaceModel, Vec<ModelFile>), ModelError> {
    let mut path = paths.model(SHAPE.name, FAMILY, model)?;
    if path.is_dir() {
        path = path.join(SHAPE.name);
    }
    let mut files = Files {
        beside: model.and(path.parent()).map(Path::to_path_buf),
        paths,
        read: Vec::new(),
    };
    let Contents { shape, expressions } = files.read(path.clone(), &SHAPE, Contents::from_bytes)?;
    let expressions = match expressions {
        Some(expressions) => expressions,
        None => files.find_and_read(&EXPRESSIONS, |bytes| {
            let expressions = Expression::all_from_bytes(bytes)?;
            Expression::check(&expressions, &shape)?;
            Ok(expressions)
        })?,
    };
    let mapping = files.find_and_read(&MAPPING, |bytes| {
        let mapping = LandmarkMapping::from_toml(text(bytes)?)?;
        mapping.check(&shape)?;
        Ok(mapping)
    })?;
    let contours = files.find_and_read(&CONTOURS, |bytes| {
        let contours = ModelContours::from_json(text(bytes)?)?;
        contours.check(&shape)?;
        Ok(contours)
    })?;
    let topology = files.find_and_read(&TOPOLOGY, |bytes| {
        let topology = EdgeTopology::from_json(text(bytes)?)?;
        topology.check(&shape)?;
        Ok(topology)
    })?;
    let model = FaceModel::new(shape, expressions, mapping, contours, topology);
    let model = model.map_err(|reason| invalid(&path, &SHAPE, reason))?;
    Ok((model, files.read))
}

/// The files that were read so far, and where others are.
struct Files<'a> {
    /// Folder of the shape model that was asked for.
    beside: Option<PathBuf>,
    paths: &'a SearchPaths,
    read: Vec<ModelFile>,
}

impl Files<'_> {
    fn find_and_read<T>(
        &mut self,
        part: &Part,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, ModelError> {
        let beside = self.beside.as_ref().map(|folder| folder.join(part.name));
        let path = match beside.filter(|path| path.is_file()) {
            Some(path) => path,
            None => self.paths.model(part.name, FAMILY, None)?,
        };
        self.read(path, part, parse)
    }

    fn read<T>(
        &mut self,
        path: PathBuf,
        part: &Part,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, ModelError> {
        let (bytes, file) = file::read(&path, part.format)?;
        self.read.push(file);
        parse(&bytes).map_err(|reason| invalid(&path, part, reason))
    }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

fn invalid(path: &Path, part: &Part, reason: String) -> ModelError {
    ModelError::Format {
        path: path.to_path_buf(),
        format: part.format,
        reason,
    }
}
