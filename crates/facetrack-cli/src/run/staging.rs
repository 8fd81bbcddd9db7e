// SPDX-License-Identifier: MPL-2.0
//! Videos that are fetched to a local file before they are tracked: `--fetch`.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::{TempDir, TempPath};

use super::child::Running;
use super::fetching::{FetchCommand, LOCAL};

/// How often a running command is checked.
const POLL: Duration = Duration::from_millis(20);

/// Longest suffix of a video that its local file keeps. Our choice.
const SUFFIX: usize = 8;

/// Where videos are fetched to.
pub struct Staging {
    command: FetchCommand,
    /// Time limit for a video.
    timeout: Option<Duration>,
    folder: TempDir,
}

/// Why a video was not fetched.
#[derive(Debug, PartialEq)]
pub enum Unfetched {
    /// The run ends.
    Stopped,
    Failed(String),
}

impl Staging {
    /// A staging folder in the system's folder for temporary files (`TMPDIR`).
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn new(command: FetchCommand, timeout: Option<Duration>) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("facetrack-").tempdir()?;
        Ok(Self {
            command,
            timeout,
            folder,
        })
    }

    /// Fetches the video `number`, until `is_stopped`. Its local file is removed when it is dropped.
    ///
    /// # Errors
    /// The command failed, took too long, or the run ends.
    pub fn fetch(
        &self,
        number: usize,
        video: &Path,
        is_stopped: impl Fn() -> bool,
    ) -> Result<TempPath, Unfetched> {
        let local = self.folder.path().join(local_name(number, video));
        let fetched = self.run(video, local, is_stopped);
        fetched.map_err(|unfetched| match unfetched {
            Unfetched::Failed(reason) => {
                let (video, program) = (video.display(), self.command.program());
                Unfetched::Failed(format!("{video} was not fetched: `{program}` {reason}"))
            }
            Unfetched::Stopped => Unfetched::Stopped,
        })
    }

    /// Runs the command.
    fn run(
        &self,
        video: &Path,
        local: PathBuf,
        is_stopped: impl Fn() -> bool,
    ) -> Result<TempPath, Unfetched> {
        let local = TempPath::try_from_path(local)?;
        let errors = tempfile::tempfile()?;
        let mut command = self.command.command(video, &local);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(errors.try_clone()?).spawn()?;
        let status = self.ended(Running(child), is_stopped)?;
        if !status.success() {
            let last_words = last_line(errors)?;
            return Err(Unfetched::Failed(format!("ended ({status}): {last_words}")));
        }
        if !local.exists() {
            let reason = format!("has not created the file {LOCAL}");
            return Err(Unfetched::Failed(reason));
        }
        Ok(local)
    }

    /// Waits until the command has ended.
    fn ended(
        &self,
        mut child: Running,
        is_stopped: impl Fn() -> bool,
    ) -> Result<ExitStatus, Unfetched> {
        let start = Instant::now();
        loop {
            if let Some(status) = child.0.try_wait()? {
                return Ok(status);
            }
            if is_stopped() {
                return Err(Unfetched::Stopped);
            }
            if self.timeout.is_some_and(|limit| start.elapsed() > limit) {
                return Err(Unfetched::Failed("took longer than --timeout".to_owned()));
            }
            thread::sleep(POLL);
        }
    }
}

impl From<io::Error> for Unfetched {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A short name, with the suffix of the video if that is an ordinary one.
fn local_name(number: usize, video: &Path) -> String {
    let suffix = video.extension().map(|suffix| suffix.to_string_lossy());
    let is_ordinary =
        |it: &str| it.len() <= SUFFIX && it.chars().all(|c| c.is_ascii_alphanumeric());
    match suffix.filter(|suffix| is_ordinary(suffix)) {
        Some(suffix) => format!("{number}.{suffix}"),
        None => number.to_string(),
    }
}

fn last_line(mut file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    Ok(last.unwrap_or("it printed no reason").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A command that takes longer than a test.
    const WAIT: &str = "sh -c 'exec sleep 60' {} {local}";

    fn fetch(command: &str, video: &Path) -> Result<Vec<u8>, Unfetched> {
        let limit = Duration::from_millis(300);
        let staging = Staging::new(command.parse().unwrap(), Some(limit)).unwrap();
        let staged = staging.fetch(7, video, || false)?;
        assert_eq!(staged.file_name(), Some("7.mp4".as_ref()));
        let bytes = fs::read(&staged).unwrap();
        let path = staged.to_path_buf();
        drop(staged);
        assert!(!path.exists());
        Ok(bytes)
    }

    #[test]
    fn a_video_is_copied_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let video = folder.path().join("a 'b' $c.mp4");
        fs::write(&video, "video").unwrap();
        assert_eq!(fetch("cp {} {local}", &video), Ok(b"video".to_vec()));
    }

    #[test]
    fn failures_name_the_video_and_the_reason() {
        for (command, part) in [
            ("cp {} {local}", "No such file"),
            ("test {} != {local}", "has not created"),
            ("no-such-program {} {local}", "No such file or directory"),
            (WAIT, "--timeout"),
        ] {
            let Err(Unfetched::Failed(reason)) = fetch(command, Path::new("s3://b/a.mp4")) else {
                panic!("{command}");
            };
            let is_named = reason.starts_with("s3://b/a.mp4 was not fetched");
            assert!(is_named && reason.contains(part), "{reason}");
        }
    }

    #[test]
    fn a_run_that_ends_does_not_wait() {
        let staging = Staging::new(WAIT.parse().unwrap(), None).unwrap();
        let unfetched = staging.fetch(0, Path::new("a"), || true).unwrap_err();
        assert_eq!(unfetched, Unfetched::Stopped);
    }

    #[test]
    fn long_suffixes_are_left_out() {
        let name = |video: &str| local_name(3, Path::new(video));
        assert_eq!(name("https://host/a.mov"), "3.mov");
        assert_eq!(name("https://host/a.mp4?signature=1"), "3");
        assert_eq!(name("a"), "3");
    }
}
