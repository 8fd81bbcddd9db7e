// SPDX-License-Identifier: MPL-2.0
//! The columns that follow from the head of a record: from its engine, and from the parts of a face
//! that were recorded. Records with the same head have the same columns, also those without a face.

use std::sync::LazyLock;

use facetrack::record::{BlendshapeProfile, JSON_SCHEMA};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::ANY;

/// Keyword of the schema with the engines.
const ENGINES_KEY: &str = "x-engines";

/// The keys that the faces of an engine can have, in their order.
#[derive(Deserialize)]
struct Engine {
    blendshapes: Vec<String>,
    columns: IndexMap<String, Part>,
}

/// A key that not every face has.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    /// The part of a face, as in the property `fields`; `None` for a key that is always recorded.
    fields: Option<String>,
    /// Properties of `facetrack`. One of them has to be set.
    options: Vec<String>,
    /// Number of values in the list; 0 if the key has none, or if their number varies.
    length: usize,
}

/// The engines of the schema, by their names.
static ENGINES: LazyLock<IndexMap<String, Engine>> = LazyLock::new(|| {
    let mut schema: Json = serde_json::from_str(JSON_SCHEMA).unwrap_or_default();
    serde_json::from_value(schema[ENGINES_KEY].take()).unwrap_or_default()
});

/// The engine and the properties that the columns of a record follow from.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    pub engine: &'a str,
    /// Properties of `trackjsonsink`.
    pub of_sink: &'a Map<String, Json>,
    /// Properties of `facetrack`.
    pub of_engine: &'a Map<String, Json>,
}

/// Names of the columns besides those that every record has, with the lengths of their lists; none
/// if the engine is not known.
pub(super) fn columns(settings: Settings<'_>) -> Vec<(String, usize)> {
    let Some(engine) = ENGINES.get(settings.engine) else {
        return Vec::new();
    };
    let channels = profile(settings.of_sink).channels(&engine.blendshapes);
    let parts = engine.columns.iter();
    let parts = parts.filter(|(_, part)| part.is_recorded(settings));
    let names = parts.flat_map(|(name, part)| {
        let names = expanded(name, &channels);
        names.into_iter().map(|name| (name, part.length))
    });
    names.collect()
}

/// Names of the columns that any engine can have.
pub(super) fn all_names() -> impl Iterator<Item = String> {
    let of = |engine: &'static Engine| {
        let names = engine.columns.keys();
        names.flat_map(|name| expanded(name, &engine.blendshapes))
    };
    ENGINES.values().flat_map(of)
}

/// The name, or a name for each channel.
fn expanded(name: &str, channels: &[impl AsRef<str>]) -> Vec<String> {
    let Some(group) = name.strip_suffix(ANY) else {
        return vec![name.to_owned()];
    };
    let channels = channels.iter().map(AsRef::as_ref);
    channels.map(|it| format!("{group}.{it}")).collect()
}

impl Part {
    fn is_recorded(&self, settings: Settings<'_>) -> bool {
        let is_selected = self.fields.as_ref().is_none_or(|field| {
            let fields = text(settings.of_sink, "fields");
            is_set(settings.of_sink, "verbose") || fields.split('+').any(|it| it == field)
        });
        let mut needed = self.options.iter();
        let is_on = |name: &String| is_set(settings.of_engine, name);
        is_selected && (self.options.is_empty() || needed.any(is_on))
    }
}

/// Returns true if a property has a value other than false, 0 and an empty text.
fn is_set(options: &Map<String, Json>, name: &str) -> bool {
    match options.get(name) {
        Some(Json::Bool(value)) => *value,
        Some(Json::Number(value)) => value.as_f64() != Some(0.0),
        Some(Json::String(value)) => !value.is_empty(),
        _ => false,
    }
}

fn text<'a>(options: &'a Map<String, Json>, name: &str) -> &'a str {
    options.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// The blendshapes that were recorded: all of them in records that do not state it.
fn profile(options: &Map<String, Json>) -> BlendshapeProfile {
    let name = text(options, "blendshape-profile");
    let profile = BlendshapeProfile::from_name(name, text(options, "blendshape-keys"));
    let profile = profile.unwrap_or_default();
    if is_set(options, "include-tongue") {
        profile.with_tongue()
    } else {
        profile
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SPEAKING: [&str; 4] = [
        "speaking_sources.visual.jaw_open",
        "speaking_sources.visual.jaw_threshold",
        "speaking_sources.visual.mouth_activity",
        "speaking_sources.visual.confidence",
    ];

    /// The columns of a record with this head.
    fn columns(head: Json) -> Vec<(String, usize)> {
        let options = |name: &str| head[name].as_object().cloned().unwrap_or_default();
        super::columns(Settings {
            engine: head["tracking_engine"].as_str().unwrap(),
            of_sink: &options("options"),
            of_engine: &options("facetrack_options"),
        })
    }

    fn names(head: Json) -> Vec<String> {
        columns(head).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn columns_follow_from_the_engine_and_the_recorded_parts() {
        let pose = ["pose.matrix", "pose.yaw", "pose.pitch", "pose.roll"];
        let of_jaw = [&["blendshapes.jawOpen"], &SPEAKING[..]].concat();
        let cases = [
            ("opencv-haar", json!({}), vec![]),
            (
                "opencv-yunet",
                json!({"verbose": true}),
                vec!["box", "key_points", "origin"],
            ),
            (
                "insightface",
                json!({"fields": "pose+attributes"}),
                [&of_jaw, &pose[..], &["age", "gender", "blendshapes_source"]].concat(),
            ),
            (
                "mediapipe",
                json!({"blendshape-profile": "custom", "blendshape-keys": "jawOpen, tongueOut", "fields": "box"}),
                [&of_jaw[..], &["box"], &pose].concat(),
            ),
            (
                "mediapipe",
                json!({"blendshape-profile": "none"}),
                [&SPEAKING[..], &pose].concat(),
            ),
            ("of-another-program", json!({"verbose": true}), vec![]),
        ];
        for (engine, options, want) in cases {
            let found = names(json!({"tracking_engine": engine, "options": options}));
            assert_eq!(found, want, "{engine} {options}");
        }
        let plain = names(json!({"tracking_engine": "mediapipe"}));
        assert_eq!(plain.len(), 52 + SPEAKING.len() + pose.len(), "{plain:?}");
    }

    #[test]
    fn some_columns_need_a_property_of_facetrack() {
        for (option, off, on, column) in [
            ("embedding", json!(false), json!(true), "embedding"),
            (
                "neutral-time",
                json!(0.0),
                json!(2.5),
                "blendshapes_corrected",
            ),
            (
                "blendshape-gain",
                json!(""),
                json!("jawOpen=1.5"),
                "blendshapes_raw.jawOpen",
            ),
        ] {
            let has = |value: Json| {
                let head = json!({
                    "tracking_engine": "insightface",
                    "options": {"verbose": true},
                    "facetrack_options": {option: value},
                });
                names(head).iter().any(|name| name == column)
            };
            assert!(has(on) && !has(off), "{column}");
        }
    }

    #[test]
    fn lists_have_the_length_of_the_engine() {
        let found = columns(json!({"tracking_engine": "eos", "options": {"verbose": true}}));
        for (name, length) in [
            ("landmarks", 3 * 68),
            ("key_points", 10),
            ("pose.matrix", 16),
            ("eos.shape_coeffs", 63),
        ] {
            assert!(found.contains(&(name.to_owned(), length)), "{found:?}");
        }
    }
}
