// SPDX-License-Identifier: MPL-2.0
//! ONNX Runtime and the models.

use std::env;
use std::path::Path;

use facetrack::device::CUDA_PROVIDER;
use facetrack::model::ModelError;
use facetrack::model::runtime::OnnxRuntime;
use facetrack::model::telemetry;
use facetrack_assets::locate::{SearchPaths, Telemetry, runtime_variable};
use facetrack_assets::manifest::{self, FileKind, KnownFile, State};
use facetrack_assets::trust;
use facetrack_remedies::{FETCH, GET_A_PACK, KEEP_TELEMETRY_OFF, fetch_command, protect};

use super::finding::Finding;
use crate::store;
use crate::{places, size, terms};

/// The library that an element would load.
pub(super) fn runtime() -> Vec<Finding> {
    vec![library(&places::search_paths())]
}

fn library(paths: &SearchPaths) -> Finding {
    let mut candidates = paths.runtime_candidates().into_iter();
    let Some(library) = candidates.find(|library| library.is_file() && !is_refused(paths, library))
    else {
        return loaded(paths);
    };
    if let Err(error) = trust::check(&library) {
        return Finding::bad(error.to_string(), protect(&error));
    }
    let name = library.file_name().unwrap_or_default().to_string_lossy();
    match manifest::known(&name) {
        // No manifest lists the runtime for NVIDIA GPUs.
        Some(file) if !library.with_file_name(CUDA_PROVIDER).is_file() => {
            let remedy = another_library().unwrap_or_else(|| fetch(file));
            checked(&library, file, remedy)
        }
        _ => Finding::good(format!(
            "{} (another build than the tested one)",
            library.display()
        )),
    }
}

/// Returns true if the library is refused because of its telemetry.
fn is_refused(paths: &SearchPaths, library: &Path) -> bool {
    paths.telemetry == Telemetry::Possible && telemetry::is_in(library).unwrap_or(false)
}

/// The library that the dynamic loader finds, by its name.
fn loaded(paths: &SearchPaths) -> Finding {
    match OnnxRuntime::load(paths) {
        Ok(runtime) => Finding::good(format!(
            "{} of the system's loader, in {} (another build than the tested one)",
            runtime.path().display(),
            runtime.folder().unwrap_or_default().display()
        )),
        Err(error @ ModelError::Telemetry { .. }) => {
            Finding::bad(error.to_string(), KEEP_TELEMETRY_OFF)
        }
        Err(error) => match another_library() {
            Some(remedy) => Finding::bad(error.to_string(), remedy),
            None => Finding::note(format!(
                "{error}. Only networks that the built-in runtime does not support, and GPUs, need it. `{FETCH} onnxruntime` fetches it"
            )),
        },
    }
}

/// The remedy if a variable names the library: a fetched one is not searched then.
fn another_library() -> Option<String> {
    let variable = runtime_variable(env::var_os)?;
    Some(format!(
        "Unset {variable}, or set it to the path of libonnxruntime.so"
    ))
}

/// Reports every model of the manifest, and those whose licence forbids commercial use.
pub(super) fn models() -> Vec<Finding> {
    let models: Vec<_> = manifest::manifest()
        .usable()
        .filter(|file| file.kind == FileKind::Model)
        .collect();
    let terms = terms::not_for_commerce(models.iter().copied()).map(Finding::note);
    let files = models.into_iter().map(model);
    files.chain([pack()]).chain(terms).collect()
}

fn model(file: &KnownFile) -> Finding {
    match places::search_paths().model(&file.name, &file.family, None) {
        Ok(path) => checked(&path, file, fetch_instead(&path, file)),
        Err(_) if file.on_request => Finding::note(format!(
            "{} is missing: it is fetched only on request ({}), licence {}",
            file.name,
            fetch_command(file),
            file.licence
        )),
        Err(error) => Finding::bad(error.to_string(), fetch(file)),
    }
}

/// The folder that the engine insightface would read.
fn pack() -> Finding {
    match places::search_paths().pack(None) {
        Ok(folder) => Finding::good(format!("pack of insightface: {}", folder.display())),
        Err(error) => Finding::note(format!("{error}. {GET_A_PACK}")),
    }
}

fn checked(path: &Path, file: &KnownFile, remedy: String) -> Finding {
    let shown = path.display();
    let about = format!(
        "{shown}, {}, sha256 {}…, licence {}",
        size::human(file.size),
        &file.sha256[..8],
        file.licence
    );
    match store::state(path, file) {
        Ok(State::Right) => Finding::good(about),
        Ok(State::Wrong(difference)) => {
            let told = format!("{shown} is damaged or another version: {difference}");
            Finding::bad(told, remedy)
        }
        Ok(State::Missing) => Finding::bad(format!("{shown} is missing"), remedy),
        Err(error) => Finding::bad(error.to_string(), remedy),
    }
}

/// The remedy for the model at `path`. Those in the user's collection come before fetched ones.
fn fetch_instead(path: &Path, file: &KnownFile) -> String {
    let collection = places::search_paths().collection;
    if collection.is_some_and(|folder| path.starts_with(folder)) {
        format!("Delete {}, and run `{}`", path.display(), fetch(file))
    } else {
        fetch(file)
    }
}

fn fetch(file: &KnownFile) -> String {
    if file.on_request {
        fetch_command(file)
    } else {
        format!("{FETCH} {}", file.name)
    }
}
