// SPDX-License-Identifier: MPL-2.0
//! The copies of videos, which a worker writes.

use std::cell::RefCell;
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use facetrack::record::container;
use facetrack_assets::file;
use facetrack_assets::replacement::Replacement;
use facetrack_jobs::{
    Answer, BlurRequest, BlurSetup, Cause, Container, CoveredFrame, Outcome, Request, Status,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use super::BlurArguments;
use super::places::{self, Places};
use crate::error::StoreError;
use crate::run::TrackedVideo;
use crate::run::worker::{Worker, WorkerSettings};

/// Interval at which progress is shown.
const POLL: Duration = Duration::from_millis(200);

/// Maximum size of a line in a note, bytes: a frame with thousands of faces.
const MAX_LINE: u64 = 1 << 20;

/// Version of what a copy depends on besides its record and the settings.
const VERSION: u32 = 2;

/// Brings copies up to date.
pub(super) struct Copies<'a> {
    places: &'a Places,
    setup: BlurSetup,
    is_forced: bool,
    /// `None` if copies are only checked.
    worker: Option<RefCell<Worker>>,
    stop: Arc<AtomicBool>,
}

/// The first line of a note on a copy, which tells it from files of others, and says what it was made
/// of. The following lines say what is covered in its frames.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct Note {
    version: u32,
    /// Key of its record.
    record: String,
    /// Names and values of properties of facetrackblur.
    properties: Vec<(String, String)>,
    /// Fingerprints of the copy, and of the one before, which is there after a crash.
    copies: Vec<String>,
    /// Message about streams that were left out.
    left_out: Option<String>,
}

impl<'a> Copies<'a> {
    /// Checks the settings, and starts the worker.
    ///
    /// # Errors
    /// Returns an error if a setting is invalid, or there is no encoder.
    pub(super) fn begin(
        arguments: &BlurArguments,
        places: &'a Places,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, Box<dyn Error>> {
        let setup = BlurSetup {
            properties: arguments.covers.clone(),
        };
        let settings = WorkerSettings {
            first: Request::SetUpBlur(setup.clone()),
            limit: None,
            stop: stop.clone(),
        };
        let started = (!arguments.check_only).then(|| Worker::start(&settings));
        let worker = started.transpose().map_err(|error| error.message)?;
        Ok(Self {
            places,
            setup,
            is_forced: arguments.force,
            worker: worker.map(|(worker, _)| RefCell::new(worker)),
            stop: stop.clone(),
        })
    }

    /// Writes the copy of a video, unless it is up to date. Returns a message about streams that were
    /// left out, if there are some.
    ///
    /// # Errors
    /// Returns an error if the video has no record, cannot be copied, or the copy would replace
    /// another file.
    pub(super) fn bring(&self, video: &TrackedVideo) -> Result<Option<String>, Box<dyn Error>> {
        let result = video.result.as_ref().map_err(Clone::clone)?;
        if !video.is_whole {
            return Err("videos are copied as a whole. Remove `start` and `stop` from its row in the list, and cut the finished copy".into());
        }
        let copy = self.places.copy(&video.id, &video.path);
        let note = self.places.note(&video.id);
        let before = Note::read(&note);
        let there = fingerprint(&copy);
        let is_current = before.version == VERSION
            && before.record == result.key
            && there.is_some()
            && before.copies.first() == there.as_ref();
        let Some(worker) = &self.worker else {
            return match is_current {
                true => Ok(before.left_out),
                false => Err("it is not there, or was changed. Run without --check-only".into()),
            };
        };
        if is_current && before.properties == self.setup.properties && !self.is_forced {
            return Ok(before.left_out);
        }
        let is_ours = there.as_ref().is_some_and(|it| before.copies.contains(it));
        let was_there = fs::symlink_metadata(&copy).is_ok();
        if !is_ours && !self.is_forced && was_there {
            return Err(
                "it exists, and `facetrack blur` has not written it. Move it away, or add --force to replace it".into(),
            );
        }
        let folder = copy.parent().filter(|it| !it.as_os_str().is_empty());
        folder.map_or(Ok(()), |folder| {
            fs::create_dir_all(folder).map_err(StoreError::at(folder))
        })?;
        let replacement = Replacement::begin(&copy).map_err(StoreError::at(&copy))?;
        let notes = note.parent().unwrap_or(&self.places.records);
        fs::create_dir_all(notes).map_err(StoreError::at(notes))?;
        let covers = Replacement::begin(&note).map_err(StoreError::at(&note))?;
        let request = BlurRequest {
            video: video.path.clone(),
            record: video.record.clone(),
            output: replacement.written().to_owned(),
            container: Container::of(&copy).unwrap_or_default(),
            covers: covers.written().to_owned(),
        };
        let frames = result.outcome.frames;
        let left_out = self.follow(&mut worker.borrow_mut(), request, frames, &copy)?;
        let new = fingerprint(replacement.written());
        let made = Note {
            version: VERSION,
            record: result.key.clone(),
            properties: self.setup.properties.clone(),
            copies: new
                .into_iter()
                .chain(there.clone().filter(|_| is_ours))
                .collect(),
            left_out,
        };
        let mut text = serde_json::to_vec(&made)?;
        text.push(b'\n');
        let frames = fs::read(covers.written());
        text.extend(frames.map_err(StoreError::at(&note))?);
        drop(covers);
        let is_there = fs::symlink_metadata(&copy).is_ok();
        if !self.is_forced && (fingerprint(&copy) != there || is_there != was_there) {
            return Err("it was changed while the copy was made. Move it away".into());
        }
        places::write(&note, &text)?;
        replacement.finish().map_err(StoreError::at(&copy))?;
        Ok(made.left_out)
    }

