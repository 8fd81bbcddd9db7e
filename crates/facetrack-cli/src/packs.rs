// SPDX-License-Identifier: MPL-2.0
//! Packs that this tool put together: folders of files that are used as a whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use facetrack::manifest::{KnownFile, Manifest};

use crate::output;
use crate::store::{self, State, Store, StoreError};

/// Renames the folders of packs of which one of `files` is damaged, and adds to `files` everything else that was in them.
/// Yields the new folders. A folder with anything that this tool did not put there stays as it is.
///
/// # Errors
/// Where one can't be read or renamed.
pub fn set_aside<'a>(
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

/// What lies in the folder of the pack that `file` belongs to; `None` where something else does as well.
fn own_content<'a>(
    folder: &Path,
    manifest: &'a Manifest,
    file: &KnownFile,
) -> Result<Option<Vec<&'a KnownFile>>, StoreError> {
    let names = names_in(folder).map_err(StoreError::at(folder))?;
    let family = manifest.family(&file.family);
    let content: Vec<_> = family.filter(|known| names.contains(&known.name)).collect();
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
