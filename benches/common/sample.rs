// SPDX-License-Identifier: MPL-2.0
//! The clip that benches are run with unless another is named.

use std::error::Error;
use std::path::PathBuf;

use facetrack_assets::locate::SearchPaths;
use facetrack_assets::manifest;

/// The sample clip.
pub fn clip() -> Result<PathBuf, Box<dyn Error>> {
    let clip = manifest::known("single_face.mp4").ok_or("no sample clip")?;
    let folder = SearchPaths::from_vars(std::env::var_os)
        .data_dir
        .ok_or("no home")?;
    Ok(folder.join(clip.kind.folder()).join(&clip.name))
}
