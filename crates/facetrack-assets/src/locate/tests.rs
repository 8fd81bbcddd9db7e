// SPDX-License-Identifier: MPL-2.0
use super::*;

pub(super) fn touch(path: PathBuf) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, b"x").unwrap();
    path
}

/// The paths of an environment with these variables.
pub(super) fn paths(variables: &[(&str, &Path)]) -> SearchPaths {
    SearchPaths::from_vars(|name| {
        let (_, value) = variables.iter().find(|(own, _)| *own == name)?;
        Some(value.as_os_str().to_owned())
    })
}

#[test]
fn folders_are_searched_in_order_flat_before_family() {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    let data_dirs = std::env::join_paths([at("local"), at("share")]).unwrap();
    let around = SearchPaths {
        models_dir: Some(at("first")),
        ..paths(&[
            (MODELS_DIR_VARIABLE, &at("variable")),
            ("XDG_DATA_HOME", &at("data")),
            ("XDG_DATA_DIRS", data_dirs.as_ref()),
        ])
    };
    let find = || around.model("a.task", "family", None).ok();

    assert_eq!(find(), None);
    // Each file put in place takes precedence over those before it.
    for place in [
        "share/facetrack/models/a.task",
        "local/facetrack/models/family/a.task",
        "data/facetrack/models/family/a.task",
        "data/facetrack/models/a.task",
        "variable/family/a.task",
        "variable/a.task",
        "first/family/a.task",
        "first/a.task",
    ] {
        let path = touch(at(place));
        assert_eq!(find(), Some(path));
    }
}

#[test]
fn the_interpreter_of_an_environment_gives_its_runtime() {
    let root = tempfile::tempdir().unwrap();
    let interpreter = root.path().join("bin/python");
    let python: (&str, &Path) = (PYTHON_VARIABLE, &interpreter);
    let capi = "lib/python3.12/site-packages/onnxruntime/capi";
    let missing = paths(&[python]).runtime.unwrap();
    assert!(missing.starts_with(root.path()) && !missing.exists());
    let library = touch(root.path().join(capi).join("libonnxruntime.so.1.28.0"));
    assert_eq!(paths(&[python]).runtime, Some(library));
    let other = root.path().join("libonnxruntime.so");
    let both = paths(&[python, (RUNTIME_VARIABLE, &other)]);
    assert_eq!(both.runtime, Some(other));
}

#[test]
fn an_explicit_model_ends_the_search() {
    let root = tempfile::tempdir().unwrap();
    touch(root.path().join("a.task"));
    let explicit = root.path().join("b.task");
    let around = SearchPaths {
        models_dir: Some(root.path().to_owned()),
        ..SearchPaths::default()
    };
    let find = || around.model("a.task", "family", Some(&explicit));

    let error = find().unwrap_err().to_string();
    assert!(error.contains("b.task"), "{error}");
    touch(explicit.clone());
    assert_eq!(find().unwrap(), explicit);
}

#[test]
fn a_missing_model_names_every_folder() {
    let around = SearchPaths {
        models_dir: Some("/nowhere/first".into()),
        ..paths(&[
            (MODELS_DIR_VARIABLE, "/nowhere/variable".as_ref()),
            ("HOME", "/nowhere/home".as_ref()),
            ("XDG_DATA_DIRS", "/nowhere/share:relative".as_ref()),
        ])
    };
    let error = around.model("a.task", "family", None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "model file a.task not found (searched in /nowhere/first, /nowhere/variable, \
         /nowhere/home/.local/share/facetrack/models, /nowhere/share/facetrack/models)"
    );
}

#[test]
fn the_best_of_several_models_may_lie_in_the_last_folder() {
    let root = tempfile::tempdir().unwrap();
    let around = SearchPaths {
        models_dir: Some(root.path().join("first")),
        collection: Some(root.path().join("collection")),
        ..SearchPaths::default()
    };
    let find = || around.best_model(&["a.onnx", "b.onnx"], "family");
    let error = find().unwrap_err().to_string();
    assert!(error.contains("a.onnx, b.onnx"), "{error}");
    let worse = touch(root.path().join("first/b.onnx"));
    assert_eq!(find().unwrap(), worse);
    let better = touch(root.path().join("collection/family/a.onnx"));
    assert_eq!(find().unwrap(), better);
}

#[test]
fn a_relative_data_home_is_ignored() {
    let around = paths(&[
        ("XDG_DATA_HOME", "relative".as_ref()),
        ("HOME", "/home/a".as_ref()),
    ]);
    let expected = Some("/home/a/.local/share/facetrack".into());
    assert_eq!(around.data_dir, expected);
}

#[test]
fn system_folders_have_a_default_and_an_empty_variable_is_unset() {
    let expected = ["/usr/local/share/facetrack", "/usr/share/facetrack"].map(PathBuf::from);
    for variables in [&[][..], &[("XDG_DATA_DIRS", "".as_ref())]] {
        assert_eq!(paths(variables).system_data_dirs, expected);
    }
}

#[test]
fn a_chosen_runtime_is_the_only_candidate() {
    let shared = (SHARED_RUNTIME_VARIABLE, "/shared.so".as_ref());
    let own = (RUNTIME_VARIABLE, "/own.so".as_ref());
    for (variables, first, count) in [
        (&[][..], "libonnxruntime.so.1", 2),
        (&[shared], "/shared.so", 1),
        (&[shared, own], "/own.so", 1),
    ] {
        let around = SearchPaths {
            system_data_dirs: Vec::new(),
            ..paths(variables)
        };
        let candidates = around.runtime_candidates();
        assert_eq!(candidates.len(), count);
        assert_eq!(candidates[0], Path::new(first));
    }
}

#[test]
fn a_users_runtime_comes_before_the_systems_and_the_loaders() {
    let root = tempfile::tempdir().unwrap();
    let around = SearchPaths {
        data_dir: Some(root.path().join("home")),
        system_data_dirs: vec![root.path().join("none"), root.path().join("share")],
        ..SearchPaths::default()
    };
    let runtime = root.path().join("home/runtime");
    let old = touch(runtime.join("libonnxruntime.so.1.23.0"));
    let new = touch(runtime.join("libonnxruntime.so.1.31.1"));
    touch(runtime.join("LICENSE"));
    let system = touch(root.path().join("share/runtime/libonnxruntime.so.1.32.0"));
    let loaders = LOADER_NAMES.map(PathBuf::from);
    assert_eq!(
        around.runtime_candidates(),
        [vec![new, old, system], loaders.to_vec()].concat()
    );
}
