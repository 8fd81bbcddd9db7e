// SPDX-License-Identifier: MPL-2.0
//! The file that keeps what the engine learns of faces from stream to stream.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf, is_separator};

use tempfile::NamedTempFile;
use thiserror::Error;

use facetrack::analyzer::Analyzer;

/// The file, and what is in it.
pub(super) struct CalibrationFile {
    path: PathBuf,
    /// `None` without a file.
    content: Option<String>,
}

/// Why nothing can be kept there. The message names the file and the remedy.
#[derive(Debug, Error)]
pub(super) enum CalibrationError {
    /// There is nothing to keep.
    #[error(
        "the engine {0} learns nothing that `calibration-file` could keep: unset it, or set another engine"
    )]
    Useless(&'static str),
    /// No file can have that name.
    #[error("`calibration-file` {0:?} names no file: set the path of one, or unset it")]
    NoFile(PathBuf),
    /// The system refuses to read the file.
    #[error("`calibration-file` {path} can't be read: {source}. Allow reading it, or set another file", path = path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else is in the file.
    #[error("`calibration-file` {path} is damaged: {reason}. Remove it to learn anew, or set another file", path = path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The system refuses to write the file.
    #[error("`calibration-file` {path} can't be written: {source}. Allow writing to its folder and make room there, or set another file", path = path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl CalibrationFile {
    /// Hands what is in the file at `path` to `analyzer`, and makes sure that it can be written at the stream's end.
    /// There may be no file yet.
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
        // A link stays one, and what it leads to is written.
        let path = &fs::canonicalize(path).unwrap_or(path.to_owned());
        let mut content = read(path)?;
        if let Some(calibration) = &content {
            analyzer
                .set_calibration(calibration)
                .map_err(|error| CalibrationError::Damaged {
                    path: path.to_owned(),
                    reason: error.to_string(),
                })?;
            content = analyzer.calibration();
        }
        let path = path.to_owned();
        match beside(&path) {
            Ok(_) => Ok(Self { path, content }),
            Err(source) => Err(CalibrationError::Write { path, source }),
        }
    }

    /// Puts `calibration` in the file's place, unless it is in there already. The file is whole at any time.
    ///
    /// # Errors
    /// [`CalibrationError::Write`].
    pub fn save(&mut self, calibration: String) -> Result<(), CalibrationError> {
        if self.content.as_ref() == Some(&calibration) {
            return Ok(());
        }
        write(&self.path, &calibration).map_err(|source| CalibrationError::Write {
            path: self.path.clone(),
            source,
        })?;
        self.content = Some(calibration);
        Ok(())
    }
}

/// Whether a file may have that name, there or not: `faces/` and `faces/..` are folders.
fn can_be_a_file(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let last = text.rsplit(is_separator).next().unwrap_or_default();
    !matches!(last, "" | "." | "..")
}

/// What is in the file at `path`; `None` without a file.
fn read(path: &Path) -> Result<Option<String>, CalibrationError> {
    match fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(CalibrationError::Damaged {
                path: path.to_owned(),
                reason: "it is not UTF-8".to_owned(),
            }),
        },
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
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

/// An empty file in the folder of `path`, which goes away unless it takes a name.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".facetrack-calibration-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any new file; the process's umask takes away what it takes away.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder.unwrap_or(Path::new(".")))
}
