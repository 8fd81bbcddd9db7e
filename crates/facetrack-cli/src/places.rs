// SPDX-License-Identifier: MPL-2.0
//! Paths on this machine.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use facetrack_assets::locate::SearchPaths;
use facetrack_assets::manifest::{self, FileKind, KnownFile};
use walkdir::DirEntry;

use crate::store;

/// Returns the folders that an element searches for models and ONNX Runtime in this environment.
pub(crate) fn search_paths() -> SearchPaths {
    SearchPaths::from_vars(env::var_os)
}

/// Returns this project's folder in the user's home.
pub(crate) fn data_dir() -> Option<PathBuf> {
    search_paths().data_dir
}

/// The only file of a kind.
pub(crate) fn file(kind: FileKind) -> Option<&'static KnownFile> {
    let mut files = manifest::manifest().usable();
    files.find(|file| file.kind == kind)
}

/// `file` in a folder of models: flat, or one deeper in the folder of its family.
pub(crate) fn in_folder(folder: &Path, file: &KnownFile) -> Option<PathBuf> {
    let paths = SearchPaths {
        models_dir: Some(folder.to_owned()),
        ..SearchPaths::default()
    };
    paths.model(&file.name, &file.family, None).ok()
}

/// `file` where it was fetched to: in the user's folder or in one for all users.
pub(crate) fn fetched(file: &KnownFile) -> Option<PathBuf> {
    search_paths()
        .data_dirs()
        .map(|root| store::place(root, file))
        .find(|path| path.is_file())
}

/// The file in a folder that a download went to; `None` when nothing came.
pub(crate) fn only_file(folder: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    entries.next().map(|entry| entry.path())
}

/// Returns the path of an entry that is not a folder, such as a link without a target; `None` for a
/// folder.
///
/// # Errors
/// Returns an error if the entry cannot be read.
pub(crate) fn found(entry: walkdir::Result<DirEntry>) -> walkdir::Result<Option<PathBuf>> {
    match entry {
        Ok(entry) => Ok((!entry.file_type().is_dir()).then(|| entry.into_path())),
        Err(error) => {
            let link = error.path().filter(|it| it.is_symlink() && !it.exists());
            link.map(|link| Some(link.to_owned())).ok_or(error)
        }
    }
}

/// A path as text.
///
/// # Errors
/// Returns an error if the path is not UTF-8.
pub(crate) fn text(path: &Path) -> Result<&str, String> {
    let text = path.to_str();
    text.ok_or_else(|| format!("{}: the name is not UTF-8. Rename it", path.display()))
}

/// The folder next to this program that contains only the plugin; `None` if there is none.
///
/// GStreamer looks through the whole tree under a plugin path, so it must not be the folder that
/// cargo builds in.
pub(crate) fn built_plugin() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let folder = program.parent()?.join("gstreamer-1.0");
    folder.join("libgstfacetrack.so").exists().then_some(folder)
}

/// The folder of this program, unless a shell finds it there already.
pub(crate) fn program_off_path() -> Option<PathBuf> {
    let program = env::current_exe().ok()?;
    let folder = program.parent()?;
    let path = env::var_os("PATH").unwrap_or_default();
    let is_on_path = env::split_paths(&path).any(|it| it == folder);
    (!is_on_path).then(|| folder.to_owned())
}
