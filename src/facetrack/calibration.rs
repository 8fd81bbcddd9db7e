// SPDX-License-Identifier: MPL-2.0
//! The calibration file, which keeps the calibration of an engine from stream to stream.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf, is_separator};

use tempfile::NamedTempFile;
use thiserror::Error;

use facetrack::analyzer::Analyzer;
use facetrack::engine::EngineError;

/// The file and its content.
pub(super) struct CalibrationFile {
    path: PathBuf,
    /// `None` if there is no file yet.
    content: Option<String>,
}

/// Error of a calibration file. The message names the file and the remedy.
#[derive(Debug, Error)]
pub(super) enum CalibrationError {
    /// The engine has no calibration.
    #[error("the engine {0} has no calibration. Unset `calibration-file`, or set another engine")]
    Useless(&'static str),
    /// The path does not name a file.
    #[error(
        "`calibration-file` {0:?} is not the path of a file. Set the path of a file, or unset it"
    )]
    NoFile(PathBuf),
    /// The file cannot be read.
    #[error("`calibration-file` {path} cannot be read: {source}. Make it readable, or set another file", path = path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The content is invalid.
    #[error("`calibration-file` {path} is damaged: {reason}. Delete it to start a new calibration, or set another file", path = path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The file cannot be written.
    #[error("`calibration-file` {path} cannot be written: {source}. Make its folder writable and free disk space, or set another file", path = path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
}

impl CalibrationFile {
    /// Restores the calibration of `analyzer` from the file at `path`, if it exists, and checks
    /// that the file can be written at the end of the stream.
    ///
    /// # Errors
    /// [`CalibrationError`].
    pub fn open(path: &Path, analyzer: &mut Analyzer) -> Result<Self, CalibrationError> {
        if analyzer.calibration().is_none() {
            return Err(CalibrationError::Useless(analyzer.info().name));
        }
        if !can_be_a_file(path) {
            return Err(CalibrationError::NoFile(path.to_owned()));
        }
        // Symbolic links are kept, and their targets are written.
        let path = &fs::canonicalize(path).unwrap_or(path.to_owned());
        let mut content = read(path)?;
        if let Some(calibration) = &content {
            analyzer
                .set_calibration(calibration)
                .map_err(|error| CalibrationError::Damaged {
                    path: path.to_owned(),
                    reason: match error {
                        EngineError::Config { reason, .. } => reason,
                        other => other.to_string(),
                    },
                })?;
            content = analyzer.calibration();
        }
        let path = path.to_owned();
        match beside(&path) {
            Ok(_) => Ok(Self { path, content }),
            Err(source) => Err(CalibrationError::Write { path, source }),
        }
    }

    /// Replaces the content of the file by `calibration` if they differ. The file is complete at
    /// any time.
    ///
    /// # Errors
    /// [`CalibrationError::Write`].
    pub fn save(&mut self, calibration: String) -> Result<(), CalibrationError> {
        if self.content.as_ref() == Some(&calibration) {
            return Ok(());
        }
        let path = self.path.clone();
        write(&path, &calibration).map_err(|source| CalibrationError::Write { path, source })?;
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
fn read(path: &Path) -> Result<Option<String>, CalibrationError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(CalibrationError::Damaged {
                path: path.to_owned(),
                reason: "it is not UTF-8".to_owned(),
            })
        }
        Err(source) => Err(CalibrationError::Read {
            path: path.to_owned(),
            source,
        }),
    }
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
