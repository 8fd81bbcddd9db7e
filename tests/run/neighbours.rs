// SPDX-License-Identifier: MPL-2.0
//! Runs in folders with other people's files. The runs are killed, and their disks vanish.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::clips;
use crate::program::{Run, SCRIPTED, children, marker, record, run, signal, status};

/// Environment variable of all processes of the test, to find them.
const TAG: &str = "FACETRACK_NEIGHBOURS";

/// Frames of the videos that are tracked.
const FRAMES: [u32; 4] = [5, 6, 8, 12];

/// Time for the workers of a killed run to end.
const ENDING: Duration = Duration::from_secs(10);

/// Suffix and kind of somebody else's file next to a video, and the status of that video.
const NEIGHBOURS: [(&str, &str, &str); 17] = [
    ("json.done", "pipe", "skipped"),
    ("json.done", "/dev/zero", "skipped"),
    ("json.done", "nowhere", "skipped"),
    ("json.done", "folder", "skipped"),
    ("json.done", "text", "skipped"),
    ("json.done", "socket", "skipped"),
    ("json.parts", "pipe", "skipped"),
    ("json.parts", "nowhere", "skipped"),
    ("json.parts", "folder", "skipped"),
    ("json.parts", "text", "skipped"),
    ("json", "pipe", "skipped"),
    ("json", "nowhere", "skipped"),
    ("json", "folder", "skipped"),
    ("json", "text", "skipped"),
    ("json.partial", "text", "complete"),
    ("json.done.partial", "pipe", "complete"),
    ("json.partial.old", "text", "complete"),
];

/// Puts something at a path.
fn put(path: &Path, kind: &str) {
    match kind {
        "pipe" => {
            let made = Command::new("mkfifo").arg(path).status();
            assert!(made.expect("mkfifo runs").success());
        }
        "folder" => {
            fs::create_dir(path).expect("a folder");
            for name in ["x.mp4", "00001.json", "record.json"] {
                fs::write(path.join(name), "mine").expect("room");
            }
        }
        "text" => fs::write(path, "two\nlines\n").expect("room"),
        "socket" => drop(UnixListener::bind(path).expect("a socket")),
        target => symlink(target, path).expect("a link"),
    }
}

fn neighbour(number: usize) -> String {
    format!("n{number:02}")
}

/// A folder `in` with videos and neighbours, and a folder `out` with neighbours.
fn shared_folder() -> tempfile::TempDir {
    let folder = clips::videos(&FRAMES);
    let root = folder.path();
    fs::create_dir(root.join("out")).expect("a folder");
    let clip = root.join("in/clip0.mp4");
    let copy = |name: OsString| {
        fs::copy(&clip, root.join("in").join(name)).expect("room");
    };
    for (number, (suffix, kind, _)) in NEIGHBOURS.iter().enumerate() {
        copy((neighbour(number) + ".mp4").into());
        for records in ["in", "out"] {
            let name = format!("{}.{suffix}", neighbour(number));
            put(&root.join(records).join(name), kind);
        }
    }
    fs::create_dir_all(root.join("in/.Trash-0")).expect("a folder");
    for name in [
        "same.mkv",
        "same.mp4",
        "new\nline.mp4",
        ".hidden.mp4",
        ".Trash-0/a.mp4",
        "...mp4",
        "._clip0.mp4",
    ] {
        copy(name.into());
    }
    copy(OsString::from_vec(("l".repeat(250) + ".mp4").into()));
    copy(OsString::from_vec(b"\xff.mp4".into()));
    for (name, kind) in [
        ("pipe.mp4", "pipe"),
        ("socket.mp4", "socket"),
        ("gone.mp4", "nowhere"),
        ("zero.mp4", "/dev/zero"),
        ("loop", "."),
        ("self.mp4", "self.mp4"),
    ] {
        put(&root.join("in").join(name), kind);
    }
    clips::cut(&clip, 0.02, &root.join("in/broken.mp4"));
    folder
}

