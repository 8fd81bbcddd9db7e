// SPDX-License-Identifier: MPL-2.0
//! Trees of empty files, and a loader that does as if.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

const NEEDS: Needs = Needs {
    cuda: 13,
    tensorrt: None,
};

/// A loader that knows some names by itself, and finds some files broken.
#[derive(Default)]
struct Script {
    known: HashSet<String>,
    broken: HashSet<PathBuf>,
    loaded: Vec<PathBuf>,
}

impl Script {
    fn load(&mut self, library: &Path) -> Result<(), String> {
        let file = library.display();
        if self.broken.contains(library) {
            return Err(format!("{file}: invalid ELF header"));
        }
        let is_known = library.is_absolute() || self.known.contains(&file.to_string());
        if !is_known {
            return Err(format!(
                "{file}: cannot open shared object file: No such file or directory"
            ));
        }
        self.loaded.push(library.to_owned());
        Ok(())
    }
}

/// A file system of its own.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn with(self, folder: &str, files: &[String]) -> Self {
        fs::create_dir_all(self.at(folder)).unwrap();
        for file in files {
            fs::write(self.at(folder).join(file), b"").unwrap();
        }
        self
    }

    fn load(&self, search: &LibrarySearch, loader: &mut Script) -> Result<Vec<PathBuf>, Fault> {
        self.load_for(NEEDS, search, loader)
    }

    fn load_for(
        &self,
        needs: Needs,
        search: &LibrarySearch,
        loader: &mut Script,
    ) -> Result<Vec<PathBuf>, Fault> {
        load(needs, search, self.0.path(), &mut |library| {
            loader.load(library)
        })
    }

    /// The folder that everything comes from.
    fn origin(&self, search: &LibrarySearch) -> Result<PathBuf, Fault> {
        let mut loader = Script::default();
        let found = self.load(search, &mut loader)?;
        assert_eq!(found, loader.loaded);
        let folders: HashSet<_> = found.iter().map(|path| path.parent()).collect();
        assert_eq!(folders.len(), 1, "{found:?}");
        Ok(found[0].parent().unwrap().to_owned())
    }
}

fn packages_of(fault: Fault) -> Vec<String> {
    match fault {
        Fault::Libraries { packages, .. } => packages,
        other => panic!("{other:?}"),
    }
}

fn files(needs: Needs) -> Vec<String> {
    needs.libraries().into_iter().map(|own| own.file).collect()
}

fn folder(path: PathBuf) -> LibrarySearch {
    LibrarySearch {
        folders: vec![path],
        homes: vec![],
    }
}

fn home(path: PathBuf) -> LibrarySearch {
    LibrarySearch {
        folders: vec![],
        homes: vec![path],
    }
}

#[test]
fn libraries_are_found_wherever_they_usually_are() {
    let all = files(NEEDS);
    for place in [
        "usr/local/cuda/lib64",
        "usr/local/cuda/targets/x86_64-linux/lib",
        "usr/local/cuda-13.0/lib64",
        "usr/local/cuda-13/targets/x86_64-linux/lib",
    ] {
        let tree = Tree::new().with(place, &all);
        let origin = tree.origin(&LibrarySearch::default()).unwrap();
        assert_eq!(origin, tree.at(place));
    }
    let tree = Tree::new().with("opt/libs", &all);
    assert_eq!(
        tree.origin(&folder(tree.at("opt/libs"))).unwrap(),
        tree.at("opt/libs")
    );
    for place in ["lib64", "targets/x86_64-linux/lib", "lib"] {
        let tree = Tree::new().with(&format!("opt/toolkit/{place}"), &all);
        let origin = tree.origin(&home(tree.at("opt/toolkit"))).unwrap();
        assert_eq!(origin, tree.at("opt/toolkit").join(place));
    }
}

#[test]
fn a_python_environment_may_be_named_by_any_of_its_folders() {
    let (cudnn, toolkit): (Vec<_>, Vec<_>) = files(NEEDS)
        .into_iter()
        .partition(|file| file.starts_with("libcudnn"));
    let packages = "venv/lib/python3.12/site-packages";
    let tree = Tree::new()
        .with(&format!("{packages}/nvidia/cu13/lib"), &toolkit)
        .with(&format!("{packages}/nvidia/cudnn/lib"), &cudnn);
    for named in ["venv", packages, &format!("{packages}/nvidia")] {
        let mut loader = Script::default();
        let found = tree.load(&folder(tree.at(named)), &mut loader).unwrap();
        assert_eq!(found.len(), toolkit.len() + cudnn.len(), "{named}");
        let told = summary(&found);
        for part in ["14 libraries", "nvidia/cu13/lib, ", "nvidia/cudnn/lib"] {
            assert!(told.contains(part), "{told}");
        }
    }
}

