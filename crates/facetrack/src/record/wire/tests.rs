// SPDX-License-Identifier: MPL-2.0
//! The published JSON Schema is generated from the types.

mod columns;
mod engines;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json, json};

use super::{Frame, Header, ReducedFrame, Trailer};

const PATH: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../schema/facetrack-2.schema.json"
);

const DESCRIPTION: &str = "A file of trackjsonsink: a dense file, a reduced file, or one line of \
    a jsonl file. Positions are in pixels of the analysed frame, with the origin at its top-left \
    corner, x to the right and y down. Times are in nanoseconds. New keys may be added to any \
    object.";

/// Set to have the test write the schema instead of comparing it.
const UPDATE: &str = "UPDATE_DOCS";

/// Keyword with the keys that the faces of each engine can have.
const ENGINES: &str = "x-engines";

/// Keyword with the columns of tables.
const COLUMNS: &str = "x-columns";

#[test]
fn the_published_schema_is_that_of_the_types() {
    let published = std::fs::read_to_string(PATH).expect("the schema");
    let known: Json = serde_json::from_str(&published).expect("it is JSON");
    let expected = format!("{:#}\n", schema(&known[ENGINES]));
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(PATH, expected).expect("the schema can be written");
        return;
    }
    let remedy =
        format!("it is outdated: run {UPDATE}=1 cargo test --workspace --lib record::wire");
    assert!(published == expected, "{remedy}");
}

/// The schema. `engines` is copied from the published schema.
fn schema(engines: &Json) -> Json {
    let mut generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    generator.subschema_for::<Header>();
    generator.subschema_for::<Frame>();
    generator.subschema_for::<Trailer>();
    generator.subschema_for::<ReducedFrame>();
    let generated = generator.take_definitions(true);
    let mut definitions = files();
    definitions.extend(generated);
    definitions.values_mut().for_each(simplify);
    let fps = definitions["metadata"]["properties"]["fps"].clone();
    definitions["reduced"]["properties"]["fps"] = fps;
    // Older records of this schema lack it.
    let required = definitions["metadata"]["required"].as_array_mut();
    required
        .expect("a list")
        .retain(|key| key != "execution_provider");
    definitions["trailer"]["properties"]["trailer"]["$ref"] = json!("#/$defs/finalMetadata");
    let documents = ["dense", "reduced", "header", "frame", "trailer"];
    let documents = documents.map(|name| json!({"$ref": format!("#/$defs/{name}")}));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:gst-plugin-facetrack:schema:facetrack-2",
        "title": super::SCHEMA,
        "description": DESCRIPTION,
        "oneOf": documents,
        "$defs": definitions,
        (ENGINES): engines::engines(engines),
        (COLUMNS): columns::columns(),
    })
}

/// Definitions of whole files, which no type holds.
fn files() -> Map<String, Json> {
    let files = json!({
        "dense": {
            "description": "A file with format=dense.",
            "type": "object",
            "required": ["metadata", "frames"],
            "properties": {
                "metadata": {
                    "description": "The video and how it was analysed.",
                    "$ref": "#/$defs/finalMetadata",
                },
                "frames": {
                    "description": "Every frame, one per line.",
                    "type": "array",
                    "items": {"$ref": "#/$defs/frame"},
                },
            },
        },
        "reduced": {
            "description": "A file with format=reduced, as an older program produces it from a dense one.",
            "type": "object",
            "required": ["frames_analysis", "fps", "total_frames"],
            "properties": {
                "frames_analysis": {
                    "description": "Every frame, one per line.",
                    "type": "array",
                    "items": {"$ref": "#/$defs/reducedFrame"},
                },
                "total_frames": {
                    "description": "Number of frames in this file.",
                    "type": "integer",
                    "minimum": 0,
                },
            },
        },
        "finalMetadata": {
            "$ref": "#/$defs/metadata",
            "properties": {
                "total_frames": {"type": "integer"},
                "padded_frames": {"type": "integer"},
                "complete": {"type": "boolean"},
                "decode_errors": {"type": "integer"},
                "corrupted_frames": {"type": "integer"},
            },
        },
    });
    serde_json::from_value(files).expect("objects")
}

/// Removes what only Rust knows, and nulls of keys that are left out instead.
fn simplify(schema: &mut Json) {
    if let Some(members) = schema.as_array_mut() {
        members.iter_mut().for_each(simplify);
    }
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(Json::String(description)) = object.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    for annotation in ["format", "readOnly"] {
        if object
            .get(annotation)
            .is_some_and(|value| !value.is_object())
        {
            object.shift_remove(annotation);
        }
    }
    let required = object.get("required").cloned().unwrap_or(json!([]));
    let required = required.as_array().expect("a list");
    if let Some(Json::Object(properties)) = object.get_mut("properties") {
        let optional = properties
            .iter_mut()
            .filter(|(name, _)| !required.contains(&json!(name)));
        optional.for_each(|(_, property)| remove_null(property));
    }
    if let Some(words) = words(object) {
        object.shift_remove("oneOf");
        object.insert("enum".to_owned(), words);
    }
    object.values_mut().for_each(simplify);
}

fn remove_null(property: &mut Json) {
    if let Some(Json::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        property["type"] = types[0].clone();
    }
    if let Some(Json::Array(variants)) = property.get_mut("anyOf") {
        let variant = variants.remove(0);
        let object = property.as_object_mut().expect("an object");
        object.shift_remove("anyOf");
        for (key, value) in variant.as_object().expect("an object") {
            object.entry(key).or_insert(value.clone());
        }
    }
}

/// The words of an enum whose variants are described.
fn words(object: &Map<String, Json>) -> Option<Json> {
    let variants = object.get("oneOf")?.as_array()?;
    variants
        .iter()
        .map(|variant| variant.get("const").cloned())
        .collect()
}
