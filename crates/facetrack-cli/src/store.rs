// SPDX-License-Identifier: MPL-2.0
//! The project's data folder. Every file that this module writes there is whole and has the right
//! hash.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use facetrack_assets::lock;
use facetrack_assets::manifest::{self, KnownFile, State};
use tempfile::TempDir;

use crate::error::StoreError;
use crate::output;

/// Prefix of the folders for downloads. They are in the data folder, since a rename within a file
/// system is atomic.
const SCRATCH_PREFIX: &str = ".fetch-";

/// The data folder, locked by this process.
#[derive(Debug)]
pub(crate) struct Store {
    root: PathBuf,
    _lock: File,
}

impl Store {
    /// Creates the folder if necessary, waits for other fetches to end, and removes the leftovers
    /// of interrupted ones.
    ///
    /// # Errors
    /// Returns an error if the folder can't be written.
    pub(crate) fn open(root: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(root).map_err(StoreError::at(root))?;
        let path = root.join(".lock");
        let lock = match lock::try_lock_file(&path) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                output::print_line("Waiting for another fetch to finish …")?;
                lock::lock_file(&path)
            }
            locked => locked,
        };
        let lock = lock.map_err(StoreError::at(&path))?;
        remove_leftovers(root).map_err(StoreError::at(root))?;
        Ok(Self {
            root: root.to_owned(),
            _lock: lock,
        })
    }

    /// Returns the path for `file`.
    pub(crate) fn place(&self, file: &KnownFile) -> PathBuf {
        place(&self.root, file)
    }

    /// A new folder for half-done work, removed when dropped.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created.
    pub(crate) fn scratch(&self) -> Result<TempDir, StoreError> {
        tempfile::Builder::new()
            .prefix(SCRATCH_PREFIX)
            .tempdir_in(&self.root)
            .map_err(StoreError::at(&self.root))
    }

    /// Moves `candidate`, which lies in a scratch folder, to its place. Its bytes have been
    /// checked.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; the old file is kept.
    pub(crate) fn install(
        &self,
        candidate: &Path,
        file: &KnownFile,
    ) -> Result<PathBuf, StoreError> {
        let path = self.place(file);
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder).map_err(StoreError::at(folder))?;
        File::open(candidate)
            .and_then(|file| file.sync_all())
            .and_then(|()| fs::rename(candidate, &path))
            .map_err(StoreError::at(&path))?;
        Ok(path)
    }
}

/// Returns the path for `file` under the data folder `root`.
pub(crate) fn place(root: &Path, file: &KnownFile) -> PathBuf {
    root.join(file.kind.folder()).join(file.place())
}

/// Compares the file at `path` with its entry.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub(crate) fn state(path: &Path, known: &KnownFile) -> Result<State, StoreError> {
    manifest::compare(path, known.size, &known.sha256).map_err(StoreError::at(path))
}

/// Removes the scratch folders of interrupted fetches. A fetch leaves no files with such names.
fn remove_leftovers(root: &Path) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(SCRATCH_PREFIX) && entry.file_type()?.is_dir() {
            remove_leftover(&entry.path());
        }
    }
    Ok(())
}

/// Reports a folder that cannot be removed. Fetching works without it.
fn remove_leftover(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder) {
        let shown = folder.display();
        output::complain(format_args!(
            "{shown} is left of an interrupted fetch and cannot be removed: {error}. Remove it by hand"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_removes_what_an_interrupted_fetch_left() {
        let root = tempfile::tempdir().unwrap();
        let left = root.path().join(".fetch-old");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("half"), "half").unwrap();
        fs::create_dir(root.path().join("models")).unwrap();
        let store = Store::open(root.path()).unwrap();
        assert!(!left.exists());
        assert!(root.path().join("models").exists());
        let scratch = store.scratch().unwrap().keep();
        drop(store);
        Store::open(root.path()).unwrap();
        assert!(!scratch.exists());
    }

    #[test]
    fn a_file_that_looks_like_a_leftover_changes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let stray = root.path().join(".fetch-x");
        fs::write(&stray, "of others").unwrap();
        Store::open(root.path()).unwrap();
        assert_eq!(fs::read(&stray).unwrap(), b"of others");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_the_lock_is_not_followed() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let (target, lock) = (root.path().join("target"), root.path().join(".lock"));
        fs::write(&target, "precious").unwrap();
        symlink(&target, &lock).unwrap();
        let error = Store::open(root.path()).unwrap_err().to_string();
        assert!(
            error.ends_with(".lock: it is not a regular file"),
            "{error}"
        );
        assert_eq!(fs::read(&target).unwrap(), b"precious");
        fs::remove_file(&lock).unwrap();
        fs::write(&lock, "kept").unwrap();
        Store::open(root.path()).unwrap();
        assert_eq!(fs::read(&lock).unwrap(), b"kept");
    }

    #[test]
    fn an_unwritable_root_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("file");
        fs::write(&root, "").unwrap();
        let error = Store::open(&root.join("data")).unwrap_err();
        assert!(error.to_string().contains("file/data"), "{error}");
    }

    #[test]
    fn installing_replaces_in_one_step() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let scratch = store.scratch().unwrap();
        let candidate = scratch.path().join("download");
        fs::write(&candidate, "new").unwrap();
        let file = manifest::known("face_landmarker.task").unwrap();
        let path = store.install(&candidate, file).unwrap();
        assert_eq!(path, root.path().join("models/face_landmarker.task"));
        assert_eq!(fs::read(path).unwrap(), b"new");
        assert!(!candidate.exists());
    }

    #[test]
    fn files_of_a_pack_lie_in_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let store = Store::open(root.path()).unwrap();
        let scratch = store.scratch().unwrap();
        let candidate = scratch.path().join("download");
        fs::write(&candidate, "new").unwrap();
        let file = manifest::known("2d106det.onnx").unwrap();
        let path = store.install(&candidate, file).unwrap();
        let pack = root.path().join("models/insightface");
        assert_eq!(path, pack.join("2d106det.onnx"));
        assert!(path.is_file());
    }
}
