// SPDX-License-Identifier: MPL-2.0
//! Errors of records that cannot be written, with their remedies.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use facetrack::record::ProfileError;
use facetrack_assets::file::is_full;

/// Reason why a record can't be written. The message names the path and the remedy.
#[derive(Debug, Error)]
pub(super) enum OutputError {
    /// The blendshapes to write are unknown.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A file has that name.
    #[error("{path} already exists. Set overwrite=true or another location, or delete the file", path = .0.display())]
    Exists(PathBuf),
    /// A folder has that name.
    #[error("location {path} is a folder. Set it to the path of a file", path = .0.display())]
    Folder(PathBuf),
    /// The format needs a file that can be changed afterwards.
    #[error("location {path} is not a regular file, but format={1} needs one. Set format=jsonl", path = .0.display())]
    NotRegular(PathBuf, String),
    /// The format needs a file.
    #[error("format={0} needs a file. Set location, or format=jsonl for standard output")]
    NeedsFile(String),
    /// Another process writes there.
    #[error("another pipeline is writing {path}. Set another location, or wait until it ends", path = .0.display())]
    Busy(PathBuf),
    /// The name of the unfinished file is taken by a link, pipe, device or folder.
    #[error("{path} is not a regular file. Delete it, or set another location", path = .0.display())]
    Special(PathBuf),
    /// The system cannot create the file.
    #[error("{path} cannot be created: {1}. {hint}", path = .0.display(), hint = remedy(.1))]
    Create(PathBuf, #[source] io::Error),
    /// The system cannot write to the file.
    #[error("writing to {path} failed: {1}. {hint}. Everything written before is kept", path = .0.display(), hint = remedy(.1))]
    Write(PathBuf, #[source] io::Error),
    /// The pipeline has requested the streaming thread.
    #[error("the pipeline stopped before everything was written")]
    Interrupted,
    /// The whole file can't change the first name to the second.
    #[error("{partial} is complete but cannot be renamed to {path}: {2}. {hint}", partial = .0.display(), path = .1.display(), hint = remedy(.2))]
    Rename(PathBuf, PathBuf, #[source] io::Error),
    /// The whole file has its name, but a power failure may undo that.
    #[error("{path} is complete, but the system does not confirm that its folder is on disk: {1}. Check the disk", path = .0.display())]
    Sync(PathBuf, #[source] io::Error),
    /// The unfinished file or its folder is gone at the end; a copy is at the second path.
    #[error("the unfinished file of {path} or its folder was removed; the record is kept as {rescued}", path = .0.display(), rescued = .1.display())]
    Vanished(PathBuf, PathBuf),
    /// The unfinished file or its folder is gone at the end, and it cannot be copied.
    #[error("the unfinished file of {path} or its folder was removed, and a copy of the record cannot be written to the folder for temporary files: {1}. Record it again", path = .0.display())]
    Lost(PathBuf, #[source] io::Error),
}

/// The remedy for the user.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "Create its folder, or set another location",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Make its folder writable, or set another location"
        }
        _ if is_full(error) => "Free disk space, or set another location",
        io::ErrorKind::BrokenPipe => "The reader has closed the pipe",
        _ => "Set another location",
    }
}
