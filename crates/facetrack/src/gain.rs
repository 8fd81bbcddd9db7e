// SPDX-License-Identifier: MPL-2.0
//! Multiplies blendshapes, for faces that move less or more than an avatar needs.

use std::fmt;
use std::str::FromStr;

use super::blendshape::{Blendshapes, MEDIAPIPE_CHANNELS, NEUTRAL};

/// Maximum gain. A higher one would show mostly noise, as in `neutral::MAX_REST`.
const MAX_GAIN: f32 = 10.0;

/// A factor for each blendshape, 1 by default. All engines name their blendshapes like MediaPipe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gains([f32; MEDIAPIPE_CHANNELS.len()]);

impl Default for Gains {
    fn default() -> Self {
        Self([1.0; MEDIAPIPE_CHANNELS.len()])
    }
}

impl Gains {
    /// The factor of a blendshape.
    pub fn get(&self, name: &str) -> f32 {
        index(name).map_or(1.0, |index| self.0[index])
    }

    /// Sets the factor of a blendshape.
    ///
    /// # Errors
    /// Returns a description if there is no such blendshape, or the factor is not from 0 to 10.
    pub fn set(&mut self, name: &str, gain: f32) -> Result<(), String> {
        let index = index(name).ok_or_else(|| format!("{name:?} is not a blendshape"))?;
        if !(0.0..=MAX_GAIN).contains(&gain) {
            return Err(format!("the gain of {name} is not from 0 to {MAX_GAIN}"));
        }
        self.0[index] = gain;
        Ok(())
    }

    /// Multiplies blendshapes, and limits the products to 0…1.
    pub(crate) fn apply(&self, measured: Blendshapes) -> Blendshapes {
        let changes = self.changes().filter_map(|(name, gain)| {
            let channel = measured.names().iter().position(|it| it == name)?;
            Some((channel, gain))
        });
        let changes: Vec<_> = changes.collect();
        if changes.is_empty() {
            return measured;
        }
        let mut values = measured.values().to_vec();
        for (channel, gain) in changes {
            if let Some(value) = values.get_mut(channel) {
                *value = (*value * gain).clamp(0.0, 1.0);
            }
        }
        measured.corrected(values)
    }

    /// The blendshapes whose factor is not 1.
    fn changes(&self) -> impl Iterator<Item = (&'static str, f32)> {
        let gains = std::iter::zip(MEDIAPIPE_CHANNELS, self.0);
        gains.filter(|(_, gain)| *gain != 1.0)
    }
}

fn index(name: &str) -> Option<usize> {
    let mut names = MEDIAPIPE_CHANNELS.iter();
    names.position(|it| *it == name && name != NEUTRAL)
}

/// Reads a list such as `jawOpen=1.5,browInnerUp=0.8`.
impl FromStr for Gains {
    type Err = String;

    fn from_str(list: &str) -> Result<Self, String> {
        let mut gains = Self::default();
        for item in list.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let parts = item.split_once('=');
            let parts = parts.and_then(|(name, gain)| Some((name, gain.parse().ok()?)));
            let (name, gain) = parts.ok_or_else(|| {
                format!("{item:?} is not a blendshape with a factor, such as jawOpen=1.5")
            })?;
            gains.set(name, gain)?;
        }
        Ok(gains)
    }
}

/// Writes the list of the factors that are not 1.
impl fmt::Display for Gains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.changes().map(|(name, gain)| format!("{name}={gain}"));
        f.write_str(&items.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for (list, want) in [
            ("", ""),
            ("jawOpen=1.5", "jawOpen=1.5"),
            (" mouthPucker=0, jawOpen=2 ,", "jawOpen=2,mouthPucker=0"),
            ("jawOpen=2,jawOpen=1", ""),
        ] {
            let gains: Gains = list.parse().unwrap();
            assert_eq!(gains.to_string(), want, "{list}");
        }
        for (list, reason) in [
            ("jawOpen", "jawOpen=1.5"),
            ("jawOpen=high", "jawOpen=1.5"),
            ("jaw=1", "\"jaw\" is not"),
            ("_neutral=1", "\"_neutral\" is not"),
            ("jawOpen=11", "from 0 to 10"),
            ("jawOpen=-1", "from 0 to 10"),
            ("jawOpen=nan", "from 0 to 10"),
        ] {
            let error = list.parse::<Gains>().unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn only_channels_with_a_gain_change_and_the_first_values_are_kept() {
        let names: Vec<_> = ["_neutral", "jawOpen", "mouthPucker"]
            .map(str::to_owned)
            .into();
        let measured = Blendshapes::new(names.into(), vec![0.5, 0.4, 0.8]);
        let apply = |list: &str, to: &Blendshapes| list.parse::<Gains>().unwrap().apply(to.clone());
        assert_eq!(apply("", &measured), measured);
        assert_eq!(apply("browInnerUp=2", &measured), measured);
        let once = apply("jawOpen=1.5,mouthPucker=2", &measured);
        assert_eq!(once.values(), [0.5, 0.4 * 1.5, 1.0]);
        assert_eq!(once.raw(), Some(measured.values()));
        let twice = apply("jawOpen=0", &once);
        assert_eq!(twice.values(), [0.5, 0.0, 1.0]);
        assert_eq!(twice.raw(), Some(measured.values()));
    }
}
