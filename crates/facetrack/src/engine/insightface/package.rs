// SPDX-License-Identifier: MPL-2.0
//! The file `manifest.json` of a pack, version 2 of `model_zoo/package_manifest.py`: it names the
//! file of each task, how its pixels are normalised, and its SHA-256. Its task `verification`,
//! which scores whether a box shows a face, is not used.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::Module;
use crate::model::{ModelError, ModelFile};
use crate::sample::ValueRange;
use facetrack_assets::file;

/// Name of the file.
const NAME: &str = "manifest.json";

/// The version that this module reads. As in the original, a pack with another one is read as if it
/// had no manifest.
const VERSION: u64 = 2;

/// Maximum size, bytes. A manifest with three tasks has about 1 KB.
const MAX_BYTES: u64 = 1 << 20;

/// A network that a manifest declares.
#[derive(Debug, PartialEq)]
pub(super) struct Declared {
    /// Its task.
    pub(super) module: Module,
    /// Its file.
    pub(super) path: PathBuf,
    /// Range of its input values.
    pub(super) range: ValueRange,
    sha256: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    tasks: Tasks,
}

#[derive(Deserialize)]
struct Tasks {
    detection: Option<Task>,
    recognition: Option<Task>,
}

#[derive(Deserialize)]
struct Task {
    file: String,
    sha256: Option<String>,
    preprocessing: Option<Preprocessing>,
}

/// Conversion of pixels of 0…255 to input values.
#[derive(Deserialize, Clone, Copy)]
#[serde(
    untagged,
    expecting = "preprocessing is neither \"embedded\" nor mean and std"
)]
enum Preprocessing {
    Embedded(Embedded),
    Scaled { mean: f32, std: f32 },
}

/// The network normalises them itself.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Embedded {
    Embedded,
}

/// The networks that the manifest in `folder` declares for this engine; `None` without a manifest
/// of [`VERSION`].
///
/// # Errors
/// Returns [`ModelError::Pack`] if the manifest cannot be read, or names a file outside the pack.
pub(super) fn declared(folder: &Path) -> Result<Option<Vec<Declared>>, ModelError> {
    let refuse = |reason: String| unusable(folder, &format!("{NAME}: {reason}"));
    let bytes = match file::read(&folder.join(NAME), MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refuse(error.to_string())),
    };
    let Ok(value) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(None);
    };
    if value["manifest_version"].as_u64() != Some(VERSION) {
        return Ok(None);
    }
    let document: Document =
        serde_json::from_value(value).map_err(|error| refuse(error.to_string()))?;
    let Tasks {
        detection,
        recognition,
    } = document.tasks;
    let tasks = [
        (Module::Detection, 128.0, detection),
        (Module::Recognition, 127.5, recognition),
    ];
    let tasks = tasks
        .into_iter()
        .filter_map(|(module, std, task)| Some((module, std, task?)));
    tasks
        .map(|(module, std, task)| task.at(folder, module, std).map_err(refuse))
        .collect::<Result<_, _>>()
        .map(Some)
}

impl Task {
    /// The network of this task in `folder`; `std` is the task's default.
    fn at(self, folder: &Path, module: Module, std: f32) -> Result<Declared, String> {
        let file = Path::new(&self.file);
        let is_inside = file
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_inside || file.extension().is_none_or(|end| end != "onnx") {
            return Err(format!("{} is not an ONNX file of the pack", self.file));
        }
        let usual = Preprocessing::Scaled { mean: 127.5, std };
        Ok(Declared {
            module,
            path: folder.join(file),
            range: self.preprocessing.unwrap_or(usual).range()?,
            sha256: self.sha256,
        })
    }
}

impl Preprocessing {
    fn range(self) -> Result<ValueRange, String> {
        match self {
            Self::Embedded(Embedded::Embedded) => Ok(ValueRange::BYTE),
            Self::Scaled { mean, std } if mean.is_finite() && std > 0.0 => {
                Ok(ValueRange::between(-mean / std, (255.0 - mean) / std))
            }
            Self::Scaled { mean, std } => Err(format!("mean {mean} and std {std} cannot be used")),
        }
    }
}

impl Declared {
    /// # Errors
    /// Returns the reason if the file has another SHA-256 than the manifest states.
    pub(super) fn check(&self, file: &ModelFile) -> Result<(), String> {
        match &self.sha256 {
            Some(sha256) if *sha256 != file.sha256 => Err(format!(
                "{} is damaged: its SHA-256 is not the one in {NAME}",
                file.name
            )),
            _ => Ok(()),
        }
    }
}
/// Returns the error of a folder that is not a pack for this engine.
pub(super) fn unusable(folder: &Path, reason: &str) -> ModelError {
    ModelError::Pack {
        folder: folder.to_owned(),
        reason: reason.to_owned(),
    }
}
