// SPDX-License-Identifier: MPL-2.0
//! Long videos, which are tracked in parts at the same time.
//!
//! The parts are in the folder for unfinished files, each with a record and a marker of its own,
//! until the record of the whole video is done. So a run that was interrupted continues with the
//! parts that are left.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use facetrack::file::remove_if_there;
use facetrack::lock::lock;
use facetrack::record::joining;
use facetrack_jobs::{Outcome, Part, Ready, Status};

use super::claim::Claim;
use super::inputs::Video;
use super::marker::Marker;
use super::names;
use super::plan::Task;

/// A video in parts.
#[derive(Debug)]
pub struct Group {
    pub task: Task,
    /// Held until the record is done.
    pub claim: Claim,
    record: PathBuf,
    start: Instant,
    parts: Vec<Video>,
    /// The accounts of the parts that are done.
    done: Mutex<Vec<Option<Marker>>>,
}

/// A part of a video to track.
#[derive(Debug)]
pub struct PartTask {
    pub group: Arc<Group>,
    pub number: usize,
    /// Attempts that ended with the worker.
    pub attempts: u32,
}

impl PartTask {
    /// The part as a video.
    pub fn video(&self) -> &Video {
        &self.group.parts[self.number]
    }

    /// Key of the record of the part.
    pub fn key(&self) -> String {
        format!("{} {}", self.group.task.key, self.number)
    }

    /// Number of parts of the video.
    pub fn count(&self) -> usize {
        self.group.parts.len()
    }

    /// The account of an earlier run that has tracked the part.
    pub fn known(&self) -> Option<Box<Marker>> {
        let record = &self.video().record;
        let marker = Marker::read(record).ok()??;
        let is_valid = marker.key == self.key() && marker.outcome.status.has_record();
        (is_valid && record.exists()).then_some(marker)
    }

    /// Keeps the account of the part.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, marker: &Marker) -> io::Result<()> {
        marker.write(&self.video().record)
    }
}

impl Group {
    /// Divides a video into parts.
    pub fn divide(task: Task, claim: Claim, video: &Video, parts: &[Part]) -> Vec<PartTask> {
        let own = |(number, part): (usize, &Part)| Video {
            part: *part,
            record: names::part(&video.record, number),
            ..video.clone()
        };
        let parts: Vec<_> = parts.iter().enumerate().map(own).collect();
        let count = parts.len();
        let group = Arc::new(Self {
            task,
            claim,
            record: video.record.clone(),
            start: Instant::now(),
            done: Mutex::new(vec![None; count]),
            parts,
        });
        let task = |number| PartTask {
            group: group.clone(),
            number,
            attempts: 0,
        };
        (0..count).map(task).collect()
    }

    /// Takes the account of a part. After the last part, returns the accounts of all parts.
    pub fn finish_part(&self, number: usize, marker: Marker) -> Option<Vec<Marker>> {
        let mut done = lock(&self.done);
        done[number] = Some(marker);
        done.iter().cloned().collect()
    }

    /// Joins the records of the parts, and returns the marker of the whole video.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn finish(
        &self,
        video: &Video,
        ready: &Ready,
        parts: &[Marker],
    ) -> io::Result<Box<Marker>> {
        let mut outcome = outcome(parts);
        if outcome.status.has_record() {
            outcome = self.joined(parts, outcome)?;
        }
        if outcome.message.is_some() && outcome.status == Status::Complete {
            outcome.status = Status::Truncated;
        }
        let marker = Box::new(Marker {
            seconds: self.start.elapsed().as_secs_f64(),
            attempts: parts.iter().map(|part| part.attempts).max().unwrap_or(0),
            ..Marker::new(&self.task.key, video, ready, outcome)
        });
        Ok(marker)
    }

    /// The outcome after joining the records. Those that cannot be joined are removed: the next
    /// attempt tracks the parts again.
    fn joined(&self, parts: &[Marker], outcome: Outcome) -> io::Result<Outcome> {
        match self.join(parts, outcome.expected_frames) {
            Ok(message) => Ok(Outcome { message, ..outcome }),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Err(error),
            Err(error) => {
                self.claim.clear()?;
                let message = format!("its parts cannot be joined: {error}");
                Ok(Outcome::without_record(Status::Failed, message))
            }
        }
    }

    /// Writes the record. Returns why it lacks a part of the video, if it does.
    fn join(&self, parts: &[Marker], stated: Option<u64>) -> io::Result<Option<String>> {
        let joined = names::next(&self.record);
        remove_if_there(&joined)?;
        let mut file = BufWriter::new(File::create_new(&joined)?);
        let nominal = parts.iter().find_map(|part| part.outcome.nominal_rate);
        let parts = self.parts.iter().zip(parts);
        let parts = parts.filter(|(_, marker)| marker.outcome.frames > 0);
        let parts = parts.map(|(video, marker)| joining::Part {
            record: video.record.clone(),
            before: marker.outcome.before.clone(),
        });
        let reason = joining::join(&parts.collect::<Vec<_>>(), nominal, stated, &mut file)?;
        file.get_ref().sync_all()?;
        Ok(reason)
    }
}

/// Adds up the outcomes of the parts. Joining the records shows whether the video is complete.
fn outcome(parts: &[Marker]) -> Outcome {
    let outcomes = || parts.iter().map(|part| &part.outcome);
    let count = |of: fn(&Outcome) -> u64| outcomes().map(of).sum();
    let whole = Outcome {
        status: Status::Complete,
        expected_frames: outcomes()
            .rfind(|it| it.frames > 0)
            .and_then(|it| it.expected_frames),
        frames: count(|it| it.frames),
        gap_frames: count(|it| it.gap_frames),
        error_frames: count(|it| it.error_frames),
        decode_errors: count(|it| it.decode_errors),
        faces: count(|it| it.faces),
        video_seconds: outcomes().map(|it| it.video_seconds).sum(),
        cpu_seconds: outcomes().map(|it| it.cpu_seconds).sum(),
        ..Outcome::default()
    };
    let Some(failed) = outcomes().position(|it| !it.status.has_record()) else {
        return whole;
    };
    let message = parts[failed].outcome.message.clone().unwrap_or_default();
    Outcome {
        status: parts[failed].outcome.status,
        cause: parts[failed].outcome.cause,
        message: Some(format!("part {} of {}: {message}", failed + 1, parts.len())),
        ..whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_decides_for_the_whole() {
        let part = |status, frames, message: Option<&str>| Marker {
            outcome: Outcome {
                status,
                frames,
                message: message.map(str::to_owned),
                ..Outcome::default()
            },
            ..Marker::default()
        };
        let good = part(Status::Complete, 10, None);
        let empty = part(Status::Truncated, 0, None);
        let whole = outcome(&[good.clone(), good.clone(), empty]);
        assert_eq!((whole.status, whole.frames), (Status::Complete, 20));
        let failed = part(Status::Failed, 0, Some("no luck"));
        let both = outcome(&[good, failed]);
        assert_eq!(both.status, Status::Failed);
        assert_eq!(both.message.as_deref(), Some("part 2 of 2: no luck"));
    }
}
