// SPDX-License-Identifier: MPL-2.0
//! Runs what the documentation tells people to type.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::engine::installed_paths;
use facetrack_assets::manifest::{self, FileKind};

use crate::common::python::{self, PYTHON};
use crate::common::tool::{self, Finished, Running, Tool};
use crate::common::{file, skip_for_want_of};

/// Names of the sample clip in commands.
const CLIP_NAMES: [&str; 2] = ["clip.mp4", "video.mp4"];

/// Name of a folder with the sample clip in commands.
const CLIPS: &str = "clips";

/// Name of a picture with a face in commands, and the file that stands in for it.
const PICTURE: (&str, &str) = ("picture.jpg", "docs/pictures/overlay.jpg");

/// Elements in commands that need a camera or a screen, and the elements that stand in for them.
const STAND_INS: [(&str, &str); 4] = [
    ("v4l2src", "videotestsrc num-buffers=5"),
    ("pipewiresrc", "videotestsrc num-buffers=5"),
    ("autovideosink", "fakesink"),
    ("v4l2sink device=/dev/video42", "fakesink"),
];

/// The address of an RTSP camera in commands.
const RTSP_CAMERA: &str = "rtsp://camera.local/live";

/// Prefixes of commands that read records, and the command that writes these.
const READERS: [(&str, &str); 4] = [
    ("index tracks", "run clips --out tracks"),
    ("view tracks", "run clips --out tracks"),
    ("view clip.json", "run clip.mp4 --out . --set verbose=true"),
    (
        "export clip.json",
        "run clip.mp4 --out . --set verbose=true",
    ),
];

/// Seconds after which a command counts as hanging.
const TIMEOUT: usize = 300;

/// Files that a launch line reads besides the plugin.
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
    /// Finds the files of this machine; otherwise prints what is missing.
    pub fn find() -> Option<Self> {
        let found = Self::look();
        if let Err(missing) = &found {
            eprintln!("SKIPPED: {missing}. Run `make setup`");
        }
        found.ok()
    }

    fn look() -> Result<Self, String> {
        let data = installed_paths().data_dir.ok_or("no home")?;
        let clip = data.join("samples/single_face.mp4");
        if !clip.is_file() {
            return Err(format!("{} is missing", clip.display()));
        }
        let (mut models, mut without) = (Vec::new(), Vec::new());
        let known = manifest::manifest().usable();
        for file in known.filter(|file| file.kind == FileKind::Model && !file.is_pack) {
            match installed_paths().model(&file.name, &file.family, None) {
                Ok(path) => models.push(path),
                Err(_) if !file.is_packaged() => without.push(file.family.to_string()),
                Err(error) => return Err(error.to_string()),
            }
        }
        let runtime = installed_paths()
            .runtime_candidates()
            .into_iter()
            .find(|path| path.is_file())
            .ok_or("no ONNX Runtime")?;
        Ok(Self {
            clip,
            models,
            pack: installed_paths().pack(None).ok(),
            runtime,
            without,
        })
    }

    /// Returns true if the models of a family are installed; otherwise prints that they are
    /// missing.
    pub fn have(&self, family: &str) -> bool {
        let there = !self.without.iter().any(|missing| missing == family);
        if !there {
            eprintln!("SKIPPED: models of {family} are missing");
        }
        there
    }

    /// Returns true if InsightFace's network of age and gender is installed; otherwise prints that
    /// it is missing.
    pub fn have_ages(&self) -> bool {
        let there = self.pack.as_ref().map(|pack| pack.join("genderage.onnx"));
        let there = there.is_some_and(|file| file.is_file());
        if !there {
            eprintln!("SKIPPED: genderage.onnx of insightface is missing");
        }
        there
    }

    /// Returns true if the models of the engine in `command` are installed; otherwise prints that
    /// they are missing.
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

/// Returns true if everything that a command decodes or takes from a camera is turned upright.
pub fn turns_upright(command: &str) -> bool {
    let count = |part: &str| command.matches(part).count();
    let sources = ["decodebin", "jpegdec", "v4l2src", "pipewiresrc"].map(count);
    count("videoconvert ! videoflip video-direction=auto") == sources.iter().sum::<usize>()
}

/// Returns true if a command needs the sample clip or the engine's files.
pub fn needs_files(command: &str) -> bool {
    let is_tracking = command.contains("facetrack") || command.contains(" examples/");
    is_tracking
        && !["gst-inspect", "engine=scripted"]
            .iter()
            .any(|it| command.contains(it))
}

/// A server on this machine that shows a clip as an RTSP camera with a microphone does, and its
/// address; `None`, said aloud, where it is not installed.
pub fn rtsp_camera(clip: &Path) -> Option<(Running, String)> {
    let script = file("tests/rtsp_server.py");
    let server = Tool::new(PYTHON).arg(&script.to_string_lossy());
    let mut server = server.arg(&clip.to_string_lossy()).start();
    match server.line_with("rtsp://", Duration::from_secs(60)) {
        Ok(address) => Some((server, address)),
        Err(said) => {
            eprintln!("{said}");
            skip_for_want_of("an RTSP server", "gir1.2-gst-rtsp-server-1.0");
            None
        }
    }
}

