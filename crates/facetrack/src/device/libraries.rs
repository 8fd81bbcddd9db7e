// SPDX-License-Identifier: MPL-2.0
//! Finds the libraries that ONNX Runtime's CUDA provider needs, and has them loaded.

mod needs;

use std::fs;
use std::path::{Path, PathBuf};

use super::validation::Fault;
pub use needs::{Library, Needs};

/// A folder with the libraries, or several by colons.
const LIB_PATH: &str = "STEP5_CUDA_LIB_PATH";

/// Homes of a CUDA toolkit, the first one first.
const HOMES: [&str; 2] = ["STEP5_CUDA_HOME", "CUDA_HOME"];

/// Default place of toolkits, in folders that begin with `cuda`.
const USUAL_HOMES: &str = "usr/local";

/// Folders of a toolkit that contain libraries.
const IN_HOME: [&str; 3] = ["lib64", "targets/x86_64-linux/lib", "lib"];

/// Where NVIDIA's Python package of TensorRT has its libraries.
const TENSORRT_PACKAGE: &str = "tensorrt_libs";

/// Where a Python environment has its packages.
const IN_ENVIRONMENT: [&str; 2] = ["lib", "lib64"];

/// NVIDIA's driver, which brings its own libraries.
const DRIVER_LIBRARY: &str = "libcuda.so";

/// Folders to search in addition to the loader's own path and the default folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibrarySearch {
    /// Folders that were named, each with libraries in it, or with a Python environment's
    /// `nvidia/*/lib` below it.
    pub folders: Vec<PathBuf>,
    /// Homes of CUDA toolkits that were named.
    pub homes: Vec<PathBuf>,
}

impl LibrarySearch {
    /// The variables that [`LibrarySearch::of`] looks at.
    pub const VARIABLES: [&'static str; 3] = [LIB_PATH, HOMES[0], HOMES[1]];

    /// Where a property and the variables that `lookup` knows say; the property comes first.
    pub fn of(property: Option<PathBuf>, lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let value = |name| lookup(name).filter(|value| !value.is_empty());
        let paths = value(LIB_PATH).unwrap_or_default();
        let listed = paths.split(':').filter(|path| !path.is_empty());
        Self {
            folders: property
                .into_iter()
                .chain(listed.map(PathBuf::from))
                .collect(),
            homes: HOMES
                .iter()
                .filter_map(|name| value(name))
                .map(PathBuf::from)
                .collect(),
        }
    }

    /// Every folder that was named, with what lies in it.
    fn named(&self) -> Vec<PathBuf> {
        let folders = self.folders.iter().flat_map(|folder| expanded(folder));
        let homes = self.homes.iter().flat_map(|home| in_home(home));
        folders.chain(homes).collect()
    }
}

/// The folder itself, and the folders of NVIDIA's Python packages in it: in an environment, in its
/// packages, or in `nvidia`.
fn expanded(folder: &Path) -> Vec<PathBuf> {
    let environments = IN_ENVIRONMENT.iter().flat_map(|lib| {
        let pythons = children(&folder.join(lib));
        pythons
            .into_iter()
            .filter(|python| name(python).starts_with("python"))
            .map(|python| python.join("site-packages"))
    });
    let packages: Vec<PathBuf> = std::iter::once(folder.to_owned())
        .chain(environments)
        .collect();
    let nvidia = packages.iter().map(|packages| packages.join("nvidia"));
    let components = nvidia
        .chain([folder.to_owned()])
        .flat_map(|nvidia| children(&nvidia))
        .map(|component| component.join("lib"));
    let tensorrt = packages
        .iter()
        .map(|packages| packages.join(TENSORRT_PACKAGE));
    let below = components.chain(tensorrt).filter(|lib| lib.is_dir());
    std::iter::once(folder.to_owned()).chain(below).collect()
}

fn in_home(home: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let home = home.to_owned();
    IN_HOME.into_iter().map(move |lib| home.join(lib))
}

/// The toolkits in the default place below `root`: `cuda`, the machine's default, then the newest
/// first.
fn usual(root: &Path) -> Vec<PathBuf> {
    let mut homes = children(&root.join(USUAL_HOMES));
    homes.retain(|home| name(home).starts_with("cuda"));
    homes.sort_by_key(|home| (name(home) != "cuda", std::cmp::Reverse(version(name(home)))));
    homes.iter().flat_map(|home| in_home(home)).collect()
}

/// The numbers in a name such as `cuda-12.4`.
fn version(name: &str) -> Vec<u32> {
    name.split(|character: char| !character.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}

/// The libraries that were found, in loading order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CudaLibraries {
    /// Paths, or bare names of those that the loader finds by itself.
    pub paths: Vec<PathBuf>,
}

/// Loads a library into the process, where it stays. Tests replace it.
pub trait Loader {
    /// Loads the library at a path, or the one that the loader knows by a bare name.
    ///
    /// # Errors
    /// The loader's message.
    fn load(&mut self, library: &Path) -> Result<(), String>;
}

impl CudaLibraries {
    /// The folders that they come from, for a person to read.
    pub fn summary(&self) -> String {
        let folder = |path: &PathBuf| {
            let folder = path.parent().filter(|folder| folder.has_root());
            folder.map_or_else(
                || "the loader's path".to_owned(),
                |folder| folder.display().to_string(),
            )
        };
        let mut folders: Vec<String> = self.paths.iter().map(folder).collect();
        folders.sort();
        folders.dedup();
        format!("{} libraries from {}", self.paths.len(), folders.join(", "))
    }

