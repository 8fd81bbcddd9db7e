// SPDX-License-Identifier: MPL-2.0
//! The file of a record in progress, `<name>.partial`, and a kept one from an earlier run,
//! `<name>.partial.old`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use facetrack::record::Storage;
use facetrack_assets::file::{
    is_at, remove_if_there, rename_new, sync_folder, target, with_suffix,
};
use facetrack_assets::lock::lock;
use facetrack_assets::lock::try_lock_file;
use facetrack_assets::replacement::Replacement;

use super::CAT;
use super::error::OutputError;

/// Suffix of the name of an unfinished file.
const PARTIAL: &str = ".partial";

/// Suffix of the name of the unfinished file of an earlier run.
const OLD: &str = ".old";

/// Suffix of the name of a file that is about to replace another one.
const NEW: &str = ".new";

/// Maximum number of times that a file is reopened because another pipeline has renamed it
/// meanwhile.
const ATTEMPTS: usize = 10;

/// A regular file that only this pipeline writes. Clones are the same file.
#[derive(Debug, Clone)]
pub(super) struct RecordFile {
    /// The open file, which [`Storage::replace_start`] replaces.
    file: Arc<Mutex<File>>,
    path: PathBuf,
    /// The name for the unfinished file of an earlier run; `None` for a file that has its final
    /// name from the start.
    old: Option<PathBuf>,
    /// True if the next write must empty the file first.
    must_truncate: bool,
}

/// Name of the unfinished file of the record `path`.
pub(super) fn partial(path: &Path) -> PathBuf {
    with_suffix(path, PARTIAL)
}

impl RecordFile {
    /// Opens the unfinished file of the record `path`. One with frames, from an earlier run, is
    /// moved aside first.
    ///
    /// # Errors
    /// Returns [`OutputError::Busy`], [`OutputError::Special`], [`OutputError::Create`].
    pub(super) fn partial(path: &Path) -> Result<Self, OutputError> {
        let path = partial(path);
        let old = with_suffix(&path, OLD);
        let create = |error| OutputError::Create(path.clone(), error);
        for _ in 0..ATTEMPTS {
            let file = open(&path)?;
            if !has_lines(&file).map_err(create)? {
                // A process that was killed has left it.
                remove_if_there(&with_suffix(&path, NEW)).map_err(create)?;
                return Ok(Self::new(file, path, Some(old)));
            }
            set_aside(&path, &old).map_err(create)?;
        }
        Err(OutputError::Busy(path))
    }

    /// Opens the file `path`. Symbolic links are followed. Its content stays until the first write;
    /// it may have content only if `overwrite` is set.
    ///
    /// # Errors
    /// Returns [`OutputError::Exists`], [`OutputError::Busy`], [`OutputError::Create`].
    pub(super) fn direct(path: &Path, overwrite: bool) -> Result<Self, OutputError> {
        let path = target(path);
        let file = open(&path)?;
        let is_new = file.metadata().is_ok_and(|found| found.len() == 0);
        if !is_new && !overwrite {
            return Err(OutputError::Exists(path));
        }
        Ok(Self::new(file, path, None))
    }

    fn new(file: File, path: PathBuf, old: Option<PathBuf>) -> Self {
        Self {
            file: Arc::new(Mutex::new(file)),
            path,
            old,
            must_truncate: true,
        }
    }

    /// Gives the whole file the name `path`, and removes the unfinished file of an earlier run. A
    /// file that has its final name must still be there.
    ///
    /// # Errors
    /// Returns [`OutputError::Exists`] if the file exists by now, unless `overwrite` is set;
    /// [`OutputError::Write`], [`OutputError::Rename`], [`OutputError::Vanished`],
    /// [`OutputError::Sync`].
    pub(super) fn finish(&self, path: &Path, overwrite: bool) -> Result<(), OutputError> {
        let synced = lock(&self.file).sync_all();
        synced.map_err(|error| OutputError::Write(self.path.clone(), error))?;
        self.check_name(path)?;
        if let Some(old) = &self.old {
            self.rename(path, overwrite)?;
            if let Err(error) = remove_if_there(old) {
                gst::warning!(CAT, "{} cannot be removed: {error}", old.display());
            }
        }
        sync_folder(path).map_err(|error| OutputError::Sync(path.to_owned(), error))
    }

