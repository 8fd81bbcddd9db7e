// SPDX-License-Identifier: MPL-2.0
//! Where model files and ONNX Runtime are looked for.

mod packs;

use std::env::split_paths;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::model::ModelError;

/// Environment variable with the folder of the models.
pub const MODELS_DIR_VARIABLE: &str = "FACETRACK_MODELS_DIR";

/// Environment variable with the path of ONNX Runtime's library.
pub const RUNTIME_VARIABLE: &str = "FACETRACK_ONNXRUNTIME";

/// The same variable of other programs that use ONNX Runtime.
const SHARED_RUNTIME_VARIABLE: &str = "ORT_DYLIB_PATH";

/// Environment variable with the folder in which InsightFace keeps its packs, in `models/`.
const INSIGHTFACE_HOME_VARIABLE: &str = "INSIGHTFACE_HOME";

/// Default of `$XDG_DATA_DIRS`, from the XDG base directory specification.
const SYSTEM_DATA_DIRS: &str = "/usr/local/share:/usr/share";

/// Names under which the dynamic loader may know ONNX Runtime.
const LOADER_NAMES: [&str; 2] = ["libonnxruntime.so.1", "libonnxruntime.so"];

/// Where models and ONNX Runtime are looked for. By default nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchPaths {
    /// Folder of models that is searched first.
    pub models_dir: Option<PathBuf>,
    /// ONNX Runtime's library. It is the only candidate, so that a typing error does not go unnoticed.
    pub runtime: Option<PathBuf>,
    /// The user's own collection of models.
    pub collection: Option<PathBuf>,
    /// This project's folder of the user. It holds `models/`, `runtime/` and `samples/`.
    pub data_dir: Option<PathBuf>,
    /// This project's folders for all users, laid out as `data_dir`.
    pub system_data_dirs: Vec<PathBuf>,
    /// Folder in which InsightFace keeps its packs.
    pub insightface_home: Option<PathBuf>,
    /// The user's home, where InsightFace keeps packs by default.
    pub home: Option<PathBuf>,
}

impl SearchPaths {
    /// The paths that the environment variables name; `variable` reads one. Empty ones count as unset.
    ///
    /// - `collection`: `$FACETRACK_MODELS_DIR`
    /// - `runtime`: `$FACETRACK_ONNXRUNTIME`, or `$ORT_DYLIB_PATH`
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
            runtime: path(RUNTIME_VARIABLE).or_else(|| path(SHARED_RUNTIME_VARIABLE)),
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

    /// The model `file`.
    ///
    /// `explicit` is the path of the file (or of a folder that stands for it) and ends the search. Otherwise it is
    /// looked for in `models_dir`, `collection`, and `models/` of the user's data folder and of the system's; in each
    /// flat, then in the folder of its `family`.
    ///
    /// # Errors
    /// [`ModelError::Missing`], with the folders looked in.
    pub fn model(
        &self,
        file: &str,
        family: &str,
        explicit: Option<&Path>,
    ) -> Result<PathBuf, ModelError> {
        match explicit {
            None => self.best_model(&[file], family),
            Some(path) if path.exists() => Ok(path.to_owned()),
            Some(path) => Err(ModelError::Missing {
                path: path.to_owned(),
                looked: "no other place".into(),
            }),
        }
    }

    /// The first of `files` that is there: each is looked for as by [`Self::model`] without an explicit path.
    ///
    /// # Errors
    /// [`ModelError::Missing`], with all names and the folders looked in.
    pub fn best_model(&self, files: &[&str], family: &str) -> Result<PathBuf, ModelError> {
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
            .ok_or_else(|| ModelError::Missing {
                path: files.join(", ").into(),
                looked: listed(&folders),
            })
    }

    /// Paths under which ONNX Runtime may be, best first: `runtime` if it is set; otherwise the libraries in `runtime/`
    /// of the user's data folder and of the system's, and names that the dynamic loader may know.
    pub fn runtime_candidates(&self) -> Vec<PathBuf> {
        if let Some(path) = &self.runtime {
            return vec![path.clone()];
        }
        let fetched = self
            .data_dirs()
            .flat_map(|path| libraries_in(&path.join("runtime")));
        fetched.chain(LOADER_NAMES.map(PathBuf::from)).collect()
    }

    /// This project's folders: the user's, then the system's.
    pub fn data_dirs(&self) -> impl Iterator<Item = &PathBuf> {
        self.data_dir.iter().chain(&self.system_data_dirs)
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

fn listed(paths: &[impl AsRef<Path>]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.as_ref().display().to_string())
        .collect();
    paths.join(", ")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The paths of the process that runs the tests.
    pub(crate) fn installed() -> SearchPaths {
        SearchPaths::from_vars(std::env::var_os)
    }

    pub(super) fn touch(path: PathBuf) -> PathBuf {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, b"x").unwrap();
        path
    }

    /// The paths of an environment with these variables.
    pub(super) fn paths(variables: &[(&str, &Path)]) -> SearchPaths {
        SearchPaths::from_vars(|name| {
            let (_, value) = variables.iter().find(|(own, _)| *own == name)?;
            Some(value.as_os_str().to_owned())
        })
    }

