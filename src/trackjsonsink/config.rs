// SPDX-License-Identifier: MPL-2.0
//! The configuration of a record, from all options together.

use thiserror::Error;

use super::output::{Destination, Existing, OutputError};
use crate::options::{self, FillBy, Format, JsonSinkSettings};
use facetrack::record::timeline::Filling;
use facetrack::record::{BlendshapeProfile, Export, Fields, ProfileError};
use serde_json::{Map, Value};

/// Content and location of a record.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) destination: Destination,
    pub(super) existing: Existing,
    pub(super) format: Format,
    pub(super) export: Export,
    pub(super) filling: Filling,
    /// `None` for the path that the source reports.
    pub(super) video_path: Option<String>,
    /// For the header of the record.
    pub(super) options: Map<String, Value>,
}

/// Options that cannot be used together.
#[derive(Debug, Error)]
pub(super) enum ConfigError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Output(#[from] OutputError),
}

impl Config {
    /// The configuration that the settings make.
    ///
    /// # Errors
    /// If the profile does not exist, or the format cannot be written to the location.
    pub(super) fn new(mut settings: JsonSinkSettings) -> Result<Self, ConfigError> {
        let destination = Destination::new(settings.location.as_deref(), settings.format)?;
        if matches!(destination, Destination::Stdout) {
            settings.format = Format::Jsonl;
        }
        Ok(Self {
            destination,
            existing: if settings.overwrite {
                Existing::Replace
            } else {
                Existing::Refuse
            },
            format: settings.format,
            export: export(&settings)?,
            filling: match (settings.fill_gaps, settings.fill_by) {
                (false, _) => Filling::Never,
                (true, FillBy::Loss) => Filling::Loss,
                (true, FillBy::Timestamps) => Filling::Timestamps,
            },
            options: options::shaping(&settings),
            video_path: settings.video_path,
        })
    }
}

fn export(settings: &JsonSinkSettings) -> Result<Export, ProfileError> {
    let keys = settings.blendshape_keys.as_deref().unwrap_or_default();
    let profile = BlendshapeProfile::from_name(&settings.blendshape_profile, keys)?;
    Ok(Export {
        profile: if settings.include_tongue {
            profile.with_tongue()
        } else {
            profile
        },
        fields: if settings.verbose {
            Fields::all()
        } else {
            settings.fields
        },
    })
}
