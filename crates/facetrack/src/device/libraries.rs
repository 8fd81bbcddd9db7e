// SPDX-License-Identifier: MPL-2.0
//! Finds the libraries that ONNX Runtime's CUDA provider needs, and has them loaded.

mod needs;
mod packages;

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use glob::{Pattern, glob};

use super::validation::Fault;
use facetrack_assets::locate::{PYTHON_VARIABLE, python_environment};
use facetrack_assets::trust::{self, Replaceable};
pub(super) use needs::{Library, Needs};
pub use packages::{PYTHON_PACKAGES, PythonPackages};

/// A folder with the libraries, or several, separated by colons.
const LIB_PATH: &str = "STEP5_CUDA_LIB_PATH";

/// Homes of a CUDA toolkit, the first one first.
const HOMES: [&str; 2] = ["STEP5_CUDA_HOME", "CUDA_HOME"];

/// Default places of toolkits.
const USUAL_HOMES: &str = "usr/local/cuda*";

/// Folders of a toolkit that contain libraries.
const IN_HOME: [&str; 3] = ["lib64", "targets/x86_64-linux/lib", "lib"];

/// Folders of NVIDIA's Python packages that contain libraries, in an environment, in its packages,
/// or in `nvidia`.
const IN_PACKAGES: [&str; 7] = [
    "nvidia/*/lib",
    "lib/python*/site-packages/nvidia/*/lib",
    "lib64/python*/site-packages/nvidia/*/lib",
    "*/lib",
    "tensorrt_libs",
    "lib/python*/site-packages/tensorrt_libs",
    "lib64/python*/site-packages/tensorrt_libs",
];

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
    pub const VARIABLES: [&'static str; 4] = [LIB_PATH, PYTHON_VARIABLE, HOMES[0], HOMES[1]];

    /// Takes the folders from a property and from the variables that `lookup` reads. The property
    /// comes first.
    pub fn of(property: Option<PathBuf>, lookup: &dyn Fn(&str) -> Option<String>) -> Self {
        let value = |name| lookup(name).filter(|value| !value.is_empty());
        let paths = value(LIB_PATH).unwrap_or_default();
        let listed = paths.split(':').filter(|path| !path.is_empty());
        let python = value(PYTHON_VARIABLE).map(PathBuf::from);
        let environment = python.as_deref().and_then(python_environment);
        Self {
            folders: property
                .into_iter()
                .chain(listed.map(PathBuf::from))
                .chain(environment.map(PathBuf::from))
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

/// The folder itself, and the folders of NVIDIA's Python packages in it.
fn expanded(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let below = IN_PACKAGES.iter().flat_map(|path| folders(folder, path));
    std::iter::once(folder.to_owned()).chain(below)
}

fn in_home(home: &Path) -> impl Iterator<Item = PathBuf> {
    IN_HOME.iter().map(|lib| home.join(lib))
}

/// The toolkits in the default place below `root`: `cuda`, the machine's default, then the newest
/// first.
fn usual(root: &Path) -> Vec<PathBuf> {
    let mut homes = folders(root, USUAL_HOMES);
    homes.sort_by_cached_key(|home| {
        let name = home.file_name().unwrap_or_default().to_string_lossy();
        (name != "cuda", Reverse(version(&name)))
    });
    homes.iter().flat_map(|home| in_home(home)).collect()
}

/// The numbers in a name such as `cuda-12.4`.
fn version(name: &str) -> Vec<u32> {
    name.split(|character: char| !character.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// The folders below `folder` that match a pattern, sorted.
fn folders(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let folder = Pattern::escape(&folder.to_string_lossy());
    let found = glob(&format!("{folder}/{pattern}")).into_iter().flatten();
    found.flatten().filter(|path| path.is_dir()).collect()
}

/// Loads the library at a path, or the one that the loader knows by a bare name. Fails with the
/// loader's message. Tests replace it.
pub(super) type Loader<'a> = dyn FnMut(&Path) -> Result<(), String> + 'a;

/// Describes the number of loaded libraries and their folders, for log messages.
pub(super) fn summary(libraries: &[PathBuf]) -> String {
    let folder = |path: &PathBuf| {
        let folder = path.parent().filter(|folder| folder.has_root());
        folder.map_or_else(
            || "the loader's path".to_owned(),
            |folder| folder.display().to_string(),
        )
    };
    let mut folders: Vec<String> = libraries.iter().map(folder).collect();
    folders.sort();
    folders.dedup();
    format!("{} libraries from {}", libraries.len(), folders.join(", "))
}

/// Finds what is needed below `root`, and loads it: from a folder that was named, by the loader's
/// own path, or from the usual folders. A broken library is skipped if there is another one. A
/// library that every user can replace is an error. Returns the libraries in loading order: their
/// paths, or bare names of those that the loader finds by itself.
///
/// # Errors
/// Returns [`Fault::Libraries`], [`Fault::NoDriverLibrary`], or [`Fault::Replaceable`].
pub(super) fn load(
    needs: Needs,
    search: &LibrarySearch,
    root: &Path,
    loader: &mut Loader<'_>,
) -> Result<Vec<PathBuf>, Fault> {
    // A name without a folder is searched for by the loader itself.
    let by_loader = vec![PathBuf::new()];
    let folders = [search.named(), by_loader, usual(root)].concat();
    let mut paths = Vec::new();
    let mut failures = Vec::new();
    for library in needs.libraries() {
        match load_first(&folders, &library.file, loader)? {
            Ok(path) => paths.push(path),
            Err(failure) => failures.push((library, failure)),
        }
    }
    if failures.is_empty() {
        return Ok(paths);
    }
    Err(fault(&failures))
}

/// Reason why a library does not load; `None` if the file does not exist.
type Failure = Option<String>;

/// Loads the first candidate that works. The first failure is returned, except for missing files. A
/// library that is not trusted ends the search.
fn load_first(
    folders: &[PathBuf],
    file: &str,
    loader: &mut Loader<'_>,
) -> Result<Result<PathBuf, Failure>, Replaceable> {
    let mut failure = None;
    for folder in folders {
        match load_from(folder, file, loader)? {
            Ok(path) => return Ok(Ok(path)),
            Err(other) => failure = failure.or(other),
        }
    }
    Ok(Err(failure))
}

fn load_from(
    folder: &Path,
    file: &str,
    loader: &mut Loader<'_>,
) -> Result<Result<PathBuf, Failure>, Replaceable> {
    let path = folder.join(file);
    let is_bare = trust::is_bare(&path);
    if !is_bare && !path.exists() {
        let dangling = || format!("{} is a link to nothing", path.display());
        return Ok(Err(path.is_symlink().then(dangling)));
    }
    trust::check(&path)?;
    Ok(match loader(&path) {
        Ok(()) => Ok(path),
        // glibc's message for a library that it does not find.
        Err(reason) if is_bare && reason.contains(&format!("{file}: cannot open")) => Err(None),
        Err(reason) => Err(Some(format!("{} does not load: {reason}", path.display()))),
    })
}

fn fault(failures: &[(Library, Failure)]) -> Fault {
    let missing: Vec<&str> = failures
        .iter()
        .filter(|(_, failure)| failure.is_none())
        .map(|(library, _)| library.file.as_str())
        .collect();
    let missing = (!missing.is_empty()).then(|| format!("not found: {}", missing.join(", ")));
    let broken = failures.iter().filter_map(|(_, failure)| failure.clone());
    let reasons: Vec<String> = missing.into_iter().chain(broken).collect();
    let reason = reasons.join("; ");
    let wants_driver = |reason: &String| reason.contains(DRIVER_LIBRARY);
    if failures
        .iter()
        .all(|(_, failure)| failure.as_ref().is_some_and(wants_driver))
    {
        return Fault::NoDriverLibrary(reason);
    }
    let packages = failures.iter().map(|(library, _)| library.package.clone());
    let mut packages: Vec<String> = packages.collect();
    packages.dedup();
    Fault::Libraries { reason, packages }
}

#[cfg(test)]
mod tests;
