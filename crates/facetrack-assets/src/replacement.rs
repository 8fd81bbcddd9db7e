// SPDX-License-Identifier: MPL-2.0
//! Files that are replaced only when the new ones are complete.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tempfile::{Builder, NamedTempFile};

use crate::file::{
    folder_of, is_at, open_itself, remove_if_there, sync_folder, target, with_suffix,
};
use crate::lock::lock;

/// Permissions of a new file, before the umask.
#[cfg(unix)]
const MODE: u32 = 0o666;

/// Beginning, random part and end of the name of a file that is being written. Such a name is not
/// too long for any file system, and a file with it is from here.
const PREFIX: &str = ".facetrack-";
const RANDOM: usize = 6;
const SUFFIX: &str = ".partial";

/// Maximum number of times that a file is created again because another process has removed it
/// before it was locked.
const ATTEMPTS: usize = 10;

/// A file that is being written, in the folder of the file that it will replace. It is removed when
/// it is dropped.
#[derive(Debug)]
pub struct Replacement {
    file: NamedTempFile,
    path: PathBuf,
}

impl Replacement {
    /// Begins a file that will be at `path`. A link there is kept, and its target is replaced. Files
    /// that killed processes have left in its folder are removed.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be written, or the path is not a regular file.
    pub fn begin(path: &Path) -> io::Result<Self> {
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other(
                "it is not a regular file. Name another one",
            ));
        }
        let path = target(path);
        remove_left(folder_of(&path));
        let mut builder = Builder::new();
        builder.prefix(PREFIX).rand_bytes(RANDOM).suffix(SUFFIX);
        for _ in 0..ATTEMPTS {
            let new = Self::build(&mut builder, path.clone())?;
            let file = new.file.as_file();
            // File systems without locks return another error. Then no process removes the file.
            let is_busy = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !is_busy && is_at(file, new.file.path())? {
                return Ok(new);
            }
        }
        Err(ErrorKind::WouldBlock.into())
    }

    /// Begins a replacement like [`begin`](Self::begin), for a path that only this process writes.
    /// The new file has the name `path` with `suffix`. If a killed process left such a file, it is
    /// removed.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be written.
    pub fn named(path: &Path, suffix: &str) -> io::Result<Self> {
        let new = with_suffix(path, suffix);
        remove_if_there(&new)?;
        let mut builder = Builder::new();
        let name = new.file_name().unwrap_or_default();
        Self::build(builder.prefix(name).rand_bytes(0), path.to_owned())
    }

    fn build(builder: &mut Builder<'_, '_>, path: PathBuf) -> io::Result<Self> {
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(MODE));
        let file = builder.tempfile_in(folder_of(&path))?;
        Ok(Self { file, path })
    }

    /// Gives the new file the owner and the mode of the one that it replaces, if there is one.
    ///
    /// # Errors
    /// Returns an error if this process may not set that owner.
    pub fn resembling(self) -> io::Result<Self> {
        let Ok(old) = fs::metadata(&self.path) else {
            return Ok(self);
        };
        let file = self.file.as_file();
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            let own = file.metadata()?;
            if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
                fchown(file, Some(old.uid()), Some(old.gid()))?;
            }
        }
        // After the owner, since a change of the owner can change the mode.
        file.set_permissions(old.permissions())?;
        Ok(self)
    }

    /// Returns the file for writing.
    ///
    /// # Errors
    /// Returns an error if the process has too many open files.
    pub fn file(&self) -> io::Result<File> {
        self.file.as_file().try_clone()
    }

    /// Path of the file until then, for another process that writes it.
    pub fn written(&self) -> &Path {
        self.file.path()
    }

    /// Gives the file its name. The file is on disk afterwards.
    ///
    /// # Errors
    /// Returns the error of the system. The older file at the path is kept in this case.
    pub fn finish(self) -> io::Result<File> {
        let Self { file, path } = self;
        file.as_file().sync_all()?;
        let file = file.persist(&path)?;
        sync_folder(&path)?;
        Ok(file)
    }

    /// Writes the whole content, and gives the file its name.
    ///
    /// # Errors
    /// Returns the errors of [`finish`](Self::finish).
    pub fn write(mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)?;
        self.finish().map(|_| ())
    }
}

