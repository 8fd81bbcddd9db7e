// SPDX-License-Identifier: MPL-2.0
//! Long videos, which are tracked in segments at the same time.
//!
//! The segments are in the folder for unfinished files, each with a record and a status file of its
//! own, until the record of the whole video is done. So a run that was interrupted continues with
//! the segments that are left.
//!
//! Segments are joined only if each begins exactly where the one before ends, and none is damaged.
//! Otherwise the video is tracked as a whole. Messages call them parts, as `--segment` does.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use facetrack::record::joining;
use facetrack_assets::file::{is_full, remove_if_there, sha256};
use facetrack_assets::lock::lock;
use facetrack_jobs::{Outcome, Ready, Segment, Status};

use super::key;
use super::names;
use super::plan::VideoJob;
use super::status_file::StatusFile;
use super::video::Video;
use super::video_lock::VideoLock;

/// A video in segments.
#[derive(Debug)]
pub(super) struct SegmentedVideo {
    start: Instant,
    segments: Vec<Video>,
    progress: Mutex<Progress>,
}

/// Progress of a video in segments.
#[derive(Debug)]
struct Progress {
    /// The video, and its lock, which is held until the record is done.
    video: Option<(VideoJob, VideoLock)>,
    /// The status of each segment that is done.
    done: Vec<Option<StatusFile>>,
    /// Reason why the segments cannot be joined.
    misfit: Option<String>,
}

/// A segment to track.
#[derive(Debug)]
pub(super) struct SegmentJob {
    pub video: Arc<SegmentedVideo>,
    /// Number of the segment, from 0.
    pub number: usize,
}

impl SegmentJob {
    /// The segment as a video.
    pub(super) fn segment(&self) -> &Video {
        &self.video.segments[self.number]
    }

    /// Number of the segment, from 0, and their count.
    pub(super) fn position(&self) -> (usize, usize) {
        (self.number, self.video.segments.len())
    }

    /// Returns the status of the segment if an earlier run has tracked it and nothing has changed
    /// since. If the segments cannot be joined, any status is returned, because this segment need
    /// not be tracked then.
    pub(super) fn known(&self, key: &str) -> Option<Box<StatusFile>> {
        if lock(&self.video.progress).misfit.is_some() {
            return Some(Box::default());
        }
        let status = StatusFile::read(&self.segment().record).ok()??;
        let is_valid = status.key == key && status.outcome.status.has_record();
        let is_valid = is_valid && self.digest(&status).is_ok_and(|it| it == status.digest);
        is_valid.then_some(status)
    }

    /// Writes the status of the segment.
    ///
    /// # Errors
    /// Returns an error if the status file cannot be written.
    pub(super) fn keep(&self, status: &StatusFile) -> io::Result<()> {
        let status = StatusFile {
            digest: self.digest(status)?,
            ..status.clone()
        };
        status.write(&self.segment().record)
    }

    /// Compares the segment with its neighbours. After the last one, joins the records and returns
    /// the video with its status; `None` in place of a status if it has to be tracked as a whole.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub(super) fn finish(
        &self,
        status: StatusFile,
        video: &Video,
        ready: &Ready,
    ) -> io::Result<Option<(VideoJob, VideoLock, Option<StatusFile>)>> {
        let (done, misfit, job_and_lock) = {
            let progress = &mut *lock(&self.video.progress);
            progress.done[self.number] = Some(status);
            progress.misfit = progress
                .misfit
                .take()
                .or(misfit(&progress.done, self.number));
            let Some(done) = progress.done.iter().cloned().collect::<Option<Vec<_>>>() else {
                return Ok(None);
            };
            (done, progress.misfit.clone(), progress.video.take())
        };
        let Some((mut job, lock)) = job_and_lock else {
            return Ok(None);
        };
        let joined = match misfit {
            Some(reason) => Err(reason),
            None => self.video.joined(&done, &video.record)?,
        };
        let status = joined.map(|outcome| StatusFile {
            seconds: self.video.start.elapsed().as_secs_f64(),
            attempts: done.iter().map(|it| it.attempts).max().unwrap_or(0),
            ..StatusFile::new(&job.key, video, ready, outcome)
        });
        let status = status.map_err(|reason| job.whole = Some(reason)).ok();
        Ok(Some((job, lock, status)))
    }

    /// A hash of the status and the record of the segment.
    fn digest(&self, status: &StatusFile) -> io::Result<String> {
        let has_record = status.outcome.status.has_record() && status.outcome.frames > 0;
        let status = StatusFile {
            digest: String::new(),
            ..status.clone()
        };
        let mut text = serde_json::to_string(&status)?;
        if has_record {
            text += &key::hash_of_file(&self.segment().record)?;
        }
        Ok(sha256(text.as_bytes()))
    }
}

