// SPDX-License-Identifier: MPL-2.0
//! The snippets compile and run, and the lists of names are complete.

use crate::common::{self, file};
use crate::docs;
use crate::pages;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use gst::prelude::*;

/// The page about applications.
const APPLICATIONS: &str = "docs/applications.md";

/// The snippets in one language on all pages.
fn snippets(language: &str) -> Vec<String> {
    pages::guides()
        .flat_map(|page| pages::blocks_in(&page, language))
        .collect()
}

/// The library that includes a page with Rust, and the path of the page from there.
fn library_and_path(page: &str) -> (String, String) {
    match page.rsplit_once('/') {
        Some(("src", name)) => ("src/lib.rs".to_owned(), name.to_owned()),
        Some((folder, name)) if folder.starts_with("crates/") => {
            (format!("{folder}/src/lib.rs"), format!("../{name}"))
        }
        _ => ("src/lib.rs".to_owned(), format!("../{page}")),
    }
}

/// Rust on a page is compiled by rustdoc if a library includes the page.
#[test]
fn every_page_with_rust_is_compiled() {
    let mut pages: BTreeSet<String> = pages::guides().collect();
    pages.retain(|page| !pages::blocks_in(page, "rust").is_empty());
    assert!(!pages.is_empty());
    for page in pages {
        let (library, path) = library_and_path(&page);
        let included = format!("include_str!(\"{path}\")");
        assert!(docs::text(&library).contains(&included), "{page}");
    }
}

#[test]
fn every_example_is_listed() {
    let page = docs::text(APPLICATIONS);
    for folder in ["examples", "crates/facetrack/examples"] {
        for file in fs::read_dir(file(folder)).expect("examples") {
            let path = file.expect("a file").path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            let name = match ending {
                Some("rs") => path.file_stem(),
                _ => path.file_name(),
            };
            let name = name.and_then(|name| name.to_str()).expect("a name");
            // Code that examples share.
            if name == "common" {
                continue;
            }
            assert!(page.contains(name), "{name}");
        }
    }
}

#[test]
fn messages_and_capabilities_are_documented() {
    common::init();
    let pipeline = gst::parse::launch(
        "videotestsrc num-buffers=30 ! facetrack name=track engine=scripted script=\"face to=9\" \
         post-messages=every-frame ! fakesink",
    );
    let pipeline = pipeline.expect("a pipeline");
    let bus = pipeline.bus().expect("a bus");
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    let element = bin.by_name("track").expect("an element");
    let capabilities: gst::Structure = element.property("capabilities");
    pipeline.set_state(gst::State::Playing).expect("it plays");
    let messages = bus
        .iter_timed(gst::ClockTime::from_seconds(60))
        .take_while(|message| message.type_() != gst::MessageType::Eos);
    let mut structures: Vec<_> = messages
        .filter(|message| message.type_() == gst::MessageType::Element)
        .filter_map(|message| message.structure().map(ToOwned::to_owned))
        .collect();
    let named = |name| structures.iter().filter(|it| it.name() == name).count();
    assert_eq!([named("facetrack-ready"), named("facetrack")], [1, 32]);
    structures.push(capabilities);
    pipeline.set_state(gst::State::Null).expect("it stops");

    let page = docs::text(APPLICATIONS);
    let (section, _) = page.split_once("## Action signals").expect("a section");
    for structure in structures {
        for name in structure.fields().map(|field| format!("`{field}`")) {
            assert!(section.contains(&name), "{name} of {structure}");
        }
    }
}

#[test]
fn the_c_snippet_compiles() {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "gstreamer-1.0"])
        .output()
        .expect("pkg-config is installed");
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    for snippet in snippets("c") {
        let source = format!(
            "#include <gst/gst.h>\n{snippet}\nint main (void) {{ return (int) count_faces (NULL); }}\n"
        );
        let mut compiler = Command::new("gcc")
            .args([
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fsyntax-only",
                "-x",
                "c",
                "-",
            ])
            .args(flags.split_whitespace())
            .stdin(Stdio::piped())
            .spawn()
            .expect("gcc is installed");
        let input = compiler.stdin.take();
        input
            .expect("a pipe")
            .write_all(source.as_bytes())
            .expect("gcc reads");
        assert!(compiler.wait().expect("gcc ends").success(), "{source}");
    }
}

#[test]
fn the_python_snippet_reads_faces() {
    let mut snippets = snippets("python");
    // The reader of unfinished records is tested where records are killed.
    snippets.retain(|snippet| snippet.contains("def print_faces"));
    assert_eq!(snippets.len(), 1);
    let program = format!(
        "{}\n{}",
        snippets[0],
        r#"
import gi
gi.require_version("GstApp", "1.0")
from gi.repository import Gst, GstApp
Gst.init(None)
pipeline = Gst.parse_launch("filesrc location=clip.mp4 ! decodebin ! facetrack ! appsink name=sink sync=false")
pipeline.set_state(Gst.State.PLAYING)
print_faces(pipeline.get_by_name("sink").pull_sample().get_buffer())
pipeline.set_state(Gst.State.NULL)
"#
    );
    // Python also imports modules from the script's folder.
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("faces.py");
    fs::write(&script, program).expect("it can be written");
    let command = format!(
        "export PYTHONPATH='{}'; python3 {} # facetrack",
        file("python").display(),
        script.display()
    );
    if let Some(finished) = docs::run(&command) {
        assert!(finished.success, "{}", finished.text);
        for part in ["1 Box(x=", "(478, 3)"] {
            assert!(finished.text.contains(part), "{}", finished.text);
        }
    }
}
