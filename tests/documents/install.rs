// SPDX-License-Identifier: MPL-2.0
//! `make install` and meson put the plugin where GStreamer searches.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::skip_for_want_of;
use crate::common::tool::{Finished, built as program, plugin};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A folder of builds with what Cargo has built for this test, whatever its profile, as if by
/// `make build`.
fn built(root: &Path) -> PathBuf {
    let folder = root.join("built/release");
    fs::create_dir_all(&folder).expect("a folder");
    fs::copy(plugin(), folder.join("libgstfacetrack.so")).expect("the plugin");
    for tool in ["facetrack", "facetrack-worker"] {
        fs::copy(program(tool), folder.join(tool)).expect("the tool");
    }
    root.join("built")
}

/// Folder that GStreamer searches for plugins.
fn plugins_dir() -> PathBuf {
    let output = Command::new("pkg-config")
        .args(["--variable=pluginsdir", "gstreamer-1.0"])
        .output()
        .expect("pkg-config is installed");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

/// `folder` under the root `root`.
fn under(root: &Path, folder: &Path) -> PathBuf {
    root.join(folder.strip_prefix("/").expect("an absolute path"))
}

/// Every file below a folder.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry").path())
        .flat_map(|path| match path.is_dir() {
            true => files_in(&path),
            false => vec![path],
        })
        .collect();
    files.sort();
    files
}

fn make(target: &str, variables: &[(&str, &Path)]) -> Finished {
    let mut command = Command::new("make");
    command.args(["--silent", "-C", ROOT, target]);
    for (name, value) in variables {
        command.arg(format!("{name}={}", value.display()));
    }
    Finished::from(command.output().expect("make is installed"))
}

/// Output of pkg-config with `argument` for the file at `path`.
fn pkg_config_output(path: &Path, argument: &str) -> String {
    let output = Command::new("pkg-config")
        .arg(argument)
        .arg(path)
        .output()
        .expect("pkg-config is installed");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Returns true if GStreamer finds the plugin without variables, in the home of a user.
fn is_found(home: &Path) -> bool {
    let mut inspect = Command::new("gst-inspect-1.0");
    for name in ["GST_PLUGIN_PATH", "GST_PLUGIN_PATH_1_0", "XDG_DATA_HOME"] {
        inspect.env_remove(name);
    }
    let output = inspect
        .arg("trackjsonsink")
        .env("HOME", home)
        .env("GST_REGISTRY", home.join("registry.bin"))
        .output();
    output.expect("the tool is installed").status.success()
}

#[test]
fn make_installs_stripped_and_uninstalls_everything() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let built = built(folder.path());
    let root = folder.path().join("root");
    let variables: [(&str, &Path); 3] = [
        ("TARGET", &built),
        ("DESTDIR", &root),
        ("PREFIX", Path::new("/opt/facetrack")),
    ];
    let Finished { success, text } = make("install", &variables);
    assert!(success, "{text}");
    let installed = [
        root.join("opt/facetrack/bin/facetrack"),
        root.join("opt/facetrack/bin/facetrack-worker"),
        under(&root, &plugins_dir()).join("libgstfacetrack.so"),
    ];
    let completions = [
        "bash-completion/completions/facetrack",
        "fish/vendor_completions.d/facetrack.fish",
        "zsh/site-functions/_facetrack",
    ];
    let completions = completions.map(|name| root.join("opt/facetrack/share").join(name));
    let pages = root.join("opt/facetrack/share/man/man1");
    let page = fs::read_to_string(pages.join("facetrack-run.1")).expect("a man page");
    assert!(page.contains("retry\\-failed"), "{page}");
    let mut all: Vec<_> = installed.iter().chain(&completions).cloned().collect();
    all.extend(files_in(&pages));
    all.sort();
    assert_eq!(files_in(&root), all);
    for path in completions {
        let script = fs::read_to_string(&path).expect("a script");
        assert!(script.contains("retry-failed"), "{}", path.display());
    }
    for path in &installed {
        let metadata = path.metadata().expect("a file");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o755);
        let name = path.file_name().expect("a name");
        let unstripped = built.join("release").join(name).metadata();
        assert!(metadata.len() < unstripped.expect("a file").len());
    }
    let version = Command::new(&installed[0]).arg("--version").output();
    assert!(version.expect("it runs").status.success());

    let Finished { success, text } = make("uninstall", &variables);
    assert!(success, "{text}");
    assert_eq!(files_in(&root), Vec::<PathBuf>::new());
}

