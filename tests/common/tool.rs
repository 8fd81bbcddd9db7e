// SPDX-License-Identifier: MPL-2.0
//! GStreamer's tools as users run them.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::engine::installed_paths;

/// Prefixes of variables that the plugin reads.
const LISTENED_TO: [&str; 7] = [
    "STEP5_",
    "TRACKING_",
    "FACETRACK_",
    "INSIGHTFACE_",
    "CUDA_",
    "ORT_",
    "GST_",
];

/// A command without the variables that the plugin listens to, and without those that begin with one
/// of `more`.
pub fn without_variables(program: impl AsRef<OsStr>, more: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        let mut prefixes = LISTENED_TO.iter().chain(more);
        if prefixes.any(|prefix| name.starts_with(prefix)) {
            command.env_remove(&*name);
        }
    }
    command
}

/// Runs a GStreamer tool that finds the plugin as users' tools do, with nothing of this process's
/// environment that the plugin listens to.
pub struct Tool {
    command: Command,
    folder: tempfile::TempDir,
}

impl Tool {
    pub fn new(program: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::os::unix::fs::symlink(plugin(), folder.path().join("libgstfacetrack.so"))
            .expect("a link to the plugin");
        let mut command = without_variables(program, &[]);
        command
            .env("GST_PLUGIN_PATH", folder.path())
            .env("GST_REGISTRY", registry())
            .env("XDG_DATA_HOME", folder.path())
            .env("LC_ALL", "C.UTF-8");
        Self { command, folder }
    }

    /// Folder where the plugin looks for models, empty at first.
    pub fn models_dir(&self) -> PathBuf {
        let folder = self.folder.path().join("facetrack/models");
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// It finds the installed models and ONNX Runtime.
    pub fn with_models(self) -> Self {
        let paths = installed_paths();
        let data = paths.data_dir.as_deref().and_then(Path::parent);
        let variables = [
            ("XDG_DATA_HOME", data),
            ("FACETRACK_MODELS_DIR", paths.collection.as_deref()),
            ("FACETRACK_ONNXRUNTIME", paths.runtime.as_deref()),
        ];
        let variables = variables
            .into_iter()
            .filter_map(|(name, path)| Some((name, path?)));
        variables.fold(self, |tool, (name, path)| {
            tool.env(name, path.to_str().expect("UTF-8"))
        })
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Arguments, separated by blanks.
    pub fn args(mut self, line: &str) -> Self {
        self.command.args(line.split_whitespace());
        self
    }

    /// One argument.
    pub fn arg(mut self, arg: &str) -> Self {
        self.command.arg(arg);
        self
    }

    /// Its standard input.
    pub fn stdin(mut self, file: File) -> Self {
        self.command.stdin(file);
        self
    }

    pub fn run(mut self) -> Finished {
        let output = self.command.output().expect("the tool is installed");
        drop(self.folder);
        Finished::from(output)
    }
}

impl Tool {
    /// Runs it in parallel with the test.
    pub fn start(mut self) -> Running {
        let pipes = self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().expect("the tool is installed");
        let (sender, lines) = channel();
        forward(child.stdout.take().expect("a pipe"), sender.clone());
        forward(child.stderr.take().expect("a pipe"), sender);
        Running {
            child,
            lines,
            said: Vec::new(),
            heard: 0,
            _folder: self.folder,
        }
    }
}

fn forward(pipe: impl Read + Send + 'static, lines: Sender<String>) {
    let read = BufReader::new(pipe).lines().map_while(Result::ok);
    thread::spawn(move || read.map(|line| lines.send(line)).all(|sent| sent.is_ok()));
}

/// A tool that runs; it ends with the value.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    /// Lines that were waited for.
    heard: usize,
    _folder: tempfile::TempDir,
}

impl Running {
    /// Takes in what it says, until it has said a line, or the time is over.
    ///
    /// # Errors
    /// All that it said, if it has ended.
    pub fn listen(&mut self, time: Duration) -> Result<(), String> {
        match self.lines.recv_timeout(time) {
            Err(RecvTimeoutError::Disconnected) => return Err(self.said.join("\n")),
            line => self.said.extend(line),
        }
        Ok(())
    }

    /// The next line with `words` in it.
    ///
    /// # Errors
    /// All that it said.
    pub fn line_with(&mut self, words: &str, patience: Duration) -> Result<String, String> {
        let start = Instant::now();
        loop {
            while let Some(line) = self.said.get(self.heard) {
                self.heard += 1;
                if line.contains(words) {
                    return Ok(line.clone());
                }
            }
            let left = patience.saturating_sub(start.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.said.push(line),
                Err(_) => return Err(self.said.join("\n")),
            }
        }
    }

    /// Waits for the end of the program. Returns true if it succeeds.
    pub fn ends(&mut self, patience: Duration) -> bool {
        let start = Instant::now();
        loop {
            let left = patience.saturating_sub(start.elapsed());
            match self.lines.recv_timeout(left) {
                Ok(_) => (),
                // Its pipes close when it ends.
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end"),
            }
        }
        self.child.wait().is_ok_and(|status| status.success())
    }

    /// Interrupts the program like Ctrl-C. Returns its exit status.
    pub fn interrupt(&mut self, patience: Duration) -> Option<i32> {
        let number = self.child.id().to_string();
        let told = Command::new("kill").args(["-INT", &number]).status();
        assert!(told.is_ok_and(|status| status.success()));
        self.ends(patience);
        self.child.wait().ok()?.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A tool that has run.
pub struct Finished {
    pub success: bool,
    /// Standard output, then standard error.
    pub text: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        let text = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .concat();
        Self {
            success: output.status.success(),
            text,
        }
    }
}

/// The shared library that Cargo built next to this test.
pub fn plugin() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    test.with_file_name("libgstfacetrack.so")
}

/// The registry of the plugins of this machine, for all tools. Scanning them takes longer than
/// most of them run. The link to the plugin is new each time, so GStreamer loads the plugin again.
fn registry() -> PathBuf {
    plugin().with_file_name("registry.bin")
}

/// A program that Cargo built for the workspace, by its path below the folder of the profile.
pub fn built(path: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    let profile = test.ancestors().nth(2).expect("a folder of a profile");
    let program = profile.join(path);
    let hint = "Run `cargo build --workspace --bins --examples`";
    assert!(
        program.is_file(),
        "{} is missing. {hint}",
        program.display()
    );
    program
}
