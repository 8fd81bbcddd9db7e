// SPDX-License-Identifier: MPL-2.0
//! The calibration file, which keeps the calibration of an engine from stream to stream.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf, is_separator};

use tempfile::NamedTempFile;

use super::failure::Failure;
use facetrack::analyzer::Analyzer;
use facetrack::engine::EngineError;

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
        match beside(&path) {
            Ok(_) => Ok(Self { path, content }),
            Err(error) => Err(Failure::Write(path, error)),
        }
    }

    /// Replaces the content of the file by `calibration` if they differ. The file is complete at
    /// any time.
    ///
    /// # Errors
    /// [`Failure::Write`].
    pub fn save(&mut self, calibration: String) -> Result<(), Failure> {
        if self.content.as_ref() == Some(&calibration) {
            return Ok(());
        }
        write(&self.path, &calibration)
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
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => Ok(None),
            io::ErrorKind::InvalidData => Err(damaged(path, "it is not UTF-8".to_owned())),
            _ => Err(Failure::Read(path.to_owned(), error)),
        },
    }
}

fn damaged(path: &Path, reason: String) -> Failure {
    Failure::Damaged(path.to_owned(), reason)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = beside(path)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
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
