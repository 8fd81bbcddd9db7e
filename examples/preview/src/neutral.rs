// SPDX-License-Identifier: MPL-2.0
//! Keeps the neutral face until the program ends: also when the video is repeated, after a cut, and
//! while another engine is used.

use std::io;

use gst::prelude::*;
use tempfile::TempDir;

/// A folder with a file of rest values for each engine. It is removed with this value.
pub struct NeutralFaces(TempDir);

impl NeutralFaces {
    /// A folder without files.
    ///
    /// # Errors
    /// Returns an error if the folder for temporary files cannot be written.
    pub fn new() -> io::Result<Self> {
        tempfile::tempdir().map(Self)
    }

    /// Makes an element that is about to load an engine use the file of this engine, if it measures
    /// blendshapes.
    pub fn apply(&self, element: &gst::Element, engine: &str) {
        let file = self.0.path().join(format!("{engine}.json"));
        let file = measures_blendshapes(engine).then(|| file.to_string_lossy().into_owned());
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
