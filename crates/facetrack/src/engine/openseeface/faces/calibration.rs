// SPDX-License-Identifier: MPL-2.0
//! Reads and writes calibrations: JSON with the ranges of all features of each face.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::expression::Expression;
use super::feature::Feature;
use crate::observation::Features;

/// Name of the file format.
const SCHEMA: &str = "facetrack-openseeface-calibration";

/// Version of the format. It increases with each change that earlier readers do not understand.
const VERSION: u32 = 1;

/// Beginning of the error for a text that is not a calibration.
const OTHER: &str = "this is not a calibration of the engine openseeface";

/// Fields of every version.
#[derive(Deserialize)]
struct Header {
    schema: String,
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Calibration {
    schema: String,
    version: u32,
    faces: Vec<Face>,
}

#[derive(Serialize, Deserialize)]
struct Face {
    /// Time of learning, s.
    learned: f64,
    features: BTreeMap<String, Feature>,
}

/// Writes a calibration.
pub(crate) fn write<'a>(faces: impl Iterator<Item = &'a Expression>) -> String {
    let calibration = Calibration {
        schema: SCHEMA.to_owned(),
        version: VERSION,
        faces: faces.map(Face::from).collect(),
    };
    // Numbers and names can always be serialised.
    serde_json::to_string(&calibration).unwrap_or_default()
}

/// Reads the result of [`write`].
///
/// # Errors
/// Returns the reason if the text is not a calibration of this version, or is damaged.
pub(crate) fn read(text: &str) -> Result<Vec<Expression>, String> {
    let Header { schema, version } = parse(text)?;
    if schema != SCHEMA {
        return Err(format!("{OTHER}: its schema is {schema:?}, not {SCHEMA:?}"));
    }
    if version != VERSION {
        return Err(format!(
            "this calibration has version {version}, but this release reads version {VERSION}: save a new one"
        ));
    }
    let calibration: Calibration = parse(text)?;
    let faces = calibration.faces.into_iter().zip(1..);
    faces
        .map(|(face, number)| face.expression(number))
        .collect()
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("{OTHER}: {error}"))
}

impl From<&Expression> for Face {
    fn from(expression: &Expression) -> Self {
        let names = Features::NAMES.map(str::to_owned);
        Self {
            learned: expression.learned,
            features: names.into_iter().zip(expression.features.clone()).collect(),
        }
    }
}

impl Face {
    /// `face` is counted from 1.
    fn expression(mut self, face: usize) -> Result<Expression, String> {
        let broken = |name| {
            format!("this calibration is damaged: face {face} has no usable {name}; save a new one")
        };
        if !(self.learned.is_finite() && self.learned >= 0.0) {
            return Err(broken("time"));
        }
        let mut features = <[Feature; 14]>::default();
        for (feature, name) in features.iter_mut().zip(Features::NAMES) {
            let read = self.features.remove(name).filter(Feature::is_sound);
            *feature = read.ok_or_else(|| broken(name))?;
        }
        Ok(Expression::resumed(features, self.learned))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::feature::Learning;
    use super::*;

    /// A face that was watched for a while.
    fn learned() -> Expression {
        let mut features = <[Feature; 14]>::default();
        for (index, feature) in features.iter_mut().enumerate() {
            for time in 0..100 {
                let measure = 0.5 + 0.3 * ((time * (index + 3)) as f32 / 7.0).sin();
                feature.update(measure, 0.05, Learning::Open);
            }
        }
        Expression::resumed(features, 33.25)
    }

    #[test]
    fn what_was_learned_comes_back() {
        for faces in [
            vec![],
            vec![Expression::default()],
            vec![learned(), Expression::default()],
        ] {
            assert_eq!(read(&write(faces.iter())).unwrap(), faces);
        }
    }

    /// Returns the reason why a calibration with this change is not read.
    fn refused(change: impl Fn(&mut Value)) -> String {
        let mut calibration: Value =
            serde_json::from_str(&write([&learned()].into_iter())).unwrap();
        change(&mut calibration);
        let reason = read(&calibration.to_string());
        reason.expect_err("this is damaged").to_string()
    }

    #[test]
    fn what_is_wrong_with_a_calibration_is_said() {
        for text in ["", "no JSON", "[]", "{}", r#"{"schema":3}"#, "null"] {
            let reason = read(text).expect_err(text).to_string();
            assert!(reason.contains("not a calibration"), "{reason}");
        }
        let reason = refused(|calibration| calibration["schema"] = json!("tea"));
        assert!(reason.contains("\"tea\""), "{reason}");
        let reason = refused(|calibration| calibration["version"] = json!(2));
        assert!(reason.contains("version 2"), "{reason}");
        let reason = refused(|calibration| {
            calibration["faces"][0]["features"]
                .as_object_mut()
                .unwrap()
                .remove("mouth_open");
        });
        assert!(
            reason.contains("face 1 has no usable mouth_open"),
            "{reason}"
        );
        let reason = refused(|calibration| calibration["faces"][0]["learned"] = json!(-1.0));
        assert!(reason.contains("no usable time"), "{reason}");
    }

    #[test]
    fn numbers_that_measures_do_not_lead_to_are_refused() {
        let damaged: [fn(&mut Value); 6] = [
            |eye| eye["value"] = json!(1e300),
            |eye| eye["value"] = json!(null),
            |eye| eye["median"] = json!([[]]),
            |eye| eye["median"] = json!([vec![0.5; 64]]),
            |eye| eye["least"] = json!({"at": 1e39, "rest": 0.0}),
            |eye| eye["unknown"] = json!(1),
        ];
        for damage in damaged {
            refused(|calibration| damage(&mut calibration["faces"][0]["features"]["eye_l"]));
        }
    }
}
