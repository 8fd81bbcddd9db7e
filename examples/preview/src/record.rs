// SPDX-License-Identifier: MPL-2.0
//! A record that is shown over its video.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use facetrack::findings::{Finding, Findings};
use facetrack::replay::{Replay, Times};
use gst::ClockTime;

/// The frames of a record.
pub struct Record {
    pub path: PathBuf,
    /// Frames with a time: their stream times and numbers, in the order of the times.
    frames: Vec<(ClockTime, u64)>,
    /// Places that deserve a look, in the order of their frames; empty until they are searched.
    pub findings: Vec<Finding>,
}

/// A direction in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Next,
    Previous,
}

impl Record {
    /// The record in a file.
    ///
    /// # Errors
    /// Returns an error if the file is no record, or has no times.
    pub fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        let replay = read(path)?;
        let start = start(&replay);
        let frames = replay.frames();
        let frames = frames.filter_map(|(number, time)| Some((stream_time(time?, start), number)));
        let mut frames: Vec<_> = frames.collect();
        frames.sort_unstable();
        if frames.is_empty() {
            return Err(format!("{}: its frames have no times", path.display()).into());
        }
        Ok(Self {
            path: path.to_owned(),
            frames,
            findings: Vec::new(),
        })
    }

    /// The time of the frame that is so many frames after the one at a time, or of the last one in
    /// this direction.
    pub fn further(&self, time: ClockTime, frames: i64) -> Option<ClockTime> {
        let later = time + TOLERANCE;
        let before = self
            .frames
            .partition_point(|(it, _)| *it + TOLERANCE < time) as i64;
        let after = self.frames.partition_point(|(it, _)| *it <= later) as i64;
        let target = if frames < 0 {
            before + frames
        } else {
            after + frames - 1
        };
        let target = target.clamp(0, self.frames.len() as i64 - 1);
        self.frames.get(target as usize).map(|(time, _)| *time)
    }

    /// The time of the last frame.
    pub fn last(&self) -> Option<ClockTime> {
        self.frames.last().map(|(time, _)| *time)
    }

    /// The first frame of the next findings after a time, or of the last ones before it: its time,
    /// its number and the descriptions of the findings.
    pub fn finding(&self, now: ClockTime, order: Order) -> Option<(ClockTime, u64, String)> {
        let starts = self.findings.iter().map(|finding| finding.first.number);
        let starts = starts.filter_map(|number| Some((self.time(number)?, number)));
        let (time, number) = match order {
            Order::Next => starts.filter(|(time, _)| *time > now + TOLERANCE).min(),
            Order::Previous => starts.filter(|(time, _)| *time + TOLERANCE < now).max(),
        }?;
        let here = self.findings.iter().filter(|it| it.first.number == number);
        let texts: Vec<_> = here.map(|finding| finding.text.as_str()).collect();
        Some((time, number, texts.join("\n")))
    }

    fn time(&self, number: u64) -> Option<ClockTime> {
        let frame = self.frames.iter().find(|(_, it)| *it == number);
        frame.map(|(time, _)| *time)
    }

    /// The number of the frame at a time; `None` if the record does not have it.
    pub fn number(&self, time: ClockTime) -> Option<u64> {
        let after = self.frames.partition_point(|(it, _)| *it < time);
        let near = self.frames[after.saturating_sub(1)..].iter().take(2);
        let (nearest, number) = near.min_by_key(|(it, _)| it.absdiff(time))?;
        (nearest.absdiff(time) <= TOLERANCE).then_some(*number)
    }
}

/// Searches the record in a file for places that deserve a look.
///
/// # Errors
/// Returns an error if the file is damaged.
pub fn findings(path: &Path) -> Result<Vec<Finding>, String> {
    let mut replay = read(path)?;
    let mut findings = Findings::new(replay.fps());
    let frames: Vec<_> = replay.frames().collect();
    for (place, (number, pts)) in frames.into_iter().enumerate() {
        // No finding depends on the unit of positions.
        let report = replay.report(place, (0, 0));
        let report = report.map_err(|error| format!("{}: {error}", path.display()))?;
        findings.add(number, pts, report.as_ref());
    }
    Ok(findings.finish())
}

/// Maximum difference between the times of a frame and of its record, as in trackjsonload.
const TOLERANCE: ClockTime = ClockTime::from_mseconds(2);

/// Opens a record.
///
/// # Errors
/// Returns an error with the path.
fn read(path: &Path) -> Result<Replay<BufReader<File>>, String> {
    let named = |error: &dyn Error| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| named(&error))?;
    Replay::open(BufReader::new(file)).map_err(|error| named(&error))
}

/// The stream time at which the time of a record is 0, ns.
fn start<S: std::io::Read + std::io::Seek>(replay: &Replay<S>) -> u64 {
    match replay.times() {
        Times::Timestamps => 0,
        Times::Stream(start) => start,
    }
}

fn stream_time(time: u64, start: u64) -> ClockTime {
    ClockTime::from_nseconds(time.saturating_add(start))
}
