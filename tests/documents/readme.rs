// SPDX-License-Identifier: MPL-2.0
//! The README says what is so: its commands run, its snippets compile, its tables are those of the elements.

use crate::common;
use crate::docs;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use gst::prelude::*;

/// Set to have the test write the tables instead of comparing them.
const UPDATE: &str = "UPDATE_README";

/// The blocks of code in one language.
fn blocks(language: &str) -> Vec<String> {
    let readme = docs::text("README.md");
    let fence = format!("```{language}\n");
    readme
        .split(&fence)
        .skip(1)
        .filter_map(|rest| rest.split("\n```").next().map(str::to_owned))
        .collect()
}

#[test]
fn every_command_runs_or_is_run_by_the_makefile() {
    let blocks = blocks("sh");
    let (examples, others): (Vec<_>, Vec<_>) = blocks
        .iter()
        .partition(|block| block.contains(" examples/"));
    let lines = blocks.iter().flat_map(|block| block.lines());
    for line in lines.filter(|line| line.contains("gst-launch-1.0")) {
        assert!(docs::turns_upright(line), "{line}");
    }
    let commands: Vec<_> = others.iter().flat_map(|block| block.lines()).collect();
    assert!(commands.len() > 5, "{commands:?}");
    for command in commands {
        check(command);
    }
    assert!(!examples.is_empty());
    for block in examples {
        check_examples(block);
    }
}

/// Commands that need what those before them left. Programs of the crate are run by `tests/examples.rs`, which has them
/// built already.
fn check_examples(block: &str) {
    let (ours, mut commands): (Vec<_>, Vec<_>) = block
        .lines()
        .partition(|line| line.contains("cargo run --release --example "));
    let tests = docs::text("tests/examples.rs");
    for command in ours {
        let name = command.split("--example ").nth(1).expect("a name");
        let name = name.split(' ').next().unwrap_or_default();
        assert!(tests.contains(&format!("(\"{name}\")")), "{command}");
    }
    if !docs::has_matplotlib() {
        commands.retain(|line| !line.contains("plot_blendshapes.py"));
    }
    if let Some(finished) = docs::run(&commands.join("\n")) {
        assert!(finished.success, "{block}\n{}", finished.text);
    }
}

/// Every example is in the README.
#[test]
fn every_example_is_listed() {
    let readme = docs::text("README.md");
    for file in fs::read_dir(docs::file("examples")).expect("examples") {
        let path = file.expect("a file").path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let name = match ending {
            Some("rs") => path.file_stem(),
            _ => path.file_name(),
        };
        let name = name.and_then(|name| name.to_str()).expect("a name");
        assert!(readme.contains(name), "{name}");
    }
}

fn check(command: &str) {
    let first = command.split([' ', '"']).next().unwrap_or_default();
    match first {
        "make" => has_target(command.trim_start_matches("make ")),
        "eval" => has_target("env"),
        "cargo" => assert!(
            docs::text("Makefile").contains(command),
            "`make` does not run `{command}`"
        ),
        "meson" | "ninja" => assert!(docs::file("meson.build").is_file()),
        "gst-launch-1.0" | "gst-inspect-1.0" => {
            if let Some(finished) = docs::run(command) {
                let good = docs::came_to_its_end(&finished);
                assert!(good, "{command}\n{}", finished.text);
                assert!(!finished.text.is_empty(), "{command} shows nothing");
            }
        }
        other => panic!("nothing here checks commands like `{other}`: {command}"),
    }
}

fn has_target(target: &str) {
    let makefile = docs::text("Makefile");
    assert!(
        makefile.contains(&format!("\n{target}: ")),
        "the Makefile has no target `{target}`"
    );
}

#[test]
fn the_property_tables_are_those_of_the_elements() {
    let path = docs::file("README.md");
    let readme = docs::text("README.md");
    let mut expected = readme.clone();
    common::init();
    for element in [
        "facetrack",
        "trackjsonload",
        "facetrackoverlay",
        "trackjsonsink",
        "trackudpsink",
    ] {
        let start = format!("<!-- properties of {element}: written by tests/readme.rs -->\n");
        let (before, rest) = expected.split_once(&start).expect("a start mark");
        let (_, after) = rest
            .split_once("<!-- end of properties -->")
            .expect("an end mark");
        let element = gst::ElementFactory::make(element).build();
        let table = common::property_table::table(&element.expect("the element"));
        expected = format!("{before}{start}{table}<!-- end of properties -->{after}");
    }
    if std::env::var_os(UPDATE).is_some() {
        fs::write(path, expected).expect("the README can be written");
        return;
    }
    assert!(
        readme == expected,
        "the README's tables are out of date: run `{UPDATE}=1 cargo test --test readme`"
    );
}

/// What an application may read has its line.
#[test]
fn messages_and_capabilities_are_told_of() {
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

    let readme = docs::text("README.md");
    let (_, section) = readme
        .split_once("### In an application")
        .expect("a section");
    let (section, _) = section.split_once("<!--").expect("its end");
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
    for snippet in blocks("c") {
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
    let snippets = blocks("python");
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
    let script = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(script.path(), program).expect("it can be written");
    let command = format!(
        "export PYTHONPATH='{}'; python3 {} # facetrack",
        docs::file("python").display(),
        script.path().display()
    );
    if let Some(finished) = docs::run(&command) {
        assert!(finished.success, "{}", finished.text);
        for part in ["1 Box(x=", "(478, 3)"] {
            assert!(finished.text.contains(part), "{}", finished.text);
        }
    }
}
