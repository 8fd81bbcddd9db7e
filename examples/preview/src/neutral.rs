// SPDX-License-Identifier: MPL-2.0
//! Keeps the neutral face until the program ends: also when the video is repeated, after a cut,
//! while another engine is used, and while the camera is away.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use gst::prelude::*;
use tempfile::TempDir;

use crate::profile::Rest;

/// A folder with a file of rest values for each engine. It is removed with this value.
pub struct NeutralFaces(TempDir);

impl NeutralFaces {
    /// A folder with the rest values of each engine.
    ///
    /// # Errors
    /// Returns an error if the folder for temporary files cannot be written.
    pub fn new(neutral: &BTreeMap<String, Rest>) -> io::Result<Self> {
        let faces = Self(tempfile::tempdir()?);
        for (engine, rest) in neutral {
            fs::write(faces.file(engine), serde_json::to_vec(rest)?)?;
        }
        Ok(faces)
    }

    fn file(&self, engine: &str) -> PathBuf {
        self.0.path().join(format!("{engine}.json"))
    }

    /// Makes an element that is about to load an engine use the file of this engine, if it measures
    /// blendshapes.
    pub fn apply(&self, element: &gst::Element, engine: &str) {
        let file = self.file(engine).to_string_lossy().into_owned();
        let file = measures_blendshapes(engine).then_some(file);
        element.set_property("neutral-file", file);
    }
}

/// Returns true if an engine with its default settings measures blendshapes.
fn measures_blendshapes(engine: &str) -> bool {
    let other = gst::ElementFactory::make("facetrack").property("engine", engine);
    let other = other.build().expect("the element is registered");
    let capabilities = other.property::<Option<gst::Structure>>("capabilities");
    let channels = capabilities.and_then(|it| it.get::<gst::Array>("blendshapes").ok());
    channels.is_some_and(|channels| !channels.is_empty())
}
