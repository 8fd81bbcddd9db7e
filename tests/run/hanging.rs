// SPDX-License-Identifier: MPL-2.0
//! Workers and commands that do not end, or say too much.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::clips;
use crate::common::file;
use crate::program::{Run, SCRIPTED, marker, run, run_with_worker, signal, status};

/// Programs that do not end: they ignore signals, stop themselves, keep their pipes open in other
/// programs, close them, or print forever. All have the pipe `alive` open.
const ENDLESS: [&str; 6] = [
    "trap '' TERM INT HUP; sleep 1000",
    "kill -STOP $$",
    "sleep 1000 & exec sleep 1000",
    "exec >/dev/null 2>/dev/null; sleep 1000",
    "yes; true",
    "tr '\\0' a </dev/zero; true",
];

/// Programs that start others in process groups or sessions of their own.
const ESCAPING: [&str; 3] = [
    "setsid sh -c 'trap \"\" TERM; sleep 1000; true' & exec sleep 1000",
    "setsid sh -c 'setsid sleep 1000 &' & exec sleep 1000",
    "timeout 1000 sleep 1000",
];

/// Longest time from a limit, or from SIGTERM, to the end.
const END: Duration = Duration::from_secs(5);

/// Longest time for a script to begin, on a loaded machine.
const START: Duration = Duration::from_secs(60);

/// Tells when no program has the pipe `alive` open.
struct Alive(Receiver<()>);

impl Alive {
    /// Makes the pipe. `begun` returns when a program has written a line to it.
    fn new(folder: &Path) -> (Self, Receiver<()>) {
        let path = folder.join("alive");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo").success());
        let (has_begun, begun) = channel();
        let (at_end, end) = channel::<()>();
        thread::spawn(move || {
            let _at_end = at_end;
            let mut pipe = BufReader::new(File::open(path).expect("a pipe"));
            pipe.read_line(&mut String::new()).expect("a line");
            let _ = has_begun.send(());
            let _ = pipe.read_to_end(&mut Vec::new());
        });
        (Self(end), begun)
    }

    #[track_caller]
    fn ends(&self, what: &str) {
        let ended = self.0.recv_timeout(END);
        let is_open = ended == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        assert!(!is_open, "{what}: a program is left");
    }
}

/// A run that tracks a video.
struct Started {
    folder: tempfile::TempDir,
    child: Child,
    alive: Alive,
    begun: Receiver<()>,
    script: &'static str,
    start: Instant,
}

impl Started {
    fn new(script: &'static str, run: impl Fn(&Path, &str) -> Run) -> Self {
        let folder = clips::videos(&[2]);
        let (alive, begun) = Alive::new(folder.path());
        let endless = format!("exec 9>alive; echo begun >&9; {script}");
        let run = run(folder.path(), &endless);
        let start = Instant::now();
        let child = run.start_with(Stdio::null());
        Self {
            folder,
            child,
            alive,
            begun,
            script,
            start,
        }
    }

    /// Sends a signal when the script has begun. Returns when.
    fn signal(&self, name: &str) -> Instant {
        self.begun.recv_timeout(START).expect("it has begun");
        signal(name, self.child.id());
        Instant::now()
    }

    /// Checks that the run ends in time after `limit` since `start`, and leaves no program.
    #[track_caller]
    fn ends(&mut self, code: Option<i32>, start: Instant, limit: Duration) {
        let status = self.child.wait().expect("it ends");
        let time = start.elapsed();
        assert_eq!(status.code(), code, "{}", self.script);
        assert!(time < limit + END, "{}: {time:?}", self.script);
        self.alive.ends(self.script);
    }
}

fn with_worker(arguments: &str) -> impl Fn(&Path, &str) -> Run {
    let line = format!("in --out out {SCRIPTED} {arguments}");
    move |folder, script| run_with_worker(script, folder, &line)
}

fn with_command(arguments: &str) -> impl Fn(&Path, &str) -> Run {
    let line = format!("in/clip0.mp4 --out out {SCRIPTED} {arguments} --fetch");
    move |folder, script| {
        let script = format!("'{}'", script.replace('\'', r"'\''"));
        run(folder, &line).arg(&format!("sh -c {script} sh {{}} {{local}}"))
    }
}

#[test]
fn a_worker_that_hangs_while_starting_is_ended() {
    let limit = Duration::from_millis(500);
    let runs = ENDLESS.map(|script| Started::new(script, with_worker("--timeout 0.5s")));
    runs.into_iter()
        .for_each(|mut run| run.ends(Some(69), run.start, limit));
}

#[test]
fn sigterm_ends_a_run_whose_worker_hangs_while_starting() {
    // One that closes its output has ended.
    let scripts = ENDLESS
        .into_iter()
        .filter(|script| !script.contains("exec >"));
    let runs = scripts.map(|script| Started::new(script, with_worker("")));
    for mut run in runs.collect::<Vec<_>>() {
        let start = run.signal("TERM");
        run.ends(Some(75), start, Duration::ZERO);
    }
}

/// The first line is the setup, and the second one the video.
const STOPS: &str = r#"(head -n 1; head -n 1 >/dev/null; kill -STOP $$; sleep 1000) | "$WORKER""#;