#[test]
fn tensorrt_is_looked_for_where_it_is_wanted_alone() {
    let wanted = Needs {
        tensorrt: Some(10),
        ..NEEDS
    };
    let packages = "venv/lib/python3.12/site-packages";
    let (tensorrt, cuda): (Vec<_>, Vec<_>) = files(wanted)
        .into_iter()
        .partition(|file| file.starts_with("libnv") && !file.starts_with("libnvrtc"));
    let tree = Tree::new().with(&format!("{packages}/nvidia/cu13/lib"), &cuda);
    let search = folder(tree.at("venv"));
    assert!(tree.load(&search, &mut Script::default()).is_ok());
    let fault = tree.load_for(wanted, &search, &mut Script::default());
    let fault = fault.unwrap_err();
    assert!(fault.to_string().contains("libnvinfer.so.10"), "{fault:?}");
    assert_eq!(packages_of(fault), ["tensorrt-cu13==10.*"]);
    let tree = tree.with(&format!("{packages}/tensorrt_libs"), &tensorrt);
    for named in ["venv", packages] {
        let search = folder(tree.at(named));
        let found = tree.load_for(wanted, &search, &mut Script::default());
        let told = summary(&found.unwrap());
        assert!(told.starts_with("17 libraries"), "{told}");
        assert!(told.ends_with("/tensorrt_libs"), "{told}");
    }
}

#[test]
fn what_the_loader_knows_needs_no_path() {
    let tree = Tree::new();
    let mut loader = Script {
        known: files(NEEDS).into_iter().collect(),
        ..Script::default()
    };
    let found = tree.load(&LibrarySearch::default(), &mut loader).unwrap();
    let names: Vec<PathBuf> = files(NEEDS).into_iter().map(PathBuf::from).collect();
    assert_eq!(found, names);
    assert_eq!(summary(&found), "14 libraries from the loader's path");
}

#[test]
fn what_was_named_comes_first_then_the_loader_then_the_machines_toolkit_then_the_newest() {
    let all = files(NEEDS);
    let variables = |name: &str| match name {
        "STEP5_CUDA_LIB_PATH" => Some("variable:second"),
        "STEP5_INSIGHTFACE_ENV_PYTHON" => Some("environment/bin/python"),
        "STEP5_CUDA_HOME" => Some("own-home"),
        "CUDA_HOME" => Some("home"),
        _ => None,
    };
    // Each that is put in place takes precedence over those before it.
    let mut tree = Tree::new();
    for place in [
        "usr/local/cuda-9.2/lib64",
        "usr/local/cuda-13.0/lib64",
        "usr/local/cuda-13.10/lib64",
        "usr/local/cuda/targets/x86_64-linux/lib",
        "usr/local/cuda/lib64",
        "home/lib64",
        "own-home/lib64",
        "environment/lib/python3.12/site-packages/nvidia/cudnn/lib",
        "second",
        "variable",
        "property/nvidia/cudnn/lib",
        "property",
    ] {
        tree = tree.with(place, &all);
        let lookup = |name: &str| {
            let paths = variables(name)?.split(':');
            let paths: Vec<String> = paths
                .map(|path| tree.at(path).display().to_string())
                .collect();
            Some(paths.join(":"))
        };
        let search = LibrarySearch::of(Some(tree.at("property")), &lookup);
        assert_eq!(tree.origin(&search).unwrap(), tree.at(place));
    }
    let usual = LibrarySearch::default();
    let mut loader = Script {
        known: all.iter().cloned().collect(),
        ..Script::default()
    };
    let found = tree.load(&usual, &mut loader).unwrap();
    assert!(found.iter().all(|path| path.is_relative()));
}

#[test]
fn a_library_that_every_user_can_replace_is_not_loaded() {
    let tree = Tree::new()
        .with("opt/libs", &files(NEEDS))
        .with("usr/local/cuda/lib64", &files(NEEDS));
    let library = tree.at("opt/libs").join(&files(NEEDS)[3]);
    fs::set_permissions(&library, fs::Permissions::from_mode(0o666)).unwrap();
    let mut loader = Script::default();
    let fault = tree.load(&folder(tree.at("opt/libs")), &mut loader);
    let Err(Fault::Replaceable(found)) = fault else {
        panic!("{fault:?}");
    };
    assert_eq!((&found.library, &found.writable), (&library, &library));
    let name = library.file_name();
    assert!(loader.loaded.iter().all(|it| it.file_name() != name));
}

#[test]
fn empty_variables_name_nothing() {
    let empty = LibrarySearch::of(None, &|_| Some(String::new()));
    assert_eq!(empty, LibrarySearch::default());
    assert_eq!(LibrarySearch::of(None, &|_| None), LibrarySearch::default());
    let search = LibrarySearch::of(None, &|name| {
        (name == "STEP5_CUDA_LIB_PATH").then(|| ":/a::/b:".to_owned())
    });
    assert_eq!(search.folders, [PathBuf::from("/a"), PathBuf::from("/b")]);
}