impl SegmentedVideo {
    /// Divides a video into segments.
    pub(super) fn divide(
        job: VideoJob,
        lock: VideoLock,
        video: &Video,
        segments: &[Segment],
    ) -> impl Iterator<Item = SegmentJob> {
        let own = |(number, segment): (usize, &Segment)| Video {
            segment: *segment,
            record: names::segment(&video.record, number),
            ..video.clone()
        };
        let count = segments.len();
        let video = Arc::new(Self {
            start: Instant::now(),
            segments: segments.iter().enumerate().map(own).collect(),
            progress: Mutex::new(Progress {
                video: Some((job, lock)),
                done: vec![None; count],
                misfit: None,
            }),
        });
        (0..count).map(move |number| SegmentJob {
            video: video.clone(),
            number,
        })
    }

    /// Joins the records. Returns the outcome of the whole video, or the reason why they cannot be
    /// joined.
    fn joined(
        &self,
        segments: &[StatusFile],
        record: &Path,
    ) -> io::Result<Result<Outcome, String>> {
        let outcome = outcome(segments);
        if !outcome.status.has_record() {
            return Ok(Ok(outcome));
        }
        match self.join(segments, record) {
            Ok(reason) => Ok(reason.map_or(Ok(outcome), Err)),
            Err(error) if is_full(&error) => Err(error),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Writes the record. Returns why it lacks a part of the video, if it does.
    fn join(&self, segments: &[StatusFile], record: &Path) -> io::Result<Option<String>> {
        let joined = names::next(record);
        remove_if_there(&joined)?;
        let mut file = BufWriter::new(File::create_new(&joined)?);
        let stated = segments.iter().find_map(|segment| segment.outcome.stated);
        let segments = self.segments.iter().zip(segments);
        let segments = segments.map(|(video, status)| joining::Part {
            record: video.record.clone(),
            before: status.outcome.before.clone(),
        });
        let segments: Vec<_> = segments.collect();
        let reason = joining::join(&segments, stated.unwrap_or_default(), &mut file)?;
        file.get_ref().sync_all()?;
        Ok(reason)
    }
}

/// Returns the reason why a segment cannot be joined with its neighbours, as far as these are done.
fn misfit(segments: &[Option<StatusFile>], number: usize) -> Option<String> {
    let outcome = |number: usize| {
        let outcome = &segments.get(number)?.as_ref()?.outcome;
        outcome.status.has_record().then_some(outcome)
    };
    let (own, name) = (outcome(number)?, number + 1);
    if own.frames == 0 {
        return Some(format!("part {name} has no frame"));
    }
    if own.decode_errors + own.error_frames > 0 {
        return Some(format!("part {name} is damaged"));
    }
    let gap = |segment: usize| {
        let (before, after) = (outcome(segment.checked_sub(1)?)?, outcome(segment)?);
        let is_exact = joining::goes_on(&before.last, &after.before);
        (!is_exact).then(|| {
            format!(
                "part {} does not begin where part {segment} ends",
                segment + 1
            )
        })
    };
    gap(number).or_else(|| gap(number + 1))
}

/// Adds up the outcomes of the segments.
fn outcome(segments: &[StatusFile]) -> Outcome {
    let outcomes = || segments.iter().map(|segment| &segment.outcome);
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
    let message = segments[failed].outcome.message.clone().unwrap_or_default();
    Outcome {
        status: segments[failed].outcome.status,
        cause: segments[failed].outcome.cause,
        message: Some(format!(
            "part {} of {}: {message}",
            failed + 1,
            segments.len()
        )),
        ..whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_decides_for_the_whole() {
        let segment = |status, frames, message: Option<&str>| StatusFile {
            outcome: Outcome {
                status,
                frames,
                message: message.map(str::to_owned),
                ..Outcome::default()
            },
            ..StatusFile::default()
        };
        let good = segment(Status::Complete, 10, None);
        let empty = segment(Status::Truncated, 0, None);
        let whole = outcome(&[good.clone(), good.clone(), empty]);
        assert_eq!((whole.status, whole.frames), (Status::Complete, 20));
        let failed = segment(Status::Failed, 0, Some("no luck"));
        let both = outcome(&[good, failed]);
        assert_eq!(both.status, Status::Failed);
        assert_eq!(both.message.as_deref(), Some("part 2 of 2: no luck"));
    }
}
