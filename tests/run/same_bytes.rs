// SPDX-License-Identifier: MPL-2.0
//! Records do not depend on the number of jobs, on the videos before, or on the instruction set.

use std::fs;
use std::path::Path;

use crate::clips;
use crate::common::engine::engine;
use crate::program::{SCRIPTED, files, run};
use facetrack::engine::{EngineConfig, EngineKind};
use facetrack::instructions;

/// Tracks all videos in `in` by two jobs, by one, and each in a process of its own.
fn assert_same_bytes(folder: &Path, options: &str) {
    for (out, line) in [("two", "--jobs 2"), ("one", "--jobs 1")] {
        run(folder, &format!("in --out {out} {line} --force {options}")).exits(0);
    }
    for video in files(&folder.join("in")) {
        let line = format!("in/{video} --out fresh --force {options}");
        run(folder, &line).exits(0);
    }
    let records = |out: &str| {
        let folder = folder.join(out);
        let mut names = files(&folder);
        names.retain(|name| name.ends_with(".json"));
        let read = |name: String| (fs::read(folder.join(&name)).expect("a record"), name);
        names.into_iter().map(read).collect::<Vec<_>>()
    };
    let two = records("two");
    assert!(two.len() > 2);
    assert!(two == records("one"), "{options}: one job");
    assert!(two == records("fresh"), "{options}: fresh processes");
    let text = String::from_utf8_lossy(&two[0].0).into_owned();
    assert!(
        !text.contains(&*folder.to_string_lossy()),
        "a path of the machine: {text}"
    );
}

#[test]
fn of_the_scripted_engine() {
    let folder = clips::videos(&[20, 5, 12, 30]);
    assert_same_bytes(folder.path(), &format!("{SCRIPTED} --set verbose=true"));
}

/// Engines with a memory, on real videos.
#[test]
fn of_engines_with_a_memory() {
    let videos = clips::recorded();
    if videos.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("in")).expect("a folder");
    for (number, video) in videos.iter().enumerate() {
        let copy = folder.path().join(format!("in/{number}.mp4"));
        fs::copy(video, copy).expect("room");
    }
    for kind in [
        EngineKind::MediaPipe,
        EngineKind::OpenSeeFace,
        EngineKind::Eos,
    ] {
        if engine(kind, &EngineConfig::default()).is_some() {
            let options = format!("--engine {} --set verbose=true", kind.name());
            assert_same_bytes(folder.path(), &options);
        }
    }
}

/// Records of a real video, made with vectors of two widths.
#[test]
fn of_every_instruction_set_with_fused_sums() {
    let videos = clips::recorded();
    let Some(video) = videos.first() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    fs::copy(video, folder.path().join("video.mp4")).expect("room");
    for (kind, options) in [
        (EngineKind::MediaPipe, "--set verbose=true"),
        (EngineKind::OpenCvYunet, "--set runtime=built-in"),
        (EngineKind::OpenSeeFace, "--set runtime=built-in"),
        (EngineKind::Eos, "--set runtime=built-in"),
    ] {
        if engine(kind, &EngineConfig::default()).is_none() {
            continue;
        }
        let record = |set: &str| {
            let out = format!("{set}/{}", kind.name());
            let line = format!("video.mp4 --out {out} --engine {} {options}", kind.name());
            let run = run(folder.path(), &line).env(instructions::VARIABLE, set);
            let is_ignored = run.exits(0).contains(instructions::VARIABLE);
            let record = fs::read(folder.path().join(out).join("video.json"));
            (!is_ignored).then(|| record.expect("a record"))
        };
        let [Some(wide), Some(narrow)] = ["avx512", "avx2"].map(record) else {
            eprintln!("SKIPPED: not both AVX-512 and AVX2 on this machine");
            return;
        };
        assert!(wide == narrow, "{kind:?}");
    }
}

#[test]
fn an_instruction_set_that_is_not_there_is_ignored_with_a_warning() {
    let folder = clips::videos(&[5]);
    let text = run(folder.path(), &format!("in --out out {SCRIPTED}"))
        .env(instructions::VARIABLE, "avx1024")
        .exits(0);
    let warning = r#"environment variable FACETRACK_SIMD="avx1024" ignored"#;
    assert!(text.contains(warning), "{text}");
}
