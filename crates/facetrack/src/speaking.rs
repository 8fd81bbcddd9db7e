// SPDX-License-Identifier: MPL-2.0
//! Detects from the mouth whether a face speaks, by the visual rule of the older pipeline of
//! `docs/run.md`.

use serde::Serialize;

use super::blendshape::Blendshapes;

/// `jawOpen` at which a mouth counts as open.
pub const JAW_THRESHOLD: f32 = 0.08;

/// Visual evidence of a mouth that is just open.
const OPEN_MOUTH: f64 = 0.7;

/// Weight of the activity of the lips in the evidence of an open mouth.
const ACTIVITY_WEIGHT: f64 = 0.2;

/// The rule divides the sum of the two shrugs by three, not two.
const ACTIVITY_DIVISOR: f64 = 3.0;

/// Weight of the visual evidence in the confidence; the remainder is for audio.
const VISUAL_SHARE: f64 = 0.4;

/// The confidence above which a face speaks.
const SPEAKING_CONFIDENCE: f64 = 0.3;

/// Result for one face.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Speaking {
    /// For older consumers: true if speaking_confidence is above 0.3. It depends only on how far
    /// the jaw is open in this frame and does not detect speech; false without blendshapes.
    pub is_speaking: bool,
    /// For older consumers: 0.4 × the confidence of speaking_sources.visual.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub speaking_confidence: f32,
    /// For older consumers: visual_primary if the jaw is open far enough, otherwise no_detection.
    pub speaking_method: SpeakingMethod,
    /// For older consumers: the evidence; empty without blendshapes.
    pub speaking_sources: SpeakingSources,
}

/// Method of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
#[serde(rename_all = "snake_case")]
pub enum SpeakingMethod {
    /// No evidence of speech.
    #[default]
    NoDetection,
    /// The mouth is open.
    VisualPrimary,
}

/// Evidence of speech by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct SpeakingSources {
    /// Evidence from the blendshapes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visual: Option<VisualEvidence>,
}

/// Evidence of the mouth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct VisualEvidence {
    /// The blendshape jawOpen.
    pub jaw_open: f32,
    /// Value that jaw_open must exceed to count as evidence.
    pub jaw_threshold: f32,
    /// (mouthShrugUpper + mouthShrugLower) / 3.
    pub mouth_activity: f32,
    /// Confidence of this evidence.
    #[cfg_attr(test, schemars(range(min = 0, max = 1)))]
    pub confidence: f32,
}

impl Speaking {
    /// Computes the result for a face with these blendshapes. Channels other than `jawOpen` are 0
    /// if they were not measured.
    pub fn from_blendshapes(blendshapes: Option<&Blendshapes>) -> Self {
        let channel = |name| blendshapes?.get(name).filter(|value| value.is_finite());
        let Some(jaw_open) = channel("jawOpen") else {
            return Self::default();
        };
        let shrug = |name| f64::from(channel(name).unwrap_or(0.0));
        let activity = (shrug("mouthShrugUpper") + shrug("mouthShrugLower")) / ACTIVITY_DIVISOR;
        let visual = visual_confidence(jaw_open, activity);
        let confidence = VISUAL_SHARE * visual;
        Self {
            is_speaking: confidence > SPEAKING_CONFIDENCE,
            speaking_confidence: confidence as f32,
            speaking_method: if visual > 0.0 {
                SpeakingMethod::VisualPrimary
            } else {
                SpeakingMethod::NoDetection
            },
            speaking_sources: SpeakingSources {
                visual: Some(VisualEvidence {
                    jaw_open,
                    jaw_threshold: JAW_THRESHOLD,
                    mouth_activity: activity as f32,
                    confidence: visual as f32,
                }),
            },
        }
    }
}

fn visual_confidence(jaw_open: f32, activity: f64) -> f64 {
    if jaw_open <= JAW_THRESHOLD {
        return 0.0;
    }
    let openness = f64::from(jaw_open) / f64::from(JAW_THRESHOLD);
    ((openness * OPEN_MOUTH).min(1.0) + ACTIVITY_WEIGHT * activity).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaking(channels: &[(&str, f32)]) -> Speaking {
        let names = channels.iter().map(|(name, _)| name.to_string()).collect();
        let values = channels.iter().map(|(_, value)| *value).collect();
        Speaking::from_blendshapes(Some(&Blendshapes::new(names, values)))
    }

    #[test]
    fn jaw_alone_follows_the_specified_table() {
        use SpeakingMethod::*;
        let cases = [
            (0.0, false, 0.0, NoDetection),
            (0.08, false, 0.0, NoDetection),
            (0.0801, false, 0.280_35, VisualPrimary),
            (0.0857, false, 0.299_95, VisualPrimary),
            (0.0858, true, 0.300_3, VisualPrimary),
            (0.12507, true, 0.4, VisualPrimary),
            (1.0, true, 0.4, VisualPrimary),
        ];
        for (jaw, is_speaking, confidence, method) in cases {
            let verdict = speaking(&[("jawOpen", jaw)]);
            assert_eq!(verdict.is_speaking, is_speaking, "jawOpen {jaw}");
            assert!(
                (verdict.speaking_confidence - confidence).abs() < 1e-6,
                "{verdict:?}"
            );
            assert_eq!(verdict.speaking_method, method, "jawOpen {jaw}");
        }
    }

    #[test]
    fn lips_add_to_an_open_jaw_only() {
        let lips = [("mouthShrugUpper", 0.3), ("mouthShrugLower", 0.3)];
        let closed = speaking(&[("jawOpen", 0.05), lips[0], lips[1]]);
        assert_eq!(closed.speaking_confidence, 0.0);
        let evidence = closed
            .speaking_sources
            .visual
            .expect("jawOpen was measured");
        assert!((evidence.mouth_activity - 0.2).abs() < 1e-6);

        let open = speaking(&[("jawOpen", 0.0857), lips[0], lips[1]]);
        assert!(open.is_speaking);
        let evidence = open.speaking_sources.visual.expect("jawOpen was measured");
        assert!((evidence.confidence - (0.749_875 + 0.04)).abs() < 1e-6);
    }

    #[test]
    fn without_a_measured_jaw_there_is_no_evidence() {
        assert_eq!(Speaking::from_blendshapes(None), Speaking::default());
        assert_eq!(speaking(&[("mouthShrugUpper", 1.0)]), Speaking::default());
        assert_eq!(speaking(&[("jawOpen", f32::NAN)]), Speaking::default());
    }
}
