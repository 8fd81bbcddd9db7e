// SPDX-License-Identifier: MPL-2.0
//! The tables of the page about the columns, from the JSON Schema.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json};

/// The engine that only tests use.
const SCRIPTED: &str = "scripted";

/// End of a name that stands for all values of an object.
const ANY: &str = ".*";

/// The objects of blendshapes. Their names in an engine are listed below the table.
const BLENDSHAPES: &str = "blendshapes";

/// A row for each column, in the order of a table.
pub fn columns(schema: &Json) -> String {
    let mut table =
        "| column | unit | range | meaning | engines |\n|---|---|---|---|---|\n".to_owned();
    for (name, column) in object(&schema["x-columns"]) {
        let text = |key: &str| column[key].as_str().unwrap_or_default();
        let meaning = match text("description") {
            "" => meaning(schema, name),
            description => description.to_owned(),
        };
        let (unit, range, engines) = (text("unit"), text("range"), engines(schema, name));
        let _ = writeln!(
            table,
            "| `{name}` | {unit} | {range} | {meaning} | {engines} |"
        );
    }
    table
}

/// The blendshapes of each engine.
pub fn blendshapes(schema: &Json) -> String {
    let mut table = "| engine | blendshapes |\n|---|---|\n".to_owned();
    for (engine, keys) in measuring(schema) {
        let names = keys["blendshapes"].as_array().expect("a list");
        let names = names
            .iter()
            .map(|name| format!("`{}`", name.as_str().expect("a name")));
        let names: Vec<_> = names.collect();
        if !names.is_empty() {
            let _ = writeln!(table, "| `{engine}` | {} |", names.join(", "));
        }
    }
    table
}

/// The sentences of the schema about a key, and the option that records it.
fn meaning(schema: &Json, name: &str) -> String {
    let keys: Vec<_> = name.trim_end_matches(ANY).split('.').collect();
    let mut key = &schema["$defs"]["object"];
    let mut texts = Vec::new();
    for (depth, name) in keys.iter().enumerate() {
        key = &resolved(schema, key)["properties"][name];
        // The values of most objects say enough without the object.
        if depth > 0 || keys.len() != 2 {
            let text = key["description"].as_str();
            let text = text.or(resolved(schema, key)["description"].as_str());
            texts.push(text.expect("a description"));
        }
    }
    let mut meaning = texts.join(" ");
    if let Some(words) = key["enum"].as_array().filter(|words| words.len() > 1) {
        let words = words
            .iter()
            .map(|it| format!("`{}`", it.as_str().expect("a word")));
        let _ = write!(meaning, " {}", words.collect::<Vec<_>>().join(", "));
    }
    let parts = measuring(schema).find_map(|(_, engine)| engine["columns"].get(name));
    let field = parts.and_then(|part| part["fields"].as_str());
    let option = field.map(|field| format!("fields={field}"));
    match option.filter(|option| !meaning.contains(option)) {
        Some(option) => format!("{meaning} ({option})"),
        None => meaning,
    }
}

/// The key, or the definition that it refers to.
fn resolved<'a>(schema: &'a Json, key: &'a Json) -> &'a Json {
    let reference = key["$ref"].as_str().and_then(|it| it.strip_prefix('#'));
    reference.and_then(|it| schema.pointer(it)).unwrap_or(key)
}

/// The engines that measure a column; for blendshapes, with their number.
fn engines(schema: &Json, name: &str) -> String {
    let group = name.strip_suffix('*');
    let of = |(engine, keys): (&String, &Json)| {
        let columns = object(&keys["columns"]);
        let is_measured = columns.contains_key(name)
            || group.is_some_and(|group| columns.keys().any(|it| it.starts_with(group)));
        let count = keys["blendshapes"].as_array().map_or(0, Vec::len);
        is_measured.then(|| match group {
            Some(group) if group.starts_with(BLENDSHAPES) => format!("`{engine}` ({count})"),
            _ => format!("`{engine}`"),
        })
    };
    let engines: Vec<_> = measuring(schema).filter_map(of).collect();
    match engines.len() {
        0 => "all".to_owned(),
        len if len == measuring(schema).count() => "all".to_owned(),
        _ => engines.join(", "),
    }
}

/// The engines for videos, with their keys.
fn measuring(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    let engines = object(&schema["x-engines"]).iter();
    engines.filter(|(engine, _)| *engine != SCRIPTED)
}

fn object(value: &Json) -> &Map<String, Json> {
    value.as_object().expect("an object")
}
