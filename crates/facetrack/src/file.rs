// SPDX-License-Identifier: MPL-2.0
//! Reads files whose paths are not trusted: one may lead to a pipe, or to an endless device.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// Opens the regular file at `path` for reading. Never waits, as for the writer of a pipe.
///
/// # Errors
/// Those of the system, and [`ErrorKind::InvalidInput`] for anything but a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a device can have effects. The second check is for a path that changes meanwhile.
    check_regular(&fs::metadata(path)?)?;
    let file = without_waiting().read(true).open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

/// The content of the regular file at `path`, of at most `most` bytes.
///
/// # Errors
/// Those of [`open`] and of [`read_from`].
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_from(open(path)?, most)
}

/// Everything from `source`, which has at most `most` bytes. Memory is allocated as bytes arrive,
/// whatever size is claimed somewhere.
///
/// # Errors
/// Those of `source`, and [`ErrorKind::FileTooLarge`].
pub fn read_from(source: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    source.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        let reason = format!("it is larger than {most} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, reason));
    }
    Ok(content)
}

fn check_regular(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let reason = "it is not a regular file";
    Err(io::Error::new(ErrorKind::InvalidInput, reason))
}

fn without_waiting() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NONBLOCK);
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn error(path: &Path) -> String {
        let error = read(path, 3).expect_err("it is no such file");
        error.to_string()
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "abc").unwrap();
        assert_eq!(read(&path, 3).unwrap(), b"abc");
        fs::write(&path, "abcd").unwrap();
        assert_eq!(error(&path), "it is larger than 3 bytes");
    }

    #[test]
    fn pipes_devices_and_folders_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        for path in [pipe.as_path(), Path::new("/dev/zero"), folder.path()] {
            assert_eq!(error(path), "it is not a regular file");
        }
    }

    #[test]
    fn an_endless_source_is_too_large() {
        let error = read_from(io::repeat(0), 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
