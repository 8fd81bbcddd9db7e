// SPDX-License-Identifier: MPL-2.0
//! Runs what the documentation tells people to type.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use gstfacetrack::face::locate;
use gstfacetrack::face::manifest::{self, FileKind};

use crate::common::tool::{Finished, Tool};

/// Names under which launch lines speak of some video.
const CLIP_NAMES: [&str; 2] = ["clip.mp4", "video.mp4"];

/// Seconds after which a pipeline counts as hanging.
const TIMEOUT: &str = "120";

/// What a launch line reads besides the plugin.
pub struct Files {
    pub clip: PathBuf,
    models: Vec<PathBuf>,
    /// The folder of InsightFace's networks, which nothing fetches unasked.
    pack: Option<PathBuf>,
    runtime: PathBuf,
    /// Families of models that are not there, as they may where no package has them.
    without: Vec<String>,
}

impl Files {
    /// Those of this machine; says what is missing otherwise.
    pub fn find() -> Option<Self> {
        let found = Self::look();
        if let Err(missing) = &found {
            eprintln!("SKIPPED: {missing}. Run `make setup`");
        }
        found.ok()
    }

    fn look() -> Result<Self, String> {
        let data = locate::data_dir().ok_or("no home")?;
        let clip = data.join("samples/single_face.mp4");
        if !clip.is_file() {
            return Err(format!("{} is missing", clip.display()));
        }
        let (mut models, mut without) = (Vec::new(), Vec::new());
        let known = manifest::manifest().usable();
        for file in known.filter(|file| file.kind == FileKind::Model && !file.is_pack) {
            match locate::model(&file.name, &file.family, None, None) {
                Ok(path) => models.push(path),
                Err(_) if !file.is_packaged() => without.push(file.family.clone()),
                Err(error) => return Err(error.to_string()),
            }
        }
        let runtime = locate::runtime(None)
            .into_iter()
            .find(|path| path.is_file())
            .ok_or("no ONNX Runtime")?;
        Ok(Self {
            clip,
            models,
            pack: locate::pack(None, None).ok(),
            runtime,
            without,
        })
    }

    /// Whether the models of a family are there; says so otherwise.
    pub fn have(&self, family: &str) -> bool {
        let there = !self.without.iter().any(|missing| missing == family);
        if !there {
            eprintln!("SKIPPED: models of {family} are missing");
        }
        there
    }

    /// Whether InsightFace's network of age and gender is there; says so otherwise.
    pub fn have_ages(&self) -> bool {
        let there = self.pack.as_ref().map(|pack| pack.join("genderage.onnx"));
        let there = there.is_some_and(|file| file.is_file());
        if !there {
            eprintln!("SKIPPED: genderage.onnx of insightface is missing");
        }
        there
    }

    /// Whether the models of the engine in `command` are there; says so otherwise.
    fn are_enough_for(&self, command: &str) -> bool {
        if command.contains("engine=insightface") && self.pack.is_none() {
            eprintln!("SKIPPED: a pack of insightface is missing");
            return false;
        }
        let lacking = self.without.iter();
        let mut wanted = lacking.filter(|family| command.contains(&format!("engine={family}")));
        wanted.all(|family| self.have(family))
    }

    /// `tool`, finding models and runtime.
    pub fn given_to(&self, tool: Tool) -> Tool {
        for model in &self.models {
            link(model, &tool.models_dir());
        }
        if let Some(pack) = &self.pack {
            let place = tool.models_dir().join("insightface");
            symlink(pack, place).expect("a link to the pack");
        }
        tool.env("FACETRACK_ONNXRUNTIME", &self.runtime.to_string_lossy())
    }
}

/// Whether a command needs the sample clip or the engine's files.
pub fn needs_files(command: &str) -> bool {
    let plays = command.contains("facetrack") && !command.contains("gst-inspect");
    plays && !command.contains("engine=scripted")
}

/// Runs a shell command in a folder of its own, where the clip lies under the names that the documentation uses; test
/// pictures stand in for camera and screen. `None` when files that it needs are missing.
pub fn run(command: &str) -> Option<Finished> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let command = command
        .replace("v4l2src", "videotestsrc num-buffers=5")
        .replace("autovideosink", "fakesink");
    let script = format!("cd '{}' && {command}", folder.path().display());
    let mut tool = Tool::new("timeout").arg(TIMEOUT).arg("sh").arg("-c");
    if needs_files(&command) {
        let files = Files::find().filter(|files| files.are_enough_for(&command))?;
        for name in CLIP_NAMES {
            symlink(&files.clip, folder.path().join(name)).expect("a link to the clip");
        }
        tool = files.given_to(tool);
    }
    Some(tool.arg(&script).run())
}

fn link(file: &Path, folder: &Path) {
    let name = file.file_name().expect("a file has a name");
    symlink(file, folder.join(name)).expect("a link to the file");
}

/// A file of the repository.
pub fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The text of a file of the repository.
pub fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
