// SPDX-License-Identifier: MPL-2.0
//! Reads and renames files. Paths are not trusted: one may lead to a pipe, or to a device that
//! never ends. Renamed files keep their new names after a power failure.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Maximum number of links that are followed one after another, as in Linux.
const MAX_LINKS: usize = 40;

/// Opens the regular file at `path` for reading. Never waits, as for the writer of a pipe.
///
/// # Errors
/// Returns [`ErrorKind::InvalidInput`] for anything but a regular file, or the error of the system.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening a device can have effects.
    check_regular(&fs::metadata(path)?)?;
    open_with(OpenOptions::new().read(true), path, FOLLOWING)
}

/// Opens the regular file at `path` with `options`. Never waits, and follows no link at `path`: for
/// files in folders that other programs and people write, too.
///
/// # Errors
/// Returns [`ErrorKind::InvalidInput`] for anything but a regular file, or the error of the system.
pub fn open_itself(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => (),
        found => check_regular(&found?)?,
    }
    open_with(options, path, NOT_FOLLOWING)
}

/// Reads the regular file at `path`, which has at most `most` bytes. Follows no link at `path`.
///
/// # Errors
/// Returns the errors of [`open_itself`] and of [`read_from`].
pub fn read_itself(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_from(open_itself(OpenOptions::new().read(true), path)?, most)
}

/// Reads the regular file at `path`, which has at most `most` bytes.
///
/// # Errors
/// Returns the errors of [`open`] and of [`read_from`].
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_from(open(path)?, most)
}

/// Reads all of `source`, which has at most `most` bytes. Memory is allocated as bytes arrive,
/// whatever size a header claims.
///
/// # Errors
/// Returns the errors of `source`, and [`ErrorKind::FileTooLarge`].
pub fn read_from(source: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    source.take(most + 1).read_to_end(&mut content)?;
    if content.len() as u64 > most {
        let reason = format!("it is larger than {most} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, reason));
    }
    Ok(content)
}

/// Returns true if there is no room left for the writer: the disk is full, or the quota used up.
pub fn is_full(error: &io::Error) -> bool {
    let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    kinds.contains(&error.kind())
}

/// `path` with `suffix` after its name.
pub fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// The path of the file that is read or written at `path`: symbolic links are followed, also to a
/// file that is not there yet, or in folders above one.
pub fn target(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = target.read_link() else {
            break;
        };
        if target.exists() {
            break;
        }
        target = target.parent().unwrap_or(Path::new("")).join(next);
    }
    let resolved = target.canonicalize();
    resolved.unwrap_or_else(|_| with_resolved_folders(&target).unwrap_or(target))
}

/// `path`, in whose existing folders links are resolved.
fn with_resolved_folders(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let mut folders = path.ancestors().skip(1);
    folders.find_map(|folder| {
        let rest = path.strip_prefix(folder).ok()?;
        Some(folder.canonicalize().ok()?.join(rest))
    })
}

/// Returns true if both paths lead to the same file.
pub fn is_same(a: &Path, b: &Path) -> bool {
    target(a) == target(b)
}

/// Returns true if the regular file at `path` is `file`.
///
/// # Errors
/// Returns the error of the system.
pub fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = same_file::Handle::from_file(file.try_clone()?)?;
    let is_own =
        |found: fs::Metadata| Ok(found.is_file() && own == same_file::Handle::from_path(path)?);
    match fs::symlink_metadata(path).and_then(is_own) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        compared => compared,
    }
}

