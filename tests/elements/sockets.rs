// SPDX-License-Identifier: MPL-2.0
//! No element but `trackudpsink` opens a socket, and only documented files are written: strace
//! observes pipelines, `facetrack run` with its workers, and the doctor, as a new user starts them.
//! Continuous integration is not declared, because some libraries behave well only there.
//!
//! Sockets to the kernel do not count: GStreamer's own plugins listen to new devices with them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use facetrack::engine::{EngineConfig, EngineKind};
use gst::prelude::*;
use tempfile::TempDir;

use crate::common::tool::{Tool, built};
use crate::common::{self, python, strace};

const SOURCE: &str = "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=320,height=240";

/// A stream of 15 seconds. ONNX Runtime's telemetry begins to send after about 9 seconds.
const LONG_SOURCE: &str = "videotestsrc is-live=true num-buffers=16 ! video/x-raw,format=RGB,width=320,height=240,framerate=1/1";

/// The system calls that open sockets, and create or change files.
const CALLS: &str = "--follow-forks --decode-fds=path --string-limit=4096 --trace=socket,open,openat,creat,truncate,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat";

/// System calls of a program.
struct Observed {
    /// All that it said, if it failed.
    error: Option<String>,
    /// The sockets that it opened.
    sockets: Vec<String>,
    /// The calls that created or changed files outside the folder of the test, or in the home there.
    writes: Vec<String>,
}

impl Observed {
    #[track_caller]
    fn assert_silent(&self, what: &str) {
        assert!(self.sockets.is_empty(), "{what}: {:?}", self.sockets);
        assert!(self.writes.is_empty(), "{what}: {:?}", self.writes);
    }
}

/// Runs `program` with the installed models and a new home. The registry of GStreamer and temporary
/// files are in `folder`.
fn observe(program: &str, arguments: &str, folder: &TempDir) -> Observed {
    let home = tempfile::tempdir_in(folder.path()).expect("a home");
    let trace = tempfile::NamedTempFile::new_in(folder.path()).expect("a file");
    let tool = Tool::new("strace")
        .args(CALLS)
        .arg("--output")
        .arg(text(trace.path()))
        .arg(program)
        .args(arguments);
    let run = for_new_user(tool, home.path(), folder.path()).run();
    let trace = fs::read_to_string(trace).expect("a trace");
    let is_own =
        |line: &str| line.contains(text(folder.path())) && !line.contains(text(home.path()));
    Observed {
        error: (!run.success).then_some(run.text),
        sockets: matching(&trace, |line| {
            line.contains("socket(") && !line.contains("AF_NETLINK")
        }),
        writes: matching(&trace, |line| is_write(line) && !is_own(line)),
    }
}

