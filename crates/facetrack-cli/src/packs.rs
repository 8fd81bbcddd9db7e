// SPDX-License-Identifier: MPL-2.0
//! Packs that this command downloaded: folders of files that are used together.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use facetrack_assets::manifest::{KnownFile, Manifest, State};

use crate::error::StoreError;
use crate::output;
use crate::store::{self, Store};

/// Renames the folder of each pack with a damaged file among `files`, and adds the pack's other
/// files to `files`. Returns the new folders. A folder that contains files of others is not
/// changed.
///
/// # Errors
/// Returns an error if a folder can't be read or renamed.
pub(crate) fn set_aside<'a>(
    store: &Store,
    manifest: &'a Manifest,
    files: &mut Vec<&'a KnownFile>,
) -> Result<Vec<PathBuf>, StoreError> {
    let mut folders = Vec::new();
    for file in files.clone() {
        let path = store.place(file);
        let Some(folder) = path.parent().filter(|_| file.is_pack) else {
            continue;
        };
        if !matches!(store::state(&path, file)?, State::Wrong(_)) {
            continue;
        }
        let Some(content) = own_content(folder, manifest, file)? else {
            continue;
        };
        let aside = folder.with_file_name(corrupt(&file.family));
        fs::rename(folder, &aside).map_err(StoreError::at(folder))?;
        output::print_line(format_args!(
            "{} is damaged: its folder is now {}",
            path.display(),
            aside.display()
        ))?;
        folders.push(aside);
        for lost in content {
            if !files.iter().any(|file| file.name == lost.name) {
                files.push(lost);
            }
        }
    }
    Ok(folders)
}

/// The files in the folder of the pack that `file` belongs to; `None` if there are other files.
fn own_content<'a>(
    folder: &Path,
    manifest: &'a Manifest,
    file: &KnownFile,
) -> Result<Option<Vec<&'a KnownFile>>, StoreError> {
    let names = names_in(folder).map_err(StoreError::at(folder))?;
    let family = manifest.family(&file.family);
    let content: Vec<_> = family
        .filter(|known| names.iter().any(|name| **name == *known.name))
        .collect();
    Ok((content.len() == names.len()).then_some(content))
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
