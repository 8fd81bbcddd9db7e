// SPDX-License-Identifier: MPL-2.0
//! Checks libraries before they are loaded: other users must not be able to replace them.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Error for a library that every user of the machine can replace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{library} is not loaded, because every user can write {writable}", library = library.display(), writable = writable.display())]
pub struct Replaceable {
    /// The library.
    pub library: PathBuf,
    /// The library itself, or a folder above it.
    pub writable: PathBuf,
}

/// Checks a library, the target if it is a link, and the folders above both. A bare name, which the
/// dynamic loader searches for, is not checked. Nothing is checked on systems without the
/// permissions of Unix.
///
/// # Errors
/// Returns [`Replaceable`].
pub fn check(library: &Path) -> Result<(), Replaceable> {
    if is_bare(library) {
        return Ok(());
    }
    let places = [std::path::absolute(library), library.canonicalize()];
    let places = places.into_iter().flatten().collect::<Vec<_>>();
    let mut above = places.iter().flat_map(|place| place.ancestors());
    let writable = above.find(|path| is_writable_by_all(path));
    writable.map_or(Ok(()), |writable| {
        Err(Replaceable {
            library: library.to_owned(),
            writable: writable.to_owned(),
        })
    })
}

/// Returns true if the loader searches for the library by its name.
pub fn is_bare(library: &Path) -> bool {
    library.parent() == Some(Path::new(""))
}

/// Returns true if every user can write the file, or replace files of others in the folder.
#[cfg(unix)]
fn is_writable_by_all(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS_WRITE: u32 = 0o002;
    // As in /tmp: only the owner of a file can replace it.
    const STICKY: u32 = 0o1000;
    path.metadata().is_ok_and(|found| {
        let mode = found.permissions().mode();
        mode & OTHERS_WRITE != 0 && !(found.is_dir() && mode & STICKY != 0)
    })
}

#[cfg(not(unix))]
fn is_writable_by_all(_path: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn change_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn writable(library: &Path) -> Option<PathBuf> {
        check(library).err().map(|error| error.writable)
    }

    #[test]
    fn a_library_that_others_can_replace_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let (above, folder) = (root.path().join("above"), root.path().join("above/lib"));
        fs::create_dir_all(&folder).unwrap();
        let library = folder.join("library.so");
        fs::write(&library, "").unwrap();
        assert_eq!(writable(&library), None, "/tmp is sticky");
        for (path, mode, normal) in [
            (&library, 0o666, 0o644),
            (&folder, 0o777, 0o755),
            (&above, 0o777, 0o755),
        ] {
            change_mode(path, mode);
            assert_eq!(writable(&library).as_ref(), Some(path));
            change_mode(path, normal);
            assert_eq!(writable(&library), None);
        }
        change_mode(&folder, 0o1777);
        assert_eq!(writable(&library), None);
    }

    #[test]
    fn links_and_what_they_lead_to_are_checked() {
        let root = tempfile::tempdir().unwrap();
        let [safe, open] = ["safe", "open"].map(|name| root.path().join(name));
        for folder in [&safe, &open] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("library.so"), "").unwrap();
        }
        symlink(safe.join("library.so"), open.join("link.so")).unwrap();
        symlink(open.join("library.so"), safe.join("link.so")).unwrap();
        change_mode(&open, 0o777);
        for link in [safe.join("link.so"), open.join("link.so")] {
            let error = check(&link).unwrap_err();
            assert_eq!(error.writable.file_name(), open.file_name(), "{error}");
        }
    }

    #[test]
    fn a_name_for_the_loader_is_not_a_path() {
        assert_eq!(check(Path::new("libonnxruntime.so.1")), Ok(()));
        assert_eq!(check(Path::new("/no/such/library.so")), Ok(()));
    }
}