    /// Finds what is needed below `root`, and loads it: from a folder that was named, by the
    /// loader's own path, or from the usual folders. A library that is broken is passed by where
    /// there is another.
    ///
    /// # Errors
    /// [`Fault::Libraries`] or [`Fault::NoDriverLibrary`].
    pub fn load(
        needs: Needs,
        search: &LibrarySearch,
        root: &Path,
        loader: &mut dyn Loader,
    ) -> Result<Self, Fault> {
        let places = Places {
            named: search.named(),
            usual: usual(root),
        };
        let mut paths = Vec::new();
        let mut failures = Vec::new();
        for library in needs.libraries() {
            match places.load(&library.file, loader) {
                Ok(path) => paths.push(path),
                Err(failure) => failures.push((library, failure)),
            }
        }
        if failures.is_empty() {
            return Ok(Self { paths });
        }
        Err(fault(&failures))
    }
}

/// Folders to search for libraries.
struct Places {
    named: Vec<PathBuf>,
    usual: Vec<PathBuf>,
}

/// Why a library does not load; `None` if there is no such file.
type Failure = Option<String>;

impl Places {
    /// The first failure counts, unless it is only that a file is missing.
    fn load(&self, file: &str, loader: &mut dyn Loader) -> Result<PathBuf, Failure> {
        let mut failure = None;
        for folder in &self.named {
            match load_from(folder, file, loader) {
                Ok(path) => return Ok(path),
                Err(other) => failure = failure.or(other),
            }
        }
        let bare = PathBuf::from(file);
        match loader.load(&bare) {
            Ok(()) => return Ok(bare),
            // glibc's message for a library that it does not find.
            Err(reason) if reason.contains(&format!("{file}: cannot open")) => (),
            Err(reason) => failure = failure.or(Some(broken(&bare, &reason))),
        }
        for folder in &self.usual {
            match load_from(folder, file, loader) {
                Ok(path) => return Ok(path),
                Err(other) => failure = failure.or(other),
            }
        }
        Err(failure)
    }
}

fn load_from(folder: &Path, file: &str, loader: &mut dyn Loader) -> Result<PathBuf, Failure> {
    let path = folder.join(file);
    if path.exists() {
        let loaded = loader.load(&path);
        return loaded
            .map_err(|reason| Some(broken(&path, &reason)))
            .map(|()| path);
    }
    let dangling = format!("{} is a link to nothing", path.display());
    Err(path.is_symlink().then_some(dangling))
}

fn broken(path: &Path, reason: &str) -> String {
    format!("{} does not load: {reason}", path.display())
}

fn fault(failures: &[(Library, Failure)]) -> Fault {
    let missing: Vec<&str> = failures
        .iter()
        .filter(|(_, failure)| failure.is_none())
        .map(|(library, _)| library.file.as_str())
        .collect();
    let missing = (!missing.is_empty()).then(|| format!("not found: {}", missing.join(", ")));
    let others = failures.iter().filter_map(|(_, failure)| failure.clone());
    let reasons: Vec<String> = missing.into_iter().chain(others).collect();
    let reason = reasons.join("; ");
    let wants_driver = |failure: &Failure| {
        let reason = failure.as_deref().unwrap_or_default();
        reason.contains(DRIVER_LIBRARY)
    };
    if failures.iter().all(|(_, failure)| wants_driver(failure)) {
        return Fault::NoDriverLibrary(reason);
    }
    let packages = failures.iter().map(|(library, _)| library.package.clone());
    let mut packages: Vec<String> = packages.collect();
    packages.dedup();
    Fault::Libraries { reason, packages }
}

#[cfg(test)]
mod tests;
