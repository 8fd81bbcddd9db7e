// SPDX-License-Identifier: MPL-2.0
//! Finds model files and ONNX Runtime.

mod packs;

use std::env::split_paths;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::file::listed;

/// Environment variable with the folder of the models.
pub const MODELS_DIR_VARIABLE: &str = "FACETRACK_MODELS_DIR";

/// Environment variable with the path of ONNX Runtime's library.
pub const RUNTIME_VARIABLE: &str = "FACETRACK_ONNXRUNTIME";

/// Environment variable with that path in other programs that use ONNX Runtime.
const SHARED_RUNTIME_VARIABLE: &str = "ORT_DYLIB_PATH";

/// Environment variable with the interpreter of a Python environment for a GPU: its packages contain
/// ONNX Runtime and CUDA libraries.
pub const PYTHON_VARIABLE: &str = "STEP5_INSIGHTFACE_ENV_PYTHON";

/// Folder of ONNX Runtime's libraries in the folder of a Python release.
const IN_PYTHON: &str = "site-packages/onnxruntime/capi";

/// ONNX Runtime's own environment variable; `1` keeps its telemetry off.
pub const TELEMETRY_VARIABLE: &str = "ORT_DISABLE_TELEMETRY";

/// Environment variable with InsightFace's own folder, which contains packs in `models/`.
const INSIGHTFACE_HOME_VARIABLE: &str = "INSIGHTFACE_HOME";

/// Default of `$XDG_DATA_DIRS`, from the XDG base directory specification.
const SYSTEM_DATA_DIRS: &str = "/usr/local/share:/usr/share";

/// Names under which the dynamic loader may know ONNX Runtime.
const LOADER_NAMES: [&str; 2] = ["libonnxruntime.so.1", "libonnxruntime.so"];

/// Returns the environment variable that names ONNX Runtime's library, if one is set. `variable`
/// reads a variable.
pub fn runtime_variable(
    variable: impl Fn(&'static str) -> Option<OsString>,
) -> Option<&'static str> {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let mut names = [RUNTIME_VARIABLE, SHARED_RUNTIME_VARIABLE].into_iter();
    names.find(|&name| is_set(name))
}

/// Telemetry of ONNX Runtime in this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Telemetry {
    /// A library with telemetry would send it, so it is not loaded.
    #[default]
    Possible,
    /// The environment turns telemetry off.
    Off,
}

/// Error for a model that is in none of the searched places.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotFound {
    /// The file does not exist.
    #[error("model file {path} not found{places}", path = path.display(), places = searched(looked))]
    File {
        /// Requested file, or several names of alternatives.
        path: PathBuf,
        /// Searched folders.
        looked: Vec<PathBuf>,
    },
    /// No folder contains networks of InsightFace.
    #[error(
        "no InsightFace model pack found: {names} missing or without .onnx files{places}",
        names = listed(names), places = searched(looked)
    )]
    Pack {
        /// Names of the searched packs.
        names: Vec<PathBuf>,
        /// Searched folders.
        looked: Vec<PathBuf>,
    },
}

impl NotFound {
    /// The error for a file whose path is known.
    pub fn file(path: &Path) -> Self {
        Self::File {
            path: path.to_owned(),
            looked: Vec::new(),
        }
    }
}

fn searched(folders: &[PathBuf]) -> String {
    match folders {
        [] => String::new(),
        folders => format!(" (searched in {})", listed(folders)),
    }
}

/// Folders to search for models and ONNX Runtime. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPaths {
    /// Folder of models that is searched first.
    pub models_dir: Option<PathBuf>,
    /// ONNX Runtime's library. It is the only candidate, so that a typing error does not go
    /// unnoticed.
    pub runtime: Option<PathBuf>,
    /// Telemetry that ONNX Runtime's libraries may have.
    pub telemetry: Telemetry,
    /// The user's own collection of models.
    pub collection: Option<PathBuf>,
    /// This project's folder in the user's home. It holds `models/`, `runtime/` and `samples/`.
    pub data_dir: Option<PathBuf>,
    /// This project's folders for all users, laid out as `data_dir`.
    pub system_data_dirs: Vec<PathBuf>,
    /// InsightFace's own folder, which contains packs in `models/`.
    pub insightface_home: Option<PathBuf>,
    /// The user's home, where InsightFace keeps packs by default.
    pub home: Option<PathBuf>,
}