/// A command of ours, after the command that writes the records that it reads.
fn with_records(arguments: &str) -> String {
    let tool = tool::built("facetrack");
    let tool = tool.display();
    let mut readers = READERS.iter();
    let reader = readers.find(|(reader, _)| arguments.starts_with(reader));
    let before = reader.map(|(_, writer)| format!("'{tool}' {writer} && "));
    format!("{}'{tool}' {arguments}", before.unwrap_or_default())
}

/// Runs shell commands in a folder of their own, where the clip has the names that the
/// documentation uses, next to the examples; test pictures stand in for camera and screen, the clip
/// for what comes over a network. `None` when files that they need are missing.
pub fn run(command: &str) -> Option<Finished> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let command = STAND_INS
        .iter()
        .fold(command.to_owned(), |command, (element, stand_in)| {
            command.replace(element, stand_in)
        })
        .replace("python3 ", &format!("{PYTHON} "));
    let command = match command.strip_prefix("facetrack ") {
        Some(arguments) => with_records(arguments),
        None => command,
    };
    let mut script = format!("set -e; cd '{}'; {command}", folder.path().display());
    let mut cameras = Vec::new();
    symlink(file("examples"), folder.path().join("examples")).expect("a link to the examples");
    let limit = TIMEOUT * command.lines().count();
    let mut tool = Tool::new("timeout").args(&format!("{limit} sh -c"));
    if needs_files(&command) {
        let files = Files::find().filter(|files| files.are_enough_for(&command))?;
        for name in CLIP_NAMES {
            symlink(&files.clip, folder.path().join(name)).expect("a link to the clip");
        }
        let clips = folder.path().join(CLIPS);
        std::fs::create_dir(&clips).expect("a folder");
        symlink(&files.clip, clips.join(CLIP_NAMES[0])).expect("a link to the clip");
        let (name, picture) = PICTURE;
        symlink(file(picture), folder.path().join(name)).expect("a link to the picture");
        if command.contains(RTSP_CAMERA) {
            let (camera, address) = rtsp_camera(&files.clip)?;
            script = script.replace(RTSP_CAMERA, &address);
            // It would go on for ever.
            script = script.replace("fakesink", "fakesink num-buffers=20");
            cameras.push(camera);
        }
        tool = files.given_to(tool);
    }
    Some(tool.arg(&script).run())
}

/// Returns true if a launch line ended well, or failed after its end because of rtspsrc: if that is
/// closed while it still requests a pause, it cancels its own request and reports this as an error.
/// An error during playback replaces the end.
pub fn came_to_its_end(Finished { success, text }: &Finished) -> bool {
    let ended = text.contains("Got EOS from element") && text.contains("/GstRTSPSrc:");
    *success || ended && errors(text).next().is_none()
}

/// The errors in what a launch line said that are not rtspsrc's.
pub fn errors(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| line.contains("ERROR") && !line.contains("/GstRTSPSrc:"))
}

/// A Python program of the repository, run by Debian's own interpreter, which has the bindings. It
/// hears of Ctrl-C, also where the tests run in a shell's background, which has programs ignore it.
pub fn script(path: &str) -> Tool {
    Tool::new("env")
        .arg("--default-signal=INT")
        .arg(PYTHON)
        .arg(&file(path).to_string_lossy())
}

/// An example of the workspace. `make test` builds it; with `cargo test --test documents`, build it
/// first.
pub fn crate_example(name: &str) -> Tool {
    let path = tool::built(&format!("examples/{name}"));
    Tool::new(&path.to_string_lossy())
}

/// The portrait that the pictures of the documentation are drawn from, if it has been fetched.
/// Prints what is missing otherwise.
pub fn portrait() -> Option<PathBuf> {
    let path = installed_paths().data_dir?.join("samples/astronaut.png");
    if !path.is_file() {
        eprintln!(
            "SKIPPED: {} is missing. Run `facetrack fetch pictures`",
            path.display()
        );
        return None;
    }
    Some(path)
}

/// Returns true if ffmpeg is installed; otherwise prints that it is missing.
pub fn has_ffmpeg() -> bool {
    let there = Command::new("ffmpeg").arg("-version").output().is_ok();
    if !there {
        skip_for_want_of("ffmpeg", "ffmpeg");
    }
    there
}

/// Returns true if curves can be drawn here; otherwise prints why not.
pub fn has_matplotlib() -> bool {
    let there = python::script("import matplotlib").run().success;
    if !there {
        skip_for_want_of("Matplotlib", "python3-matplotlib");
    }
    there
}

/// Tracks the sample clip into a file of `trackjsonsink` with these properties.
pub fn record(files: &Files, properties: &str, track: &Path) {
    let tool = Tool::new("gst-launch-1.0")
        .arg("-q")
        .arg("filesrc")
        .arg(&format!("location={}", files.clip.display()))
        .args("! decodebin ! facetrack ! trackjsonsink")
        .arg(&format!("location={}", track.display()))
        .args(properties);
    let Finished { success, text } = files.given_to(tool).run();
    assert!(success, "{text}");
}

fn link(file: &Path, folder: &Path) {
    let name = file.file_name().expect("a file has a name");
    symlink(file, folder.join(name)).expect("a link to the file");
}

/// The text of a file of the repository.
pub fn text(path: &str) -> String {
    std::fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
