// SPDX-License-Identifier: MPL-2.0
//! Reads model files.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{ModelError, ModelFile, format_error};
use crate::memory;
use facetrack_assets::locate::NotFound;
use facetrack_assets::{file, manifest};

/// Maximum size of a model file, or of a part of one, in bytes: MediaPipe's bundle has 3.7 MB.
pub const MAX_SIZE: u64 = 64 << 20;

/// Memory that loading a model takes, relative to its file: its weights are read, converted and
/// arranged for vectors.
const LOADING: usize = 6;

/// Reads the model at `path`, which is to be of `format`.
///
/// # Errors
/// Returns [`ModelError::Missing`] or [`ModelError::Read`] when it can't be read,
/// [`ModelError::Hash`] for a file with a name of the manifest and other bytes,
/// [`ModelError::Format`] for one of more than [`MAX_SIZE`] bytes, [`ModelError::Memory`] if there
/// is too little memory to load it.
pub fn read(path: &Path, format: &'static str) -> Result<(Vec<u8>, ModelFile), ModelError> {
    read_up_to(MAX_SIZE, path, format)
}

/// Reads a file like [`read`], but with at most `most` bytes.
///
/// # Errors
/// Returns the errors of [`read`].
pub fn read_up_to(
    most: u64,
    path: &Path,
    format: &'static str,
) -> Result<(Vec<u8>, ModelFile), ModelError> {
    let bytes = bytes_of(path, format, most)?;
    let purpose = format_args!("loading {}", path.display());
    memory::check(LOADING * bytes.len(), purpose)?;
    let file = ModelFile::of(path, &bytes);
    check_hash(path, &file)?;
    Ok((bytes, file))
}

/// The content of the file at `path`, with at most `most` bytes. Its hash is not checked.
///
/// # Errors
/// Returns the errors of [`read`] except [`ModelError::Hash`].
pub fn bytes_of(path: &Path, format: &'static str, most: u64) -> Result<Vec<u8>, ModelError> {
    file::read(path, most).map_err(|source| match source.kind() {
        ErrorKind::NotFound => NotFound::file(path).into(),
        ErrorKind::FileTooLarge => format_error(path, format, source.to_string()),
        _ => ModelError::Read {
            path: path.to_path_buf(),
            source,
        },
    })
}

impl ModelFile {
    /// The file at `path` with the content `bytes`.
    pub fn of(path: &Path, bytes: &[u8]) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Self {
            name: PathBuf::from(name).display().to_string(),
            sha256: file::sha256(bytes),
        }
    }
}

/// Checks that a file with a name of the manifest has the hash of the manifest.
fn check_hash(path: &Path, file: &ModelFile) -> Result<(), ModelError> {
    let known = manifest::known(&file.name);
    let Some(known) = known.filter(|known| *known.sha256 != *file.sha256) else {
        return Ok(());
    };
    Err(ModelError::Hash {
        path: path.to_owned(),
        expected: known.sha256.to_string(),
        actual: file.sha256.clone(),
    })
}