/// The status of each video in the end, by id.
fn expected() -> BTreeMap<String, &'static str> {
    let mut expected: BTreeMap<_, _> = [
        ("same", "skipped"),
        ("new\nline", "complete"),
        (&"l".repeat(250), "skipped"),
        ("\u{fffd}", "skipped"),
        ("pipe", "unsupported"),
        ("socket", "unsupported"),
        ("gone", "failed"),
        ("zero", "unsupported"),
        ("self", "failed"),
        ("broken", "failed"),
    ]
    .map(|(id, status)| (id.to_owned(), status))
    .into();
    expected.extend((0..FRAMES.len()).map(|number| (format!("clip{number}"), "complete")));
    let neighbours = NEIGHBOURS.iter().enumerate();
    expected.extend(neighbours.map(|(number, it)| (neighbour(number), it.2)));
    expected
}

/// Everything below a folder, with its kind and content.
fn things(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut things = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("a folder") {
            let path = entry.expect("an entry").path();
            let found = fs::symlink_metadata(&path)
                .expect("it is there")
                .file_type();
            let content = if found.is_file() {
                format!("{:?}", fs::read(&path).expect("a file"))
            } else if found.is_symlink() {
                format!("{:?}", fs::read_link(&path).expect("a link"))
            } else {
                format!("{} {}", found.is_fifo(), found.is_socket())
            };
            if found.is_dir() {
                folders.push(path.clone());
            }
            things.insert(path, content);
        }
    }
    things
}

/// The processes of the test that still run.
fn processes(tag: &str) -> Vec<PathBuf> {
    let variable = format!("{TAG}={tag}");
    let is_own = |process: &PathBuf| {
        let variables = fs::read(process.join("environ")).unwrap_or_default();
        variables
            .split(|byte| *byte == 0)
            .any(|it| it == variable.as_bytes())
    };
    let all = fs::read_dir("/proc").expect("a folder").flatten();
    all.map(|entry| entry.path()).filter(is_own).collect()
}

/// A way to disturb a run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Disturbance {
    None,
    /// The run is killed.
    Run,
    Worker,
    Terminated,
    /// The input is away, with or without its mount point.
    Away {
        is_empty: bool,
    },
}

fn disturbance(random: &mut fastrand::Rng) -> Disturbance {
    match random.u8(0..8) {
        0 => Disturbance::None,
        1..=2 => Disturbance::Run,
        3..=4 => Disturbance::Worker,
        5 => Disturbance::Terminated,
        _ => Disturbance::Away {
            is_empty: random.bool(),
        },
    }
}

struct Shared {
    folder: tempfile::TempDir,
    /// Everything of other people.
    others: BTreeMap<PathBuf, String>,
    /// Records that were complete once.
    complete: BTreeSet<PathBuf>,
    random: fastrand::Rng,
}

impl Shared {
    fn new(seed: u64) -> Self {
        let folder = shared_folder();
        Self {
            others: things(folder.path()),
            folder,
            complete: BTreeSet::new(),
            random: fastrand::Rng::with_seed(seed),
        }
    }

    fn tag(&self) -> String {
        self.folder.path().display().to_string()
    }

    fn command(&self, line: &str, slow: u32) -> Run {
        let run = run(self.folder.path(), &format!("in --json {SCRIPTED} {line}"));
        let script = format!("script=face; slow ms={slow}");
        run.arg("--set").arg(&script).env(TAG, &self.tag())
    }

    /// Starts a run, and disturbs it.
    fn run_disturbed(&mut self) {
        let mut line = format!("--replace --jobs 2 --set max-age={}", self.random.u8(1..4));
        for option in [
            " --out out",
            " --segment 0.2s --warm-up 0.1s",
            " --retry-failed",
        ] {
            if self.random.bool() {
                line += option;
            }
        }
        let slow = self.random.u32(0..12);
        let mut child = self.command(&line, slow).start();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let lines = thread::spawn(move || output.lines().map_while(Result::ok).collect());
        thread::sleep(Duration::from_millis(self.random.u64(0..900)));
        let disturbance = disturbance(&mut self.random);
        self.disturb(&mut child, disturbance);
        let code = child.wait().expect("it ends").code();
        self.restore(disturbance);
        let lines: Vec<String> = lines.join().expect("no panic");
        let is_whole = !matches!(disturbance, Disturbance::Run | Disturbance::Terminated);
        if is_whole && code != Some(2) {
            assert!(
                matches!(code, Some(0 | 1)),
                "{disturbance:?} {line}: {code:?}"
            );
            assert_all_settled(&lines, &format!("{disturbance:?} {line}"));
        }
        self.check(&format!("{disturbance:?} {line}"));
    }

