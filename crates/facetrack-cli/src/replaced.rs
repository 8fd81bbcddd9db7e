// SPDX-License-Identifier: MPL-2.0
//! Files of earlier versions, and what ONNX Runtime's telemetry left.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use facetrack::model::telemetry;
use facetrack_assets::file;
use facetrack_assets::manifest::{self, KnownFile, State};

use crate::error::StoreError;
use crate::store::Store;
use crate::{output, places};

/// The folder of ONNX Runtime's telemetry in the user's home.
const TELEMETRY_FOLDER: &str = ".cache/Microsoft/DeveloperTools/.onnxruntime";

/// Number of folders that it makes for that in `.cache`.
const TELEMETRY_FOLDERS: usize = 3;

/// Files of the telemetry in that folder: the identifier of the machine, and a database of SQLite
/// with the files that belong to it.
const TELEMETRY_FILES: [&str; 5] = [
    "deviceid",
    "onnxruntime.db",
    "onnxruntime.db-journal",
    "onnxruntime.db-shm",
    "onnxruntime.db-wal",
];

/// Removes the earlier versions of `file`. If one of them had telemetry, removes the data of it.
///
/// # Errors
/// Returns an error if a file cannot be read or removed.
pub(crate) fn remove(store: &Store, file: &KnownFile) -> Result<(), StoreError> {
    for earlier in &file.replaces {
        let path = store.place(file).with_file_name(&*earlier.name);
        // It is another file, or there is none.
        let state = manifest::compare(&path, earlier.size, &earlier.sha256);
        if !matches!(state, Ok(State::Right)) {
            continue;
        }
        let had_telemetry = telemetry::is_in(&path).map_err(StoreError::at(&path))?;
        fs::remove_file(&path).map_err(StoreError::at(&path))?;
        output::print_line(format_args!(
            "Removed {}, which {} replaces",
            path.display(),
            file.name
        ))?;
        if had_telemetry {
            remove_telemetry()?;
        }
    }
    Ok(())
}

/// Removes the files that ONNX Runtime's telemetry has made in the user's home, and the folders that
/// are empty then.
fn remove_telemetry() -> Result<(), StoreError> {
    let Some(home) = places::search_paths().home else {
        return Ok(());
    };
    let folder = home.join(TELEMETRY_FOLDER);
    if !is_folder(&folder) {
        return Ok(());
    }
    for name in TELEMETRY_FILES {
        let path = folder.join(name);
        file::remove_if_there(&path).map_err(StoreError::at(&path))?;
    }
    output::print_line(format_args!(
        "Removed what ONNX Runtime's telemetry had written to {}",
        folder.display()
    ))?;
    for folder in folder.ancestors().take(TELEMETRY_FOLDERS) {
        remove_empty(folder).map_err(StoreError::at(folder))?;
    }
    Ok(())
}

/// Returns true if the path is a folder, not a link to one.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Removes the folder if it is empty.
fn remove_empty(folder: &Path) -> io::Result<()> {
    match fs::remove_dir(folder) {
        Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => Err(error),
        _ => Ok(()),
    }
}
