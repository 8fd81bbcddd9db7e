// SPDX-License-Identifier: MPL-2.0
//! Packs that this tool put together: folders of files that are used as a whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use gstfacetrack::face::manifest::{KnownFile, Manifest};

use crate::store::{self, State, Store, StoreError};

/// A folder that was renamed, since a file in it was damaged.
pub struct Aside<'a> {
    /// Its new name.
    pub folder: PathBuf,
    /// What lay in it.
    pub files: Vec<&'a KnownFile>,
}

/// Renames the folder of the pack that `file` belongs to, if the file in it is damaged. A folder with anything that this
/// tool did not put there stays as it is.
///
/// # Errors
/// Where it can't be read or renamed.
pub fn set_aside<'a>(
    store: &Store,
    manifest: &'a Manifest,
    file: &KnownFile,
) -> Result<Option<Aside<'a>>, StoreError> {
    let path = store.place(file);
    let Some(folder) = path.parent().filter(|_| file.is_pack) else {
        return Ok(None);
    };
    if !matches!(store::state(&path, file)?, State::Wrong(_)) {
        return Ok(None);
    }
    let names = names_in(folder).map_err(StoreError::at(folder))?;
    let files: Vec<_> = manifest
        .family(&file.family)
        .filter(|known| names.contains(&known.name))
        .collect();
    if files.len() < names.len() {
        return Ok(None);
    }
    let aside = folder.with_file_name(corrupt(&file.family));
    fs::rename(folder, &aside).map_err(StoreError::at(folder))?;
    Ok(Some(Aside {
        folder: aside,
        files,
    }))
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(folder)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn corrupt(name: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    format!("{name}.corrupt_{}", now.unwrap_or_default().as_secs())
}
