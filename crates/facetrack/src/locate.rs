// SPDX-License-Identifier: MPL-2.0
//! Where model files and ONNX Runtime are looked for.

mod packs;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::model::{ModelError, PROPERTY};
use packs::INSIGHTFACE_HOME_VARIABLE;

/// Environment variable with the folder of the models.
pub const MODELS_DIR_VARIABLE: &str = "FACETRACK_MODELS_DIR";

/// Environment variable with the path of ONNX Runtime's library.
pub const RUNTIME_VARIABLE: &str = "FACETRACK_ONNXRUNTIME";

/// The variable that other users of ONNX Runtime read for the same.
const SHARED_RUNTIME_VARIABLE: &str = "ORT_DYLIB_PATH";

/// Folders of data for all users if `$XDG_DATA_DIRS` is not set, as the XDG base directory specification has them.
const SYSTEM_DATA_DIRS: &str = "/usr/local/share:/usr/share";

/// Names under which the dynamic loader may know ONNX Runtime.
const LOADER_NAMES: [&str; 2] = ["libonnxruntime.so.1", "libonnxruntime.so"];

/// The user's folder of this project: `$XDG_DATA_HOME/facetrack`, or `~/.local/share/facetrack`. It holds `models/` and
/// `runtime/`. `None` without a home.
pub fn data_dir() -> Option<PathBuf> {
    Surroundings::current().data_dir()
}

/// The project's folders for all users: `facetrack` in each of `$XDG_DATA_DIRS`. They are laid out as the user's.
pub fn system_data_dirs() -> Vec<PathBuf> {
    Surroundings::current().system_data_dirs().collect()
}

/// The model `file`.
///
/// `explicit` is the path of the file (or of a folder that stands for it) and ends the search. Otherwise it is looked
/// for in `models_dir`, `$FACETRACK_MODELS_DIR`, the user's data folder and the system's ([`system_data_dirs`]); in each
/// flat, then in the folder of its `family`.
///
/// # Errors
/// [`ModelError::Missing`], with the folders looked in.
pub fn model(
    file: &str,
    family: &str,
    explicit: Option<&Path>,
    models_dir: Option<&Path>,
) -> Result<PathBuf, ModelError> {
    Surroundings::current().model(file, family, explicit, models_dir)
}

/// The first of `files` that is there: each is looked for as [`model`] does it without an explicit path.
///
/// # Errors
/// [`ModelError::Missing`], with all names and the folders looked in.
pub fn best_model(
    files: &[&str],
    family: &str,
    models_dir: Option<&Path>,
) -> Result<PathBuf, ModelError> {
    Surroundings::current().best_model(files, family, models_dir)
}

/// The folder of a pack of InsightFace's networks.
///
/// `explicit` is the folder, or the name of a pack: a word without a slash. A pack is looked for in `models_dir`,
/// `$INSIGHTFACE_HOME/models`, `$FACETRACK_MODELS_DIR`, the user's data folder, `~/.insightface/models` and the system's; in
/// each flat, then in the folder `insightface`. Without a name the first of the published packs that is there is taken, then
/// a folder `insightface` with networks in it.
///
/// # Errors
/// [`ModelError::NoPack`], with the folders looked in.
pub fn pack(explicit: Option<&Path>, models_dir: Option<&Path>) -> Result<PathBuf, ModelError> {
    Surroundings::current().pack(explicit, models_dir)
}

/// Paths under which ONNX Runtime may be, best first: in the user's data folder, in the system's, and names that the dynamic
/// loader may know. A path from the property or an environment variable is the only
/// one, so that a typing error does not go unnoticed.
pub fn runtime(explicit: Option<&Path>) -> Vec<PathBuf> {
    Surroundings::current().runtime(explicit)
}

/// What the search reads from the environment.
#[derive(Debug, Default, Clone)]
struct Surroundings {
    models_dir: Option<PathBuf>,
    runtime: Option<PathBuf>,
    shared_runtime: Option<PathBuf>,
    data_home: Option<PathBuf>,
    data_dirs: Vec<PathBuf>,
    home: Option<PathBuf>,
    insightface_home: Option<PathBuf>,
}

