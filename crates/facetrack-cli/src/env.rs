// SPDX-License-Identifier: MPL-2.0
//! `facetrack env`: the variables that a shell must export.

use std::path::{Path, PathBuf};

use facetrack_assets::locate::{MODELS_DIR_VARIABLE, RUNTIME_VARIABLE, TELEMETRY_VARIABLE};
use facetrack_assets::manifest::FileKind;

use crate::{places, store};

/// Shell lines that export the paths of plugin, models, runtime and this program, as far as they
/// exist, and keep ONNX Runtime's telemetry off. Paths of models and runtime that the caller's
/// environment sets are kept.
pub(crate) fn exports() -> String {
    let mut lines = Vec::new();
    if let Some(folder) = places::built_plugin() {
        let folder = quoted(&folder);
        lines.push(format!(
            "GST_PLUGIN_PATH={folder}${{GST_PLUGIN_PATH:+:\"$GST_PLUGIN_PATH\"}}"
        ));
    }
    for (variable, path) in locations() {
        lines.push(format!("{variable}={}", quoted(&path)));
    }
    lines.push(format!("{TELEMETRY_VARIABLE}=1"));
    if let Some(folder) = places::program_off_path() {
        // Last, so that no program there hides another one.
        lines.push(format!("PATH=\"$PATH\":{}", quoted(&folder)));
    }
    let line = |line: &String| format!("export {line}\n");
    lines.iter().map(line).collect()
}

/// The variables that name models and runtime, as far as they exist. Paths that the caller's
/// environment sets are kept.
pub(crate) fn locations() -> impl Iterator<Item = (&'static str, PathBuf)> {
    let paths = places::search_paths();
    let data_dir = paths.data_dir.as_deref();
    let models = data_dir.map(|root| root.join(FileKind::Model.folder()));
    let runtime = data_dir
        .zip(places::file(FileKind::Runtime))
        .map(|(root, file)| store::place(root, file));
    let locations = [
        (MODELS_DIR_VARIABLE, paths.collection.or(models)),
        (RUNTIME_VARIABLE, paths.runtime.or(runtime)),
    ];
    let found =
        |(variable, path): (_, Option<PathBuf>)| Some((variable, path?.canonicalize().ok()?));
    locations.into_iter().filter_map(found)
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
