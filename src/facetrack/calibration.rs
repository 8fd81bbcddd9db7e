// SPDX-License-Identifier: MPL-2.0
//! The calibration file, which keeps the calibration of an engine from stream to stream.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf, is_separator};

use tempfile::NamedTempFile;

use super::failure::Failure;
use facetrack::analyzer::Analyzer;
use facetrack::engine::EngineError;
use facetrack::file;

/// Maximum size of a calibration, bytes. One of openseeface has less than 100 kB per face.
const MAX_SIZE: u64 = 16 << 20;

/// The file and its content.
pub(super) struct CalibrationFile {
    path: PathBuf,
    /// `None` if there is no file yet.
    content: Option<String>,
}

impl CalibrationFile {
    /// Restores the calibration of `analyzer` from the file at `path`, if it exists, and checks
    /// that the file can be written at the end of the stream.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn open(path: &Path, analyzer: &mut Analyzer) -> Result<Self, Failure> {
        if analyzer.calibration().is_none() {
            return Err(Failure::NoCalibration(analyzer.info().name));
        }
        if !can_be_a_file(path) {
            return Err(Failure::NoFile(path.to_owned()));
        }
        // Symbolic links are kept, and their targets are written.
        let path = &fs::canonicalize(path).unwrap_or(path.to_owned());
        let mut content = read(path)?;
        if let Some(calibration) = &content {
            let restored = analyzer.set_calibration(calibration);
            restored.map_err(|error| match error {
                EngineError::Config { reason, .. } => damaged(path, reason),
                other => damaged(path, other.to_string()),
            })?;
            content = analyzer.calibration();
        }
        let path = path.to_owned();
        match Place::of(&path) {
            Ok(_) => Ok(Self { path, content }),
            Err(error) => Err(Failure::Write(path, error)),
        }
    }

    /// Replaces the content of the file by `calibration` if they differ. The file keeps its mode
    /// and its owner. It is complete at any time, except if this process may not set this owner:
    /// then the file is overwritten.
    ///
    /// # Errors
    /// [`Failure::Write`].
    pub fn save(&mut self, calibration: String) -> Result<(), Failure> {
        if self.content.as_ref() == Some(&calibration) {
            return Ok(());
        }
        Place::of(&self.path)
            .and_then(|place| place.write(&self.path, &calibration))
            .map_err(|error| Failure::Write(self.path.clone(), error))?;
        self.content = Some(calibration);
        Ok(())
    }
}

/// Whether the path can name a file: `faces/` and `faces/..` name folders.
fn can_be_a_file(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let last = text.rsplit(is_separator).next().unwrap_or_default();
    !matches!(last, "" | "." | "..")
}

/// The content of the file at `path`; `None` if there is no file.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    match file::read(path, MAX_SIZE) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| damaged(path, "it is not UTF-8".to_owned())),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Ok(None),
            ErrorKind::FileTooLarge => Err(damaged(path, error.to_string())),
            _ => Err(Failure::Read(path.to_owned(), error)),
        },
    }
}

fn damaged(path: &Path, reason: String) -> Failure {
    Failure::Damaged(path.to_owned(), reason)
}

/// Where new content is written.
enum Place {
    /// A file that takes the place of the old one.
    Beside(NamedTempFile),
    /// The old file.
    Within(File),
}

impl Place {
    /// Opens it for the file at `path`.
    fn of(path: &Path) -> io::Result<Self> {
        let Ok(old) = fs::metadata(path) else {
            return beside(path).map(Self::Beside);
        };
        match beside(path).and_then(|new| resemble(new, &old)) {
            Ok(new) => Ok(Self::Beside(new)),
            Err(_) => File::options().write(true).open(path).map(Self::Within),
        }
    }

    fn write(self, path: &Path, text: &str) -> io::Result<()> {
        match self {
            Self::Beside(mut new) => {
                new.write_all(text.as_bytes())?;
                new.as_file().sync_all()?;
                new.persist(path)?;
            }
            Self::Within(mut old) => {
                old.write_all(text.as_bytes())?;
                old.set_len(text.len() as u64)?;
                old.sync_all()?;
            }
        }
        Ok(())
    }
}

/// Gives `new` the owner and the mode of `old`.
fn resemble(new: NamedTempFile, old: &Metadata) -> io::Result<NamedTempFile> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let own = new.as_file().metadata()?;
        if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
            fchown(new.as_file(), Some(old.uid()), Some(old.gid()))?;
        }
    }
    // After the owner, since a change of the owner can change the mode.
    new.as_file().set_permissions(old.permissions())?;
    Ok(new)
}

/// A temporary file in the folder of `path`.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".facetrack-calibration-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The mode of new files; the umask of the process applies.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder.unwrap_or(Path::new(".")))
}