/// Renames a file, unless something exists at the new path.
///
/// # Errors
/// Returns the error of the system, such as [`ErrorKind::AlreadyExists`].
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rename_without_replacing(from, to) {
        // Not every file system can do it in one step.
        Err(error) if is_unsupported(&error) => match fs::symlink_metadata(to) {
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        renamed => renamed,
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    use ErrorKind::{InvalidInput, Unsupported};
    matches!(error.kind(), InvalidInput | Unsupported)
}

#[cfg(any(target_os = "linux", target_vendor = "apple"))]
fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn rename_without_replacing(_: &Path, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Removes the file at `path`, if there is one.
///
/// # Errors
/// Returns the error of the system.
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns when the names in the folder of `path` are where a power failure does not reach them.
///
/// # Errors
/// Returns the error of the system.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    match File::open(folder_of(path))?.sync_all() {
        // Some file systems cannot do that for a folder.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

/// The folder of the file at `path`.
pub(crate) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// `bytes` as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SHA-256 of `bytes`, as lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn check_regular(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let reason = "it is not a regular file";
    Err(io::Error::new(ErrorKind::InvalidInput, reason))
}

/// Flags for opening a file without waiting.
#[cfg(unix)]
const FOLLOWING: i32 = libc::O_NONBLOCK;
#[cfg(not(unix))]
const FOLLOWING: i32 = 0;

/// Flags for opening a file without waiting and without following a link.
#[cfg(unix)]
const NOT_FOLLOWING: i32 = libc::O_NONBLOCK | libc::O_NOFOLLOW;
#[cfg(not(unix))]
const NOT_FOLLOWING: i32 = 0;

/// Opens a file and checks that it is still a regular one, since the path may have changed.
fn open_with(options: &mut OpenOptions, path: &Path, flags: i32) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags);
    #[cfg(not(unix))]
    let _ = flags;
    let file = options.open(path)?;
    check_regular(&file.metadata()?)?;
    Ok(file)
}

/// Joins paths into a text for messages.
pub fn listed(paths: &[impl AsRef<Path>]) -> String {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.as_ref().display().to_string())
        .collect();
    paths.join(", ")
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
    fn a_used_up_quota_counts_as_a_full_disk() {
        for (kind, want) in [
            (ErrorKind::StorageFull, true),
            (ErrorKind::QuotaExceeded, true),
            (ErrorKind::FileTooLarge, false),
            (ErrorKind::PermissionDenied, false),
        ] {
            assert_eq!(is_full(&kind.into()), want, "{kind}");
        }
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
            let error = read_itself(path, 3).expect_err("it is no such file");
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_can_be_refused() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, dangling] = ["file", "link", "dangling"].map(|it| folder.path().join(it));
        fs::write(&file, "abc").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
        assert_eq!(read_itself(&file, 3).unwrap(), b"abc");
        for link in [link, dangling] {
            let mut options = OpenOptions::new();
            let opened = open_itself(options.write(true).create(true), &link);
            assert_eq!(opened.unwrap_err().kind(), ErrorKind::InvalidInput);
        }
        assert!(!folder.path().join("nowhere").exists());
    }

    #[test]
    fn a_renamed_file_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        fs::write(&from, "new").unwrap();
        fs::write(&to, "old").unwrap();
        let error = rename_new(&from, &to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&to).unwrap(), b"old");
        fs::remove_file(&to).unwrap();
        rename_new(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"new");
        let error = rename_new(&from, &to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_that_comes_and_goes_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let [own, path] = ["own", "path"].map(|name| folder.path().join(name));
        let file = File::create(&own).unwrap();
        assert!(is_at(&file, &own).unwrap());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                for _ in 0..2000 {
                    File::create(&path).unwrap();
                    fs::remove_file(&path).unwrap();
                }
            });
            while !other.is_finished() {
                assert!(!is_at(&file, &path).unwrap());
            }
        });
    }

    #[cfg(unix)]
    #[test]
    fn links_lead_to_their_target() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let at = |name: &str| folder.join(name);
        fs::create_dir(at("deep")).unwrap();
        symlink("deep/second", at("first")).unwrap();
        symlink("file", at("deep/second")).unwrap();
        symlink(at("first"), at("absolute")).unwrap();
        symlink("loop", at("loop")).unwrap();
        // The file does not exist at first.
        for _ in 0..2 {
            for name in ["first", "absolute", "deep/file"] {
                assert_eq!(target(&at(name)), at("deep/file"), "{name}");
            }
            fs::write(at("deep/file"), "").unwrap();
        }
        assert_eq!(target(&at("loop")), at("loop"));
    }

    #[test]
    fn an_endless_source_is_too_large() {
        let error = read_from(io::repeat(0), 10).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
