// SPDX-License-Identifier: MPL-2.0
//! Videos that a command fetches.

use std::fs;
use std::path::Path;

use crate::clips;
use crate::program::{SCRIPTED, files, marker, run, status};

/// Copies from the folder `in`, and notes how many videos were there, with this one.
const COPY: &str =
    r#"sh -c 'ls "${2%/*/*}" | wc -l >>fetched; cp "in/${1#store://}" "$2"' sh {} {local}"#;

/// Writes a list of videos of a store. The folder `in` has all but the last.
fn write_list(folder: &Path, count: usize) {
    let line = |number| format!("store://clip{number}.mp4\n");
    let lines: String = (0..=count).map(line).collect();
    fs::write(folder.join("list.txt"), lines).expect("room");
}

#[test]
fn fetched_videos_have_the_same_records() {
    let lengths = [5, 30, 4, 20, 3, 6];
    let folder = clips::videos(&lengths);
    let folder = folder.path();
    fs::create_dir(folder.join("scratch")).expect("a folder");
    write_list(folder, lengths.len());
    run(folder, &format!("in --out local {SCRIPTED}")).exits(0);

    let line = format!("list.txt --out out --jobs 2 --fetch-ahead 1 {SCRIPTED} --fetch");
    let fetch = |code| {
        let command = run(folder, &line).arg(COPY);
        let scratch = folder.join("scratch").display().to_string();
        command.env("TMPDIR", &scratch).exits(code)
    };
    let text = fetch(1);
    for number in 0..lengths.len() {
        let record = |out: &str| fs::read(folder.join(out).join(format!("clip{number}.json")));
        assert_eq!(
            record("out").expect("a record"),
            record("local").expect("a record")
        );
    }
    let missing = marker(&folder.join("out/clip6.json"));
    assert_eq!(
        (&missing["status"], &missing["attempts"]),
        (&"failed".into(), &2.into())
    );
    assert_eq!(missing["video"], "store://clip6.mp4");
    assert!(text.contains("store://clip6.mp4 was not fetched"), "{text}");

    let already = fs::read_to_string(folder.join("fetched")).expect("notes");
    let already: Vec<usize> = already
        .lines()
        .map(|it| it.trim().parse().expect("a number"))
        .collect();
    assert_eq!(already.len(), lengths.len() + 2, "{already:?}");
    assert!(already.iter().all(|count| *count <= 3), "{already:?}");
    assert_eq!(files(&folder.join("scratch")), Vec::<String>::new());

    fs::remove_file(folder.join("fetched")).expect("ours");
    fetch(1);
    assert!(
        !folder.join("fetched").exists(),
        "done videos are not fetched again"
    );
}

#[test]
fn failures_name_the_video_and_the_reason() {
    let folder = clips::videos(&[2]);
    let folder = folder.path();
    let many = "head -c 3000000 /dev/zero | tr '\\0' a >&2";
    let many = format!("sh -c \"{many}; printf '\\\\377b\\\\n' >&2; exit 1\" {{}} {{local}}");
    for (command, part) in [
        ("cp {}.gone {local}", "No such file"),
        ("test {} != {local}", "has not created"),
        ("no-such-program {} {local}", "No such file or directory"),
        ("sh -c 'kill $$' {} {local}", "143"),
        (&many, "aaa […]"),
    ] {
        let line = format!("in/clip0.mp4 --out out --retry-failed {SCRIPTED} --fetch");
        run(folder, &line).arg(command).exits(1);
        let marker = marker(&folder.join("out/clip0.json"));
        let message = marker["message"].as_str().expect("a reason");
        let is_named = message.starts_with("in/clip0.mp4 was not fetched");
        assert!(is_named && message.contains(part), "{command}: {message}");
        assert!(message.len() < 5000, "{command}: {}", message.len());
    }
}

/// Each attempt has a file of its own, and leaves nothing.
#[test]
fn a_second_attempt_has_another_file() {
    let folder = clips::videos(&[2]);
    let folder = folder.path();
    fs::create_dir(folder.join("scratch")).expect("a folder");
    let command = r#"sh -c 'echo half >"$2"; echo "$2" >>names; test "$(wc -l <names)" = 2 && cp "$1" "$2"' sh {} {local}"#;
    let line = format!("in/clip0.mp4 --out out {SCRIPTED} --fetch");
    let scratch = folder.join("scratch").display().to_string();
    let command = run(folder, &line).arg(command).env("TMPDIR", &scratch);
    command.exits(0);
    let names = fs::read_to_string(folder.join("names")).expect("notes");
    let names: Vec<_> = names.lines().collect();
    assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
    assert_eq!(files(&folder.join("scratch")), Vec::<String>::new());
}

#[test]
fn a_damaged_video_is_named_as_in_the_list() {
    let folder = clips::videos(&[30]);
    let folder = folder.path();
    let video = folder.join("in/clip0.mp4");
    clips::cut(&video, 0.02, &video);
    let command = run(
        folder,
        &format!("in/clip0.mp4 --out out {SCRIPTED} --fetch"),
    );
    command.arg("cp {} {local}").exits(1);
    let record = folder.join("out/clip0.json");
    assert_eq!(status(&record), "failed");
    let marker = marker(&record);
    let message = marker["message"].as_str().expect("a reason");
    assert!(!message.contains("facetrack-"), "{message}");
}

#[test]
fn refused_ways_to_fetch() {
    let folder = clips::videos(&[2]);
    let folder = folder.path();
    fs::write(folder.join("list.txt"), "-o/etc/passwd\n").expect("room");
    for (line, command, part) in [
        ("in", "cp {} {local}", "--out"),
        ("in --out out --segment 60s", "cp {} {local}", "--segment"),
        ("in --out out", "cp {} here", "{local} is missing"),
    ] {
        let text = run(folder, &format!("{line} {SCRIPTED} --fetch"))
            .arg(command)
            .exits(2);
        assert!(text.contains(part), "{line}: {text}");
    }
    let line = format!("list.txt --out out {SCRIPTED} --fetch");
    let text = run(folder, &line).arg("curl --output {local} {}").exits(1);
    assert!(text.contains("would take it for an option"), "{text}");
}