#[test]
fn what_is_missing_is_named_with_what_brings_it() {
    let most: Vec<String> = files(NEEDS)
        .into_iter()
        .filter(|file| !file.starts_with("libcudnn") && file != "libcurand.so.10")
        .collect();
    let tree = Tree::new().with("usr/local/cuda/lib64", &most);
    let fault = tree.origin(&LibrarySearch::default()).unwrap_err();
    let told = "not found: libcurand.so.10, libcudnn.so.9, libcudnn_graph.so.9, ";
    assert!(fault.to_string().starts_with(told), "{fault:?}");
    assert!(!fault.to_string().contains("libcublas"), "{fault:?}");
    assert_eq!(
        packages_of(fault),
        ["nvidia-curand==10.4.0.35", "nvidia-cudnn-cu13==9.19.0.56"]
    );
}

#[test]
fn another_version_is_as_good_as_none() {
    let tree = Tree::new().with("usr/local/cuda/lib64", &files(Needs { cuda: 12, ..NEEDS }));
    let fault = tree.origin(&LibrarySearch::default()).unwrap_err();
    assert!(fault.to_string().contains("libcublas.so.13, "), "{fault:?}");
    assert!(!fault.to_string().contains("libcurand"), "{fault:?}");
    assert!(!fault.to_string().contains("libcudnn"), "{fault:?}");
}

#[test]
fn a_broken_library_is_passed_by_or_named() {
    let all = files(NEEDS);
    let tree = Tree::new()
        .with("named", &all)
        .with("usr/local/cuda/lib64", &all);
    let broken = tree.at("named/libcublas.so.13");
    let mut loader = Script {
        broken: HashSet::from([broken.clone()]),
        ..Script::default()
    };
    let search = folder(tree.at("named"));
    let found = tree.load(&search, &mut loader).unwrap();
    let other = tree.at("usr/local/cuda/lib64/libcublas.so.13");
    assert!(found.contains(&other), "{found:?}");

    loader.broken.insert(other);
    let fault = tree.load(&search, &mut loader).unwrap_err();
    let expected = format!(
        "{} does not load: {0}: invalid ELF header",
        broken.display()
    );
    assert_eq!(fault.to_string(), expected, "the one that was named");
}

#[test]
fn a_library_that_wants_the_driver_tells_so() {
    let all = files(NEEDS);
    let tree = Tree::new().with("usr/local/cuda/lib64", &all);
    let mut without_driver =
        |library: &Path| match library.ends_with("libcudnn_engines_runtime_compiled.so.9") {
            true => Err("libcuda.so.1: cannot open shared object file".to_owned()),
            false => Ok(()),
        };
    let search = LibrarySearch::default();
    let root = tree.0.path();
    let fault = load(NEEDS, &search, root, &mut without_driver).unwrap_err();
    assert!(matches!(fault, Fault::NoDriverLibrary(_)), "{fault:?}");
}

#[test]
fn a_link_to_nothing_is_distinguished_from_a_file_that_is_not_there() {
    let mut all = files(NEEDS);
    all.retain(|file| file != "libcudnn.so.9");
    let tree = Tree::new().with("usr/local/cuda/lib64", &all);
    let link = tree.at("usr/local/cuda/lib64/libcudnn.so.9");
    symlink(tree.at("gone"), &link).unwrap();
    let fault = tree.origin(&LibrarySearch::default()).unwrap_err();
    assert_eq!(
        fault.to_string(),
        format!("{} is a link to nothing", link.display())
    );
    fs::write(tree.at("gone"), b"").unwrap();
    assert!(tree.origin(&LibrarySearch::default()).is_ok());
}

/// The libraries of the Python packages that docs/gpu.md installs, as
/// `tests/golden/make_nvidia_wheels.py` lists them: the version of CUDA, and a path.
const WHEELS: &str = include_str!("../../../../../tests/golden/nvidia_wheels.txt");

#[test]
fn the_packages_of_the_gpu_page_contain_every_library() {
    for packages in PYTHON_PACKAGES {
        let needs = Needs {
            cuda: packages.cuda,
            tensorrt: None,
        };
        let site = "venv/lib/python3.12/site-packages";
        let mut tree = Tree::new();
        let paths = WHEELS.lines().filter_map(|line| line.split_once(' '));
        for (_, path) in paths.filter(|(cuda, _)| *cuda == packages.cuda.to_string()) {
            let (folder, file) = path.rsplit_once('/').unwrap();
            tree = tree.with(&format!("{site}/{folder}"), &[file.to_owned()]);
        }
        assert!(tree.at(site).join("onnxruntime/capi").is_dir());
        let mut loader = Script::default();
        let found = tree.load_for(needs, &folder(tree.at("venv")), &mut loader);
        assert_eq!(found.unwrap(), loader.loaded);
        assert_eq!(loader.loaded.len(), files(needs).len());
        let own = tree.at(site);
        assert!(loader.loaded.iter().all(|path| path.starts_with(&own)));
    }
}
