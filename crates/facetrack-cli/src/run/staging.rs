// SPDX-License-Identifier: MPL-2.0
//! Videos that are fetched to a local file before they are tracked: `--fetch`.

use std::env;
use std::error::Error;
use std::fs::{self, DirEntry, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use facetrack_assets::file;
use tempfile::TempDir;

use super::fetching::{FetchCommand, LOCAL};
use super::process_group::ProcessGroup;
use crate::pipe::LastLine;

/// Interval at which a running command is checked.
const POLL: Duration = Duration::from_millis(20);

/// Time for the guard of a command to end all programs of it. Our choice; it kills them.
const END: Duration = Duration::from_millis(500);

/// Prefix of the names of staging folders.
const PREFIX: &str = "facetrack-";

/// The lock of a staging folder. It contains the boot id of Linux, because locks of other machines
/// may not be visible on a shared disk.
const LOCK: &str = ".facetrack-run";

/// File with the boot id, and the length of the id with the newline.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const BOOT_ID_SIZE: u64 = 37;

/// Longest suffix of a video that its local file keeps. Our choice.
const SUFFIX: usize = 8;

/// Name of a local file, without its suffix.
const LOCAL_NAME: &str = "video";

/// Folder to which videos are fetched.
pub(super) struct Staging {
    command: FetchCommand,
    /// Time limit for a video.
    timeout: Option<Duration>,
    folder: TempDir,
    _lock: File,
}

/// A fetched video. It is removed when this is dropped, with everything next to it.
pub(super) struct Staged {
    _folder: TempDir,
    pub local: PathBuf,
}

impl Staging {
    /// A staging folder in the system's folder for temporary files (`TMPDIR`). Folders of killed
    /// runs are removed.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created.
    pub(super) fn new(command: FetchCommand, timeout: Option<Duration>) -> io::Result<Self> {
        remove_left(&env::temp_dir());
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir()?;
        Ok(Self {
            command,
            timeout,
            _lock: lock(folder.path())?,
            folder,
        })
    }

    /// Fetches a video, until `is_stopped`.
    ///
    /// # Errors
    /// Returns an error if the command fails or takes too long, or if the run ends.
    pub(super) fn fetch(
        &self,
        video: &Path,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Staged, String> {
        self.run(video, is_stopped).map_err(|reason| {
            let (video, program) = (video.display(), self.command.program());
            format!("{video} was not fetched: `{program}` {reason}")
        })
    }

    /// Runs the command. Each attempt has a folder of its own.
    fn run(&self, video: &Path, is_stopped: impl Fn() -> bool) -> Result<Staged, Box<dyn Error>> {
        let folder = TempDir::new_in(&self.folder)?;
        let local = folder.path().join(local_name(video));
        let mut command = self.command.command(video, &local)?;
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = ProcessGroup(command.stderr(Stdio::piped()).spawn()?);
        let errors = child.0.stderr.take();
        let errors = errors.ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        let last_words = LastLine::of(errors, |_| ());
        let ended = self.wait(&child, is_stopped);
        // Its guard ends the command.
        drop(child.0.stdin.take());
        child.ends_within(END);
        let status = child.end();
        ended?;
        let status = status?;
        if !status.success() {
            let said = last_words.get();
            let said = if said.is_empty() {
                "it printed no reason"
            } else {
                &said
            };
            return Err(format!("ended ({status}): {said}").into());
        }
        if !local.exists() {
            return Err(format!("has not created the file {LOCAL}").into());
        }
        Ok(Staged {
            _folder: folder,
            local,
        })
    }

    /// Waits until the command has ended.
    fn wait(
        &self,
        child: &ProcessGroup,
        is_stopped: impl Fn() -> bool,
    ) -> Result<(), &'static str> {
        let start = Instant::now();
        while !child.ends_within(POLL) {
            if is_stopped() {
                return Err("was stopped");
            }
            if self.timeout.is_some_and(|limit| start.elapsed() > limit) {
                return Err("took longer than --timeout");
            }
        }
        Ok(())
    }
}

/// Marks a staging folder as one of this run.
fn lock(folder: &Path) -> io::Result<File> {
    // It is locked before it gets its name. Otherwise another run could take it for a folder of a
    // killed run.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    // Without the boot id, no other run removes the folder.
    file.write_all(&boot_id().unwrap_or_default())?;
    file.as_file().lock()?;
    file.persist(folder.join(LOCK)).map_err(|error| error.error)
}

fn boot_id() -> io::Result<Vec<u8>> {
    fs::read(BOOT_ID)
}

/// Removes the staging folders of killed runs in `folder`.
fn remove_left(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(PREFIX) && is_left(&entry).unwrap_or(false) {
            // The next run tries again.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns true if an entry is a staging folder whose run was killed on this machine since it
/// started.
fn is_left(entry: &DirEntry) -> io::Result<bool> {
    if !entry.file_type()?.is_dir() {
        return Ok(false);
    }
    let mut lock = file::open(&entry.path().join(LOCK))?;
    let is_of_here = file::read_from(&mut lock, BOOT_ID_SIZE)? == boot_id()?;
    Ok(is_of_here && lock.try_lock().is_ok())
}

/// A short name, with the suffix of the video if that is an ordinary one.
fn local_name(video: &Path) -> String {
    let suffix = video.extension().map(|suffix| suffix.to_string_lossy());
    let is_ordinary =
        |it: &str| it.len() <= SUFFIX && it.chars().all(|c| c.is_ascii_alphanumeric());
    match suffix.filter(|suffix| is_ordinary(suffix)) {
        Some(suffix) => format!("{LOCAL_NAME}.{suffix}"),
        None => LOCAL_NAME.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_suffixes_are_left_out() {
        let name = |video: &str| local_name(Path::new(video));
        assert_eq!(name("https://host/a.mov"), "video.mov");
        assert_eq!(name("https://host/a.mp4?signature=1"), "video");
        assert_eq!(name("a"), "video");
    }

    #[test]
    fn only_folders_of_killed_runs_are_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = |name: &str, boot_id: Option<&[u8]>| {
            let folder = temporary.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("video.mp4"), "video").unwrap();
            boot_id
                .iter()
                .for_each(|id| fs::write(folder.join(LOCK), id).unwrap());
            folder
        };
        let here = boot_id().unwrap();
        let killed = folder("facetrack-a", Some(&here));
        let kept = [
            folder("facetrack-without-lock", None),
            folder("facetrack-of-another-machine", Some(b"other")),
            folder("notes", Some(&here)),
            folder("facetrack-runs", None),
        ];
        let running = lock(&kept[3]).unwrap();
        remove_left(temporary.path());
        assert!(!killed.exists());
        assert!(kept.iter().all(|folder| folder.join("video.mp4").exists()));
        drop(running);
        remove_left(temporary.path());
        assert!(!kept[3].exists());
    }
}
