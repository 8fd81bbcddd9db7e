// SPDX-License-Identifier: MPL-2.0
//! Reads model files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{ModelError, ModelFile, format_error};
use crate::manifest;

/// Maximum size of a model file, or of a part of one, in bytes: MediaPipe's bundle has 3.7 MB.
pub const MAX_SIZE: u64 = 64 << 20;

/// Reads the model at `path`, which is to be of `format`.
///
/// # Errors
/// [`ModelError::Missing`] or [`ModelError::Read`] when it can't be read, [`ModelError::Hash`] for
/// a file with a name of the manifest and other bytes, [`ModelError::Format`] for one of more than
/// [`MAX_SIZE`] bytes.
pub fn read(path: &Path, format: &'static str) -> Result<(Vec<u8>, ModelFile), ModelError> {
    read_up_to(MAX_SIZE, path, format)
}

/// As [`read`], for a file of at most `most` bytes.
///
/// # Errors
/// Those of [`read`].
pub fn read_up_to(
    most: u64,
    path: &Path,
    format: &'static str,
) -> Result<(Vec<u8>, ModelFile), ModelError> {
    let bytes = bytes_of(path, format, most)?;
    let file = ModelFile::of(path, &bytes);
    check_hash(path, &file)?;
    Ok((bytes, file))
}

/// The content of the file at `path`, with at most `most` bytes. Its hash is not checked.
///
/// # Errors
/// Those of [`read`] but [`ModelError::Hash`].
pub fn bytes_of(path: &Path, format: &'static str, most: u64) -> Result<Vec<u8>, ModelError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => ModelError::Missing {
            path: path.to_path_buf(),
            looked: path.parent().unwrap_or(path).display().to_string(),
        },
        _ => ModelError::Read {
            path: path.to_path_buf(),
            source,
        },
    };
    // Checked before opening, since opening a pipe waits for a writer.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let mut content = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(most + 1)
        .read_to_end(&mut content)
        .map_err(failed)?;
    if content.len() as u64 > most {
        let reason = format!("it is larger than {most} bytes");
        return Err(format_error(path, format, reason));
    }
    Ok(content)
}

impl ModelFile {
    /// The file at `path` with the content `bytes`.
    pub fn of(path: &Path, bytes: &[u8]) -> Self {
        let name = path.file_name().unwrap_or(path.as_os_str());
        Self {
            name: PathBuf::from(name).display().to_string(),
            sha256: Sha256::digest(bytes)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
        }
    }
}

/// A file with a name of the manifest has to be the file of the manifest.
fn check_hash(path: &Path, file: &ModelFile) -> Result<(), ModelError> {
    let known = manifest::known(&file.name);
    let Some(known) = known.filter(|known| known.sha256 != file.sha256) else {
        return Ok(());
    };
    Err(ModelError::Hash {
        path: path.to_owned(),
        expected: known.sha256.clone(),
        actual: file.sha256.clone(),
    })
}
