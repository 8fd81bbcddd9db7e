// SPDX-License-Identifier: MPL-2.0
//! Long videos, which are tracked in parts at the same time.
//!
//! The parts are in the folder for unfinished files, each with a record and a marker of its own,
//! until the record of the whole video is done. So a run that was interrupted continues with the
//! parts that are left.
//!
//! Parts are joined only if each begins exactly where the one before ends, and none is damaged.
//! Otherwise the video is tracked as a whole.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use facetrack::record::joining;
use facetrack_assets::file::{remove_if_there, sha256};
use facetrack_assets::lock::lock;
use facetrack_jobs::{Outcome, Ready, Segment, Status};

use super::inputs::Video;
use super::key;
use super::names;
use super::plan::VideoJob;
use super::status_file::StatusFile;
use super::video_lock::VideoLock;

/// A video in parts.
#[derive(Debug)]
pub struct SegmentedVideo {
    /// Index of the video.
    pub index: usize,
    key: String,
    record: PathBuf,
    start: Instant,
    parts: Vec<Video>,
    progress: Mutex<Progress>,
}

/// How far a video in parts is.
#[derive(Debug)]
struct Progress {
    /// The video, and its claim, which is held until the record is done.
    video: Option<(VideoJob, VideoLock)>,
    /// The accounts of the parts that are done.
    done: Vec<Option<StatusFile>>,
    /// Why the parts cannot be joined.
    misfit: Option<String>,
}

/// All parts of a video are done.
#[derive(Debug)]
pub struct Finished {
    pub task: VideoJob,
    pub claim: VideoLock,
    /// The account of the video; `None` if it has to be tracked as a whole.
    pub marker: Option<StatusFile>,
}

/// A part of a video to track.
#[derive(Debug)]
pub struct SegmentJob {
    pub group: Arc<SegmentedVideo>,
    pub number: usize,
    /// Attempts that ended with the worker.
    pub attempts: u32,
}

impl SegmentJob {
    /// The part as a video.
    pub fn video(&self) -> &Video {
        &self.group.parts[self.number]
    }

    /// Key of the record of the part.
    pub fn key(&self) -> String {
        format!("{} {}", self.group.key, self.number)
    }

    /// Number of parts of the video.
    pub fn count(&self) -> usize {
        self.group.parts.len()
    }

    /// The account of an earlier run that has tracked the part, if neither it nor the record was
    /// changed since then.
    pub fn known(&self) -> Option<Box<StatusFile>> {
        let marker = StatusFile::read(&self.video().record).ok()??;
        let is_valid = marker.key == self.key() && marker.outcome.status.has_record();
        let is_valid = is_valid && self.digest(&marker).is_ok_and(|it| it == marker.digest);
        is_valid.then_some(marker)
    }

    /// Keeps the account of the part.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, marker: &StatusFile) -> io::Result<()> {
        let digest = self.digest(marker)?;
        let marker = StatusFile {
            digest,
            ..marker.clone()
        };
        marker.write(&self.video().record)
    }

    /// A hash of the account and the record of the part.
    fn digest(&self, marker: &StatusFile) -> io::Result<String> {
        let account = StatusFile {
            digest: String::new(),
            ..marker.clone()
        };
        let has_record = marker.outcome.status.has_record() && marker.outcome.frames > 0;
        let record = if has_record {
            key::hash_of_file(&self.video().record)?
        } else {
            String::new()
        };
        let text = serde_json::to_string(&account)? + &record;
        Ok(sha256(text.as_bytes()))
    }
}

impl SegmentedVideo {
    /// Divides a video into parts.
    pub fn divide(
        task: VideoJob,
        claim: VideoLock,
        video: &Video,
        parts: &[Segment],
    ) -> Vec<SegmentJob> {
        let own = |(number, part): (usize, &Segment)| Video {
            segment: *part,
            record: names::part(&video.record, number),
            ..video.clone()
        };
        let parts: Vec<_> = parts.iter().enumerate().map(own).collect();
        let count = parts.len();
        let group = Arc::new(Self {
            index: task.index,
            key: task.key.clone(),
            record: video.record.clone(),
            start: Instant::now(),
            progress: Mutex::new(Progress {
                video: Some((task, claim)),
                done: vec![None; count],
                misfit: None,
            }),
            parts,
        });
        let task = |number| SegmentJob {
            group: group.clone(),
            number,
            attempts: 0,
        };
        (0..count).map(task).collect()
    }

