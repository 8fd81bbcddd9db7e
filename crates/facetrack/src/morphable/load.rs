// SPDX-License-Identifier: MPL-2.0
//! The model from the files that eos publishes.

use std::path::{Path, PathBuf};

use super::model::Contents;
use super::{Expression, FaceModel, LandmarkMapping, ModelContours};
use crate::model::{ModelError, ModelFile, file, format_error};
use facetrack_assets::locate::SearchPaths;

/// Folder of the files in a collection of models.
const FAMILY: &str = "eos";

const SHAPE: &str = "sfm_shape_3448.bin";
const SHAPE_FORMAT: &str = "eos model";
const EXPRESSIONS: &str = "expression_blendshapes_3448.bin";
const MAPPING: &str = "ibug_to_sfm.txt";
const CONTOURS: &str = "sfm_model_contours.json";

/// Loads a shape model and the files that belong to it. `model` is the file of the shape model or
/// its folder; the other files are searched next to it. Files that are not found there, or all
/// files if `model` is `None`, are searched with [`SearchPaths::model`]. A model that includes
/// expressions needs no file of expressions.
///
/// # Errors
/// Returns [`ModelError`] if a file is missing, damaged, of another format, or does not match the
/// shape model. The message names the file.
pub fn load(
    model: Option<&Path>,
    paths: &SearchPaths,
) -> Result<(FaceModel, Vec<ModelFile>), ModelError> {
    let mut path = paths.model(SHAPE, FAMILY, model)?;
    if path.is_dir() {
        path = path.join(SHAPE);
    }
    let mut files = Files {
        folder: model.and(path.parent()).map(Path::to_path_buf),
        paths,
        read: Vec::new(),
    };
    let Contents { shape, expressions } = files.read(&path, SHAPE_FORMAT, Contents::from_bytes)?;
    let expressions = match expressions {
        Some(expressions) => expressions,
        None => files.find_and_read(EXPRESSIONS, "eos blendshapes", |bytes| {
            let expressions = Expression::all_from_bytes(bytes)?;
            Expression::check(&expressions, &shape).map(|()| expressions)
        })?,
    };
    let mapping = files.find_and_read(MAPPING, "eos landmark mapping", |bytes| {
        let mapping = LandmarkMapping::from_toml(text(bytes)?)?;
        mapping.check(&shape).map(|()| mapping)
    })?;
    let contours = files.find_and_read(CONTOURS, "eos model contours", |bytes| {
        let contours = ModelContours::from_json(text(bytes)?)?;
        contours.check(&shape).map(|()| contours)
    })?;
    let model = FaceModel::new(shape, expressions, mapping, contours);
    let model = model.map_err(|reason| format_error(&path, SHAPE_FORMAT, reason))?;
    Ok((model, files.read))
}

/// Reads the files of a model.
struct Files<'a> {
    /// Folder of the shape model, if the caller named one.
    folder: Option<PathBuf>,
    paths: &'a SearchPaths,
    /// Files that were read so far.
    read: Vec<ModelFile>,
}

impl Files<'_> {
    fn find_and_read<T>(
        &mut self,
        name: &str,
        format: &'static str,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, ModelError> {
        let own = self.folder.as_ref().map(|folder| folder.join(name));
        let path = match own.filter(|path| path.is_file()) {
            Some(path) => path,
            None => self.paths.model(name, FAMILY, None)?,
        };
        self.read(&path, format, parse)
    }

    fn read<T>(
        &mut self,
        path: &Path,
        format: &'static str,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<T, ModelError> {
        let (bytes, file) = file::read(path, format)?;
        self.read.push(file);
        parse(&bytes).map_err(|reason| format_error(path, format, reason))
    }
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}
