// SPDX-License-Identifier: MPL-2.0
//! The blendshape channels that are exported.

use std::borrow::Cow;

use indexmap::IndexMap;
use thiserror::Error;

use crate::blendshape::NEUTRAL;

/// The channel that only ARKit has, not MediaPipe.
const TONGUE: &str = "tongueOut";

/// A choice of channels. It never adds a channel that was not measured, except for MediaPipe's
/// `_neutral`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BlendshapeProfile {
    /// Every channel.
    #[default]
    Full,
    /// No channel.
    None,
    /// Channels of mouth and jaw.
    Mouth,
    /// Channels of mouth and jaw, and `tongueOut`.
    MouthAndTongue,
    /// MediaPipe's channels: no `tongueOut`, and `_neutral` is 0 if it was not measured.
    Mediapipe,
    /// The channels of a list, in its order.
    Custom(Vec<String>),
}

/// Error for a profile that does not exist.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileError {
    /// No profile has that name.
    #[error("unknown blendshape profile `{0}`, expected one of {names}", names = BlendshapeProfile::NAMES.join(", "))]
    Unknown(String),
    /// `custom` without channels.
    #[error(
        "blendshape profile `custom` needs `blendshape-keys`, a comma-separated list such as `jawOpen,mouthClose`"
    )]
    NoKeys,
}

impl BlendshapeProfile {
    /// The profiles' names.
    pub const NAMES: [&'static str; 5] = ["full", "none", "mouth", "mediapipe", "custom"];

    /// A profile by its name; `custom` takes its channels from the comma list `keys`.
    ///
    /// # Errors
    /// Returns an error if the profile does not exist, or `custom` has no channel.
    pub fn from_name(name: &str, keys: &str) -> Result<Self, ProfileError> {
        match name {
            "full" => Ok(Self::Full),
            "none" => Ok(Self::None),
            "mouth" => Ok(Self::Mouth),
            "mediapipe" => Ok(Self::Mediapipe),
            "custom" => Self::custom(keys),
            name => Err(ProfileError::Unknown(name.to_owned())),
        }
    }

    /// Returns the profile with `tongueOut`, if the profile leaves it open.
    pub fn with_tongue(self) -> Self {
        match self {
            Self::Mouth => Self::MouthAndTongue,
            other => other,
        }
    }

    fn custom(keys: &str) -> Result<Self, ProfileError> {
        let keys = keys.split(',').map(str::trim);
        let keys: Vec<_> = keys
            .filter(|key| !key.is_empty())
            .map(String::from)
            .collect();
        if keys.is_empty() {
            return Err(ProfileError::NoKeys);
        }
        Ok(Self::Custom(keys))
    }

    /// The exported channels in order, of those with these names.
    pub fn channels(&self, names: &[String]) -> Vec<String> {
        let channels = self.apply(names, &vec![0.0; names.len()]);
        let channels = channels.into_iter().flat_map(IndexMap::into_keys);
        channels.map(Cow::into_owned).collect()
    }

    /// The exported channels of one face in order, of those with these names and values; `None` if
    /// there are none. Values that are not finite are left out.
    pub(crate) fn apply<'a>(
        &self,
        names: &'a [String],
        values: &[f32],
    ) -> Option<IndexMap<Cow<'a, str>, f32>> {
        let mut channels: IndexMap<_, _> = std::iter::zip(names, values)
            .filter(|(name, value)| value.is_finite() && self.selects(name))
            .map(|(name, value)| (Cow::Borrowed(name.as_str()), *value))
            .collect();
        if let Self::Custom(keys) = self {
            channels.sort_by_cached_key(|name, _| keys.iter().position(|key| key == name));
        }
        if channels.is_empty() {
            return None;
        }
        if *self == Self::Mediapipe && !names.iter().any(|name| name == NEUTRAL) {
            channels.shift_insert(0, NEUTRAL.into(), 0.0);
        }
        Some(channels)
    }

    fn selects(&self, name: &str) -> bool {
        match self {
            Self::Full => true,
            Self::None => false,
            Self::Mouth => is_mouth(name),
            Self::MouthAndTongue => is_mouth(name) || name == TONGUE,
            Self::Mediapipe => name != TONGUE,
            Self::Custom(keys) => keys.iter().any(|key| key == name),
        }
    }
}

