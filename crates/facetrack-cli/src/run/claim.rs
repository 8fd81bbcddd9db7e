// SPDX-License-Identifier: MPL-2.0
//! Claims: `<record>.done.partial` says that a video is being tracked, or that a run was killed
//! while it was. A record without a marker belongs to this command only if there is a claim.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use facetrack::file::{is_at, remove_if_there, sync_folder, with_suffix};
use facetrack_jobs::Status;

use super::marker::{self, Marker};
use super::parts;

/// Suffix of the name of an unfinished marker.
const PARTIAL: &str = ".partial";

/// How often a claim is opened again because another run has finished it meanwhile.
const ATTEMPTS: usize = 10;

/// A video that only this run tracks.
#[derive(Debug)]
pub struct Claim {
    /// Locked.
    file: File,
    record: PathBuf,
}

/// Whether a run has begun to track the video of `record`, and has not finished it.
pub fn exists(record: &Path) -> bool {
    path(record).exists()
}

fn path(record: &Path) -> PathBuf {
    with_suffix(&marker::path(record), PARTIAL)
}

impl Claim {
    /// Claims the video of `record`, and creates the folder of the record. `None` if another run
    /// tracks the video now.
    ///
    /// # Errors
    /// The claim cannot be created.
    pub fn new(record: &Path) -> io::Result<Option<Self>> {
        let path = path(record);
        if let Some(folder) = record.parent() {
            fs::create_dir_all(folder)?;
        }
        for _ in 0..ATTEMPTS {
            let mut options = File::options();
            options.write(true).create(true).truncate(false);
            let file = options.open(&path)?;
            // File systems without locks return another error; then two runs are not noticed.
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                return Ok(None);
            }
            if is_at(&file, &path)? {
                let record = record.to_owned();
                return Ok(Some(Self { file, record }));
            }
        }
        Ok(None)
    }

    /// Removes the marker of an earlier run: its record is about to change.
    ///
    /// # Errors
    /// The marker cannot be removed.
    pub fn outdate(&self) -> io::Result<()> {
        remove_if_there(&marker::path(&self.record))
    }

    /// Gives up the claim. The marker and the record stay.
    ///
    /// # Errors
    /// The claim cannot be removed.
    pub fn release(self) -> io::Result<()> {
        remove_if_there(&path(&self.record))
    }

    /// Turns the claim into the marker of the finished video.
    ///
    /// # Errors
    /// The marker cannot be written.
    pub fn finish(&self, marker: &Marker) -> io::Result<()> {
        let text = serde_json::to_string_pretty(marker)?;
        self.file.set_len(0)?;
        writeln!(&self.file, "{text}")?;
        self.file.sync_all()?;
        fs::rename(path(&self.record), marker::path(&self.record))?;
        self.remove_leftovers(marker.outcome.status)?;
        sync_folder(&self.record)
    }

    /// An unfinished record or parts of an earlier attempt are of no use if there is a later one.
    /// Parts stay with a failed video, for another attempt.
    fn remove_leftovers(&self, status: Status) -> io::Result<()> {
        if status != Status::Failed {
            parts::remove(&self.record)?;
        }
        remove_if_there(&with_suffix(&self.record, ".partial.old"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_becomes_a_marker() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("deep/a.json");
        let claim = Claim::new(&record).unwrap().expect("no other run");
        assert!(exists(&record));
        assert!(Claim::new(&record).unwrap().is_none());
        let marker = Marker {
            key: "k".to_owned(),
            attempts: 2,
            ..Marker::default()
        };
        claim.finish(&marker).unwrap();
        assert!(!exists(&record));
        assert_eq!(Marker::read(&record), Some(Box::new(marker)));
        let claim = Claim::new(&record).unwrap().expect("no other run");
        claim.outdate().unwrap();
        assert_eq!(Marker::read(&record), None);
        claim.release().unwrap();
        assert!(!exists(&record));
    }
}