impl Surroundings {
    fn current() -> Self {
        Self {
            models_dir: path_variable(MODELS_DIR_VARIABLE),
            runtime: path_variable(RUNTIME_VARIABLE),
            shared_runtime: path_variable(SHARED_RUNTIME_VARIABLE),
            data_home: path_variable("XDG_DATA_HOME"),
            data_dirs: env::split_paths(
                &path_variable("XDG_DATA_DIRS").unwrap_or(SYSTEM_DATA_DIRS.into()),
            )
            .collect(),
            home: path_variable("HOME"),
            insightface_home: path_variable(INSIGHTFACE_HOME_VARIABLE),
        }
    }

    /// The XDG base directory specification has relative paths ignored.
    fn data_dir(&self) -> Option<PathBuf> {
        let data_home = self.data_home.clone().filter(|path| path.is_absolute());
        let data_home =
            data_home.or_else(|| self.home.as_ref().map(|home| home.join(".local/share")));
        data_home.map(|path| path.join("facetrack"))
    }

    /// Relative paths are ignored here too.
    fn system_data_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let absolute = self.data_dirs.iter().filter(|path| path.is_absolute());
        absolute.map(|path| path.join("facetrack"))
    }

    /// The user's folder, then the system's.
    fn all_data_dirs(&self) -> impl Iterator<Item = PathBuf> {
        self.data_dir().into_iter().chain(self.system_data_dirs())
    }

    fn model(
        &self,
        file: &str,
        family: &str,
        explicit: Option<&Path>,
        models_dir: Option<&Path>,
    ) -> Result<PathBuf, ModelError> {
        if let Some(path) = explicit {
            return existing(path);
        }
        self.best_model(&[file], family, models_dir)
    }

    fn best_model(
        &self,
        files: &[&str],
        family: &str,
        models_dir: Option<&Path>,
    ) -> Result<PathBuf, ModelError> {
        let chosen = [models_dir.map(Path::to_path_buf), self.models_dir.clone()];
        let folders: Vec<PathBuf> = chosen
            .into_iter()
            .flatten()
            .chain(self.all_data_dirs().map(|path| path.join("models")))
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
            .ok_or_else(|| ModelError::Missing {
                path: files.join(", ").into(),
                looked: listed(&folders),
                property: PROPERTY,
            })
    }

    fn runtime(&self, explicit: Option<&Path>) -> Vec<PathBuf> {
        let chosen = explicit
            .map(Path::to_path_buf)
            .or_else(|| self.runtime.clone())
            .or_else(|| self.shared_runtime.clone());
        if let Some(path) = chosen {
            return vec![path];
        }
        let fetched = self
            .all_data_dirs()
            .flat_map(|path| libraries_in(&path.join("runtime")));
        fetched.chain(LOADER_NAMES.map(PathBuf::from)).collect()
    }
}

/// The path that a property names, if it is there.
fn existing(path: &Path) -> Result<PathBuf, ModelError> {
    match path.exists() {
        true => Ok(path.to_owned()),
        false => Err(ModelError::Missing {
            path: path.to_owned(),
            looked: "no other place".into(),
            property: PROPERTY,
        }),
    }
}

/// ONNX Runtime's libraries in `folder`, the highest file name first.
fn libraries_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut libraries: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.starts_with("libonnxruntime.so"))
        })
        .collect();
    libraries.sort_unstable_by(|a, b| b.cmp(a));
    libraries
}

