// SPDX-License-Identifier: MPL-2.0
//! Pipes and devices, whose readers may come late, be slow or stop reading.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::CAT;

/// Interval at which requests of the pipeline for the streaming thread are checked.
const PATIENCE: Duration = Duration::from_millis(50);

/// Number of bytes that a pipe takes without blocking if it takes any (`PIPE_BUF` of Linux).
const ATOMIC: usize = 4096;

/// A pipe or device. Writes wait for a reader, until the pipeline requests the streaming thread.
/// The remaining data is written first the next time.
pub(super) struct PipeWriter {
    path: PathBuf,
    /// The open file; `None` before a named pipe has a reader.
    file: Option<File>,
    /// True while the pipeline requests the streaming thread.
    unlocked: Arc<AtomicBool>,
    pending: Vec<u8>,
}

impl PipeWriter {
    /// The pipe or device at `path`; a named pipe is opened with the first write, as it may not have
    /// a reader yet.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub(super) fn open(path: &Path, unlocked: Arc<AtomicBool>) -> io::Result<Self> {
        let mut it = Self {
            path: path.to_owned(),
            file: None,
            unlocked,
            pending: Vec::new(),
        };
        it.try_open()?;
        Ok(it)
    }

    /// Standard output.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub(super) fn stdout(unlocked: Arc<AtomicBool>) -> io::Result<Self> {
        let handle = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Self {
            path: PathBuf::from("standard output"),
            file: Some(File::from(handle)),
            unlocked,
            pending: Vec::new(),
        })
    }

    /// Opens the file, unless it is a pipe without a reader.
    fn try_open(&mut self) -> io::Result<()> {
        let mut options = File::options();
        options
            .write(true)
            .custom_flags(OFlags::NONBLOCK.bits() as i32);
        match options.open(&self.path) {
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => {
                gst::info!(CAT, "waiting for a reader of {}", self.path.display());
                Ok(())
            }
            opened => opened.map(|file| self.file = Some(file)),
        }
    }

    /// Writes pending data, as far as the reader takes it before the pipeline requests the
    /// streaming thread.
    fn drain(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() && !self.unlocked.load(Ordering::Relaxed) {
            match &mut self.file {
                None => {
                    thread::sleep(PATIENCE);
                    self.try_open()?;
                }
                Some(file) if is_ready(file)? => {
                    let length = self.pending.len().min(ATOMIC);
                    let written = write_some(file, &self.pending[..length])?;
                    self.pending.drain(..written);
                }
                Some(_) => (),
            }
        }
        Ok(())
    }
}

impl Write for PipeWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.drain()?;
        if self.pending.is_empty() {
            return Ok(());
        }
        Err(io::Error::other("the reader has not read everything"))
    }
}

/// Waits until the reader takes something or has gone; `false` if neither happens for a while.
fn is_ready(file: &File) -> io::Result<bool> {
    let mut descriptors = [PollFd::new(file, PollFlags::OUT)];
    let timeout = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
    match poll(&mut descriptors, Some(&timeout)) {
        Err(Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

fn write_some(file: &mut File, bytes: &[u8]) -> io::Result<usize> {
    match file.write(bytes) {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
        written => written,
    }
}
