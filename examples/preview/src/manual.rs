// SPDX-License-Identifier: MPL-2.0
//! Writes the man page of `facetrack-preview` into a folder. It is not an example, since cargo would
//! build every crate of the package again for one.

use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or("usage: facetrack-preview-manual <folder>")?;
    fs::create_dir_all(&folder)?;
    clap_mangen::generate_to(facetrack_preview::command_line(), folder)?;
    Ok(())
}