/// Removes the files that killed processes have left in a folder. A process does it once for each
/// folder, which may have many files.
fn remove_left(folder: &Path) {
    static SEARCHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if lock(&SEARCHED).insert(folder.to_owned()) {
        remove_unlocked(folder);
    }
}

/// Removes the unfinished files in a folder that no process has locked.
fn remove_unlocked(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_named(&entry.file_name()) {
            // The next process tries again.
            let _ = remove_if_unlocked(&entry.path());
        }
    }
}

fn remove_if_unlocked(path: &Path) -> io::Result<()> {
    let file = open_itself(File::options().read(true).write(true), path)?;
    if file.try_lock().is_ok() && is_at(&file, path)? {
        fs::remove_file(path)?;
    }
    Ok(())
}

/// Returns true for the name of an unfinished file.
fn is_named(name: &OsStr) -> bool {
    let random = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    let random = random.and_then(|name| name.strip_suffix(SUFFIX));
    random.is_some_and(|it| it.len() == RANDOM && it.bytes().all(|it| it.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_file_changes_only_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table");
        fs::write(&path, "old").unwrap();
        for is_finished in [false, true] {
            let replacement = Replacement::begin(&path).unwrap();
            replacement.file().unwrap().write_all(b"new").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "old");
            if is_finished {
                replacement.finish().unwrap();
            }
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let other = folder.path().join("other");
        fs::write(&other, "").unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&other));
    }

    #[test]
    fn a_link_is_kept_and_its_target_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("deep/table"));
        fs::create_dir(folder.path().join("deep")).unwrap();
        symlink("deep/table", &link).unwrap();
        // The target is missing at first.
        for text in ["one", "two"] {
            let replacement = Replacement::begin(&link).unwrap();
            replacement.write(text.as_bytes()).unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::read_to_string(&target).unwrap(), text);
        }
    }

    #[test]
    fn only_files_of_killed_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let written = Replacement::begin(&at("table")).unwrap();
        let kept = [
            "table.partial",
            ".facetrack-.partial",
            ".facetrack-abc.123.partial",
            ".facetrack-abcdef.part",
            "facetrack-abcdef.partial",
        ];
        kept.iter()
            .for_each(|name| fs::write(at(name), "").unwrap());
        fs::create_dir(at(".facetrack-folder.partial")).unwrap();
        symlink(at("table.partial"), at(".facetrack-a00000.partial")).unwrap();
        let left = at(".facetrack-Ab0000.partial");
        fs::write(&left, "left").unwrap();
        remove_unlocked(folder.path());
        assert!(!left.exists());
        // What is being written, a folder and a link.
        let others = 3;
        let count = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(count, kept.len() + others);
        written.write(b"new").unwrap();
        assert_eq!(fs::read_to_string(at("table")).unwrap(), "new");
    }

    #[test]
    fn the_next_process_removes_what_a_killed_one_has_left() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join(".facetrack-abcdef.partial");
        fs::write(&left, "left").unwrap();
        Replacement::begin(&folder.path().join("table")).unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn a_file_with_the_longest_name_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(255));
        Replacement::begin(&path).unwrap().write(b"new").unwrap();
        assert!(path.exists());
    }

    #[test]
    fn only_regular_files_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink("/dev/null", &link).unwrap();
        for path in [Path::new("/dev/null"), &link, folder.path()] {
            let error = Replacement::begin(path).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file. Name another one");
        }
    }

    #[test]
    fn a_named_file_takes_the_place_of_one_that_a_killed_process_left() {
        let folder = tempfile::tempdir().unwrap();
        let (path, left) = (folder.path().join("a"), folder.path().join("a.new"));
        fs::write(&left, "left").unwrap();
        let replacement = Replacement::named(&path, ".new").unwrap();
        assert_eq!(fs::read_to_string(&left).unwrap(), "");
        replacement.write(b"new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert!(!left.exists());
    }

    #[test]
    fn a_resembling_file_keeps_the_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let replacement = Replacement::begin(&path).unwrap().resembling().unwrap();
        replacement.write(b"new").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }
}
