// SPDX-License-Identifier: MPL-2.0
//! The file that keeps neutral faces and gains from one start of the program to the next.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use facetrack::blendshape::MEDIAPIPE_CHANNELS;
use facetrack::engine::EngineKind;
use facetrack::gain::Gains;
use facetrack_assets::file;
use facetrack_assets::replacement::Replacement;
use serde::{Deserialize, Serialize};

/// The version of the format.
const VERSION: u32 = 1;

/// Maximum size of a file, bytes: a profile of all engines has less than 20 kB.
const MAX_SIZE: u64 = 1 << 20;

/// Rest values of blendshapes by their names.
pub type Rest = BTreeMap<String, f32>;

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    /// The version, which also marks the file as one of ours.
    facetrack_profile: u32,
    /// Factors of blendshapes that are not 1.
    gains: BTreeMap<String, f32>,
    /// The rest values that were learned last, by engine.
    neutral: BTreeMap<String, Rest>,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            facetrack_profile: VERSION,
            gains: BTreeMap::new(),
            neutral: BTreeMap::new(),
        }
    }
}

/// Neutral faces and gains.
#[derive(Debug, Default)]
pub struct Profile {
    /// `None` if nothing is kept.
    path: Option<PathBuf>,
    content: Content,
    /// The content of the file; `None` if there is no file.
    saved: Option<Content>,
}

impl Profile {
    /// The profile in a file, which does not need to exist yet.
    ///
    /// # Errors
    /// Returns an error with the path if the file cannot be read or written, or is no profile.
    pub fn open(path: &Path) -> Result<Self, Box<dyn Error>> {
        let fail = |error: &dyn Error| format!("{}: {error}", path.display());
        let saved = match file::read(path, MAX_SIZE) {
            Ok(bytes) => Some(read(&bytes).map_err(|reason| {
                format!(
                    "{}: it is not a profile of facetrack-preview: {reason}. Name another file, or remove this one",
                    path.display()
                )
            })?),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(fail(&error).into()),
        };
        // Said now, not when the program has ended.
        Replacement::begin(path).map_err(|error| fail(&error))?;
        Ok(Self {
            path: Some(path.to_owned()),
            content: saved.clone().unwrap_or_default(),
            saved,
        })
    }

    /// The gains, changed as a list says.
    ///
    /// # Errors
    /// Returns an error if it is not such a list.
    pub fn gains(&self, changes: &str) -> Result<Gains, String> {
        let gains = self.content.gains.iter();
        let gains: Vec<_> = gains.map(|(name, gain)| format!("{name}={gain}")).collect();
        format!("{},{changes}", gains.join(",")).parse()
    }

    /// The rest values of each engine.
    pub fn neutral(&self) -> &BTreeMap<String, Rest> {
        &self.content.neutral
    }

    /// The rest value of a blendshape in an engine.
    pub fn rest(&self, engine: &str, blendshape: &str) -> Option<f32> {
        self.content.neutral.get(engine)?.get(blendshape).copied()
    }

    /// Sets the rest values in an engine, and keeps them.
    ///
    /// # Errors
    /// Returns an error with the path if the file cannot be written.
    pub fn learn(&mut self, engine: &str, rest: Rest) -> Result<(), String> {
        self.content.neutral.insert(engine.to_owned(), rest);
        self.save()
    }

    /// Sets the gains. They are kept when the profile is saved.
    pub fn set_gains(&mut self, gains: &Gains) {
        let all = MEDIAPIPE_CHANNELS.iter();
        let all = all.map(|name| (String::from(*name), gains.get(name)));
        self.content.gains = all.filter(|(_, gain)| *gain != 1.0).collect();
    }

    /// Writes the file if something has changed.
    ///
    /// # Errors
    /// Returns an error with the path if the file cannot be written.
    pub fn save(&mut self) -> Result<(), String> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        if self.saved.as_ref().unwrap_or(&Content::default()) == &self.content {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(&self.content);
        let text = text.map_err(std::io::Error::from);
        let written = text.and_then(|text| {
            let new = Replacement::begin(path)?.resembling()?;
            new.write((text + "\n").as_bytes())
        });
        written.map_err(|error| format!("{}: {error}", path.display()))?;
        self.saved = Some(self.content.clone());
        Ok(())
    }
}

