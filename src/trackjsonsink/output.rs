// SPDX-License-Identifier: MPL-2.0
//! Where a record goes, and how its file comes to be.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::options::{self, Format, JsonSinkSettings};
use facetrack::record::ProfileError;

/// Suffix of the name of an unfinished file.
const PARTIAL_SUFFIX: &str = ".partial";

/// Where a record goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    /// Standard output.
    Stdout,
    /// A file, pipe or device that is written as it is.
    Direct(PathBuf),
    /// A file that takes its name when it is whole.
    Renamed(PathBuf),
}

/// Why a record can't be written. The message names the path and the remedy.
#[derive(Debug, Error)]
pub(super) enum OutputError {
    /// The blendshapes to write are unknown.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// There is a file of that name.
    #[error("{path} already exists. Set overwrite=true or another location, or delete the file", path = .0.display())]
    Exists(PathBuf),
    /// A folder has that name.
    #[error("location {path} is a folder. Set it to the path of a file", path = .0.display())]
    Folder(PathBuf),
    /// The format needs a file that can be changed afterwards.
    #[error("location {path} is not a regular file, but format={1} needs one. Set format=jsonl", path = .0.display())]
    NotRegular(PathBuf, String),
    /// The format needs a file.
    #[error("format={0} needs a file. Set location, or format=jsonl for standard output")]
    NeedsFile(String),
    /// Another process writes there.
    #[error("another pipeline is writing {path}. Set another location, or wait until it ends", path = .0.display())]
    Busy(PathBuf),
    /// The system refuses the file.
    #[error("{path} cannot be created: {1}. {hint}", path = .0.display(), hint = remedy(.1))]
    Create(PathBuf, #[source] io::Error),
    /// The system refuses a write.
    #[error("writing to {path} failed: {1}. {hint}. Everything written before is kept", path = .0.display(), hint = remedy(.1))]
    Write(PathBuf, #[source] io::Error),
    /// The pipeline wants the streaming thread back.
    #[error("the pipeline interrupts the record")]
    Interrupted,
    /// The whole file can't change the first name to the second.
    #[error("{partial} is complete but cannot be renamed to {path}: {2}. {hint}", partial = .0.display(), path = .1.display(), hint = remedy(.2))]
    Rename(PathBuf, PathBuf, #[source] io::Error),
    /// The folder of the first path is gone at the end; the file is at the second.
    #[error("the folder of {path} was removed; the record is kept as {rescued}", path = .0.display(), rescued = .1.display())]
    Vanished(PathBuf, PathBuf),
}

/// The remedy for the user.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "Create its folder, or set another location",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Make its folder writable, or set another location"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "Free disk space, or set another location"
        }
        io::ErrorKind::BrokenPipe => "The reader has closed the pipe",
        _ => "Set another location",
    }
}

impl Destination {
    /// The destination that `location` and `format` describe.
    ///
    /// # Errors
    /// When the format can't be written there.
    pub(super) fn new(location: Option<&str>, format: Format) -> Result<Self, OutputError> {
        let path = match location {
            None | Some("" | "-") if format == Format::Reduced => {
                return Err(OutputError::NeedsFile(options::word(format)));
            }
            None | Some("" | "-") => return Ok(Self::Stdout),
            Some(path) => PathBuf::from(path),
        };
        if format == Format::Jsonl {
            return Ok(Self::Direct(path));
        }
        match fs::metadata(&path) {
            Ok(found) if !found.is_file() && !found.is_dir() => {
                Err(OutputError::NotRegular(path, options::word(format)))
            }
            _ => Ok(Self::Renamed(path)),
        }
    }

    /// The place in words.
    pub(super) fn name(&self) -> PathBuf {
        match self {
            Self::Stdout => PathBuf::from("standard output"),
            Self::Direct(path) | Self::Renamed(path) => path.clone(),
        }
    }

    /// Where a record under way is.
    pub(super) fn partial(&self) -> PathBuf {
        match self {
            Self::Renamed(path) => {
                let mut name = OsString::from(path);
                name.push(PARTIAL_SUFFIX);
                PathBuf::from(name)
            }
            other => other.name(),
        }
    }

