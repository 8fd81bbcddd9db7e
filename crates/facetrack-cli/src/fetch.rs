// SPDX-License-Identifier: MPL-2.0
//! `facetrack fetch`: downloads the files of the manifest.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf, absolute};

use facetrack::printable::Line;
use facetrack_assets::file;
use facetrack_assets::locate::{MODELS_DIR_VARIABLE, RUNTIME_VARIABLE};
use facetrack_assets::manifest::{self, FileKind, KnownFile, Manifest, Source, State};
use facetrack_remedies::fetch_command;
use indexmap::IndexMap;

use crate::error::{StoreError, check_room};
use crate::store::{self, Store};
use crate::{output, packs, places, replaced, size, source, terms};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// Error if the project's data has no folder.
const NO_PLACE: &str = "no folder for the files is known: set HOME or XDG_DATA_HOME";

/// Bytes of the largest manifest that is read; this project's has 14 kB.
const MAX_MANIFEST: u64 = 1 << 20;

/// Fetches the files called `names`, which may be names of families, or all that this machine's
/// processor can use and that need no request, into the folder `to`, or else into the user's.
///
/// # Errors
/// Returns an error if one of them is not available; the others are fetched nevertheless. Files
/// that are in no package may be missing, unless they were named.
pub(crate) fn run(manifest: &Manifest, names: &[String], to: Option<&Path>) -> Result<()> {
    let mut files = chosen(manifest, names)?;
    let root = to.map(Path::to_owned).or_else(places::data_dir);
    let root = root.ok_or(NO_PLACE)?;
    // Paths in it are given to programs that run in other folders.
    let root = absolute(&root).map_err(StoreError::at(&root))?;
    let store = Store::open(&root)?;
    output::print_line(format_args!("Files under {}:", root.display()))?;
    let aside = packs::set_aside(&store, manifest, &mut files)?;
    let (mut present, mut missing) = (Vec::new(), Vec::new());
    let mut unreachable = BTreeSet::new();
    for (index, file) in files.iter().enumerate() {
        let step = format!("[{}/{}] {}", index + 1, files.len(), file.name);
        if ensure(&store, file, &aside, &mut unreachable, &step)? {
            replaced::remove(&store, file)?;
            present.push(*file);
        } else {
            missing.push(*file);
        }
    }
    let (needed, spared): (Vec<_>, Vec<_>) = missing
        .into_iter()
        .partition(|file| is_needed(manifest, file, names));
    let notes = [
        terms::not_for_commerce(present),
        unasked(&store, manifest, names, &files),
        without(&spared),
        engines(&store, manifest),
        variables(&root, manifest),
    ];
    for note in notes.into_iter().flatten() {
        output::print(note + "\n")?;
    }
    if !needed.is_empty() {
        let missing = needed.len();
        return Err(format!("{missing} of the files could not be fetched").into());
    }
    Ok(())
}

/// Returns true if fetching fails without `file`. A file that is in no package may be missing,
/// unless the user has named it, or its family if no file of the family is in a package.
fn is_needed(manifest: &Manifest, file: &KnownFile, names: &[String]) -> bool {
    let is_asked_for = |name: &str| names.iter().any(|own| own == name);
    let is_kept_by_maker = || !manifest.family(&file.family).any(KnownFile::is_packaged);
    file.is_packaged()
        || is_asked_for(&file.name)
        || (is_asked_for(&file.family) && is_kept_by_maker())
}

/// Names the files that were left out because of their licence; `None` if there are none, or if
/// files were named.
fn unasked(
    store: &Store,
    manifest: &Manifest,
    names: &[String],
    files: &[&KnownFile],
) -> Option<String> {
    let left_out = |file: &&KnownFile| {
        file.on_request
            && file.non_commercial
            && !files.iter().any(|fetched| fetched.family == file.family)
            && !store.place(file).exists()
    };
    let line =
        |file: &KnownFile| format!("{} ({}): {}", file.name, file.licence, fetch_command(file));
    let title = "Not fetched unless requested, because their licence restricts their use:";
    let files = manifest.usable().filter(left_out).map(line);
    listed(title, files.filter(|_| names.is_empty()))
}

