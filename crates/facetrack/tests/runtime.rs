// SPDX-License-Identifier: MPL-2.0
//! Loading ONNX Runtime. One test, in a process of its own: a process has one runtime.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use facetrack::model::ModelError;
use facetrack::model::runtime::OnnxRuntime;
use facetrack_assets::locate::{SearchPaths, Telemetry};

/// The error of loading `library`.
fn refused(library: &Path, telemetry: Telemetry) -> ModelError {
    let paths = SearchPaths {
        runtime: Some(library.to_owned()),
        telemetry,
        ..SearchPaths::default()
    };
    OnnxRuntime::load(&paths).unwrap_err()
}

#[test]
fn the_first_library_that_loads_is_the_runtime_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(data.join("runtime")).unwrap();
    let library = |name: &str| data.join("runtime").join(name);

    let missing = library("libonnxruntime.so.missing");
    let damaged = library("libonnxruntime.so.damaged");
    let reporting = library("libonnxruntime.so.reporting");
    symlink("nowhere", &missing).unwrap();
    fs::write(&damaged, b"not a library").unwrap();
    fs::write(&reporting, b"https://mobile.events.data.microsoft.com").unwrap();
    for (library, telemetry, expected) in [
        (&missing, Telemetry::Possible, "No such file"),
        (&missing, Telemetry::Off, "No such file"),
        (&damaged, Telemetry::Possible, "file too short"),
        (&damaged, Telemetry::Off, "file too short"),
        (&reporting, Telemetry::Possible, "reports its use"),
        (&reporting, Telemetry::Off, "file too short"),
    ] {
        let message = refused(library, telemetry).to_string();
        for part in [library.to_str().unwrap(), expected] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }

    let pipe = folder.path().join("libonnxruntime.so.pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let error = refused(&pipe, Telemetry::Possible).to_string();
    assert!(error.contains("not a regular file"), "{error}");

    // It would be loaded, but everybody could have put it there.
    let replaceable = folder.path().join("libonnxruntime.so.replaceable");
    fs::write(&replaceable, b"not a library").unwrap();
    fs::set_permissions(&replaceable, fs::Permissions::from_mode(0o666)).unwrap();
    let error = refused(&replaceable, Telemetry::Possible);
    assert!(matches!(&error, ModelError::Replaceable(_)), "{error}");

    let installed = SearchPaths::from_vars(std::env::var_os);
    let candidates = installed.runtime_candidates();
    let file = candidates.iter().find(|path| path.is_file());
    let Some(file) = file else {
        eprintln!("SKIPPED: no ONNX Runtime on this machine");
        return;
    };
    // The last name: the others are tried before.
    let last = library("libonnxruntime.so.1");
    symlink(file, &last).unwrap();
    let paths = SearchPaths {
        data_dir: Some(data),
        telemetry: installed.telemetry,
        ..SearchPaths::default()
    };
    let runtime = OnnxRuntime::load(&paths).unwrap();
    assert_eq!(runtime.path(), last);

    let again = OnnxRuntime::load(&SearchPaths::default()).unwrap();
    assert_eq!(again.path(), runtime.path());
}
