// SPDX-License-Identifier: MPL-2.0
//! Files that keep the learned state of faces from stream to stream.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf, is_separator};

use super::failure::Failure;
use facetrack::analyzer::Analyzer;
use facetrack::engine::EngineError;
use facetrack_assets::file;
use facetrack_assets::replacement::Replacement;

/// Maximum size of a file, bytes. A calibration of openseeface has less than 100 kB per face.
const MAX_SIZE: u64 = 16 << 20;

/// A kind of state that an analyzer learns.
#[derive(Debug, Clone, Copy)]
pub(super) struct LearnedState {
    /// Property with the path of the file.
    property: &'static str,
    /// Prepares an analyzer that uses a file.
    begin: fn(&mut Analyzer) -> Result<(), Failure>,
    /// Restores the content of a file.
    restore: fn(&mut Analyzer, &str) -> Result<(), EngineError>,
    /// The content to store; `None` if there is none yet.
    content: fn(&Analyzer) -> Option<String>,
}

/// The calibration of the engine.
pub(super) const CALIBRATION: LearnedState = LearnedState {
    property: "calibration-file",
    begin: |analyzer| match analyzer.engine.completer.calibration() {
        Some(_) => Ok(()),
        None => Err(Failure::NoCalibration(analyzer.engine.info.name)),
    },
    restore: |analyzer, text| analyzer.engine.completer.set_calibration(text),
    content: |analyzer| analyzer.engine.completer.calibration(),
};

/// The rest values of blendshapes.
pub(super) const NEUTRAL: LearnedState = LearnedState {
    property: "neutral-file",
    begin: |analyzer| {
        if analyzer.engine.info.blendshapes.is_empty() {
            return Err(Failure::NoBlendshapes(analyzer.engine.info.name));
        }
        analyzer.neutral.share();
        Ok(())
    },
    restore: |analyzer, text| analyzer.neutral.set_common(text),
    content: |analyzer| analyzer.neutral.common(),
};

/// A file and its content.
pub(super) struct StateFile {
    learned: LearnedState,
    path: PathBuf,
    /// Content of the file; `None` if there is no file yet.
    content: Option<String>,
}

impl StateFile {
    /// Restores what `analyzer` learned from the file at `path`, if it exists, and checks that the
    /// file can be written at the end of the stream.
    ///
    /// # Errors
    /// Returns [`Failure`].
    pub(super) fn open(
        learned: LearnedState,
        path: &Path,
        analyzer: &mut Analyzer,
    ) -> Result<Self, Failure> {
        (learned.begin)(analyzer)?;
        if !can_be_a_file(path) {
            return Err(Failure::NoFile(learned.property, path.to_owned()));
        }
        // Symbolic links are kept, and their targets are written.
        let mut file = Self {
            learned,
            path: file::target(path),
            content: None,
        };
        if let Some(content) = file.read()? {
            file.restore(analyzer, &content)?;
        }
        WriteMode::of(&file.path).map_err(|error| file.fail(Failure::Write, error))?;
        Ok(file)
    }

    /// Writes what `analyzer` learned if it differs from the content of the file. The file keeps
    /// its mode and its owner. It is complete at any time, except if this process may not set this
    /// owner: then the file is overwritten.
    ///
    /// # Errors
    /// Returns [`Failure::Write`].
    pub(super) fn save(&mut self, analyzer: &Analyzer) -> Result<(), Failure> {
        let Some(content) = (self.learned.content)(analyzer) else {
            return Ok(());
        };
        if self.content.as_ref() == Some(&content) {
            return Ok(());
        }
        WriteMode::of(&self.path)
            .and_then(|mode| mode.write(&content))
            .map_err(|error| self.fail(Failure::Write, error))?;
        self.content = Some(content);
        Ok(())
    }

    /// The content of the file; `None` if there is no file.
    fn read(&self) -> Result<Option<String>, Failure> {
        match file::read(&self.path, MAX_SIZE) {
            Ok(bytes) => String::from_utf8(bytes)
                .map(Some)
                .map_err(|_| self.fail(Failure::Damaged, "it is not UTF-8".to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == ErrorKind::FileTooLarge => {
                Err(self.fail(Failure::Damaged, error.to_string()))
            }
            Err(error) => Err(self.fail(Failure::Read, error)),
        }
    }

    fn restore(&mut self, analyzer: &mut Analyzer, content: &str) -> Result<(), Failure> {
        let restored = (self.learned.restore)(analyzer, content);
        restored.map_err(|error| match error {
            EngineError::Config { reason, .. } => self.fail(Failure::Damaged, reason),
            other => self.fail(Failure::Damaged, other.to_string()),
        })?;
        self.content = (self.learned.content)(analyzer);
        Ok(())
    }

    /// Returns the failure `kind` of this file with the reason `why`.
    fn fail<W>(&self, kind: fn(&'static str, PathBuf, W) -> Failure, why: W) -> Failure {
        kind(self.learned.property, self.path.clone(), why)
    }
}

/// Returns true if the path can name a file: `faces/` and `faces/..` name folders.
fn can_be_a_file(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let last = text.rsplit(is_separator).next().unwrap_or_default();
    !matches!(last, "" | "." | "..")
}

/// Method of writing new content.
enum WriteMode {
    /// A new file that replaces the old one.
    Replace(Replacement),
    /// The old file.
    InPlace(File),
}

impl WriteMode {
    /// Opens it for the file at `path`.
    fn of(path: &Path) -> io::Result<Self> {
        let new = Replacement::begin(path).and_then(Replacement::resembling);
        new.map(Self::Replace).or_else(|error| {
            // There is no old file that could be overwritten.
            if !path.exists() {
                return Err(error);
            }
            File::options().write(true).open(path).map(Self::InPlace)
        })
    }

    fn write(self, text: &str) -> io::Result<()> {
        match self {
            Self::Replace(new) => new.write(text.as_bytes()),
            Self::InPlace(mut old) => {
                old.write_all(text.as_bytes())?;
                old.set_len(text.len() as u64)?;
                old.sync_all()
            }
        }
    }
}
