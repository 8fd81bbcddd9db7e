// SPDX-License-Identifier: MPL-2.0
//! What the options mean together.

use thiserror::Error;

use super::output::{Destination, Existing, OutputError};
use facetrack::options::trackjsonsink::{FillBy, Format};
use facetrack::options::{Resolved, Value};
use facetrack::record::timeline::Filling;
use facetrack::record::{BlendshapeProfile, Export, Fields, ProfileError};

/// Options that shape what is written, as the record names them.
const SHAPING: [&str; 8] = [
    "format",
    "blendshape-profile",
    "blendshape-keys",
    "include-tongue",
    "verbose",
    "fields",
    "fill-gaps",
    "fill-by",
];

/// What to record and where.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) destination: Destination,
    pub(super) existing: Existing,
    pub(super) format: Format,
    pub(super) export: Export,
    pub(super) filling: Filling,
    /// As it is stated; `None` for what the source reports.
    pub(super) video_path: Option<String>,
    /// For the record's head.
    pub(super) options: Vec<(&'static str, Value)>,
}

/// Why options do not go together.
#[derive(Debug, Error)]
pub(super) enum ConfigError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Config {
    /// The configuration that the options make.
    ///
    /// # Errors
    /// When there is no such profile, or the format can't be written to the location.
    pub(super) fn new(options: &Resolved) -> Result<Self, ConfigError> {
        let location: Option<String> = options.get("location");
        let asked: Format = options.get("format");
        let destination = Destination::new(location.as_deref(), asked)?;
        let format = match destination {
            Destination::Stdout => Format::Jsonl,
            _ => asked,
        };
        Ok(Self {
            destination,
            existing: match options.get("overwrite") {
                true => Existing::Replace,
                false => Existing::Refuse,
            },
            format,
            export: export(options)?,
            filling: match (options.get("fill-gaps"), options.get("fill-by")) {
                (false, _) => Filling::Never,
                (true, FillBy::Loss) => Filling::Loss,
                (true, FillBy::Timestamps) => Filling::Timestamps,
            },
            video_path: options.get("video-path"),
            options: shaping(options, format),
        })
    }
}

fn export(options: &Resolved) -> Result<Export, ProfileError> {
    let keys: Option<String> = options.get("blendshape-keys");
    let name: String = options.get("blendshape-profile");
    let profile = BlendshapeProfile::from_name(&name, keys.as_deref().unwrap_or_default())?;
    Ok(Export {
        profile: match options.get("include-tongue") {
            true => profile.with_tongue(),
            false => profile,
        },
        fields: match options.get("verbose") {
            true => Fields::ALL,
            false => options.get("fields"),
        },
    })
}

fn shaping(options: &Resolved, format: Format) -> Vec<(&'static str, Value)> {
    options
        .iter()
        .filter(|(option, _)| SHAPING.contains(&option.name))
        .map(|(option, value)| match option.name {
            "format" => (option.name, Value::Text(format.nick().to_owned())),
            name => (name, value.clone()),
        })
        .collect()
}
