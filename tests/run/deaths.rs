// SPDX-License-Identifier: MPL-2.0
//! Workers and runs that are killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::Duration;

use crate::clips;
use crate::common::strace;
use crate::program::{
    Run, SCRIPTED, children, files, marker, record, run, run_with_worker, signal, status,
};

/// An engine that takes `ms` for a frame.
pub fn slow(run: Run, ms: u32) -> Run {
    run.arg("--set").arg(&format!("script=face; slow ms={ms}"))
}

/// Waits for an event with `word`, and returns whether it came.
pub fn wait_for(child: &mut Child, word: &str) -> bool {
    let output = child.stdout.take().expect("a pipe");
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let found = lines.any(|line| line.contains(word));
    // The command may not wait for a reader.
    thread::spawn(move || lines.for_each(drop));
    found
}

#[test]
fn a_video_whose_worker_dies_is_tried_again() {
    let folder = clips::videos(&[30, 5]);
    let folder = folder.path();
    let mut child = slow(run(folder, &format!("in --json --jobs 1 {SCRIPTED}")), 30).start();
    assert!(wait_for(&mut child, "\"progress\""));
    let workers = children(child.id());
    assert_eq!(workers.len(), 1);
    signal("KILL", workers[0]);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    let attempts = ["clip0", "clip1"]
        .map(|name| marker(&folder.join(format!("in/{name}.json")))["attempts"].clone());
    assert_eq!(attempts, [2, 1].map(serde_json::Value::from));
    assert!(
        !files(folder).iter().any(|name| name.contains("partial")),
        "{:?}",
        files(folder)
    );
}

#[test]
fn a_worker_that_is_killed_while_it_starts_is_started_again() {
    let folder = clips::videos(&[2]);
    let script = "[ -e killed ] || { : >killed; kill -KILL $$; }; exec \"$WORKER\"";
    let line = format!("in --out out {SCRIPTED}");
    let text = run_with_worker(script, folder.path(), &line).exits(0);
    assert!(text.contains("It is started once more"), "{text}");
    assert_eq!(status(&folder.path().join("out/clip0.json")), "complete");
}

#[test]
fn limits_end_a_video_after_two_attempts() {
    let folder = clips::videos(&[40, 2]);
    let folder = folder.path();
    let line = format!("in --out out --timeout 1s --jobs 1 {SCRIPTED}");
    slow(run(folder, &line), 100).exits(1);
    let long = marker(&folder.join("out/clip0.json"));
    assert_eq!(
        (&long["status"], &long["attempts"]),
        (&"failed".into(), &2.into())
    );
    assert!(
        long["message"]
            .as_str()
            .is_some_and(|text| text.contains("--timeout")),
        "{long}"
    );
    assert_eq!(status(&folder.join("out/clip1.json")), "complete");

    let line = format!("in/clip1.mp4 --out small --max-memory 1M {SCRIPTED}");
    slow(run(folder, &line), 100).exits(1);
    let small = marker(&folder.join("small/clip1.json"));
    assert!(
        small["message"]
            .as_str()
            .is_some_and(|text| text.contains("--max-memory")),
        "{small}"
    );
}

/// Calls that change what is at a path. strace counts each on its own.
const CHANGES: [&str; 3] = ["rename,renameat,renameat2", "unlink,unlinkat", "rmdir"];

/// Files that a run changes when it replaces a record and its status file, and that a worker leaves.
const CHANGED: [&str; 5] = [
    "a.json.parts",
    "a.json.parts/claim",
    "a.json.parts/record.json",
    "a.json.parts/record.json.done",
    "a.json.parts/record.json.done.partial",
];

