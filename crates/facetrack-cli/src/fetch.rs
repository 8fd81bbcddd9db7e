// SPDX-License-Identifier: MPL-2.0
//! `facetrack fetch`: brings the files of the manifest to this machine.

use std::borrow::Cow;
use std::path::{Path, PathBuf, absolute};
use std::{fmt, fs};

use facetrack::locate;
use facetrack::manifest::{self, FileKind, KnownFile, Manifest, Source};
use thiserror::Error;

use crate::store::{self, State, Store, StoreError};
use crate::{output, packs, places, size, source, terms};

/// Why a file is not in place.
#[derive(Debug, Error)]
pub enum FetchError {
    /// The manifest has no such file.
    #[error("{name} is not in the manifest, which has: {known}")]
    Unknown {
        /// Name asked for.
        name: String,
        /// Names to choose from.
        known: String,
    },
    /// That is not a manifest.
    #[error("manifest {path}: {reason}", path = path.display())]
    Manifest {
        /// File.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No folder for the project's data.
    #[error("there is no place for the files: set HOME or XDG_DATA_HOME")]
    NoPlace,
    /// The data folder can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Some files are not to be had.
    #[error("{0} of the files could not be fetched")]
    Unavailable(usize),
}

/// Fetches the files called `names`, which may be names of families, or all that this machine's processor can use and
/// that do not have to be asked for, into the folder `to`, or else into the user's.
///
/// # Errors
/// When one of them can't be had; the others are fetched all the same. Those that no package has may be missing, unless
/// they were asked for.
pub fn run(manifest: &Manifest, names: &[&String], to: Option<&Path>) -> Result<(), FetchError> {
    let mut files = chosen(manifest, names)?;
    let root = match to {
        Some(folder) => absolute(folder).map_err(StoreError::at(folder))?,
        None => locate::data_dir().ok_or(FetchError::NoPlace)?,
    };
    let store = Store::open(&root)?;
    output::print_line(format_args!("Files under {}:", root.display()))?;
    let aside = packs::set_aside(&store, manifest, &mut files)?;
    let mut missing = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let step = format!("[{}/{}] {}", index + 1, files.len(), file.name);
        if !ensure(&store, file, &aside, &step)? {
            missing.push(*file);
        }
    }
    let there = files
        .iter()
        .copied()
        .filter(|file| !missing.iter().any(|missing| missing.name == file.name));
    if let Some(terms) = terms::not_for_commerce(there) {
        output::print_line(terms)?;
    }
    if names.is_empty()
        && let Some(unasked) = unasked(&store, manifest, &files)
    {
        output::print_line(unasked)?;
    }
    let (needed, spared): (Vec<_>, Vec<_>) = missing
        .into_iter()
        .partition(|file| is_needed(manifest, file, names));
    if !spared.is_empty() {
        output::print_line(without(&spared))?;
    }
    if let Some(variables) = variables(&root, manifest) {
        output::print_line(variables)?;
    }
    match needed.len() {
        0 => Ok(()),
        missing => Err(FetchError::Unavailable(missing)),
    }
}

/// Whether it is a failure that `file` is not to be had. Of everything, and of a family, what no package has may be
/// missing, unless a package has nothing of the family.
fn is_needed(manifest: &Manifest, file: &KnownFile, names: &[&String]) -> bool {
    let is_asked_for = |name: &str| names.iter().any(|asked| *asked == name);
    let is_kept_by_maker = || !manifest.family(&file.family).any(KnownFile::is_packaged);
    file.is_packaged()
        || is_asked_for(&file.name)
        || (is_asked_for(&file.family) && is_kept_by_maker())
}

/// Names the files that were left out because of their licence; `None` if there are none.
fn unasked(store: &Store, manifest: &Manifest, files: &[&KnownFile]) -> Option<String> {
    let left_out = |file: &&KnownFile| {
        file.on_request
            && file.non_commercial
            && !files.iter().any(|fetched| fetched.family == file.family)
            && !store.place(file).exists()
    };
    let lines: Vec<_> = manifest
        .usable()
        .filter(left_out)
        .map(|file| format!("\n  - {} ({}): {}", file.name, file.licence, file.command()))
        .collect();
    (!lines.is_empty()).then(|| {
        format!(
            "Left out, since not everybody may use them, until they are asked for:{}",
            lines.concat()
        )
    })
}

/// Names the variables that let elements find the files under `root`; `None` if elements search it anyway.
fn variables(root: &Path, manifest: &Manifest) -> Option<String> {
    let is_searched = locate::data_dir().into_iter().any(|folder| folder == root)
        || locate::system_data_dirs()
            .iter()
            .any(|folder| folder == root);
    if is_searched {
        return None;
    }
    let models = root.join(FileKind::Model.folder());
    let mut lines = vec![(locate::MODELS_DIR_VARIABLE, models)];
    let runtime = manifest
        .usable()
        .find(|file| file.kind == FileKind::Runtime)
        .map(|file| (locate::RUNTIME_VARIABLE, store::place(root, file)));
    lines.extend(runtime);
    let lines = lines
        .iter()
        .filter(|(_, path)| path.exists())
        .map(|(variable, path)| format!("\n  {variable}={}", path.display()));
    Some(format!(
        "Elements do not search {}. Set:{}",
        root.display(),
        lines.collect::<String>()
    ))
}

/// What it means that `files` are not there, which no package has.
fn without(files: &[&KnownFile]) -> String {
    let lost: Vec<_> = files
        .iter()
        .map(|file| format!("\n  - {}: {}", file.name, file.purpose))
        .collect();
    format!(
        "Not there, since no package has them and no server gave them:{}\nEverything else works without them.",
        lost.concat()
    )
}