#[test]
fn a_worker_that_stops_itself_is_ended() {
    // Two attempts.
    let limit = 2 * Duration::from_secs(1) + END;
    let mut run = Started::new(STOPS, with_worker("--timeout 1s"));
    let mut terminated = Started::new(STOPS, with_worker(""));
    run.ends(Some(1), run.start, limit);
    assert_eq!(status(&run.folder.path().join("out/clip0.json")), "failed");
    let start = terminated.signal("TERM");
    terminated.ends(Some(75), start, Duration::ZERO);
}

#[test]
fn a_command_that_hangs_is_ended_with_all_that_it_started() {
    // Two attempts.
    let limit = 2 * Duration::from_secs(1);
    let scripts = ENDLESS.into_iter().chain(ESCAPING);
    let runs = scripts.map(|script| Started::new(script, with_command("--timeout 1s")));
    for mut run in runs.collect::<Vec<_>>() {
        run.ends(Some(1), run.start, limit);
        let marker = marker(&run.folder.path().join("out/clip0.json"));
        let message = marker["message"].as_str().expect("a reason");
        assert!(message.contains("--timeout"), "{message}");
    }
}

#[test]
fn a_command_ends_with_its_run() {
    for (signal, code) in [("TERM", Some(75)), ("KILL", None)] {
        let scripts = ENDLESS.into_iter().chain(ESCAPING);
        let runs = scripts.map(|script| Started::new(script, with_command("")));
        for mut run in runs.collect::<Vec<_>>() {
            let start = run.signal(signal);
            run.ends(code, start, Duration::ZERO);
        }
    }
}

/// After a command has ended, its file does not change.
#[test]
fn programs_that_a_command_leaves_are_ended() {
    let script = r#"cp "$1" "$2"; setsid sleep 1000 & sleep 1000 & exit 0"#;
    let mut run = Started::new(script, with_command(""));
    run.ends(Some(0), run.start, END);
}

/// Lines that are not text, and more lines than anyone reads, do not keep a worker from its video.
#[test]
fn a_noisy_worker_tracks_its_video() {
    let folder = clips::videos(&[2]);
    let folder = folder.path();
    let script = r#"printf '\377\376\n\033[2J\n'; yes | head -n 100000; head -c 70000000 /dev/zero | tr '\0' a; echo
yes | head -n 100000 >&2
exec "$WORKER""#;
    let text = run_with_worker(script, folder, &format!("in --out out {SCRIPTED}")).exits(0);
    assert_eq!(status(&folder.join("out/clip0.json")), "complete");
    assert!(text.len() < 100_000, "{}", text.len());
}

/// Builds the plugin in `tests/run/endless_decoder.c`.
fn build_endless_decoder(folder: &Path) {
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "gstreamer-1.0"])
        .output()
        .expect("pkg-config is installed");
    let flags = String::from_utf8_lossy(&flags.stdout).into_owned();
    let built = Command::new("gcc")
        .args(["-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
        .arg(folder.join("libgstendless.so"))
        .arg(file("tests/run/endless_decoder.c"))
        .args(flags.split_whitespace())
        .status();
    assert!(built.expect("gcc is installed").success());
}

#[test]
fn a_video_that_does_not_move_on_is_ended() {
    let folder = clips::videos(&[2]);
    let folder = folder.path();
    build_endless_decoder(folder);
    clips::play(&format!(
        "videotestsrc num-buffers=5 ! jpegenc ! matroskamux ! filesink location={}",
        folder.join("in/a.mkv").display()
    ));
    let line = format!("in --out out --jobs 1 --timeout 60s {SCRIPTED}");
    let run = run(folder, &line).env("GST_PLUGIN_PATH", &folder.display().to_string());
    let registry = folder.join("registry").display().to_string();
    run.env("GST_REGISTRY", &registry).exits(1);
    let stalled = marker(&folder.join("out/a.json"));
    assert_eq!(
        (&stalled["status"], &stalled["attempts"]),
        (&"failed".into(), &1.into())
    );
    let message = stalled["message"].as_str().expect("a reason");
    assert!(message.contains("cannot be read"), "{message}");
    assert_eq!(status(&folder.join("out/clip0.json")), "complete");
}

/// In a worker that has tracked a video, demuxers are fast: their errors may come before decodebin
/// expects them.
#[test]
fn broken_videos_end_at_once() {
    let folder = clips::videos(&[30]);
    let inputs = folder.path().join("in");
    for number in 0..20 {
        let path = inputs.join(format!("{number:02}.mp4"));
        clips::cut(&inputs.join("clip0.mp4"), 0.05, &path);
    }
    let line = format!("in --out out --jobs 1 {SCRIPTED}");
    let text = run(folder.path(), &line).exits(1);
    assert_eq!(text.matches("qtdemux: This file").count(), 20, "{text}");
}

/// A file that takes hours to read.
#[test]
fn sigterm_ends_a_run_that_reads_a_file() {
    let mut started = Started::new(r#"exec "$WORKER""#, |folder, script| {
        let huge = File::create(folder.join("in/huge.mp4")).expect("room");
        huge.set_len(1 << 40).expect("a sparse file");
        with_worker("--checksum")(folder, script)
    });
    let start = started.signal("TERM");
    started.ends(Some(75), start, Duration::ZERO);
}