    #[test]
    fn folders_are_searched_in_order_flat_before_family() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        let data_dirs = std::env::join_paths([at("local"), at("share")]).unwrap();
        let around = SearchPaths {
            models_dir: Some(at("first")),
            ..paths(&[
                (MODELS_DIR_VARIABLE, &at("variable")),
                ("XDG_DATA_HOME", &at("data")),
                ("XDG_DATA_DIRS", data_dirs.as_ref()),
            ])
        };
        let find = || around.model("a.task", "family", None).ok();

        assert_eq!(find(), None);
        // Each file put in place takes precedence over those before it.
        for place in [
            "share/facetrack/models/a.task",
            "local/facetrack/models/family/a.task",
            "data/facetrack/models/family/a.task",
            "data/facetrack/models/a.task",
            "variable/family/a.task",
            "variable/a.task",
            "first/family/a.task",
            "first/a.task",
        ] {
            let path = touch(at(place));
            assert_eq!(find(), Some(path));
        }
    }

    #[test]
    fn an_explicit_model_ends_the_search() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path().join("a.task"));
        let explicit = root.path().join("b.task");
        let around = SearchPaths {
            models_dir: Some(root.path().to_owned()),
            ..SearchPaths::default()
        };
        let find = || around.model("a.task", "family", Some(&explicit));

        let error = find().unwrap_err().to_string();
        assert!(error.contains("b.task"), "{error}");
        touch(explicit.clone());
        assert_eq!(find().unwrap(), explicit);
    }

    #[test]
    fn a_missing_model_names_every_folder() {
        let around = SearchPaths {
            models_dir: Some("/nowhere/first".into()),
            ..paths(&[
                (MODELS_DIR_VARIABLE, "/nowhere/variable".as_ref()),
                ("HOME", "/nowhere/home".as_ref()),
                ("XDG_DATA_DIRS", "/nowhere/share:relative".as_ref()),
            ])
        };
        let error = around.model("a.task", "family", None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "model file a.task not found (looked in /nowhere/first, /nowhere/variable, \
             /nowhere/home/.local/share/facetrack/models, /nowhere/share/facetrack/models)"
        );
    }

    #[test]
    fn the_best_of_several_models_may_lie_in_the_last_folder() {
        let root = tempfile::tempdir().unwrap();
        let around = SearchPaths {
            models_dir: Some(root.path().join("first")),
            collection: Some(root.path().join("collection")),
            ..SearchPaths::default()
        };
        let find = || around.best_model(&["a.onnx", "b.onnx"], "family");
        let error = find().unwrap_err().to_string();
        assert!(error.contains("a.onnx, b.onnx"), "{error}");
        let worse = touch(root.path().join("first/b.onnx"));
        assert_eq!(find().unwrap(), worse);
        let better = touch(root.path().join("collection/family/a.onnx"));
        assert_eq!(find().unwrap(), better);
    }

    #[test]
    fn a_relative_data_home_is_ignored() {
        let around = paths(&[
            ("XDG_DATA_HOME", "relative".as_ref()),
            ("HOME", "/home/a".as_ref()),
        ]);
        let expected = Some("/home/a/.local/share/facetrack".into());
        assert_eq!(around.data_dir, expected);
    }

    #[test]
    fn system_folders_have_a_default_and_an_empty_variable_is_unset() {
        let expected = ["/usr/local/share/facetrack", "/usr/share/facetrack"].map(PathBuf::from);
        for variables in [&[][..], &[("XDG_DATA_DIRS", "".as_ref())]] {
            assert_eq!(paths(variables).system_data_dirs, expected);
        }
    }

    #[test]
    fn a_chosen_runtime_is_the_only_candidate() {
        let shared = (SHARED_RUNTIME_VARIABLE, "/shared.so".as_ref());
        let own = (RUNTIME_VARIABLE, "/own.so".as_ref());
        for (variables, first, count) in [
            (&[][..], "libonnxruntime.so.1", 2),
            (&[shared], "/shared.so", 1),
            (&[shared, own], "/own.so", 1),
        ] {
            let around = SearchPaths {
                system_data_dirs: Vec::new(),
                ..paths(variables)
            };
            let candidates = around.runtime_candidates();
            assert_eq!(candidates.len(), count);
            assert_eq!(candidates[0], Path::new(first));
        }
    }

    #[test]
    fn a_users_runtime_comes_before_the_systems_and_the_loaders() {
        let root = tempfile::tempdir().unwrap();
        let around = SearchPaths {
            data_dir: Some(root.path().join("home")),
            system_data_dirs: vec![root.path().join("none"), root.path().join("share")],
            ..SearchPaths::default()
        };
        let runtime = root.path().join("home/runtime");
        let old = touch(runtime.join("libonnxruntime.so.1.23.0"));
        let new = touch(runtime.join("libonnxruntime.so.1.31.1"));
        touch(runtime.join("LICENSE"));
        let system = touch(root.path().join("share/runtime/libonnxruntime.so.1.32.0"));
        let loaders = LOADER_NAMES.map(PathBuf::from);
        assert_eq!(
            around.runtime_candidates(),
            [vec![new, old, system], loaders.to_vec()].concat()
        );
    }
}