    /// Whether the parts cannot be joined. Then the others need not be tracked.
    pub fn has_misfit(&self) -> bool {
        lock(&self.progress).misfit.is_some()
    }

    /// Takes the account of a part, and compares it with its neighbours. After the last part, joins
    /// the records of all parts.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn finish_part(
        &self,
        number: usize,
        marker: StatusFile,
        video: &Video,
        ready: &Ready,
    ) -> io::Result<Option<Finished>> {
        let (parts, misfit, video_and_claim) = {
            let progress = &mut *lock(&self.progress);
            progress.done[number] = Some(marker);
            progress.misfit = progress.misfit.take().or(misfit(&progress.done, number));
            let Some(parts) = progress.done.iter().cloned().collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            (parts, progress.misfit.clone(), progress.video.take())
        };
        let Some((mut task, claim)) = video_and_claim else {
            return Ok(None);
        };
        let joined = match misfit {
            Some(reason) => Err(reason),
            None => self.joined(&parts)?,
        };
        let marker = match joined {
            Ok(outcome) => Some(StatusFile {
                seconds: self.start.elapsed().as_secs_f64(),
                attempts: parts.iter().map(|part| part.attempts).max().unwrap_or(0),
                ..StatusFile::new(&self.key, video, ready, outcome)
            }),
            Err(reason) => {
                task.whole = Some(reason);
                None
            }
        };
        Ok(Some(Finished {
            task,
            claim,
            marker,
        }))
    }

    /// The outcome of the whole video, after joining the records; or why they cannot be joined.
    fn joined(&self, parts: &[StatusFile]) -> io::Result<Result<Outcome, String>> {
        let outcome = outcome(parts);
        if !outcome.status.has_record() {
            return Ok(Ok(outcome));
        }
        match self.join(parts) {
            Ok(reason) => Ok(reason.map_or(Ok(outcome), Err)),
            Err(error) if error.kind() == io::ErrorKind::StorageFull => Err(error),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Writes the record. Returns why it lacks a part of the video, if it does.
    fn join(&self, parts: &[StatusFile]) -> io::Result<Option<String>> {
        let joined = names::next(&self.record);
        remove_if_there(&joined)?;
        let mut file = BufWriter::new(File::create_new(&joined)?);
        let stated = parts.iter().find_map(|part| part.outcome.stated);
        let parts = self.parts.iter().zip(parts);
        let parts = parts.map(|(video, marker)| joining::Part {
            record: video.record.clone(),
            before: marker.outcome.before.clone(),
        });
        let parts: Vec<_> = parts.collect();
        let reason = joining::join(&parts, stated.unwrap_or_default(), &mut file)?;
        file.get_ref().sync_all()?;
        Ok(reason)
    }
}

/// Why a part and its neighbours cannot be joined, as far as they are done.
fn misfit(parts: &[Option<StatusFile>], number: usize) -> Option<String> {
    let outcome = |number: usize| {
        let outcome = &parts.get(number)?.as_ref()?.outcome;
        outcome.status.has_record().then_some(outcome)
    };
    let (own, name) = (outcome(number)?, number + 1);
    if own.frames == 0 {
        return Some(format!("part {name} has no frame"));
    }
    if own.decode_errors + own.error_frames > 0 {
        return Some(format!("part {name} is damaged"));
    }
    let gap = |part: usize| {
        let (before, after) = (outcome(part.checked_sub(1)?)?, outcome(part)?);
        let is_exact = joining::goes_on(&before.last, &after.before);
        (!is_exact).then(|| format!("part {} does not begin where part {part} ends", part + 1))
    };
    gap(number).or_else(|| gap(number + 1))
}

/// Adds up the outcomes of the parts.
fn outcome(parts: &[StatusFile]) -> Outcome {
    let outcomes = || parts.iter().map(|part| &part.outcome);
    let count = |of: fn(&Outcome) -> u64| outcomes().map(of).sum();
    let whole = Outcome {
        status: Status::Complete,
        expected_frames: outcomes().find_map(|it| it.stated?.frames),
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
        let part = |status, frames, message: Option<&str>| StatusFile {
            outcome: Outcome {
                status,
                frames,
                message: message.map(str::to_owned),
                ..Outcome::default()
            },
            ..StatusFile::default()
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