    /// Refuses a folder, and a file that may not be replaced.
    ///
    /// # Errors
    /// [`OutputError::Exists`], [`OutputError::Folder`].
    pub(super) fn check(&self, settings: &JsonSinkSettings) -> Result<(), OutputError> {
        let (Self::Direct(path) | Self::Renamed(path)) = self else {
            return Ok(());
        };
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Err(OutputError::Folder(path.clone())),
            Ok(found) if found.is_file() && !settings.overwrite => {
                Err(OutputError::Exists(path.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Creates the file, or opens the pipe or device; `None` for standard output.
    ///
    /// # Errors
    /// [`OutputError::Create`], [`OutputError::Busy`].
    pub(super) fn open(&self) -> Result<Option<File>, OutputError> {
        if *self == Self::Stdout {
            return Ok(None);
        }
        let path = self.partial();
        let regular = fs::metadata(&path).map_or(true, |found| found.is_file());
        let file = File::options()
            .read(regular)
            .write(true)
            .create(regular)
            .truncate(false)
            .open(&path)
            .map_err(|error| OutputError::Create(path.clone(), error))?;
        if regular {
            take_over(&file, &path)?;
        }
        Ok(Some(file))
    }

    /// Gives a whole file its name.
    ///
    /// # Errors
    /// [`OutputError::Exists`] when there is such a file by now, [`OutputError::Rename`],
    /// [`OutputError::Vanished`].
    pub(super) fn finish(
        &self,
        file: Option<&mut File>,
        settings: &JsonSinkSettings,
    ) -> Result<(), OutputError> {
        let (Self::Renamed(path), Some(file)) = (self, file) else {
            return Ok(());
        };
        let partial = self.partial();
        if !partial.exists()
            && let Ok(rescued) = rescue(file, path)
        {
            return Err(OutputError::Vanished(path.clone(), rescued));
        }
        self.check(settings)?;
        fs::rename(&partial, path)
            .map_err(|error| OutputError::Rename(partial, path.clone(), error))
    }

    /// Removes a file under way that holds nothing; pipes and devices stay.
    pub(super) fn discard(&self) {
        let path = self.partial();
        if *self != Self::Stdout && path.is_file() {
            // It was to go away: nothing is lost where it does not.
            let _ = fs::remove_file(path);
        }
    }
}

/// Empties a file, unless another process is writing it.
fn take_over(file: &File, path: &Path) -> Result<(), OutputError> {
    // File systems without locks return another error; then another writer cannot be detected.
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return Err(OutputError::Busy(path.to_owned()));
    }
    file.set_len(0)
        .map_err(|error| OutputError::Create(path.to_owned(), error))
}

/// Copies a file that has lost its folder to the folder for temporary files.
fn rescue(file: &mut File, path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let rescued = std::env::temp_dir().join(name);
    let mut copy = File::create_new(&rescued)?;
    io::Seek::rewind(file)?;
    io::copy(file, &mut copy)?;
    Ok(rescued)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations() {
        use Format::*;
        let of = |location, format| Destination::new(location, format).map_err(|e| e.to_string());
        for location in [None, Some(""), Some("-")] {
            assert_eq!(of(location, Dense), Ok(Destination::Stdout));
            assert_eq!(of(location, Jsonl), Ok(Destination::Stdout));
            assert!(of(location, Reduced).is_err_and(|e| e.contains("format=jsonl")));
        }
        let whole = Destination::Renamed("/a/b.json".into());
        assert_eq!(whole.partial(), Path::new("/a/b.json.partial"));
        assert_eq!(of(Some("/a/b.json"), Dense), Ok(whole));
        assert_eq!(of(Some("b"), Jsonl), Ok(Destination::Direct("b".into())));
        assert_eq!(
            of(Some("/dev/null"), Jsonl),
            Ok(Destination::Direct("/dev/null".into()))
        );
        assert!(of(Some("/dev/null"), Dense).is_err_and(|e| e.contains("format=jsonl")));
    }

    #[test]
    fn two_writers_do_not_share_a_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.json");
        let destination = Destination::Renamed(path);
        let first = destination.open().expect("free");
        let error = destination.open().expect_err("taken").to_string();
        assert!(error.contains("another pipeline"), "{error}");
        drop(first);
        destination.open().expect("free again");
    }
}