impl SearchPaths {
    /// Takes the paths from the environment variables. `variable` reads one; an empty one counts as
    /// unset.
    ///
    /// - `collection`: `$FACETRACK_MODELS_DIR`
    /// - `runtime`: `$FACETRACK_ONNXRUNTIME`, or `$ORT_DYLIB_PATH`, or the one in the Python
    ///   environment of `$STEP5_INSIGHTFACE_ENV_PYTHON`
    /// - `telemetry`: off if `$ORT_DISABLE_TELEMETRY` is `1`
    /// - `data_dir`: `$XDG_DATA_HOME/facetrack`, or `$HOME/.local/share/facetrack`
    /// - `system_data_dirs`: `facetrack` in each of `$XDG_DATA_DIRS`
    /// - `insightface_home`: `$INSIGHTFACE_HOME`
    pub fn from_vars(variable: impl Fn(&'static str) -> Option<OsString>) -> Self {
        let path = |name| {
            let value = variable(name).filter(|value| !value.is_empty())?;
            Some(PathBuf::from(value))
        };
        let home = path("HOME");
        // The XDG base directory specification has relative paths ignored.
        let data_home = path("XDG_DATA_HOME").filter(|path| path.is_absolute());
        let data_home = data_home.or_else(|| Some(home.as_ref()?.join(".local/share")));
        let data_dirs = path("XDG_DATA_DIRS").unwrap_or_else(|| SYSTEM_DATA_DIRS.into());
        Self {
            models_dir: None,
            runtime: runtime_variable(&variable)
                .and_then(path)
                .or_else(|| runtime_of_python(&path(PYTHON_VARIABLE)?)),
            telemetry: match variable(TELEMETRY_VARIABLE) {
                Some(value) if value == "1" => Telemetry::Off,
                _ => Telemetry::Possible,
            },
            collection: path(MODELS_DIR_VARIABLE),
            data_dir: data_home.map(|path| path.join("facetrack")),
            system_data_dirs: split_paths(&data_dirs)
                .filter(|path| path.is_absolute())
                .map(|path| path.join("facetrack"))
                .collect(),
            insightface_home: path(INSIGHTFACE_HOME_VARIABLE),
            home,
        }
    }

    /// Returns the path of the model `file`.
    ///
    /// `explicit` is the path of the file (or of a folder that stands for it) and ends the search.
    /// Otherwise the file is searched in `models_dir`, `collection`, and `models/` of the user's
    /// data folder and of the system's; in each flat, then in the folder of its `family`.
    ///
    /// # Errors
    /// Returns [`NotFound::File`], with the folders looked in.
    pub fn model(
        &self,
        file: &str,
        family: &str,
        explicit: Option<&Path>,
    ) -> Result<PathBuf, NotFound> {
        match explicit {
            None => self.best_model(&[file], family),
            Some(path) if path.exists() => Ok(path.to_owned()),
            Some(path) => Err(NotFound::file(path)),
        }
    }

    /// Returns the path of the first of `files` that exists. Each is searched as in [`Self::model`]
    /// without an explicit path.
    ///
    /// # Errors
    /// Returns [`NotFound::File`], with all names and the folders looked in.
    pub fn best_model(&self, files: &[&str], family: &str) -> Result<PathBuf, NotFound> {
        let chosen = [&self.models_dir, &self.collection].into_iter().flatten();
        let folders: Vec<PathBuf> = chosen
            .cloned()
            .chain(self.data_dirs().map(|path| path.join("models")))
            .collect();
        let places = |file| {
            folders
                .iter()
                .flat_map(move |folder| [folder.join(file), folder.join(family).join(file)])
        };
        files
            .iter()
            .flat_map(places)
            .find(|path| path.is_file())
            .ok_or_else(|| NotFound::File {
                path: files.join(", ").into(),
                looked: folders.clone(),
            })
    }

    /// Paths at which ONNX Runtime may be, best first: `runtime` if it is set; otherwise the
    /// libraries in `runtime/` of the user's data folder and of the system's, and names that the
    /// dynamic loader may know.
    pub fn runtime_candidates(&self) -> Vec<PathBuf> {
        if let Some(path) = &self.runtime {
            return vec![path.clone()];
        }
        let fetched = self
            .data_dirs()
            .flat_map(|path| libraries_in(&path.join("runtime")));
        fetched.chain(LOADER_NAMES.map(PathBuf::from)).collect()
    }

    /// Iterates over this project's folders: the user's, then the system's.
    pub fn data_dirs(&self) -> impl Iterator<Item = &PathBuf> {
        self.data_dir.iter().chain(&self.system_data_dirs)
    }
}

/// ONNX Runtime's libraries in `folder`, the highest file name first.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut libraries: Vec<PathBuf> = entries
        .filter(|entry| {
            let name = entry.file_name();
            name.to_string_lossy().starts_with("libonnxruntime.so")
        })
        .map(|entry| entry.path())
        .collect();
    libraries.sort_unstable_by(|a, b| b.cmp(a));
    libraries
}

/// The folder of the Python environment that an interpreter belongs to.
pub fn python_environment(interpreter: &Path) -> Option<&Path> {
    interpreter.parent()?.parent()
}

/// ONNX Runtime in the environment of a Python interpreter. If there is none, the path does not
/// exist, so that the error names it.
fn runtime_of_python(interpreter: &Path) -> Option<PathBuf> {
    let folder = python_environment(interpreter)?.join("lib");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut found = entries.flat_map(|python| libraries_in(&python.path().join(IN_PYTHON)));
    let missing = || {
        folder
            .join("python3")
            .join(IN_PYTHON)
            .join("libonnxruntime.so")
    };
    Some(found.next().unwrap_or_else(missing))
}

#[cfg(test)]
mod tests;