#[test]
fn a_replacement_may_be_killed_at_every_step() {
    if strace::is_missing() {
        return;
    }
    let folder = clips::videos(&[5, 7]);
    let folder = folder.path();
    let inputs = folder.join("in");
    fs::rename(&inputs, folder.join("clips")).expect("our own");
    fs::create_dir(&inputs).expect("a folder");
    let paths = CHANGED.map(|name| inputs.join(name));
    let run = || run(folder, &format!("in --jobs 1 {SCRIPTED}"));
    let replace = |clip: usize| {
        let from = folder.join(format!("clips/clip{clip}.mp4"));
        fs::copy(from, inputs.join("a.mp4")).expect("room");
    };
    let made = inputs.join("a.json");
    let frames = || record(&made)["metadata"]["total_frames"].as_u64();
    replace(0);
    run().exits(0);
    let (mut kills, mut clips) = (0, [(1, Some(7)), (0, Some(5))].into_iter().cycle());
    for calls in CHANGES {
        for count in 1.. {
            let (clip, want) = clips.next().expect("a cycle");
            replace(clip);
            let code = run().killed_at(calls, count, &paths);
            // There is a whole record at any time.
            let found = frames();
            if code == Some(0) {
                assert_eq!(found, want);
                break;
            }
            kills += 1;
            run().exits(0);
            assert_eq!(frames(), want, "{calls} {count}");
            assert_eq!(marker(&made)["frames"].as_u64(), want, "{calls} {count}");
            assert_eq!(files(&inputs), ["a.json", "a.json.done", "a.mp4"]);
            assert!(!paths[0].exists(), "{calls} {count}");
        }
    }
    // The status file is written, both are renamed, and the claim is removed with its folder.
    assert!(kills >= 5, "{kills}");
}

/// The number of kills; `FACETRACK_ATTACK` multiplies it.
fn kills() -> u64 {
    let factor = std::env::var("FACETRACK_ATTACK").ok();
    3 * factor.map_or(1, |factor| factor.parse::<u64>().expect("a number"))
}

const CLIPS: u32 = 40;

/// Writes 40 videos, 6 of them broken.
fn write_clips(folder: &Path) {
    clips::video(&folder.join("clip00.mp4"), 30);
    for number in 1..CLIPS {
        let path = folder.join(format!("clip{number:02}.mp4"));
        if is_broken(number) {
            clips::cut(&folder.join("clip00.mp4"), 0.02, &path);
        } else {
            fs::copy(folder.join(format!("clip{:02}.mp4", 0)), &path).expect("room");
        }
    }
}

fn is_broken(number: u32) -> bool {
    number % 7 == 3
}

/// Kills the run, or one of its workers, at random moments. Then it is run to its end.
#[test]
fn a_killed_run_is_continued() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    fs::create_dir(folder.join("in")).expect("a folder");
    write_clips(&folder.join("in"));
    let line = format!("in --out out --jobs 2 --json {SCRIPTED}");
    let mut random = fastrand::Rng::with_seed(19);
    for kill in 0..kills() {
        let mut child = slow(run(folder, &line), 5).start();
        if !wait_for(&mut child, "\"started\"") {
            // All videos are done: begin again.
            child.wait().expect("it ends");
            assert_all_done(folder);
            fs::remove_dir_all(folder.join("out")).expect("our own");
            continue;
        }
        thread::sleep(Duration::from_millis(random.u64(0..1200)));
        let workers = children(child.id());
        match workers.get(random.usize(0..workers.len() + 1)) {
            Some(worker) if kill % 2 == 0 => signal("KILL", *worker),
            _ => child.kill().expect("it runs"),
        }
        child.wait().expect("it ends");
    }
    slow(run(folder, &line), 5).exits(1);
    assert_all_done(folder);
}

/// Every good video is done once, every broken one is named, and nothing else is there.
fn assert_all_done(folder: &Path) {
    let out = folder.join("out");
    let mut expected = vec!["facetrack-failed.jsonl".to_owned()];
    for number in 0..CLIPS {
        let name = format!("clip{number:02}.json");
        let path = out.join(&name);
        if is_broken(number) {
            assert_eq!(status(&path), "failed", "{name}");
        } else {
            assert_eq!(status(&path), "complete", "{}", marker(&path));
            assert_eq!(
                record(&path)["frames"].as_array().map(Vec::len),
                Some(30),
                "{name}"
            );
            expected.push(name.clone());
        }
        expected.push(format!("{name}.done"));
    }
    expected.sort();
    assert_eq!(files(&out), expected);
    let failed = fs::read_to_string(out.join("facetrack-failed.jsonl")).expect("a list");
    let broken = (0..CLIPS).filter(|number| is_broken(*number));
    assert!(
        broken
            .clone()
            .all(|number| failed.contains(&format!("clip{number:02}.mp4")))
    );
    assert_eq!(failed.lines().count(), broken.count());
}