fn path_variable(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn listed(paths: &[PathBuf]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    paths.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn touch(path: PathBuf) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, b"x").unwrap();
        path
    }

    #[test]
    fn folders_are_searched_in_order_flat_before_family() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let property = at("property");
        let around = Surroundings {
            models_dir: Some(at("variable")),
            data_home: Some(at("data")),
            data_dirs: vec![at("local"), at("share")],
            ..Default::default()
        };
        let find = || around.model("a.task", "family", None, Some(&property)).ok();

        assert_eq!(find(), None);
        // Each file put in place takes precedence over those before it.
        for place in [
            "share/facetrack/models/a.task",
            "local/facetrack/models/family/a.task",
            "data/facetrack/models/family/a.task",
            "data/facetrack/models/a.task",
            "variable/family/a.task",
            "variable/a.task",
            "property/family/a.task",
            "property/a.task",
        ] {
            let path = touch(at(place));
            assert_eq!(find(), Some(path));
        }
    }

    #[test]
    fn an_explicit_model_ends_the_search() {
        let root = tempfile::tempdir().unwrap();
        let other = touch(root.path().join("a.task"));
        let explicit = root.path().join("b.task");
        let around = Surroundings::default();
        let find = || around.model("a.task", "family", Some(&explicit), other.parent());

        let error = find().unwrap_err().to_string();
        assert!(
            error.contains("b.task") && error.contains("`model`"),
            "{error}"
        );
        touch(explicit.clone());
        assert_eq!(find().unwrap(), explicit);
    }

    #[test]
    fn a_missing_model_names_every_folder_and_the_remedy() {
        let around = Surroundings {
            models_dir: Some("/nowhere/variable".into()),
            data_dirs: vec!["/nowhere/share".into(), "relative".into()],
            home: Some("/nowhere/home".into()),
            ..Default::default()
        };
        let error = around
            .model(
                "a.task",
                "family",
                None,
                Some(Path::new("/nowhere/property")),
            )
            .unwrap_err()
            .to_string();
        for part in [
            "a.task",
            "/nowhere/property, /nowhere/variable, /nowhere/home/.local/share/facetrack/models, /nowhere/share/facetrack/models)",
            "`facetrack fetch`",
        ] {
            assert!(error.contains(part), "{part} is not in: {error}");
        }
    }

    #[test]
    fn a_missing_model_that_is_not_fetched_says_where_it_is() {
        let around = Surroundings::default();
        for (files, is_fetched) in [
            (&["face_landmarker.task"][..], true),
            (&["lm_model3_opt.onnx", "lm_model0_opt.onnx"], true),
            (&["lm_model3_opt.onnx"], false),
        ] {
            let error = around.best_model(files, "family", None).unwrap_err();
            let error = error.to_string();
            assert_eq!(
                error.contains("Run `facetrack fetch`"),
                is_fetched,
                "{error}"
            );
            assert_eq!(error.contains("models/README.md"), !is_fetched, "{error}");
        }
    }

    #[test]
    fn the_best_of_several_models_may_lie_in_the_last_folder() {
        let root = tempfile::tempdir().unwrap();
        let around = Surroundings {
            models_dir: Some(root.path().join("variable")),
            ..Default::default()
        };
        let property = root.path().join("property");
        let find = || around.best_model(&["a.onnx", "b.onnx"], "family", Some(&property));
        let error = find().unwrap_err().to_string();
        assert!(error.contains("a.onnx, b.onnx"), "{error}");
        let worse = touch(root.path().join("property/b.onnx"));
        assert_eq!(find().unwrap(), worse);
        let better = touch(root.path().join("variable/family/a.onnx"));
        assert_eq!(find().unwrap(), better);
    }

    #[test]
    fn a_relative_data_home_is_ignored() {
        let around = Surroundings {
            data_home: Some("relative".into()),
            home: Some("/home/a".into()),
            ..Default::default()
        };
        assert_eq!(
            around.data_dir(),
            Some("/home/a/.local/share/facetrack".into())
        );
    }

    #[test]
    fn a_chosen_runtime_is_the_only_candidate() {
        let mut around = Surroundings::default();
        let first = |around: &Surroundings, explicit: Option<&str>| {
            let candidates = around.runtime(explicit.map(Path::new));
            (candidates.len(), candidates[0].display().to_string())
        };
        assert_eq!(first(&around, None), (2, "libonnxruntime.so.1".into()));
        around.shared_runtime = Some("/shared.so".into());
        assert_eq!(first(&around, None), (1, "/shared.so".into()));
        around.runtime = Some("/own.so".into());
        assert_eq!(first(&around, None), (1, "/own.so".into()));
        assert_eq!(first(&around, Some("/a.so")), (1, "/a.so".into()));
    }

    #[test]
    fn a_users_runtime_comes_before_the_systems_and_the_loaders() {
        let root = tempfile::tempdir().unwrap();
        let runtime = root.path().join("home/facetrack/runtime");
        let old = touch(runtime.join("libonnxruntime.so.1.23.0"));
        let new = touch(runtime.join("libonnxruntime.so.1.31.1"));
        touch(runtime.join("LICENSE"));
        let shared = root.path().join("share");
        let system = touch(shared.join("facetrack/runtime/libonnxruntime.so.1.32.0"));
        let around = Surroundings {
            data_home: Some(root.path().join("home")),
            data_dirs: vec![root.path().join("none"), shared],
            ..Default::default()
        };
        let loaders = LOADER_NAMES.map(PathBuf::from);
        assert_eq!(
            around.runtime(None),
            [vec![new, old, system], loaders.to_vec()].concat()
        );
    }
}
