// SPDX-License-Identifier: MPL-2.0
//! The networks of InsightFace that are on this machine, and the element that runs them.
#![allow(dead_code, reason = "each test program uses its part")]

use std::path::{Path, PathBuf};

use super::engine::installed_paths;
use gst::prelude::*;

use super::clip::Clip;
use super::tool::Tool;

/// Files that the engine reads on this machine.
pub struct Installed {
    /// The folder of the networks that are published outside of packs.
    pub pack: PathBuf,
    pub runtime: PathBuf,
}

impl Installed {
    /// `None`, said aloud, where something is missing.
    pub fn find() -> Option<Self> {
        let found = Self::look();
        if let Err(missing) = &found {
            eprintln!("SKIPPED: {missing}");
        }
        found.ok()
    }

    fn look() -> Result<Self, String> {
        let pack = installed_paths().pack(Some(Path::new("insightface")));
        let runtime = installed_paths().runtime_candidates();
        Ok(Self {
            pack: pack.map_err(|error| error.to_string())?,
            runtime: runtime
                .into_iter()
                .find(|path| path.is_file())
                .ok_or("no ONNX Runtime")?,
        })
    }

    /// `gst-launch-1.0` on `clip` up to `facetrack` with this engine, which finds the pack among
    /// its models.
    pub fn launch(&self, clip: &Clip) -> Tool {
        let tool = self.launch_any(clip);
        let place = tool.models_dir().join("insightface");
        std::os::unix::fs::symlink(&self.pack, place).expect("a link to the pack");
        tool.arg("engine=insightface")
    }

    /// `gst-launch-1.0` on `clip` up to `facetrack`, without models.
    pub fn launch_any(&self, clip: &Clip) -> Tool {
        Tool::new("gst-launch-1.0")
            .env("FACETRACK_ONNXRUNTIME", &self.runtime.to_string_lossy())
            .args(&format!("{} ! facetrack", clip.source()))
    }
}

/// The element with this engine and these texts.
pub fn element(texts: &[(&str, &str)]) -> gst::Element {
    super::init();
    let element = gst::ElementFactory::make("facetrack")
        .property("engine", "insightface")
        .build()
        .expect("the element");
    for (name, text) in texts {
        element.set_property(name, text);
    }
    element
}
