// SPDX-License-Identifier: MPL-2.0
//! The copies of videos, which a worker writes.

use std::cell::RefCell;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use facetrack::record::container;
use facetrack_assets::file::{self, is_same};
use facetrack_assets::replacement::Replacement;
use facetrack_jobs::{Answer, BlurRequest, BlurSetup, Cause, Container, Outcome, Request, Status};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{BlurArguments, Places};
use crate::error::StoreError;
use crate::run::TrackedVideo;
use crate::run::worker::{Worker, WorkerSettings};
use crate::table;

/// Recorded frames by which a face is covered before it is found: a second at 25 frames per second.
const LOOK_AHEAD: u32 = 25;

/// Interval at which progress is shown.
const POLL: Duration = Duration::from_millis(200);

/// Maximum size of the note on a copy, bytes.
const MAX_NOTE: u64 = 1 << 16;

/// Version of what a copy depends on besides its key.
const VERSION: u32 = 1;

/// Brings copies up to date.
pub(super) struct Copies<'a> {
    places: &'a Places,
    /// The settings in the keys of copies.
    setup: BlurSetup,
    is_forced: bool,
    /// `None` if copies are only checked.
    worker: Option<RefCell<Worker>>,
}

/// A note on a copy, which tells it from files of others, and says what it was made of.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Note {
    key: String,
    /// Fingerprints of the copy, and of the one before, which is there after a crash.
    copies: Vec<String>,
}

impl<'a> Copies<'a> {
    /// Checks the settings, and starts the worker.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid, or there is no encoder.
    pub(super) fn begin(
        arguments: &BlurArguments,
        places: &'a Places,
    ) -> Result<Self, Box<dyn Error>> {
        let setup = BlurSetup {
            properties: arguments.covers.clone(),
            look_ahead: LOOK_AHEAD,
        };
        let settings = WorkerSettings {
            first: Request::SetUpBlur(setup.clone()),
            limit: None,
            stop: Arc::default(),
        };
        let started = (!arguments.check_only).then(|| Worker::start(&settings));
        let worker = started.transpose().map_err(|error| error.message)?;
        Ok(Self {
            places,
            setup,
            is_forced: arguments.force,
            worker: worker.map(|(worker, _)| RefCell::new(worker)),
        })
    }

    /// Writes the copy of a video, unless it is up to date. Returns a message about streams that were
    /// left out, if there are some.
    ///
    /// # Errors
    /// Returns an error if the video has no record, cannot be copied, or the copy would replace
    /// another file.
    pub(super) fn bring(&self, video: &TrackedVideo) -> Result<Option<String>, Box<dyn Error>> {
        let copy = self.places.copy(video);
        let note = self.note(video);
        let before = Note::read(&note);
        let there = fingerprint(&copy);
        let Some(worker) = &self.worker else {
            let is_ours = there.is_some_and(|it| before.copies.contains(&it));
            return if is_ours {
                Ok(None)
            } else {
                Err("it is not there, or was changed. Run without --check-only".into())
            };
        };
        let key = self.key(video)?;
        if before.key == key
            && there.is_some()
            && before.copies.first() == there.as_ref()
            && !self.is_forced
        {
            return Ok(None);
        }
        let is_ours = there.as_ref().is_some_and(|it| before.copies.contains(it));
        if is_same(&video.path, &copy) {
            return Err("it is the video itself. Name another folder".into());
        }
        if !is_ours && !self.is_forced && fs::symlink_metadata(&copy).is_ok() {
            return Err(
                "it exists, and `facetrack blur` has not written it. Move it away, or add --force to replace it".into(),
            );
        }
        let folder = copy.parent().filter(|it| !it.as_os_str().is_empty());
        folder.map_or(Ok(()), |folder| {
            fs::create_dir_all(folder).map_err(StoreError::at(folder))
        })?;
        let replacement = Replacement::begin(&copy).map_err(StoreError::at(&copy))?;
        let request = BlurRequest {
            video: video.path.clone(),
            record: video.record.clone(),
            output: replacement.written().to_owned(),
            container: Container::of(&copy).unwrap_or_default(),
        };
        let message = follow(&mut worker.borrow_mut(), request, video, &copy)?;
        let new = fingerprint(replacement.written());
        let copies = new.into_iter().chain(there.filter(|_| is_ours)).collect();
        Note { key, copies }.write(&note)?;
        replacement.finish().map_err(StoreError::at(&copy))?;
        Ok(message)
    }

    /// What a copy depends on.
    fn key(&self, video: &TrackedVideo) -> Result<String, String> {
        let status = video.outcome.as_ref();
        let outcome = status.map_err(|reason| reason.clone())?;
        if !outcome.status.has_record() {
            let reason = outcome
                .message
                .as_deref()
                .unwrap_or("its faces are not known");
            return Err(reason.to_owned());
        }
        let container = Container::of(&self.places.copy(video));
        let basis = json!([VERSION, video.key, self.setup, container]);
        Ok(file::sha256(basis.to_string().as_bytes()))
    }

    fn note(&self, video: &TrackedVideo) -> PathBuf {
        let mut name = self
            .places
            .records
            .join("copies")
            .join(&video.id)
            .into_os_string();
        name.push(".json");
        name.into()
    }
}

impl Note {
    /// The note at a path; an empty one if there is none.
    fn read(path: &Path) -> Self {
        let text = file::read_itself(path, MAX_NOTE).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(StoreError::at(folder))?;
        Ok(table::write_text(path, &serde_json::to_string(self)?)?)
    }
}

fn fingerprint(path: &Path) -> Option<String> {
    let mut file: File = file::open(path).ok()?;
    container::fingerprint(&mut file).ok()
}

/// Lets the worker copy a video, and shows its progress. Returns its message.
fn follow(
    worker: &mut Worker,
    request: BlurRequest,
    video: &TrackedVideo,
    copy: &Path,
) -> Result<Option<String>, Box<dyn Error>> {
    let frames = video.outcome.as_ref().map_or(0, |outcome| outcome.frames);
    worker.send(&Request::Blur(Box::new(request)))?;
    let bar = bar(frames, copy);
    let outcome = loop {
        match worker.answer(POLL) {
            Ok(Answer::Done(outcome)) => break *outcome,
            Ok(Answer::Progress(progress)) => bar.set_position(progress.frames),
            Ok(_) | Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => return Err(worker.end().into()),
        }
    };
    bar.finish_and_clear();
    let Outcome {
        status,
        message,
        cause,
        ..
    } = outcome;
    if cause == Some(Cause::OutOfSpace) {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        return Err(StoreError::at(copy)(full).into());
    }
    if status != Status::Complete {
        return Err(message.unwrap_or_default().into());
    }
    Ok(message)
}

/// A bar on a terminal.
fn bar(frames: u64, copy: &Path) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_msg} {pos}/{len} frames, {eta} left");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let name = copy.file_name().unwrap_or_default().to_string_lossy();
    ProgressBar::new(frames)
        .with_style(style)
        .with_message(name.into_owned())
}
