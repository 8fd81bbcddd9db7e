// SPDX-License-Identifier: MPL-2.0
//! No element but `trackudpsink` opens a socket: strace observes whole pipelines.
//!
//! Sockets to the kernel do not count: GStreamer's own plugins listen to new devices with them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use facetrack::engine::EngineKind;
use gst::prelude::*;
use tempfile::TempDir;

use crate::common::engine::installed_paths;
use crate::common::tool::Tool;
use crate::common::{self, strace};

const SOURCE: &str = "videotestsrc num-buffers=3 ! video/x-raw,format=RGB,width=320,height=240";

/// Runs a pipeline with the installed models. Returns the error of the pipeline and the sockets that
/// were opened.
fn run(pipeline: &str, folder: &TempDir) -> (Option<String>, Vec<String>) {
    let trace = folder.path().join("trace");
    let registry = folder.path().join("registry.bin");
    let mut tool = Tool::new("strace").args("--follow-forks --trace=socket --output");
    tool = tool.arg(trace.to_str().expect("UTF-8"));
    let paths = installed_paths();
    let data = paths.data_dir.as_deref().and_then(Path::parent);
    for (variable, path) in [
        ("GST_REGISTRY", Some(&*registry)),
        ("XDG_DATA_HOME", data),
        ("FACETRACK_MODELS_DIR", paths.collection.as_deref()),
        ("FACETRACK_ONNXRUNTIME", paths.runtime.as_deref()),
    ] {
        if let Some(path) = path {
            tool = tool.env(variable, path.to_str().expect("UTF-8"));
        }
    }
    let run = tool.arg("gst-launch-1.0").args(pipeline).run();
    let trace = fs::read_to_string(trace).expect("a trace");
    let sockets = trace.lines().filter(|line| {
        let is_of_kernel = line.contains("AF_NETLINK");
        line.contains("socket(") && !is_of_kernel
    });
    (
        (!run.success).then_some(run.text),
        sockets.map(str::to_owned).collect(),
    )
}

/// Pipelines of one element each, or of one engine each.
fn pipelines(folder: &TempDir) -> Vec<(String, String)> {
    let record = folder.path().join("record.json");
    let record = record.to_str().expect("UTF-8");
    let engines = EngineKind::ALL.into_iter().map(|engine| {
        let name = engine.name();
        let pipeline = format!("{SOURCE} ! facetrack engine={name} ! fakesink");
        ("facetrack".to_owned(), pipeline)
    });
    let others = [
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
    let mut observed = BTreeSet::from(["trackudpsink".to_owned()]);
    for (element, pipeline) in pipelines(&folder) {
        let (error, sockets) = run(&pipeline, &folder);
        assert!(sockets.is_empty(), "{pipeline}: {sockets:?}");
        match error {
            None => drop(observed.insert(element)),
            Some(error) => eprintln!("SKIPPED: {pipeline}: {error}"),
        }
    }
    assert_eq!(observed, elements());

    let (error, sockets) = run(&format!("{SOURCE} ! trackudpsink port=9"), &folder);
    assert_eq!(error, None);
    assert!(!sockets.is_empty(), "a socket is seen where there is one");
}
