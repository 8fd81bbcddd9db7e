// SPDX-License-Identifier: MPL-2.0
//! Where the files are that `facetrack blur` reads and writes.

use std::collections::HashSet;
use std::error::Error;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use facetrack_assets::file::{self, is_same, target, with_suffix};
use facetrack_assets::replacement::Replacement;
use facetrack_jobs::Container;

use super::{BlurArguments, FINDER, FINDER_OPTIONS};
use crate::error::StoreError;
use crate::places as paths;
use crate::run::{self, RunArguments};

/// End of the name of the folder for records.
const RECORDS: &str = ".records";

/// The file that marks such a folder, and its text.
const MARK: &str = "about.txt";
const MARK_TEXT: &str = "Records of `facetrack blur`. They contain the positions of faces. Delete this \
    folder when you need neither the report nor another copy.\n";

/// End of the name of a file that is being written.
const PARTIAL: &str = ".partial";

/// Name of a list from standard input.
const STANDARD_INPUT: &str = "-";

/// The places of all files.
pub(super) struct Places {
    input: PathBuf,
    output: PathBuf,
    /// True if the output is a folder.
    has_several: bool,
    /// The folder for records.
    pub records: PathBuf,
}

impl Places {
    /// Checks the arguments.
    ///
    /// # Errors
    /// Returns an error if the output has another container, or a copy would replace an input, or be
    /// an input of the next run.
    pub(super) fn of(arguments: &BlurArguments) -> Result<Self, String> {
        let (input, output) = (arguments.input.clone(), arguments.output.clone());
        let at = |reason: &str| Err(format!("{}: {reason}", output.display()));
        if input == Path::new(STANDARD_INPUT) {
            return Err("a list is read twice. Write it to a file, and name that".to_owned());
        }
        paths::text(&output)?;
        let has_several = run::is_several(&input);
        if has_several {
            if output.is_file() {
                return at("it is a file. Name a folder for the copies of several videos");
            }
            if input.is_dir() && target(&output).starts_with(target(&input)) {
                return at(
                    "it is in the folder of the videos, so that copies would become videos of the next run. Name a folder outside",
                );
            }
        } else if is_same(&input, &output) {
            return at("it is the video itself. Name another file");
        } else if output.is_dir() {
            return at("it is a folder. Name the video to write");
        } else if Container::of(&output).is_none() {
            return at("unknown container. Name a file with the suffix .mp4, .mov or .mkv");
        }
        let places = Self {
            records: with_suffix(output.components().as_path(), RECORDS),
            input,
            output,
            has_several,
        };
        let videos = run::named(&places.tracking(arguments))?;
        places.check_copies(
            videos
                .iter()
                .map(|(id, path)| (id.as_str(), path.as_path())),
        )?;
        Ok(places)
    }

    /// Checks that no copy of these videos, given by id and path, is one of them.
    ///
    /// # Errors
    /// Returns an error that names the copy.
    pub(super) fn check_copies<'a>(
        &self,
        videos: impl Iterator<Item = (&'a str, &'a Path)> + Clone,
    ) -> Result<(), String> {
        let inputs: HashSet<_> = videos.clone().map(|(_, path)| target(path)).collect();
        let folder = self.has_several.then(|| target(&self.output));
        let is_copied = |path: &PathBuf| folder.as_ref().is_some_and(|it| path.starts_with(it));
        if let Some(input) = inputs.iter().find(|path| is_copied(path)) {
            let (input, output) = (input.display(), self.output.display());
            return Err(format!(
                "{input} is in the folder for the copies, {output}. Name another folder"
            ));
        }
        for (id, path) in videos {
            let copy = self.copy(id, path);
            if inputs.contains(&target(&copy)) {
                let copy = copy.display();
                return Err(format!(
                    "{copy} is one of the videos to copy. Name another output"
                ));
            }
        }
        Ok(())
    }

    /// Begins to use the folder for records, and locks it for as long as the returned file is open.
    /// Creates it if `may_be_new`.
    ///
    /// # Errors
    /// Returns an error if the folder is from another program, another command uses it, or it cannot be
    /// written.
    pub(super) fn claim(&self, may_be_new: bool) -> Result<File, Box<dyn Error>> {
        let records = &self.records;
        let shown = records.display();
        if !may_be_new && !records.exists() {
            return Err(format!("{shown} is not there. Run without --check-only").into());
        }
        fs::create_dir_all(records).map_err(StoreError::at(records))?;
        let mark = records.join(MARK);
        let unfinished = with_suffix(&mark, PARTIAL);
        let entries = fs::read_dir(records).map_err(StoreError::at(records))?;
        let mut others = entries.filter(|it| it.as_ref().is_ok_and(|it| it.path() != unfinished));
        if others.next().is_none() {
            write(&mark, MARK_TEXT.as_bytes())?;
        }
        let text = file::read_itself(&mark, MARK_TEXT.len() as u64);
        if text.ok().as_deref() != Some(MARK_TEXT.as_bytes()) {
            return Err(format!(
                "{shown}: it exists, and `facetrack blur` has not written it. Move it away, or name another output"
            )
            .into());
        }
        let claim = File::open(&mark).map_err(StoreError::at(&mark))?;
        if matches!(claim.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(format!("{shown}: another `facetrack blur` writes to it").into());
        }
        Ok(claim)
    }

    /// The arguments of the run that finds faces.
    pub(super) fn tracking(&self, arguments: &BlurArguments) -> RunArguments {
        let is_finder = arguments.engine == FINDER;
        let options = FINDER_OPTIONS.iter().filter(|_| is_finder);
        let options = options.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        RunArguments {
            force: arguments.force,
            ..RunArguments::step(
                self.input.clone(),
                self.records.join("faces"),
                &arguments.engine,
                options.chain(arguments.properties.clone()).collect(),
                arguments.jobs,
            )
        }
    }

    /// The copy of a video.
    pub(super) fn copy(&self, id: &str, path: &Path) -> PathBuf {
        if !self.has_several {
            return self.output.clone();
        }
        // Suffixes with other containers are replaced.
        let suffix = path.extension().filter(|_| Container::of(path).is_some());
        let mut name = with_suffix(&self.output.join(id), ".").into_os_string();
        name.push(suffix.unwrap_or("mkv".as_ref()));
        name.into()
    }

    /// The note on the copy of a video.
    pub(super) fn note(&self, id: &str) -> PathBuf {
        with_suffix(&self.records.join("copies").join(id), ".jsonl")
    }

    /// The list of the copies to check, and the folder for the records of what is found in them.
    pub(super) fn check_list(&self) -> PathBuf {
        self.records.join("check.jsonl")
    }

    pub(super) fn check_folder(&self) -> PathBuf {
        self.records.join("check")
    }

    pub(super) fn report(&self) -> PathBuf {
        self.records.join("report.json")
    }
}

/// Writes a file in the folder for records, which is claimed.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(super) fn write(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder)
        .and_then(|()| Replacement::named(path, PARTIAL))
        .and_then(|replacement| replacement.write(content));
    written.map_err(StoreError::at(path))
}
