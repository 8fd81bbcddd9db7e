// SPDX-License-Identifier: MPL-2.0
//! Finds a library that has no telemetry.

use std::io;
use std::path::{self, Path, PathBuf};

use super::{Unusable, mapped, preload};
use crate::model::telemetry::is_in;
use facetrack_assets::trust;

const UNKNOWN: &str = "the file that the dynamic loader found is unknown";

/// The path of the library, if it has no telemetry. If `library` is a name that the dynamic loader
/// searches for, it is loaded. Telemetry does not start before there is an environment.
pub(super) fn without(library: &Path) -> Result<PathBuf, Unusable> {
    let found = if trust::is_bare(library) {
        preload(library)?;
        mapped::file(library).ok_or_else(|| format!("{}: {UNKNOWN}", library.display()))?
    } else {
        // `ort` looks for a relative path next to the program first.
        path::absolute(library).map_err(|error| unreadable(library, &error))?
    };
    match is_in(&found) {
        Ok(false) => Ok(found),
        Ok(true) => Err(Unusable::Telemetry(found)),
        Err(error) => Err(unreadable(library, &error).into()),
    }
}

fn unreadable(library: &Path, error: &io::Error) -> String {
    format!("{}: {error}", library.display())
}
