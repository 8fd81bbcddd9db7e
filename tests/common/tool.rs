// SPDX-License-Identifier: MPL-2.0
//! GStreamer's tools as users run them.

use std::path::PathBuf;
use std::process::{Command, Output};

/// How variables begin that the plugin listens to.
const LISTENED_TO: [&str; 7] = [
    "STEP5_",
    "TRACKING_",
    "FACETRACK_",
    "INSIGHTFACE_",
    "CUDA_",
    "ORT_",
    "GST_",
];

/// Runs a GStreamer tool that finds the plugin as users' tools do, with nothing of this process's environment that the
/// plugin listens to.
pub struct Tool {
    command: Command,
    folder: tempfile::TempDir,
}

impl Tool {
    pub fn new(program: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::os::unix::fs::symlink(plugin(), folder.path().join("libgstfacetrack.so"))
            .expect("a link to the plugin");
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if LISTENED_TO.iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(&*name);
            }
        }
        command
            .env("GST_PLUGIN_PATH", folder.path())
            .env("GST_REGISTRY", folder.path().join("registry.bin"))
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

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
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

    pub fn run(mut self) -> Finished {
        let output = self.command.output().expect("the tool is installed");
        drop(self.folder);
        Finished::from(output)
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

/// The shared library that Cargo built beside this test.
fn plugin() -> PathBuf {
    let test = std::env::current_exe().expect("a path");
    test.with_file_name("libgstfacetrack.so")
}
