// SPDX-License-Identifier: MPL-2.0
//! `facetrack env`: what a shell must export.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use facetrack::locate;
use facetrack::manifest::{self, FileKind, KnownFile};

use crate::{places, store};

/// Shell lines that export where plugin, models, runtime and this program lie, for those that are there. What the
/// caller's environment says of models and runtime is kept.
pub fn exports() -> String {
    let mut out = String::new();
    if let Some(folder) = places::built_plugin() {
        let folder = quoted(&folder);
        let _ = writeln!(
            out,
            "export GST_PLUGIN_PATH={folder}${{GST_PLUGIN_PATH:+:\"$GST_PLUGIN_PATH\"}}"
        );
    }
    if let Some(folder) = models() {
        let _ = writeln!(
            out,
            "export {}={}",
            locate::MODELS_DIR_VARIABLE,
            quoted(&folder)
        );
    }
    if let Some(library) = runtime() {
        let _ = writeln!(
            out,
            "export {}={}",
            locate::RUNTIME_VARIABLE,
            quoted(&library)
        );
    }
    if let Some(folder) = places::program_off_path() {
        // Last, so that nothing there is taken for another program.
        let _ = writeln!(out, "export PATH=\"$PATH\":{}", quoted(&folder));
    }
    out
}

fn models() -> Option<PathBuf> {
    places::folder(locate::MODELS_DIR_VARIABLE)
        .or_else(|| Some(locate::data_dir()?.join(FileKind::Model.folder())))
        .and_then(|folder| folder.canonicalize().ok())
}

fn runtime() -> Option<PathBuf> {
    let fetched = || Some(store::place(&locate::data_dir()?, runtime_file()?));
    places::folder(locate::RUNTIME_VARIABLE)
        .or_else(fetched)
        .and_then(|library| library.canonicalize().ok())
}

fn runtime_file() -> Option<&'static KnownFile> {
    manifest::manifest()
        .usable()
        .find(|file| file.kind == FileKind::Runtime)
}

/// A path as one word of a POSIX shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_shell_reads_quoted_paths_back() {
        for path in [
            "/plain",
            "/with space/and $HOME",
            "/it's \"here\"\\",
            "/`id`;*",
        ] {
            let script = format!("printf %s {}", quoted(Path::new(path)));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), path);
        }
    }
}
