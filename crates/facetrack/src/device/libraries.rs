// SPDX-License-Identifier: MPL-2.0
//! Finds the libraries that ONNX Runtime's CUDA provider needs, and has them loaded.

mod needs;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::validation::Fault;
pub use needs::{Library, Needs};

/// A folder with the libraries, or several by colons.
const LIB_PATH: &str = "STEP5_CUDA_LIB_PATH";

/// Homes of a CUDA toolkit, the first one first.
const HOMES: [&str; 2] = ["STEP5_CUDA_HOME", "CUDA_HOME"];

/// Where toolkits lie that nobody named, in folders that begin with `cuda`.
const USUAL_HOMES: &str = "usr/local";

/// Where a toolkit has its libraries.
const IN_HOME: [&str; 3] = ["lib64", "targets/x86_64-linux/lib", "lib"];

/// Where NVIDIA's Python package of TensorRT has its libraries.
const TENSORRT_PACKAGE: &str = "tensorrt_libs";

/// Where a Python environment has its packages.
const IN_ENVIRONMENT: [&str; 2] = ["lib", "lib64"];

/// NVIDIA's driver, which brings its own libraries.
const DRIVER_LIBRARY: &str = "libcuda.so";

/// Where to look, besides the loader's own path and the usual folders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LibrarySearch {
    /// Folders that were named, each with libraries in it, or with a Python environment's `nvidia/*/lib` below it.
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

/// The folder itself, and those of NVIDIA's Python packages below it: below an environment, its packages, or `nvidia`.
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

/// The toolkits below `root` that nobody named: `cuda`, which is what the machine uses, then the newest first.
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

/// The libraries that were found, by their paths in the order in which they are loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CudaLibraries {
    /// Paths, or bare names of those that the loader finds by itself.
    pub paths: Vec<PathBuf>,
}

/// What loads a library into the process, where it stays. Tests do as if.
pub trait Loader {
    /// Loads the library at a path, or the one that the loader knows by a bare name.
    ///
    /// # Errors
    /// What the loader said.
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

    /// Finds what is needed below `root`, and loads it: from a folder that was named, by the loader's own path, or from
    /// the usual folders. A library that is broken is passed by where there is another.
    ///
    /// # Errors
    /// What is missing, and what is broken.
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
        match failures.is_empty() {
            true => Ok(Self { paths }),
            false => Err(fault(&failures)),
        }
    }
}

/// Folders in which libraries are looked for.
struct Places {
    named: Vec<PathBuf>,
    usual: Vec<PathBuf>,
}

/// Why there is no such library.
enum Failure {
    Missing,
    /// Links to nothing.
    Dangling(PathBuf),
    /// Files that the loader refuses.
    Broken(PathBuf, String),
}

impl Places {
    fn load(&self, file: &str, loader: &mut dyn Loader) -> Result<PathBuf, Failure> {
        let mut failure = Failure::Missing;
        for folder in &self.named {
            match load_from(folder, file, loader) {
                Ok(path) => return Ok(path),
                Err(other) => failure = failure.or(other),
            }
        }
        let bare = PathBuf::from(file);
        match loader.load(&bare) {
            Ok(()) => return Ok(bare),
            // glibc's words for a library that it does not find: says nothing that the rest does not.
            Err(reason) if reason.contains(&format!("{file}: cannot open")) => (),
            Err(reason) => failure = failure.or(Failure::Broken(bare, reason)),
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
    if !path.exists() {
        return Err(match path.is_symlink() {
            true => Failure::Dangling(path),
            false => Failure::Missing,
        });
    }
    match loader.load(&path) {
        Ok(()) => Ok(path),
        Err(reason) => Err(Failure::Broken(path, reason)),
    }
}

impl Failure {
    /// The one that was met first, unless it says nothing.
    fn or(self, later: Self) -> Self {
        match self {
            Self::Missing => later,
            first => first,
        }
    }

    fn wants_driver(&self) -> bool {
        matches!(self, Self::Broken(_, reason) if reason.contains(DRIVER_LIBRARY))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("not found"),
            Self::Dangling(path) => write!(f, "{} is a link to nothing", path.display()),
            Self::Broken(path, reason) => write!(f, "{} does not load: {reason}", path.display()),
        }
    }
}

fn fault(failures: &[(Library, Failure)]) -> Fault {
    let is_missing = |failure: &Failure| matches!(failure, Failure::Missing);
    let missing: Vec<&str> = failures
        .iter()
        .filter(|(_, failure)| is_missing(failure))
        .map(|(library, _)| library.file.as_str())
        .collect();
    let mut told: Vec<String> = failures
        .iter()
        .filter(|(_, failure)| !is_missing(failure))
        .map(|(_, failure)| failure.to_string())
        .collect();
    if !missing.is_empty() {
        told.insert(0, format!("not found: {}", missing.join(", ")));
    }
    let reason = told.join("; ");
    if failures.iter().all(|(_, failure)| failure.wants_driver()) {
        return Fault::NoDriverLibrary(reason);
    }
    let packages = failures.iter().map(|(library, _)| library.package.clone());
    let mut packages: Vec<String> = packages.collect();
    packages.dedup();
    Fault::Libraries { reason, packages }
}

#[cfg(test)]
mod tests;