/// Reads and checks the content of a file.
fn read(bytes: &[u8]) -> Result<Content, String> {
    let content: Content = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if content.facetrack_profile != VERSION {
        return Err(format!(
            "its version is {}, not {VERSION}",
            content.facetrack_profile
        ));
    }
    let mut gains = Gains::default();
    for (name, gain) in &content.gains {
        gains.set(name, *gain)?;
    }
    for (engine, rest) in &content.neutral {
        if !EngineKind::ALL.iter().any(|it| it.name() == engine) {
            return Err(format!("{engine:?} is not an engine"));
        }
        for (name, value) in rest {
            check(name, *value)?;
        }
    }
    Ok(content)
}

fn check(name: &str, rest: f32) -> Result<(), String> {
    // The first channel of MediaPipe is not a blendshape.
    if !MEDIAPIPE_CHANNELS[1..].contains(&name) {
        return Err(format!("{name:?} is not a blendshape"));
    }
    if !(0.0..=1.0).contains(&rest) {
        return Err(format!("the rest value of {name} is not from 0 to 1"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_profile_is_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("me.json");
        let mut profile = Profile::open(&path).expect("a new one");
        profile.save().expect("nothing to write");
        assert!(!path.exists());
        let rest = Rest::from([
            ("jawOpen".to_owned(), 0.02),
            ("mouthPucker".to_owned(), 0.1),
        ]);
        profile.learn("mediapipe", rest).expect("written");
        let gains: Gains = "jawOpen=1.1,browInnerUp=0".parse().expect("gains");
        profile.set_gains(&gains);
        profile.save().expect("written");

        let again = Profile::open(&path).expect("a profile");
        assert_eq!(again.content, profile.content);
        assert_eq!(again.gains("").as_ref(), Ok(&gains));
        let changed = again.gains("jawOpen=1,mouthClose=3").expect("gains");
        assert_eq!(changed.to_string(), "browInnerUp=0,mouthClose=3");
        assert_eq!(again.rest("mediapipe", "jawOpen"), Some(0.02));
        assert_eq!(again.rest("openseeface", "jawOpen"), None);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn a_file_that_is_no_profile_is_refused_and_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("me.json");
        let long = " ".repeat(MAX_SIZE as usize + 1);
        for (text, reason) in [
            ("", "EOF"),
            ("{}", "missing field `facetrack_profile`"),
            (r#"{"frames": []}"#, "unknown field `frames`"),
            (
                r#"{"facetrack_profile":2,"gains":{},"neutral":{}}"#,
                "its version is 2",
            ),
            (
                r#"{"facetrack_profile":1,"gains":{"jaw":1},"neutral":{}}"#,
                "\"jaw\" is not a blendshape",
            ),
            (
                r#"{"facetrack_profile":1,"gains":{"jawOpen":11},"neutral":{}}"#,
                "from 0 to 10",
            ),
            (
                r#"{"facetrack_profile":1,"gains":{},"neutral":{"ghost":{}}}"#,
                "\"ghost\" is not an engine",
            ),
            (
                r#"{"facetrack_profile":1,"gains":{},"neutral":{"mediapipe":{"_neutral":0}}}"#,
                "\"_neutral\" is not a blendshape",
            ),
            (
                r#"{"facetrack_profile":1,"gains":{},"neutral":{"mediapipe":{"jawOpen":1.5}}}"#,
                "from 0 to 1",
            ),
            (&long, "me.json"),
        ] {
            fs::write(&path, text).expect("written");
            let error = Profile::open(&path).expect_err(text).to_string();
            assert!(
                error.contains("me.json") && error.contains(reason),
                "{error}"
            );
            assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        }
    }
}
