// SPDX-License-Identifier: MPL-2.0
//! Destination of a record.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gst::glib::value::ToValue;

use super::error::OutputError;
use super::partial::{self, RecordFile};
use super::pipe::PipeWriter;
use crate::options::{self, Format, JsonSinkSettings};

/// Destination of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Destination {
    /// Standard output.
    Stdout,
    /// A pipe or device.
    Special(PathBuf),
    /// A file that has its final name from the start.
    Direct(PathBuf),
    /// A file that gets its final name when it is whole.
    Renamed(PathBuf),
}

/// The open destination of a record.
pub(super) enum Output {
    File(RecordFile),
    Pipe(PipeWriter),
}

impl Destination {
    /// The destination that `location` and `format` describe.
    ///
    /// # Errors
    /// Returns an error if the format can't be written there.
    pub(super) fn new(location: Option<&str>, format: Format) -> Result<Self, OutputError> {
        let path = match location {
            None | Some("" | "-") if format == Format::Reduced => {
                return Err(OutputError::NeedsFile(options::display(&format.to_value())));
            }
            None | Some("" | "-") => return Ok(Self::Stdout),
            Some(path) => PathBuf::from(path),
        };
        let found = fs::metadata(&path);
        let is_special = found.is_ok_and(|found| !found.is_file() && !found.is_dir());
        match (format, is_special) {
            (Format::Jsonl, true) => Ok(Self::Special(path)),
            (Format::Jsonl, false) => Ok(Self::Direct(path)),
            (_, true) => Err(OutputError::NotRegular(
                path,
                options::display(&format.to_value()),
            )),
            (_, false) => Ok(Self::Renamed(path)),
        }
    }

    /// The place in words.
    pub(super) fn name(&self) -> PathBuf {
        match self {
            Self::Stdout => PathBuf::from("standard output"),
            Self::Special(path) | Self::Direct(path) | Self::Renamed(path) => path.clone(),
        }
    }

    /// Returns the path of a record that is being written.
    pub(super) fn partial(&self) -> PathBuf {
        match self {
            Self::Renamed(path) => partial::partial(path),
            other => other.name(),
        }
    }

    /// Refuses a folder, and a file that may not be replaced.
    ///
    /// # Errors
    /// Returns [`OutputError::Exists`], [`OutputError::Folder`].
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

    /// Opens it. Writes to pipes and devices wait until `unlocked` is set.
    ///
    /// # Errors
    /// Returns [`OutputError::Create`], [`OutputError::Busy`], [`OutputError::Special`],
    /// [`OutputError::Exists`].
    pub(super) fn open(
        &self,
        settings: &JsonSinkSettings,
        unlocked: Arc<AtomicBool>,
    ) -> Result<Output, OutputError> {
        let special = match self {
            Self::Renamed(path) => return RecordFile::partial(path).map(Output::File),
            Self::Direct(path) => {
                return RecordFile::direct(path, settings.overwrite).map(Output::File);
            }
            Self::Special(path) => PipeWriter::open(path, unlocked),
            Self::Stdout => PipeWriter::stdout(unlocked),
        };
        special
            .map(Output::Pipe)
            .map_err(|error| OutputError::Create(self.name(), error))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

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
            Ok(Destination::Special("/dev/null".into()))
        );
        assert!(of(Some("/dev/null"), Dense).is_err_and(|e| e.contains("format=jsonl")));
    }
}