/// Where the file `name` is, in the user's folder or in one for all users; where it would be fetched to if it is in none.
///
/// # Errors
/// When the manifest does not have it.
pub fn path(manifest: &Manifest, name: &str) -> Result<PathBuf, FetchError> {
    let file = known(manifest, name)?;
    if let Some(path) = places::fetched(file) {
        return Ok(path);
    }
    let root = locate::data_dir().ok_or(FetchError::NoPlace)?;
    Ok(store::place(&root, file))
}

/// The manifest in `file`, or the binary's own.
///
/// # Errors
/// When the file is not a manifest.
pub fn manifest(file: Option<&PathBuf>) -> Result<Cow<'static, Manifest>, FetchError> {
    let Some(path) = file else {
        return Ok(Cow::Borrowed(manifest::manifest()));
    };
    let refused = |reason: String| FetchError::Manifest {
        path: path.clone(),
        reason,
    };
    let text = fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    serde_json::from_str(&text)
        .map(Cow::Owned)
        .map_err(|error| refused(error.to_string()))
}

fn chosen<'a>(manifest: &'a Manifest, names: &[&String]) -> Result<Vec<&'a KnownFile>, FetchError> {
    if names.is_empty() {
        return Ok(manifest.usable().filter(|file| !file.on_request).collect());
    }
    let mut files = Vec::new();
    for name in names {
        let family: Vec<_> = manifest.family(name).collect();
        match family.is_empty() {
            true => files.push(known(manifest, name)?),
            false => files.extend(family),
        }
    }
    Ok(files)
}

fn known<'a>(manifest: &'a Manifest, name: &str) -> Result<&'a KnownFile, FetchError> {
    manifest.known(name).ok_or_else(|| {
        let known: Vec<_> = manifest.usable().map(|file| file.name.as_str()).collect();
        FetchError::Unknown {
            name: name.to_owned(),
            known: known.join(", "),
        }
    })
}

/// Brings `file` to its place unless it is there; yields whether it is there in the end.
fn ensure(
    store: &Store,
    file: &KnownFile,
    aside: &[PathBuf],
    step: &str,
) -> Result<bool, StoreError> {
    let path = store.place(file);
    if store::state(&path, file)? == State::Right {
        output::print_line(format_args!(
            "{step}: in place ({})",
            size::human(file.size)
        ))?;
        return Ok(true);
    }
    output::print_line(format_args!(
        "{step}: {}, {}",
        size::human(file.size),
        file.licence
    ))?;
    let fetched = bring(store, file, aside)?;
    match &fetched {
        Ok(()) => output::print_line(format_args!("{step}: done, {}", path.display()))?,
        Err(tried) => output::complain(unavailable(file, &path, tried)),
    }
    Ok(fetched.is_ok())
}

/// Tries the origins in order until one has the right bytes; yields what each of them said if none had.
fn bring(
    store: &Store,
    file: &KnownFile,
    aside: &[PathBuf],
) -> Result<Result<(), Vec<String>>, StoreError> {
    let mut tried = Vec::new();
    for origin in origins(file, aside) {
        output::print_line(format_args!("    from {origin} …"))?;
        match attempt(store, file, &origin)? {
            Ok(()) => return Ok(Ok(())),
            Err(reason) => tried.push(format!("{origin}: {reason}")),
        }
    }
    Ok(Err(tried))
}

/// Installs `file` if `origin` has it with the right bytes; yields why not otherwise.
fn attempt(
    store: &Store,
    file: &KnownFile,
    origin: &Origin<'_>,
) -> Result<Result<(), String>, StoreError> {
    let scratch = store.scratch()?;
    let obtained = match origin {
        Origin::Collection(path) => source::copy(path, scratch.path()),
        Origin::Source(source) => source::obtain(source, file, scratch.path()),
    };
    let candidate = match obtained {
        Ok(candidate) => candidate,
        Err(reason) => return Ok(Err(reason)),
    };
    Ok(match store::state(&candidate, file)? {
        State::Right => {
            store.install(&candidate, file)?;
            Ok(())
        }
        State::Wrong(hash) => Err(format!("refused, its sha256 is {hash}")),
        State::Missing => Err("nothing came".to_owned()),
    })
}

/// Where a file may come from.
enum Origin<'a> {
    /// The user's own collection, or a pack of which another file is damaged.
    Collection(PathBuf),
    /// The manifest's sources.
    Source(&'a Source),
}

impl fmt::Display for Origin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collection(path) => write!(f, "{}", path.display()),
            Self::Source(source) => source.fmt(f),
        }
    }
}

fn origins<'a>(file: &'a KnownFile, aside: &[PathBuf]) -> Vec<Origin<'a>> {
    let collection = places::folder(locate::MODELS_DIR_VARIABLE);
    let own = aside.iter().chain(&collection);
    own.filter_map(|folder| places::in_folder(folder, file))
        .map(Origin::Collection)
        .chain(file.sources.iter().map(Origin::Source))
        .collect()
}

fn unavailable(file: &KnownFile, path: &Path, tried: &[String]) -> String {
    let KnownFile { name, sha256, .. } = file;
    let size = size::human(file.size);
    let tried = tried.join("\n  - ");
    let kept = if path.exists() {
        "The file that is there has other bytes; it was left alone.\n  "
    } else {
        ""
    };
    format!(
        "{name} could not be fetched:\n  - {tried}\n  {kept}\
        To provide it by hand: get it where there is a network ({size}, sha256 {sha256}) and save it as {path}, \
        or put it into a folder and run again with {variable}=<that folder>.",
        path = path.display(),
        variable = locate::MODELS_DIR_VARIABLE,
    )
}