    /// Rescues a file that has lost its name.
    fn check_name(&self, path: &Path) -> Result<(), OutputError> {
        if is_at(&lock(&self.file), &self.path).unwrap_or(true) {
            return Ok(());
        }
        match self.rescue(path) {
            Ok(rescued) => Err(OutputError::Vanished(path.to_owned(), rescued)),
            Err(error) => Err(OutputError::Lost(path.to_owned(), error)),
        }
    }

    fn rename(&self, path: &Path, overwrite: bool) -> Result<(), OutputError> {
        let renamed = if overwrite {
            fs::rename(&self.path, path)
        } else {
            rename_new(&self.path, path)
        };
        renamed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OutputError::Exists(path.to_owned()),
            _ => OutputError::Rename(self.path.clone(), path.to_owned(), error),
        })
    }

    /// Copies a file that has lost its name to the folder for temporary files.
    fn rescue(&self, path: &Path) -> io::Result<PathBuf> {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let rescued = std::env::temp_dir().join(name);
        let mut copy = File::create_new(&rescued)?;
        let mut file = lock(&self.file);
        file.rewind()?;
        io::copy(&mut *file, &mut copy)?;
        Ok(rescued)
    }

    /// Removes a file without frames, and puts back the unfinished one of an earlier run. A file
    /// that was not written to stays.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub(super) fn discard(&self) -> io::Result<()> {
        let file = lock(&self.file);
        let is_untouched = self.old.is_none() && file.metadata()?.len() > 0;
        if is_untouched || !is_at(&file, &self.path)? {
            return Ok(());
        }
        match &self.old {
            Some(old) if old.exists() => fs::rename(old, &self.path),
            _ => remove_if_there(&self.path),
        }
    }

    /// Replaces the file with a copy whose first `old` bytes are `new` instead.
    fn replace(&self, file: &mut File, old: u64, new: &[u8]) -> io::Result<File> {
        let replacement = Replacement::named(&self.path, NEW)?;
        let mut copy = replacement.file()?;
        // File systems without locks return an error.
        let _ = copy.try_lock();
        copy.write_all(new)?;
        file.seek(SeekFrom::Start(old))?;
        io::copy(file, &mut copy)?;
        replacement.finish()
    }
}

impl Write for RecordFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut file = lock(&self.file);
        if std::mem::take(&mut self.must_truncate) {
            file.set_len(0)?;
        }
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        lock(&self.file).flush()
    }
}

impl Seek for RecordFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        lock(&self.file).seek(to)
    }
}

impl Storage for RecordFile {
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        lock(&self.file).set_len(len)
    }

    fn replace_start(&mut self, old: u64, new: &[u8]) -> io::Result<()> {
        let mut file = lock(&self.file);
        *file = self.replace(&mut file, old, new)?;
        Ok(())
    }
}

/// Opens and locks a regular file, or creates it.
fn open(path: &Path) -> Result<File, OutputError> {
    try_lock_file(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => OutputError::Special(path.to_owned()),
        io::ErrorKind::WouldBlock => OutputError::Busy(path.to_owned()),
        _ => OutputError::Create(path.to_owned(), error),
    })
}

/// Returns true if anything that may be a frame follows the first line. An empty dense or reduced
/// record closes its list there.
fn has_lines(file: &File) -> io::Result<bool> {
    let mut reader = BufReader::new(file);
    let head = reader.skip_until(b'\n')?;
    let mut next = [0];
    let length = reader.read(&mut next)?;
    Ok(head > 0 && !(length == 0 || next == *b"]"))
}

/// Moves an unfinished file aside. Of two, the longer one is kept.
fn set_aside(path: &Path, old: &Path) -> io::Result<()> {
    let length = fs::metadata(path)?.len();
    if fs::symlink_metadata(old).is_ok_and(|found| found.is_file() && found.len() > length) {
        return remove_if_there(path);
    }
    fs::rename(path, old)
}
