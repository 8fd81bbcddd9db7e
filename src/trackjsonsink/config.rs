// SPDX-License-Identifier: MPL-2.0
//! The configuration of a record, from all options together.

use super::error::OutputError;
use super::output::Destination;
use crate::options::{FillBy, Format, JsonSinkSettings};
use facetrack::record::timeline::Filling;
use facetrack::record::{BlendshapeProfile, Export, Fields};

/// Content and location of a record.
#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) destination: Destination,
    pub(super) export: Export,
    /// Settings as they were set, except for the format on standard output.
    pub(super) settings: JsonSinkSettings,
}

impl Config {
    /// The configuration that the settings make.
    ///
    /// # Errors
    /// Returns an error if the profile does not exist, or the format cannot be written to the
    /// location.
    pub(super) fn new(mut settings: JsonSinkSettings) -> Result<Self, OutputError> {
        let destination = Destination::new(settings.location.as_deref(), settings.format)?;
        if matches!(destination, Destination::Stdout) {
            settings.format = Format::Jsonl;
        }
        Ok(Self {
            destination,
            export: export(&settings)?,
            settings,
        })
    }

    /// The missing frames that are filled in.
    pub(super) fn filling(&self) -> Filling {
        match (self.settings.fill_gaps, self.settings.fill_by) {
            (false, _) => Filling::Never,
            (true, FillBy::Loss) => Filling::Loss,
            (true, FillBy::Timestamps) => Filling::Timestamps,
        }
    }
}

fn export(settings: &JsonSinkSettings) -> Result<Export, OutputError> {
    let keys = settings.blendshape_keys.as_deref().unwrap_or_default();
    let mut profile = BlendshapeProfile::from_name(&settings.blendshape_profile, keys)?;
    if settings.include_tongue {
        profile = profile.with_tongue();
    }
    let mut fields = settings.fields;
    if settings.verbose {
        fields = Fields::all();
    }
    Ok(Export { profile, fields })
}