/// Names the variables that let elements find the files under `root`; `None` if elements search it
/// anyway.
fn variables(root: &Path, manifest: &Manifest) -> Option<String> {
    let paths = places::search_paths();
    if paths.data_dirs().any(|folder| folder == root) {
        return None;
    }
    let models = (MODELS_DIR_VARIABLE, root.join(FileKind::Model.folder()));
    let runtime = manifest
        .usable()
        .find(|file| file.kind == FileKind::Runtime)
        .map(|file| (RUNTIME_VARIABLE, store::place(root, file)));
    let lines = [Some(models), runtime].into_iter().flatten();
    let lines = lines
        .filter(|(_, path)| path.exists())
        .map(|(variable, path)| format!("\n  {variable}={}", Line(path.display())));
    Some(format!(
        "Elements do not search {}. Set:{}",
        root.display(),
        lines.collect::<String>()
    ))
}

/// Names the engines that have all their models, and the others; `None` if the manifest names no
/// engine.
fn engines(store: &Store, manifest: &Manifest) -> Option<String> {
    let paths = places::search_paths();
    let is_here = |file: &KnownFile| {
        let found = if file.is_pack {
            paths.pack(None).is_ok()
        } else {
            paths.model(&file.name, &file.family, None).is_ok()
        };
        found || store.place(file).exists()
    };
    let mut is_ready = IndexMap::new();
    for file in manifest.usable() {
        for engine in &file.engines {
            *is_ready.entry(engine.as_str()).or_insert(true) &= is_here(file);
        }
    }
    let named = |ready: bool| {
        let engines = is_ready.iter().filter(|(_, is_ready)| **is_ready == ready);
        engines
            .map(|(engine, _)| *engine)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let lines = [
        ("Engines with all their models: ", named(true)),
        ("Engines that lack models: ", named(false)),
    ];
    let lines = lines.into_iter().filter(|(_, engines)| !engines.is_empty());
    let lines: Vec<_> = lines
        .map(|(title, engines)| title.to_owned() + &engines)
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Says which functions are missing without `files`, which are in no package; `None` if there are
/// none.
fn without(files: &[&KnownFile]) -> Option<String> {
    let title = "Missing, because no package contains them and no server provided them:";
    let line = |file: &&KnownFile| format!("{}: {}", file.name, file.purpose);
    let lost = listed(title, files.iter().map(line))?;
    Some(format!("{lost}\nEverything else works without them."))
}

/// A list under `title`; `None` if it is empty.
fn listed(title: &str, lines: impl Iterator<Item = String>) -> Option<String> {
    let lines: String = lines.map(|line| format!("\n  - {line}")).collect();
    (!lines.is_empty()).then(|| format!("{title}{lines}"))
}

/// Returns the path of the file `name`: for models, the path where elements find it; for other
/// files, the path in the user's folder or in one for all users. If the file does not exist,
/// returns the path to which it would be fetched.
///
/// # Errors
/// Returns an error if the manifest does not list the file.
pub(crate) fn path(manifest: &Manifest, name: &str) -> Result<PathBuf> {
    let file = known(manifest, name)?;
    let paths = places::search_paths();
    let model = paths.model(&file.name, &file.family, None).ok();
    let model = model.filter(|_| file.kind == FileKind::Model);
    if let Some(path) = model.or_else(|| places::fetched(file)) {
        return Ok(path);
    }
    let root = places::data_dir().ok_or(NO_PLACE)?;
    Ok(store::place(&root, file))
}

/// The manifest in `file`, or the binary's own.
///
/// # Errors
/// Returns an error if the file is not a manifest.
pub(crate) fn manifest(file: Option<&Path>) -> Result<Cow<'static, Manifest>> {
    let Some(path) = file else {
        return Ok(Cow::Borrowed(manifest::manifest()));
    };
    let read = || -> Result<_> {
        let bytes = file::read(path, MAX_MANIFEST)?;
        Ok(String::from_utf8(bytes)?.parse()?)
    };
    let own = read().map_err(|error| format!("manifest {}: {error}", path.display()))?;
    Ok(Cow::Owned(own))
}

fn chosen<'a>(manifest: &'a Manifest, names: &[String]) -> Result<Vec<&'a KnownFile>> {
    let mut files = Vec::new();
    if names.is_empty() {
        let is_unasked = |file: &&KnownFile| !file.on_request && file.kind != FileKind::Runtime;
        files.extend(manifest.usable().filter(is_unasked));
    }
    for name in names {
        let family: Vec<_> = manifest.family(name).collect();
        if family.is_empty() {
            files.push(known(manifest, name)?);
        }
        files.extend(family);
    }
    Ok(files)
}