/// Installs without root, as `docs/installing.md` describes.
#[test]
fn a_plugin_in_the_users_folder_is_found_without_variables() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let built = built(folder.path());
    let home = folder.path().join("home");
    assert!(!is_found(&home));
    let (prefix, plugins) = (
        home.join(".local"),
        home.join(".local/share/gstreamer-1.0/plugins"),
    );
    let variables: [(&str, &Path); 3] = [
        ("TARGET", &built),
        ("PREFIX", &prefix),
        ("PLUGINSDIR", &plugins),
    ];
    let Finished { success, text } = make("install", &variables);
    assert!(success, "{text}");
    assert!(is_found(&home));
    let Finished { success, text } = make("uninstall", &variables);
    assert!(success, "{text}");
    assert!(!is_found(&home));
}

#[test]
fn without_a_build_there_is_nothing_to_install() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nothing = folder.path().join("built");
    let root = folder.path().join("root");
    let Finished { success, text } = make("install", &[("TARGET", &nothing), ("DESTDIR", &root)]);
    assert!(!success && text.contains("run 'make build'"), "{text}");
    assert!(!root.exists());
}

/// Cargo's part is played by a script that delivers what was built for this test.
#[test]
fn meson_installs_where_gstreamer_searches() {
    if Command::new("meson").arg("--version").output().is_err() {
        skip_for_want_of("meson", "meson");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let built = built(folder.path());
    let cargo = folder.path().join("bin/cargo");
    fs::create_dir(folder.path().join("bin")).expect("a folder");
    let script = format!(
        "#!/bin/sh\nset -eu\n[ \"$1\" != --version ] || {{ echo 'cargo 1.92.0'; exit; }}\n\
         mkdir -p \"$CARGO_TARGET_DIR/debug\"\ncp '{}'/release/* \"$CARGO_TARGET_DIR/debug\"\n",
        built.display()
    );
    fs::write(&cargo, script).expect("room");
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).expect("our own");

    for (options, plugins, prefix) in [
        (&[][..], plugins_dir(), "usr/local"),
        (
            &[
                "--prefix=/home/me/.local",
                "-Dpluginsdir=share/gstreamer-1.0/plugins",
            ],
            "/home/me/.local/share/gstreamer-1.0/plugins".into(),
            "home/me/.local",
        ),
    ] {
        let (build, root) = (folder.path().join("build"), folder.path().join("root"));
        let path = std::env::var("PATH").expect("a path");
        let meson = |arguments: &[&str]| {
            let mut command = Command::new("meson");
            command.args(arguments).current_dir(ROOT);
            command.env("PATH", format!("{}/bin:{path}", folder.path().display()));
            let Finished { success, text } = command.output().expect("it is installed").into();
            assert!(success, "{arguments:?}\n{text}");
        };
        let [build_name, root_name] = [&build, &root].map(|path| path.display().to_string());
        let setup = ["setup", &build_name, "--buildtype=debug", "--libdir=lib"];
        meson(&[&setup, options].concat());
        meson(&["install", "-C", &build_name, "--destdir", &root_name]);
        let prefix = root.join(prefix);
        let module = prefix.join("lib/pkgconfig/gstfacetrack.pc");
        let mut expected = [
            prefix.join("bin/facetrack"),
            prefix.join("bin/facetrack-worker"),
            module.clone(),
            under(&root, &plugins).join("libgstfacetrack.so"),
        ];
        expected.sort();
        assert_eq!(files_in(&root), expected);
        let version = pkg_config_output(&module, "--modversion");
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
        let folder = pkg_config_output(&module, "--libs-only-L");
        assert_eq!(folder, format!("-L{}", plugins.display()));
        for folder in [build, root] {
            fs::remove_dir_all(folder).expect("our own");
        }
    }
}
