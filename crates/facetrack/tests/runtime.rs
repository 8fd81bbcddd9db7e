// SPDX-License-Identifier: MPL-2.0
//! Loading ONNX Runtime. One test, in a process of its own: a process has one runtime.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use facetrack::locate::SearchPaths;
use facetrack::model::ModelError;
use facetrack::model::runtime::OnnxRuntime;

#[test]
fn the_first_library_that_loads_is_the_runtime_of_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("libonnxruntime.so.missing");
    let damaged = folder.path().join("libonnxruntime.so.damaged");
    fs::write(&damaged, b"not a library").unwrap();

    let error = OnnxRuntime::load(&[missing.clone(), damaged.clone()]).unwrap_err();
    let message = error.to_string();
    let missing_path = missing.to_str().unwrap();
    let damaged_path = damaged.to_str().unwrap();
    // Paths, and what the loader said of each.
    for part in [missing_path, "No such file", damaged_path, "file too short"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    assert!(OnnxRuntime::load(&[]).is_err());

    let pipe = folder.path().join("libonnxruntime.so.pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let error = OnnxRuntime::load(&[pipe]).unwrap_err().to_string();
    assert!(error.contains("not a regular file"), "{error}");

    // It would be loaded, but everybody could have put it there.
    fs::set_permissions(&damaged, fs::Permissions::from_mode(0o666)).unwrap();
    let error = OnnxRuntime::load(std::slice::from_ref(&damaged)).unwrap_err();
    assert!(matches!(&error, ModelError::Replaceable(_)), "{error}");

    let mut candidates = SearchPaths::from_vars(std::env::var_os).runtime_candidates();
    candidates.insert(0, missing.clone());
    let Ok(runtime) = OnnxRuntime::load(&candidates) else {
        eprintln!("SKIPPED: no ONNX Runtime on this machine");
        return;
    };
    assert!(candidates[1..].contains(&runtime.path().to_path_buf()));

    let again = OnnxRuntime::load(&[missing]).unwrap();
    assert_eq!(again.path(), runtime.path());
}
