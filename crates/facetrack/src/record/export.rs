// SPDX-License-Identifier: MPL-2.0
//! The parts of a face that a record has.

use super::profile::BlendshapeProfile;
use crate::observation::Fields;

/// The parts of a face that are exported.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Export {
    /// Blendshape channels.
    pub profile: BlendshapeProfile,
    /// Additional parts, besides those that every reader needs.
    pub fields: Fields,
}

impl Export {
    /// A part that belongs to `field`, if that is exported and the part is known.
    pub(crate) fn part<T>(&self, field: Fields, make: impl FnOnce() -> Option<T>) -> Option<T> {
        self.fields.contains(field).then(make).flatten()
    }
}