fn known<'a>(manifest: &'a Manifest, name: &str) -> Result<&'a KnownFile> {
    manifest.known(name).ok_or_else(|| {
        let known: Vec<_> = manifest.usable().map(|file| &*file.name).collect();
        let known = known.join(", ");
        format!("{name} is not in the manifest, which has: {known}").into()
    })
}

/// Fetches `file` unless it is in place: tries the sources in order until one provides the right
/// bytes, and skips sources on `unreachable` servers. Returns true if it is in place afterwards.
fn ensure(
    store: &Store,
    file: &KnownFile,
    aside: &[PathBuf],
    unreachable: &mut BTreeSet<String>,
    step: &str,
) -> Result<bool> {
    let (path, size) = (store.place(file), size::human(file.size));
    if store::state(&path, file)? == State::Right {
        output::print_line(format_args!("{step}: in place ({size})"))?;
        return Ok(true);
    }
    output::print_line(format_args!("{step}: {size}, {}", file.licence))?;
    let mut tried = Vec::new();
    for source in sources(file, aside) {
        if let Some(server) = source.server().filter(|it| unreachable.contains(*it)) {
            tried.push(format!("{source}: {server} cannot be reached, as before"));
            continue;
        }
        output::print_line(format_args!("    from {source} …"))?;
        match attempt(store, file, &source)? {
            Ok(()) => {
                output::print_line(format_args!("{step}: done, {}", path.display()))?;
                return Ok(true);
            }
            Err(reason) => {
                let server = source.server().filter(|_| source::is_unreachable(&reason));
                unreachable.extend(server.map(str::to_owned));
                tried.push(format!("{source}: {reason}"));
            }
        }
    }
    let text = unavailable(file, &path, &tried);
    text.lines().for_each(output::complain);
    Ok(false)
}

/// Installs `file` if `source` provides the right bytes. Returns the reason otherwise.
fn attempt(store: &Store, file: &KnownFile, source: &Source) -> Result<Result<(), String>> {
    let scratch = store.scratch()?;
    let candidate = match source::obtain(source, file, scratch.path()) {
        Ok(candidate) => candidate,
        Err(reason) => {
            check_room(scratch.path(), file.size)?;
            return Ok(Err(reason));
        }
    };
    Ok(match store::state(&candidate, file)? {
        State::Right => {
            store.install(&candidate, file)?;
            Ok(())
        }
        State::Wrong(difference) => Err(format!("rejected: {difference}")),
        State::Missing => Err("nothing came".to_owned()),
    })
}

/// Sources of `file`, in the order to try: packs that were set aside, the user's own collection,
/// and the manifest's sources.
fn sources(file: &KnownFile, aside: &[PathBuf]) -> Vec<Source> {
    let collection = places::search_paths().collection;
    let own = aside.iter().chain(&collection);
    own.filter_map(|folder| places::in_folder(folder, file))
        .map(Source::Copy)
        .chain(file.sources.iter().cloned())
        .collect()
}

fn unavailable(file: &KnownFile, path: &Path, tried: &[String]) -> String {
    let KnownFile { name, sha256, .. } = file;
    let size = size::human(file.size);
    let tried = tried.join("\n  - ");
    let kept = if path.exists() {
        "The existing file differs; it was not changed.\n  "
    } else {
        ""
    };
    format!(
        "{name} could not be fetched:\n  - {tried}\n  {kept}\
        To provide it by hand: get it where there is a network ({size}, sha256 {sha256}) and save it as {path}, \
        or put it into a folder and run again with {variable}=<that folder>.",
        path = path.display(),
        variable = MODELS_DIR_VARIABLE,
    )
}