    fn disturb(&mut self, child: &mut Child, disturbance: Disturbance) {
        let root = self.folder.path();
        match disturbance {
            Disturbance::None => (),
            Disturbance::Run => child.kill().expect("it runs"),
            Disturbance::Terminated => signal("TERM", child.id()),
            Disturbance::Worker => {
                if let Some(worker) = self.random.choice(children(child.id())) {
                    signal("KILL", worker);
                }
            }
            Disturbance::Away { is_empty } => {
                fs::rename(root.join("in"), root.join("away")).expect("our own");
                if is_empty {
                    fs::create_dir(root.join("in")).expect("a folder");
                }
            }
        }
    }

    /// Puts the input back. Nothing was put into its mount point.
    fn restore(&self, disturbance: Disturbance) {
        let root = self.folder.path();
        if let Disturbance::Away { is_empty } = disturbance {
            assert_eq!(root.join("in").exists(), is_empty);
            if is_empty {
                fs::remove_dir(root.join("in")).expect("it is empty");
            }
            fs::rename(root.join("away"), root.join("in")).expect("our own");
        }
    }

    /// Checks everything that is true after any run.
    fn check(&mut self, what: &str) {
        let start = Instant::now();
        while !processes(&self.tag()).is_empty() {
            assert!(
                start.elapsed() < ENDING,
                "{what}: {:?}",
                processes(&self.tag())
            );
            thread::yield_now();
        }
        let now = things(self.folder.path());
        for (path, content) in &self.others {
            assert_eq!(now.get(path), Some(content), "{what}: {}", path.display());
        }
        for records in ["in", "out"] {
            for (id, _) in expected() {
                let path = self.folder.path().join(records).join(id + ".json");
                let marker = path.with_extension("json.done");
                let is_complete = fs::symlink_metadata(&marker).is_ok_and(|it| it.is_file())
                    && !self.others.contains_key(&marker)
                    && status(&path) == "complete";
                if is_complete {
                    self.complete.insert(path.clone());
                }
                assert_eq!(
                    is_complete,
                    self.complete.contains(&path),
                    "{what}: {}",
                    path.display()
                );
                if is_complete {
                    let frames = record(&path)["frames"].as_array().map(Vec::len);
                    assert_eq!(
                        self::marker(&path)["frames"].as_u64(),
                        frames.map(|it| it as u64)
                    );
                }
            }
        }
    }

    /// Runs without a disturbance.
    fn run_whole(&mut self, line: &str) {
        let text = self.command(&format!("--replace {line}"), 0).exits(1);
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        assert_all_settled(&lines, line);
        let expected = expected();
        for event in finished(&lines) {
            let id = event["id"].as_str().expect("an id");
            // There are videos in folders of other people, too.
            if let Some(want) = expected.get(id) {
                assert_eq!(event["marker"]["status"], *want, "{line}: {event}");
            }
        }
        self.check(line);
    }
}

fn finished(lines: &[String]) -> Vec<Json> {
    let events = lines
        .iter()
        .filter_map(|line| serde_json::from_str::<Json>(line).ok());
    events
        .filter(|event| event["event"] == "finished")
        .collect()
}

/// Each video has one status.
#[track_caller]
fn assert_all_settled(lines: &[String], what: &str) {
    let ids: Vec<_> = finished(lines).iter().map(|it| it["id"].clone()).collect();
    for id in expected().keys() {
        let count = ids.iter().filter(|it| *it == id).count();
        let want = if id == "same" { 2 } else { 1 };
        assert_eq!(count, want, "{what}: {id} in {lines:#?}");
    }
}

/// The number of runs; `FACETRACK_ATTACK` multiplies it.
fn runs() -> u64 {
    let factor = std::env::var("FACETRACK_ATTACK").ok();
    3 * factor.map_or(1, |factor| factor.parse::<u64>().expect("a number"))
}

#[test]
fn nothing_is_lost_in_a_shared_folder() {
    let mut shared = Shared::new(39);
    for _ in 0..runs() {
        shared.run_disturbed();
    }
    for line in ["", "--out out", "--segment 0.2s --warm-up 0.1s"] {
        shared.run_whole(line);
    }
}