/// `tool` with the installed models, this home, and this folder for temporary files.
fn for_new_user(mut tool: Tool, home: &Path, temporary: &Path) -> Tool {
    let registry = temporary.join("registry.bin");
    tool = tool.with_models();
    for (variable, path) in [
        ("HOME", home),
        ("TMPDIR", temporary),
        ("GST_REGISTRY", &registry),
    ] {
        tool = tool.env(variable, text(path));
    }
    let unset = ["CI", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"];
    unset.into_iter().fold(tool, Tool::env_remove)
}

fn matching(trace: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let lines = trace.lines().filter(|line| is_wanted(line));
    lines.map(str::to_owned).collect()
}

/// Returns true if a call has created or changed a file that is kept on a disk.
///
/// strace writes `???(` for a thread that ended before its call could be read.
fn is_write(line: &str) -> bool {
    let changes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"];
    let is_open = line.contains("open(") || line.contains("openat(");
    let is_other = !is_open && !line.contains("socket(") && line.contains('(');
    let is_change = is_other || changes.iter().any(|flag| line.contains(flag));
    // Devices, and the code that Orc generates for GStreamer's conversions.
    let passing = ["\"/dev/", "\"/proc/", "/orcexec.", " ???("];
    let is_passing = passing.iter().any(|it| line.contains(it));
    is_change && !is_passing && !line.contains(" = -1 ")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Pipelines of one element each, or of one engine each.
fn pipelines(folder: &TempDir) -> Vec<(String, String)> {
    let record = folder.path().join("record.json");
    let record = text(&record);
    let engines = EngineKind::ALL.into_iter().map(|engine| {
        let name = engine.name();
        let pipeline = format!("{SOURCE} ! facetrack engine={name} ! fakesink");
        ("facetrack".to_owned(), pipeline)
    });
    let others = [
        (
            "facetrackblur",
            "facetrack engine=scripted ! facetrackblur ! fakesink".to_owned(),
        ),
        (
            "facetrackoverlay",
            "facetrack engine=scripted ! facetrackoverlay ! fakesink".to_owned(),
        ),
        (
            "trackjsonsink",
            format!("facetrack engine=scripted ! trackjsonsink location={record}"),
        ),
        (
            "trackjsonload",
            format!("trackjsonload location={record} ! fakesink"),
        ),
    ];
    let others = others.map(|(element, rest)| (element.to_owned(), format!("{SOURCE} ! {rest}")));
    engines.chain(others).collect()
}

/// The elements of the plugin.
fn elements() -> BTreeSet<String> {
    common::init();
    let features = gst::Registry::get().features_by_plugin("facetrack");
    features.iter().map(|it| it.name().to_string()).collect()
}

#[test]
fn only_trackudpsink_opens_sockets() {
    if strace::is_missing() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut seen = BTreeSet::from(["trackudpsink".to_owned()]);
    for (element, pipeline) in pipelines(&folder) {
        let observed = observe("gst-launch-1.0", &pipeline, &folder);
        observed.assert_silent(&pipeline);
        match observed.error {
            None => drop(seen.insert(element)),
            Some(error) => eprintln!("SKIPPED: {pipeline}: {error}"),
        }
    }
    assert_eq!(seen, elements());

    let sender = format!("{SOURCE} ! trackudpsink port=9");
    let observed = observe("gst-launch-1.0", &sender, &folder);
    assert_eq!(observed.error, None);
    assert!(!observed.sockets.is_empty(), "a socket is seen");
}

/// An element for each engine whose files are installed.
fn installed_engines() -> String {
    let config = EngineConfig::default();
    let installed = EngineKind::ALL
        .into_iter()
        .filter(|engine| common::engine::engine(*engine, &config).is_some());
    let elements: Vec<_> = installed
        .map(|engine| format!("facetrack engine={}", engine.name()))
        .collect();
    elements.join(" ! ")
}

/// All engines in one pipeline that runs for 30 seconds.
#[test]
fn nothing_is_sent_in_the_background() {
    if strace::is_missing() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("record.json");
    let pipeline = format!(
        "{LONG_SOURCE} ! {} ! facetrackoverlay ! trackjsonsink location={}",
        installed_engines(),
        text(&record)
    );
    let observed = observe("gst-launch-1.0", &pipeline, &folder);
    assert_eq!(observed.error, None);
    observed.assert_silent(&pipeline);
    let recorded = fs::read_to_string(&record).expect("a record");
    assert!(recorded.contains("\"frame\":16"), "{recorded}");
}

#[test]
fn workers_and_the_doctor_are_silent() {
    if strace::is_missing() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let video = folder.path().join("clip.mov");
    common::init();
    let encoded = gst::parse::launch(&format!(
        "{SOURCE} ! jpegenc ! qtmux ! filesink location={}",
        text(&video)
    ));
    common::play_to_end(&encoded.expect("a pipeline"));
    built("facetrack-worker");
    let facetrack = built("facetrack");
    let run = format!(
        "run --jobs 2 --out {} {}",
        text(&folder.path().join("out")),
        text(&video)
    );
    for arguments in [&run, "doctor"] {
        let observed = observe(text(&facetrack), arguments, &folder);
        observed.assert_silent(arguments);
    }
}

#[test]
fn a_forked_child_ends() {
    if !python::has_bindings("Gst", "python3-gst-1.0") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let tool = python::program("tests/fork_child.py").arg(&installed_engines());
    let run = for_new_user(tool, folder.path(), folder.path()).run();
    assert!(run.success, "{}", run.text);
}
