// SPDX-License-Identifier: MPL-2.0
//! `facetrack-setup fetch`: brings the files of the manifest to this machine.

use std::fmt;
use std::path::{Path, PathBuf};

use gstfacetrack::face::manifest::{self, KnownFile, Source};
use thiserror::Error;

use crate::store::{self, State, Store, StoreError};
use crate::{places, size, source};

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

/// Fetches the files called `names`, or all that this machine's processor can use.
///
/// # Errors
/// When one of them can't be had; the others are fetched all the same.
pub fn run(names: &[&String]) -> Result<(), FetchError> {
    let files = chosen(names)?;
    let root = places::data_dir().ok_or(FetchError::NoPlace)?;
    let store = Store::open(&root)?;
    println!("Files under {}:", root.display());
    let mut missing = 0;
    for (index, file) in files.iter().enumerate() {
        let step = format!("[{}/{}] {}", index + 1, files.len(), file.name);
        let path = store::place(&root, file);
        if store::state(&path, file)? == State::Right {
            println!("{step}: in place ({})", size::human(file.size));
            continue;
        }
        println!("{step}: {}, {}", size::human(file.size), file.licence);
        match bring(&store, file)? {
            Ok(from) => println!("{step}: done, from {from}"),
            Err(tried) => {
                eprintln!("{}", unavailable(file, &path, &tried));
                missing += 1;
            }
        }
    }
    if missing > 0 {
        return Err(FetchError::Unavailable(missing));
    }
    Ok(())
}

/// Where the file `name` belongs, fetched or not.
///
/// # Errors
/// When the manifest does not have it.
pub fn path(name: &str) -> Result<PathBuf, FetchError> {
    let file = manifest::known(name).ok_or_else(|| unknown(name))?;
    let root = places::data_dir().ok_or(FetchError::NoPlace)?;
    Ok(store::place(&root, file))
}

fn chosen(names: &[&String]) -> Result<Vec<&'static KnownFile>, FetchError> {
    if names.is_empty() {
        return Ok(manifest::files().collect());
    }
    names
        .iter()
        .map(|name| manifest::known(name).ok_or_else(|| unknown(name)))
        .collect()
}

fn unknown(name: &str) -> FetchError {
    let known: Vec<_> = manifest::files().map(|file| file.name.as_str()).collect();
    FetchError::Unknown {
        name: name.to_owned(),
        known: known.join(", "),
    }
}

/// Tries the origins in order until one has the right bytes; yields its name, or what each of them said.
fn bring(store: &Store, file: &KnownFile) -> Result<Result<String, Vec<String>>, StoreError> {
    let mut tried = Vec::new();
    for origin in origins(file) {
        println!("    from {origin} …");
        match attempt(store, file, &origin)? {
            Ok(()) => return Ok(Ok(origin.to_string())),
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
    /// The user's own collection.
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

fn origins(file: &KnownFile) -> Vec<Origin<'_>> {
    let own = places::folder(places::MODELS_DIR)
        .and_then(|folder| places::in_folder(&folder, file))
        .map(Origin::Collection);
    own.into_iter()
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
        variable = places::MODELS_DIR,
    )
}