fn is_mouth(name: &str) -> bool {
    name.starts_with("mouth") || name.starts_with("jaw")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blendshape::MEDIAPIPE_CHANNELS;

    fn measured(names: &[&str]) -> (Vec<String>, Vec<f32>) {
        let values = (0..names.len()).map(|i| i as f32 / 64.0).collect();
        (names.iter().map(|name| name.to_string()).collect(), values)
    }

    fn exported(profile: &str, keys: &str, names: &[&str]) -> Option<Vec<String>> {
        let profile = BlendshapeProfile::from_name(profile, keys).expect("a profile");
        names_of(&profile, &measured(names))
    }

    fn names_of(
        profile: &BlendshapeProfile,
        (names, values): &(Vec<String>, Vec<f32>),
    ) -> Option<Vec<String>> {
        let channels = profile.apply(names, values)?;
        Some(channels.into_keys().map(Cow::into_owned).collect())
    }

    #[test]
    fn profiles_choose_the_specified_channels() {
        let arkit: Vec<&str> = MEDIAPIPE_CHANNELS[1..]
            .iter()
            .copied()
            .chain([TONGUE])
            .collect();
        let count = |profile, names: &[&str]| exported(profile, "", names).map(|n| n.len());
        assert_eq!(count("full", &MEDIAPIPE_CHANNELS), Some(52));
        assert_eq!(count("none", &MEDIAPIPE_CHANNELS), None);
        assert_eq!(count("mouth", &MEDIAPIPE_CHANNELS), Some(27));
        assert_eq!(count("mouth", &arkit), Some(27));
        assert_eq!(count("mouth", &["eyeBlinkLeft"]), None);

        let tongue = BlendshapeProfile::Mouth.with_tongue();
        let names = names_of(&tongue, &measured(&arkit)).expect("channels");
        assert_eq!(
            (names.len(), names.last().map(String::as_str)),
            (28, Some(TONGUE))
        );
        assert_eq!(
            names_of(&tongue, &measured(&MEDIAPIPE_CHANNELS)).map(|n| n.len()),
            Some(27)
        );

        let names = exported("mediapipe", "", &arkit).expect("channels");
        assert_eq!(names, MEDIAPIPE_CHANNELS);
        assert_eq!(
            exported("mediapipe", "", &MEDIAPIPE_CHANNELS).expect("channels"),
            MEDIAPIPE_CHANNELS
        );
    }

    #[test]
    fn custom_follows_the_order_of_its_list_and_invents_nothing() {
        let names = exported(
            "custom",
            " jawOpen , tongueOut,,eyeBlinkLeft",
            &MEDIAPIPE_CHANNELS,
        );
        assert_eq!(names.expect("channels"), ["jawOpen", "eyeBlinkLeft"]);
        assert_eq!(exported("custom", "tongueOut", &MEDIAPIPE_CHANNELS), None);
        assert_eq!(
            BlendshapeProfile::from_name("custom", " ,"),
            Err(ProfileError::NoKeys)
        );
    }

    /// The engine derives only the channels that follow from its landmarks.
    #[test]
    fn few_channels_stay_few() {
        let few = ["browInnerUp", "eyeBlinkLeft", "jawOpen"];
        let names = |profile, measured: &[&str]| exported(profile, "", measured);
        assert_eq!(names("full", &few).expect("channels"), few);
        assert_eq!(names("mouth", &few).expect("channels"), ["jawOpen"]);
        assert_eq!(
            names("mediapipe", &few).expect("channels"),
            [NEUTRAL, "browInnerUp", "eyeBlinkLeft", "jawOpen"]
        );
        for profile in ["full", "mouth", "mediapipe"] {
            assert_eq!(names(profile, &[]), None, "{profile}");
        }
    }

    #[test]
    fn an_unknown_profile_is_refused_with_the_list() {
        let error = BlendshapeProfile::from_name("lips", "").expect_err("no such profile");
        let message = error.to_string();
        for name in ["lips", "full", "none", "mouth", "mediapipe", "custom"] {
            assert!(message.contains(name), "{message}");
        }
    }

    #[test]
    fn values_that_are_not_finite_are_left_out() {
        let names = ["jawOpen", "jawLeft"].map(str::to_owned);
        let broken = [f32::NAN, f32::INFINITY];
        for profile in [BlendshapeProfile::Full, BlendshapeProfile::Mediapipe] {
            assert!(profile.apply(&names, &broken).is_none());
        }
    }
}
