// SPDX-License-Identifier: MPL-2.0
//! Telemetry of ONNX Runtime.
//!
//! Microsoft's builds from release 1.29 on contain an uploader. As soon as an ONNX Runtime
//! environment exists, it writes an identifier of the machine and a database of events to the
//! user's home, and sends them. The API can only switch it off afterwards. An environment variable
//! keeps it from starting, but a process that has threads cannot set one safely. So such a library
//! is not loaded, unless the variable was set before.

use std::io;
use std::path::Path;

use memchr::memmem;

use facetrack_assets::file;
use facetrack_assets::locate::TELEMETRY_VARIABLE;

/// The server to which the uploader sends events.
const SERVER: &str = "events.data.microsoft.com";

/// Bytes of the largest library that is examined; the largest known one has 35 MB.
const MAX_LIBRARY: u64 = 1 << 30;

/// Returns true if the library has telemetry: it contains the name of the server, or of the
/// variable.
///
/// # Errors
/// Returns an error if the library cannot be read.
pub fn is_in(library: &Path) -> io::Result<bool> {
    let code = file::read(library, MAX_LIBRARY)?;
    let contains = |text: &str| memmem::find(&code, text.as_bytes()).is_some();
    Ok([SERVER, TELEMETRY_VARIABLE].into_iter().any(contains))
}