    /// Lets the worker copy a video of a number of frames, and shows its progress. Returns its message.
    fn follow(
        &self,
        worker: &mut Worker,
        request: BlurRequest,
        frames: u64,
        copy: &Path,
    ) -> Result<Option<String>, Box<dyn Error>> {
        worker.send(&Request::Blur(Box::new(request)))?;
        let bar = bar(frames, copy);
        let mut is_stopping = false;
        let outcome = loop {
            match worker.answer(POLL) {
                Ok(Answer::Done(outcome)) => break *outcome,
                Ok(Answer::Progress(progress)) => bar.set_position(progress.frames),
                Ok(_) | Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => return Err(worker.end().into()),
            }
            if self.stop.load(Ordering::Relaxed) && !std::mem::replace(&mut is_stopping, true) {
                worker.send(&Request::Stop)?;
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
}

impl Note {
    /// The note at a path; an empty one if there is none.
    fn read(path: &Path) -> Self {
        let first = lines(path).ok().and_then(|mut lines| lines.next()?.ok());
        let note = first.and_then(|line| serde_json::from_str(&line).ok());
        note.unwrap_or_default()
    }
}

/// What is covered in the frames of a copy.
///
/// # Errors
/// Returns an error if the note on the copy cannot be read, or is on another file.
pub(super) fn covered_frames(note: &Path, copy: &Path) -> Result<Vec<CoveredFrame>, String> {
    let is_of_copy = |found| Note::read(note).copies.first() == Some(&found);
    if !fingerprint(copy).is_some_and(is_of_copy) {
        return Err(format!("{} was changed meanwhile", copy.display()));
    }
    let at = |error: &dyn Error| format!("{}: {error}", note.display());
    let lines = lines(note).map_err(|error| at(&error))?.skip(1);
    let parse = |line: io::Result<String>| {
        let line = line.map_err(|error| at(&error))?;
        serde_json::from_str(&line).map_err(|error| at(&error))
    };
    lines.map(parse).collect()
}

fn lines(note: &Path) -> io::Result<impl Iterator<Item = io::Result<String>>> {
    let mut file = BufReader::new(file::open(note)?);
    Ok(std::iter::from_fn(move || {
        let mut line = String::new();
        match file.by_ref().take(MAX_LINE).read_line(&mut line) {
            Ok(0) => None,
            read => Some(read.map(|_| line)),
        }
    }))
}

fn fingerprint(path: &Path) -> Option<String> {
    let mut file: File = file::open(path).ok()?;
    container::fingerprint(&mut file).ok()
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
