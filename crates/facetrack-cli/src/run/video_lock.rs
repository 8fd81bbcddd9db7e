// SPDX-License-Identifier: MPL-2.0
//! Locks: a run locks a file in the folder for unfinished files while it tracks a video. If the run
//! is killed, the file stays, so that other runs know the folder as one of this command.
//!
//! A record and its status file are replaced together, at the end of an attempt:
//!
//! 1. The next record is whole and on disk, in the folder.
//! 2. Its status file is written there, under the name of the next record. From here on, the attempt
//!    counts.
//! 3. The next record is renamed to the record, then its status file to the status file.
//! 4. The rest of the folder is removed.
//!
//! If the run is killed before step 2, the earlier record and its status file remain. If it is
//! killed later, the next run first does the missing steps.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use facetrack_assets::file::{remove_if_there, rename_new, sync_folder};
use facetrack_assets::lock;
use facetrack_jobs::Status;

use super::names;
use super::status_file::StatusFile;

/// Maximum number of times that the folder is created again because another run has removed it
/// meanwhile.
const ATTEMPTS: usize = 10;

/// Treatment of a record that exists when the next one is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Existing {
    /// The record is from another program and is kept.
    Kept,
    Replaced,
}

/// A video that only this run tracks.
#[derive(Debug)]
pub(super) struct VideoLock {
    /// Locked.
    _file: File,
    record: PathBuf,
}

/// Completes the replacement that a killed run has begun, and removes its folder if that is empty.
///
/// # Errors
/// Returns the error of the system.
pub(super) fn recover(record: &Path) -> io::Result<()> {
    if !names::is_begun(record) {
        // Removing fails if the folder does not exist or is not empty.
        let _ = fs::remove_dir(names::folder(record));
        return Ok(());
    }
    VideoLock::new(record)?.map_or(Ok(()), |lock| lock.release())
}

impl VideoLock {
    /// Locks the video of `record`. `None` if another run tracks the video now.
    ///
    /// # Errors
    /// Returns an error if the lock cannot be created.
    pub(super) fn new(record: &Path) -> io::Result<Option<Self>> {
        for _ in 0..ATTEMPTS {
            create_folder(record)?;
            let file = match lock::try_lock_file(&names::lock_file(record)) {
                // Another run has removed the folder meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                file => file?,
            };
            let video = Self {
                _file: file,
                record: record.to_owned(),
            };
            video.recover()?;
            return Ok(Some(video));
        }
        Ok(None)
    }

    fn recover(&self) -> io::Result<()> {
        let Some(status_file) = StatusFile::of_next(&self.record) else {
            return Ok(());
        };
        let is_known = StatusFile::read(&self.record).is_ok_and(|known| known.is_some());
        let existing = if is_known {
            Existing::Replaced
        } else {
            Existing::Kept
        };
        match self.replace(&status_file, existing) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            replaced => replaced,
        }
    }

    /// Removes what earlier attempts have left.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub(super) fn clear(&self) -> io::Result<()> {
        names::clear(&self.record)
    }

    /// Gives up the lock. The status file and the record stay, and so do unfinished files.
    ///
    /// # Errors
    /// Returns an error if the lock cannot be removed.
    pub(super) fn release(&self) -> io::Result<()> {
        names::remove_empty(&self.record)
    }

    /// Replaces the status file, and the record if there is a next one.
    ///
    /// # Errors
    /// Returns [`ErrorKind::AlreadyExists`] if an existing record is kept, or the error of the
    /// system.
    pub(super) fn finish(&self, status_file: &StatusFile, existing: Existing) -> io::Result<()> {
        let next = names::next(&self.record);
        if !status_file.last().outcome.status.has_record() || status_file.later.is_some() {
            remove_if_there(&next)?;
        }
        status_file.write(&next)?;
        self.replace(status_file, existing)?;
        self.release()
    }

    fn replace(&self, status_file: &StatusFile, existing: Existing) -> io::Result<()> {
        let next = names::next(&self.record);
        let renamed = match existing {
            Existing::Kept => rename_new(&next, &self.record),
            Existing::Replaced => fs::rename(&next, &self.record),
        };
        match renamed {
            // There is none, or it has its name already.
            Err(error) if error.kind() == ErrorKind::NotFound => (),
            Err(error) => {
                // The attempt does not count after all.
                remove_if_there(&names::status_file(&next))?;
                return Err(error);
            }
            Ok(()) => (),
        }
        fs::rename(names::status_file(&next), names::status_file(&self.record))?;
        sync_folder(&self.record)?;
        // Parts stay with a failed video, for another attempt.
        if status_file.last().outcome.status != Status::Failed {
            self.clear()?;
        }
        Ok(())
    }
}

fn create_folder(record: &Path) -> io::Result<()> {
    match fs::create_dir(names::folder(record)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use facetrack_jobs::Outcome;

    fn status_file(key: &str, status: Status) -> StatusFile {
        StatusFile {
            key: key.to_owned(),
            outcome: Outcome::without_record(status, ""),
            ..StatusFile::default()
        }
    }

    fn key(record: &Path) -> Option<String> {
        StatusFile::read(record)
            .unwrap()
            .map(|status_file| status_file.key)
    }

    #[test]
    fn a_record_and_its_status_file_are_replaced_together() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("a.json");
        for (name, status, text) in [
            ("first", Status::Complete, "first"),
            ("second", Status::Truncated, "second"),
            ("third", Status::Failed, "second"),
        ] {
            let lock = VideoLock::new(&record).unwrap().expect("no other run");
            assert!(names::is_begun(&record));
            assert!(VideoLock::new(&record).unwrap().is_none());
            fs::write(names::next(&record), name).unwrap();
            lock.finish(&status_file(name, status), Existing::Replaced)
                .unwrap();
            assert_eq!(key(&record).as_deref(), Some(name));
            assert_eq!(fs::read_to_string(&record).unwrap(), text);
            assert!(!names::folder(&record).exists());
        }
    }

    #[test]
    fn a_record_that_appears_meanwhile_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("a.json");
        let lock = VideoLock::new(&record).unwrap().expect("no other run");
        fs::write(names::next(&record), "own").unwrap();
        fs::write(&record, "other").unwrap();
        let finished = lock.finish(&status_file("k", Status::Complete), Existing::Kept);
        assert_eq!(finished.unwrap_err().kind(), ErrorKind::AlreadyExists);
        drop(lock);
        recover(&record).unwrap();
        assert_eq!(fs::read_to_string(&record).unwrap(), "other");
        assert_eq!(key(&record), None);
    }

    /// A kill is tested at every step that changes a name.
    #[test]
    fn a_replacement_that_was_killed_is_completed() {
        let folder = tempfile::tempdir().unwrap();
        for step in 0..3 {
            let record = folder.path().join(format!("{step}.json"));
            fs::write(&record, "old").unwrap();
            fs::write(names::status_file(&record), r#"{"key":"old"}"#).unwrap();
            let lock = VideoLock::new(&record).unwrap().expect("no other run");
            let next = names::next(&record);
            fs::write(&next, "new").unwrap();
            if step > 0 {
                status_file("new", Status::Complete).write(&next).unwrap();
            }
            if step > 1 {
                fs::rename(&next, &record).unwrap();
            }
            drop(lock);
            recover(&record).unwrap();
            let want = if step > 0 { "new" } else { "old" };
            assert_eq!(fs::read_to_string(&record).unwrap(), want, "{step}");
            assert_eq!(key(&record).as_deref(), Some(want), "{step}");
            assert_eq!(names::folder(&record).exists(), step == 0);
        }
    }
}
